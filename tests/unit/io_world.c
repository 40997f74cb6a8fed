#include "io_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
event_tell(struct event *event, enum idem_status result, size_t size,
           struct io_stream *stream)
{
    pthread_mutex_lock(&event->lock);
    event->over = true;
    event->result = result;
    event->size = size;
    event->stream = stream;
    pthread_cond_signal(&event->cond);
    pthread_mutex_unlock(&event->lock);
}

void
event_opened(void *with, struct io_stream *stream, const struct idem_error *err)
{
    event_tell(with, err->status, 0, stream);
}

void
event_await(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    while (!event->over)
        pthread_cond_wait(&event->cond, &event->lock);
    event->over = false;
    pthread_mutex_unlock(&event->lock);
}

const struct io *
transport(const char *address)
{
    const struct io *io = NULL;

    assert_int_equal(io_find(address, &io, NULL), IDEM_OK);
    return io;
}

struct io_listener *
listen_at(const char *address)
{
    const struct io *io = transport(address);
    struct io_listener *listener = NULL;
    struct idem_error err;

    if (io->listen(io, address, &listener, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return listener;
}

struct io_dialer *
dialer_to(const char *address)
{
    const struct io *io = transport(address);
    struct io_dialer *dialer = NULL;

    assert_int_equal(io->dialer(io, address, &dialer, NULL), IDEM_OK);
    return dialer;
}

struct io_stream *
dial_once(const char *address)
{
    struct io_dialer *dialer = dialer_to(address);
    struct event dialed = EVENT;

    assert_true(dialer->ops->dial(dialer, event_opened, &dialed));
    event_await(&dialed);
    dialer->ops->free(dialer);
    return dialed.stream;
}

/* "tcp://127.0.0.1:0", or "ipc:" for a path in the world's folder. */
static void
name_place(struct world *w, const char *place, char address[256])
{
    char path[128];

    if (strstr(place, "://"))
        snprintf(address, 256, "%s", place);
    else
        snprintf(address, 256, "%s//%s", place,
                 tempdir_file(&w->dir, "io.sock", path, sizeof(path)));
}

int
io_set_up(void **state)
{
    static struct world world;
    struct event accepted = EVENT, dialed = EVENT;
    struct world *w = &world;
    char address[256];

    tempdir_open(&w->dir);
    name_place(w, *state, address);
    w->listener = listen_at(address);
    w->dialer = dialer_to(w->listener->ops->address(w->listener));
    assert_true(w->listener->ops->accept(w->listener, event_opened, &accepted));
    assert_true(w->dialer->ops->dial(w->dialer, event_opened, &dialed));
    event_await(&accepted);
    event_await(&dialed);
    w->near = dialed.stream;
    w->far = accepted.stream;
    assert_non_null(w->near);
    assert_non_null(w->far);
    *state = w;
    return 0;
}

void
end_of(struct io_stream *stream)
{
    stream->ops->close(stream);
    stream->ops->free(stream);
}

int
io_tear_down(void **state)
{
    struct world *w = *state;

    end_of(w->near);
    end_of(w->far);
    w->dialer->ops->free(w->dialer);
    w->listener->ops->free(w->listener);
    tempdir_close(&w->dir);
    return 0;
}
