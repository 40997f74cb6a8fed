#include "store_postgres_sql.h"

#include "watermark.h"

/* "@record" and the like are marks: store_postgres_marks.c. */

#define MS(time) "floor(extract(epoch FROM " time ") * 1000)::bigint"

/* The record of a claim is $1 key, $2 tenant, $3 scope, $4 text, $5 raw, $6
 * canonical, $7 version, $8 window or end of the window in ms. */
#define IDENTITY "key, tenant, scope, key_text, raw, canonical, version"
#define IDENTITY_VALUES                                                        \
    "$1::uuid, $2::bytea, $3::text, $4::text, $5::bytea, $6::bytea, "          \
    "$7::bigint"
/* Whatever the handler set: what is told as done is on disk. */
#define DURABLY                                                                \
    "set_config('synchronous_commit', CASE "                                   \
    "current_setting('synchronous_commit') WHEN 'remote_apply' THEN "          \
    "'remote_apply' ELSE 'on' END, true)"
/* The same where it mostly is so: what is set costs something at the end. */
#define DURABLY_IF_NOT                                                         \
    "CASE WHEN current_setting('synchronous_commit') IN ('on', "               \
    "'remote_apply') THEN '' ELSE " DURABLY " END"
/* From here to the end of the transaction plans are made as handlers expect;
 * ours are made before, of single keys. */
#define HANDLERS_PLANS                                                         \
    "set_config('plan_cache_mode', 'auto', true), "                            \
    "set_config('enable_seqscan', 'on', true)"
#define ANSWER "state = 'DONE', lease_until = NULL, done_at = clock_timestamp()"

/* Of SQL_LOOK and its twin for many: `one` is what is asked for. */
#define LOOK_COLUMNS                                                           \
    "r.state, r.tenant = one.tenant AND r.scope = one.scope AND "              \
    "r.key_text = one.key_text, r.raw, r.canonical, r.version, r.token, "      \
    "r.executions, r.owner, ceil(extract(epoch FROM r.lease_until - "          \
    "clock_timestamp()) * 1000)::bigint, @late, @dropped, r.status, "          \
    "r.message, r.reason, r.reply, r.trailers, " MS(                           \
        "r.first_at") ", "                                                     \
                      "NOT r.begun"

#define IN_MS(ms) "clock_timestamp() + " ms " * interval '1 ms'"

/* A change of the records whose tokens match. Not an UPDATE with a join: no
 * planner's idea of how large a table is can turn this into a scan
 * (decisions/0013). The row that it would insert is never to be: 1 / 0 then
 * undoes the batch. A lock that is not needed for the change is its price. */
#define EACH(columns, values, arrays, set, guard, returning)                   \
    "INSERT INTO @record AS r (key, token, tenant, scope, key_text, "          \
    "executions, " columns " @columns) SELECT one.key, one.token, ''::bytea, " \
    "'', '', -1, " values " @never FROM (SELECT @each($1::uuid) AS key, "      \
    "@each($2::bigint) AS token" arrays                                        \
    ") AS one ON CONFLICT (key) DO UPDATE SET " set                            \
    " WHERE r.token = excluded.token AND " guard " RETURNING key, " returning  \
    ", 1 / (executions + 1)"
/* Arrays of one length, side by side. In front of FROM they cost half of what
 * they do behind it, where each is a table first. For a single key they are no
 * arrays (SQL_ONE). */
#define EACH_IDENTITY                                                          \
    "@each($1::uuid) AS key, @each($2::bytea) AS tenant, "                     \
    "@each($3::text) AS scope, @each($4::text) AS key_text, "                  \
    "@each($5::bytea) AS raw, @each($6::bytea) AS canonical, "                 \
    "@each($7::bigint) AS version, @each($8::bigint) AS ends"
#define EACH_CLAIM(conflict)                                                   \
    "INSERT INTO @record (" IDENTITY                                           \
    ", state, token, executions, owner, lease_until, begun @columns) "         \
    "SELECT one.key, one.tenant, one.scope, one.key_text, one.raw, "           \
    "one.canonical, one.version, 'RUNNING', 1, 1, one.owner, " IN_MS(          \
        "one.lease_ms") ", one.steps = 0 @kept_each FROM "                     \
                        "(SELECT " EACH_IDENTITY                               \
                        ", @each($9::bigint) AS owner, "                       \
                        "@each($10::bigint) AS lease_ms, "                     \
                        "@each($11::bigint) AS steps) AS one "                 \
                        "@begins_each " conflict "RETURNING key"
