#ifndef SHARED_STORIES_H
#define SHARED_STORIES_H

#include "once_stage.h"

/* What holds of every method whose calls share a transaction or a commit, from
 * a stub to the authority and back. The program says by which stub. */
extern stage_call_fn *const shared_call;

void the_same_key_three_times_is_one_effect(void **state);
void fifty_at_once_are_one_effect(void **state);
void fifty_keys_at_once_are_fifty_effects(void **state);
void an_error_that_is_not_recorded_runs_again(void **state);
void a_reply_that_is_too_large_leaves_no_effect(void **state);
void another_request_with_the_key_is_refused(void **state);

#define SHARED_EACH(test)                                                      \
    cmocka_unit_test_setup_teardown(test, stage_sqlite_tcp, stage_down),       \
        cmocka_unit_test_setup_teardown(test, stage_both, stage_down)

#define SHARED_STORIES                                                         \
    SHARED_EACH(the_same_key_three_times_is_one_effect),                       \
        SHARED_EACH(fifty_at_once_are_one_effect),                             \
        SHARED_EACH(fifty_keys_at_once_are_fifty_effects),                     \
        SHARED_EACH(an_error_that_is_not_recorded_runs_again),                 \
        SHARED_EACH(a_reply_that_is_too_large_leaves_no_effect),               \
        SHARED_EACH(another_request_with_the_key_is_refused)

#endif
