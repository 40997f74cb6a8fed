#include "method_table.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 64
#define HEALTH "grpc.health.v1.Health"

struct method_service {
    struct method_service *next;
    const struct idem_service *service;
    void *handlers;
    struct job_kind *kinds; /* of each method; not const as the entries are */
    struct method_entry entries[];
};

static uint64_t
hash(struct idem_bytes name)
{
    uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < name.size; i++)
        sum = (sum ^ name.data[i]) * 0x100000001b3u;
    return sum;
}

static void
put(struct method_table *table, struct method_entry *entry)
{
    uint64_t at = hash(entry->name) % table->n_buckets;

    entry->next = table->buckets[at];
    table->buckets[at] = entry;
}

static void
put_service(struct method_table *table, struct method_service *service)
{
    for (unsigned i = 0; i < service->service->n_methods; i++)
        put(table, &service->entries[i]);
}

static bool
reserve(struct method_table *table, unsigned more)
{
    unsigned n = table->n_buckets ? table->n_buckets : BUCKETS_FIRST;
    struct method_entry **buckets;

    while (n < table->n_entries + more)
        n *= 2;
    if (n == table->n_buckets)
        return true;
    buckets = calloc(n, sizeof(*buckets));
    if (!buckets)
        return false;
    free(table->buckets);
    table->buckets = buckets;
    table->n_buckets = n;
    for (struct method_service *at = table->services; at; at = at->next)
        put_service(table, at);
    return true;
}

static bool
is_there(const struct method_table *table, const char *name)
{
    for (struct method_service *at = table->services; at; at = at->next)
        if (strcmp(at->service->name, name) == 0)
            return true;
    return false;
}

static void
free_service(struct method_service *service)
{
    free(service->kinds);
    free(service->handlers);
    free(service);
}

static struct method_service *
new_service(const struct idem_service *service, const void *handlers,
            size_t size, void *user)
{
    struct method_service *made = calloc(
        1, sizeof(*made) + service->n_methods * sizeof(struct method_entry));

    if (!made)
        return NULL;
    made->handlers = malloc(size ? size : 1);
    made->kinds = calloc(service->n_methods + 1, sizeof *made->kinds);
    if (!made->handlers || !made->kinds) {
        free_service(made);
        return NULL;
    }
    if (size > 0)
        memcpy(made->handlers, handlers, size);
    made->service = service;
    for (unsigned i = 0; i < service->n_methods; i++)
        made->entries[i] = (struct method_entry){
            .method = &service->methods[i],
            .handlers = made->handlers,
            .user = user,
            .name = idem_bytes_of(service->methods[i].name),
            .kind = &made->kinds[i],
            .while_draining = strcmp(service->name, HEALTH) == 0,
        };
    return made;
}

static const struct idem_method *
first_effectful(const struct idem_service *service)
{
    for (unsigned i = 0; i < service->n_methods; i++)
        if (service->methods[i].mode != IDEM_MODE_NONE)
            return &service->methods[i];
    return NULL;
}

static const struct idem_method *
first_guarded(const struct idem_service *service)
{
    for (unsigned i = 0; i < service->n_methods; i++)
        if (service->methods[i].allow && !service->methods[i].allow->anyone)
            return &service->methods[i];
    return NULL;
}

enum idem_status
method_table_add(struct method_table *table, const struct idem_service *service,
                 const void *handlers, size_t size, void *user,
                 struct idem_error *err)
{
    struct method_service *made;

    if (is_there(table, service->name))
        return idem_fail(err, IDEM_ALREADY_EXISTS,
                         "service %s is registered already", service->name);
    made = new_service(service, handlers, size, user);
    if (!made || !reserve(table, service->n_methods)) {
        if (made)
            free_service(made);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    made->next = table->services;
    table->services = made;
    table->n_entries += service->n_methods;
    put_service(table, made);
    if (!table->effectful)
        table->effectful = first_effectful(service);
    if (!table->guarded)
        table->guarded = first_guarded(service);
    return IDEM_OK;
}

const struct idem_service *
method_table_service(const struct method_table *table, unsigned index)
{
    const struct method_service *at = table->services;

    while (at && index-- > 0)
        at = at->next;
    return at ? at->service : NULL;
}

const struct method_entry *
method_table_find(const struct method_table *table, struct idem_bytes name)
{
    const struct method_entry *entry;

    if (table->n_buckets == 0)
        return NULL;
    entry = table->buckets[hash(name) % table->n_buckets];
    while (entry && !idem_bytes_equal(entry->name, name))
        entry = entry->next;
    return entry;
}

const struct method_entry *
method_table_find_scope(const struct method_table *table, const char *scope)
{
    for (struct method_service *at = table->services; at; at = at->next)
        for (unsigned i = 0; i < at->service->n_methods; i++)
            if (strcmp(at->entries[i].method->scope, scope) == 0)
                return &at->entries[i];
    return NULL;
}

static bool
is_rival(const struct idem_method *a, const struct idem_method *b)
{
    return a->mode != IDEM_MODE_NONE && b->mode != IDEM_MODE_NONE &&
           !(a->shares_keys && b->shares_keys) &&
           strcmp(a->scope, b->scope) == 0;
}

const struct idem_method *
method_table_find_rival(const struct method_table *table,
                        const struct idem_method *method)
{
    for (struct method_service *at = table->services; at; at = at->next)
        for (unsigned i = 0; i < at->service->n_methods; i++)
            if (is_rival(at->entries[i].method, method))
                return at->entries[i].method;
    return NULL;
}

void
method_table_fini(struct method_table *table)
{
    while (table->services) {
        struct method_service *service = table->services;

        table->services = service->next;
        free_service(service);
    }
    free(table->buckets);
    *table = (struct method_table){0};
}
