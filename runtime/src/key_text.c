#include "key_text.h"

#include "printable.h"

#include <idem/reason.h>

/* At the first byte that does not belong there. */
static enum idem_status
refuse(struct idem_bytes key, struct idem_error *err)
{
    size_t at = 0;

    while (is_printable((struct idem_bytes){key.data + at, 1}, '!'))
        at++;
    return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_CHARSET,
                            "byte %zu of the key is not of 0x21..0x7E", at);
}

enum idem_status
key_text_check(struct idem_bytes key, struct idem_error *err)
{
    if (key.size > IDEM_KEY_MAX)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_TOO_LONG,
                                "the key has %zu bytes, at most %d", key.size,
                                IDEM_KEY_MAX);
    return is_printable(key, '!') ? IDEM_OK : refuse(key, err);
}
