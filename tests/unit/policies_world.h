#ifndef POLICIES_WORLD_H
#define POLICIES_WORLD_H

#include "support.h"

#include "tempdir.h"

#include <idem/policy.h>
#include <idem/standard.h>

/* A channel to nobody with a policy, and what it reports. */

#define ENTRY(members) "{\"methodConfig\": [{\"name\": [{}], " members "}]}"
#define TIMEOUT(text) ENTRY("\"timeout\": \"" text "\"")
#define BALANCER(name) "{\"loadBalancingConfig\": [{\"" name "\": {}}]}"

/* One with a key and a retry policy; one that has no key. */
extern const struct idem_method charge, notify;

/* With the second. */
extern const struct idem_service *const services[1];

/* What was reported before is forgotten. */
struct idem_channel *policies_channel(struct idem_policy_options policy);

/* Of round_robin and two addresses. */
struct idem_channel *policies_round_robin(struct idem_policy_options policy);

/* idem_channel_explain says that of the method. */
void policies_assert_explains(struct idem_channel *channel,
                              const struct idem_method *method,
                              const char *text);

/* The report of those channels. */
void policies_hear(void *with, const char *line);

/* Wait for a line with this text, and forget what has come. */
void policies_await_line(const char *text);

/* What has come since. */
unsigned policies_lines_heard(void);

/* Written beside it and renamed over it, as editors do. */
void policies_write(const struct tempdir *folder, const char *path,
                    const char *text);

#endif
