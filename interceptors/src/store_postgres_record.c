#include "store_postgres_record.h"

#include <libpq-fe.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
#define OPAQUE_WINDOW_MS DAY_MS

/* The columns of SQL_LOOK. */
enum look_column {
    LOOK_STATE,
    LOOK_SAME_KEY,
    LOOK_RAW,
    LOOK_CANONICAL,
    LOOK_VERSION,
    LOOK_TOKEN,
    LOOK_EXECUTIONS,
    LOOK_OWNER,
    LOOK_LEASE_LEFT,
    LOOK_LATE,
    LOOK_DROPPED,
    LOOK_STATUS,
    LOOK_MESSAGE,
    LOOK_REASON,
    LOOK_REPLY,
    LOOK_TRAILERS,
    LOOK_FIRST_AT,
    LOOK_UNBEGUN,
};

void
pg_row_key_of(struct row_key *key, const struct idem_record_id *id)
{
    key->opaque = !id->key.minted;
    key->day = 0;
    memcpy(key->bytes, id->digest, sizeof(key->bytes));
    if (key->opaque)
        return;
    key->day = id->key.minted_ms / DAY_MS;
    for (int i = 0; i < 6; i++)
        key->bytes[i] = (uint8_t)(id->key.minted_ms >> (40 - 8 * i));
    memcpy(key->bytes + 6, id->digest, 10);
}

int64_t
pg_row_lock_of(const struct idem_record_id *id)
{
    int64_t lock;

    memcpy(&lock, id->digest + 16, sizeof(lock));
    return lock;
}

static struct idem_bytes
hash_of(const uint8_t hash[32])
{
    return (struct idem_bytes){hash, 32};
}

static void
id_arguments(struct pg_arguments *arguments, const struct row_key *key,
             const struct idem_record_id *id)
{
    arguments->n = 0;
    pg_arguments_bytes(arguments, (struct idem_bytes){key->bytes, 16});
    pg_arguments_bytes(arguments, id->tenant);
    pg_arguments_bytes(arguments, idem_bytes_of(id->scope));
    pg_arguments_bytes(arguments, id->key.text);
}

int64_t
pg_window_of(const struct row_key *key, const struct idem_ticket *ticket)
{
    if (!key->opaque)
        return ticket->id.key.minted_ms + ticket->id.key.window_ms;
    return ticket->window_ms > 0 ? ticket->window_ms : OPAQUE_WINDOW_MS;
}

void
pg_identity_arguments(struct pg_arguments *arguments, const struct row_key *key,
                      const struct idem_ticket *ticket)
{
    id_arguments(arguments, key, &ticket->id);
    if (ticket->fingerprint.version == 0) {
        for (int i = 0; i < 3; i++)
            pg_arguments_null(arguments);
    } else {
        pg_arguments_bytes(arguments, hash_of(ticket->fingerprint.raw));
        pg_arguments_bytes(arguments, hash_of(ticket->fingerprint.canonical));
        pg_arguments_int(arguments, ticket->fingerprint.version);
    }
    pg_arguments_int(arguments, pg_window_of(key, ticket));
}

void
pg_look_arguments(struct pg_arguments *arguments, const struct row_key *key,
                  const struct idem_ticket *ticket)
{
    id_arguments(arguments, key, &ticket->id);
    pg_arguments_int(arguments, key->opaque ? 0 : pg_window_of(key, ticket));
    pg_arguments_int(arguments, key->day);
}

void
pg_answer_arguments(struct pg_arguments *arguments,
                    const struct idem_answer *answer)
{
    pg_arguments_int(arguments, answer->status);
    pg_arguments_bytes(arguments, answer->message);
    pg_arguments_bytes(arguments, answer->reason);
    pg_arguments_bytes(arguments, answer->reply);
    pg_arguments_bytes(arguments, answer->trailers);
}

void
pg_fence_arguments(struct pg_arguments *arguments, const struct row_key *key,
                   int64_t token)
{
    arguments->n = 0;
    pg_arguments_bytes(arguments, (struct idem_bytes){key->bytes, 16});
    pg_arguments_int(arguments, token);
}

