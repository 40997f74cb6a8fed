#include "canonical.h"

#include "message_field.h"

#include <stdlib.h>
#include <string.h>

#include <idem/fingerprint.h>

/* Gathers small writes, each of which costs a hash more than its bytes. */
struct writer {
    const struct idem_method *method;
    struct idem_sha256 *sha;
    size_t used;
    uint8_t buffer[256];
};

struct entry {
    uint8_t key[IDEM_SHA256_SIZE];
    uint8_t value[IDEM_SHA256_SIZE];
    size_t place; /* in the array: of two with one key the last counts */
};

static void write_message(struct writer *w, const ProtobufCMessage *message);

/* --- Bytes --- */

static void
flush(struct writer *w)
{
    idem_sha256_add(w->sha, w->buffer, w->used);
    w->used = 0;
}

static void
write_bytes(struct writer *w, const void *bytes, size_t size)
{
    if (size > sizeof(w->buffer) - w->used)
        flush(w);
    if (size > sizeof(w->buffer)) {
        idem_sha256_add(w->sha, bytes, size);
    } else if (size > 0) {
        memcpy(w->buffer + w->used, bytes, size);
        w->used += size;
    }
}

static void
write_number(struct writer *w, uint64_t number, unsigned size)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    write_bytes(w, bytes, size);
}

static void
write_sized(struct writer *w, const void *bytes, size_t size)
{
    write_number(w, size, 8);
    write_bytes(w, bytes, size);
}

static void
begin(struct writer *w, const struct idem_method *method)
{
    w->method = method;
    w->sha = idem_sha256_new();
    w->used = 0;
}

static void
end(struct writer *w, uint8_t hash[IDEM_SHA256_SIZE])
{
    flush(w);
    idem_sha256_finish(w->sha, hash);
}

/* --- Values --- */

static bool
is_signed(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_SINT32 ||
           type == PROTOBUF_C_TYPE_SFIXED32 || type == PROTOBUF_C_TYPE_ENUM;
}

static void
write_scalar(struct writer *w, ProtobufCType type, const void *value)
{
    uint64_t wide = 0;
    uint32_t narrow;

    if (field_value_size(type) == sizeof(narrow)) {
        memcpy(&narrow, value, sizeof(narrow));
        wide = is_signed(type) ? (uint64_t)(int32_t)narrow : narrow;
    } else {
        memcpy(&wide, value, sizeof(wide));
    }
    write_number(w, wide, 8);
}

/* A message that is NULL is written as an empty one: the value of a map's entry
 * that has none. */
static void
write_value(struct writer *w, const ProtobufCFieldDescriptor *field,
            const void *value)
{
    const ProtobufCBinaryData *bytes = value;
    const ProtobufCMessage *message;
    const char *text;

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        text = *(char *const *)value;
        write_sized(w, text, text ? strlen(text) : 0);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        write_sized(w, bytes->data, bytes->len);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        message = *(const ProtobufCMessage *const *)value;
        if (message)
            write_message(w, message);
        else
            write_number(w, 0, 4);
    } else {
        write_scalar(w, field->type, value);
    }
}

/* --- Maps --- */

static int
by_key_then_place(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = memcmp(left->key, right->key, sizeof(left->key));

    return order                        ? order
           : left->place < right->place ? -1
                                        : left->place > right->place;
}

static void
hash_member(const struct idem_method *method, const ProtobufCMessage *entry,
            unsigned number, uint8_t hash[IDEM_SHA256_SIZE])
{
    const ProtobufCMessageDescriptor *type = entry->descriptor;
    unsigned index = field_find(type, number, number - 1);
    struct writer w;

    begin(&w, method);
    if (index < type->n_fields)
        write_value(&w, &type->fields[index],
                    field_value(entry, &type->fields[index]));
    end(&w, hash);
}

/* Sorted, one entry a key. Returns how many there are. */
static size_t
sort_entries(struct entry *entries, size_t count)
{
    size_t kept = 0;

    qsort(entries, count, sizeof(*entries), by_key_then_place);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || memcmp(entries[i].key, entries[i + 1].key,
                                     sizeof(entries[i].key)) != 0)
            entries[kept++] = entries[i];
    return kept;
}

