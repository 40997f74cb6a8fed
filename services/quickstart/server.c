#include "shop.idem.h"
#include <err.h>
#include <idem/sqlite.h>
#include <idem/standard.h>
#include <idem/tx.h>
#include <stdio.h>

static enum idem_status
buy(struct idem_context *context, const shop_buy_request *request,
    shop_buy_reply *reply)
{
    const char *sql = "UPDATE stock SET n = n - $1 WHERE n >= $1 RETURNING n";
    struct idem_error err;
    struct idem_rows *rows;
    struct idem_tx *tx = idem_context_tx(context, &err);

    if (!tx ||
        idem_sql(tx, &rows, &err, sql, IDEM_VALUES(idem_int(request->tickets))))
        return idem_context_fail_with(context, &err);
    if (idem_rows_count(rows) == 0)
        return idem_context_fail(context, IDEM_FAILED_PRECONDITION, "sold out");
    reply->left = idem_rows_int(rows, 0, 0);
    return IDEM_OK;
}

int
main(void)
{
    const char *schema = "CREATE TABLE IF NOT EXISTS stock AS SELECT 100 AS n";
    struct idem_sqlite_options books = {.path = "shop.db", .schema = schema};
    struct idem_store *store;
    struct idem_server *server;
    struct idem_error e;

    if (idem_sqlite_open(&store, &books, &e) ||
        idem_server_open(&server, store, NULL, NULL, &e) ||
        shop_register(server, &(struct shop_handlers){buy}, NULL, &e) ||
        idem_server_listen(server, "ipc://shop.sock", &e) ||
        idem_server_start(server, &e))
        errx(1, "%s", e.message);
    getchar(); /* serve until Enter */
    idem_server_free(server);
}
