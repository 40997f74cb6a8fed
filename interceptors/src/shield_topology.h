#ifndef SHIELD_TOPOLOGY_H
#define SHIELD_TOPOLOGY_H

#include "shield_url.h"

#define SHIELD_SLOTS 16384

/* What Sentinels and the nodes of a cluster say of where things are. All of it
 * is text from outside: what cannot be read is not there. */

/* The slot of a key: CRC16 of the key, or of what its first braces hold. */
unsigned shield_slot_of(struct idem_bytes key);

/* Slots first to last are at that place. */
typedef void shield_range_fn(void *with, const struct shield_place *place,
                             unsigned first, unsigned last);

/* CLUSTER NODES: each range of slots and its master. here: the host that was
 * asked, for a node that does not know its own address. */
void shield_read_cluster(struct idem_bytes text, const char *here,
                         shield_range_fn *range, void *with);

/* INFO sentinel: where the master of that name is. False: it is not known. */
bool shield_read_master(struct shield_place *place, struct idem_bytes text,
                        const char *name);

struct shield_redirect {
    struct shield_place place;
    bool asking; /* ASK: for this command alone. MOVED: for good */
};

/* "MOVED 3999 127.0.0.1:6381", "ASK …". False: another error. */
bool shield_read_redirect(struct shield_redirect *redirect,
                          struct idem_bytes text, const char *here);

#endif
