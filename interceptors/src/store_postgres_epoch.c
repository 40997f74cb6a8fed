#include "store_postgres_epoch.h"

#include <stdio.h>
#include <string.h>

/* Is a session up that tells of another server by losing its connection? */
static bool
is_known(const struct pg_store *postgres)
{
    return postgres->pooled_conninfo ? postgres->up[PG_GROUP] > 0
                                     : pg_store_serves(postgres, false);
}

void
pg_epoch_note(struct pg_store *postgres, const char *told)
{
    struct pg_epoch *epoch = &postgres->epoch;

    pthread_mutex_lock(&epoch->lock);
    if (told)
        snprintf(epoch->text, sizeof(epoch->text), "%s", told);
    epoch->known = is_known(postgres);
    pthread_mutex_unlock(&epoch->lock);
}

void
pg_epoch_tell(struct pg_store *postgres, char *text)
{
    struct pg_epoch *epoch = &postgres->epoch;

    text[0] = '\0';
    pthread_mutex_lock(&epoch->lock);
    if (epoch->known)
        memcpy(text, epoch->text, sizeof(epoch->text));
    pthread_mutex_unlock(&epoch->lock);
}
