#include "call_world.h"

#include <string.h>

static void
add_passing(struct call_world *w, const char *name)
{
    call_world_add(w, name, IDEM_BAND_ATTEMPT, call_world_pass_down,
                   call_world_pass_up);
}

/* rpc 89 */
static void
requests_go_down_in_order_and_replies_up_in_reverse(void **state)
{
    struct call_world *w = *state;

    add_passing(w, "a");
    add_passing(w, "b");
    add_passing(w, "c");
    call_world_run(w);
    assert_string_equal(w->trail, "ABCcba");
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_string_equal(w->reply, "ok");
    assert_int_equal(w->outcome.attempts, 1);
    call_world_await_freed(w, 1);
}

/* Those before it have left their digits, in order. */
static enum idem_step
sign_request(struct idem_interceptor *self, struct idem_call *call)
{
    const struct idem_metadata_entry *entry = call->metadata.first;
    char digit = self->ops->name[0];

    for (char before = '1'; before < digit; before++, entry = entry->next) {
        assert_non_null(entry);
        assert_int_equal(entry->value.data[0], before);
    }
    assert_null(entry);
    assert_int_equal(idem_metadata_add(&call->metadata, call->arena,
                                       idem_bytes_of("signed"),
                                       idem_bytes_of(self->ops->name), NULL),
                     IDEM_OK);
    return IDEM_NEXT;
}

static enum idem_step
sign_reply(struct idem_interceptor *self, struct idem_call *call)
{
    uint8_t *longer = idem_arena_alloc(call->arena, call->reply.size + 1);

    memcpy(longer, call->reply.data, call->reply.size);
    longer[call->reply.size] = (uint8_t)self->ops->name[0];
    call->reply = (struct idem_bytes){longer, call->reply.size + 1};
    return IDEM_NEXT;
}

/* rpc 89: each adds its digit to the reply, and sees what those before it set.
 */
static void
each_sees_what_those_before_it_set(void **state)
{
    static const char *const names[] = {"1", "2", "3"};
    struct call_world *w = *state;

    for (unsigned i = 0; i < 3; i++)
        call_world_add(w, names[i], IDEM_BAND_ATTEMPT, sign_request,
                       sign_reply);
    call_world_run(w);
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_string_equal(w->reply, "ok321");
}

static void
a_chain_without_interceptors_reaches_the_endpoint(void **state)
{
    struct call_world *w = *state;

    call_world_run(w);
    assert_int_equal(w->sends, 1);
    assert_string_equal(w->reply, "ok");
}

static enum idem_step
again_twice(struct idem_interceptor *self, struct idem_call *call)
{
    struct fake *fake = (struct fake *)self;

    assert_int_not_equal(call->outcome.status, IDEM_OK);
    call->attempt++;
    return fake->count++ < 2 ? IDEM_AGAIN : IDEM_NEXT;
}

