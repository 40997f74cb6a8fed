#ifndef SCRIPT_WORLD_H
#define SCRIPT_WORLD_H

#include "support.h"

#include "echo.idem.h"

#include <idem/policy.h>
#include <idem/standard.h>

#include <stdatomic.h>

/* A channel whose server is a script: an interceptor at the chain's end answers
 * each attempt. */

struct script {
    enum idem_status status;
    enum idem_effect effect;
    int64_t retry_after_ms; /* 0: none is named */
    bool final;
    bool never; /* it does not answer at all */
    const char *reason, *message;
};

struct script_world {
    struct idem_channel *channel;
    struct script script;
    atomic_uint sends;        /* attempts that came to it */
    atomic_llong deadline_ms; /* what was left of the last one's time */
};

void script_must(enum idem_status status, const struct idem_error *err);

/* file and environment are configs, or NULL. chained: with policy, deadline,
 * key and retry; else the script alone. */
void script_world_open(struct script_world *world, const struct script *script,
                       const char *file, const char *environment);
void script_world_open_bare(struct script_world *world,
                            const struct script *script);
void script_world_close(struct script_world *world);

/* Two attempts a millisecond apart, of what has a key or has none. */
struct idem_method script_method(bool keyed);

/* Call with a request of 100 bytes and more. options may be NULL. */
enum idem_status script_call(struct script_world *world,
                             const struct idem_method *method,
                             const struct idem_call_options *options,
                             struct idem_outcome *outcome);

/* idem_channel_explain says that of the method. */
void script_assert_explains(struct script_world *world,
                            const struct idem_method *method, const char *text);

#endif
