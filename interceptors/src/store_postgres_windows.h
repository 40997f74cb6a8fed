#ifndef STORE_POSTGRES_WINDOWS_H
#define STORE_POSTGRES_WINDOWS_H

#include <pthread.h>

#include <idem/base.h>

/* The largest window that the database knows of each day, as far as this
 * process has told it: so that a claim tells it once a day and window, not each
 * time. Any thread. */

#define WINDOWS_MAX 64

struct windows {
    pthread_mutex_t lock;
    struct {
        int64_t day, window_ms; /* 0: free */
    } at[WINDOWS_MAX];
};

void pg_windows_init(struct windows *windows);
void pg_windows_fini(struct windows *windows);
bool pg_windows_known(struct windows *windows, int64_t day, int64_t window_ms);
void pg_windows_learn(struct windows *windows, int64_t day, int64_t window_ms);

#endif
