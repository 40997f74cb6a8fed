#include "crowd.h"

#include "echo.idem.h"
#include "sanitizer.h"

#include <idem/call.h>
#include <idem/standard.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 300000 /* of each call: against a hang */

static void
die(const char *what)
{
    fprintf(stderr, "crowd: %s\n", what);
    _exit(1);
}

static void
say(int to, const char *what, size_t size)
{
    if (write(to, what, size) != (ssize_t)size)
        die("the other process is gone");
}

static void
hear(int from, char *what, size_t size)
{
    if (read(from, what, size) != (ssize_t)size)
        die("the other process is gone");
}

/* --- The server's process --- */

struct host {
    struct idem_interceptor base;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t full;
    struct idem_call **calls;
    unsigned n, wanted;
};

static bool
stay(struct idem_call *call, void *with)
{
    (void)call;
    (void)with;
    return false;
}

static enum idem_step
receive(struct idem_interceptor *self, struct idem_call *call)
{
    static const struct idem_holder holder = {.withdraw = stay};
    struct host *host = (struct host *)self;

    if (!idem_call_keep(call, &holder, host))
        return IDEM_ANSWER;
    pthread_mutex_lock(&host->lock);
    host->calls[host->n++] = call;
    if (host->n == host->wanted)
        pthread_cond_signal(&host->full);
    pthread_mutex_unlock(&host->lock);
    return IDEM_WAIT;
}

static void
keep_host(struct idem_interceptor *self)
{
    (void)self; /* the process's */
}

static const struct idem_interceptor_ops host_ops = {
    .name = "host",
    .band = IDEM_BAND_AUTH,
    .request = receive,
    .free = keep_host,
};

static struct host *
host_new(unsigned calls)
{
    struct host *host = calloc(1, sizeof *host);

    if (host)
        host->calls = calloc(calls, sizeof(struct idem_call *));
    if (!host || !host->calls)
        die("no memory");
    host->base.ops = &host_ops;
    host->wanted = calls;
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->full, NULL);
    return host;
}

static void
answer_all(struct host *host)
{
    static const uint8_t empty[1];

    for (unsigned i = 0; i < host->n; i++) {
        struct idem_call *call = host->calls[i];

        call->outcome.status = IDEM_OK;
        call->outcome.effect = IDEM_EFFECT_COMMITTED;
        call->reply = (struct idem_bytes){empty, 0};
        idem_call_resume(call, IDEM_ANSWER);
    }
}

static void serve(unsigned calls, int from, int to) __attribute__((noreturn));

static void
serve(unsigned calls, int from, int to)
{
    static const struct echo_handlers handlers;
    struct idem_server_options options = {.max_streams = calls};
    struct host *host = host_new(calls);
    struct idem_server *server;
    struct idem_error err;
    char address[64] = "", go;

    if (idem_server_new(&server, &options, &err) ||
        idem_server_add(server, &host->base, &err) ||
        echo_register(server, &handlers, NULL, &err) ||
        idem_server_listen(server, "tcp://127.0.0.1:0", &err) ||
        idem_server_start(server, &err))
        die(err.message);
    snprintf(address, sizeof address, "%s", idem_server_address(server, 0));
    say(to, address, sizeof address);
    pthread_mutex_lock(&host->lock);
    while (host->n < calls)
        pthread_cond_wait(&host->full, &host->lock);
    pthread_mutex_unlock(&host->lock);
    say(to, "a", 1);
    hear(from, &go, 1);
    answer_all(host);
    for (;;)
        pause();
}

/* --- The client --- */

struct guest {
    struct crowd *crowd;
    atomic_uint told;
};

struct crowd {
    pthread_mutex_t lock; /* guards told and ok */
    pthread_cond_t all;
    unsigned told, ok, calls;
    struct guest *guests;
};

static void
tell(struct idem_call *call, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct guest *guest = idem_call_user(call);
    struct crowd *crowd = guest->crowd;

    (void)reply;
    atomic_fetch_add(&guest->told, 1);
    pthread_mutex_lock(&crowd->lock);
    crowd->ok += outcome->status == IDEM_OK;
    if (++crowd->told == crowd->calls)
        pthread_cond_signal(&crowd->all);
    pthread_mutex_unlock(&crowd->lock);
}

static void
start_all(struct crowd *crowd, struct idem_channel *channel)
{
    uint8_t body[16] = "sixteen bytes it";
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.data = body;
    request.body.len = sizeof body;
    for (unsigned i = 0; i < crowd->calls; i++) {
        const struct idem_call_options options = {.user = &crowd->guests[i],
                                                  .timeout_ms = TIMEOUT_MS};

        idem_call_release(echo_echo_async(channel, &request, &options, tell));
    }
}

static double
resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        die("/proc/self/statm");
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static struct crowd
crowd_of(unsigned calls)
{
    struct crowd crowd = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .all = PTHREAD_COND_INITIALIZER,
                          .calls = calls,
                          .guests = malloc(calls * sizeof(struct guest))};

    if (!crowd.guests)
        die("no memory");
    for (unsigned i = 0; i < calls; i++)
        atomic_init(&crowd.guests[i].told, 0);
    return crowd;
}

static struct crowd_seen
count(const struct crowd *crowd)
{
    struct crowd_seen seen = {.told = crowd->told, .ok = crowd->ok};

    for (unsigned i = 0; i < crowd->calls; i++)
        seen.once += atomic_load(&crowd->guests[i].told) == 1;
    return seen;
}

/* With the address of the server, and told when all are there. */
static struct crowd_seen
fly(unsigned calls, int from, int to)
{
    struct crowd crowd = crowd_of(calls);
    struct idem_channel *channel;
    struct crowd_seen seen;
    struct idem_error err;
    char address[64], all;
    double before, kib;

    for (unsigned i = 0; i < calls; i++)
        crowd.guests[i].crowd = &crowd;
    hear(from, address, sizeof address);
    if (idem_client_open(&channel, address, NULL, &err) ||
        idem_channel_wait_ready(channel, TIMEOUT_MS, &err))
        die(err.message);
    before = resident_kib();
    start_all(&crowd, channel);
    hear(from, &all, 1);
    kib = (resident_kib() - before) / calls;
    say(to, "g", 1);
    pthread_mutex_lock(&crowd.lock);
    while (crowd.told < calls)
        pthread_cond_wait(&crowd.all, &crowd.lock);
    pthread_mutex_unlock(&crowd.lock);
    idem_channel_close(channel); /* no callback runs after it */
    seen = count(&crowd);
    seen.kib = kib;
    free(crowd.guests);
    return seen;
}

struct crowd_seen
crowd_run(unsigned calls)
{
    int there[2], back[2];
    struct crowd_seen seen;
    pid_t server;

    if (pipe(there) || pipe(back))
        die("no pipe");
    server = fork();
    if (server < 0)
        die("no process");
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(calls, there[0], back[1]);
    }
    seen = fly(calls, back[0], there[1]);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    if (SANITIZED)
        seen.kib = 0;
    return seen;
}
