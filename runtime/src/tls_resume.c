#include "tls_resume.h"

#include <openssl/ssl.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS 8

struct slot {
    char *host;
    SSL_SESSION *session; /* NULL: none */
};

struct sessions {
    pthread_mutex_t lock; /* guards the rest */
    struct slot slots[HOSTS];
    unsigned next; /* to be given to another host */
};

static int context_index, ssl_index;

static void
free_sessions(void *parent, void *with, CRYPTO_EX_DATA *data, int index,
              long number, void *pointer)
{
    struct sessions *sessions = with;

    (void)parent;
    (void)data;
    (void)index;
    (void)number;
    (void)pointer;
    if (!sessions)
        return;
    for (unsigned i = 0; i < HOSTS; i++) {
        SSL_SESSION_free(sessions->slots[i].session);
        free(sessions->slots[i].host);
    }
    pthread_mutex_destroy(&sessions->lock);
    free(sessions);
}

static void
make_indexes(void)
{
    context_index =
        SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_sessions);
    ssl_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* With the lock. NULL: none. */
static struct slot *
slot_of(struct sessions *sessions, const char *host)
{
    for (unsigned i = 0; i < HOSTS; i++)
        if (sessions->slots[i].host &&
            strcmp(sessions->slots[i].host, host) == 0)
            return &sessions->slots[i];
    return NULL;
}

/* With the lock: the host's slot, or another's. NULL: out of memory. */
static struct slot *
make_slot(struct sessions *sessions, const char *host)
{
    struct slot *slot = slot_of(sessions, host);
    char *copy;

    if (slot)
        return slot;
    copy = strdup(host);
    if (!copy)
        return NULL;
    slot = &sessions->slots[sessions->next++ % HOSTS];
    free(slot->host);
    slot->host = copy;
    return slot;
}

/* The server has given a ticket. 1: the session is ours now. */
static int
keep(SSL *ssl, SSL_SESSION *session)
{
    struct sessions *sessions =
        SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), context_index);
    const char *host = SSL_get_ex_data(ssl, ssl_index);
    struct slot *slot;
    int kept = 0;

    if (!sessions || !host)
        return 0;
    pthread_mutex_lock(&sessions->lock);
    slot = make_slot(sessions, host);
    if (slot) {
        SSL_SESSION_free(slot->session);
        slot->session = session;
        kept = 1;
    }
    pthread_mutex_unlock(&sessions->lock);
    return kept;
}

bool
tls_resume_init(SSL_CTX *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sessions *sessions;

    pthread_once(&once, make_indexes);
    sessions = calloc(1, sizeof *sessions);
    if (!sessions)
        return false;
    pthread_mutex_init(&sessions->lock, NULL);
    if (SSL_CTX_set_ex_data(context, context_index, sessions) != 1) {
        free_sessions(NULL, sessions, NULL, 0, 0, NULL);
        return false;
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT |
                                                SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep);
    return true;
}

void
tls_resume(SSL *ssl, const char *host)
{
    struct sessions *sessions =
        SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), context_index);
    SSL_SESSION *session = NULL;
    struct slot *slot;

    if (!sessions ||
        SSL_set_ex_data(ssl, ssl_index, (void *)(uintptr_t)host) != 1)
        return;
    pthread_mutex_lock(&sessions->lock);
    slot = slot_of(sessions, host);
    if (slot) {
        session = slot->session;
        slot->session = NULL;
    }
    pthread_mutex_unlock(&sessions->lock);
    if (session)
        (void)SSL_set_session(ssl, session);
    SSL_SESSION_free(session);
}
