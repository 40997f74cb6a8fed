#include "numbering.h"

#include <idem/call.h>
#include <idem/key.h>
#include <idem/message.h>
#include <idem/reason.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Puts the key on a call, once, above retry: every attempt carries the same one
 * (cases B028, B029). */

/* A clock that is less wrong than this has not made a key that is refused. */
#define SKEW_MIN_MS 1000

struct key {
    struct idem_interceptor base;
    atomic_int_fast64_t skew_ms; /* what the clock is to be corrected by */
    struct numbering numbering;
};

/* Kept with a call whose key was minted here. */
struct minting {
    int64_t skew_ms;               /* it was minted with */
    bool again;                    /* this is the second key */
    struct numbered numbered;      /* in the channel's session, if it is */
    struct idem_metadata metadata; /* as it came from above */
};

static enum idem_status
from_request(char *text, struct idem_call *call, struct idem_error *err)
{
    struct ProtobufCMessage *message;
    enum idem_status status;

    if (call->message)
        return idem_key_from_fields(text, call->method, call->message, err);
    status = idem_message_unpack(call->method->request, call->request, NULL,
                                 call->arena, &message, err);
    if (status != IDEM_OK)
        return status;
    return idem_key_from_fields(text, call->method, message, err);
}

static enum idem_status
put(struct idem_call *call, const char *text, struct idem_error *err)
{
    struct idem_bytes made = idem_bytes_of(text);

    made.data = idem_arena_copy(call->arena, made);
    if (!made.data)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for a key");
    call->key = made;
    return IDEM_OK;
}

/* A stream numbers its messages in a session of its own, which lives for twice
 * the window, as a channel's does; and acknowledges, since nobody else has it.
 */
static void
open_session(struct idem_call *call, const struct minting *minting, char *text)
{
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, call->clock, minting->skew_ms,
                      2 * call->method->window_ms);
    idem_key_of_session(text, session, 1);
    call->ack_below = 1;
}

static enum idem_status
mint(struct key *key, struct idem_call *call, struct minting *minting,
     struct idem_error *err)
{
    char text[IDEM_KEY_MAX + 1];

    minting->skew_ms =
        atomic_load_explicit(&key->skew_ms, memory_order_relaxed);
    if (call->method->each) {
        open_session(call, minting, text);
        return put(call, text, err);
    }
    if (call->method->key_source == IDEM_KEY_SESSION)
        numbering_take(&key->numbering, call->clock, minting->skew_ms,
                       call->method->window_ms, &minting->numbered, text);
    else
        idem_key_mint_skewed(text, call->clock, minting->skew_ms,
                             call->method->window_ms);
    call->ack_below = minting->numbered.ack_below;
    return put(call, text, err);
}

static enum idem_status
mint_first(struct key *key, struct idem_call *call, struct idem_error *err)
{
    struct minting *minting = idem_arena_zalloc(call->arena, sizeof(*minting));

    if (!minting)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for a key");
    minting->metadata = call->metadata;
    idem_call_set_state(call, &key->base, minting);
    return mint(key, call, minting, err);
}

/* The key of a stream whose messages have numbers is that of its first one. */
static enum idem_status
check_number(const struct idem_call *call, const struct idem_key *given,
             struct idem_error *err)
{
    if (!call->method->each || given->sequence > 0)
        return IDEM_OK;
    return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT,
                            "%s numbers its messages: its key is a session's "
                            "(idem_key_of_session), that of the first message",
                            call->method->name);
}

/* Without a time there is no session that the parent's next run would find. */
static enum idem_status
refuse_child(const struct idem_call *call, struct idem_error *err)
{
    return idem_fail_reason(err, IDEM_FAILED_PRECONDITION, IDEM_KEY_FORMAT,
                            "%s numbers its messages in a session, and the key "
                            "of the handler that calls it carries no time: "
                            "give a key",
                            call->method->name);
}

/* A caller's own key wins: it may be repeating a call from before a restart,
 * and a fresh key would make that a second effect. An empty one was given all
 * the same, and is refused. A handler that runs again must not mint another
 * (decision 27), nor number the call anew in the channel's session. */