static enum idem_step
fail_and_leave_traces(struct call *call)
{
    struct idem_call *base = &call->base;

    /* What the attempt before left is gone. */
    assert_int_equal(base->outcome.status, IDEM_UNKNOWN);
    assert_int_equal(base->outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(base->outcome.retry_after_ms, -1);
    assert_string_equal(base->outcome.message, "");
    assert_null(base->trailers.first);
    assert_null(base->reply.data);

    idem_call_fail(base, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, "BUSY", "no");
    base->outcome.retry_after_ms = 5;
    base->reply = idem_bytes_of("rest");
    assert_int_equal(idem_metadata_add(&base->trailers, base->arena,
                                       idem_bytes_of("t"), idem_bytes_of("v"),
                                       NULL),
                     IDEM_OK);
    return IDEM_ANSWER;
}

/* Cases B042 and rpc 90: what is inside of the one that repeats runs each time,
 * in the same order, and begins from nothing. */
static void
again_runs_all_that_is_inside_once_more(void **state)
{
    struct call_world *w = *state;

    w->send = fail_and_leave_traces;
    add_passing(w, "a");
    call_world_add(w, "retry", IDEM_BAND_ATTEMPT, NULL, again_twice);
    add_passing(w, "b");
    add_passing(w, "c");
    call_world_run(w);
    assert_string_equal(w->trail, "ABCcbBCcbBCcba");
    assert_int_equal(w->sends, 3);
    assert_int_equal(w->outcome.attempts, 3);
    assert_int_equal(w->outcome.status, IDEM_UNAVAILABLE);
    assert_string_equal(w->outcome.reason, "BUSY");
}

static enum idem_step
reject(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    idem_call_fail(call, IDEM_UNAUTHENTICATED, IDEM_EFFECT_REFUSED, NULL,
                   "who are you, %s?", "stranger");
    return IDEM_ANSWER;
}

/* rpc case 94, B043 a */
static void
who_answers_hides_the_call_from_those_inside_and_itself(void **state)
{
    struct call_world *w = *state;

    add_passing(w, "a");
    call_world_add(w, "auth", IDEM_BAND_ATTEMPT, reject, call_world_pass_up);
    add_passing(w, "b");
    call_world_run(w);
    assert_string_equal(w->trail, "Aa");
    assert_int_equal(w->sends, 0);
    assert_int_equal(w->outcome.status, IDEM_UNAUTHENTICATED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REFUSED);
    assert_string_equal(w->outcome.message, "who are you, stranger?");
}

static enum idem_step
answer_ok_without_reply(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    call->outcome.status = IDEM_OK;
    return IDEM_ANSWER;
}

static enum idem_step
answer_nothing(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    (void)call;
    return IDEM_ANSWER;
}

/* B043 b */
static void
ok_without_a_reply_is_internal_and_names_who_did_it(void **state)
{
    struct call_world *w = *state;

    add_passing(w, "a");
    call_world_add(w, "cache", IDEM_BAND_ATTEMPT, answer_ok_without_reply,
                   NULL);
    call_world_run(w);
    assert_int_equal(w->outcome.status, IDEM_INTERNAL);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_non_null(strstr(w->outcome.message, "cache"));
    assert_string_equal(w->trail, "Aa");
}

static void
an_answer_without_an_outcome_is_no_success(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "lazy", IDEM_BAND_ATTEMPT, answer_nothing, NULL);
    call_world_run(w);
    assert_int_equal(w->outcome.status, IDEM_UNKNOWN);
}

static enum idem_step
replay_an_empty_reply(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    call->outcome.status = IDEM_OK;
    call->outcome.effect = IDEM_EFFECT_REPLAYED;
    return IDEM_ANSWER;
}

static void
a_replay_may_have_an_empty_reply(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "once", IDEM_BAND_KEY, replay_an_empty_reply, NULL);
    call_world_run(w);
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REPLAYED);
}

static enum idem_step
say_again(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    (void)call;
    return IDEM_AGAIN;
}

/* B043 c: there is no way to send one request twice at once. */
static void
again_on_the_way_down_is_internal(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "twice", IDEM_BAND_ATTEMPT, say_again, NULL);
    call_world_run(w);
    assert_int_equal(w->outcome.status, IDEM_INTERNAL);
    assert_int_equal(w->sends, 0);
}

static void *
resume_next(void *arg)
{
    idem_call_resume(arg, IDEM_NEXT);
    return NULL;
}

/* The other thread has moved the call to its end before the hook returns. */
static enum idem_step
hand_over_and_linger(struct idem_interceptor *self, struct idem_call *call)
{
    struct call_world *w = call_world_of(call);
    pthread_t thread;

    (void)self;
    assert_true(idem_call_keep(call, NULL, NULL));
    assert_int_equal(pthread_create(&thread, NULL, resume_next, call), 0);
    call_world_await_finished(w, 1);
    pthread_join(thread, NULL);
    return IDEM_WAIT;
}

static void
a_call_may_end_before_the_hook_that_gave_it_away_returns(void **state)
{
    struct call_world *w = *state;

    add_passing(w, "a");
    call_world_add(w, "slow", IDEM_BAND_ATTEMPT, hand_over_and_linger, NULL);
    add_passing(w, "b");

    struct call *call = call_world_call(w);

    call_unref(call); /* nobody but the walk keeps it */
    call_begin(call);
    call_world_await_freed(w, 1);
    assert_string_equal(w->trail, "ABba");
}

static enum idem_step
resume_inside(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    assert_true(idem_call_keep(call, NULL, NULL));
    idem_call_resume(call, IDEM_NEXT);
    return IDEM_WAIT;
}

static void
a_hook_may_resume_before_it_returns_wait(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "now", IDEM_BAND_ATTEMPT, resume_inside, resume_inside);
    add_passing(w, "b");
    call_world_run(w);
    assert_string_equal(w->trail, "Bb");
    call_world_await_freed(w, 1);
}

