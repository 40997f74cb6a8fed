#ifndef LOOPBACK_H
#define LOOPBACK_H

/* TCP on 127.0.0.1 for tests. */

/* A port that nobody listens on at this moment, another one each time; nobody
 * gets it who does not ask for it. */
unsigned loopback_free_port(void);

/* A connected socket, or -1. */
int loopback_connect(unsigned port);

/* A listening socket on a free port, which is written to *port. */
int loopback_listen(unsigned *port);

#endif
