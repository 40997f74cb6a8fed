#include "lint.h"

#include "names.h"

#include <string.h>

/* The members that protoc-c's struct of one message gets. */
struct members {
    const struct file *file;
    struct complaints *complaints;
    const char *message;
    struct member {
        const char *name;
        const char *of; /* what it is for, in the .proto's words */
    } * at;
    size_t count;
};

static void
add_member(struct members *members, const char *name, const char *of,
           const struct path *path)
{
    for (size_t i = 0; i < members->count; i++) {
        if (strcmp(members->at[i].name, name))
            continue;
        complain(members->complaints, members->file->proto, path,
                 "%s of message %s would be the C member \"%s\", which %s has "
                 "already: rename it",
                 of, members->message, name, members->at[i].of);
        return;
    }
    members->at[members->count++] = (struct member){name, of};
}

static bool
has_presence_flag(const struct file *file, const field_proto *field)
{
    const char *syntax = file->proto->syntax;

    return (!syntax || !strcmp(syntax, "proto2")) &&
           field->label == FIELD_LABEL(OPTIONAL) && !field->has_oneof_index &&
           field->type != FIELD_TYPE(STRING) &&
           field->type != FIELD_TYPE(MESSAGE);
}

static void
add_field(struct members *members, const field_proto *field,
          const struct path *path)
{
    struct pool *pool = members->complaints->pool;
    const char *name = names_theirs_member(pool, field->name);
    const char *of = pool_printf(pool, "field %s", field->name);

    if (field->type == FIELD_TYPE(GROUP))
        complain(members->complaints, members->file->proto, path,
                 "%s of message %s is a group, which protoc-c cannot compile: "
                 "make it a message",
                 of, members->message);
    if (names_unsafe(name))
        complain(members->complaints, members->file->proto, path,
                 "%s of message %s is a word of C or C++ that no member can "
                 "have: rename it",
                 of, members->message);
    if (field->label == FIELD_LABEL(REPEATED))
        add_member(members, pool_printf(pool, "n_%s", name),
                   pool_printf(pool, "the count of field %s", field->name),
                   path);
    if (has_presence_flag(members->file, field))
        add_member(members, pool_printf(pool, "has_%s", name),
                   pool_printf(pool, "the presence of field %s", field->name),
                   path);
    add_member(members, name, of, path);
}

static void
check_message(struct complaints *complaints, const struct file *file,
              const message_proto *message, const struct path *path)
{
    struct pool *pool = complaints->pool;
    struct members members = {file, complaints, message->name, NULL, 0};

    members.at =
        pool_alloc(pool, (1 + 2 * message->n_field + message->n_oneof_decl) *
                             sizeof(*members.at));
    members.at[members.count++] =
        (struct member){"base", "the head of every message"};
    for (size_t i = 0; i < message->n_oneof_decl; i++) {
        struct path inner = path_into(path, MESSAGE_ONEOF, i);
        const char *oneof = message->oneof_decl[i]->name;

        add_member(
            &members,
            pool_printf(pool, "%s_case", names_theirs_lower(pool, oneof)),
            pool_printf(pool, "the case of oneof %s", oneof), &inner);
    }
    for (size_t i = 0; i < message->n_field; i++) {
        struct path inner = path_into(path, MESSAGE_FIELD, i);

        add_field(&members, message->field[i], &inner);
    }
    for (size_t i = 0; i < message->n_nested_type; i++) {
        struct path inner = path_into(path, MESSAGE_NESTED, i);

        check_message(complaints, file, message->nested_type[i], &inner);
    }
}

void
lint_shape(struct complaints *complaints, const struct file *file)
{
    const struct path top = {0};

    for (size_t i = 0; i < file->proto->n_message_type; i++) {
        struct path path = path_into(&top, FILE_MESSAGE, i);

        check_message(complaints, file, file->proto->message_type[i], &path);
    }
}
