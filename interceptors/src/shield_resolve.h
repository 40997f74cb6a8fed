#ifndef SHIELD_RESOLVE_H
#define SHIELD_RESOLVE_H

#include <stdbool.h>

#define SHIELD_ADDRESS_MAX 64

/* A host name turned into an address on a thread of its own, because
 * getaddrinfo blocks for as long as it likes. One at a time; whoever gives it
 * up does not wait for it. */
struct shield_resolve;
struct idem_turns;

/* An address is one already: nothing to look up. */
bool shield_is_address(const char *host);

/* When it is over, a turn is asked for. NULL: out of memory or threads. */
struct shield_resolve *shield_resolve_start(const char *host,
                                            struct idem_turns *turns);

/* True: it is over. address is "" when there is none. */
bool shield_resolve_done(struct shield_resolve *resolve,
                         char address[SHIELD_ADDRESS_MAX]);

/* Also when it is not over. NULL is fine. */
void shield_resolve_free(struct shield_resolve *resolve);

#endif
