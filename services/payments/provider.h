#ifndef PAYMENTS_PROVIDER_H
#define PAYMENTS_PROVIDER_H

#include <idem/status.h>

#define PROVIDER_REFERENCE_MAX 64

/**
 * Pay through the provider, which pays once a key.
 *
 * @param socket      the path of the provider's socket
 * @param key         the provider's own idempotency key
 * @param timeout_ms  of the whole exchange
 * @param reference   receives PROVIDER_REFERENCE_MAX bytes at most
 *
 * @retval IDEM_OK
 * @retval IDEM_UNAVAILABLE       no answer: repeat with the same key
 * @retval IDEM_INVALID_ARGUMENT  the provider refused, in its own words
 */
enum idem_status provider_pay(const char *socket, const char *key,
                              const char *destination, int64_t amount,
                              int64_t timeout_ms, char *reference,
                              struct idem_error *err) IDEM_MUST_CHECK;

#endif
