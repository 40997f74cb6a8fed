/* What the generator writes for proto/shop is what golden/ has, but
 * for the bytes of the descriptors. IDEM_GOLDEN_UPDATE=1 writes golden/ anew.
 */
#include "support.h"

#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES "file_descriptors[] = {"

static char *
without_descriptors(char *text)
{
    char *from = strstr(text, BYTES), *to;

    if (!from)
        return text;
    from += strlen(BYTES);
    to = strstr(from, "\n}");
    assert_non_null(to);
    memmove(from, to, strlen(to) + 1);
    return text;
}

static void
update(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

static void
check(const char *target, const char *name)
{
    char made_path[4096], golden_path[4096];
    char *made, *golden;

    snprintf(made_path, sizeof(made_path), "%s/tests/unit/gen/%s.idl/shop/%s",
             file_dir("IDEM_BINARY_DIR"), target, name);
    snprintf(golden_path, sizeof(golden_path), "%s/tests/unit/gen/golden/%s",
             file_dir("IDEM_SOURCE_DIR"), name);
    made = file_read(made_path);
    assert_non_null(made);
    without_descriptors(made);
    if (getenv("IDEM_GOLDEN_UPDATE"))
        update(golden_path, made);
    golden = file_read(golden_path);
    assert_non_null(golden);
    assert_string_equal(made, golden);
    free(made);
    free(golden);
}

static void
the_header_is_the_golden_one(void **state)
{
    (void)state;
    check("gen_rich", "rich.idem.h");
}

static void
the_source_is_the_golden_one(void **state)
{
    (void)state;
    check("gen_rich", "rich.idem.c");
}

static void
messages_alone_need_no_runtime(void **state)
{
    (void)state;
    check("gen_rich", "common.idem.h");
    check("gen_rich", "common.idem.c");
}

static void
a_stream_has_both_styles_on_both_sides(void **state)
{
    (void)state;
    check("gen_streams", "streams.idem.h");
    check("gen_streams", "streams.idem.c");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_is_the_golden_one),
        cmocka_unit_test(the_source_is_the_golden_one),
        cmocka_unit_test(messages_alone_need_no_runtime),
        cmocka_unit_test(a_stream_has_both_styles_on_both_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
