#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "config.h"

#include <jansson.h>

/* Single values of a service config, and where they stand. A function that
 * finds a fault tells it and leaves what it reads into as it was. */

/* Where in the file: a chain on the stack, innermost first. */
struct place {
    const struct place *outer; /* NULL: the whole */
    const char *name;          /* NULL: an element of an array … */
    size_t index;              /* … with this index */
};

struct reader {
    const struct config_listener *listener;
    unsigned faults;
    unsigned attempts_max;
    struct config *config;
    size_t names_room; /* of the config's names */
};

/* A member of an object. null is as if it were absent. */
struct member {
    const char *name;
    bool required;
    void (*read)(struct reader *reader, const struct place *place,
                 const json_t *value, void *into);
};

void reader_fault(struct reader *reader, const struct place *place,
                  const char *format, ...) IDEM_PRINTF(3, 4);
void reader_note(struct reader *reader, const struct place *place,
                 const char *format, ...) IDEM_PRINTF(3, 4);

/* Each member by its own function. What is not in the table is a fault, and so
 * is what is required and not there. */
void read_members(struct reader *reader, const struct place *place,
                  const json_t *value, const struct member *members,
                  size_t n_members, void *into);

/* proto3's JSON of a duration, "1.5s", over 0 (or from 0), in milliseconds and
 * rounded up. */
void read_duration(struct reader *reader, const struct place *place,
                   const json_t *value, bool zero_too, int64_t *ms);

void read_whole(struct reader *reader, const struct place *place,
                const json_t *value, int64_t low, int64_t high,
                int64_t *number);

/* Over 0 and up to high; thousandths, what is beyond them is cut off. */
void read_thousandths(struct reader *reader, const struct place *place,
                      const json_t *value, double high, int64_t *milli);
void read_bool(struct reader *reader, const struct place *place,
               const json_t *value, bool *is);

/* Names in any case, or numbers. */
void read_codes(struct reader *reader, const struct place *place,
                const json_t *value, uint32_t *codes);

/* loadBalancingConfig, and loadBalancingPolicy, over which that goes
 * (config_balancer.c). */
void read_balancing(struct reader *reader, const struct place *place,
                    const json_t *value, void *into);
void read_balancing_policy(struct reader *reader, const struct place *place,
                           const json_t *value, void *into);

/* methodConfig[i].name, of the entry; and, when all are read, those that stand
 * twice are faults (config_names.c). */
void config_read_names(struct reader *reader, const struct place *place,
                       const json_t *value, void *into);
void config_check_names(struct reader *reader);

/* gRPC knows it and idem does not: a note. */
void read_foreign(struct reader *reader, const struct place *place,
                  const json_t *value, void *into);

/* methodConfig[i] (config_entry.c). */
void read_entry(struct reader *reader, const struct place *place,
                const json_t *value, struct config_entry *entry);

#endif
