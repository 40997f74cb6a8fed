#include "place.h"

#include <idem/postgres.h>
#include <idem/sqlite.h>

#include <unistd.h>

enum idem_status
place_open(struct idem_store **store, const char *postgres, const char *sqlite,
           struct idem_error *err)
{
    const struct idem_postgres_options served = {
        .conninfo = postgres,
        .connections = 1,
        .maintain_every_ms = -1,
    };
    const struct idem_sqlite_options alone = {
        .path = sqlite,
        .maintain_every_ms = -1,
    };

    if (postgres)
        return idem_postgres_open(store, &served, err);
    if (access(sqlite, R_OK | W_OK) != 0)
        return idem_fail(err, IDEM_NOT_FOUND, "%s: no such file, or not yours",
                         sqlite);
    return idem_sqlite_open(store, &alone, err);
}
