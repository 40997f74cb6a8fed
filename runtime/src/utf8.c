#include "utf8.h"

#include <string.h>

/* The bytes of the character at the start; 0: none. */
static size_t
character_size(const uint8_t *at, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80   ? 1
                    : at[0] < 0xC0 ? 0 /* a byte of the middle */
                    : at[0] < 0xE0 ? 2
                    : at[0] < 0xF0 ? 3
                    : at[0] < 0xF8 ? 4
                                   : 0;

    if (length <= 1 || length > size)
        return length > size ? 0 : length;

    uint32_t code = at[0] & (0x7Fu >> length);

    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = (code << 6) | (at[i] & 0x3F);
    }

    bool surrogate = code >= 0xD800 && code <= 0xDFFF;

    return code < least[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

static bool
eight_are_ascii(const uint8_t *at)
{
    uint64_t eight;

    memcpy(&eight, at, sizeof(eight));
    return (eight & UINT64_C(0x8080808080808080)) == 0;
}

bool
utf8_valid(struct idem_bytes text)
{
    size_t i = 0;

    while (i < text.size) {
        if (text.size - i >= 8 && eight_are_ascii(text.data + i)) {
            i += 8;
            continue;
        }

        size_t length = character_size(text.data + i, text.size - i);

        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

void
utf8_repair(char *text)
{
    size_t size = strlen(text), i = 0;

    while (i < size) {
        size_t length = character_size((const uint8_t *)text + i, size - i);

        if (length == 0)
            text[i] = '?';
        i += length ? length : 1;
    }
}
