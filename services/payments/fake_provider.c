/* A payment provider for tests and the demo: listens on a unix socket, pays
 * once a key, keeps its own log. Lines in, lines out:
 *
 *   PAY key destination amount   PAID reference | NO reason
 *   DELAY milliseconds           OK             each payment takes so long
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "provider_log.h"

/* One house, shared by the threads of all connections. */
static struct {
    pthread_mutex_t lock;
    struct provider_log *log; /* under the lock */
    long delay_ms;            /* under the lock */
} house = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
wait_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static void
pay_locked(FILE *out, const char *key, const char *destination,
           long long amount)
{
    const struct payment *payment = provider_log_find(house.log, key);

    if (payment && (payment->amount != amount ||
                    strcmp(payment->destination, destination) != 0)) {
        fprintf(out, "NO the key is used for another payment\n");
        return;
    }
    if (!payment)
        payment = provider_log_add(house.log, key, destination, amount);
    if (payment)
        fprintf(out, "PAID fake-%u\n", payment->number);
    else
        fprintf(out, "NO the log cannot be written: %s\n", strerror(errno));
}

static void
pay(FILE *out, const char *key, const char *destination, long long amount)
{
    long delay_ms;

    pthread_mutex_lock(&house.lock);
    delay_ms = house.delay_ms;
    pthread_mutex_unlock(&house.lock);
    wait_ms(delay_ms);
    pthread_mutex_lock(&house.lock);
    pay_locked(out, key, destination, amount);
    pthread_mutex_unlock(&house.lock);
}

static void
set_delay(FILE *out, long delay_ms)
{
    pthread_mutex_lock(&house.lock);
    house.delay_ms = delay_ms;
    pthread_mutex_unlock(&house.lock);
    fprintf(out, "OK\n");
}

static void
answer(FILE *out, const char *line)
{
    char key[PAYMENT_WORD_MAX], destination[PAYMENT_WORD_MAX];
    long long amount;
    long delay_ms;

    if (sscanf(line, "PAY %255s %255s %lld", key, destination, &amount) == 3)
        pay(out, key, destination, amount);
    else if (sscanf(line, "DELAY %ld", &delay_ms) == 1 && delay_ms >= 0)
        set_delay(out, delay_ms);
    else
        fprintf(out, "NO what is this?\n");
    fflush(out);
}

static void *
serve(void *argument)
{
    FILE *in = argument;
    FILE *out = fdopen(dup(fileno(in)), "w");
    char line[3 * PAYMENT_WORD_MAX];

    while (out && fgets(line, sizeof line, in))
        answer(out, line);
    if (out)
        fclose(out);
    fclose(in);
    return NULL;
}

static int
listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) ||
        listen(fd, SOMAXCONN))
        return -1;
    return fd;
}

static void
accept_one(int listener)
{
    int fd = accept(listener, NULL, NULL);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
    pthread_t thread;

    if (!stream) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (pthread_create(&thread, NULL, serve, stream) == 0)
        pthread_detach(thread);
    else
        fclose(stream);
}

int
main(int argc, char **argv)
{
    int listener;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: fake_provider SOCKET LOG [DELAY-MS]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    house.log = provider_log_open(argv[2]);
    if (!house.log) {
        fprintf(stderr, "fake_provider: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    house.delay_ms = argc == 4 ? atol(argv[3]) : 0;
    listener = listen_at(argv[1]);
    if (listener < 0) {
        fprintf(stderr, "fake_provider: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    printf("listening on %s\n", argv[1]);
    fflush(stdout);
    for (;;)
        accept_one(listener);
}
