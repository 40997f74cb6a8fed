#include "settle_call.h"

void
settle_leave_in_doubt(struct suite_call *owner, struct suite_call *clerk,
                      struct suite *suite, const char *key)
{
    call_open(owner, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(owner), IDEM_VERDICT_MINE);
    call_open(clerk, suite, key, IDEM_MODE_LEASED, 0);
    clerk->ticket.fingerprint.version = 0;
    assert_int_equal(call_look(clerk), IDEM_VERDICT_DOUBT);
}

enum idem_verdict
settle_as_paid(struct suite_call *clerk)
{
    const struct idem_settlement settlement = {
        .took_effect = true,
        .by = idem_bytes_of("anna"),
        .why = idem_bytes_of("ticket 4711"),
    };

    clerk->ticket.settlement = &settlement;
    clerk->ticket.answer = (struct idem_answer){.reply = idem_bytes_of("paid")};
    return call_do(clerk, clerk->suite->store->ops->settle);
}
