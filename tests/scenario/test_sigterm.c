/* B108: a server is told to end while 100 calls are in flight, some in their
 * handlers, some in its queue. It exits with 0, each caller is told once, and
 * under its key no call has more than one effect.
 *
 *   test_sigterm [ROUNDS], 200 in the long form */
#include "support.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"
#include "tempdir.h"

#include <idem/call.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define CALLS 100
#define HOLD_MS 2
#define SEEN 10 /* that are told before the signal: the rest is in flight */

static unsigned rounds = 2;

struct site {
    struct tempdir dir;
    char books[128], push_log[128], log[128], address[64];
    pid_t server;
    struct idem_channel *channel;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    unsigned told, ok;
    unsigned times[CALLS];
};

struct cell {
    struct site *site;
    unsigned i;
};

static void
start_server(struct site *site)
{
    const char *const words[] = {EFFECTS_SERVER, site->address, site->push_log,
                                 "sqlite",       site->books,   NULL};
    const struct child_options options = {.log = site->log};

    site->server = child_serve(&options, words);
    if (!site->server) {
        child_show(site->log);
        fail_msg("the server does not listen");
    }
}

static int
set_up(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof site->push_log);
    tempdir_file(&site->dir, "log", site->log, sizeof site->log);
    snprintf(site->address, sizeof site->address, "tcp://127.0.0.1:%u",
             loopback_free_port());
    pthread_mutex_init(&site->lock, NULL);
    pthread_cond_init(&site->changed, NULL);
    start_server(site);
    assert_int_equal(
        idem_client_open(&site->channel, site->address, NULL, &err), IDEM_OK);
    *state = site;
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    child_stop(site->server, SIGKILL);
    pthread_cond_destroy(&site->changed);
    pthread_mutex_destroy(&site->lock);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

static void
tell(struct idem_call *call, const effects_add_reply *reply,
     const struct idem_outcome *outcome)
{
    struct cell *cell = idem_call_user(call);
    struct site *site = cell->site;

    (void)reply;
    pthread_mutex_lock(&site->lock);
    site->told++;
    site->times[cell->i]++;
    site->ok += outcome->status == IDEM_OK;
    if (outcome->status != IDEM_OK)
        print_error("%s: %s\n", idem_status_name(outcome->status),
                    outcome->message);
    pthread_cond_signal(&site->changed);
    pthread_mutex_unlock(&site->lock);
}

static void
await_told(struct site *site, unsigned told)
{
    pthread_mutex_lock(&site->lock);
    while (site->told < told)
        pthread_cond_wait(&site->changed, &site->lock);
    pthread_mutex_unlock(&site->lock);
}

static void
start_calls(struct site *site, unsigned round, struct cell cells[CALLS])
{
    for (unsigned i = 0; i < CALLS; i++) {
        char key[32];
        const struct idem_call_options options = {.key = key,
                                                  .timeout_ms = 60000,
                                                  .wait_for_ready = true,
                                                  .user = &cells[i]};
        effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

        cells[i] = (struct cell){site, i};
        snprintf(key, sizeof key, "round-%u-%u", round, i);
        request.amount = 1;
        request.hold_ms = HOLD_MS;
        idem_call_release(
            effects_add_async(site->channel, &request, &options, tell));
    }
}

static int64_t
count_effects(struct site *site)
{
    const struct idem_call_options patient = {.timeout_ms = 60000,
                                              .wait_for_ready = true};
    effects_count_request request = EFFECTS_COUNT_REQUEST_INIT;
    effects_count_reply *reply;
    int64_t effects;

    assert_int_equal(
        effects_count(site->channel, &request, &reply, &patient, NULL),
        IDEM_OK);
    effects = reply->effects;
    effects_count_reply_free(reply);
    return effects;
}

static void
a_server_that_is_told_to_end_answers_all(void **state)
{
    struct site *site = *state;

    for (unsigned round = 1; round <= rounds; round++) {
        static struct cell cells[CALLS];
        int status;

        pthread_mutex_lock(&site->lock);
        site->told = site->ok = 0;
        for (unsigned i = 0; i < CALLS; i++)
            site->times[i] = 0;
        pthread_mutex_unlock(&site->lock);
        start_calls(site, round, cells);
        await_told(site, SEEN);
        status = child_stop(site->server, SIGTERM);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            child_show(site->log);
            fail_msg("round %u: wait status %d", round, status);
        }
        start_server(site);
        await_told(site, CALLS);
        for (unsigned i = 0; i < CALLS; i++)
            assert_int_equal(site->times[i], 1);
        assert_int_equal(site->ok, CALLS);
        assert_int_equal(count_effects(site), round * CALLS);
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_server_that_is_told_to_end_answers_all, set_up, tear_down),
    };

    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