void
pg_take_arguments(struct pg_arguments *arguments, const struct row_key *key,
                  const struct record *record, const struct idem_ticket *ticket,
                  int64_t owner, int64_t lease_ms)
{
    pg_fence_arguments(arguments, key, record->token);
    pg_arguments_int(arguments, owner);
    pg_arguments_int(arguments, lease_ms);
    pg_arguments_int(arguments, ticket->steps && !ticket->probe);
    pg_arguments_int(arguments, record->unbegun);
    pg_arguments_int(arguments, ticket->probe);
}

static const struct {
    const char *name;
    enum record_state state;
} states[] = {
    {"RUNNING", RECORD_RUNNING},     {"RELEASED", RECORD_RELEASED},
    {"DONE", RECORD_DONE},           {"DOUBT", RECORD_DOUBT},
    {"ABANDONED", RECORD_ABANDONED},
};

static enum record_state
state_of(struct idem_bytes name)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (idem_bytes_equal(name, idem_bytes_of(states[i].name)))
            return states[i].state;
    return RECORD_ABSENT;
}

static int64_t
number(const struct pg_row *row, int column)
{
    return pg_row_int(row->of, row->at, column);
}

static bool
flag(const struct pg_row *row, int column)
{
    return pg_row_bool(row->of, row->at, column);
}

static void
read_hash(uint8_t hash[32], const struct pg_row *row, int column)
{
    struct idem_bytes bytes = pg_row_bytes(row->of, row->at, column);

    if (bytes.size == 32)
        memcpy(hash, bytes.data, 32);
}

static bool
copy_value(struct idem_bytes *copy, struct idem_arena *arena,
           const struct pg_row *row, int column)
{
    struct idem_bytes bytes = pg_row_bytes(row->of, row->at, column);

    copy->data = idem_arena_copy(arena, bytes);
    copy->size = bytes.size;
    return copy->data != NULL;
}

static bool
read_answer(struct idem_answer *answer, struct idem_arena *arena,
            const struct pg_row *row)
{
    answer->status = (enum idem_status)number(row, LOOK_STATUS);
    return copy_value(&answer->message, arena, row, LOOK_MESSAGE) &&
           copy_value(&answer->reason, arena, row, LOOK_REASON) &&
           copy_value(&answer->reply, arena, row, LOOK_REPLY) &&
           copy_value(&answer->trailers, arena, row, LOOK_TRAILERS);
}

bool
pg_record_read_row(struct record *record, int64_t *owner,
                   const struct idem_ticket *ticket, const struct pg_row *row)
{
    memset(record, 0, sizeof(*record));
    record->state = state_of(pg_row_bytes(row->of, row->at, LOOK_STATE));
    record->same_key = flag(row, LOOK_SAME_KEY);
    record->has_fingerprint = !pg_row_null(row->of, row->at, LOOK_RAW);
    record->fingerprint.version = (unsigned)number(row, LOOK_VERSION);
    read_hash(record->fingerprint.raw, row, LOOK_RAW);
    read_hash(record->fingerprint.canonical, row, LOOK_CANONICAL);
    record->token = number(row, LOOK_TOKEN);
    record->executions = (unsigned)number(row, LOOK_EXECUTIONS);
    record->lease_left_ms = number(row, LOOK_LEASE_LEFT);
    record->unbegun = flag(row, LOOK_UNBEGUN);
    record->window_over = flag(row, LOOK_LATE);
    record->dropped = flag(row, LOOK_DROPPED);
    record->answer.first_at_ms = number(row, LOOK_FIRST_AT);
    *owner = number(row, LOOK_OWNER);
    return record->state != RECORD_DONE || !ticket->arena ||
           read_answer(&record->answer, ticket->arena, row);
}

bool
pg_record_read(struct record *record, int64_t *owner,
               const struct idem_ticket *ticket, const struct pg_query *query)
{
    const struct pg_row row = {query->result, 0};

    return pg_record_read_row(record, owner, ticket, &row);
}
