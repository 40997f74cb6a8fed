#ifndef IDEM_TLS_H
#define IDEM_TLS_H

#include <idem/status.h>

/* TLS 1.2 and 1.3 for addresses that begin with "tls+": "tls+tcp://pay:7071".
 * docs/security.md says how to set it up. Files are PEM; they are read again
 * when they change, for connections from then on, and a bad one changes
 * nothing. */

enum idem_tls_version {
    IDEM_TLS_1_2 = 2,
    IDEM_TLS_1_3 = 3,
};

/* The files were read again; NULL: all is well, and new connections use them.
 * Else what is wrong, and those from before are used on. On a thread of the
 * library. */
typedef void idem_tls_reloaded_fn(void *with, const struct idem_error *err);

/* All zero is all defaults; copied by who takes it. */
struct idem_tls_options {
    /* One's own certificate, then those that lead to its authority. A server
     * must have one; a client only when the server asks for it. */
    const char *certificate_file;
    const char *key_file;     /* its private key; NULL: in certificate_file */
    const char *key_password; /* that the key is encrypted with; NULL: it is
                               * not */

    /* Who may have signed the peer's certificate. Client: NULL: the system's
     * authorities. Server: NULL: clients are not asked for a certificate. */
    const char *authority_file;

    /* Certificates that do not count any more: lists (CRLs) of the authorities.
     * Each peer's certificate must have one of its authority's that is not over
     * itself. NULL: none are looked at. */
    const char *revoked_file;

    /* Server: turn away who has no certificate of authority_file. False: who
     * has one is known by it, who has none is nobody. */
    bool client_certificate;

    /* Client: a name (SAN, host or IP address) that the server's certificate
     * must have. NULL: the host of the address, or of a dns:// target. */
    const char *server_name;

    enum idem_tls_version min_version; /* 0: 1.2 */
    idem_tls_reloaded_fn *reloaded;    /* NULL: nobody is told */
    void *with;                        /* reloaded's */
};

#endif
