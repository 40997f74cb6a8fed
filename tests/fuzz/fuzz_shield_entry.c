#include "fuzz.h"

#include "arena.h"
#include "shield_entry.h"
#include "trailers.h"

#include <stdlib.h>
#include <string.h>

/* An entry of Redis: as it is, and behind a right tag, since nobody finds one
 * by chance. What is believed is written the same again. */

static const uint8_t secret[] = "0123456789abcdef";
static const struct shield_secrets secrets = {
    .list = {{.id = 1, .bytes = {secret, 16}}}, .count = 1};

static void
sign(uint8_t *bytes, size_t size)
{
    uint8_t tag[IDEM_SHA256_SIZE];

    idem_hmac_sha256(secrets.list[0].bytes, (struct idem_bytes){bytes, size},
                     tag);
    memcpy(bytes + size, tag, SHIELD_TAG_SIZE);
}

static void
check_again(const struct shield_entry *entry, struct idem_bytes bytes)
{
    size_t size = shield_entry_size(entry);
    uint8_t *written = malloc(size);

    IDEM_ASSERT(written && size == bytes.size);
    shield_entry_write(entry, &secrets, written);
    IDEM_ASSERT(memcmp(written, bytes.data, size) == 0);
    free(written);
}

/* Trailers once decoded are encoded and decoded the same. */
static void
try_trailers(struct idem_bytes bytes)
{
    struct idem_arena *arena = arena_new(1024, 0);
    struct idem_metadata trailers, again;
    struct idem_bytes encoded;

    IDEM_ASSERT(arena);
    if (trailers_decode(bytes, arena, &trailers)) {
        IDEM_ASSERT(trailers_encode(&trailers, arena, &encoded));
        IDEM_ASSERT(trailers_decode(encoded, arena, &again));
        IDEM_ASSERT(again.size == trailers.size);
    }
    arena_free(arena);
}

static void
try_entry(struct idem_bytes bytes)
{
    struct shield_entry entry;

    if (shield_entry_read(&entry, &secrets, bytes) != SHIELD_READ_GOOD)
        return;
    check_again(&entry, bytes);
    try_trailers(entry.answer.trailers);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    uint8_t how = fuzz_take_byte(&input);
    uint8_t *bytes = malloc(input.size + SHIELD_TAG_SIZE);
    size_t total = input.size;

    IDEM_ASSERT(bytes);
    if (input.size > 0)
        memcpy(bytes, input.data, input.size);
    if (how & 1) {
        sign(bytes, input.size);
        total += SHIELD_TAG_SIZE;
    }
    try_entry((struct idem_bytes){bytes, total});
    try_trailers(input);
    free(bytes);
    return 0;
}
