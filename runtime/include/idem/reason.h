#ifndef IDEM_REASON_H
#define IDEM_REASON_H

/* The reasons that the library itself gives, in outcome.reason: text that
 * programs may compare, beside the status for which each stands. */
#define IDEM_KEY_EMPTY "KEY_EMPTY"       /* INVALID_ARGUMENT */
#define IDEM_KEY_TOO_LONG "KEY_TOO_LONG" /* INVALID_ARGUMENT: over 255 bytes   \
                                          */
#define IDEM_KEY_CHARSET "KEY_CHARSET"   /* INVALID_ARGUMENT: not 0x21..0x7E */
#define IDEM_KEY_FORMAT "KEY_FORMAT" /* INVALID_ARGUMENT: a broken minted key  \
                                      */
#define IDEM_KEY_MISSING "KEY_MISSING" /* INVALID_ARGUMENT */
#define IDEM_KEY_REUSED "KEY_REUSED"   /* INVALID_ARGUMENT: another request */
#define IDEM_KEY_EXPIRED "KEY_EXPIRED" /* FAILED_PRECONDITION, final */
#define IDEM_KEY_ABANDONED "KEY_ABANDONED" /* FAILED_PRECONDITION, final */
#define IDEM_KEY_RUNNING                                                       \
    "KEY_RUNNING" /* ABORTED: the first call still runs;                       \
                   * repeating it costs no attempt */
#define IDEM_KEY_IN_DOUBT "KEY_IN_DOUBT" /* ABORTED: a crash left it open */
#define IDEM_STORE_AWAY "STORE_AWAY"     /* UNAVAILABLE: before the handler */
#define IDEM_REPLY_TOO_LARGE "REPLY_TOO_LARGE" /* RESOURCE_EXHAUSTED */

#endif
