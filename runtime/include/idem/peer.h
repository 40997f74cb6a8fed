#ifndef IDEM_PEER_H
#define IDEM_PEER_H

#include <idem/base.h>

/* The other end of the connection that a call came on. */
struct idem_peer {
    const char *address;  /* "tls+tcp://10.0.0.7:51234"; "" when unknown */
    const char *identity; /* what its verified certificate says: the first URI
                           * of the SAN, else the first DNS name, else the CN;
                           * "": it has shown none */
    bool secure;          /* TLS, or inside the process */
};

/* Who makes the call, as far as it was proved: by a token, or by the peer's
 * certificate. */
struct idem_principal {
    struct idem_bytes identity; /* "svc:teller", "spiffe://bank/teller" */
    const struct idem_bytes *roles;
    unsigned n_roles;
};

#endif
