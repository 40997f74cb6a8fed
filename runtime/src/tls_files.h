#ifndef TLS_FILES_H
#define TLS_FILES_H

#include <idem/tls.h>

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* What holds of options together, whatever the files say.
 *
 * @retval IDEM_INVALID_ARGUMENT  the option and the rule */
enum idem_status tls_options_check(bool server,
                                   const struct idem_tls_options *options,
                                   struct idem_error *err) IDEM_MUST_CHECK;

/* Read the files: a new context, to be freed with tls_context_free.
 *
 * @retval IDEM_INVALID_ARGUMENT  a file cannot be used: it and why */
enum idem_status tls_context_read(struct ssl_ctx_st **context, bool server,
                                  const struct idem_tls_options *options,
                                  struct idem_error *err) IDEM_MUST_CHECK;

void tls_context_free(struct ssl_ctx_st *context);

#endif
