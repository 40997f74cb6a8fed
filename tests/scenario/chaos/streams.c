#include "streams.h"

#include "stream_lives.h"

#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS 3

struct streams {
    atomic_bool over; /* no more new ones */
    struct streamer streamers[KINDS];
};

static void *
work(void *with)
{
    struct streamer *streamer = with;

    while (!atomic_load(streamer->over)) {
        struct story *story = calloc(1, sizeof *story);

        assert_non_null(story);
        streamer->live(streamer, story);
        story->next = streamer->stories;
        streamer->stories = story;
        streamer->n++;
    }
    return NULL;
}

struct streams *
streams_start(struct site *site, const struct chaos_options *options)
{
    static const struct streamer kinds[KINDS] = {
        {.live = stream_live_each, .text = "client streams"},
        {.live = stream_live_asked, .text = "bidirectional streams"},
        {.live = stream_live_followed, .text = "server streams"},
    };
    struct streams *streams = calloc(1, sizeof *streams);

    assert_non_null(streams);
    for (unsigned i = 0; i < KINDS; i++) {
        struct streamer *streamer = &streams->streamers[i];

        *streamer = kinds[i];
        streamer->site = site;
        streamer->over = &streams->over;
        streamer->dice.state = dice_mix(~options->seed + i);
        assert_int_equal(
            pthread_create(&streamer->thread, NULL, work, streamer), 0);
    }
    return streams;
}

void
streams_settle(struct streams *streams)
{
    atomic_store(&streams->over, true);
    for (unsigned i = 0; i < KINDS; i++)
        pthread_join(streams->streamers[i].thread, NULL);
}

/* A server stream has one key; the numbers of the others may be forgotten. */
static void
declare(const struct story *story, struct checker *checker)
{
    char key[IDEM_KEY_MAX + 1];

    if (story->numbers == 0)
        checker_key(checker, story->key, CHECKER_RUN_ONCE, INT64_MAX);
    for (int64_t i = 1; story->session[0] && i <= story->numbers; i++) {
        idem_key_of_session(key, story->session, i);
        checker_key(checker, key, CHECKER_RUN_ONCE, INT64_MAX);
        checker_may_forget(checker, key);
    }
}

void
streams_tell(struct streams *streams, struct checker *checker)
{
    for (unsigned i = 0; i < KINDS; i++) {
        struct streamer *streamer = &streams->streamers[i];

        for (struct story *story = streamer->stories; story;
             story = story->next)
            declare(story, checker);
        for (struct told *told = streamer->told; told; told = told->next) {
            told->call.key = told->key;
            told->call.reason = told->reason;
            checker_call(checker, &told->call);
        }
    }
}

void
streams_print(struct streams *streams)
{
    for (unsigned i = 0; i < KINDS; i++)
        printf("%-28s %8u\n%-28s %8u\n", streams->streamers[i].text,
               streams->streamers[i].n, "… begun", streams->streamers[i].begun);
}

static void
free_stories(struct streamer *streamer)
{
    while (streamer->stories) {
        struct story *story = streamer->stories;

        streamer->stories = story->next;
        free(story);
    }
    while (streamer->told) {
        struct told *told = streamer->told;

        streamer->told = told->next;
        free(told);
    }
}

void
streams_free(struct streams *streams)
{
    for (unsigned i = 0; i < KINDS; i++)
        free_stories(&streams->streamers[i]);
    free(streams);
}
