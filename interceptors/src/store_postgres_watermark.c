#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"
#include "watermark.h"

#include <string.h>

/* Sessions: each statement a commit of its own, the watermark's before that of
 * the records which it lets go. */

static void
fail_with(struct idem_ticket *ticket, const struct pg_query *query)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)pg_fail_result(&ticket->error, query->result);
}

/* One statement; *number receives the first value, 0 when there is no row. An
 * error of the statement fails the ticket. */
static enum pg_end
ask(struct pg_session *session, struct idem_ticket *ticket,
    enum statement statement, const struct pg_arguments *arguments,
    int64_t *number)
{
    struct pg_query query =
        pg_session_query(session, statement, false, arguments);
    enum pg_end end = pg_session_run(session, &query, 1);

    *number = 0;
    if (end != PG_OK)
        return end;
    if (!pg_query_ok(&query))
        fail_with(ticket, &query);
    else if (pg_query_rows(&query) > 0)
        *number = pg_value_int(query.result, 0);
    pg_queries_clear(&query, 1);
    return PG_OK;
}

enum pg_end
pg_watermark(struct pg_session *session, struct idem_ticket *ticket, bool again)
{
    struct pg_arguments arguments = {0};
    uint8_t digest[32];
    int64_t acked;
    enum pg_end end;

    (void)again;
    watermark_digest(&ticket->id, digest);
    pg_arguments_bytes(&arguments, (struct idem_bytes){digest, sizeof digest});
    ticket->verdict = IDEM_VERDICT_MINE;
    end = ask(session, ticket, SQL_WATERMARK, &arguments, &acked);
    if (end == PG_OK && acked > ticket->id.key.sequence)
        ticket->verdict = IDEM_VERDICT_EXPIRED;
    return end;
}

struct pg_query
pg_number_query(struct pg_session *session, const struct idem_ticket *ticket,
                struct pg_arguments *arguments, uint8_t digest[32])
{
    watermark_digest(&ticket->id, digest);
    arguments->n = 0;
    pg_arguments_bytes(arguments, (struct idem_bytes){digest, 32});
    pg_arguments_int(arguments, ticket->id.key.sequence);
    return pg_session_query(session, SQL_NUMBER, false, arguments);
}

/* The records of the last step below the watermark. */
static enum pg_end
forget(struct pg_session *session, struct idem_ticket *ticket, int64_t acked)
{
    int64_t first = acked > WATERMARK_STEP ? acked - WATERMARK_STEP : 1;
    struct pg_query queries[2];
    enum pg_end end;
    uint8_t keys[WATERMARK_STEP][16];
    struct pg_arguments arguments = {0};
    struct idem_record_id id = ticket->id;
    struct row_key key;

    for (int64_t i = first; i < acked; i++) {
        watermark_record(&ticket->id, i, id.digest);
        pg_row_key_of(&key, &id);
        memcpy(keys[i - first], key.bytes, sizeof key.bytes);
    }
    pg_arguments_bytes(
        &arguments,
        (struct idem_bytes){keys[0], (size_t)(acked - first) * sizeof keys[0]});
    pg_arguments_int(&arguments, acked - first);
    queries[0] = pg_session_query(session, SQL_BY_KEYS, false, NULL);
    queries[1] = pg_session_query(session, SQL_FORGET, false, &arguments);
    end = pg_session_run(session, queries, 2);
    if (end == PG_OK && !pg_query_ok(&queries[1]))
        fail_with(ticket, &queries[pg_query_ok(&queries[0]) ? 1 : 0]);
    if (end == PG_OK)
        pg_queries_clear(queries, 2);
    return end;
}

enum pg_end
pg_acknowledge(struct pg_session *session, struct idem_ticket *ticket,
               bool again)
{
    struct pg_arguments arguments = {0};
    uint8_t digest[32];
    int64_t below = watermark_bounded(ticket), acked;
    enum pg_end end;

    (void)again;
    ticket->verdict = IDEM_VERDICT_MINE;
    if (below <= 1)
        return PG_OK;
    watermark_digest(&ticket->id, digest);
    pg_arguments_bytes(&arguments, (struct idem_bytes){digest, sizeof digest});
    pg_arguments_int(&arguments, below);
    pg_arguments_int(&arguments, watermark_gone_ms(&ticket->id));
    end = ask(session, ticket, SQL_ACKNOWLEDGE, &arguments, &acked);
    (void)IDEM_FAULT("postgres.acknowledge.moved");
    if (end == PG_OK && acked > 1)
        end = forget(session, ticket, acked);
    return end;
}