#define OWNED "r.state IN ('RUNNING', 'DOUBT')"
#define EACH_COMPLETE                                                          \
    EACH("state, done_at, status, message, reason, reply, trailers",           \
         "'DONE', clock_timestamp(), one.status, one.message, one.reason, "    \
         "one.reply, one.trailers",                                            \
         ", @each($3::bigint) AS status, @each($4::bytea) AS message, "        \
         "@each($5::bytea) AS reason, @each($6::bytea) AS reply, "             \
         "@each($7::bytea) AS trailers",                                       \
         "state = 'DONE', lease_until = NULL, done_at = excluded.done_at, "    \
         "status = excluded.status, message = excluded.message, "              \
         "reason = excluded.reason, reply = excluded.reply, "                  \
         "trailers = excluded.trailers",                                       \
         OWNED, "first_at")

#define SHARE_RECORD                                                           \
    "INSERT INTO @record (" IDENTITY                                           \
    ", state, token, executions, first_at, done_at, status, message, "         \
    "reason, reply, trailers @columns) SELECT one.key, one.tenant, "           \
    "one.scope, one.key_text, one.raw, one.canonical, one.version, 'DONE', "   \
    "1, 1, date_trunc('milliseconds', now()), clock_timestamp(), "             \
    "one.status, one.message, one.reason, one.reply, one.trailers "            \
    "@kept_each FROM (SELECT " EACH_IDENTITY                                   \
    ", @each($9::bigint) AS status, @each($10::bytea) AS message, "            \
    "@each($11::bytea) AS reason, @each($12::bytea) AS reply, "                \
    "@each($13::bytea) AS trailers) AS one "                                   \
    "WHERE (SELECT " DURABLY_IF_NOT ") IS NOT NULL @in_time"

/* Its client has told that it has the answer. A scalar sub-select is neither
 * joined nor hashed. */
#define IS_STALE                                                               \
    "(SELECT s.acked FROM @session AS s WHERE s.session = one.session) > "     \
    "one.number"

#define TEXT_OF(number) #number
#define STEP_OF(number) TEXT_OF(number)
#define STEP STEP_OF(WATERMARK_STEP)

