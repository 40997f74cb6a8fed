#ifndef SERVER_H
#define SERVER_H

#include "io.h"

#include <idem/server.h>

/* As idem_server_listen, over this transport, which must outlive the server. */
enum idem_status server_listen_with_io(struct idem_server *server,
                                       const struct io *io, const char *address,
                                       struct idem_error *err) IDEM_MUST_CHECK;

#endif
