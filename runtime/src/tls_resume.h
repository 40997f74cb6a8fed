#ifndef TLS_RESUME_H
#define TLS_RESUME_H

#include <stdbool.h>

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* OpenSSL's SSL */

/* Sessions that a client may resume: the last ticket of each of a few hosts. A
 * ticket is used once, and only for the host whose certificate was looked at
 * when it was given. They belong to their context: one that was read again
 * begins without any. */

/* False: out of memory. */
bool tls_resume_init(struct ssl_ctx_st *context);

/* Before the handshake: resume the host's session, if there is one. host lives
 * as long as ssl. */
void tls_resume(struct ssl_st *ssl, const char *host);

#endif
