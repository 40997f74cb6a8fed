#include "store_postgres_windows.h"

#include <string.h>

void
pg_windows_init(struct windows *windows)
{
    pthread_mutex_init(&windows->lock, NULL);
    memset(windows->at, 0, sizeof(windows->at));
}

void
pg_windows_fini(struct windows *windows)
{
    pthread_mutex_destroy(&windows->lock);
}

/* Days that are WINDOWS_MAX apart push each other out, which costs a
 * statement. */
static unsigned
place_of(int64_t day)
{
    return (unsigned)((uint64_t)day % WINDOWS_MAX);
}

bool
pg_windows_known(struct windows *windows, int64_t day, int64_t window_ms)
{
    unsigned i = place_of(day);
    bool known;

    pthread_mutex_lock(&windows->lock);
    known = windows->at[i].day == day && windows->at[i].window_ms >= window_ms;
    pthread_mutex_unlock(&windows->lock);
    return known;
}

void
pg_windows_learn(struct windows *windows, int64_t day, int64_t window_ms)
{
    unsigned i = place_of(day);

    pthread_mutex_lock(&windows->lock);
    if (windows->at[i].day != day || windows->at[i].window_ms < window_ms) {
        windows->at[i].day = day;
        windows->at[i].window_ms = window_ms;
    }
    pthread_mutex_unlock(&windows->lock);
}
