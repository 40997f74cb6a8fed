#ifndef DEMO_PROXY_H
#define DEMO_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* What stands between clients and servers and loses answers: every connection
 * is cut after some bytes from the server, and the answer that was about to
 * pass is dropped. One thread of its own; all functions from any thread. */
struct proxy;

#define PROXY_TARGETS_MAX 2

/* Listens on a free port of the loopback. NULL: says why to stderr. */
struct proxy *proxy_open(uint64_t seed);

/* "tcp://127.0.0.1:1234" */
const char *proxy_address(const struct proxy *proxy);

/* Where new connections go, in turn; port 0: nobody is there now. */
void proxy_aim(struct proxy *proxy, unsigned target, uint16_t port);

/* Connections that were cut. */
unsigned proxy_cuts(struct proxy *proxy);

void proxy_close(struct proxy *proxy);

#endif
