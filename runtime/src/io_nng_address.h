#ifndef IO_NNG_ADDRESS_H
#define IO_NNG_ADDRESS_H

#include <stddef.h>

struct nng_stream;

/* Who is at the other end, as an address of ours: "tcp://10.0.0.7:51234",
 * "tcp://[::1]:51234", "ipc:///run/pay.sock". A client's end of a unix socket
 * has no name: then that of our end. "" when nng knows neither. */
void io_nng_peer(struct nng_stream *stream, char *text, size_t room);

#endif
