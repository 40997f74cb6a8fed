#include <idem/key.h>
#include <idem/reason.h>

/* How hard a key is to guess, by the estimate that docs/wire.md states: a row
 * is of digits, small or capital letters alone, and what is none of these
 * neither counts nor ends one. What was counted is never taken back, so that a
 * key which goes on is no weaker. */

#define BITS_MIN 64
#define SAME_MAX 3 /* of one character in a row that count */

#define HEX_BITS 4
#define HEX_DIGITS_MAX 11 /* of a row: dates and numbers begin to look so */

#define ROW_BEGIN 2 /* characters of a row that count in full */
#define ONE_CASE_BITS 5
#define TWO_CASES_BITS 6
#define LETTER_BITS 2 /* in a row: words */
#define DIGIT_BITS 1

enum kind {
    DIGIT = 1,
    SMALL = 2,
    CAPITAL = 4,
    OTHER = 8,
};

struct strength {
    enum kind kind; /* of the row, whose size in_row is */
    unsigned in_row;
    unsigned same; /* as the last character, which is this one */
    uint8_t last;
    unsigned kinds; /* bits: all that came */
    unsigned begun, letters, digits;
    unsigned hex_bits; /* of the beginning that is hexadecimal */
    bool hex_over;
};

static enum kind
kind_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return DIGIT;
    if (c >= 'a' && c <= 'z')
        return SMALL;
    return c >= 'A' && c <= 'Z' ? CAPITAL : OTHER;
}

static bool
two_cases(unsigned kinds)
{
    return (kinds & SMALL) && (kinds & CAPITAL);
}

static void
take_row(struct strength *s, uint8_t c, enum kind kind)
{
    s->in_row = s->kind == kind ? s->in_row + 1 : 1;
    s->same = s->last == c ? s->same + 1 : 1;
    s->kind = kind;
    s->last = c;
    s->kinds |= kind;
    if (two_cases(s->kinds) || (kind != DIGIT && (c & 0x1F) > 6))
        s->hex_over = true;
}

static void
take(struct strength *s, uint8_t c)
{
    enum kind kind = kind_of(c);

    if (kind == OTHER)
        return;
    take_row(s, c, kind);
    if (s->same > SAME_MAX)
        return;
    if (!s->hex_over)
        s->hex_bits +=
            kind == DIGIT && s->in_row > HEX_DIGITS_MAX ? DIGIT_BITS : HEX_BITS;
    if (s->in_row <= ROW_BEGIN)
        s->begun++;
    else if (kind == DIGIT)
        s->digits++;
    else
        s->letters++;
}

unsigned
idem_key_bits(struct idem_bytes text)
{
    struct strength s = {0};
    unsigned bits;

    for (size_t i = 0; i < text.size; i++)
        take(&s, text.data[i]);
    bits = s.begun * (two_cases(s.kinds) ? TWO_CASES_BITS : ONE_CASE_BITS) +
           s.letters * LETTER_BITS + s.digits * DIGIT_BITS;
    return bits > s.hex_bits ? bits : s.hex_bits;
}

enum idem_status
idem_key_admit(struct idem_key *key, const struct idem_method *method,
               struct idem_bytes text, struct idem_error *err)
{
    struct idem_key read;
    enum idem_status status = idem_key_parse(&read, text, err);
    bool asked = status == IDEM_OK && method->secret_keys && !read.minted;
    unsigned bits = asked ? idem_key_bits(text) : BITS_MIN;

    if (status != IDEM_OK)
        return status;
    if (bits >= BITS_MIN) {
        *key = read;
        return IDEM_OK;
    }
    return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_WEAK,
                            "the key looks as if %u bits were enough to guess "
                            "it; %s asks for %d: 32 random hex digits, or "
                            "leave it to the client",
                            bits, method->name, BITS_MIN);
}
