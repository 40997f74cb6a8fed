#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal_site.h"

#include "tcp_proxy.h"

#include <idem/call.h>

#include <pthread.h>
#include <stdatomic.h>

/* A thread that writes a stream of entries to whatever servers there are, and
 * what must be in the books when it is over. */

#define JOURNAL_COUNT 200 /* entries, usually */
#define JOURNAL_CALL_MS 60000

enum journal_kind { JOURNAL_WRITE, JOURNAL_PUSH, JOURNAL_ASK };

struct journal_writer {
    enum journal_kind kind;
    const char *target;
    int64_t count;
    void (*at)(struct journal_writer *writer, int64_t written); /* after each */
    struct tcp_proxy *proxy;
    int64_t cut_at; /* the watermark of the last cut */
    unsigned cuts;

    pthread_t thread, reader;
    void *stream;
    int64_t read;
    bool strange; /* an answer was not the next */
    char words[JOURNAL_COUNT][32];
    int64_t entries;
    struct idem_outcome outcome;
    atomic_bool over;
};

/* Begin, with kind, target and count; its thread is the caller's to join. */
void journal_writer_start(struct journal_writer *writer);

/* All took effect, once and in order; the site's checker is told. */
void assert_journal_written(struct journal_site *site,
                            const struct journal_writer *writer);

#endif
