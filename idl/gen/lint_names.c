#include "lint.h"

#include "names.h"

#include <string.h>

/* The C names of a run: first those of the imports, then the file's own, which
 * may take none that is there. */
struct table {
    struct complaints *complaints;
    const struct model *model;
    const struct file *file; /* whose names are added */
    const struct file *of;   /* who is checked */
    struct entry {
        const char *name;
        const char *what;
    } * at;
    size_t count;
    size_t room;
    const char *told, *told_of; /* the last two things that met in a name */
};

/* Two things that share one name often share more: say it once. */
static void
tell(struct table *table, const struct entry *entry, const char *what,
     const char *name, const struct path *path)
{
    if (table->told == what && table->told_of == entry->what)
        return;
    table->told = what;
    table->told_of = entry->what;
    complain(table->complaints, table->file->proto, path,
             "%s gets the C name %s, which %s has already: rename one", what,
             name, entry->what);
}

static void
add(struct table *table, const char *name, const char *what,
    const struct path *path)
{
    struct pool *pool = table->model->pool;

    if (table->file == table->of && (names_keyword(name) || names_unsafe(name)))
        complain(table->complaints, table->file->proto, path,
                 "%s gets the C name %s, which is a word of C or C++: give "
                 "the file a prefix",
                 what, name);
    for (size_t i = 0; i < table->count && table->file == table->of; i++) {
        if (strcmp(table->at[i].name, name) || !strcmp(table->at[i].what, what))
            continue;
        tell(table, &table->at[i], what, name, path);
        return;
    }
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 256;

        table->at =
            pool_grow(pool, table->at, table->count * sizeof(*table->at),
                      room * sizeof(*table->at));
        table->room = room;
    }
    table->at[table->count++] = (struct entry){name, what};
}

static void
add_enum(struct table *table, const struct type *type)
{
    struct pool *pool = table->model->pool;
    const enum_proto *proto = type->enumeration;

    add(table, type->alias, pool_printf(pool, "enum %s", type->full),
        &type->path);
    for (size_t i = 0; i < proto->n_value; i++) {
        struct path path = path_into(&type->path, ENUM_VALUE, i);
        const char *value = proto->value[i]->name;

        add(table, model_enum_value(pool, type, value),
            pool_printf(pool, "value %s of enum %s", value, type->full), &path);
    }
}

static void
add_oneof(struct table *table, const struct type *type, size_t index)
{
    struct pool *pool = table->model->pool;
    const char *oneof = type->message->oneof_decl[index]->name;
    struct path path = path_into(&type->path, MESSAGE_ONEOF, index);
    const char *what =
        pool_printf(pool, "oneof %s of message %s", oneof, type->full);

    if (model_optional(type->message, index))
        return;
    add(table,
        pool_printf(pool, "%s_%s_case", type->alias, names_snake(pool, oneof)),
        what, &path);
    add(table,
        pool_printf(pool, "%s_%s_NOT_SET", type->shout,
                    names_shout(pool, oneof)),
        what, &path);
}

/* The constants of a field in a oneof. */
static void
add_case(struct table *table, const struct type *type, size_t index)
{
    struct pool *pool = table->model->pool;
    const field_proto *field = type->message->field[index];
    struct path path = path_into(&type->path, MESSAGE_FIELD, index);
    const char *oneof;

    if (!field->has_oneof_index)
        return;
    oneof = field->proto3_optional
                ? "HAS"
                : type->message->oneof_decl[field->oneof_index]->name;
    add(table,
        pool_printf(pool, "%s_%s_%s", type->shout, names_shout(pool, oneof),
                    names_shout(pool, field->name)),
        pool_printf(pool, "field %s of message %s", field->name, type->full),
        &path);
}

static void
add_message(struct table *table, const struct type *type)
{
    struct pool *pool = table->model->pool;
    const char *what = pool_printf(pool, "message %s", type->full);

    add(table, type->alias, what, &type->path);
    add(table, pool_printf(pool, "%s_free", type->alias), what, &type->path);
    add(table, pool_printf(pool, "%s_INIT", type->shout), what, &type->path);
    for (size_t i = 0; i < type->message->n_oneof_decl; i++)
        add_oneof(table, type, i);
    for (size_t i = 0; i < type->message->n_field; i++)
        add_case(table, type, i);
}

