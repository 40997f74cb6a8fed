#include "config_value.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Which balancer a config wants (gRFC A24): the first of a list that is known.
 */

/* Settings of gRPC's balancers: how to shuffle, to sample, to size a ring. Ours
 * do none of these. */
static const struct member pick_first[] = {
    {"shuffleAddressList", false, read_foreign},
};
static const struct member least_request[] = {
    {"choiceCount", false, read_foreign},
};
static const struct member ring_hash[] = {
    {"minRingSize", false, read_foreign},
    {"maxRingSize", false, read_foreign},
    {"requestHashHeader", false, read_foreign},
};

static const struct known {
    const char *name;
    enum idem_balancer balancer;
    const struct member *members;
    size_t n_members;
} all_known[] = {
    {"pick_first", IDEM_BALANCER_PICK_FIRST, pick_first, COUNT(pick_first)},
    {"round_robin", IDEM_BALANCER_ROUND_ROBIN, NULL, 0},
    {"least_request_experimental", IDEM_BALANCER_LEAST_IN_FLIGHT, least_request,
     COUNT(least_request)},
    {"least_request", IDEM_BALANCER_LEAST_IN_FLIGHT, least_request,
     COUNT(least_request)},
    {"least_in_flight", IDEM_BALANCER_LEAST_IN_FLIGHT, NULL, 0},
    {"ring_hash_experimental", IDEM_BALANCER_KEY_HASH, ring_hash,
     COUNT(ring_hash)},
    {"ring_hash", IDEM_BALANCER_KEY_HASH, ring_hash, COUNT(ring_hash)},
    {"key_hash", IDEM_BALANCER_KEY_HASH, NULL, 0},
};

static const struct known *
find_known(const char *name)
{
    for (size_t i = 0; i < COUNT(all_known); i++)
        if (strcasecmp(all_known[i].name, name) == 0)
            return &all_known[i];
    return NULL;
}

/* {"name": {its settings}}. True: it is taken, or wrong; look no further. */
static bool
read_one(struct reader *reader, const struct place *place, const json_t *value)
{
    struct config *config = reader->config;
    void *member = json_object_iter((json_t *)(uintptr_t)value);
    struct place inner = {place, NULL, 0};
    const struct known *known;

    if (json_object_size(value) != 1) {
        reader_fault(reader, place, "is not an object with one balancer");
        return true;
    }
    inner.name = json_object_iter_key(member);
    known = find_known(inner.name);
    if (!known) {
        reader_note(reader, &inner, "is not known here; the next one counts");
        return false;
    }
    read_members(reader, &inner, json_object_iter_value(member), known->members,
                 known->n_members, NULL);
    config->balancer = known->balancer;
    snprintf(config->balancing, sizeof config->balancing,
             "loadBalancingConfig[%zu].%s", place->index, known->name);
    return true;
}

void
read_balancing(struct reader *reader, const struct place *place,
               const json_t *value, void *into)
{
    size_t count = json_array_size(value);

    (void)into;
    if (!json_is_array(value)) {
        reader_fault(reader, place, "is not an array");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct place inner = {place, NULL, i};

        if (read_one(reader, &inner, json_array_get(value, i)))
            return;
    }
    if (count > 0)
        reader_fault(reader, place, "has no balancer that is known here");
}

/* The older way to say it. */
void
read_balancing_policy(struct reader *reader, const struct place *place,
                      const json_t *value, void *into)
{
    const char *name = json_string_value(value);
    const struct known *known = name ? find_known(name) : NULL;
    struct config *config = into;

    if (name && strcasecmp(name, "UNSPECIFIED") == 0)
        return;
    if (!known) {
        reader_fault(reader, place, "is no balancer that is known here");
        return;
    }
    if (config->balancing[0])
        return;
    config->balancer = known->balancer;
    snprintf(config->balancing, sizeof config->balancing,
             "loadBalancingPolicy");
}
