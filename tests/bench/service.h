#ifndef SERVICE_H
#define SERVICE_H

#include <idem/standard.h>

#include "bench.idem.h"

#define BENCH_SCHEMA                                                           \
    "CREATE TABLE IF NOT EXISTS bench_business (id BIGINT GENERATED ALWAYS"    \
    " AS IDENTITY PRIMARY KEY, key TEXT NOT NULL, amount BIGINT NOT NULL)"

#define BENCH_SCHEMA_SQLITE                                                    \
    "CREATE TABLE IF NOT EXISTS bench_business (id INTEGER PRIMARY KEY,"       \
    " key TEXT NOT NULL, amount INTEGER NOT NULL)"

/* The server of bench.proto at that address, full chain; tls NULL: none. Ends
 * the process when it cannot. */
struct idem_server *bench_serve(struct idem_store *store,
                                const struct idem_once_options *once,
                                const struct idem_tls_options *tls,
                                const char *listen);

struct idem_channel *bench_open(const struct idem_server *server);

#endif
