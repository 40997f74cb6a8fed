#include "hex.h"

#include <idem/call.h>
#include <idem/context_once.h>
#include <idem/digest.h>
#include <idem/key.h>
#include <idem/reason.h>

#include <endian.h>
#include <stdio.h>
#include <string.h>

/* A minted key's parts: "idk_" 32 hex "_" window "_" 8 hex. */
#define PREFIX "idk_"
#define SESSION_PREFIX "ids_"
#define PREFIX_SIZE (sizeof(PREFIX) - 1) /* both */
#define UUID_SIZE 16
#define CRC_DIGITS 8
#define WINDOW_DEFAULT_S 86400  /* options.proto, window_s */
#define WINDOW_MAX_S 34560000   /* 400 days */
#define WALL_MAX_MS (1LL << 48) /* what a UUIDv7 holds */

/* Eight hex digits at a time, as text lies in memory. Lower case only: one key
 * has one spelling, for it is compared as text. */
static bool
read_eight(const uint8_t *text, uint8_t bytes[4])
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t digits, values, tens;
    uint32_t packed;

    memcpy(&digits, text, sizeof(digits));
    digits = le64toh(digits);
    values = (digits & 0x0F * each) + 9 * (digits >> 6 & each);
    tens = (values + (128 - 10) * each) >> 7 & each;
    if ((values & 0xF0 * each) != 0 ||
        values + '0' * each + ('a' - '0' - 10) * tens != digits)
        return false;
    values = (values << 4 | values >> 8) & UINT64_C(0x00FF00FF00FF00FF);
    values = (values | values >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    packed = htole32((uint32_t)(values | values >> 16));
    memcpy(bytes, &packed, sizeof(packed));
    return true;
}

/* A whole number of eights. */
static bool
read_hex(struct idem_bytes text, uint8_t *bytes)
{
    for (size_t i = 0; i < text.size; i += 8)
        if (!read_eight(text.data + i, bytes + i / 2))
            return false;
    return true;
}

/* Decimal, from 1 to max, without a leading zero. Gives the digits that were
 * read, 0 when that is none. */
static size_t
read_number(struct idem_bytes text, int64_t max, int64_t *number)
{
    size_t digits = 0;

    *number = 0;
    for (; digits < text.size; digits++) {
        uint8_t c = text.data[digits];

        if (c < '0' || c > '9')
            break;
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, c - '0', number) || *number > max ||
            *number == 0)
            return 0;
    }
    return digits;
}

static uint32_t
read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/* RFC 9562, section 5.7: 48 bits of milliseconds, version, variant. The rest of
 * the bytes is random, or a digest. */
static void
uuid_stamp(uint8_t uuid[UUID_SIZE], int64_t wall_ms)
{
    for (int i = 0; i < 6; i++)
        uuid[i] = (uint8_t)((uint64_t)wall_ms >> (40 - 8 * i));
    uuid[6] = (uint8_t)(0x70 | (uuid[6] & 0x0F));
    uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3F));
}

static bool
uuid_read(const uint8_t uuid[UUID_SIZE], int64_t *wall_ms)
{
    *wall_ms = (int64_t)read_u32(uuid) << 16 | uuid[4] << 8 | uuid[5];
    return (uuid[6] & 0xF0) == 0x70 && (uuid[8] & 0xC0) == 0x80;
}

/* Positive, in decimal, with its NUL. Gives where that is. */
static char *
write_number(char *text, int64_t number)
{
    char digits[20];
    size_t n = 0;

    for (; number > 0; number /= 10)
        digits[n++] = (char)('0' + number % 10);
    while (n > 0)
        *text++ = digits[--n];
    *text = '\0';
    return text;
}

/* "idk_" 32 hex "_" window. Gives its end. */
static char *
write_head(char *text, const char *prefix, const uint8_t uuid[UUID_SIZE],
           int64_t window_s)
{
    memcpy(text, prefix, PREFIX_SIZE);
    text += PREFIX_SIZE;
    hex_write(text, uuid, UUID_SIZE);
    text += 2 * UUID_SIZE;
    *text++ = '_';
    return write_number(text, window_s);
}

static void
write_minted(char *text, const uint8_t uuid[UUID_SIZE], int64_t window_s)
{
    strcpy(write_head(text, PREFIX, uuid, window_s), "_");
    idem_key_add_checksum(text);
}

static struct idem_bytes
from(struct idem_bytes text, size_t start)
{
    return (struct idem_bytes){text.data + start, text.size - start};
}

/* A number and "_" at *at, which moves behind both. */
static bool
take_number(struct idem_bytes text, size_t *at, int64_t max, int64_t *number)
{
    size_t digits = read_number(from(text, *at), max, number);

    *at += digits + 1;
    return digits > 0 && *at <= text.size && text.data[*at - 1] == '_';
}

/* Of a text that begins with one of the prefixes. */
static bool
read_minted(struct idem_key *key, struct idem_bytes text, bool session)
{
    uint8_t uuid[UUID_SIZE], crc[CRC_DIGITS / 2];
    size_t at = PREFIX_SIZE + 2 * UUID_SIZE + 1;
    int64_t window_s;

    if (text.size < at || text.data[at - 1] != '_')
        return false;
    if (!read_hex((struct idem_bytes){text.data + PREFIX_SIZE, 2 * UUID_SIZE},
                  uuid) ||
        !uuid_read(uuid, &key->minted_ms) ||
        !take_number(text, &at, WINDOW_MAX_S, &window_s))
        return false;
    key->window_ms = window_s * 1000;
    if (session) {
        key->session_size = at - 1;
        if (!take_number(text, &at, INT64_MAX, &key->sequence))
            return false;
    }
    return text.size == at + CRC_DIGITS && read_hex(from(text, at), crc) &&
           read_u32(crc) == idem_crc32c((struct idem_bytes){text.data, at});
}

