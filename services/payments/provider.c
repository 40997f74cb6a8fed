#include "provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PROVIDER_LINE_MAX 512

/* The line has words: a destination is one of them. */
static bool
is_word(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *text;
}

/* Time-outs of the socket bound each step; the whole is at most a few. */
static void
limit_time(int fd, int64_t timeout_ms)
{
    struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static enum idem_status
dial(int *fd, const char *path, int64_t timeout_ms, struct idem_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int failed;

    if (strlen(path) >= sizeof address.sun_path)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "the provider's socket path is too long: %s", path);
    strcpy(address.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return idem_fail(err, IDEM_UNAVAILABLE, "socket: %s", strerror(errno));
    limit_time(*fd, timeout_ms);
    if (connect(*fd, (struct sockaddr *)&address, sizeof address) == 0)
        return IDEM_OK;
    failed = errno;
    close(*fd);
    return idem_fail(err, IDEM_UNAVAILABLE, "provider at %s: %s", path,
                     strerror(failed));
}

/* One line, without its end. */
static enum idem_status
read_line(int fd, char *line, size_t size, struct idem_error *err)
{
    size_t used = 0;

    while (used < size - 1) {
        ssize_t got = recv(fd, line + used, size - 1 - used, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return idem_fail(err, IDEM_UNAVAILABLE,
                             "the provider did not answer");
        used += (size_t)got;
        if (line[used - 1] == '\n') {
            line[used - 1] = '\0';
            return IDEM_OK;
        }
    }
    return idem_fail(err, IDEM_UNAVAILABLE, "the provider's line is too long");
}

static enum idem_status
understand(const char *answer, char *reference, struct idem_error *err)
{
    if (strncmp(answer, "PAID ", 5) == 0) {
        snprintf(reference, PROVIDER_REFERENCE_MAX, "%.*s",
                 PROVIDER_REFERENCE_MAX - 1, answer + 5);
        return IDEM_OK;
    }
    if (strncmp(answer, "NO ", 3) == 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "provider: %s",
                         answer + 3);
    return idem_fail(err, IDEM_UNAVAILABLE, "the provider does not make sense");
}

static enum idem_status
exchange(int fd, const char *request, char *reference, struct idem_error *err)
{
    char answer[PROVIDER_LINE_MAX];
    size_t size = strlen(request);
    enum idem_status status;

    if (send(fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
        return idem_fail(err, IDEM_UNAVAILABLE, "the provider does not listen");
    status = read_line(fd, answer, sizeof answer, err);
    if (status != IDEM_OK)
        return status;
    return understand(answer, reference, err);
}

enum idem_status
provider_pay(const char *path, const char *key, const char *destination,
             int64_t amount, int64_t timeout_ms, char *reference,
             struct idem_error *err)
{
    char request[PROVIDER_LINE_MAX];
    enum idem_status status;
    int fd = -1, length;

    if (!is_word(destination))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a destination has letters and no spaces");
    length = snprintf(request, sizeof request, "PAY %s %s %lld\n", key,
                      destination, (long long)amount);
    if (length >= (int)sizeof request)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "the destination is too long");
    status = dial(&fd, path, timeout_ms, err);
    if (status != IDEM_OK)
        return status;
    status = exchange(fd, request, reference, err);
    close(fd);
    return status;
}
