#ifndef CHANNEL_H
#define CHANNEL_H

#include "io.h"

#include <idem/channel.h>

/* As idem_channel_new, over this transport, which must outlive the channel. */
enum idem_status channel_new_with_io(struct idem_channel **channel,
                                     const struct io *io, const char *target,
                                     const struct idem_channel_options *options,
                                     struct idem_error *err) IDEM_MUST_CHECK;

#endif
