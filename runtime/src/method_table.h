#ifndef METHOD_TABLE_H
#define METHOD_TABLE_H

#include "worker.h"

#include <idem/method.h>

/* The methods that a server has, by name. Built by one thread, then read by
 * all. Empty when zeroed. */

struct method_entry {
    const struct idem_method *method;
    const void *handlers; /* a copy of the author's table */
    void *user;
    struct idem_bytes name;
    bool while_draining;   /* grpc.health.v1's: also a server that goes says how
                            * it is */
    struct job_kind *kind; /* how long its handlers take */
    struct method_entry *next; /* of the same hash */
};

struct method_service;

struct method_table {
    struct method_service *services;
    struct method_entry **buckets;
    unsigned n_buckets, n_entries;
    const struct idem_method *effectful; /* one whose mode is not NONE */
    const struct idem_method *guarded;   /* one that is not for anyone */
};

void method_table_fini(struct method_table *table);

/* ALREADY_EXISTS, RESOURCE_EXHAUSTED. */
enum idem_status method_table_add(struct method_table *table,
                                  const struct idem_service *service,
                                  const void *handlers, size_t size, void *user,
                                  struct idem_error *err) IDEM_MUST_CHECK;

/* One of the services; NULL past the last. */
const struct idem_service *
method_table_service(const struct method_table *table, unsigned index);

/* "package.Service/Method"; NULL: not here. */
const struct method_entry *method_table_find(const struct method_table *table,
                                             struct idem_bytes name);

/* One whose records have this scope; NULL: none. Looks at each. */
const struct method_entry *
method_table_find_scope(const struct method_table *table, const char *scope);

/* One whose records would be taken for those of this method, which is not in
 * the table yet; NULL: none. Methods that say that they share their keys may.
 */
const struct idem_method *
method_table_find_rival(const struct method_table *table,
                        const struct idem_method *method);

#endif
