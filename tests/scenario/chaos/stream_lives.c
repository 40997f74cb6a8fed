#include "stream_lives.h"

#include "effects.h"

#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 40 /* of a stream, at most */
#define TRIES 100   /* of one stream, that it is begun again */
#define AHEAD 4     /* a bidirectional stream's messages before an answer */
#define WINDOW_MS 3600000

/* One time that a stream is begun. */
struct attempt {
    struct streamer *streamer;
    struct story *story;
    char key[IDEM_KEY_MAX + 1]; /* of its first message; "": not known yet */
    int64_t began_ns;
    int64_t first, last; /* numbers; the end's is behind the last */
    uint64_t receipt;    /* of a client stream */
    struct idem_outcome outcome;
};

static int64_t
now_ns(void)
{
    return idem_clock_system()->monotonic_ns(idem_clock_system());
}

/* --- What was told --- */

static void
tell(struct attempt *attempt, const char *key, const struct checker_call *call,
     const char *reason)
{
    struct streamer *streamer = attempt->streamer;
    struct told *told = calloc(1, sizeof *told);

    assert_non_null(told);
    snprintf(told->key, sizeof told->key, "%s", key);
    snprintf(told->reason, sizeof told->reason, "%s", reason);
    told->call = *call;
    told->call.began_ns = attempt->began_ns;
    told->call.ended_ns = now_ns();
    told->next = streamer->told;
    streamer->told = told;
}

/* The message took effect; answer 0: it has none. */
static void
tell_done(struct attempt *attempt, int64_t number, uint64_t answer,
          bool foreign)
{
    const struct checker_call call = {.status = IDEM_OK,
                                      .effect = IDEM_EFFECT_COMMITTED,
                                      .final = true,
                                      .reply = answer,
                                      .foreign = foreign};
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, attempt->story->session, number);
    tell(attempt, key, &call, "");
}

/* Why the stream ended before that message took effect. */
static void
tell_end(struct attempt *attempt, const char *key, uint64_t answer,
         bool foreign)
{
    const struct idem_outcome *outcome = &attempt->outcome;
    const struct checker_call call = {.status = outcome->status,
                                      .effect = outcome->effect,
                                      .final = outcome->final,
                                      .reply = answer,
                                      .foreign = foreign};

    tell(attempt, key, &call, outcome->reason);
}

/* --- A stream's beginning --- */

static struct idem_channel *
some_channel(struct streamer *streamer)
{
    unsigned server = dice_roll(&streamer->dice, SITE_SERVERS);

    return streamer->site->servers[server].channel;
}

static struct idem_call_options
begin(struct attempt *attempt)
{
    attempt->streamer->begun++;
    attempt->began_ns = now_ns();
    return (struct idem_call_options){
        .key = attempt->key[0] ? attempt->key : NULL,
        .timeout_ms = 200 + dice_roll(&attempt->streamer->dice, 5000),
        .wait_for_ready = true,
    };
}

static effects_add_request
request_of(int64_t number)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = number;
    request.hold_ms = number % 7 == 0 ? 30 : 0;
    return request;
}

/* --- Streams whose messages are once each --- */

/* Whose key the stream's outcome tells: a session that the library made. */
static void
learn_session(struct attempt *attempt)
{
    int64_t number;

    if (attempt->story->session[0] == '\0' && attempt->outcome.key[0])
        assert_true(idem_session_split(idem_bytes_of(attempt->outcome.key),
                                       attempt->story->session, &number));
}

/* What is known of it now, and where it goes on. True: it is over. */
static bool
learn(struct attempt *attempt, bool answers)
{
    const struct idem_outcome *outcome = &attempt->outcome;
    int64_t watermark = outcome->watermark;

    learn_session(attempt);
    if (attempt->story->session[0] == '\0')
        return false;
    for (; !answers && attempt->first <= watermark; attempt->first++)
        tell_done(attempt, attempt->first, 0, false);
    if (watermark >= attempt->first)
        attempt->first = watermark + 1;
    idem_key_of_session(attempt->key, attempt->story->session, attempt->first);
    if (outcome->status == IDEM_OK && !answers)
        tell_done(attempt, attempt->first, attempt->receipt, false);
    else if (outcome->status != IDEM_OK)
        tell_end(attempt, attempt->key, 0, false);
    return outcome->status == IDEM_OK || outcome->final;
}

/* Half of the sessions are the caller's own, whose records stay. */
static void
plan(struct attempt *attempt)
{
    struct streamer *streamer = attempt->streamer;

    attempt->first = 1;
    attempt->last = 1 + dice_roll(&streamer->dice, MESSAGES);
    attempt->story->numbers = attempt->last + 1;
    if (dice_roll(&streamer->dice, 2) == 0)
        return;
    idem_session_mint(attempt->story->session, &streamer->site->clock.clock, 0,
                      WINDOW_MS);
    idem_key_of_session(attempt->key, attempt->story->session, 1);
}

