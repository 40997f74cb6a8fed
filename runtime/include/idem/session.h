#ifndef IDEM_SESSION_H
#define IDEM_SESSION_H

#include <idem/outcome.h>

/* The text of a session's keys (docs/wire.md, section 3): "ids_", 32 hex digits
 * of a UUIDv7, "_", the window in seconds; that is the session's name. Behind
 * it
 * "_", a number from 1, "_", 8 hex digits of a CRC-32C over all before.
 *
 * <idem/key.h> has what is to be known of keys otherwise. */

#define IDEM_SESSION_MAX 64 /* bytes of a name, with the NUL */

IDEM_BEGIN_DECLS

/* The key of a session's call. text receives at most IDEM_KEY_MAX + 1 bytes.
 * sequence is from 1. */
IDEM_API void idem_key_of_session(char *text, const char *session,
                                  int64_t sequence);

/* The other way: the name, NUL-terminated, and the number. The checksum is not
 * looked at, and neither is the time. False: it is no session's key, and
 * nothing is written. */
IDEM_API bool idem_session_split(struct idem_bytes key,
                                 char session[IDEM_SESSION_MAX],
                                 int64_t *sequence) IDEM_MUST_CHECK;

/* Put the checksum of a minted key behind what its text has already; there is
 * room for 8 bytes and the NUL. */
IDEM_API void idem_key_add_checksum(char *text);

IDEM_END_DECLS

#endif
