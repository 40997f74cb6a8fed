/* The whole road of a key in doubt (fault 7): a server dies in the middle of a
 * call that must not run again by itself; the client is told, and keeps the
 * key; an operator finds out and settles it; the client's repeat is answered.
 */
#include "doubt_site.h"

#include "child.h"
#include "effects.h"

#include <idem/reason.h>
#include <idem/resolve.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define CALL_MS 20000
#define OUTPUT_MAX 4096
#define METHOD "effects.v1.Effects/Push"

struct attempt {
    struct site *site;
    const char *key;
    enum checker_runs runs; /* AGAIN: an operator's word lets it */
    int64_t number;         /* of the reply; 0: none */
    enum idem_status status;
    struct idem_outcome outcome;
};

static void *
push(void *with)
{
    struct attempt *attempt = with;
    const struct idem_call_options options = {
        .key = attempt->key, .timeout_ms = CALL_MS, .wait_for_ready = true};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_clock *clock = idem_clock_system();
    int64_t began_ns = clock->monotonic_ns(clock);
    effects_add_reply *reply = NULL;

    request.amount = 7;
    attempt->status = effects_push(attempt->site->channel, &request, &reply,
                                   &options, &attempt->outcome);
    attempt->number = reply ? reply->number : 0;
    effects_add_reply_free(reply);
    site_tell(attempt->site, attempt->runs, began_ns, &attempt->outcome,
              (uint64_t)attempt->number);
    return NULL;
}

static enum idem_resolved
resolve(struct site *site, const char *key)
{
    struct idem_resolution resolution;
    enum idem_resolved state;
    struct idem_error err;

    must(idem_resolve(site->channel, &effects_push_method, key, CALL_MS,
                      &resolution, &err),
         &err);
    state = resolution.state;
    idem_resolution_fini(&resolution);
    return state;
}

/* The server dies with the effect made and nothing recorded; the client's own
 * repeat, on the next server, ends in doubt. Its key is what it keeps. */
