/* A list whose lines are taken in once each, in order, however often its client
 * is killed and started again:
 *
 *    import ADDRESS LIST PLACE
 *    import serve ADDRESS BOOKS
 *
 * PLACE is a file: the key of the line that is next, on the disk before the
 * first one is sent. LIST is read from there on. PLACE goes when all of it is
 * in.
 *
 * Exit code 0: all of it; 1: a line was refused; 75: start it again. */
#include "stock.idem.h"

#include <err.h>
#include <errno.h>
#include <idem/key.h>
#include <idem/sqlite.h>
#include <idem/standard.h>
#include <idem/tx.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_AGAIN 75 /* EX_TEMPFAIL */
#define WINDOW_MS 86400000
#define LINE_MAX_SIZE 256
#define NOTE_EVERY 50 /* lines */

/* --- The server --- */

static enum idem_status
take_in(struct idem_context *context, const stock_line *line)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);

    if (!tx || idem_sql(tx, NULL, &err, "INSERT INTO stock (line) VALUES ($1)",
                        IDEM_VALUES(idem_text(line->text))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return IDEM_OK;
}

static enum idem_status
count_lines(struct idem_context *context, stock_import_reply *reply)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);
    struct idem_rows *rows;

    if (!tx || idem_sql(tx, &rows, &err, "SELECT count(*) FROM stock",
                        IDEM_NO_VALUES) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    reply->lines = idem_rows_int(rows, 0, 0);
    return IDEM_OK;
}

static const struct stock_handlers handlers = {
    .import = take_in,
    .import_end = count_lines,
};

static void
must(enum idem_status status, const struct idem_error *error)
{
    if (status != IDEM_OK)
        errx(1, "%s", error->message);
}

static int
serve(const char *address, const char *books)
{
    const struct idem_sqlite_options options = {
        .path = books,
        .schema = "CREATE TABLE IF NOT EXISTS stock "
                  "(id INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL)"};
    struct idem_store *store;
    struct idem_server *server;
    struct idem_error error;
    sigset_t ends;
    int number;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    must(idem_sqlite_open(&store, &options, &error), &error);
    must(idem_server_open(&server, store, NULL, NULL, &error), &error);
    must(stock_register(server, &handlers, NULL, &error), &error);
    must(idem_server_listen(server, address, &error), &error);
    must(idem_server_start(server, &error), &error);
    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(&ends, &number);
    idem_server_free(server);
    return 0;
}

/* --- The client --- */

/* All of it or nothing, and on the disk when it returns. */
static void
note_place(const char *key, const char *path)
{
    char draft[4096];
    FILE *file;

    snprintf(draft, sizeof draft, "%s.draft", path);
    file = fopen(draft, "we");
    if (!file || fprintf(file, "%s\n", key) < 0 || fflush(file) != 0 ||
        fsync(fileno(file)) < 0 || fclose(file) != 0 || rename(draft, path) < 0)
        err(EXIT_AGAIN, "%s", draft);
}

/* A session of this client's own: its key is known before anything is sent. */
static void
begin_session(char *key, const char *path)
{
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, idem_clock_system(), 0, WINDOW_MS);
    idem_key_of_session(key, session, 1);
    note_place(key, path);
}

static void
find_place(char *key, const char *path)
{
    FILE *file = fopen(path, "re");

    if (!file && errno == ENOENT) {
        begin_session(key, path);
        return;
    }
    if (!file || fscanf(file, "%255s", key) != 1)
        errx(EXIT_AGAIN, "%s: cannot be read", path);
    fclose(file);
}

static bool
read_line(FILE *list, char *text)
{
    if (!fgets(text, LINE_MAX_SIZE, list))
        return false;
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static FILE *
open_list(const char *path, const char *key)
{
    char session[IDEM_SESSION_MAX], text[LINE_MAX_SIZE];
    FILE *list = fopen(path, "re");
    int64_t next;

    if (!list)
        err(64, "%s", path);
    if (!idem_session_split(idem_bytes_of(key), session, &next))
        errx(64, "%s is no session's key", key);
    while (next-- > 1 && read_line(list, text))
        ;
    return list;
}

static void
send_lines(struct stock_import_stream *stream, FILE *list, const char *place)
{
    char text[LINE_MAX_SIZE], key[IDEM_KEY_MAX + 1];
    stock_line line = STOCK_LINE_INIT;

    line.text = text;
    for (unsigned n = 1; read_line(list, text); n++) {
        if (stock_import_write(stream, &line) != IDEM_OK)
            return; /* the outcome says why */
        if (n % NOTE_EVERY == 0 && stock_import_key(stream, key))
            note_place(key, place);
    }
}

static int
import(struct idem_channel *channel, FILE *list, const char *key,
       const char *place)
{
    const struct idem_call_options options = {.key = key, .timeout_ms = 600000};
    struct stock_import_stream *stream = stock_import_open(channel, &options);
    stock_import_reply *reply = NULL;
    struct idem_outcome outcome;

    send_lines(stream, list, place);
    if (stock_import_finish(stream, &reply, &outcome) == IDEM_OK)
        printf("%" PRId64 " lines, ", reply->lines);
    printf("%s %s after %" PRId64 " %s\n", idem_status_name(outcome.status),
           idem_effect_name(outcome.effect), outcome.watermark,
           outcome.message);
    stock_import_reply_free(reply);
    if (outcome.status != IDEM_OK) {
        note_place(outcome.key, place);
        return outcome.final ? 1 : EXIT_AGAIN;
    }
    if (unlink(place) < 0)
        err(EXIT_AGAIN, "%s", place);
    return 0;
}

int
main(int argc, char **argv)
{
    char key[IDEM_KEY_MAX + 1];
    struct idem_channel *channel;
    struct idem_error error;
    FILE *list;
    int code;

    if (argc != 4)
        errx(64, "import ADDRESS LIST PLACE, or import serve ADDRESS BOOKS");
    if (strcmp(argv[1], "serve") == 0)
        return serve(argv[2], argv[3]);
    find_place(key, argv[3]);
    list = open_list(argv[2], key);
    must(idem_client_open(&channel, argv[1], NULL, &error), &error);
    code = import(channel, list, key, argv[3]);
    idem_channel_close(channel);
    fclose(list);
    return code;
}
