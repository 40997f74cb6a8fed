#ifndef IDEM_COMPRESSION_H
#define IDEM_COMPRESSION_H

#include <idem/base.h>

/* Messages may travel compressed: those that one's own side sends, as it says;
 * those of the peer are taken as they come. A peer that does not know how gets
 * them as they are. Fingerprints, records and limits are of the messages
 * themselves, so that a call that is repeated another way is the same call.
 * docs/guide.md says when it is worth it. */

enum idem_codec {
    IDEM_CODEC_NONE = 0,
    IDEM_CODEC_ZLIB = 1,
    IDEM_CODEC_ZSTD = 2, /* faster, and smaller */
};

/* All zero: nothing is compressed. */
struct idem_compression {
    enum idem_codec codec;
    size_t threshold; /* bytes; smaller messages go as they are; 0: 1,024 */
    int level;        /* of the codec's: zlib 1 to 9, zstd 1 to 19; 0: zlib 6,
                       * zstd 3 */
};

#endif
