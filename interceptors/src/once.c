#include "once.h"

#include "late.h"
#include "limit.h"
#include "memory.h"
#include "once_stream.h"
#include "passage.h"
#include "renewal.h"
#include "shared_answer.h"

#include <idem/context_once.h>

#include <stdlib.h>

#define WAIT_CAP_MS 30000
#define MAX_REPEATS 5
#define EPOCH_TTL_MS 5000
#define MEMORY_BYTES ((size_t)32 << 20)
#define MEMORY_ENTRIES 65536

/* A call that is parked is woken by its timer and answered there; one that the
 * store works for is answered when that is done. */
static bool
withdraw(struct idem_call *call, void *with)
{
    struct passage *passage = with;

    (void)call;
    flights_kick(&passage->once->flights, &passage->flight);
    return false;
}

static const struct idem_holder holder = {.withdraw = withdraw};

/* A read has no record; its handler may ask for a read-only transaction. */
static enum idem_step
let_read(struct once *once, struct idem_call *call)
{
    struct tx_slot *slot = idem_arena_zalloc(call->arena, sizeof(*slot));

    if (!slot) {
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "no memory for the call");
        return IDEM_ANSWER;
    }
    slot->store = once->store;
    slot->mode = IDEM_MODE_NONE;
    slot->arena = call->arena;
    slot->deadline_ns = call->deadline_ns;
    idem_context_set_slot(call->context, slot);
    return IDEM_NEXT;
}

static enum idem_step
refuse(struct once *once, struct idem_call *call, const struct idem_error *err)
{
    idem_call_fail_with(call, IDEM_EFFECT_REFUSED, err);
    once_count(once, ONCE_REFUSED);
    return IDEM_ANSWER;
}

static void
forget(struct idem_interceptor *self, struct idem_call *call)
{
    struct passage *passage = idem_call_state(call, self);

    if (passage)
        shared_answer_unref(passage->shared);
    idem_call_set_state(call, self, NULL);
}

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    struct once *once = (struct once *)self;
    struct passage *passage;
    struct idem_error err;

    if (call->method->mode == IDEM_MODE_NONE)
        return let_read(once, call);
    if (call->method->each)
        return once_stream_open(once, call);
    forget(self, call); /* of an attempt before, when one above said AGAIN */
    passage = passage_new(once, call);
    if (!passage) {
        (void)idem_fail(&err, IDEM_RESOURCE_EXHAUSTED, "no memory");
        return refuse(once, call, &err);
    }
    if (passage_identify(passage, &err) != IDEM_OK)
        return refuse(once, call, &err);
    idem_call_set_state(call, self, passage);
    if (passage_recall(passage))
        return IDEM_ANSWER;
    passage_canonicalise(passage);
    if (!idem_call_keep(call, &holder, passage))
        return IDEM_ANSWER;
    passage_enter(passage);
    return IDEM_WAIT;
}

static enum idem_step
reply(struct idem_interceptor *self, struct idem_call *call)
{
    struct passage *passage = idem_call_state(call, self);

    if (call->method->mode == IDEM_MODE_NONE)
        tx_slot_end(idem_context_slot(call->context));
    if (call->method->mode == IDEM_MODE_NONE || call->method->each)
        return IDEM_NEXT;
    if (!idem_call_keep(call, NULL, NULL))
        return IDEM_NEXT;
    passage_finish(passage);
    return IDEM_WAIT;
}

static void
stop(struct idem_interceptor *self)
{
    struct once *once = (struct once *)self;

    flights_stop(&once->flights);
    errands_stop(&once->errands);
}

static void
once_free(struct idem_interceptor *self)
{
    struct once *once = (struct once *)self;

    stop(self);
    errands_fini(&once->errands);
    renewal_free_spares(&once->errands);
    flights_fini(&once->flights);
    idem_shield_free(once->shield);
    idem_store_free(once->store);
    memory_free(once->memory);
    free(once);
}

static const struct idem_interceptor_ops once_ops = {
    .name = "once",
    .band = IDEM_BAND_KEY,
    .request = request,
    .reply = reply,
    .forget = forget,
    .stop = stop,
    .free = once_free,
};

static struct memory *
make_memory(const struct idem_once_options *given)
{
    return memory_new(given->memory_bytes ? given->memory_bytes : MEMORY_BYTES,
                      given->memory_entries ? given->memory_entries
                                            : MEMORY_ENTRIES);
}

/* NULL: out of memory; store and shield are still the caller's. */
static struct once *
make_once(const struct idem_once_options *given)
{
    struct once *once = calloc(1, sizeof(*once));

    if (!once)
        return NULL;
    if (!given->no_memory) {
        once->memory = make_memory(given);
        if (!once->memory) {
            free(once);
            return NULL;
        }
    }
    once->base.ops = &once_ops;
    once->clock = given->clock ? given->clock : idem_clock_system();
    once->own_clock = given->clock != NULL;
    once->wait_cap_ns =
        ms_to_ns(given->wait_cap_ms ? given->wait_cap_ms : WAIT_CAP_MS);
    once->epoch_ttl_ns =
        ms_to_ns(given->epoch_ttl_ms ? given->epoch_ttl_ms : EPOCH_TTL_MS);
    once->heard_ns = INT64_MIN / 2; /* not yet */
    once->max_repeats = given->max_repeats ? given->max_repeats : MAX_REPEATS;
    flights_init(&once->flights);
    errands_init(&once->errands);
    return once;
}

enum idem_status
idem_once_new(struct idem_interceptor **out, struct idem_store *store,
              const struct idem_once_options *options, struct idem_error *err)
{
    static const struct idem_once_options defaults;
    const struct idem_once_options *given = options ? options : &defaults;
    struct once *once = make_once(given);

    if (!once) {
        idem_shield_free(given->shield);
        idem_store_free(store);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for once");
    }
    once->store = store;
    once->shield = given->shield;
    once->limit = (struct limit *)given->limit;
    if (once->limit)
        once->limit->behind = true;
    *out = &once->base;
    return IDEM_OK;
}

static void
count_memory(const struct once *once, struct idem_once_counts *counts)
{
    struct memory_counts memory = {0, 0, 0};

    if (once->memory)
        memory_counts(once->memory, &memory);
    counts->memory_entries = memory.entries;
    counts->memory_bytes = memory.bytes;
    counts->memory_evicted = memory.evicted;
}

void
idem_once_counts(const struct idem_interceptor *interceptor,
                 struct idem_once_counts *counts)
{
    const struct once *once = (const struct once *)interceptor;

#define COPY(name, field)                                                      \
    counts->field = atomic_load_explicit(&once->counts[ONCE_##name],           \
                                         memory_order_relaxed);
    ONCE_COUNT_LIST(COPY)
#undef COPY
    count_memory(once, counts);
}
