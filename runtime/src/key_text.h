#ifndef KEY_TEXT_H
#define KEY_TEXT_H

#include <idem/outcome.h>

/* What both ends ask of a key's text, whatever it means: at most IDEM_KEY_MAX
 * bytes of 0x21..0x7E (semantics.md 3.11). None is fine.
 *
 * @retval IDEM_INVALID_ARGUMENT  IDEM_KEY_TOO_LONG or IDEM_KEY_CHARSET
 */
enum idem_status key_text_check(struct idem_bytes key, struct idem_error *err)
    IDEM_MUST_CHECK;

#endif
