#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The demo as a user runs it, in small. */

#define OUTPUT_MAX 16384

/* Its exit code; what it printed. */
static int
run_demo(const char *options, char *output)
{
    char command[512];
    size_t size;
    FILE *pipe;
    int status;

    snprintf(command, sizeof command, "%s %s 2>&1", PAYMENTS_DEMO, options);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    size = fread(output, 1, OUTPUT_MAX - 1, pipe);
    output[size] = '\0';
    status = pclose(pipe);
    print_message("%s\n", output);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
two_kills_and_lost_answers_double_nothing(void **state)
{
    char output[OUTPUT_MAX];

    (void)state;
    assert_int_equal(
        run_demo("--calls 160 --clients 4 --kills 2 --seed 1", output), 0);
    assert_non_null(strstr(output, "Each call took effect once."));
}

/* A check that cannot fail proves nothing. */
static void
without_once_the_same_story_doubles_and_says_so(void **state)
{
    char output[OUTPUT_MAX];

    (void)state;
    assert_int_equal(
        run_demo("--baseline --calls 80 --clients 4 --kills 1 --seed 1",
                 output),
        1);
    assert_non_null(strstr(output, "NOT each call took effect once."));
}

static void
postgres_and_redis_may_fall_in_the_middle(void **state)
{
    char output[OUTPUT_MAX];

    (void)state;
    assert_int_equal(
        run_demo("--servers --calls 160 --clients 4 --kills 2 --seed 1",
                 output),
        0);
    assert_non_null(strstr(output, "Each call took effect once."));
}

static void
a_wrong_option_is_named(void **state)
{
    char output[OUTPUT_MAX];

    (void)state;
    assert_int_equal(run_demo("--calls none", output), 2);
    assert_non_null(strstr(output, "none"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_kills_and_lost_answers_double_nothing),
        cmocka_unit_test(without_once_the_same_story_doubles_and_says_so),
        cmocka_unit_test(postgres_and_redis_may_fall_in_the_middle),
        cmocka_unit_test(a_wrong_option_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
