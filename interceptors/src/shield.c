#include "shield.h"

#include <idem/burst.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000LL
#define SECRET_MIN 16
#define FILLS_MAX 1024 /* entries that wait to be sent */

static int64_t
or_default(int64_t value, int64_t value_default)
{
    return value > 0 ? value : value_default;
}

static uint64_t
counted(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* With the lock, or before the turns. */
static void
write_epoch(struct idem_shield *shield, const char *epoch)
{
    shield->epoch_known = epoch[0] != 0;
    snprintf(shield->epoch_text, sizeof(shield->epoch_text), "%s", epoch);
    idem_sha256_of(idem_bytes_of(epoch), shield->epoch);
}

static enum idem_status
copy_secret(struct shield_secrets *secrets, struct idem_redis_secret secret,
            struct idem_error *err)
{
    uint8_t *copy;

    if (secret.bytes.size < SECRET_MIN)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "secret %" PRIu32 " of the Redis entries has %zu "
                         "bytes; at least %d are needed",
                         secret.id, secret.bytes.size, SECRET_MIN);
    for (size_t i = 0; i < secrets->count; i++)
        if (secrets->list[i].id == secret.id)
            return idem_fail(err, IDEM_INVALID_ARGUMENT,
                             "two secrets of the Redis entries have the id "
                             "%" PRIu32,
                             secret.id);
    copy = malloc(secret.bytes.size);
    if (!copy)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    memcpy(copy, secret.bytes.data, secret.bytes.size);
    secret.bytes.data = copy;
    secrets->list[secrets->count++] = secret;
    return IDEM_OK;
}

static enum idem_status
copy_secrets(struct idem_shield *shield,
             const struct idem_redis_options *options, struct idem_error *err)
{
    const struct idem_redis_secret first = {options->secret_id,
                                            options->secret};
    enum idem_status status;

    if (options->n_old_secrets >= IDEM_REDIS_SECRETS_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "%zu old secrets of the Redis entries; there may be "
                         "%d",
                         options->n_old_secrets, IDEM_REDIS_SECRETS_MAX - 1);
    status = copy_secret(&shield->secrets, first, err);
    for (size_t i = 0; status == IDEM_OK && i < options->n_old_secrets; i++)
        status = copy_secret(&shield->secrets, options->old_secrets[i], err);
    return status;
}

/* Not to be found in memory that is given back. */
static void
forget_secrets(struct idem_shield *shield)
{
    for (size_t i = 0; i < shield->secrets.count; i++) {
        struct idem_bytes bytes = shield->secrets.list[i].bytes;
        void *data = (void *)(uintptr_t)bytes.data;

        explicit_bzero(data, bytes.size);
        free(data);
    }
    explicit_bzero(&shield->url, sizeof(shield->url));
}

static enum idem_status
set_up(struct idem_shield *shield, const struct idem_redis_options *options,
       struct idem_error *err)
{
    enum idem_status status;

    shield->clock = options->clock ? options->clock : idem_clock_system();
    shield->budget_ns = or_default(options->budget_ms, 5) * MS;
    shield->entry_ttl_ms = or_default(options->entry_ttl_ms, 3600000);
    shield->breaker_ns = or_default(options->breaker_ms, 1000) * MS;
    shield->breaker_failures =
        (unsigned)or_default(options->breaker_failures, 5);
    shield->max_entry = options->max_entry ? options->max_entry : 8192;
    shield->pinned = options->epoch != NULL;
    write_epoch(shield, options->epoch ? options->epoch : "");
    pthread_mutex_init(&shield->lock, NULL);

    if (!options->url)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "no Redis URL");
    status = shield_url_parse(&shield->url, options->url, err);
    if (status != IDEM_OK)
        return status;
    shield_discover_init(shield);
    return copy_secrets(shield, options, err);
}

/* Without turns. */
static void
tear_down(struct idem_shield *shield)
{
    pthread_mutex_destroy(&shield->lock);
    forget_secrets(shield);
    free(shield);
}

enum idem_status
idem_redis_new(struct idem_shield **out,
               const struct idem_redis_options *options, struct idem_error *err)
{
    struct idem_shield *shield = calloc(1, sizeof(*shield));
    enum idem_status status;

    if (!shield)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    status = set_up(shield, options, err);
    if (status == IDEM_OK)
        status = shield_turns_start(shield, err);
    if (status == IDEM_OK)
        *out = shield;
    else
        tear_down(shield);
    return status;
}

/* With the lock: nothing is new, so nobody has asked for a turn. */
static bool
is_idle(const struct idem_shield *shield)
{
    return !shield->new_looks.first && !shield->new_fills.first;
}

static void
ask_later(void *with)
{
    idem_turns_ask(with);
}

