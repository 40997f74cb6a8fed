#include "tls.h"

#include "io_tls.h"
#include "tls_files.h"

#include <idem/watch.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "tls+"
#define PREFIX_SIZE (sizeof(PREFIX) - 1)
#define ADDRESS_MAX 256

struct tls {
    struct io io; /* first: io's functions are given its address */
    bool server;
    struct idem_tls_options options; /* strings are its own */
    struct idem_watch *watch;

    pthread_mutex_t lock; /* guards context */
    struct ssl_ctx_st *context;
};

struct listener {
    struct io_listener base;
    struct tls *tls;
    struct io_listener *lower;
    char address[ADDRESS_MAX];
    io_open_fn *done;
    void *with;
};

struct dialer {
    struct io_dialer base;
    struct tls *tls;
    struct io_dialer *lower;
    char host[ADDRESS_MAX];
    io_open_fn *done;
    void *with;
};

/* --- Streams --- */

/* With the files as they are now. Owns lower. NULL: out of memory. */
static struct io_stream *
wrap(struct tls *tls, struct io_stream *lower, const char *host)
{
    struct tls_session *session;

    pthread_mutex_lock(&tls->lock);
    session = tls_session_new(tls->context, host);
    pthread_mutex_unlock(&tls->lock);
    if (session)
        return io_tls_stream_new(lower, session);
    lower->ops->close(lower);
    lower->ops->free(lower);
    return NULL;
}

/* What an accept or a dial of the lower transport came to. */
static void
opened(struct tls *tls, struct io_stream *lower, const char *host,
       const struct idem_error *why, io_open_fn *done, void *with)
{
    struct idem_error err = {0};
    struct io_stream *stream;

    if (!lower) {
        done(with, NULL, why);
        return;
    }
    stream = wrap(tls, lower, host);
    if (!stream)
        idem_fail(&err, IDEM_UNAVAILABLE, "TLS: out of memory");
    done(with, stream, &err);
}

/* --- Listeners --- */

static void
accepted(void *with, struct io_stream *lower, const struct idem_error *err)
{
    struct listener *listener = with;

    opened(listener->tls, lower, NULL, err, listener->done, listener->with);
}

static bool
tls_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct listener *listener = (struct listener *)base;

    /* One at a time: the one before is answered. */
    listener->done = done;
    listener->with = with;
    return listener->lower->ops->accept(listener->lower, accepted, listener);
}

static const char *
listener_address(const struct io_listener *base)
{
    return ((const struct listener *)base)->address;
}

static void
listener_close(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    listener->lower->ops->close(listener->lower);
}

static void
listener_free(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    listener->lower->ops->free(listener->lower);
    free(listener);
}

static const struct io_listener_ops listener_ops = {
    .accept = tls_accept,
    .address = listener_address,
    .close = listener_close,
    .free = listener_free,
};

bool
tls_is_address(const char *address)
{
    return address && strncmp(address, PREFIX, PREFIX_SIZE) == 0;
}

/* The lower address and its transport. */
static enum idem_status
find_lower(const char *address, const struct io **lower, struct idem_error *err)
{
    if (!tls_is_address(address))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "%s: with TLS options an address is \"tls+tcp://…\"",
                         address);
    return io_find(address + PREFIX_SIZE, lower, err);
}

static enum idem_status
tls_listen(const struct io *io, const char *address, struct io_listener **out,
           struct idem_error *err)
{
    struct listener *listener;
    const struct io *lower;
    enum idem_status status = find_lower(address, &lower, err);

    if (status != IDEM_OK)
        return status;
    listener = calloc(1, sizeof *listener);
    if (!listener)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    listener->base.ops = &listener_ops;
    listener->tls = (struct tls *)(uintptr_t)io;
    status = lower->listen(lower, address + PREFIX_SIZE, &listener->lower, err);
    if (status != IDEM_OK) {
        free(listener);
        return status;
    }
    snprintf(listener->address, ADDRESS_MAX, PREFIX "%s",
             listener->lower->ops->address(listener->lower));
    *out = &listener->base;
    return IDEM_OK;
}

/* --- Dialers --- */

static void
dialed(void *with, struct io_stream *lower, const struct idem_error *err)
{
    struct dialer *dialer = with;

    opened(dialer->tls, lower, dialer->host, err, dialer->done, dialer->with);
}

static bool
tls_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct dialer *dialer = (struct dialer *)base;

    dialer->done = done;
    dialer->with = with;
    return dialer->lower->ops->dial(dialer->lower, dialed, dialer);
}

static void
dialer_close(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    dialer->lower->ops->close(dialer->lower);
}

static void
dialer_free(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    dialer->lower->ops->free(dialer->lower);
    free(dialer);
}

static const struct io_dialer_ops dialer_ops = {
    .dial = tls_dial,
    .close = dialer_close,
    .free = dialer_free,
};

