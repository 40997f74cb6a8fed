#ifndef IO_WORLD_H
#define IO_WORLD_H

#include "support.h"

#include "io.h"
#include "tempdir.h"

#include <pthread.h>

/* Two ends of a real connection, and operations that are waited for. */

struct event {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool over;
    enum idem_status result;
    size_t size;
    struct io_stream *stream;
};

#define EVENT                                                                  \
    {                                                                          \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0        \
    }

struct world {
    struct tempdir dir;
    struct io_listener *listener;
    struct io_dialer *dialer;
    struct io_stream *near, *far;
};
void event_tell(struct event *event, enum idem_status result, size_t size,
                struct io_stream *stream);
void event_opened(void *with, struct io_stream *stream,
                  const struct idem_error *err);
void event_await(struct event *event);

/* The transport of an address. */
const struct io *transport(const char *address);
struct io_listener *listen_at(const char *address);
struct io_dialer *dialer_to(const char *address);

/* Dials once; NULL: refused. */
struct io_stream *dial_once(const char *address);
int io_set_up(void **state);
void end_of(struct io_stream *stream);
int io_tear_down(void **state);

#define OVER(place, test)                                                      \
    {                                                                          \
#test ", " place, test, io_set_up, io_tear_down,                       \
            (void *)(uintptr_t)place                                           \
    }
#define OVER_ALL(test)                                                         \
    OVER("tcp://127.0.0.1:0", test), OVER("tcp6://[::1]:0", test),             \
        OVER("ipc:", test), OVER("nng+tcp://127.0.0.1:0", test),               \
        OVER("nng+ipc:", test)

#endif
