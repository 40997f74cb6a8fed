#include "asked.h"

#include <stdio.h>

#define DAY_MS INT64_C(86400000)

int
asked_set_up(void **state)
{
    struct postgres_world *world = world_open(false);

    world->options.statement_timeout_ms = 60000;
    world_reopen(world);
    *state = world;
    return 0;
}

int
asked_tear_down(void **state)
{
    world_close(*state);
    return 0;
}

const struct idem_store_ops *
asked_ops(const struct postgres_world *world)
{
    return world->suite.store->ops;
}

void
asked_open(struct asked *asked, struct postgres_world *world, bool minted)
{
    const struct idem_clock *clock = world->factory.clock;
    char key[IDEM_KEY_MAX + 1];

    if (minted) { /* not by suite_key, which asks the database each time */
        suite_key_at(key, clock->wall_ms(clock), DAY_MS);
    } else {
        world->suite.minted = false;
        suite_key(&world->suite, key);
        world->suite.minted = true;
    }
    call_open(&asked->call, &world->suite, key, IDEM_MODE_LEASED, 1);
    asked->op = NULL;
}

void
asked_together(struct postgres_world *world, struct asked *asked, unsigned n)
{
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op)
            call_start(&asked[i].call, asked[i].op);
    tcp_proxy_hold(world->proxy, 0);
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op)
            (void)call_await(&asked[i].call);
}

void
assert_asked(const struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op && asked[i].call.ticket.verdict != asked[i].verdict)
            fail_msg("call %u: verdict %d and not %d: %s", i,
                     asked[i].call.ticket.verdict, asked[i].verdict,
                     asked[i].call.ticket.error.message);
}

void
ask(struct asked *asked, suite_op_fn *op, enum idem_verdict verdict)
{
    asked->op = op;
    asked->verdict = verdict;
}

void
ask_to_complete(struct asked *asked, const struct postgres_world *world,
                unsigned number, enum idem_verdict verdict)
{
    snprintf(asked->reply, sizeof(asked->reply), "reply-%u", number);
    asked->call.ticket.answer =
        (struct idem_answer){.reply = idem_bytes_of(asked->reply)};
    ask(asked, asked_ops(world)->complete, verdict);
}

void
asked_claim(struct postgres_world *world, struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ask(&asked[i], asked_ops(world)->claim, IDEM_VERDICT_MINE);
    asked_together(world, asked, n);
    assert_asked(asked, n);
}

void
asked_complete(struct postgres_world *world, struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ask_to_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    asked_together(world, asked, n);
    assert_asked(asked, n);
}

void
assert_asked_replays(struct postgres_world *world, const struct asked *asked)
{
    struct suite_call repeat;

    call_open(&repeat, &world->suite, asked->call.key, IDEM_MODE_LEASED, 1);
    repeat.ticket.repeat = true;
    assert_int_equal(call_claim(&repeat), IDEM_VERDICT_DONE);
    assert_text(repeat.ticket.answer.reply, asked->reply);
    call_close(&repeat);
}
