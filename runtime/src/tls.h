#ifndef TLS_H
#define TLS_H

#include "io.h"

#include <idem/tls.h>

/* One side's TLS: what its files say at the moment, and the transport that puts
 * it around another one. Streams live on without it. */
struct tls;

/**
 * @retval IDEM_INVALID_ARGUMENT  a file, or an option, breaks a rule: both are
 *                                named
 */
enum idem_status tls_new(struct tls **tls, bool server,
                         const struct idem_tls_options *options,
                         struct idem_error *err) IDEM_MUST_CHECK;

/* When no listener and dialer of its transport is left. NULL is fine. */
void tls_free(struct tls *tls);

/* Addresses "tls+tcp://…", "tls+ipc://…", …; as long as tls. */
const struct io *tls_io(struct tls *tls);

/* The address is one for TLS. */
bool tls_is_address(const char *address);

#endif
