#include "store_postgres_share_columns.h"

#include "watermark.h"

static void
put_key(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(
        arrays, (struct idem_bytes){call->key.bytes, sizeof(call->key.bytes)});
}

static void
put_lock(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, pg_row_lock_of(&call->ticket->id));
}

static void
put_tenant(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->id.tenant);
}

static void
put_scope(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, idem_bytes_of(call->ticket->id.scope));
}

static void
put_text(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->id.key.text);
}

static void
put_hash(struct pg_arrays *arrays, const struct shared_call *call,
         const uint8_t hash[32])
{
    if (call->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_bytes(arrays, (struct idem_bytes){hash, 32});
}

static void
put_raw(struct pg_arrays *arrays, const struct shared_call *call)
{
    put_hash(arrays, call, call->ticket->fingerprint.raw);
}

static void
put_canonical(struct pg_arrays *arrays, const struct shared_call *call)
{
    put_hash(arrays, call, call->ticket->fingerprint.canonical);
}

static void
put_version(struct pg_arrays *arrays, const struct shared_call *call)
{
    if (call->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_int(arrays, call->ticket->fingerprint.version);
}

static void
put_window(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, pg_window_of(&call->key, call->ticket));
}

/* An opaque key's window does not end before its record is there. */
static void
put_ends(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays,
                 call->key.opaque ? 0 : pg_window_of(&call->key, call->ticket));
}

static void
put_day(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, call->key.day);
}

static void
put_status(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, call->ticket->answer.status);
}

static void
put_message(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.message);
}

static void
put_reason(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.reason);
}

static void
put_reply(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.reply);
}

static void
put_trailers(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.trailers);
}

static void
put_session(struct pg_arrays *arrays, const struct shared_call *call)
{
    uint8_t digest[32];

    watermark_digest(&call->ticket->id, digest);
    pg_array_bytes(arrays, (struct idem_bytes){digest, sizeof digest});
}

static void
put_number(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, call->ticket->id.key.sequence);
}

const struct shared_column shared_look_columns[] = {
    {PG_ELEMENT_UUID, put_key},
    {PG_ELEMENT_INT, put_ends},
    {PG_ELEMENT_INT, put_day},
    {0, NULL},
};

const struct shared_column shared_lock_columns[] = {
    {PG_ELEMENT_INT, put_lock},
    {0, NULL},
};

const struct shared_column shared_number_columns[] = {
    {PG_ELEMENT_BYTES, put_session},
    {PG_ELEMENT_INT, put_number},
    {0, NULL},
};

const struct shared_column shared_record_columns[] = {
    {PG_ELEMENT_UUID, put_key},       {PG_ELEMENT_BYTES, put_tenant},
    {PG_ELEMENT_TEXT, put_scope},     {PG_ELEMENT_TEXT, put_text},
    {PG_ELEMENT_BYTES, put_raw},      {PG_ELEMENT_BYTES, put_canonical},
    {PG_ELEMENT_INT, put_version},    {PG_ELEMENT_INT, put_window},
    {PG_ELEMENT_INT, put_status},     {PG_ELEMENT_BYTES, put_message},
    {PG_ELEMENT_BYTES, put_reason},   {PG_ELEMENT_BYTES, put_reply},
    {PG_ELEMENT_BYTES, put_trailers}, {0, NULL},
};
