#include "support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An assert of cmocka that fails outside of a test, on a thread that the test
 * started or in a program that is none, ends the program with 255; what it has
 * to say is kept for a test that never tells it. So it is said here, when the
 * program ends, by the thread that ends it.
 *
 * This is in every program that has the asserts, in front of cmocka's own. */

#define WORDS_MAX 1024
#define NAME_MAX_SIZE 16 /* of a thread, by pthread_getname_np */

__attribute__((visibility("default"))) void cm_print_error(const char *format,
                                                           ...)
    CMOCKA_PRINTF_ATTRIBUTE(1, 2);

static _Thread_local char words[WORDS_MAX]; /* that the last asserts said */

static void
keep(const char *text)
{
    size_t size = strlen(text), kept = strlen(words);

    if (size + kept >= sizeof words)
        kept = 0;
    snprintf(words + kept, sizeof words - kept, "%s", text);
}

void
cm_print_error(const char *format, ...)
{
    void (*inner)(const char *format, ...);
    char text[WORDS_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    keep(text);
    *(void **)&inner = dlsym(RTLD_NEXT, "cm_print_error");
    inner("%s", text);
}

static void
say(int status, void *with)
{
    char name[NAME_MAX_SIZE] = "";

    (void)with;
    if (status != -1 || !*words)
        return;
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    fprintf(stderr, "an assert outside of a test, on the thread \"%s\": %s",
            name, words);
}

__attribute__((constructor)) static void
begin(void)
{
    (void)on_exit(say, NULL);
}
