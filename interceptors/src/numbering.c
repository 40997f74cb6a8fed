#include "numbering.h"

#include <string.h>

#define NS_PER_MS INT64_C(1000000)

void
numbering_init(struct numbering *numbering)
{
    memset(numbering, 0, sizeof(*numbering));
    pthread_mutex_init(&numbering->lock, NULL);
}

void
numbering_fini(struct numbering *numbering)
{
    pthread_mutex_destroy(&numbering->lock);
}

/* A session lives for twice the window of its calls and takes new ones in the
 * first half: the last one is remembered as long as it wants, too. */
static bool
is_usable(const struct numbering *numbering, int64_t now_ns, int64_t window_ms)
{
    return numbering->session[0] && window_ms <= numbering->window_ms &&
           numbering->next - numbering->base < NUMBERING_MAX &&
           (now_ns - numbering->opened_ns) / NS_PER_MS < numbering->window_ms;
}

static void
open_session(struct numbering *numbering, const struct idem_clock *clock,
             int64_t skew_ms, int64_t window_ms)
{
    idem_session_mint(numbering->session, clock, skew_ms, 2 * window_ms);
    numbering->generation++;
    numbering->window_ms = window_ms;
    numbering->opened_ns = clock->monotonic_ns(clock);
    numbering->next = numbering->base = 1;
    memset(numbering->answered, 0, sizeof(numbering->answered));
}

void
numbering_take(struct numbering *numbering, const struct idem_clock *clock,
               int64_t skew_ms, int64_t window_ms, struct numbered *numbered,
               char *key)
{
    int64_t now_ns = clock->monotonic_ns(clock);

    pthread_mutex_lock(&numbering->lock);
    if (!is_usable(numbering, now_ns, window_ms))
        open_session(numbering, clock, skew_ms, window_ms);
    numbered->generation = numbering->generation;
    numbered->sequence = numbering->next++;
    numbered->ack_below = (uint64_t)numbering->base;
    idem_key_of_session(key, numbering->session, numbered->sequence);
    pthread_mutex_unlock(&numbering->lock);
}

void
numbering_finish(struct numbering *numbering, const struct numbered *numbered)
{
    pthread_mutex_lock(&numbering->lock);
    if (numbered->generation == numbering->generation) {
        numbering->answered[numbered->sequence % NUMBERING_MAX] = true;
        while (numbering->answered[numbering->base % NUMBERING_MAX]) {
            numbering->answered[numbering->base % NUMBERING_MAX] = false;
            numbering->base++;
        }
    }
    pthread_mutex_unlock(&numbering->lock);
}

void
numbering_renew(struct numbering *numbering)
{
    pthread_mutex_lock(&numbering->lock);
    numbering->session[0] = '\0';
    pthread_mutex_unlock(&numbering->lock);
}
