#ifndef TALKS_H
#define TALKS_H

#include "bench.idem.h"
#include "side.h"

/* The streams of bench.proto: Talk goes to and fro, one message under way each;
 * Watch is a stream of the server's that never ends by itself. */

/* For the service's table. */
enum idem_status talks_serve(struct idem_context *context,
                             struct bench_talk_server_stream *stream);
enum idem_status talks_watch(struct idem_context *context,
                             const bench_request *request,
                             struct bench_watch_server_stream *stream);

/* Begin options->in_flight of them, turn and turn about on the channels. Each
 * message that comes is a call of the tally. They live as long as the process.
 */
void talks_start(struct idem_channel *const *channels,
                 const struct side_options *options, struct tally *tally);
void talks_start_watching(struct idem_channel *const *channels,
                          const struct side_options *options,
                          struct tally *tally);

#endif