static void
end_in_doubt(struct site *site, char *key, enum checker_runs runs)
{
    struct attempt attempt = {.site = site, .runs = runs};
    pthread_t thread;

    site_start(site, "once.handler.after:1:kill");
    pthread_create(&thread, NULL, push, &attempt);
    assert_true(child_wait_until(site_is_dead, site, SITE_READY_MS));
    site_start(site, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(attempt.status, IDEM_ABORTED);
    assert_int_equal(attempt.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_false(attempt.outcome.final);
    assert_string_equal(attempt.outcome.reason, IDEM_KEY_IN_DOUBT);
    assert_int_equal(effects_pushes(site->push_log, attempt.outcome.key), 1);
    snprintf(key, IDEM_KEY_MAX + 1, "%s", attempt.outcome.key);
}

/* The exit code of a command line; what it printed. */
static int
run(char *output, const char *line)
{
    FILE *pipe = popen(line, "r");
    int status;

    assert_non_null(pipe);
    output[fread(output, 1, OUTPUT_MAX - 1, pipe)] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* … of idemctl about one key. */
static int
idemctl(char *output, const char *command, const char *key, const char *options)
{
    char line[1536];

    snprintf(line, sizeof line, "%s %s %s --method " METHOD " %s 2>&1", IDEMCTL,
             command, key, options);
    return run(output, line);
}

static int
doubts(struct site *site, char *output)
{
    char line[512];

    snprintf(line, sizeof line, "%s doubts %s 2>&1", IDEMCTL, site->place);
    return run(output, line);
}

static void
says(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("\"%s\" is missing in:\n%s", words, output);
}

static void
tell(struct site *site, const char *command, const char *key,
     const char *options, const char *words)
{
    char output[OUTPUT_MAX], all[1024];

    snprintf(all, sizeof all, "%s %s", site->place, options);
    assert_int_equal(idemctl(output, command, key, all), 0);
    says(output, words);
}

static void
assert_audited(struct site *site, const char *state)
{
    if (site->postgres)
        assert_int_equal(
            postgres_sql(site->postgres,
                         "SELECT count(*) FROM idem_settlement WHERE "
                         "state = '%s' AND settled_by = 'anna' AND "
                         "why = 'ticket 4711' AND scope = '" METHOD "'",
                         state),
            1);
}

static void
what_took_effect_is_replayed_once_it_is_settled(void **state)
{
    struct site *site = *state;
    char key[IDEM_KEY_MAX + 1], options[512];
    struct attempt again = {.site = site, .key = key};

    end_in_doubt(site, key, CHECKER_RUN_ONCE);
    assert_int_equal(resolve(site, key), IDEM_RESOLVED_IN_DOUBT);
    tell(site, "resolve", key, "", "IN_DOUBT");
    snprintf(options, sizeof options,
             "--took-effect --reply %s --by anna --why 'ticket 4711'",
             site->reply);
    tell(site, "settle", key, options, "DONE");
    assert_int_equal(resolve(site, key), IDEM_RESOLVED_DONE);
    push(&again);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(again.outcome.final);
    assert_int_equal(again.number, 41);
    assert_int_equal(effects_pushes(site->push_log, key), 1);
    assert_audited(site, "DONE");
}

static void
what_took_no_effect_runs_again_once_it_is_settled(void **state)
{
    struct site *site = *state;
    char key[IDEM_KEY_MAX + 1];
    struct attempt again = {.site = site, .key = key};

    end_in_doubt(site, key, CHECKER_RUN_AGAIN);
    tell(site, "settle", key, "--no-effect --by anna --why 'ticket 4711'",
         "ABSENT");
    push(&again);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(effects_pushes(site->push_log, key), 2);
    assert_audited(site, "RELEASED");
}

/* Without the reply itself a repeat is not told a made-up one. */
static void
an_effect_whose_reply_is_not_known_is_told_as_such(void **state)
{
    struct site *site = *state;
    char key[IDEM_KEY_MAX + 1];
    struct attempt again = {.site = site, .key = key};

    end_in_doubt(site, key, CHECKER_RUN_AGAIN);
    tell(site, "settle", key, "--took-effect --by anna --why 'ticket 4711'",
         "ALREADY_EXISTS");
    push(&again);
    assert_int_equal(again.status, IDEM_ALREADY_EXISTS);
    assert_string_equal(again.outcome.reason, IDEM_ANSWER_DROPPED);
    assert_int_equal(effects_pushes(site->push_log, key), 1);
}

/* No: also while the channel has not found the new server yet. */
static bool
left_alone_is_in_doubt(void *with)
{
    struct site *site = with;
    struct idem_resolution resolution;
    bool in_doubt;

    if (idem_resolve(site->channel, &effects_push_method, "left-alone", CALL_MS,
                     &resolution, NULL) != IDEM_OK)
        return false;
    in_doubt = resolution.state == IDEM_RESOLVED_IN_DOUBT;
    idem_resolution_fini(&resolution);
    return in_doubt;
}

/* Nobody has to repeat the call for that: the lease tells. */
static void
a_lease_that_is_over_is_in_doubt_before_anybody_repeats_it(void **state)
{
    struct site *site = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_call_options options = {.key = "left-alone",
                                              .timeout_ms = CALL_MS};
    struct idem_call *call;

    checker_key(site->checker, options.key, CHECKER_RUN_ONCE, INT64_MAX);
    site_start(site, "once.handler.after:1:kill");
    call = effects_push_async(site->channel, &request, &options, NULL);
    assert_true(child_wait_until(site_is_dead, site, SITE_READY_MS));
    idem_call_cancel(call);
    idem_call_release(call);
    site_start(site, NULL);
    assert_true(child_wait_until(left_alone_is_in_doubt, site, SITE_READY_MS));
    tell(site, "abandon", "left-alone", "", "IN_DOUBT");
}

static void
an_operator_can_abandon_through_a_server_but_not_settle(void **state)
{
    struct site *site = *state;
    char output[OUTPUT_MAX], options[256];

    checker_key(site->checker, "k1", CHECKER_RUN_ONCE, INT64_MAX);
    site_start(site, NULL);
    snprintf(options, sizeof options, "--server %s", site->address);
    assert_int_equal(idemctl(output, "abandon", "k1", options), 0);
    says(output, "ABANDONED");
    assert_int_equal(idemctl(output, "resolve", "k1", options), 0);
    says(output, "ABANDONED");
    tell(site, "resolve", "k1", "", "ABANDONED");
    snprintf(options, sizeof options,
             "--server %s --no-effect --by anna --why so", site->address);
    assert_int_equal(idemctl(output, "settle", "k1", options), 2);
    says(output, "--postgres or --sqlite");
}

static void
what_is_not_in_doubt_is_not_settled(void **state)
{
    struct site *site = *state;
    struct attempt done = {.site = site, .key = "all-right"};
    char output[OUTPUT_MAX], options[512];

    site_start(site, NULL);
    push(&done);
    assert_int_equal(done.status, IDEM_OK);
    snprintf(options, sizeof options, "%s --no-effect --by anna --why so",
             site->place);
    assert_int_equal(idemctl(output, "settle", "all-right", options), 1);
    says(output, "DONE");
    says(output, "FAILED_PRECONDITION");
    assert_int_equal(idemctl(output, "settle", "never-seen", options), 1);
    says(output, "ABSENT");
}

/* A dead letter is found without its key. */
static void
what_waits_for_somebody_is_listed(void **state)
{
    struct site *site = *state;
    char key[IDEM_KEY_MAX + 1], output[OUTPUT_MAX], line[IDEM_KEY_MAX + 64];

    end_in_doubt(site, key, CHECKER_RUN_ONCE);
    assert_int_equal(doubts(site, output), 1);
    snprintf(line, sizeof line, METHOD " - %s -", key);
    says(output, "DOUBT ");
    says(output, line);
    tell(site, "settle", key, "--no-effect --by anna --why checked", "ABSENT");
    assert_int_equal(doubts(site, output), 0);
    assert_string_equal(output, "");
}

static void
a_wrong_command_line_is_named(void **state)
{
    static const struct {
        const char *options, *words;
    } wrong[] = {
        {"", "one of --server"},
        {"--sqlite x --postgres y", "one of --server"},
        {"--sqlite x", "either --took-effect or --no-effect"},
        {"--sqlite x --no-effect --took-effect", "either"},
        {"--sqlite x --no-effect", "--why"},
        {"--sqlite x --no-effect --why so --by ''", "--by"},
        {"--sqlite x --no-effect --reply f --why so", "--took-effect"},
        {"--sqlite x --took-effect --status MAYBE", "--status"},
        {"--sqlite x --timeout-ms never", "--timeout-ms"},
        {"--colour", "--colour: no such option, or no value"},
        {"--sqlite", "--sqlite: no such option, or no value"},
        {"another-key --sqlite x", "one KEY"},
    };
    char output[OUTPUT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(idemctl(output, "settle", "k", wrong[i].options), 2);
        says(output, wrong[i].words);
    }
    assert_int_equal(idemctl(output, "resolve", "k", "--sqlite /nowhere/books"),
                     1);
    says(output, "/nowhere/books");
}

/* Argument: "sqlite" or "postgres", the authority. */
int
main(int argc, char **argv)
{
#define TEST(site, name)                                                       \
    {                                                                          \
#name " " #site, name, site, site_down, NULL                           \
    }
#define TESTS(site)                                                            \
    TEST(site, what_took_effect_is_replayed_once_it_is_settled),               \
        TEST(site, what_took_no_effect_runs_again_once_it_is_settled),         \
        TEST(site, an_effect_whose_reply_is_not_known_is_told_as_such),        \
        TEST(site,                                                             \
             a_lease_that_is_over_is_in_doubt_before_anybody_repeats_it),      \
        TEST(site, an_operator_can_abandon_through_a_server_but_not_settle),   \
        TEST(site, what_waits_for_somebody_is_listed),                         \
        TEST(site, what_is_not_in_doubt_is_not_settled),                       \
        TEST(site, a_wrong_command_line_is_named)
    const struct CMUnitTest alone[] = {TESTS(site_on_sqlite)};
    const struct CMUnitTest served[] = {TESTS(site_on_postgres)};

    if (argc > 1 && strcmp(argv[1], "postgres") == 0)
        return cmocka_run_group_tests(served, NULL, NULL);
    return cmocka_run_group_tests(alone, NULL, NULL);
}
