#include "hex.h"

#include <idem/call.h>
#include <idem/digest.h>
#include <idem/log.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES                                                         \
    1600 /* all that there is, each byte of a text escaped                     \
          */
#define KEY_HASH_BYTES 8

struct log {
    struct idem_interceptor base;
    struct idem_log_options options;
};

/* Kept with each call, in its arena. */
struct begun {
    int64_t at_ns;
};

struct line {
    char text[LINE_MAX_BYTES];
    size_t used;
};

static void IDEM_PRINTF(2, 3) add(struct line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->used;
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    if (size > 0)
        line->used += (size_t)size < room ? (size_t)size : room - 1;
}

/* logfmt's: a text in quotes, and in it \" \\ and \n. Texts of a peer must not
 * begin a line of their own. */
static void
add_quoted(struct line *line, const char *name, struct idem_bytes text)
{
    if (text.size == 0)
        return;
    add(line, " %s=\"", name);
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = text.data[i];

        if (byte == '"' || byte == '\\')
            add(line, "\\%c", byte);
        else if (byte == '\n')
            add(line, "\\n");
        else
            add(line, "%c", byte < ' ' || byte == 0x7F ? ' ' : byte);
    }
    add(line, "\"");
}

static void
add_key(struct line *line, const struct log *log, struct idem_bytes key)
{
    uint8_t hash[IDEM_SHA256_SIZE];
    char digits[2 * KEY_HASH_BYTES + 1];

    if (key.size == 0)
        return;
    if (log->options.keys) {
        add_quoted(line, "key", key);
        return;
    }
    idem_sha256_of(key, hash);
    hex_write(digits, hash, KEY_HASH_BYTES);
    add(line, " key_hash=%s", digits);
}

/* --- The call's end --- */

static void
add_attempts(struct line *line, const struct idem_call *call)
{
    const struct idem_outcome *outcome = &call->outcome;

    if (call->context) {
        add(line, " attempt=%u", call->attempt);
        return;
    }
    add(line, " stop=%s attempts=%u", idem_stop_name(outcome->stop),
        outcome->attempts);
    if (outcome->stop != IDEM_STOP_UNASKED &&
        outcome->last_status != outcome->status)
        add(line, " last=%s", idem_status_name(outcome->last_status));
}

static void
write_line(const struct log *log, const struct idem_call *call, int64_t ns)
{
    const struct idem_outcome *outcome = &call->outcome;
    struct line line = {.used = 0};

    add(&line, "method=%s status=%s effect=%s", call->method->name,
        idem_status_name(outcome->status), idem_effect_name(outcome->effect));
    add_attempts(&line, call);
    add(&line, " ms=%" PRId64, ns / 1000000);
    add_key(&line, log, call->key);
    if (call->context)
        add_quoted(&line, "tenant", call->tenant);
    if (outcome->reason[0])
        add(&line, " reason=%s", outcome->reason);
    if (outcome->status != IDEM_OK)
        add_quoted(&line, "message", idem_bytes_of(outcome->message));
    log->options.line(log->options.with, line.text);
}

static bool
is_trouble(const struct idem_call *call)
{
    unsigned attempts = call->context ? call->attempt : call->outcome.attempts;

    return call->outcome.status != IDEM_OK || attempts > 1;
}

static enum idem_step
begin(struct idem_interceptor *self, struct idem_call *call)
{
    struct begun *begun = idem_arena_alloc(call->arena, sizeof *begun);

    IDEM_ASSERT(begun);
    begun->at_ns = call->clock->monotonic_ns(call->clock);
    idem_call_set_state(call, self, begun);
    return IDEM_NEXT;
}

static enum idem_step
end(struct idem_interceptor *self, struct idem_call *call)
{
    const struct log *log = (const struct log *)self;
    const struct begun *begun = idem_call_state(call, self);

    if (!log->options.troubles_only || is_trouble(call))
        write_line(log, call,
                   call->clock->monotonic_ns(call->clock) - begun->at_ns);
    return IDEM_NEXT;
}

static void
log_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops log_ops = {
    .name = "log",
    .band = IDEM_BAND_OBSERVE,
    .request = begin,
    .reply = end,
    .free = log_free,
};

enum idem_status
idem_log_new(struct idem_interceptor **out,
             const struct idem_log_options *options, struct idem_error *err)
{
    struct log *log;

    if (!options || !options->line)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "the log has nobody to tell its lines");
    log = calloc(1, sizeof *log);
    if (!log)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    log->base.ops = &log_ops;
    log->options = *options;
    *out = &log->base;
    return IDEM_OK;
}
