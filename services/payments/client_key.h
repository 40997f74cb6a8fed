#ifndef PAYMENTS_CLIENT_KEY_H
#define PAYMENTS_CLIENT_KEY_H

#include <idem/channel.h>

#include "client_options.h"

/* The commands about a call that was made before: what became of its key
 * ("resolve"), and that it never runs ("abandon"). */
bool client_key_has(const char *command);

/* The number of the status; 64 and a word to stderr: the command line is wrong.
 */
int client_key_run(struct idem_channel *channel,
                   const struct client_options *options);

#endif