static enum idem_status
check_charset(struct idem_bytes text, struct idem_error *err)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < 0x21 || text.data[i] > 0x7E)
            return idem_fail_reason(
                err, IDEM_INVALID_ARGUMENT, IDEM_KEY_CHARSET,
                "byte %zu of the key is 0x%02X; a key is of 0x21 to 0x7E", i,
                text.data[i]);
    return IDEM_OK;
}

static int64_t
window_s_of(int64_t window_ms)
{
    int64_t window_s = window_ms / 1000 + (window_ms % 1000 > 0);

    if (window_s <= 0)
        return WINDOW_DEFAULT_S;
    return window_s < WINDOW_MAX_S ? window_s : WINDOW_MAX_S;
}

static void
make_uuid(uint8_t uuid[UUID_SIZE], const struct idem_clock *clock,
          int64_t skew_ms)
{
    clock->random(clock, uuid, UUID_SIZE);
    uuid_stamp(uuid, (clock->wall_ms(clock) + skew_ms) & (WALL_MAX_MS - 1));
}

void
idem_key_mint_skewed(char *text, const struct idem_clock *clock,
                     int64_t skew_ms, int64_t window_ms)
{
    uint8_t uuid[UUID_SIZE];

    make_uuid(uuid, clock, skew_ms);
    write_minted(text, uuid, window_s_of(window_ms));
}

void
idem_key_mint(char *text, const struct idem_clock *clock, int64_t window_ms)
{
    idem_key_mint_skewed(text, clock, 0, window_ms);
}

void
idem_session_mint(char *text, const struct idem_clock *clock, int64_t skew_ms,
                  int64_t window_ms)
{
    uint8_t uuid[UUID_SIZE];

    make_uuid(uuid, clock, skew_ms);
    (void)write_head(text, SESSION_PREFIX, uuid, window_s_of(window_ms));
}

static bool
begins_with(struct idem_bytes text, const char *prefix)
{
    return text.size >= PREFIX_SIZE &&
           memcmp(text.data, prefix, PREFIX_SIZE) == 0;
}

enum idem_status
idem_key_parse(struct idem_key *key, struct idem_bytes text,
               struct idem_error *err)
{
    struct idem_key read = {.text = text};
    bool session = begins_with(text, SESSION_PREFIX);
    enum idem_status status;

    if (text.size == 0)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_EMPTY,
                                "the key is empty");
    if (text.size > IDEM_KEY_MAX)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_TOO_LONG,
                                "the key has %zu bytes; at most %d are allowed",
                                text.size, IDEM_KEY_MAX);
    read.minted = session || begins_with(text, PREFIX);
    if (read.minted && read_minted(&read, text, session)) {
        *key = read; /* and its charset is that of its form */
        return IDEM_OK;
    }
    status = check_charset(text, err);
    if (status != IDEM_OK)
        return status;
    if (read.minted)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT,
                                "the key begins like a minted one (%s) and is "
                                "none",
                                session ? SESSION_PREFIX : PREFIX);
    *key = read;
    return IDEM_OK;
}

/* Writes over the hash. */
static void
write_derived(char *text, uint8_t hash[IDEM_SHA256_SIZE],
              struct idem_bytes parent)
{
    struct idem_key key;

    if (idem_key_parse(&key, parent, NULL) == IDEM_OK && key.minted) {
        uuid_stamp(hash, key.minted_ms);
        write_minted(text, hash, key.window_ms / 1000);
        return;
    }
    memcpy(text, "idd_", 5);
    hex_write(text + 4, hash, IDEM_SHA256_SIZE);
}

void
idem_key_of_child(char *text, const struct idem_parent *parent,
                  const struct idem_method *method)
{
    bool is_step = parent->step.data != NULL;
    uint8_t hash[IDEM_SHA256_SIZE];
    char number[16];

    snprintf(number, sizeof number, "%u", parent->number);

    const struct idem_bytes parts[] = {
        idem_bytes_of("idem-child1"),
        parent->tenant,
        parent->scope,
        parent->key,
        idem_bytes_of(method->scope),
        idem_bytes_of(is_step ? "step" : ""),
        is_step ? parent->step : idem_bytes_of(number),
    };

    idem_sha256_of_parts(parts, sizeof(parts) / sizeof(parts[0]), hash);
    write_derived(text, hash, parent->key);
}

bool
idem_key_to_session(char *text)
{
    char session[IDEM_SESSION_MAX];
    struct idem_key key;

    if (idem_key_parse(&key, idem_bytes_of(text), NULL) != IDEM_OK ||
        !key.minted || key.sequence > 0)
        return false;
    snprintf(session, sizeof session, SESSION_PREFIX "%.*s",
             (int)(key.text.size - PREFIX_SIZE - CRC_DIGITS - 1),
             text + PREFIX_SIZE);
    idem_key_of_session(text, session, 1);
    return true;
}

enum idem_status
idem_key_of_step(char *text, const struct idem_context *context,
                 const char *step, struct idem_error *err)
{
    static const struct idem_method elsewhere = {.scope = ""};
    const struct idem_call *call = idem_context_call(context);
    const struct idem_parent parent = {
        .tenant = call->tenant,
        .scope = idem_bytes_of(call->method->scope),
        .key = call->key,
        .step = idem_bytes_of(step),
    };

    if (call->key.size == 0)
        return idem_fail_reason(err, IDEM_FAILED_PRECONDITION, IDEM_KEY_MISSING,
                                "step %s: the call has no key for its key to "
                                "follow from",
                                step);
    idem_key_of_child(text, &parent, &elsewhere);
    return IDEM_OK;
}