const char *const pg_templates[SQL_STATEMENTS] = {
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_LOCK] = "SELECT pg_try_advisory_xact_lock($1)",
    [SQL_LOCK_LIMITED] =
        "SELECT pg_try_advisory_xact_lock($1), "
        "set_config('statement_timeout', $2::bigint::text, true), "
        "set_config('idle_in_transaction_session_timeout', "
        "$3::bigint::text, true)",
    [SQL_LOCK_SHARED] = "SELECT pg_try_advisory_xact_lock_shared($1)",
    [SQL_PATIENT] =
        "SELECT set_config('statement_timeout', $1::bigint::text, true), "
        "set_config('lock_timeout', '0', true)",
    [SQL_NOTE_WINDOW] =
        "WITH noted AS (UPDATE @day SET max_window_ms = $2::bigint "
        "WHERE day = $1::bigint AND max_window_ms < $2::bigint RETURNING day) "
        "SELECT day FROM @day WHERE day = $1::bigint AND open",
    [SQL_WATERMARK] = "SELECT acked FROM @session WHERE session = $1::bytea",
    [SQL_NUMBER] = "SELECT 1 / (NOT EXISTS (SELECT FROM @session WHERE session "
                   "= $1::bytea AND acked > $2::bigint))::int",
    [SQL_SHARE_NUMBERS] =
        "SELECT 1 / (NOT EXISTS (SELECT FROM unnest($1::bytea[], $2::bigint[]) "
        "AS one (session, number) WHERE " IS_STALE "))::int",
    [SQL_SHARE_STALE] =
        "SELECT one.n FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY "
        "AS one (session, number, n) WHERE " IS_STALE,
    [SQL_ACKNOWLEDGE] =
        "INSERT INTO @session AS s (session, acked, gone_at) VALUES ("
        "$1::bytea, least($2::bigint, 1 + " STEP "), "
        "to_timestamp($3::bigint / 1000.0)) ON CONFLICT (session) DO UPDATE "
        "SET acked = least($2::bigint, s.acked + " STEP ") "
        "WHERE s.acked < $2::bigint RETURNING acked",
    [SQL_BY_KEYS] = "SELECT set_config('enable_bitmapscan', 'off', true), "
                    "set_config('enable_hashjoin', 'off', true), "
                    "set_config('enable_mergejoin', 'off', true)",
    [SQL_FORGET] =
        "DELETE FROM @record WHERE state = 'DONE' AND key IN (SELECT "
        "encode(substr($1::bytea, (i * 16 + 1)::int, 16), 'hex')::uuid "
        "FROM generate_series(0, $2::bigint - 1) AS i)",
    [SQL_SHARE_LOCK] =
        "SELECT one.n FROM unnest($1::bigint[]) WITH ORDINALITY AS one "
        "(lock, n) WHERE NOT pg_try_advisory_xact_lock(one.lock)",
    [SQL_SHARE_BY_KEY] =
        "SELECT set_config('plan_cache_mode', 'force_generic_plan', true), "
        "set_config('enable_seqscan', 'off', true), "
        "set_config('enable_bitmapscan', 'off', true), "
        "set_config('enable_hashjoin', 'off', true), "
        "set_config('enable_mergejoin', 'off', true)",
    [SQL_SHARE_BEGIN] =
        "SELECT now(), set_config('statement_timeout', $1::bigint::text, "
        "true), set_config('lock_timeout', $2::bigint::text, true), "
        "set_config('plan_cache_mode', 'auto', true), "
        "set_config('enable_seqscan', 'on', true), "
        "set_config('enable_bitmapscan', 'on', true), "
        "set_config('enable_hashjoin', 'on', true), "
        "set_config('enable_mergejoin', 'on', true)",
    [SQL_SHARE_NOW] = "SELECT now()",
    [SQL_READ] = "SELECT " MS("clock_timestamp()") ", " HANDLERS_PLANS,
    [SQL_SAVE] = "SAVEPOINT idem_joint",
    [SQL_UNDO] = "ROLLBACK TO SAVEPOINT idem_joint",
    [SQL_LOOK] = "SELECT " LOOK_COLUMNS
                 " FROM (SELECT $2::bytea AS tenant, $3::text AS scope, "
                 "$4::text AS key_text, $5::bigint AS ends, $6::bigint AS day) "
                 "AS one LEFT JOIN @record AS r ON r.key = $1::uuid",
    [SQL_LOOK_ABSENT] =
        "SELECT NOT (@late) AND (SELECT r.state FROM @record AS r WHERE r.key "
        "= $1::uuid) IS NULL, " MS(
            "clock_timestamp()") ", " HANDLERS_PLANS
                                 " FROM (SELECT $2::bigint AS ends, $3::bigint "
                                 "AS day) AS one",
    [SQL_TAKE] =
        "UPDATE @record SET state = 'RUNNING', token = token + 1, "
        "executions = executions + 1, owner = $3::bigint, "
        "lease_until = clock_timestamp() + $4::bigint * interval '1 ms', "
        "begun = $5::bigint = 0, step = NULL "
        "WHERE key = $1::uuid AND token = $2::bigint AND (state = 'RELEASED' "
        "OR state = 'DOUBT' AND $7::bigint = 1 "
        "OR state = 'RUNNING' AND lease_until <= clock_timestamp() "
        "AND begun = ($6::bigint = 0)) "
        "RETURNING token, executions",
    [SQL_HOLD] = "UPDATE @record SET state = 'DOUBT', lease_until = NULL "
                 "WHERE key = $1::uuid AND token = $2::bigint AND "
                 "state = 'RUNNING' AND lease_until <= clock_timestamp()",
    [SQL_COMPLETE] =
        "UPDATE @record SET " ANSWER ", status = $3::bigint, "
        "message = $4::bytea, reason = $5::bytea, reply = $6::bytea, "
        "trailers = $7::bytea WHERE key = $1::uuid AND token = $2::bigint "
        "AND state IN ('RUNNING', 'DOUBT') RETURNING " MS(
            "first_at") ", " DURABLY,
    [SQL_RECORD] =
        "INSERT INTO @record (" IDENTITY ", state, token, executions, done_at, "
        "status, message, reason, reply, trailers, first_at @columns) "
        "SELECT " IDENTITY_VALUES ", 'DONE', 1, 1, clock_timestamp(), "
        "$9::bigint, $10::bytea, $11::bytea, $12::bytea, $13::bytea, "
        "to_timestamp($14::bigint / 1000.0) @values "
        "WHERE $8::bigint IS NOT NULL AND " DURABLY_IF_NOT " IS NOT NULL",
    [SQL_RELEASE] = "UPDATE @record SET state = 'RELEASED', lease_until = NULL "
                    "WHERE key = $1::uuid AND token = $2::bigint AND "
                    "state IN ('RUNNING', 'DOUBT')",
    [SQL_COUNT] =
        "INSERT INTO @record (" IDENTITY ", state, token, executions @columns) "
        "SELECT " IDENTITY_VALUES ", 'RELEASED', 1, 1 @values "
        "WHERE $8::bigint IS NOT NULL ON CONFLICT (key) DO NOTHING",
    [SQL_EXPIRE] =
        "INSERT INTO @record AS r (" IDENTITY ", state, token, executions "
        "@columns) SELECT " IDENTITY_VALUES ", 'RELEASED', 1, 0 @values "
        "WHERE $8::bigint IS NOT NULL ON CONFLICT (key) DO UPDATE "
        "SET token = r.token + 1 WHERE r.state = 'RELEASED'",
    [SQL_DOUBT_UNSEEN] =
        "INSERT INTO @record AS r (" IDENTITY ", state, token, executions "
        "@columns) SELECT " IDENTITY_VALUES ", 'DOUBT', 1, 1 @values "
        "WHERE $8::bigint IS NOT NULL ON CONFLICT (key) DO UPDATE "
        "SET state = 'DOUBT', lease_until = NULL "
        "WHERE r.state IN ('RUNNING', 'RELEASED')",
    [SQL_ABANDON] =
        "INSERT INTO @record (" IDENTITY ", state, token, executions, done_at "
        "@columns) SELECT " IDENTITY_VALUES ", 'ABANDONED', 1, 0, "
        "clock_timestamp() @values WHERE @begins ON CONFLICT (key) DO NOTHING",
    [SQL_ABANDON_AGAIN] =
        "UPDATE @record SET state = 'ABANDONED', token = token + 1, "
        "lease_until = NULL, done_at = clock_timestamp() WHERE "
        "key = $1::uuid AND token = $2::bigint AND (state = 'RELEASED' OR "
        "state = 'RUNNING' AND lease_until <= clock_timestamp() AND "
        "NOT begun)",
    [SQL_SETTLE] =
        "WITH settled AS (UPDATE @record SET state = $3::text, "
        "token = token + 1, lease_until = NULL, done_at = "
        "CASE WHEN $3::text = 'DONE' THEN clock_timestamp() END, "
        "status = $4::bigint, message = $5::bytea, reason = $6::bytea, "
        "reply = $7::bytea, trailers = $8::bytea @kept WHERE key = $1::uuid "
        "AND token = $2::bigint AND (state = 'DOUBT' OR state = 'RUNNING' AND "
        "lease_until <= clock_timestamp()) "
        "RETURNING tenant, scope, key_text) "
        "INSERT INTO @settlement (tenant, scope, key_text, token, state, "
        "settled_by, why) SELECT tenant, scope, key_text, $2::bigint, "
        "$3::text, $9::text, $10::text FROM settled",
    /* OFFSET 0: each key is looked up by itself, whatever the statistics say */
    [SQL_EACH_LOOK] =
        "SELECT " LOOK_COLUMNS
        ", one.key FROM (SELECT unnest($1::uuid[]) AS key, "
        "unnest($2::bytea[]) AS tenant, unnest($3::text[]) AS scope, "
        "unnest($4::text[]) AS key_text, unnest($5::bigint[]) AS ends, "
        "unnest($6::bigint[]) AS day) AS one LEFT JOIN LATERAL (SELECT * FROM "
        "@record AS all_r WHERE all_r.key = one.key OFFSET 0) AS r ON true",
    [SQL_EACH_CLAIM] = EACH_CLAIM("ON CONFLICT (key) DO NOTHING "),
    [SQL_EACH_CLAIM_NEW] = EACH_CLAIM(""),
    [SQL_EACH_COMPLETE] = EACH_COMPLETE,
    [SQL_EACH_RELEASE] =
        EACH("state", "'RELEASED'", "",
             "state = 'RELEASED', lease_until = NULL", OWNED, "0"),
    [SQL_EACH_DOUBT] = EACH("state", "'DOUBT'", "",
                            "state = 'DOUBT', lease_until = NULL", OWNED, "0"),
    [SQL_EACH_RENEW] =
        EACH("state, lease_until", "'RUNNING', " IN_MS("one.lease_ms"),
             ", @each($3::bigint) AS lease_ms",
             "lease_until = excluded.lease_until", "r.state = 'RUNNING'", "0"),
    [SQL_EACH_MARK] =
        EACH("state, lease_until, step", "'RUNNING', 'infinity', one.step",
             ", @each($3::text) AS step", "begun = true, step = excluded.step",
             "r.state = 'RUNNING' AND r.lease_until > clock_timestamp()", "0"),
    /* A scalar sub-select is neither joined nor hashed. */
    [SQL_SHARE_LOOK] =
        "SELECT one.n FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) "
        "WITH ORDINALITY AS one (key, ends, day, n) WHERE @late OR "
        "(SELECT r.state FROM @record AS r WHERE r.key = one.key) IS NOT NULL",
    [SQL_SHARE_RECORD] = SHARE_RECORD,
    [SQL_ONE_CLAIM] = EACH_CLAIM("ON CONFLICT (key) DO NOTHING "),
    [SQL_ONE_CLAIM_NEW] = EACH_CLAIM(""),
    [SQL_ONE_COMPLETE] = EACH_COMPLETE,
    [SQL_ONE_RECORD] = SHARE_RECORD " RETURNING first_at",
};
