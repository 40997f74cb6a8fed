#include "unpacker.h"

#include <stdlib.h>
#include <string.h>

enum idem_status
unpacker_refuse(struct unpacker *u, enum idem_status status, const char *why)
{
    return idem_fail(u->err, status, "%s%s%s: %s", u->type->name,
                     u->field ? "." : "", u->field ? u->field->name : "", why);
}

enum idem_status
unpacker_invalid(struct unpacker *u, const char *why)
{
    return unpacker_refuse(u, IDEM_INVALID_ARGUMENT, why);
}

enum idem_status
unpacker_over_limit(struct unpacker *u, const char *what, size_t size,
                    size_t limit)
{
    return idem_fail(u->err, IDEM_RESOURCE_EXHAUSTED,
                     "%s: %s: %zu bytes, the limit is %zu", u->type->name, what,
                     size, limit);
}

static enum idem_status
unpacker_take(struct unpacker *u, size_t size, void **memory)
{
    if (size > u->memory_left)
        return unpacker_over_limit(u, "memory of the unpacked message",
                                   u->memory_limit - u->memory_left + size,
                                   u->memory_limit);
    u->memory_left -= size;
    *memory = u->arena ? idem_arena_alloc(u->arena, size) : malloc(size);
    if (!*memory)
        return unpacker_refuse(u, IDEM_RESOURCE_EXHAUSTED,
                               "no memory to unpack it");
    return IDEM_OK;
}

void
unpacker_give_back(const struct unpacker *u, void *memory)
{
    if (!u->arena)
        free(memory);
}

enum idem_status
unpacker_copy(struct unpacker *u, struct idem_bytes bytes, uint8_t **copy)
{
    void *memory;
    enum idem_status status = unpacker_take(u, bytes.size + 1, &memory);

    if (status != IDEM_OK)
        return status;
    *copy = memory;
    if (bytes.size > 0)
        memcpy(*copy, bytes.data, bytes.size);
    (*copy)[bytes.size] = 0;
    return IDEM_OK;
}

enum idem_status
unpacker_make_message(struct unpacker *u,
                      const ProtobufCMessageDescriptor *type,
                      ProtobufCMessage **message)
{
    void *memory;
    enum idem_status status = unpacker_take(u, type->sizeof_message, &memory);

    if (status != IDEM_OK)
        return status;
    *message = memory;
    protobuf_c_message_init(type, memory);
    return IDEM_OK;
}

/* What an array of count entries has room for: so a full one doubles, and the
 * room need not be kept anywhere. */
static size_t
room_of(size_t count)
{
    size_t room = 4;

    while (room < count)
        room *= 2;
    return count ? room : 0;
}

/* Room for more entries behind count of them. */
enum idem_status
unpacker_make_room(struct unpacker *u, void **array, size_t count, size_t more,
                   size_t size)
{
    if (count + more <= room_of(count))
        return IDEM_OK;

    void *memory;
    enum idem_status status =
        unpacker_take(u, room_of(count + more) * size, &memory);

    if (status != IDEM_OK)
        return status;
    if (count > 0)
        memcpy(memory, *array, count * size);
    unpacker_give_back(u, *array);
    *array = memory;
    return IDEM_OK;
}