/* The host of "tls+tcp://host:port", of "[::1]" what is inside. */
static void
write_host(char host[ADDRESS_MAX], const char *address)
{
    const char *at = strstr(address, "://") + 3;
    const char *end = at + strcspn(at, "/");
    const char *colon = memrchr(at, ':', (size_t)(end - at));

    if (*at == '[') {
        at++;
        end = at + strcspn(at, "]");
    } else if (colon) {
        end = colon;
    }
    snprintf(host, ADDRESS_MAX, "%.*s", (int)(end - at), at);
}

static enum idem_status
tls_dialer(const struct io *io, const char *address, struct io_dialer **out,
           struct idem_error *err)
{
    struct tls *tls = (struct tls *)(uintptr_t)io;
    struct dialer *dialer;
    const struct io *lower;
    enum idem_status status = find_lower(address, &lower, err);

    if (status != IDEM_OK)
        return status;
    dialer = calloc(1, sizeof *dialer);
    if (!dialer)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    dialer->base.ops = &dialer_ops;
    dialer->tls = tls;
    write_host(dialer->host, address);
    if (tls->options.server_name)
        snprintf(dialer->host, ADDRESS_MAX, "%s", tls->options.server_name);
    status = lower->dialer(lower, address + PREFIX_SIZE, &dialer->lower, err);
    if (status == IDEM_OK && !dialer->host[0]) {
        dialer->lower->ops->free(dialer->lower);
        status = idem_fail(err, IDEM_INVALID_ARGUMENT,
                           "%s has no host: TLS needs a server_name", address);
    }
    if (status != IDEM_OK) {
        free(dialer);
        return status;
    }
    *out = &dialer->base;
    return IDEM_OK;
}

/* --- Files --- */

static void
read_again(void *with)
{
    struct tls *tls = with;
    struct ssl_ctx_st *context, *before;
    struct idem_error err = {0};
    bool good =
        tls_context_read(&context, tls->server, &tls->options, &err) == IDEM_OK;

    if (good) {
        pthread_mutex_lock(&tls->lock);
        before = tls->context;
        tls->context = context;
        pthread_mutex_unlock(&tls->lock);
        tls_context_free(before);
    }
    if (tls->options.reloaded)
        tls->options.reloaded(tls->options.with, good ? NULL : &err);
}

static const char **
strings_of(struct idem_tls_options *options, unsigned i)
{
    const char **strings[] = {
        &options->certificate_file, &options->key_file,
        &options->authority_file,   &options->key_password,
        &options->server_name,      &options->revoked_file,
    };

    return i < sizeof strings / sizeof *strings ? strings[i] : NULL;
}

static bool
copy_strings(struct idem_tls_options *options)
{
    const char **at;
    bool all = true;

    for (unsigned i = 0; (at = strings_of(options, i)); i++) {
        const char *given = *at;

        *at = given ? strdup(given) : NULL;
        all = all && (*at || !given);
    }
    return all;
}

static void
free_strings(struct idem_tls_options *options)
{
    const char **at;

    if (options->key_password)
        explicit_bzero((void *)(uintptr_t)options->key_password,
                       strlen(options->key_password));
    for (unsigned i = 0; (at = strings_of(options, i)); i++)
        free((void *)(uintptr_t)*at);
}

/* Noted first, then read: no change is missed. */
static enum idem_status
read_and_watch(struct tls *tls, struct idem_error *err)
{
    const struct idem_tls_options *options = &tls->options;
    const char *paths[] = {options->certificate_file, options->key_file,
                           options->authority_file, options->revoked_file};
    enum idem_status status =
        idem_watch_new(&tls->watch, paths, sizeof paths / sizeof *paths, err);

    if (status == IDEM_OK)
        status = tls_context_read(&tls->context, tls->server, options, err);
    if (status == IDEM_OK)
        status = idem_watch_start(tls->watch, read_again, tls, err);
    return status;
}

enum idem_status
tls_new(struct tls **out, bool server, const struct idem_tls_options *options,
        struct idem_error *err)
{
    enum idem_status status = tls_options_check(server, options, err);
    struct tls *tls;

    if (status != IDEM_OK)
        return status;
    tls = calloc(1, sizeof *tls);
    if (!tls)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    tls->io = (struct io){
        .schemes = "tls+tcp tls+tcp4 tls+tcp6 tls+ipc tls+unix tls+abstract "
                   "tls+inproc",
        .bare = PREFIX "tcp://",
        .listen = tls_listen,
        .dialer = tls_dialer,
    };
    tls->server = server;
    tls->options = *options;
    pthread_mutex_init(&tls->lock, NULL);
    if (copy_strings(&tls->options))
        status = read_and_watch(tls, err);
    else
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (status != IDEM_OK) {
        tls_free(tls);
        return status;
    }
    *out = tls;
    return IDEM_OK;
}

void
tls_free(struct tls *tls)
{
    if (!tls)
        return;
    idem_watch_free(tls->watch);
    tls_context_free(tls->context);
    free_strings(&tls->options);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

const struct io *
tls_io(struct tls *tls)
{
    return &tls->io;
}