static void
write_each(struct attempt *attempt)
{
    const struct idem_call_options options = begin(attempt);
    struct effects_add_each_stream *stream =
        effects_add_each_open(some_channel(attempt->streamer), &options);
    effects_add_reply *receipt = NULL;
    enum idem_status status = IDEM_OK;

    for (int64_t i = attempt->first; i <= attempt->last && status == IDEM_OK;
         i++) {
        effects_add_request request = request_of(i);

        status = effects_add_each_write(stream, &request);
    }
    (void)effects_add_each_finish(stream, &receipt, &attempt->outcome);
    attempt->receipt = receipt ? (uint64_t)receipt->number + 1 : 0;
    effects_add_reply_free(receipt);
}

void
stream_live_each(struct streamer *streamer, struct story *story)
{
    struct attempt attempt = {.streamer = streamer, .story = story};
    unsigned tries = 0;

    plan(&attempt);
    do
        write_each(&attempt);
    while (!learn(&attempt, false) && ++tries < TRIES);
}

/* The answer to the next message. False: there is none any more. */
static bool
read_answer(struct attempt *attempt, struct effects_add_asked_stream *stream,
            int64_t *answered)
{
    const effects_add_reply *answer = effects_add_asked_next(stream);
    char key[IDEM_KEY_MAX + 1];
    int64_t number;

    if (!answer)
        return false;
    if (attempt->story->session[0] == '\0' &&
        effects_add_asked_key(stream, key))
        assert_true(idem_session_split(idem_bytes_of(key),
                                       attempt->story->session, &number));
    ++*answered;
    tell_done(attempt, *answered, (uint64_t)answer->number + 1,
              answer->amount != *answered);
    return true;
}

static void
ask_each(struct attempt *attempt)
{
    const struct idem_call_options options = begin(attempt);
    struct effects_add_asked_stream *stream =
        effects_add_asked_open(some_channel(attempt->streamer), &options);
    int64_t answered = attempt->first - 1;
    bool open = true;

    for (int64_t i = attempt->first; i <= attempt->last && open; i++) {
        effects_add_request request = request_of(i);

        open = effects_add_asked_write(stream, &request) == IDEM_OK;
        if (open && i - answered >= AHEAD)
            open = read_answer(attempt, stream, &answered);
    }
    effects_add_asked_end(stream);
    while (read_answer(attempt, stream, &answered))
        continue;
    (void)effects_add_asked_finish(stream, &attempt->outcome);
}

void
stream_live_asked(struct streamer *streamer, struct story *story)
{
    struct attempt attempt = {.streamer = streamer, .story = story};
    unsigned tries = 0;

    plan(&attempt);
    do
        ask_each(&attempt);
    while (!learn(&attempt, true) && ++tries < TRIES);
}

/* --- Streams that resume --- */

/* What the effect kept is in each message; 0: none came. */
static uint64_t
follow(struct attempt *attempt, bool *foreign)
{
    const struct idem_call_options options = begin(attempt);
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct effects_add_followed_stream *stream;
    const effects_add_reply *message;
    uint64_t kept = 0;
    int64_t read = 0;

    request.amount = attempt->last;
    stream = effects_add_followed_open(some_channel(attempt->streamer),
                                       &request, &options);
    while ((message = effects_add_followed_next(stream))) {
        if (read == 0)
            kept = (uint64_t)message->number + 1;
        *foreign |=
            message->amount != ++read || kept != (uint64_t)message->number + 1;
    }
    (void)effects_add_followed_finish(stream, &attempt->outcome);
    *foreign |= attempt->outcome.status == IDEM_OK && read != attempt->last;
    return kept;
}

void
stream_live_followed(struct streamer *streamer, struct story *story)
{
    struct attempt attempt = {
        .streamer = streamer,
        .story = story,
        .last = 1 + dice_roll(&streamer->dice, MESSAGES),
    };
    unsigned tries = 0;

    idem_key_mint(attempt.key, &streamer->site->clock.clock, WINDOW_MS);
    snprintf(story->key, sizeof story->key, "%s", attempt.key);
    do {
        bool foreign = false;
        uint64_t kept = follow(&attempt, &foreign);

        tell_end(&attempt, attempt.key,
                 attempt.outcome.status == IDEM_OK ? kept : 0, foreign);
    } while (!attempt.outcome.final && ++tries < TRIES);
}