static enum idem_status
choose(struct key *key, struct idem_call *call, struct idem_error *err)
{
    char text[IDEM_KEY_MAX + 1];
    struct idem_key given;
    enum idem_status status;

    if (call->key.data) {
        status = idem_key_admit(&given, call->method, call->key, err);
        return status == IDEM_OK ? check_number(call, &given, err) : status;
    }
    if (call->parent) {
        idem_key_of_child(text, call->parent, call->method);
        if (call->method->each && !idem_key_to_session(text))
            return refuse_child(call, err);
        return put(call, text, err);
    }
    if (call->method->key_source != IDEM_KEY_FIELDS)
        return mint_first(key, call, err);
    status = from_request(text, call, err);
    return status == IDEM_OK ? put(call, text, err) : status;
}

static enum idem_step
key_request(struct idem_interceptor *self, struct idem_call *call)
{
    struct idem_error err;

    if (call->method->mode == IDEM_MODE_NONE) {
        call->key = (struct idem_bytes){NULL, 0};
        return IDEM_NEXT;
    }
    if (choose((struct key *)self, call, &err) != IDEM_OK) {
        idem_call_fail(call, err.status, IDEM_EFFECT_NOT_SENT, err.reason, "%s",
                       err.message);
        return IDEM_ANSWER;
    }
    return IDEM_NEXT;
}

/* The effect is the worst of all attempts: nothing was begun with the key. */
static bool
was_refused_for_its_time(const struct idem_call *call)
{
    const struct idem_outcome *outcome = &call->outcome;

    return outcome->effect == IDEM_EFFECT_REFUSED &&
           strcmp(outcome->reason, IDEM_KEY_EXPIRED) == 0 &&
           outcome->watermark == 0 && /* and no message before it */
           outcome->server_time_ms > 0;
}

/* False: the clock that the key was minted by was right. */
static bool
correct_clock(struct key *key, const struct idem_call *call,
              const struct minting *minting)
{
    int64_t skew_ms =
        call->outcome.server_time_ms - call->clock->wall_ms(call->clock);

    if (llabs(skew_ms - minting->skew_ms) < SKEW_MIN_MS)
        return false;
    atomic_store_explicit(&key->skew_ms, skew_ms, memory_order_relaxed);
    numbering_renew(&key->numbering);
    return true;
}

/* A call without a final answer may be repeated by its key: its number stays,
 * and none above it is acknowledged. */
static void
note_answer(struct key *key, const struct idem_call *call,
            const struct minting *minting)
{
    if (minting && minting->numbered.sequence > 0 && call->outcome.final)
        numbering_finish(&key->numbering, &minting->numbered);
}

/* semantics.md 3.10: once. */
static enum idem_step
key_reply(struct idem_interceptor *self, struct idem_call *call)
{
    struct key *key = (struct key *)self;
    struct minting *minting = idem_call_state(call, self);

    if (!minting || minting->again || !was_refused_for_its_time(call) ||
        idem_call_interrupted(call) || !correct_clock(key, call, minting) ||
        mint(key, call, minting, NULL) != IDEM_OK) {
        note_answer(key, call, minting);
        return IDEM_NEXT;
    }
    minting->again = true;
    call->metadata = minting->metadata;
    if (call->metadata.last)
        *call->metadata.last = NULL;
    call->attempt = 1;
    return IDEM_AGAIN;
}

static void
key_free(struct idem_interceptor *self)
{
    numbering_fini(&((struct key *)self)->numbering);
    free(self);
}

static const struct idem_interceptor_ops key_ops = {
    .name = "key",
    .band = IDEM_BAND_KEY,
    .request = key_request,
    .reply = key_reply,
    .free = key_free,
};

struct idem_interceptor *
idem_key_interceptor_new(void)
{
    struct key *key = calloc(1, sizeof(*key));

    if (!key)
        return NULL;
    key->base.ops = &key_ops;
    numbering_init(&key->numbering);
    return &key->base;
}
