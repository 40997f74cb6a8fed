/* What an assert says that fails outside of a test
 * (tests/support/last_words.c): on another thread, or in a program that is no
 * test. This program is each of them, when it is told to. */
#include "support.h"

#include "child.h"
#include "tempdir.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void *
fail_there(void *with)
{
    assert_string_equal((const char *)with, "something else");
    return NULL;
}

static void *
talk(void *with)
{
    pthread_setname_np(pthread_self(), "talker");
    return fail_there(with);
}

static void
fails_on_a_thread(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, talk, (char[]){"its words"}),
                     0);
    pthread_join(thread, NULL);
}

static int
be_a_failing_test(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fails_on_a_thread)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the program says when it is told to be that. */
static void
run_as(const char *what, char *text, size_t room)
{
    const char *const arguments[] = {child_same_program(), what, NULL};
    struct child_options options = {0};
    struct tempdir dir;
    char log[TEMPDIR_MAX + 8];
    FILE *file;
    int status;

    tempdir_open(&dir);
    options.log = tempdir_file(&dir, "log", log, sizeof log);
    assert_int_equal(waitpid(child_start(&options, arguments), &status, 0) > 0,
                     1);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 255);
    file = fopen(log, "r");
    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = 0;
    fclose(file);
    tempdir_close(&dir);
}

static void
an_assert_on_a_thread_says_which_and_where(void **state)
{
    char text[4096];

    (void)state;
    run_as("thread", text, sizeof text);
    assert_non_null(strstr(text, "on the thread \"talker\""));
    assert_non_null(strstr(text, "\"its words\" != \"something else\""));
    assert_non_null(strstr(text, "test_last_words.c:"));
}

static void
an_assert_of_a_program_says_it_too(void **state)
{
    char text[4096];

    (void)state;
    run_as("program", text, sizeof text);
    assert_non_null(strstr(text, "an assert outside of a test"));
    assert_non_null(strstr(text, "\"program\" != \"something else\""));
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assert_on_a_thread_says_which_and_where),
        cmocka_unit_test(an_assert_of_a_program_says_it_too),
    };

    if (argc > 1 && strcmp(argv[1], "thread") == 0)
        return be_a_failing_test();
    if (argc > 1)
        fail_there(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
