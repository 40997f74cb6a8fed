#include "service.h"

#include "names.h"

#include <string.h>

/* A service's own names: payments_register is not the stub of a method
 * Register, which is payments_call_register. */
static bool
reserved(const char *slot)
{
    static const char *const words[] = {"register", "service", "methods",
                                        "handlers"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(slot, words[i]))
            return true;
    return false;
}

/* "payments" and "payments" stay "payments"; "shop" and "payments" are
 * "shop_payments". */
static const char *
service_name(struct pool *pool, const char *prefix, const char *service)
{
    const char *snake = names_snake(pool, service);
    size_t whole = strlen(prefix), tail = strlen(snake);

    if (whole >= tail && !strcmp(prefix + whole - tail, snake) &&
        (whole == tail || prefix[whole - tail - 1] == '_'))
        return prefix;
    return names_join(pool, prefix, snake);
}

static const char *
scope_of(struct pool *pool, const struct method *method)
{
    const method_policy *options = method->policy.options;

    if (method->policy.key_session)
        return SERVICE_SESSION_SCOPE;
    if (*options->key_group)
        return pool_printf(pool, "group:%s", options->key_group);
    return *options->alias ? options->alias : method->full;
}

static void
init_method(struct method *method, const struct model *model,
            const struct service *service, size_t index)
{
    struct pool *pool = model->pool;
    const method_proto *proto = service->proto->method[index];
    const char *snake = names_snake(pool, proto->name);

    *method = (struct method){.service = service, .proto = proto};
    method->path = path_into(&service->path, SERVICE_METHOD, index);
    method->full = pool_printf(pool, "%s/%s", service->full, proto->name);
    method->snake = snake;
    method->slot =
        names_keyword(snake) ? pool_printf(pool, "%s_", snake) : snake;
    method->statements_slot = pool_printf(pool, "%s_statements", snake);
    method->reply_slot = pool_printf(pool, "%s_reply", snake);
    method->name = pool_printf(pool, reserved(snake) ? "%s_call_%s" : "%s_%s",
                               service->name, snake);
    method->shout = names_shout(pool, method->name);
    method->input = model_type(model, proto->input_type);
    method->output = model_type(model, proto->output_type);
    policy_read(&method->policy, pool, proto);
    /* Its messages have numbers, whatever their author says of keys. */
    if (service_numbers(method))
        method->policy.key_session = true;
    method->scope = scope_of(pool, method);
}

static void
init_service(struct service *service, const struct model *model,
             const struct file *file, size_t index)
{
    struct pool *pool = model->pool;
    const struct path top = {0};

    *service =
        (struct service){.file = file, .proto = file->proto->service[index]};
    service->path = path_into(&top, FILE_SERVICE, index);
    service->full =
        model_full_name(pool, file->proto->package, service->proto->name);
    service->name = service_name(pool, file->prefix, service->proto->name);
    service->allow = policy_service_allow(pool, service->proto);
    service->n_methods = service->proto->n_method;
    service->methods =
        pool_alloc(pool, service->n_methods * sizeof(*service->methods));
    for (size_t i = 0; i < service->n_methods; i++)
        init_method(&service->methods[i], model, service, i);
}

struct service *
services_of(const struct model *model, const struct file *file, size_t *n)
{
    struct service *services =
        pool_alloc(model->pool, file->proto->n_service * sizeof(*services));

    *n = 0;
    for (size_t i = 0; i < file->proto->n_service; i++)
        if (file->proto->service[i]->n_method)
            init_service(&services[(*n)++], model, file, i);
    return services;
}

bool
service_probes(const struct method *method)
{
    return !strcmp(method->policy.after_crash, "PROBE");
}

bool
service_rebuilds(const struct method *method)
{
    return !strcmp(method->policy.oversize, "REBUILD");
}

bool
service_client_streams(const struct method *method)
{
    return method->proto->client_streaming;
}

bool
service_server_streams(const struct method *method)
{
    return method->proto->server_streaming;
}

bool
service_streams(const struct method *method)
{
    return service_client_streams(method) || service_server_streams(method);
}

const allow_policy *
service_allows(const struct method *method)
{
    return method->policy.allow ? method->policy.allow : method->service->allow;
}

bool
service_shares_keys(const struct method *method)
{
    return method->policy.key_session || *method->policy.options->key_group;
}

bool
service_resumes(const struct method *method)
{
    return service_server_streams(method) && !service_client_streams(method) &&
           method->policy.records;
}

bool
service_numbers(const struct method *method)
{
    return service_client_streams(method) && method->policy.records;
}

static const field_proto *
field_named(const struct type *type, const char *name, size_t size)
{
    for (size_t i = 0; i < type->message->n_field; i++) {
        const field_proto *field = type->message->field[i];

        if (strlen(field->name) == size && !memcmp(field->name, name, size))
            return field;
    }
    return NULL;
}

unsigned
service_key_depth(const char *path)
{
    unsigned depth = 1;

    for (; *path; path++)
        depth += *path == '.';
    return depth;
}

unsigned
service_key_path(const struct model *model, const struct type *request,
                 const char *path, const field_proto **fields)
{
    const struct type *type = request;
    unsigned depth = 0;

    for (;;) {
        size_t size = strcspn(path, ".");

        if (!type || !type->message)
            return 0;
        fields[depth] = field_named(type, path, size);
        if (!fields[depth++])
            return 0;
        if (!path[size])
            return depth;
        type = model_type(model, fields[depth - 1]->type_name);
        path += size + 1;
    }
}
