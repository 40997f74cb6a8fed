#ifndef TLS_SESSION_H
#define TLS_SESSION_H

#include <idem/status.h>

/* One connection's TLS between two heaps of bytes, without any I/O: what comes
 * from the peer is put in, what is for it is taken out. One thread at a time.
 */
struct tls_session;
struct ssl_ctx_st;

enum tls_step {
    TLS_DONE,
    TLS_MORE,   /* bytes of the peer are wanted */
    TLS_CLOSED, /* the peer has said that nothing more comes */
    TLS_BROKEN, /* tls_session_trouble says why */
};

/* host: a client's: the name or IP address that the peer must prove; NULL: a
 * server's. NULL: out of memory, or no host. */
struct tls_session *tls_session_new(struct ssl_ctx_st *context,
                                    const char *host);
void tls_session_free(struct tls_session *session);

/* Where the peer's next bytes go, and how many came. Only when all before are
 * used up: the last step of shake or read was TLS_MORE. NULL: out of memory. */
uint8_t *tls_session_space(struct tls_session *session, size_t *room);
void tls_session_filled(struct tls_session *session, size_t size);

/* There may be something to read without more bytes of the peer. */
bool tls_session_readable(const struct tls_session *session);

/* Go on with the handshake. */
enum tls_step tls_session_shake(struct tls_session *session);

/* After the handshake. TLS_DONE: at least one byte. */
enum tls_step tls_session_read(struct tls_session *session, void *buffer,
                               size_t room, size_t *size);

/* After the handshake: all of it into what is for the peer. False: broken. */
bool tls_session_write(struct tls_session *session, struct idem_bytes bytes);

/* Into what is for the peer: nothing more comes. */
void tls_session_bye(struct tls_session *session);

/* What is for the peer, until landed; empty: nothing. Meanwhile more is
 * gathered for the next time. */
struct idem_bytes tls_session_take_off(struct tls_session *session);
void tls_session_landed(struct tls_session *session);

/* After the handshake: who the peer's certificate says it is: the first URI of
 * its SAN, else the first DNS name, else its CN. "": it has shown none. Lives
 * as long as the session. */
const char *tls_session_identity(const struct tls_session *session);

/* After the handshake: by a ticket of an earlier connection. */
bool tls_session_resumed(const struct tls_session *session);

/* Why it is broken; "" when it is not. */
const char *tls_session_trouble(const struct tls_session *session);

#endif
