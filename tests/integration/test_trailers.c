#include "echo_world.h"

#include <idem/call.h>
#include <stdio.h>
#include <string.h>

/* What comes back beside a reply or an error. */

static const struct echo_options tcp = {.transport = ECHO_TCP};
static const struct echo_options ipc = {.transport = ECHO_IPC};
static const struct echo_options inproc = {.transport = ECHO_INPROC};

static void
print(char *text, size_t room, const struct idem_metadata *trailers)
{
    size_t used = 0;

    text[0] = 0;
    for (const struct idem_metadata_entry *entry = trailers->first; entry;
         entry = entry->next)
        used += (size_t)snprintf(text + used, room - used, "%.*s=%.*s;",
                                 (int)entry->name.size, entry->name.data,
                                 (int)entry->value.size, entry->value.data);
}

static void
assert_trailers(const struct idem_metadata *trailers, const char *expected)
{
    char text[256];

    print(text, sizeof text, trailers);
    assert_string_equal(text, expected);
}

static const struct idem_call_metadata sent[] = {
    {"back", {(const uint8_t *)"one", 3}},
    {"back-bin", {(const uint8_t *)"\x01\x02", 2}},
    {"back", {(const uint8_t *)"two", 3}},
    {"back", {(const uint8_t *)"", 0}},
};

/* rpc 86: beside a reply, each value in its order. */
static void
they_come_beside_a_reply(void **state)
{
    struct idem_metadata trailers;
    const struct idem_call_options options = {
        .metadata = sent, .n_metadata = 4, .trailers = &trailers};
    struct echo_world world;
    struct echo_result result;
    struct idem_bytes value;

    echo_world_open(&world, *state);
    result = echo_world_call(&world, 1, 3, &options);
    assert_echoed(&result, 1, 3);
    assert_trailers(&trailers, "back=one;back-bin=\x01\x02;back=two;back=;");
    assert_true(idem_metadata_get(&trailers, "back", &value));
    assert_true(idem_bytes_equal(value, idem_bytes_of("one")));
    idem_trailers_free(&trailers);
    assert_null(trailers.first);
    idem_trailers_free(&trailers);
    idem_trailers_free(NULL);
    echo_world_close(&world);
}

/* rpc 86: beside an error. */
static void
they_come_beside_an_error(void **state)
{
    struct idem_metadata trailers;
    const struct idem_call_options options = {.trailers = &trailers};
    echo_fail_request request = ECHO_FAIL_REQUEST_INIT;
    struct echo_world world;

    echo_world_open(&world, *state);
    request.status = IDEM_PERMISSION_DENIED;
    request.message = "no";
    assert_int_equal(echo_fail(world.channel, &request, NULL, &options, NULL),
                     IDEM_PERMISSION_DENIED);
    assert_trailers(&trailers, "why=asked;why=twice;");
    idem_trailers_free(&trailers);
    echo_world_close(&world);
}

static void
there_are_none_without_an_answer(void **state)
{
    struct idem_metadata trailers = {.size = 7};
    const struct idem_call_options options = {.timeout_ms = -1,
                                              .metadata = sent,
                                              .n_metadata = 4,
                                              .trailers = &trailers};
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, *state);
    result = echo_world_call(&world, 1, 1, &options);
    assert_int_equal(result.status, IDEM_DEADLINE_EXCEEDED);
    assert_trailers(&trailers, "");
    assert_int_equal(trailers.size, 0);
    echo_world_close(&world);
}

/* --- The race --- */

enum { CALLS = 64, ROUNDS = 20 };

struct race {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    unsigned told, denied, late;
};

static void
tell(struct idem_call *call, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct race *race = idem_call_user(call);
    bool denied = outcome->status == IDEM_PERMISSION_DENIED;

    assert_null(reply);
    if (denied) {
        assert_string_equal(outcome->message, "no");
        assert_trailers(idem_call_trailers(call), "why=asked;why=twice;");
    } else {
        assert_int_equal(outcome->status, IDEM_DEADLINE_EXCEEDED);
        assert_trailers(idem_call_trailers(call), "");
    }
    pthread_mutex_lock(&race->lock);
    race->told++;
    race->denied += denied;
    race->late += !denied;
    pthread_cond_signal(&race->changed);
    pthread_mutex_unlock(&race->lock);
}

/* rpc 77: the deadline against an answer that is an error with trailers: one of
 * the two, whole, and once. */
static void
the_deadline_races_with_the_answer(void **state)
{
    struct race race = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0,
                        0, 0};
    echo_fail_request request = ECHO_FAIL_REQUEST_INIT;
    struct echo_world world;

    echo_world_open(&world, *state);
    request.status = IDEM_PERMISSION_DENIED;
    request.message = "no";
    for (unsigned i = 1; i <= ROUNDS; i++) {
        for (unsigned j = 0; j < CALLS; j++) {
            const struct idem_call_options options = {.timeout_ms = 1 + j % 4,
                                                      .user = &race};

            idem_call_release(
                echo_fail_async(world.channel, &request, &options, tell));
        }
        pthread_mutex_lock(&race.lock);
        while (race.told < i * CALLS)
            pthread_cond_wait(&race.changed, &race.lock);
        pthread_mutex_unlock(&race.lock);
    }
    print_message("%u answers, %u deadlines\n", race.denied, race.late);
    idem_channel_close(world.channel);
    world.channel = NULL;
    assert_int_equal(race.told, ROUNDS * CALLS);
    echo_world_close(&world);
}

#define OVER(transport, test)                                                  \
    {                                                                          \
#test ", " #transport, test, NULL, NULL, (void *)(uintptr_t)&transport \
    }

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(tcp, they_come_beside_a_reply),
        OVER(inproc, they_come_beside_a_reply),
        OVER(tcp, they_come_beside_an_error),
        OVER(tcp, there_are_none_without_an_answer),
        OVER(tcp, the_deadline_races_with_the_answer),
        OVER(ipc, the_deadline_races_with_the_answer),
        OVER(inproc, the_deadline_races_with_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