/* The members of a service's handler table. */
static void
add_slots(struct table *table, const struct method *method, const char *what)
{
    struct pool *pool = table->model->pool;
    const bool states = method->policy.states;
    const char *const slots[] = {
        states ? method->statements_slot : method->slot,
        states ? method->reply_slot : method->slot,
    };

    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        add(table,
            pool_printf(pool, "%s_handlers.%s", method->service->name,
                        slots[i]),
            what, &method->path);
    if (service_resumes(method))
        add(table,
            pool_printf(pool, "%s_handlers.%s_messages", method->service->name,
                        method->snake),
            what, &method->path);
    if (service_numbers(method) && !service_server_streams(method))
        add(table,
            pool_printf(pool, "%s_handlers.%s_end", method->service->name,
                        method->snake),
            what, &method->path);
}

/* The functions and structs that begin with the method's name. */
static void
add_ends(struct table *table, const struct method *method, const char *what)
{
    static const char *const unary[] = {"",        "_async",      "_done",
                                        "_method", "_read_reply", NULL};
    static const char *const streams[] = {
        "_method",           "_stream",        "_open",  "_finish",
        "_cancel",           "_write",         "_end",   "_next",
        "_callbacks",        "_start",         "_user",  "_resume",
        "_release",          "_server_stream", "_send",  "_receive",
        "_server_callbacks", "_serve",         "_close", "_server_user",
        "_server_resume",    "_mark",          "_kept",  "_resumed_at",
        "_watermark",        "_key",           NULL};
    const char *const *end = service_streams(method) ? streams : unary;
    struct pool *pool = table->model->pool;

    for (; *end; end++)
        add(table, pool_printf(pool, "%s%s", method->name, *end), what,
            &method->path);
}

static void
add_method(struct table *table, const struct method *method)
{
    struct pool *pool = table->model->pool;
    const char *what = pool_printf(pool, "method %s", method->full);

    add_ends(table, method, what);
    if (service_probes(method))
        add(table, pool_printf(pool, "%s_probe", method->name), what,
            &method->path);
    if (service_rebuilds(method))
        add(table, pool_printf(pool, "%s_rebuild", method->name), what,
            &method->path);
    add(table, pool_printf(pool, "%s_METHOD", method->shout), what,
        &method->path);
    add_slots(table, method, what);
}

static void
add_service(struct table *table, const struct service *service)
{
    static const char *const ends[] = {"_register", "_service", "_methods",
                                       "_handlers"};
    struct pool *pool = table->model->pool;
    const char *what = pool_printf(pool, "service %s", service->full);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        add(table, pool_printf(pool, "%s%s", service->name, ends[i]), what,
            &service->path);
    add(table,
        pool_printf(pool, "%s_SERVICE", names_shout(pool, service->name)), what,
        &service->path);
    for (size_t i = 0; i < service->n_methods; i++)
        add_method(table, &service->methods[i]);
}

static void
add_file(struct table *table, const struct file *file)
{
    const struct model *model = table->model;
    size_t n;
    const struct service *services = services_of(model, file, &n);

    table->file = file;
    for (size_t i = 0; i < model->n_types; i++) {
        if (model->types[i].file != file)
            continue;
        if (model->types[i].message)
            add_message(table, &model->types[i]);
        else
            add_enum(table, &model->types[i]);
    }
    for (size_t i = 0; i < n; i++)
        add_service(table, &services[i]);
}

void
lint_names(struct complaints *complaints, const struct model *model,
           const struct file *file)
{
    struct table table = {.complaints = complaints, .model = model, .of = file};
    const struct path options = {{FILE_OPTIONS, OPTION_NUMBER}, 2};

    if (file->prefix_stated && !names_identifier(file->prefix)) {
        complain(complaints, file->proto, &options,
                 "prefix \"%s\" is no C identifier", file->prefix);
        return;
    }
    for (size_t i = 0; i < file->proto->n_dependency; i++) {
        const char *import = file->proto->dependency[i];

        if (model_import_needed(model, file->proto, import, true))
            add_file(&table, model_file(model, import));
    }
    add_file(&table, file);
}
