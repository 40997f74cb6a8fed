#include "files.h"

#include "support.h"

#include <stdio.h>

void
file_put(const char *path, const char *text)
{
    char beside[256];
    FILE *file;

    assert_true(snprintf(beside, sizeof beside, "%s.new", path) <
                (int)sizeof beside);
    file = fopen(beside, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(beside, path), 0);
}
