/* kill -9 at every step that a call comes to, then the same call again (faults
 * 5, 6, 10, 11, 13, 14; B007, B008, B111; rpc 101).
 *
 * The steps are not listed here: a first call writes down the fault points that
 * it reaches, and each of them is then where a server dies. A new step cannot
 * escape. */
#include "support.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"
#include "postgres.h"
#include "redis.h"
#include "tempdir.h"

#include <idem/postgres.h>
#include <idem/reason.h>
#include <idem/standard.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 40
#define NAME_MAX_SIZE 64
#define READY_MS 20000
#define CALL_MS 20000

typedef enum idem_status call_fn(struct idem_channel *channel,
                                 const effects_add_request *request,
                                 effects_add_reply **reply,
                                 const struct idem_call_options *options,
                                 struct idem_outcome *outcome);

struct site {
    struct tempdir dir;
    char books[128], push_log[128], points[128], log[128], address[64];
    struct postgres *postgres; /* NULL: sqlite */
    struct redis *redis;
    pid_t server;
    struct idem_channel *channel;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

/* --- The site --- */

static void
prepare(struct site *site, bool on_postgres)
{
    struct idem_error err;

    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "books", site->books, sizeof(site->books));
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof(site->push_log));
    tempdir_file(&site->dir, "points", site->points, sizeof(site->points));
    tempdir_file(&site->dir, "log", site->log, sizeof(site->log));
    snprintf(site->address, sizeof(site->address), "tcp://127.0.0.1:%u",
             loopback_free_port());
    if (!on_postgres)
        return;
    site->postgres = postgres_start(NULL);
    site->redis = redis_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL, &err),
         &err);
    postgres_strict(site->postgres);
    postgres_sql(site->postgres, EFFECTS_SCHEMA);
}

static int
set_up(void **state, bool on_postgres)
{
    struct site *site = calloc(1, sizeof(*site));
    struct idem_error err;

    prepare(site, on_postgres);
    must(idem_client_open(&site->channel, site->address, NULL, &err), &err);
    *state = site;
    return 0;
}

static int
on_sqlite(void **state)
{
    return set_up(state, false);
}

static int
on_postgres_and_redis(void **state)
{
    return set_up(state, true);
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    child_stop(site->server, SIGKILL);
    redis_free(site->redis);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

/* --- Its server --- */

static bool
it_is_dead(void *with)
{
    const struct site *site = with;

    return !child_alive(site->server);
}

/* A server with a fault may die before it listens. */
static void
start_server(struct site *site, const char *variable, const char *value)
{
    const char *words[] = {
        EFFECTS_SERVER, site->address, site->push_log, "sqlite", site->books,
        NULL,           NULL};
    const struct child_options options = {.log = site->log};

    if (site->postgres) {
        words[3] = "postgres";
        words[4] = postgres_conninfo(site->postgres);
        words[5] = redis_url(site->redis);
    }
    if (variable)
        setenv(variable, value, 1);
    site->server = child_serve(&options, words);
    if (variable)
        unsetenv(variable);
    if (!variable && !site->server) {
        child_show(site->log);
        fail_msg("the server does not listen");
    }
}

/* --- Calls --- */

struct attempt {
    struct site *site;
    call_fn *call;
    char key[64];
    enum idem_status status;
    struct idem_outcome outcome;
    pthread_t thread;
};

static void
call(struct attempt *attempt)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call_options options = {
        .key = attempt->key, .timeout_ms = CALL_MS, .wait_for_ready = true};

    request.amount = 7;
    attempt->status = attempt->call(attempt->site->channel, &request, NULL,
                                    &options, &attempt->outcome);
}

static void *
run(void *arg)
{
    call(arg);
    return NULL;
}

static int64_t
rows(struct site *site)
{
    effects_count_request request = EFFECTS_COUNT_REQUEST_INIT;
    struct idem_call_options options = {.wait_for_ready = true};
    effects_count_reply *reply;
    struct idem_outcome outcome;
    int64_t effects;

    if (effects_count(site->channel, &request, &reply, &options, &outcome) !=
        IDEM_OK)
        fail_msg("count: %s", outcome.message);
    effects = reply->effects;
    effects_count_reply_free(reply);
    return effects;
}

/* --- The enumerator --- */

struct points {
    unsigned n;
    char name[POINTS_MAX][NAME_MAX_SIZE];
};

static void
add_point(struct points *points, const char *name)
{
    for (unsigned i = 0; i < points->n; i++)
        if (strcmp(points->name[i], name) == 0)
            return;
    assert_true(points->n < POINTS_MAX);
    snprintf(points->name[points->n++], NAME_MAX_SIZE, "%s", name);
}

static void
read_points(struct site *site, struct points *points)
{
    char line[NAME_MAX_SIZE];
    FILE *file = fopen(site->points, "r");

    points->n = 0;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        add_point(points, line);
    }
    fclose(file);
}

static void
find_points(struct site *site, call_fn *method, struct points *points)
{
    struct attempt attempt = {.site = site, .call = method, .key = "points"};

    start_server(site, "IDEM_FAULT_LOG", site->points);
    call(&attempt);
    assert_int_equal(attempt.status, IDEM_OK);
    child_stop(site->server, SIGKILL);
    read_points(site, points);
    assert_true(points->n >= 4);
}

