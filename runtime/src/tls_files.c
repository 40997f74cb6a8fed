#include "tls_files.h"

#include "tls_resume.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WHY_MAX 128
#define TICKET_S (60 * 60)

/* Forward secrecy and authenticated encryption only, also with 1.2 (RFC 9325,
 * 4.2); 1.3 has nothing else. */
#define CIPHERS_OF_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* --- Rules --- */

static enum idem_status
check_client(const struct idem_tls_options *options, struct idem_error *err)
{
    if (options->client_certificate)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "client_certificate is an option of servers");
    return IDEM_OK;
}

static enum idem_status
check_server(const struct idem_tls_options *options, struct idem_error *err)
{
    if (!options->certificate_file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a server with TLS needs a certificate_file");
    if (options->client_certificate && !options->authority_file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "client_certificate needs an authority_file");
    if (options->server_name)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "server_name is an option of channels");
    return IDEM_OK;
}

enum idem_status
tls_options_check(bool server, const struct idem_tls_options *options,
                  struct idem_error *err)
{
    if (options->min_version != 0 && options->min_version != IDEM_TLS_1_2 &&
        options->min_version != IDEM_TLS_1_3)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "min_version %d is neither IDEM_TLS_1_2 nor "
                         "IDEM_TLS_1_3",
                         (int)options->min_version);
    if (options->revoked_file && !options->authority_file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "revoked_file needs an authority_file");
    if (options->key_file && !options->certificate_file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "key_file needs a certificate_file");
    return server ? check_server(options, err) : check_client(options, err);
}

/* --- Files --- */

/* Why the last call of OpenSSL failed. */
static enum idem_status
refuse(struct idem_error *err, const char *what, const char *path)
{
    unsigned long code = ERR_peek_last_error();
    char text[WHY_MAX] = "no reason is given";
    const char *reason = ERR_reason_error_string(code);

    /* A system error is errno's number, which has no reason string. */
    if (ERR_SYSTEM_ERROR(code))
        snprintf(text, sizeof text, "%s", strerror(ERR_GET_REASON(code)));
    else if (reason)
        snprintf(text, sizeof text, "%s", reason);
    ERR_clear_error();
    return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s %s: %s", what, path, text);
}

/* OpenSSL names another of its errors when a file is not there. */
static enum idem_status
check_readable(const char *what, const char *path, struct idem_error *err)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s %s: %s", what, path,
                         strerror(errno));
    (void)fclose(file);
    return IDEM_OK;
}

/* Never asks at a terminal. */
static int
give_password(char *buffer, int room, int for_writing, void *with)
{
    const char *password = with;
    size_t size = password ? strlen(password) : 0;

    (void)for_writing;
    if (size > (size_t)room)
        return 0;
    if (size > 0)
        memcpy(buffer, password, size);
    return (int)size;
}

/* Of another pair, or of another kind. */
static bool
is_mismatch(unsigned long code)
{
    int reason = ERR_GET_REASON(code);

    return (ERR_GET_LIB(code) == ERR_LIB_X509 &&
            (reason == X509_R_KEY_VALUES_MISMATCH ||
             reason == X509_R_KEY_TYPE_MISMATCH)) ||
           (ERR_GET_LIB(code) == ERR_LIB_SSL &&
            reason == SSL_R_NO_CERTIFICATE_ASSIGNED);
}

static enum idem_status
read_own(SSL_CTX *context, const struct idem_tls_options *options,
         struct idem_error *err)
{
    const char *certificate = options->certificate_file;
    const char *key = options->key_file ? options->key_file : certificate;
    enum idem_status status = check_readable("certificate", certificate, err);

    if (status == IDEM_OK)
        status = check_readable("key", key, err);
    if (status != IDEM_OK)
        return status;
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(
        context, (void *)(uintptr_t)options->key_password);
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return refuse(err, "certificate", certificate);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(context) == 1)
        return IDEM_OK;
    if (!is_mismatch(ERR_peek_last_error()))
        return refuse(err, "key", key);
    ERR_clear_error();
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "key %s is not that of certificate %s", key, certificate);
}

