#include "channel_inside.h"

#define NS_PER_MS 1000000
#define PERCENT 100

/* Addresses that fail more than others are set aside for a while (gRFC A50).
 *
 *          too many failures in a row, or too high a share of an interval's
 *    used ------------------------------------------------------------> ejected
 *     ^                                                                    |
 *     +--------- ejection_ms times the ejections so far are over ----------+
 *
 * Only what says something about the server counts: turned away as a whole
 * (UNAVAILABLE, RESOURCE_EXHAUSTED), lost, or no answer in time; never what a
 * handler says. */

static unsigned
or_number(unsigned number, unsigned number_default)
{
    return number ? number : number_default;
}

static int64_t
or_ms(int64_t ms, int64_t ms_default)
{
    return ms ? ms : ms_default;
}

void
outlier_defaults(struct idem_outlier_options *options)
{
    options->in_a_row = or_number(options->in_a_row, 5);
    options->failure_percent = or_number(options->failure_percent, 85);
    options->min_calls = or_number(options->min_calls, 50);
    options->min_addresses = or_number(options->min_addresses, 5);
    options->max_ejected_percent = or_number(options->max_ejected_percent, 10);
    options->interval_ms = or_ms(options->interval_ms, 10000);
    options->ejection_ms = or_ms(options->ejection_ms, 30000);
    options->max_ejection_ms = or_ms(options->max_ejection_ms, 300000);
}

enum idem_status
outlier_check(const struct idem_outlier_options *options,
              struct idem_error *err)
{
    if (options->failure_percent > PERCENT ||
        options->max_ejected_percent > PERCENT)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "outlier: a percentage is over 100");
    if (options->interval_ms < 0 || options->ejection_ms < 0 ||
        options->max_ejection_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "outlier: an option in milliseconds is negative");
    return IDEM_OK;
}

/* --- Ejecting; with the lock --- */

/* One of those that may be ejected still; the last one never is. */
static bool
may_eject(const struct idem_channel *channel, const struct address *address)
{
    unsigned max_percent = channel->options.outlier.max_ejected_percent;
    unsigned all = 0, ejected = 0;

    for (const struct address *at = channel->addresses; at; at = at->next) {
        all += !at->dropped;
        ejected += !at->dropped && at->outlier.ejected;
    }
    return !address->outlier.ejected && ejected + 1 < all &&
           (ejected == 0 || ejected * PERCENT < max_percent * all);
}

static void
eject(struct idem_channel *channel, struct address *address)
{
    const struct idem_outlier_options *options = &channel->options.outlier;
    int64_t longest_ms = options->max_ejection_ms > options->ejection_ms
                             ? options->max_ejection_ms
                             : options->ejection_ms;
    int64_t times = (int64_t)address->outlier.times + 1;

    if (!may_eject(channel, address))
        return;
    address->outlier.ejected = true;
    address->outlier.times++;
    address->outlier.until_ns =
        channel_after_ms(channel, options->ejection_ms < longest_ms / times
                                      ? options->ejection_ms * times
                                      : longest_ms);
}

/* --- The interval --- */

static bool
fails_too_often(const struct idem_channel *channel,
                const struct address *address, unsigned n)
{
    const struct idem_outlier_options *options = &channel->options.outlier;
    unsigned failures = atomic_load(&address->outlier.failures);
    unsigned calls = failures + atomic_load(&address->outlier.successes);

    return n >= options->min_addresses && calls >= options->min_calls &&
           (uint64_t)failures * PERCENT >
               (uint64_t)options->failure_percent * calls;
}

/* A50: back when its time is over; one that behaves for an interval is forgiven
 * an ejection. */
static void
forgive(struct idem_channel *channel, struct address *address)
{
    struct outlier *outlier = &address->outlier;

    if (!outlier->ejected) {
        outlier->times -= outlier->times > 0;
    } else if (channel->clock->monotonic_ns(channel->clock) >=
               outlier->until_ns) {
        outlier->ejected = false;
        atomic_store(&outlier->in_a_row, 0);
    }
}

static void
start_sweep(struct idem_channel *channel)
{
    idem_timer_start(
        channel->timers, &channel->sweep,
        channel_after_ms(channel, channel->options.outlier.interval_ms));
}

static void
sweep(struct idem_timer *timer)
{
    struct idem_channel *channel =
        (struct idem_channel *)((char *)timer -
                                offsetof(struct idem_channel, sweep));
    unsigned n = 0;

    pthread_mutex_lock(&channel->lock);
    for (const struct address *at = channel->addresses; at; at = at->next)
        n += !at->dropped;
    for (struct address *at = channel->addresses; at; at = at->next) {
        if (fails_too_often(channel, at, n))
            eject(channel, at);
        else
            forgive(channel, at);
        atomic_store(&at->outlier.successes, 0);
        atomic_store(&at->outlier.failures, 0);
    }
    if (!channel->closing)
        start_sweep(channel);
    pthread_mutex_unlock(&channel->lock);
}

void
outlier_init(struct idem_channel *channel)
{
    channel->sweep.fire = sweep;
}

void
outlier_watch(struct idem_channel *channel, unsigned n)
{
    channel->judging = n > 1 && !channel->options.outlier.off;
    if (channel->judging && !channel->sweeping) {
        channel->sweeping = true;
        start_sweep(channel);
    }
}

/* --- What counts --- */

static bool
is_failure(const struct idem_outcome *outcome)
{
    bool refused = outcome->effect == IDEM_EFFECT_REFUSED;

    if (outcome->status == IDEM_UNAVAILABLE)
        return refused || outcome->effect == IDEM_EFFECT_IN_DOUBT;
    return refused && outcome->status == IDEM_RESOURCE_EXHAUSTED;
}

void
outlier_failed(struct address *address)
{
    struct idem_channel *channel = address->channel;
    unsigned in_a_row = atomic_fetch_add(&address->outlier.in_a_row, 1) + 1;

    atomic_fetch_add(&address->outlier.failures, 1);
    if (channel->judging && in_a_row >= channel->options.outlier.in_a_row)
        eject(channel, address);
}

void
outlier_note(struct address *address, const struct idem_outcome *outcome)
{
    struct idem_channel *channel = address->channel;

    if (!is_failure(outcome)) {
        atomic_fetch_add_explicit(&address->outlier.successes, 1,
                                  memory_order_relaxed);
        atomic_store_explicit(&address->outlier.in_a_row, 0,
                              memory_order_relaxed);
        return;
    }
    pthread_mutex_lock(&channel->lock);
    outlier_failed(address);
    pthread_mutex_unlock(&channel->lock);
}
