#ifndef STORE_POSTGRES_SHARE_COLUMNS_H
#define STORE_POSTGRES_SHARE_COLUMNS_H

#include "store_postgres_share.h"

/* What is told of the calls of a share: of each statement of ours the columns,
 * an array a parameter, with an element for each call that it is for. */

#define SHARED_COLUMNS 15 /* of SQL_SHARE_RECORD and SQL_SHARE_NUMBERS */

struct shared_column {
    enum pg_element element; /* 0: no more columns */
    void (*put)(struct pg_arrays *arrays, const struct shared_call *call);
};

extern const struct shared_column shared_look_columns[];
extern const struct shared_column shared_lock_columns[];
extern const struct shared_column shared_number_columns[];
extern const struct shared_column shared_record_columns[];

#endif
