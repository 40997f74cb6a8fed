#ifndef CHAIN_H
#define CHAIN_H

#include <idem/interceptor.h>

#define CHAIN_MAX 24

/* The interceptors of a channel or server, in order. Built by one thread, then
 * sealed and read by all. */
struct chain {
    struct idem_interceptor *at[CHAIN_MAX];
    unsigned count;
    unsigned n_listen; /* that have a message hook */

    /* The walk's plan: only those that have a hook get a turn. down[i]: the
     * first from place i on with a request hook; count: the endpoint. up[i]:
     * one more than the last above i with a reply hook; 0: none. */
    unsigned char down[CHAIN_MAX + 1], up[CHAIN_MAX + 1];
    bool sealed;
    char text[512]; /* "deadline > key > retry" */
};

/* Owns the interceptor from here, also on failure. FAILED_PRECONDITION when
 * sealed, RESOURCE_EXHAUSTED when full. Keeps the bands in order. */
enum idem_status chain_add(struct chain *chain,
                           struct idem_interceptor *interceptor,
                           struct idem_error *err) IDEM_MUST_CHECK;

void chain_seal(struct chain *chain);
bool chain_has_band(const struct chain *chain, enum idem_band band);

/* Tell each interceptor to let its calls go. */
void chain_stop(struct chain *chain);
void chain_free(struct chain *chain);

#endif
