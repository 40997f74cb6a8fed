#ifndef TLS_WORLD_H
#define TLS_WORLD_H

#include "certificates.h"
#include "echo_world.h"

#include <idem/tls.h>

/* A folder with an authority's certificate, those of a server and a client that
 * it signed, and who was told what of their being read again. */
struct tls_world {
    struct tempdir dir;
    struct authority *authority;
    struct idem_tls_options server, client; /* as they should be */
    char authority_path[128], server_path[128], server_key_path[128];
    char client_path[128], client_key_path[128];

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    unsigned good, bad; /* readings of the server's files */
    struct idem_error trouble;
};

#define TLS_SERVER "spiffe://bank/pay"
#define TLS_CLIENT "spiffe://bank/teller"

/* Server: SAN IP 127.0.0.1, DNS pay.test. Client: URI TLS_CLIENT. The server
 * asks clients for a certificate and takes those without. */
void tls_world_open(struct tls_world *tls);
void tls_world_close(struct tls_world *tls);

/* Of a test: its state is such a world. */
int tls_set_up(void **state);
int tls_tear_down(void **state);

/* Another certificate for the server. */
void tls_world_issue_server(struct tls_world *tls,
                            const struct certificate_order *order);
void tls_world_issue_client(struct tls_world *tls,
                            const struct certificate_order *order);

/* Until the server's files were read again so often, well or badly. */
void tls_world_await_reloads(struct tls_world *tls, unsigned good,
                             unsigned bad);

/* Echo over it, server and channel with these options. */
struct echo_options tls_world_echo(const struct tls_world *tls,
                                   const struct idem_tls_options *server,
                                   const struct idem_tls_options *client);

#endif
