#ifndef COMPLAINT_H
#define COMPLAINT_H

#include "path.h"
#include "pool.h"

/* What is wrong with the .protos, each with its place as gcc writes it. */

struct complaint {
    const char *file;
    int line, column;
    const char *text;
};

struct complaints {
    struct pool *pool;
    struct complaint *at;
    size_t count;
};

/* "payments.proto:12:3: " and the words; the same words at the same place are
 * said once. */
void complain(struct complaints *complaints, const file_proto *file,
              const struct path *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* All of them, a line each, in the order of the files' lines. */
const char *complaints_text(struct complaints *complaints);

#endif
