#ifndef MIGRATION_H
#define MIGRATION_H

/* The numbered steps of a schema, compiled in from interceptors/sql by
 * idem_embed_sql (script/cmake). In order; the last one has no text. */
struct migration {
    unsigned version; /* of the schema once it is applied; from 1 */
    const char *name; /* "001_records" */
    const char *text; /* statements */
};

extern const struct migration sqlite_migrations[];
extern const struct migration postgres_migrations[];

#endif
