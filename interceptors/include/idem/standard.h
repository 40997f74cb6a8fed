#ifndef IDEM_STANDARD_H
#define IDEM_STANDARD_H

#include <idem/channel.h>
#include <idem/once.h>
#include <idem/server.h>

IDEM_BEGIN_DECLS

/* A channel with the chain that a client wants: policy > deadline > key >
 * retry, and below it token when its options have one. A service config comes
 * in through options->policy (policy.h) and the environment. */
IDEM_API enum idem_status
idem_client_open(struct idem_channel **channel, const char *target,
                 const struct idem_channel_options *options,
                 struct idem_error *err) IDEM_MUST_CHECK;

/**
 * A server with the chain that a service wants: allow > deadline > limit >
 * validate > once, and above it auth when its options have it. options->limits
 * says how much it lets in (limit.h). It also answers grpc.health.v1.Health
 * (health.h), and idem.v1.Ledger (ledger.h) when it has a store.
 *
 * @param store    the authority, owned by the server from here, also on
 *                 failure. NULL: no once, methods of mode NONE only
 * @param options  NULL is all defaults
 * @param once     NULL is all defaults
 */
IDEM_API enum idem_status
idem_server_open(struct idem_server **server, struct idem_store *store,
                 const struct idem_server_options *options,
                 const struct idem_once_options *once, struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
