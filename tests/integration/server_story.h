#ifndef SERVER_STORY_H
#define SERVER_STORY_H

#include "echo_world.h"
#include "wire_client.h"

/* What the tests of a server say of its calls. */

struct header_open open_of(const char *method);

/* It answers a call of our own client. */
void assert_works(struct echo_world *world);

/* Turned away before its handler, and not for good. */
void assert_refused(struct header_end end, enum idem_status status);

#endif
