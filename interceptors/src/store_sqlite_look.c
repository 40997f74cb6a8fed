#include "store_sqlite.h"

#include "store_sqlite_record.h"

#include <sqlite3.h>

/* What became of a key: read beside the writer, so that a handler's open
 * transaction delays nobody who only asks. */

/* Does an open day take the ticket's key, or does it need none? 1, 0, -1. */
static int
has_place(struct sqlite_db *db, struct idem_ticket *ticket)
{
    sqlite3_stmt *statement;
    int code;

    if (!ticket->id.key.minted)
        return 1;
    statement = sqlite_db_use(db,
                              "SELECT 1 FROM idem_day"
                              " WHERE day = ?1 / 86400000 AND open = 1",
                              &ticket->error);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, ticket->id.key.minted_ms);
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        (void)sqlite_db_fail(db, &ticket->error);
    sqlite_db_done(statement);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

/* A key that was never seen, or one that is forgotten with its day? */
static bool
tell_place(struct sqlite_db *db, struct idem_ticket *ticket)
{
    int place = has_place(db, ticket);

    if (place == 0)
        ticket->verdict = IDEM_VERDICT_EXPIRED;
    return place >= 0;
}

static bool
look(struct sqlite_store *store, struct sqlite_db *db,
     struct idem_ticket *ticket)
{
    struct record record;
    int64_t now_ms = store->clock->wall_ms(store->clock);

    /* Before the read: a transaction that ends in between is seen by it. */
    if (sqlite_writer_is_open(store, &ticket->id)) {
        ticket->verdict = IDEM_VERDICT_RUNNING;
        ticket->wait_ms = 0;
        return true;
    }
    if (!sqlite_record_read(db, &record, ticket, now_ms))
        return false;
    record_look(&record, ticket);
    return ticket->verdict != IDEM_VERDICT_ABSENT || tell_place(db, ticket);
}

static void
answer(struct sqlite_store *store, struct idem_ticket *ticket)
{
    struct sqlite_reader *reader = sqlite_reader_take(store, &ticket->error);

    if (!reader || !(ticket->op == SQLITE_OP_WATERMARK
                         ? sqlite_watermark(&reader->db, ticket)
                         : look(store, &reader->db, ticket)))
        ticket->verdict = IDEM_VERDICT_FAILED;
    if (reader)
        sqlite_reader_give(store, reader);
    ticket->done(ticket);
}

static struct idem_ticket *
wait_for_ticket(struct sqlite_store *store)
{
    struct sqlite_looker *looker = &store->looker;
    struct idem_ticket *ticket;

    pthread_mutex_lock(&looker->lock);
    while (!looker->asked.first && !looker->stop)
        pthread_cond_wait(&looker->wake, &looker->lock);
    ticket = sqlite_queue_pop(&looker->asked);
    pthread_mutex_unlock(&looker->lock);
    return ticket;
}

static void *
look_all(void *with)
{
    struct sqlite_store *store = with;
    struct idem_ticket *ticket;

    while ((ticket = wait_for_ticket(store)))
        answer(store, ticket);
    return NULL;
}

enum idem_status
sqlite_looker_start(struct sqlite_store *store, struct idem_error *err)
{
    if (pthread_create(&store->looker.thread, NULL, look_all, store) != 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no thread");
    return IDEM_OK;
}

void
sqlite_looker_submit(struct sqlite_store *store, struct idem_ticket *ticket,
                     enum sqlite_op op)
{
    struct sqlite_looker *looker = &store->looker;

    ticket->op = op;
    pthread_mutex_lock(&looker->lock);
    sqlite_queue_push(&looker->asked, ticket);
    pthread_cond_signal(&looker->wake);
    pthread_mutex_unlock(&looker->lock);
}

void
sqlite_looker_stop(struct sqlite_store *store)
{
    struct sqlite_looker *looker = &store->looker;

    pthread_mutex_lock(&looker->lock);
    looker->stop = true;
    pthread_cond_signal(&looker->wake);
    pthread_mutex_unlock(&looker->lock);
    pthread_join(looker->thread, NULL);
}
