#ifndef WATERMARK_H
#define WATERMARK_H

#include <idem/store.h>

/* What every authority knows of a session: up to which number its calls were
 * acknowledged (semantics.md 3.16; after RIFL). */

/* So far it moves at once, and so many records go with it. */
#define WATERMARK_STEP 64

/* What it is kept under: of the tenant and the session's name. */
void watermark_digest(const struct idem_record_id *id, uint8_t digest[32]);

/* How far the client's word counts: a call that runs is not acknowledged. */
int64_t watermark_bounded(const struct idem_ticket *ticket);

/* When nobody needs it any more: no key of the session is taken after. */
int64_t watermark_gone_ms(const struct idem_record_id *id);

/* The digest of the record of another call of the session. */
void watermark_record(const struct idem_record_id *id, int64_t sequence,
                      uint8_t digest[32]);

#endif
