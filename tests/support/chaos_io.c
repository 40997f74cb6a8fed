#include "chaos_inside.h"

#include <stdlib.h>

struct chaos_listener {
    struct io_listener base;
    struct io_listener *inner;
    struct chaos_io *chaos;
    io_open_fn *done;
    void *with;
};

struct chaos_dialer {
    struct io_dialer base;
    struct io_dialer *inner;
    struct chaos_io *chaos;
    io_open_fn *done;
    void *with;
    struct inproc_task task;
};

struct chaos_script
chaos_script_of(struct chaos_io *chaos)
{
    struct chaos_script script;

    pthread_mutex_lock(&chaos->lock);
    script = chaos->script;
    pthread_mutex_unlock(&chaos->lock);
    return script;
}

/* --- Listeners --- */

static void
accepted(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct chaos_listener *listener = with;

    listener->done(listener->with, chaos_wrap(listener->chaos, stream), err);
}

static bool
chaos_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->done = done;
    listener->with = with;
    return listener->inner->ops->accept(listener->inner, accepted, listener);
}

static const char *
chaos_address(const struct io_listener *base)
{
    const struct chaos_listener *listener = (const struct chaos_listener *)base;

    return listener->inner->ops->address(listener->inner);
}

static void
chaos_listener_close(struct io_listener *base)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->inner->ops->close(listener->inner);
}

static void
chaos_listener_free(struct io_listener *base)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->inner->ops->free(listener->inner);
    free(listener);
}

static const struct io_listener_ops listener_ops = {
    chaos_accept,
    chaos_address,
    chaos_listener_close,
    chaos_listener_free,
};

static enum idem_status
chaos_listen(const struct io *io, const char *address, struct io_listener **out,
             struct idem_error *err)
{
    struct chaos_io *chaos = (struct chaos_io *)(uintptr_t)io;
    struct chaos_listener *listener = calloc(1, sizeof *listener);
    enum idem_status status;

    IDEM_ASSERT(listener);
    listener->base.ops = &listener_ops;
    listener->chaos = chaos;
    status = chaos->inner->listen(chaos->inner, address, &listener->inner, err);
    if (status == IDEM_OK)
        *out = &listener->base;
    else
        free(listener);
    return status;
}

/* --- Dialers --- */

static void
dialed(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct chaos_dialer *dialer = with;

    dialer->done(dialer->with, chaos_wrap(dialer->chaos, stream), err);
}

static void
run_refused(struct inproc_task *task)
{
    struct chaos_dialer *dialer =
        (struct chaos_dialer *)((char *)task -
                                offsetof(struct chaos_dialer, task));
    struct idem_error err;

    idem_fail(&err, IDEM_UNAVAILABLE, "refused by the script");
    dialer->done(dialer->with, NULL, &err);
}

static bool
chaos_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->done = done;
    dialer->with = with;
    if (!chaos_script_of(dialer->chaos).refuse)
        return dialer->inner->ops->dial(dialer->inner, dialed, dialer);
    dialer->task.run = run_refused;
    inproc_post(&dialer->task);
    return true;
}

static void
chaos_dialer_close(struct io_dialer *base)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->inner->ops->close(dialer->inner);
}

static void
chaos_dialer_free(struct io_dialer *base)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->inner->ops->free(dialer->inner);
    free(dialer);
}

static const struct io_dialer_ops dialer_ops = {
    chaos_dial,
    chaos_dialer_close,
    chaos_dialer_free,
};

static enum idem_status
chaos_dialer_of(const struct io *io, const char *address,
                struct io_dialer **out, struct idem_error *err)
{
    struct chaos_io *chaos = (struct chaos_io *)(uintptr_t)io;
    struct chaos_dialer *dialer = calloc(1, sizeof *dialer);
    enum idem_status status;

    IDEM_ASSERT(dialer);
    dialer->base.ops = &dialer_ops;
    dialer->chaos = chaos;
    status = chaos->inner->dialer(chaos->inner, address, &dialer->inner, err);
    if (status == IDEM_OK)
        *out = &dialer->base;
    else
        free(dialer);
    return status;
}

/* --- The script --- */

struct chaos_script
chaos_peace(void)
{
    return (struct chaos_script){
        .drop_write = CHAOS_NEVER,
        .twice_write = CHAOS_NEVER,
        .cut_sent = CHAOS_NEVER,
        .cut_received = CHAOS_NEVER,
    };
}

void
chaos_init(struct chaos_io *chaos, const struct io *inner)
{
    *chaos = (struct chaos_io){
        .io = {.schemes = inner->schemes,
               .listen = chaos_listen,
               .dialer = chaos_dialer_of},
        .inner = inner,
        .script = chaos_peace(),
    };
    pthread_mutex_init(&chaos->lock, NULL);
    pthread_cond_init(&chaos->changed, NULL);
}

void
chaos_fini(struct chaos_io *chaos)
{
    pthread_cond_destroy(&chaos->changed);
    pthread_mutex_destroy(&chaos->lock);
}
