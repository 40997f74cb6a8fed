#ifndef IDEM_POLICY_H
#define IDEM_POLICY_H

#include <idem/channel.h>

#include <stdio.h>

/* The client's policy: what a service config makes of the promises in the
 * .proto (docs/policy.md). Layers, each over the one before it:
 *
 *   .proto option < file < environment (IDEM_SERVICE_CONFIG) < call option
 *
 * A config may lower what the .proto promises and never raises it. */

struct idem_policy_options {
    const char *config_file; /* a service config; NULL: none. Read again when it
                              * changes; a bad one changes nothing */
    const char
        *config_json;      /* in its stead: the text itself. Both are copied */
    unsigned max_attempts; /* of a call at most, whatever the .proto or a config
                            * says, up to 100; under 2: 5 (gRFC A6) */
    bool
        no_retries; /* one attempt a call and no hedge, whatever they say; what
                     * never left, or was refused, is sent again all the same */
    bool ignore_environment; /* IDEM_SERVICE_CONFIG: a path, or JSON */
    /* Methods that a config is checked against when it is read: NULL or an
     * array of this many, which outlive the channel. Others are checked at
     * their first call. */
    const struct idem_service *const *services;
    size_t n_services;
    /* Told each fault, note and reload, a line each; NULL: nobody. On any
     * thread, without a lock held, and not after the channel is closed. May
     * reload it, must not close it. */
    void (*report)(void *with, const char *line);
    void *with;
};

IDEM_BEGIN_DECLS

/**
 * The interceptor that gives each call its policy; a channel of
 * idem_client_open has it, above deadline. Calls keep the config that they
 * began with.
 *
 * @param options  NULL is all defaults
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    an option, named; or the config has faults:
 *                                  the first, by its path. All are reported
 * @retval IDEM_NOT_FOUND           the file cannot be read
 * @retval IDEM_RESOURCE_EXHAUSTED  no memory or no thread to watch the file
 */
IDEM_API enum idem_status
idem_policy_new(struct idem_interceptor **policy,
                const struct idem_policy_options *options,
                struct idem_error *err) IDEM_MUST_CHECK;

/**
 * Take this config from now on: NULL reads the files again (as on SIGHUP), that
 * of the options and that which the environment names. Nothing changes unless
 * all of it is good.
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT     as for idem_policy_new
 * @retval IDEM_NOT_FOUND            the file cannot be read
 * @retval IDEM_FAILED_PRECONDITION  the channel has no policy, or no file
 */
IDEM_API enum idem_status idem_channel_reload(struct idem_channel *channel,
                                              const char *json,
                                              struct idem_error *err)
    IDEM_MUST_CHECK;

/* Print what holds for calls of the method: each value, where it comes from,
 * what of a config was not taken and why, and the chain. */
IDEM_API void idem_channel_explain(struct idem_channel *channel,
                                   const struct idem_method *method, FILE *out);

IDEM_END_DECLS

#endif
