#include "shield_entry.h"

#include <string.h>

#define VERSION 3
#define ID_AT 1 /* behind the version */
#define ID_SIZE 4
#define STATUS_MAX IDEM_UNAUTHENTICATED

static void
put_u64(uint8_t **at, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *(*at)++ = (uint8_t)(number >> (8 * i));
}

static void
put_bytes(uint8_t **at, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(*at, bytes, size);
    *at += size;
}

static void
put_part(uint8_t **at, struct idem_bytes part)
{
    put_u64(at, part.size, 4);
    put_bytes(at, part.data, part.size);
}

/* What is left to read. A read past the end gives zeros and breaks it. */
struct rest {
    const uint8_t *at;
    size_t size;
    bool broken;
};

static const uint8_t *
take(struct rest *rest, size_t size)
{
    const uint8_t *at = rest->at;

    if (rest->broken || size > rest->size) {
        rest->broken = true;
        return NULL;
    }
    rest->at += size;
    rest->size -= size;
    return at;
}

static uint64_t
take_u64(struct rest *rest, size_t size)
{
    const uint8_t *at = take(rest, size);
    uint64_t number = 0;

    for (size_t i = 0; at && i < size; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

static void
take_hash(struct rest *rest, uint8_t hash[IDEM_SHA256_SIZE])
{
    const uint8_t *at = take(rest, IDEM_SHA256_SIZE);

    if (at)
        memcpy(hash, at, IDEM_SHA256_SIZE);
}

static struct idem_bytes
take_part(struct rest *rest)
{
    size_t size = take_u64(rest, 4);

    return (struct idem_bytes){take(rest, size), size};
}

static void
make_tag(uint8_t tag[IDEM_SHA256_SIZE], struct idem_bytes secret,
         const uint8_t *bytes, size_t size)
{
    idem_hmac_sha256(secret, (struct idem_bytes){bytes, size}, tag);
}

/* NULL: none of ours has that id. */
static const struct idem_redis_secret *
find_secret(const struct shield_secrets *secrets, uint64_t id)
{
    for (size_t i = 0; i < secrets->count; i++)
        if (secrets->list[i].id == id)
            return &secrets->list[i];
    return NULL;
}

static enum shield_read
check_tag(const struct shield_secrets *secrets, struct idem_bytes bytes)
{
    struct rest id = {bytes.data + ID_AT, ID_SIZE, false};
    const struct idem_redis_secret *secret;
    uint8_t tag[IDEM_SHA256_SIZE];
    size_t size;

    if (bytes.size <= ID_AT + ID_SIZE + SHIELD_TAG_SIZE ||
        bytes.data[0] != VERSION)
        return SHIELD_READ_BROKEN;
    secret = find_secret(secrets, take_u64(&id, ID_SIZE));
    if (!secret)
        return SHIELD_READ_FOREIGN;
    size = bytes.size - SHIELD_TAG_SIZE;
    make_tag(tag, secret->bytes, bytes.data, size);
    return idem_digest_equal(tag, bytes.data + size, SHIELD_TAG_SIZE)
               ? SHIELD_READ_GOOD
               : SHIELD_READ_BROKEN;
}

static void
take_answer(struct rest *rest, struct idem_answer *answer)
{
    answer->status = (enum idem_status)take_u64(rest, 1);
    answer->first_at_ms = (int64_t)take_u64(rest, 8);
    answer->executions = (unsigned)take_u64(rest, 4);
    answer->message = take_part(rest);
    answer->reason = take_part(rest);
    answer->reply = take_part(rest);
    answer->trailers = take_part(rest);
}

size_t
shield_entry_size(const struct shield_entry *entry)
{
    const struct idem_answer *answer = &entry->answer;

    return ID_AT + ID_SIZE + 4 * IDEM_SHA256_SIZE + 4 + 1 + 8 + 4 + 4 * 4 +
           answer->message.size + answer->reason.size + answer->reply.size +
           answer->trailers.size + SHIELD_TAG_SIZE;
}

void
shield_entry_write(const struct shield_entry *entry,
                   const struct shield_secrets *secrets, uint8_t *bytes)
{
    uint8_t tag[IDEM_SHA256_SIZE], *at = bytes;

    put_u64(&at, VERSION, ID_AT);
    put_u64(&at, secrets->list[0].id, ID_SIZE);
    put_bytes(&at, entry->epoch, sizeof(entry->epoch));
    put_bytes(&at, entry->digest, sizeof(entry->digest));
    put_bytes(&at, entry->fingerprint.raw, IDEM_SHA256_SIZE);
    put_bytes(&at, entry->fingerprint.canonical, IDEM_SHA256_SIZE);
    put_u64(&at, entry->fingerprint.version, 4);
    put_u64(&at, (uint64_t)entry->answer.status, 1);
    put_u64(&at, (uint64_t)entry->answer.first_at_ms, 8);
    put_u64(&at, entry->answer.executions, 4);
    put_part(&at, entry->answer.message);
    put_part(&at, entry->answer.reason);
    put_part(&at, entry->answer.reply);
    put_part(&at, entry->answer.trailers);
    make_tag(tag, secrets->list[0].bytes, bytes, (size_t)(at - bytes));
    put_bytes(&at, tag, SHIELD_TAG_SIZE);
}

enum shield_read
shield_entry_read(struct shield_entry *entry,
                  const struct shield_secrets *secrets, struct idem_bytes bytes)
{
    enum shield_read read = check_tag(secrets, bytes);
    struct rest rest;

    if (read != SHIELD_READ_GOOD)
        return read;
    rest = (struct rest){bytes.data + ID_AT + ID_SIZE,
                         bytes.size - ID_AT - ID_SIZE - SHIELD_TAG_SIZE, false};
    take_hash(&rest, entry->epoch);
    take_hash(&rest, entry->digest);
    take_hash(&rest, entry->fingerprint.raw);
    take_hash(&rest, entry->fingerprint.canonical);
    entry->fingerprint.version = (unsigned)take_u64(&rest, 4);
    take_answer(&rest, &entry->answer);
    return !rest.broken && rest.size == 0 &&
                   (unsigned)entry->answer.status <= STATUS_MAX
               ? SHIELD_READ_GOOD
               : SHIELD_READ_BROKEN;
}
