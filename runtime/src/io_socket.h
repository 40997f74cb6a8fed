#ifndef IO_SOCKET_H
#define IO_SOCKET_H

#include "io.h"

#include <sys/socket.h>

/* What the files of the socket transport share: io_socket.c (streams),
 * io_socket_listen.c, io_socket_dial.c, io_socket_place.c (addresses). */

#define SOCKET_ADDRESS_MAX 256

/* An address taken apart: "tcp://127.0.0.1:7070", "ipc:///run/pay.sock". */
struct socket_place {
    int family; /* AF_UNIX; of tcp AF_UNSPEC, AF_INET or AF_INET6 */
    char host[SOCKET_ADDRESS_MAX]; /* "": any; of AF_UNIX the path */
    char port[8];                  /* of tcp, "0" to "65535" */
};

/* INVALID_ARGUMENT names the rule that it breaks. */
enum idem_status socket_place_read(struct socket_place *place,
                                   const char *address, struct idem_error *err)
    IDEM_MUST_CHECK;

/* The sockaddr of a path, whose length socket_place_read has checked. */
socklen_t socket_path(struct sockaddr_storage *where, const char *path);

/* "tcp://127.0.0.1:4711"; "" of a path. */
void socket_address_write(char text[SOCKET_ADDRESS_MAX],
                          const struct sockaddr_storage *where);

/* A stream over a connected socket that does not block, and which it owns from
 * now on, also when there is no memory for one (NULL). */
struct io_stream *socket_stream_new(int fd);

enum idem_status socket_listen(const struct io *io, const char *address,
                               struct io_listener **listener,
                               struct idem_error *err);
enum idem_status socket_dialer(const struct io *io, const char *address,
                               struct io_dialer **dialer,
                               struct idem_error *err);

#endif
