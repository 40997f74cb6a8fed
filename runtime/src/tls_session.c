#include "tls_session.h"

#include "tls_identity.h"
#include "tls_resume.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FIRST 8192  /* bytes of a receive: enough for a hello … */
#define IN_MAX 65536   /* … and, when they come in heaps, for many records */
#define OUT_FIRST 4096 /* bytes gathered for the peer */
#define OUT_KEPT 65536 /* more is given back when it is sent */
#define TROUBLE_MAX 160

struct bytes {
    uint8_t *data;
    size_t size, room;
};

struct tls_session {
    SSL *ssl;
    char *host; /* a client's */
    struct bytes in;
    size_t in_at; /* of in: used up */
    bool readable;
    struct bytes out, flying;
    char identity[TLS_IDENTITY_MAX];
    char trouble[TROUBLE_MAX];
};

/* --- The heaps, as OpenSSL sees them --- */

static int
heap_read(BIO *bio, char *buffer, int room)
{
    struct tls_session *session = BIO_get_data(bio);
    size_t size = session->in.size - session->in_at;

    BIO_clear_retry_flags(bio);
    if (room <= 0)
        return 0;
    if (size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    if (size > (size_t)room)
        size = (size_t)room;
    memcpy(buffer, session->in.data + session->in_at, size);
    session->in_at += size;
    return (int)size;
}

static bool
reserve(struct bytes *bytes, size_t more)
{
    size_t room = bytes->room ? bytes->room : OUT_FIRST;
    uint8_t *data;

    if (bytes->room - bytes->size >= more)
        return true;
    while (room - bytes->size < more)
        room *= 2;
    data = realloc(bytes->data, room);
    if (!data)
        return false;
    bytes->data = data;
    bytes->room = room;
    return true;
}

static int
heap_write(BIO *bio, const char *data, int size)
{
    struct tls_session *session = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return 0;
    if (!reserve(&session->out, (size_t)size))
        return -1;
    memcpy(session->out.data + session->out.size, data, (size_t)size);
    session->out.size += (size_t)size;
    return size;
}

static long
heap_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *heap_method;

static void
make_heap_method(void)
{
    heap_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
                               "idem's heaps");
    IDEM_ASSERT(heap_method);
    BIO_meth_set_read(heap_method, heap_read);
    BIO_meth_set_write(heap_method, heap_write);
    BIO_meth_set_ctrl(heap_method, heap_control);
}

static bool
connect_heaps(struct tls_session *session)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BIO *bio;

    pthread_once(&once, make_heap_method);
    bio = BIO_new(heap_method);
    if (!bio)
        return false;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    return true;
}

/* --- Its life --- */

/* The name in the certificate's SAN; its subject is not looked at (RFC 9525).
 */
static bool
expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (!host[0])
        return false;
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                        X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    ERR_clear_error();
    /* SSL_set_tlsext_host_name() without its cast of const */
    return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                    TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host) == 1 &&
           X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

static bool
begin(struct tls_session *session, SSL_CTX *context, const char *host)
{
    session->ssl = SSL_new(context);
    if (!session->ssl || !connect_heaps(session))
        return false;
    if (!host) {
        SSL_set_accept_state(session->ssl);
        return true;
    }
    session->host = strdup(host);
    SSL_set_connect_state(session->ssl);
    if (!session->host || !expect(session->ssl, host))
        return false;
    tls_resume(session->ssl, session->host);
    return true;
}

struct tls_session *
tls_session_new(SSL_CTX *context, const char *host)
{
    struct tls_session *session = calloc(1, sizeof *session);

    if (session && !begin(session, context, host)) {
        tls_session_free(session);
        session = NULL;
    }
    ERR_clear_error();
    return session;
}

/* OpenSSL takes a connection that ends without a good-bye for an attack, and
 * its session back; a peer that is killed is none. What is broken stays so. */
void
tls_session_free(struct tls_session *session)
{
    if (session->ssl && !session->trouble[0])
        SSL_set_shutdown(session->ssl, SSL_SENT_SHUTDOWN);
    SSL_free(session->ssl);
    free(session->host);
    free(session->in.data);
    free(session->out.data);
    free(session->flying.data);
    free(session);
}

