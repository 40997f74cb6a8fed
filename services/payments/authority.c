#include "authority.h"

#include <idem/postgres.h>
#include <idem/shield.h>
#include <idem/sqlite.h>

static enum idem_status
open_sqlite(struct idem_store **store, const char *path, struct idem_error *err)
{
    const struct idem_sqlite_options options = {
        .path = path,
        .schema = payments_schema,
    };

    return idem_sqlite_open(store, &options, err);
}

static enum idem_status
open_redis(struct idem_shield **shield, const struct server_options *options,
           struct idem_error *err)
{
    const struct idem_redis_options redis = {
        .url = options->redis,
        .secret = idem_bytes_of(options->secret),
    };

    return idem_redis_new(shield, &redis, err);
}

static enum idem_status
open_postgres(struct idem_store **store, const char *conninfo,
              struct idem_error *err)
{
    const struct idem_postgres_options options = {.conninfo = conninfo};

    return idem_postgres_open(store, &options, err);
}

enum idem_status
authority_open(struct idem_store **store, struct idem_shield **shield,
               const struct server_options *options, struct idem_error *err)
{
    enum idem_status status;

    *shield = NULL;
    if (options->sqlite)
        return open_sqlite(store, options->sqlite, err);
    if (options->redis) {
        status = open_redis(shield, options, err);
        if (status != IDEM_OK)
            return status;
    }
    status = open_postgres(store, options->postgres, err);
    if (status != IDEM_OK && *shield)
        idem_shield_free(*shield);
    return status;
}
