#include <idem/session.h>

#include <idem/digest.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "ids_"
#define CRC_DIGITS 8

void
idem_key_add_checksum(char *text)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t crc = idem_crc32c(idem_bytes_of(text));

    text += strlen(text);
    for (unsigned i = 0; i < CRC_DIGITS; i++)
        *text++ = digits[crc >> (4 * (CRC_DIGITS - 1 - i)) & 0xF];
    *text = '\0';
}

void
idem_key_of_session(char *text, const char *session, int64_t sequence)
{
    snprintf(text, IDEM_KEY_MAX + 1, "%s_%" PRId64 "_", session, sequence);
    idem_key_add_checksum(text);
}

/* Where the number begins, which ends before the checksum; 0: nowhere. */
static size_t
number_at(struct idem_bytes key, size_t end)
{
    size_t at = end;

    while (at > 0 && key.data[at - 1] >= '0' && key.data[at - 1] <= '9')
        at--;
    return at > sizeof(PREFIX) && at < end && key.data[at - 1] == '_' ? at : 0;
}

bool
idem_session_split(struct idem_bytes key, char session[IDEM_SESSION_MAX],
                   int64_t *sequence)
{
    int64_t number = 0;
    size_t end, at;

    if (key.size < sizeof(PREFIX) + CRC_DIGITS ||
        memcmp(key.data, PREFIX, sizeof(PREFIX) - 1) != 0)
        return false;
    end = key.size - CRC_DIGITS - 1;
    at = key.data[end] == '_' ? number_at(key, end) : 0;
    if (at == 0 || at > IDEM_SESSION_MAX)
        return false;
    for (size_t i = at; i < end; i++) {
        int digit = key.data[i] - '0';

        if (number > (INT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    if (number == 0)
        return false;
    memcpy(session, key.data, at - 1);
    session[at - 1] = '\0';
    *sequence = number;
    return true;
}
