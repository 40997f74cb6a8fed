#ifndef NUMBERED_STORY_H
#define NUMBERED_STORY_H

#include "journal_world.h"

#include <idem/key.h>

/* What the tests of streams whose messages take effect once each share. Each is
 * a program of one authority, which its first argument names: "sqlite" or
 * "postgres". */

/* Of all tests of the program, between up and down. */
extern struct journal_world numbered_world;

void numbered_choose(int argc, char **argv);
int numbered_up(void **state);
int numbered_down(void **state);

/* What came of a stream of entries. */
struct numbered {
    enum idem_status status;
    struct idem_outcome outcome;
    int64_t entries; /* that the receipt says; -1: none came */
    char word[32];
};

/* The entries from to to, under the key of the first; NULL: in a session of the
 * library's own. */
struct numbered numbered_write(const char *key, int64_t from, int64_t to);

/* The end of a stream that the test wrote itself. */
struct numbered numbered_finish(struct journal_write_stream *stream);

/* Static: good until the next call. */
const char *numbered_key(const char *session, int64_t number);
const char *numbered_session(void); /* a new one */

void assert_numbered_refused(const struct numbered *written,
                             enum idem_status status, const char *reason);

#endif
