#include "store_sqlite.h"

#include <stdlib.h>

struct sqlite_reader *
sqlite_reader_take(struct sqlite_store *store, struct idem_error *err)
{
    struct sqlite_reader *reader;

    pthread_mutex_lock(&store->readers_lock);
    reader = store->readers;
    if (reader)
        store->readers = reader->next;
    pthread_mutex_unlock(&store->readers_lock);
    if (reader)
        return reader;
    reader = calloc(1, sizeof *reader);
    if (!reader) {
        (void)idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    if (sqlite_db_open(&reader->db, store->path, true, store->busy_ms, err) ==
        IDEM_OK)
        return reader;
    free(reader);
    return NULL;
}

void
sqlite_reader_give(struct sqlite_store *store, struct sqlite_reader *reader)
{
    pthread_mutex_lock(&store->readers_lock);
    reader->next = store->readers;
    store->readers = reader;
    pthread_mutex_unlock(&store->readers_lock);
}

void
sqlite_readers_close(struct sqlite_store *store)
{
    while (store->readers) {
        struct sqlite_reader *reader = store->readers;

        store->readers = reader->next;
        sqlite_db_close(&reader->db);
        free(reader);
    }
}

struct idem_tx *
sqlite_begin_read(struct idem_store *base, struct idem_arena *arena,
                  int64_t deadline_ns, struct idem_error *err)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct sqlite_reader *reader = sqlite_reader_take(store, err);

    if (!reader)
        return NULL;
    if (sqlite_db_run(&reader->db, "BEGIN", err) != IDEM_OK) {
        sqlite_reader_give(store, reader);
        return NULL;
    }
    sqlite_tx_init(&reader->tx, &reader->db, store->clock, arena, deadline_ns);
    return &reader->tx.base;
}

void
sqlite_end_read(struct idem_store *base, struct idem_tx *tx)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct sqlite_reader *reader = (struct sqlite_reader *)tx;

    sqlite_tx_fini(&reader->tx);
    sqlite_db_rollback(&reader->db);
    sqlite_reader_give(store, reader);
}