static void
a_waiting_call_goes_on_where_it_stood(void **state)
{
    struct call_world *w = *state;

    add_passing(w, "a");
    call_world_add(w, "park", IDEM_BAND_ATTEMPT, call_world_park, NULL);
    add_passing(w, "b");

    struct call *call = call_world_call(w);

    call_begin(call);
    assert_int_equal(w->finished, 0);
    assert_ptr_equal(call_world_unpark(w), call);
    idem_call_resume(&call->base, IDEM_NEXT);
    assert_int_equal(w->finished, 1);
    assert_string_equal(w->trail, "APBba");
    call_unref(call);
}

static void
forget_state(struct idem_interceptor *self, struct idem_call *call)
{
    struct fake *fake = (struct fake *)self;

    if (idem_call_state(call, self) == fake)
        fake->count++;
}

static void
count_forget(struct idem_interceptor *self, struct idem_call *call)
{
    (void)call;
    ((struct fake *)self)->count++;
}

static enum idem_step
set_state(struct idem_interceptor *self, struct idem_call *call)
{
    assert_null(idem_call_state(call, self));
    idem_call_set_state(call, self, self);
    return IDEM_NEXT;
}

static void
forget_runs_once_for_each_that_the_call_came_to(void **state)
{
    struct call_world *w = *state;
    struct fake *outer =
        call_world_add(w, "outer", IDEM_BAND_KEY, set_state, NULL);
    struct fake *inner =
        call_world_add(w, "inner", IDEM_BAND_ATTEMPT, set_state, NULL);

    outer->ops.forget = forget_state;
    inner->ops.forget = forget_state;
    call_world_add(w, "auth", IDEM_BAND_RETRY, reject, NULL);
    call_world_run(w);
    call_world_await_freed(w, 1);
    assert_int_equal(outer->count, 1);
    assert_int_equal(inner->count, 0);
}

static enum idem_step
twice(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    call_world_note(call_world_of(call), '2');
    return call_world_of(call)->sends < 2 ? IDEM_AGAIN : IDEM_NEXT;
}

static enum idem_step
note_request(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    call_world_note(call_world_of(call), 'q');
    return IDEM_NEXT;
}

/* An interceptor without a hook of that direction gets no turn; it counts as
 * one that the call came to all the same. */
static void
hooks_that_are_missing_are_passed_by_in_both_directions(void **state)
{
    struct call_world *w = *state;
    struct fake *silent =
        call_world_add(w, "silent", IDEM_BAND_OBSERVE, NULL, NULL);

    call_world_add(w, "up", IDEM_BAND_KEY, NULL, twice);
    call_world_add(w, "down", IDEM_BAND_RETRY, note_request, NULL);
    call_world_add(w, "last", IDEM_BAND_ATTEMPT, NULL, NULL);
    silent->ops.forget = count_forget;
    call_world_run(w);
    call_world_await_freed(w, 1);
    assert_string_equal(w->trail, "q2q2");
    assert_int_equal(w->sends, 2);
    assert_int_equal(silent->count, 1);
}

static void
the_outcome_names_the_key(void **state)
{
    struct call_world *w = *state;
    struct call *call = call_world_call(w);

    call->base.key = idem_bytes_of("order-7");
    call_begin(call);
    call_unref(call);
    assert_string_equal(w->outcome.key, "order-7");
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, call_world_set_up,                   \
                                    call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(requests_go_down_in_order_and_replies_up_in_reverse),
        TEST(each_sees_what_those_before_it_set),
        TEST(a_chain_without_interceptors_reaches_the_endpoint),
        TEST(again_runs_all_that_is_inside_once_more),
        TEST(who_answers_hides_the_call_from_those_inside_and_itself),
        TEST(ok_without_a_reply_is_internal_and_names_who_did_it),
        TEST(an_answer_without_an_outcome_is_no_success),
        TEST(a_replay_may_have_an_empty_reply),
        TEST(again_on_the_way_down_is_internal),
        TEST(a_call_may_end_before_the_hook_that_gave_it_away_returns),
        TEST(a_hook_may_resume_before_it_returns_wait),
        TEST(a_waiting_call_goes_on_where_it_stood),
        TEST(hooks_that_are_missing_are_passed_by_in_both_directions),
        TEST(forget_runs_once_for_each_that_the_call_came_to),
        TEST(the_outcome_names_the_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
