#ifndef IDEM_TOKEN_H
#define IDEM_TOKEN_H

#include <idem/auth.h>

/* The client's bearer token: goes with each attempt of each call as metadata
 * "authorization", only where nobody else reads it (channel.h,
 * tokens_in_plain). A call that has that metadata of its own keeps it. */

/**
 * The token that is to go with an attempt. Must not block; on many threads at
 * once.
 *
 * @param token  room for IDEM_TOKEN_MAX bytes of 0x21..0x7E and the NUL; wiped
 *               afterwards
 *
 * @retval IDEM_OK
 * @retval other  what the call ends with, NOT_SENT
 */
typedef enum idem_status idem_token_fn(void *with,
                                       char token[IDEM_TOKEN_MAX + 1],
                                       struct idem_error *err);

/* One of the two sources. */
struct idem_token_options {
    const char *file;     /* has the token alone; watched and read again */
    idem_token_fn *fetch; /* the author's own */
    void *fetch_with;
    idem_auth_reloaded_fn *reloaded; /* of the file; NULL: nobody is told */
    void *reloaded_with;
};

IDEM_BEGIN_DECLS

/**
 * The interceptor of band ATTEMPT; a channel of idem_client_open has it when
 * its options have a token.
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    no source or both, or the file: named
 * @retval IDEM_RESOURCE_EXHAUSTED  memory, descriptors, threads
 */
IDEM_API enum idem_status
idem_token_new(struct idem_interceptor **token,
               const struct idem_token_options *options, struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
