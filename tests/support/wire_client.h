#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include "frame.h"
#include "header.h"

/* A peer that speaks the wire by hand, over a blocking socket: for what no
 * client of ours would ever say, and no server. Every wait fails the test after
 * 10 s. */
struct wire {
    int fd;
    uint8_t *bytes; /* received, not taken yet */
    size_t size, room;
    size_t taken;           /* by the last frame */
    uint32_t stream_window; /* that wire_hello says; 0: knows no streams */
    uint32_t codecs;        /* that wire_hello says it can open; 0: none */
};

/* address is "tcp://127.0.0.1:4711". Says nothing yet. */
void wire_connect(struct wire *wire, const char *address);
void wire_close(struct wire *wire);

/* As a server: the next connection to a listening socket. */
void wire_accept(struct wire *wire, int listener);

void wire_write(struct wire *wire, const void *bytes, size_t size);
void wire_send(struct wire *wire, const struct frame *frame);

/* Preface and SETTINGS both ways, as one that takes messages of that many
 * bytes; 0: no limit. Returns what the other end takes. */
struct header_settings wire_hello(struct wire *wire, uint32_t max_message);

/* A whole request: open names the method; payload is the message. */
void wire_open(struct wire *wire, uint32_t stream,
               const struct header_open *open, struct idem_bytes payload);

/* The OPEN of a stream: streams is the method's; payload the request, of one
 * that only the server streams. */
void wire_open_stream(struct wire *wire, uint32_t stream,
                      const struct header_open *open,
                      struct idem_bytes payload);

/* So much more credit for that stream. */
void wire_window(struct wire *wire, uint32_t stream, uint32_t credit);

/* As a server: wait for the next request, past all other frames. Returns its
 * stream. */
uint32_t wire_await_open(struct wire *wire);

/* As a server: its answer; no trailers. */
void wire_answer(struct wire *wire, uint32_t stream,
                 const struct header_end *end, struct idem_bytes payload);

/* The next frame; its views are good until the next call. False: the server
 * has closed the connection. */
bool wire_next(struct wire *wire, struct frame *frame);

/* The next frame of that type, past all others. */
void wire_await(struct wire *wire, uint8_t type, struct frame *frame);

/* The END of that stream, or of any for 0, past all other frames. */
struct header_end wire_end(struct wire *wire, uint32_t stream);

/* Read until the server has closed the connection. */
void wire_await_close(struct wire *wire);

/* Round trip of a PING: what was sent before was seen. */
void wire_ping(struct wire *wire);

#endif