/* From another thread than the turns'. */
static void
hand_over(struct idem_shield *shield, struct idem_shield_look *look)
{
    bool first;

    pthread_mutex_lock(&shield->lock);
    first = is_idle(shield);
    shield_looks_push(&shield->new_looks, look);
    pthread_mutex_unlock(&shield->lock);
    if (first && !idem_burst_put_off(ask_later, shield->turns))
        idem_turns_ask(shield->turns);
}

void
idem_shield_look(struct idem_shield *shield, struct idem_shield_look *look)
{
    int64_t now_ns = shield->clock->monotonic_ns(shield->clock);

    look->verdict = IDEM_VERDICT_ABSENT;
    look->hops = 0;
    look->expires_ns = now_ns + shield->budget_ns;
    shield_count(&shield->looks, 1);
    if (idem_turns_here(shield->turns))
        shield_ask_here(shield, look, now_ns);
    else
        hand_over(shield, look);
}

/* An entry must not outlive the time in which its key means something. */
static int64_t
ttl_of(const struct idem_shield *shield, int64_t until_ms)
{
    int64_t left_ms = until_ms - shield->clock->wall_ms(shield->clock);

    return left_ms < shield->entry_ttl_ms ? left_ms : shield->entry_ttl_ms;
}

static struct shield_fill *
make_fill(struct idem_shield *shield, const struct shield_entry *entry)
{
    size_t size = shield_entry_size(entry);
    struct shield_fill *fill;

    if (size > shield->max_entry)
        return NULL;
    fill = malloc(sizeof(*fill) + size);
    if (!fill)
        return NULL;
    fill->size = size;
    shield_write_key(fill->key, entry->digest);
    shield_entry_write(entry, &shield->secrets, fill->entry);
    return fill;
}

/* False: too many wait already. */
static bool
push_fill(struct idem_shield *shield, struct shield_fill *fill)
{
    struct shield_fills *fills = &shield->new_fills;
    bool pushed, first;

    pthread_mutex_lock(&shield->lock);
    first = is_idle(shield);
    pushed = fills->count < FILLS_MAX;
    if (pushed)
        shield_fills_push(fills, fill);
    pthread_mutex_unlock(&shield->lock);
    if (pushed && first)
        idem_turns_ask(shield->turns);
    return pushed;
}

void
idem_shield_fill(struct idem_shield *shield, const struct idem_record_id *id,
                 const struct idem_fingerprint *fingerprint,
                 const struct idem_answer *answer, int64_t until_ms)
{
    struct shield_entry entry = {.fingerprint = *fingerprint,
                                 .answer = *answer};
    int64_t ttl_ms = ttl_of(shield, until_ms);
    struct shield_fill *fill;

    memcpy(entry.digest, id->digest, sizeof(entry.digest));
    if (ttl_ms <= 0 || !shield_epoch(shield, entry.epoch))
        return;
    fill = make_fill(shield, &entry);
    if (!fill)
        return;
    fill->ttl_ms = ttl_ms;
    if (!push_fill(shield, fill))
        free(fill);
}

void
idem_shield_set_epoch(struct idem_shield *shield, const char *epoch)
{
    if (shield->pinned)
        return;
    pthread_mutex_lock(&shield->lock);
    if (strcmp(shield->epoch_text, epoch) != 0)
        write_epoch(shield, epoch);
    pthread_mutex_unlock(&shield->lock);
}

void
idem_shield_counts(const struct idem_shield *shield,
                   struct idem_shield_counts *counts)
{
    *counts = (struct idem_shield_counts){
        .looks = counted(&shield->looks),
        .hits = counted(&shield->hits),
        .misses = counted(&shield->misses),
        .rejected = counted(&shield->rejected),
        .foreign = counted(&shield->foreign),
        .failed = counted(&shield->failed),
        .skipped = counted(&shield->skipped),
        .fills = counted(&shield->fills),
    };
}

void
idem_shield_free(struct idem_shield *shield)
{
    if (!shield)
        return;
    shield_turns_stop(shield);
    tear_down(shield);
}

bool
shield_epoch(struct idem_shield *shield, uint8_t epoch[IDEM_SHA256_SIZE])
{
    bool known;

    pthread_mutex_lock(&shield->lock);
    known = shield->epoch_known;
    memcpy(epoch, shield->epoch, IDEM_SHA256_SIZE);
    pthread_mutex_unlock(&shield->lock);
    return known;
}

void
shield_write_key(uint8_t key[SHIELD_KEY_SIZE], const uint8_t *digest)
{
    size_t prefix = sizeof(SHIELD_KEY_PREFIX) - 1;

    memcpy(key, SHIELD_KEY_PREFIX, prefix);
    memcpy(key + prefix, digest, IDEM_SHA256_SIZE);
}
