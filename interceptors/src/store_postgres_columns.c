#include "store_postgres_columns.h"

#include <string.h>

#define COLUMNS_MAX 11 /* of one statement */
#define STATEMENTS (SLOT_STEPS * 2)

/* A value of a slot, put behind those of the slots before it. */
typedef void put_fn(struct pg_arrays *arrays, const struct pg_slot *slot);

static struct idem_bytes
view(const uint8_t *data, size_t size)
{
    return (struct idem_bytes){data, size};
}

static void
put_key(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, view(slot->key.bytes, sizeof(slot->key.bytes)));
}

static void
put_tenant(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->id.tenant);
}

static void
put_scope(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, idem_bytes_of(slot->ticket->id.scope));
}

static void
put_text(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->id.key.text);
}

static void
put_hash(struct pg_arrays *arrays, const struct pg_slot *slot,
         const uint8_t hash[32])
{
    if (slot->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_bytes(arrays, view(hash, 32));
}

static void
put_raw(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    put_hash(arrays, slot, slot->ticket->fingerprint.raw);
}

static void
put_canonical(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    put_hash(arrays, slot, slot->ticket->fingerprint.canonical);
}

static void
put_version(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    if (slot->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_int(arrays, slot->ticket->fingerprint.version);
}

static void
put_window(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, pg_window_of(&slot->key, slot->ticket));
}

static void
put_ends(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays,
                 slot->key.opaque ? 0 : pg_window_of(&slot->key, slot->ticket));
}

static void
put_day(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->key.day);
}

static void
put_owner(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->owner);
}

static void
put_lease(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->ticket->lease_ms);
}

static void
put_steps(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->ticket->steps);
}

static void
put_token(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->ticket->token);
}

static void
put_step(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, idem_bytes_of(slot->ticket->step));
}

static void
put_status(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_int(arrays, slot->ticket->answer.status);
}

static void
put_message(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->answer.message);
}

static void
put_reason(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->answer.reason);
}

static void
put_reply(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->answer.reply);
}

static void
put_trailers(struct pg_arrays *arrays, const struct pg_slot *slot)
{
    pg_array_bytes(arrays, slot->ticket->answer.trailers);
}

struct column {
    enum pg_element element; /* 0: no more columns */
    put_fn *put;
};

#define IDENTITY                                                               \
    {PG_ELEMENT_UUID, put_key}, {PG_ELEMENT_BYTES, put_tenant},                \
        {PG_ELEMENT_TEXT, put_scope},                                          \
    {                                                                          \
        PG_ELEMENT_TEXT, put_text                                              \
    }
#define FENCE                                                                  \
    {PG_ELEMENT_UUID, put_key},                                                \
    {                                                                          \
        PG_ELEMENT_INT, put_token                                              \
    }

static const struct column columns[SLOT_STEPS][COLUMNS_MAX + 1] = {
    [SLOT_LOOK] = {IDENTITY,
                   {PG_ELEMENT_INT, put_ends},
                   {PG_ELEMENT_INT, put_day}},
    [SLOT_CLAIM] = {IDENTITY,
                    {PG_ELEMENT_BYTES, put_raw},
                    {PG_ELEMENT_BYTES, put_canonical},
                    {PG_ELEMENT_INT, put_version},
                    {PG_ELEMENT_INT, put_window},
                    {PG_ELEMENT_INT, put_owner},
                    {PG_ELEMENT_INT, put_lease},
                    {PG_ELEMENT_INT, put_steps}},
    [SLOT_COMPLETE] = {FENCE,
                       {PG_ELEMENT_INT, put_status},
                       {PG_ELEMENT_BYTES, put_message},
                       {PG_ELEMENT_BYTES, put_reason},
                       {PG_ELEMENT_BYTES, put_reply},
                       {PG_ELEMENT_BYTES, put_trailers}},
    [SLOT_RELEASE] = {FENCE},
    [SLOT_DOUBT] = {FENCE},
    [SLOT_RENEW] = {FENCE, {PG_ELEMENT_INT, put_lease}},
    [SLOT_MARK] = {FENCE, {PG_ELEMENT_TEXT, put_step}},
};

bool
pg_chosen_has(const struct pg_chosen *chosen, const struct pg_slot *slot)
{
    return slot->sent == chosen->step && slot->key.opaque == chosen->opaque;
}

/* The parts of a slot that have no fixed size, whatever its step. */
static size_t
loose_bytes(const struct idem_ticket *ticket)
{
    const struct idem_answer *answer = &ticket->answer;

    return ticket->id.tenant.size + idem_bytes_of(ticket->id.scope).size +
           ticket->id.key.text.size + idem_bytes_of(ticket->step).size +
           answer->message.size + answer->reason.size + answer->reply.size +
           answer->trailers.size;
}

size_t
pg_columns_room(const struct pg_slot *slots, unsigned n)
{
    size_t room = STATEMENTS * COLUMNS_MAX * ARRAY_HEAD;

    for (unsigned i = 0; i < n; i++)
        if (slots[i].ticket)
            room +=
                COLUMNS_MAX * pg_array_room(32) + loose_bytes(slots[i].ticket);
    return room;
}

void
pg_columns(struct pg_arguments *arguments, struct pg_arrays *arrays,
           const struct pg_chosen *chosen)
{
    arguments->n = 0;
    for (const struct column *column = columns[chosen->step]; column->put;
         column++) {
        pg_array_begin(arrays, column->element);
        for (unsigned i = 0; i < chosen->n; i++)
            if (pg_chosen_has(chosen, &chosen->slots[i]))
                column->put(arrays, &chosen->slots[i]);
        if (chosen->alone)
            pg_array_end_one(arrays, arguments);
        else
            pg_array_end(arrays, arguments);
    }
}
