/* Any order of write, read, half close, cancel and doing nothing, on many
 * streams at once over one connection: what a stream reads is what was written
 * to it, in order, each once, to its end or to where it was given up.
 *
 *    test_stream_property [STEPS [SEED]]  of each thread */
#include "flow_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8
#define STREAMS 8 /* of a thread */
#define WINDOW 8192
#define SIZE_MAX_ 700 /* bytes of a note */
#define UNREAD_MAX 5  /* notes: they fit the window of either side */

static struct flow_world world;
static unsigned steps = 2000;
static unsigned seed;

struct talk {
    struct idem_stream *stream; /* NULL: to be begun */
    bool ended;
    uint64_t written, read;
    size_t sizes[UNREAD_MAX]; /* of what is not read, by number */
};

struct speaker {
    pthread_t thread;
    unsigned seed;
    struct talk talks[STREAMS];
    unsigned begun, finished, cancelled, read;
};

/* cmocka's asserts are for the main thread. */
static void
must(bool so, const char *what, const struct talk *talk)
{
    if (so)
        return;
    fprintf(stderr, "seed %u: %s, after %u written and %u read\n", seed, what,
            (unsigned)talk->written, (unsigned)talk->read);
    abort();
}

/* The next message is the next that was written. */
static void
must_be_next(struct talk *talk, const struct ProtobufCMessage *message)
{
    const flow_note *note = (const flow_note *)message;

    must(talk->read < talk->written, "a note that nobody wrote", talk);
    must(flow_note_is(note, talk->read + 1,
                      talk->sizes[talk->read % UNREAD_MAX]),
         "another note than the next", talk);
    talk->read++;
}

static unsigned
below(struct speaker *speaker, unsigned n)
{
    return (unsigned)rand_r(&speaker->seed) % n;
}

static void
begin(struct speaker *speaker, struct talk *talk)
{
    const struct idem_call_options options = {.timeout_ms = 120000};

    *talk = (struct talk){
        .stream = idem_stream_open(world.channel,
                                   below(speaker, 2) ? &flow_chat_method
                                                     : &flow_chat_async_method,
                                   NULL, &options)};
    speaker->begun++;
}

static void
write_one(struct speaker *speaker, struct talk *talk)
{
    size_t size = below(speaker, SIZE_MAX_);

    if (talk->ended || talk->written - talk->read == UNREAD_MAX)
        return;
    talk->sizes[talk->written % UNREAD_MAX] = size;
    talk->written++;
    must(idem_stream_write(talk->stream,
                           &flow_note_of(talk->written, size)->base) == IDEM_OK,
         "a note that cannot be written", talk);
}

static void
read_one(struct speaker *speaker, struct talk *talk)
{
    const struct ProtobufCMessage *message;

    if (talk->read == talk->written)
        return;
    message = idem_stream_next(talk->stream);
    must(message, "an end before its time", talk);
    must_be_next(talk, message);
    speaker->read++;
}

static void
finish(struct speaker *speaker, struct talk *talk)
{
    idem_stream_end(talk->stream);
    while (talk->read < talk->written)
        read_one(speaker, talk);
    must(!idem_stream_next(talk->stream), "a note after the last", talk);
    must(idem_stream_finish(talk->stream, NULL, NULL) == IDEM_OK,
         "another end than OK", talk);
    talk->stream = NULL;
    speaker->finished++;
}

/* What came before is still read, and nothing else. */
static void
cancel(struct speaker *speaker, struct talk *talk)
{
    const struct ProtobufCMessage *message;
    enum idem_status status;

    idem_stream_cancel(talk->stream);
    while ((message = idem_stream_next(talk->stream)))
        must_be_next(talk, message);
    status = idem_stream_finish(talk->stream, NULL, NULL);
    must(status == IDEM_CANCELLED || (talk->ended && status == IDEM_OK),
         "another end than CANCELLED", talk);
    talk->stream = NULL;
    speaker->cancelled++;
}

static void
step(struct speaker *speaker)
{
    struct talk *talk = &speaker->talks[below(speaker, STREAMS)];

    if (!talk->stream) {
        begin(speaker, talk);
        return;
    }
    switch (below(speaker, 20)) {
    case 0:
        finish(speaker, talk);
        break;
    case 1:
        cancel(speaker, talk);
        break;
    case 2:
        idem_stream_end(talk->stream);
        talk->ended = true;
        break;
    default:
        if (below(speaker, 2))
            write_one(speaker, talk);
        else
            read_one(speaker, talk);
    }
}

static void *
speak(void *with)
{
    struct speaker *speaker = with;

    for (unsigned i = 0; i < steps; i++)
        step(speaker);
    for (unsigned i = 0; i < STREAMS; i++)
        if (speaker->talks[i].stream)
            finish(speaker, &speaker->talks[i]);
    return NULL;
}

static void
nothing_is_lost_doubled_or_out_of_order(void **state)
{
    static struct speaker speakers[THREADS];
    const struct flow_options options = {
        .server = {.stream_window = WINDOW, .workers = THREADS * STREAMS + 1},
        .channel = {.stream_window = WINDOW},
    };
    unsigned begun = 0, ended = 0, read = 0;

    (void)state;
    print_message("seed %u, %u steps\n", seed, steps);
    flow_world_open(&world, &options);
    for (unsigned i = 0; i < THREADS; i++) {
        speakers[i].seed = seed + i;
        pthread_create(&speakers[i].thread, NULL, speak, &speakers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(speakers[i].thread, NULL);
        begun += speakers[i].begun;
        ended += speakers[i].finished + speakers[i].cancelled;
        read += speakers[i].read;
    }
    print_message("%u streams, %u notes\n", begun, read);
    assert_int_equal(begun, ended);
    assert_true(read > 0);
    flow_world_close(&world);
    assert_int_equal(atomic_load(&world.ran), atomic_load(&world.ended));
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_doubled_or_out_of_order),
    };

    seed = (unsigned)time(NULL);
    if (argc > 1)
        steps = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        seed = (unsigned)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