/* Kill the server at this point of the call, start another, let the client's
 * retry go on, and call once more. */
static void
crash_at(struct site *site, call_fn *method, const char *point,
         struct attempt *first, struct attempt *again)
{
    char plan[NAME_MAX_SIZE + 16];

    snprintf(plan, sizeof(plan), "%s:1:kill", point);
    *first = (struct attempt){.site = site, .call = method};
    snprintf(first->key, sizeof(first->key), "at-%.50s", point);
    *again = *first;
    start_server(site, "IDEM_FAULT", plan);
    pthread_create(&first->thread, NULL, run, first);
    if (!child_wait_until(it_is_dead, site, READY_MS))
        fail_msg("%s: the server lives", point);
    start_server(site, NULL, NULL);
    pthread_join(first->thread, NULL);
    call(again);
}

static void
complain(const char *point, const struct attempt *attempt)
{
    print_message("at %s: %s, %s, %s: %s\n", point,
                  idem_status_name(attempt->status),
                  idem_effect_name(attempt->outcome.effect),
                  attempt->outcome.reason, attempt->outcome.message);
}

static void
have_one_effect_wherever_its_server_dies(struct site *site, call_fn *method)
{
    struct points points;
    struct attempt first, again;

    find_points(site, method, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, method, points.name[i], &first, &again);
        complain(points.name[i], &first);
        assert_int_equal(first.status, IDEM_OK);
        assert_int_equal(again.status, IDEM_OK);
        assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_int_equal(rows(site), i + 2);
        child_stop(site->server, SIGKILL);
    }
}

static void
a_transaction_has_one_effect_wherever_its_server_dies(void **state)
{
    have_one_effect_wherever_its_server_dies(*state, effects_add);
}

static void
so_has_one_that_states_its_statements(void **state)
{
    have_one_effect_wherever_its_server_dies(*state, effects_add_stated);
}

static void
so_has_one_of_a_group(void **state)
{
    have_one_effect_wherever_its_server_dies(*state, effects_add_grouped);
}

static bool
is_in_doubt(const struct attempt *attempt)
{
    return attempt->status == IDEM_ABORTED &&
           attempt->outcome.effect == IDEM_EFFECT_IN_DOUBT &&
           strcmp(attempt->outcome.reason, IDEM_KEY_IN_DOUBT) == 0;
}

static void
hold_wherever_its_server_dies(struct site *site, call_fn *method)
{
    struct points points;
    struct attempt first, again;
    unsigned pushes;

    find_points(site, method, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, method, points.name[i], &first, &again);
        complain(points.name[i], &first);
        pushes = effects_pushes(site->push_log, first.key);
        assert_true(pushes <= 1);
        assert_int_equal(first.status, again.status);
        if (is_in_doubt(&first))
            assert_true(is_in_doubt(&again));
        else {
            assert_int_equal(first.status, IDEM_OK);
            assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
            assert_int_equal(pushes, 1);
        }
        child_stop(site->server, SIGKILL);
    }
}

static void
a_held_key_is_done_once_or_in_doubt_wherever_its_server_dies(void **state)
{
    hold_wherever_its_server_dies(*state, effects_push);
}

static void
so_is_one_that_marks_its_steps(void **state)
{
    hold_wherever_its_server_dies(*state, effects_push_step);
}

/* Fault 10: the other system de-duplicates on the key that it is given. */
static void
a_key_that_may_run_again_is_done_wherever_its_server_dies(void **state)
{
    struct site *site = *state;
    struct points points;
    struct attempt first, again;
    unsigned pushes;

    find_points(site, effects_push_again, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, effects_push_again, points.name[i], &first, &again);
        complain(points.name[i], &first);
        assert_int_equal(first.status, IDEM_OK);
        assert_int_equal(again.status, IDEM_OK);
        assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
        pushes = effects_pushes(site->push_log, first.key);
        assert_true(pushes == 1 || pushes == 2);
        child_stop(site->server, SIGKILL);
    }
}

/* Argument: "sqlite" or "postgres", the authority. */
int
main(int argc, char **argv)
{
#define TEST(site, name)                                                       \
    {                                                                          \
#name " " #site, name, site, tear_down, NULL                           \
    }
#define TESTS(site)                                                            \
    TEST(site, a_transaction_has_one_effect_wherever_its_server_dies),         \
        TEST(site, so_has_one_that_states_its_statements),                     \
        TEST(site,                                                             \
             a_held_key_is_done_once_or_in_doubt_wherever_its_server_dies),    \
        TEST(site, so_is_one_that_marks_its_steps),                            \
        TEST(site, a_key_that_may_run_again_is_done_wherever_its_server_dies)
    const struct CMUnitTest alone[] = {TESTS(on_sqlite)};
    const struct CMUnitTest both[] = {
        TESTS(on_postgres_and_redis),
        TEST(on_postgres_and_redis, so_has_one_of_a_group),
    };

    if (argc > 1 && strcmp(argv[1], "postgres") == 0)
        return cmocka_run_group_tests(both, NULL, NULL);
    return cmocka_run_group_tests(alone, NULL, NULL);
}