/* --- From the peer --- */

uint8_t *
tls_session_space(struct tls_session *session, size_t *room)
{
    struct bytes *in = &session->in;
    bool was_full = in->room > 0 && in->size == in->room;
    size_t want = in->room ? in->room : IN_FIRST;

    IDEM_ASSERT(session->in_at == in->size);
    if (was_full && in->room < IN_MAX)
        want = 2 * in->room;
    if (want > in->room) {
        free(in->data);
        in->room = 0;
        in->data = malloc(want);
        if (!in->data)
            return NULL;
        in->room = want;
    }
    in->size = session->in_at = 0;
    *room = in->room;
    return in->data;
}

void
tls_session_filled(struct tls_session *session, size_t size)
{
    session->in.size = size;
    session->readable = true;
}

bool
tls_session_readable(const struct tls_session *session)
{
    return session->readable;
}

/* Of the certificate, when that is what is wrong; else OpenSSL's reason, which
 * may be an alert of the peer's. */
static enum tls_step
broken(struct tls_session *session)
{
    long verified = SSL_get_verify_result(session->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    if (session->trouble[0]) /* the first reason stays */
        return TLS_BROKEN;
    if (verified != X509_V_OK)
        snprintf(session->trouble, sizeof session->trouble,
                 "TLS: the peer's certificate: %s",
                 X509_verify_cert_error_string(verified));
    else
        snprintf(session->trouble, sizeof session->trouble, "TLS: %s",
                 reason ? reason : "broken by the peer");
    ERR_clear_error();
    return TLS_BROKEN;
}

static enum tls_step
step(struct tls_session *session, int result)
{
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_NONE:
        return TLS_DONE;
    case SSL_ERROR_WANT_READ:
        session->readable = false;
        return TLS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_CLOSED;
    default:
        return broken(session);
    }
}

static void
note_identity(struct tls_session *session)
{
    const X509 *x509 = SSL_get0_peer_certificate(session->ssl);

    if (x509 && SSL_get_verify_result(session->ssl) == X509_V_OK)
        tls_identity(session->identity, x509);
}

enum tls_step
tls_session_shake(struct tls_session *session)
{
    enum tls_step next;

    ERR_clear_error();
    next = step(session, SSL_do_handshake(session->ssl));
    if (next == TLS_DONE)
        note_identity(session);
    return next;
}

/* One record after another: each is at most 16 KiB. */
enum tls_step
tls_session_read(struct tls_session *session, void *buffer, size_t room,
                 size_t *size)
{
    enum tls_step next = TLS_DONE;
    size_t some = 0;

    *size = 0;
    ERR_clear_error();
    while (next == TLS_DONE && *size < room) {
        next =
            step(session, SSL_read_ex(session->ssl, (uint8_t *)buffer + *size,
                                      room - *size, &some));
        if (next == TLS_DONE)
            *size += some;
    }
    return *size > 0 ? TLS_DONE : next;
}

/* --- For the peer --- */

bool
tls_session_write(struct tls_session *session, struct idem_bytes bytes)
{
    size_t written;

    ERR_clear_error();
    if (bytes.size == 0 ||
        SSL_write_ex(session->ssl, bytes.data, bytes.size, &written) == 1)
        return true;
    broken(session);
    return false;
}

void
tls_session_bye(struct tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
}

struct idem_bytes
tls_session_take_off(struct tls_session *session)
{
    struct bytes empty = session->flying;

    session->flying = session->out;
    session->out = empty;
    return (struct idem_bytes){session->flying.data, session->flying.size};
}

void
tls_session_landed(struct tls_session *session)
{
    session->flying.size = 0;
    if (session->flying.room <= OUT_KEPT)
        return;
    free(session->flying.data);
    session->flying = (struct bytes){0};
}

const char *
tls_session_identity(const struct tls_session *session)
{
    return session->identity;
}

bool
tls_session_resumed(const struct tls_session *session)
{
    return SSL_session_reused(session->ssl) == 1;
}

const char *
tls_session_trouble(const struct tls_session *session)
{
    return session->trouble;
}