static void
write_map(struct writer *w, ProtobufCMessage *const *array, size_t count)
{
    struct entry *entries = calloc(count, sizeof(*entries));

    IDEM_ASSERT(entries);
    for (size_t i = 0; i < count; i++) {
        entries[i].place = i;
        hash_member(w->method, array[i], 1, entries[i].key);
        hash_member(w->method, array[i], 2, entries[i].value);
    }
    count = sort_entries(entries, count);
    write_number(w, count, 8);
    for (size_t i = 0; i < count; i++) {
        write_bytes(w, entries[i].key, sizeof(entries[i].key));
        write_bytes(w, entries[i].value, sizeof(entries[i].value));
    }
    free(entries);
}

/* --- Fields --- */

static bool
is_ignored(const struct idem_method *method,
           const ProtobufCMessageDescriptor *type, uint32_t number)
{
    for (unsigned i = 0; i < method->n_ignored; i++)
        if (method->ignored[i].message == type &&
            method->ignored[i].number == number)
            return true;
    return false;
}

static bool
is_map(const struct idem_method *method, const ProtobufCMessageDescriptor *type,
       uint32_t number)
{
    for (unsigned i = 0; i < method->n_maps; i++)
        if (method->maps[i].message == type && method->maps[i].number == number)
            return true;
    return false;
}

static void
write_repeated(struct writer *w, const ProtobufCMessage *message,
               const ProtobufCFieldDescriptor *field)
{
    const char *const *array = field_value(message, field);
    size_t count = field_count(message, field);

    if (is_map(w->method, message->descriptor, field->id)) {
        write_number(w, 'M', 1);
        write_map(w, (ProtobufCMessage *const *)*array, count);
        return;
    }
    write_number(w, 'R', 1);
    write_number(w, count, 8);
    for (size_t i = 0; i < count; i++)
        write_value(w, field, *array + i * field_value_size(field->type));
}

static void
write_field(struct writer *w, const ProtobufCMessage *message,
            const ProtobufCFieldDescriptor *field)
{
    write_number(w, field->id, 4);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        write_repeated(w, message, field);
        return;
    }
    write_number(w, 'K', 1);
    write_value(w, field, field_value(message, field));
}

static int
by_number_then_place(const void *a, const void *b)
{
    const ProtobufCMessageUnknownField *left =
        *(const ProtobufCMessageUnknownField *const *)a;
    const ProtobufCMessageUnknownField *right =
        *(const ProtobufCMessageUnknownField *const *)b;

    if (left->tag != right->tag)
        return left->tag < right->tag ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void
write_unknown(struct writer *w, const ProtobufCMessage *message)
{
    size_t count = message->n_unknown_fields;
    const ProtobufCMessageUnknownField **sorted =
        calloc(count, sizeof(const ProtobufCMessageUnknownField *));

    IDEM_ASSERT(sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &message->unknown_fields[i];
    qsort(sorted, count, sizeof(const ProtobufCMessageUnknownField *),
          by_number_then_place);
    for (size_t i = 0; i < count; i++) {
        write_number(w, sorted[i]->tag, 4);
        write_number(w, 'U', 1);
        write_number(w, sorted[i]->wire_type, 1);
        write_sized(w, sorted[i]->data, sorted[i]->len);
    }
    free(sorted);
}

static void
write_message(struct writer *w, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++)
        if (field_present(message, &type->fields[i]) &&
            !is_ignored(w->method, type, type->fields[i].id))
            write_field(w, message, &type->fields[i]);
    if (message->n_unknown_fields > 0)
        write_unknown(w, message);
    write_number(w, 0, 4);
}

void
canonical_hash(const struct idem_method *method,
               const struct ProtobufCMessage *request,
               uint8_t hash[IDEM_SHA256_SIZE])
{
    struct writer w;

    IDEM_ASSERT(request);
    begin(&w, method);
    write_number(&w, IDEM_FINGERPRINT_VERSION, 4);
    write_message(&w, request);
    end(&w, hash);
}
