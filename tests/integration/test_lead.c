/* Short handlers run on the thread that reads the sockets, and may block there
 * all the same (decision 48): another thread has the sockets then. Server and
 * channels are in one process and share the sockets' threads. */
#include "support.h"

#include "echo.idem.h"

#include <idem/channel.h>
#include <idem/server.h>

#include <pthread.h>
#include <stdlib.h>

#define WORKERS 4
#define WORLDS_MAX 100

/* What a call asks its handler for, by its number; more than CALL: so many
 * calls, one inside the other. */
enum { SHORT, BLOCK, CALL };

struct world {
    struct idem_server *server;
    struct idem_channel *channel;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    pthread_t reader;  /* ran the last inline handler */
    pthread_t handler; /* … the last one of the pool */
    bool open;
    unsigned inside, most_inside, passed, told;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- Handlers --- */

static void
wait_at_gate(struct world *w)
{
    if (++w->inside > w->most_inside)
        w->most_inside = w->inside;
    pthread_cond_broadcast(&w->changed);
    while (!w->open)
        pthread_cond_wait(&w->changed, &w->lock);
    w->inside--;
    w->passed++;
}

static enum idem_status
call(struct world *w, uint64_t number)
{
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.number = number;
    return echo_echo(w->channel, &request, NULL, NULL, NULL);
}

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    struct world *w = idem_context_user(context);

    reply->number = request->number;
    pthread_mutex_lock(&w->lock);
    w->handler = pthread_self();
    if (request->number == BLOCK)
        wait_at_gate(w);
    pthread_mutex_unlock(&w->lock);
    if (request->number < CALL)
        return IDEM_OK;
    return call(w, request->number == CALL ? SHORT : request->number - 1);
}

static enum idem_status
echo_inline(struct idem_context *context, const echo_echo_request *request,
            echo_echo_reply *reply)
{
    struct world *w = idem_context_user(context);

    (void)request;
    (void)reply;
    pthread_mutex_lock(&w->lock);
    w->reader = pthread_self();
    pthread_mutex_unlock(&w->lock);
    return IDEM_OK;
}

static const struct echo_handlers handlers = {
    .echo = echo,
    .echo_inline = echo_inline,
    .block = echo,
};

/* --- The world --- */

static void
begin(struct world *w)
{
    const struct idem_server_options options = {.workers = WORKERS,
                                                .drain_ms = 60000};
    struct idem_error err;

    *w = (struct world){.server = NULL};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    must(idem_server_new(&w->server, &options, &err), &err);
    must(echo_register(w->server, &handlers, w, &err), &err);
    must(idem_server_listen(w->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(w->server, &err), &err);
    must(idem_channel_new(&w->channel, idem_server_address(w->server, 0), NULL,
                          &err),
         &err);
}

static void
end(struct world *w)
{
    idem_channel_close(w->channel);
    idem_server_free(w->server);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static void
call_inline(struct world *w)
{
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    assert_int_equal(echo_echo_inline(w->channel, &request, NULL, NULL, NULL),
                     IDEM_OK);
}

static void
told(struct idem_call *handle, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct world *w = idem_call_user(handle);

    (void)reply;
    assert_int_equal(outcome->status, IDEM_OK);
    pthread_mutex_lock(&w->lock);
    w->told++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
start_blocked(struct world *w, unsigned calls)
{
    const struct idem_call_options options = {.user = w};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.number = BLOCK;
    for (unsigned i = 0; i < calls; i++)
        idem_call_release(
            echo_echo_async(w->channel, &request, &options, told));
}

static void
await(struct world *w, const unsigned *count, unsigned at_least)
{
    pthread_mutex_lock(&w->lock);
    while (*count < at_least)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void
open_gate(struct world *w)
{
    pthread_mutex_lock(&w->lock);
    w->open = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* --- Tests --- */

/* A world with a handler at the gate on the thread that reads. A worker takes
 * what has waited for a millisecond, on a busy machine also from a thread that
 * did not run: then another world. */
static void
begin_in_a_handler(struct world *w)
{
    for (unsigned i = 0; i < WORLDS_MAX; i++) {
        begin(w);
        call_inline(w);
        start_blocked(w, 1);
        await(w, &w->inside, 1);
        if (pthread_equal(w->handler, w->reader))
            return;
        open_gate(w);
        await(w, &w->told, 1);
        end(w);
    }
    fail_msg("no handler ran where its call was read in %d worlds", WORLDS_MAX);
}

static void
a_handler_that_blocks_on_the_reading_thread_keeps_nobody(void **state)
{
    struct world w;

    (void)state;
    begin_in_a_handler(&w);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(call(&w, SHORT), IDEM_OK);
        call_inline(&w);
        assert_false(pthread_equal(w.handler, w.reader));
    }
    open_gate(&w);
    await(&w, &w.told, 1);
    end(&w);
}

static void
no_more_handlers_run_at_once_than_there_are_workers(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    start_blocked(&w, 3 * WORKERS);
    await(&w, &w.inside, WORKERS);
    call_inline(&w);
    assert_int_equal(w.most_inside, WORKERS);
    open_gate(&w);
    await(&w, &w.told, 3 * WORKERS);
    assert_int_equal(w.most_inside, WORKERS);
    end(&w);
}

static void
a_handler_may_call_its_own_process_and_wait(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(call(&w, CALL), IDEM_OK);
    assert_int_equal(call(&w, CALL + WORKERS - 2), IDEM_OK);
    end(&w);
}

static void *
free_server(void *with)
{
    idem_server_free(with);
    return NULL;
}

static void
a_server_ends_while_the_reading_thread_is_in_a_handler(void **state)
{
    struct world w;
    pthread_t thread;

    (void)state;
    begin(&w);
    start_blocked(&w, 1);
    await(&w, &w.inside, 1);
    assert_int_equal(pthread_create(&thread, NULL, free_server, w.server), 0);
    open_gate(&w);
    await(&w, &w.told, 1);
    pthread_join(thread, NULL);
    w.server = NULL;
    end(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_handler_that_blocks_on_the_reading_thread_keeps_nobody),
        cmocka_unit_test(no_more_handlers_run_at_once_than_there_are_workers),
        cmocka_unit_test(a_handler_may_call_its_own_process_and_wait),
        cmocka_unit_test(
            a_server_ends_while_the_reading_thread_is_in_a_handler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
