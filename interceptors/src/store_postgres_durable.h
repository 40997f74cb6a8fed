#ifndef STORE_POSTGRES_DURABLE_H
#define STORE_POSTGRES_DURABLE_H

#include "store_postgres_session.h"

/* Where a standby has to confirm each commit (synchronous_standby_names), a
 * wait for it that is cancelled, by an operator or a time-out, leaves a commit
 * that this server sees and the next primary may not have. It is told by a
 * warning only (dedup.md 7). From then on no word is given of what stands, also
 * of what others wrote, before a later commit of ours is confirmed.
 *
 * Another server's store does not know: what was committed so it may tell as
 * done. */

/* Before done of tickets that this session served: verdicts that must not be
 * told are taken back. False: some were, and what they said may stand. */
bool pg_durable_check(struct pg_session *session,
                      struct idem_ticket *const *tickets, unsigned n);

#endif