static enum idem_status
read_authorities(SSL_CTX *context, bool server, const char *path,
                 struct idem_error *err)
{
    STACK_OF(X509_NAME) * names;
    enum idem_status status = check_readable("authorities", path, err);

    if (status != IDEM_OK)
        return status;
    if (SSL_CTX_load_verify_file(context, path) != 1)
        return refuse(err, "authorities", path);
    if (!server)
        return IDEM_OK;
    names = SSL_load_client_CA_file(path);
    if (!names)
        return refuse(err, "authorities", path);
    SSL_CTX_set_client_CA_list(context, names);
    return IDEM_OK;
}

/* Whom the authorities have taken their word back from. All of the file's lists
 * count; a peer's certificate must have one of its authority's. */
static enum idem_status
read_revoked(SSL_CTX *context, const char *path, struct idem_error *err)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    enum idem_status status = check_readable("revocation list", path, err);
    X509_LOOKUP *lookup;

    if (status != IDEM_OK)
        return status;
    lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) < 1)
        return refuse(err, "revocation list", path);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return IDEM_OK;
}

static enum idem_status
read_trust(SSL_CTX *context, bool server,
           const struct idem_tls_options *options, struct idem_error *err)
{
    int mode = SSL_VERIFY_NONE;

    if (options->authority_file) {
        enum idem_status status =
            read_authorities(context, server, options->authority_file, err);

        if (status != IDEM_OK)
            return status;
        mode = SSL_VERIFY_PEER;
    } else if (!server) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            return refuse(err, "authorities", "of the system");
        mode = SSL_VERIFY_PEER;
    }
    if (options->revoked_file) {
        enum idem_status status =
            read_revoked(context, options->revoked_file, err);

        if (status != IDEM_OK)
            return status;
    }
    if (options->client_certificate)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, mode, NULL);
    return IDEM_OK;
}

/* Resumption by tickets, whose keys are this context's: when the files are read
 * again, no ticket from before counts, and each peer shows its certificate. No
 * data before the handshake is over: it could be sent again by others. */
static bool
set_resumption(SSL_CTX *context, bool server)
{
    static const unsigned char name[] = "idem";

    SSL_CTX_set_timeout(context, TICKET_S);
    if (!server)
        return tls_resume_init(context);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_session_id_context(context, name, sizeof name - 1) ==
               1 &&
           SSL_CTX_set_num_tickets(context, 1) == 1;
}

/* No renegotiation: it is work for the asking. */
static bool
set_rules(SSL_CTX *context, enum idem_tls_version min_version)
{
    int version = min_version == IDEM_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;

    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION |
                                     SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return SSL_CTX_set_min_proto_version(context, version) == 1 &&
           SSL_CTX_set_cipher_list(context, CIPHERS_OF_1_2) == 1;
}

static enum idem_status
fill(SSL_CTX *context, bool server, const struct idem_tls_options *options,
     struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    if (!set_rules(context, options->min_version) ||
        !set_resumption(context, server))
        return refuse(err, "TLS", "rules");
    if (options->certificate_file)
        status = read_own(context, options, err);
    if (status == IDEM_OK)
        status = read_trust(context, server, options, err);
    return status;
}

enum idem_status
tls_context_read(SSL_CTX **out, bool server,
                 const struct idem_tls_options *options, struct idem_error *err)
{
    SSL_CTX *context =
        SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    enum idem_status status;

    if (!context)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    ERR_clear_error();
    status = fill(context, server, options, err);
    if (status != IDEM_OK) {
        SSL_CTX_free(context);
        return status;
    }
    *out = context;
    return IDEM_OK;
}

void
tls_context_free(SSL_CTX *context)
{
    SSL_CTX_free(context);
}
