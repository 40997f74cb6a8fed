/* once between other interceptors: what comes before it leaves no record, and
 * what another runtime writes is the same request. */
#include "once_stage.h"

#include <idem/call.h>
#include <idem/reason.h>

#include <stdlib.h>

/* An interceptor that a test steers; the chain owns it. */
struct puppet {
    struct idem_interceptor base;
    enum idem_status refuse;   /* OK: lets pass */
    bool answer_nothing;       /* turns round without an outcome */
    unsigned again;            /* so many replies are sent down once more */
    struct idem_bytes rewrite; /* the request's bytes become these */
};

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    struct puppet *puppet = (struct puppet *)self;

    if (call->method->mode == IDEM_MODE_NONE)
        return IDEM_NEXT;
    if (puppet->rewrite.size > 0)
        call->request = puppet->rewrite;
    if (puppet->answer_nothing)
        return IDEM_ANSWER;
    if (puppet->refuse == IDEM_OK)
        return IDEM_NEXT;
    idem_call_fail(call, puppet->refuse, IDEM_EFFECT_REFUSED, NULL, "refused");
    return IDEM_ANSWER;
}

static enum idem_step
reply(struct idem_interceptor *self, struct idem_call *call)
{
    struct puppet *puppet = (struct puppet *)self;

    (void)call;
    if (puppet->again == 0)
        return IDEM_NEXT;
    puppet->again--;
    return IDEM_AGAIN;
}

static void
puppet_free(struct idem_interceptor *self)
{
    free(self);
}

#define PUPPET_OPS(of_band)                                                    \
    {                                                                          \
        .name = "puppet", .band = of_band, .request = request, .reply = reply, \
        .free = puppet_free                                                    \
    }

static const struct idem_interceptor_ops in_auth = PUPPET_OPS(IDEM_BAND_AUTH);
static const struct idem_interceptor_ops below = PUPPET_OPS(IDEM_BAND_ATTEMPT);

static struct puppet *
puppet_new(const struct idem_interceptor_ops *ops)
{
    struct puppet *puppet = calloc(1, sizeof(*puppet));

    puppet->base.ops = ops;
    return puppet;
}

/* Fault 53. */
static void
a_call_that_auth_refuses_leaves_no_record(void **state)
{
    struct stage *stage = *state;
    struct puppet *auth = puppet_new(&in_auth);
    struct called refused, first;

    stage_rebuild(stage, &auth->base, NULL);
    auth->refuse = IDEM_PERMISSION_DENIED;
    refused = stage_add(stage, "chain-1", 7);
    assert_int_equal(refused.status, IDEM_PERMISSION_DENIED);
    assert_int_equal(stage_counts(stage, 0).claims, 0);
    auth->refuse = IDEM_OK;
    first = stage_add(stage, "chain-1", 7);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&first);
}

/* Fault 54. */
static void
a_right_that_was_revoked_hides_the_recorded_answer(void **state)
{
    struct stage *stage = *state;
    struct puppet *auth = puppet_new(&in_auth);
    struct called first, refused;

    stage_rebuild(stage, &auth->base, NULL);
    first = stage_add(stage, "chain-2", 7);
    assert_int_equal(first.status, IDEM_OK);
    auth->refuse = IDEM_PERMISSION_DENIED;
    refused = stage_add(stage, "chain-2", 7);
    assert_int_equal(refused.status, IDEM_PERMISSION_DENIED);
    assert_null(refused.body);
    called_free(&first);
}

/* Fault 49. */
static void
a_request_that_cannot_be_read_leaves_its_key_free(void **state)
{
    struct stage *stage = *state;
    struct puppet *client = puppet_new(&below);
    struct called wrong, right;

    stage_rebuild(stage, NULL, &client->base);
    client->rewrite = idem_bytes_of("\x12\x02\xff\xfe"); /* note: no UTF-8 */
    wrong = stage_add(stage, "chain-3", 7);
    assert_int_equal(wrong.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(wrong.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_false(wrong.outcome.final);
    client->rewrite.size = 0;
    right = stage_add(stage, "chain-3", 7);
    assert_int_equal(right.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&right);
}

/* Fault 46, B021: as other runtimes write it. */
static void
another_encoding_of_the_request_is_the_same_request(void **state)
{
    struct stage *stage = *state;
    static const uint8_t ours[] = {0x08, 0x07, 0x12, 0x01, 'n',
                                   0x2a, 0x02, 0x01, 0x02};
    static const uint8_t reordered[] = {0x2a, 0x02, 0x01, 0x02, 0x12,
                                        0x01, 'n',  0x08, 0x07};
    static const uint8_t defaults[] = {0x08, 0x07, 0x12, 0x01, 'n', 0x1a,
                                       0x00, 0x2a, 0x02, 0x01, 0x02};
    static const uint8_t unpacked[] = {0x08, 0x07, 0x12, 0x01, 'n',
                                       0x28, 0x01, 0x28, 0x02};
    const struct idem_bytes others[] = {{reordered, sizeof(reordered)},
                                        {defaults, sizeof(defaults)},
                                        {unpacked, sizeof(unpacked)}};
    struct puppet *client = puppet_new(&below);
    struct called first;

    stage_rebuild(stage, NULL, &client->base);
    client->rewrite = (struct idem_bytes){ours, sizeof(ours)};
    first = stage_add(stage, "chain-4", 7);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    for (int i = 0; i < 3; i++) {
        struct called again;

        client->rewrite = others[i];
        again = stage_add(stage, "chain-4", 7);
        assert_replay_of(&again, &first);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

/* B043 a, b: below once. */
static void
an_interceptor_that_fails_leaves_no_claim_behind(void **state)
{
    struct stage *stage = *state;
    struct puppet *inner = puppet_new(&below);
    struct called failed, empty, right;

    stage_rebuild(stage, &inner->base, NULL);
    inner->refuse = IDEM_FAILED_PRECONDITION;
    failed = stage_add(stage, "chain-5", 7);
    assert_int_equal(failed.status, IDEM_FAILED_PRECONDITION);
    inner->refuse = IDEM_OK;
    inner->answer_nothing = true;
    empty = stage_add(stage, "chain-5", 7);
    assert_int_not_equal(empty.status, IDEM_OK);
    inner->answer_nothing = false;
    right = stage_add(stage, "chain-5", 7);
    assert_int_equal(right.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&right);
}

/* B043 c: above once. */
static void
an_interceptor_that_calls_twice_makes_one_effect(void **state)
{
    struct stage *stage = *state;
    struct puppet *outer = puppet_new(&in_auth);
    struct called called;

    stage_rebuild(stage, &outer->base, NULL);
    outer->again = 1;
    called = stage_add(stage, "chain-6", 7);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_inproc, name), STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(a_call_that_auth_refuses_leaves_no_record),
        TEST(a_right_that_was_revoked_hides_the_recorded_answer),
        TEST(a_request_that_cannot_be_read_leaves_its_key_free),
        TEST(another_encoding_of_the_request_is_the_same_request),
        TEST(an_interceptor_that_fails_leaves_no_claim_behind),
        TEST(an_interceptor_that_calls_twice_makes_one_effect),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
