#ifndef JOURNAL_PEER_H
#define JOURNAL_PEER_H

#include "journal_world.h"

#include "wire_client.h"

/* A client of journal.proto's streams that speaks the wire by hand. */

/* streams of OPEN, with a key for each message. */
#define JOURNAL_PEER_WRITES 5 /* Write, Push: a client stream */
#define JOURNAL_PEER_ASKS 7   /* Ask: a bidirectional one */

/* Connect to the world's server. Both take messages up to max_message bytes (0:
 * any), and window is the peer's credit for each stream. */
void journal_peer_meet(struct wire *wire, const struct journal_world *world,
                       uint32_t window, uint32_t max_message);

/* OPEN of a client's stream: no message. */
void journal_peer_open(struct wire *wire, uint32_t stream,
                       const struct header_open *open);

void journal_peer_say(struct wire *wire, uint32_t stream,
                      const journal_entry *entry, uint64_t ack_below,
                      uint8_t flags);

/* LAST, without a message. */
void journal_peer_last(struct wire *wire, uint32_t stream);

#endif
