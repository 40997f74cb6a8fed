/* Every .proto of wrong/ is refused with exactly the messages that its own
 * lines "//! line:column: words" say. */
#include "support.h"

#include "file.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "//! "

static char root[2048]; /* of wrong/ */
static char work[] = "/tmp/idem-wrong-XXXXXX";

static char *__attribute__((format(printf, 1, 2)))
text_of(const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

/* protoc, then what refuses it: the lowering for shapes that protoc-c cannot
 * compile, the plugin for the rest. */
static char *
compile(const char *name)
{
    const char *build = file_dir("IDEM_BINARY_DIR");
    char *command, *step, *said;

    if (!strncmp(name, "shape_", 6))
        step = text_of("%s/idl/gen/protoc-gen-idem --lower a.fds b.fds", build);
    else
        step = text_of("protoc --descriptor_set_in=a.fds --idem_out=. "
                       "--plugin=protoc-gen-idem=%s/idl/gen/protoc-gen-idem %s",
                       build, name);
    command = text_of("cd %s && protoc -I%s -I%s/idl --include_imports "
                      "--include_source_info --descriptor_set_out=a.fds %s && "
                      "%s && echo ACCEPTED",
                      work, root, file_dir("IDEM_SOURCE_DIR"), name, step);
    said = file_command(command);
    free(step);
    free(command);
    return said;
}

/* Whether text has the line, as a whole. */
static bool
has_line(const char *text, const char *line, size_t size)
{
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (!strncmp(at, line, size) && (at[size] == '\n' || !at[size]))
            return true;
    }
    return false;
}

/* Each expected message is there. */
static unsigned
expected(const char *name, const char *proto, const char *said)
{
    unsigned count = 0;

    for (const char *at = proto; (at = strstr(at, MARK)); count++) {
        char line[1024];
        int size;

        at += strlen(MARK);
        size = snprintf(line, sizeof(line), "%s:%.*s", name,
                        (int)strcspn(at, "\n"), at);
        if (!has_line(said, line, (size_t)size))
            fail_msg("%s does not say\n  %s\nbut\n%s", name, line, said);
    }
    return count;
}

/* protoc's, of an import that a wrong file does not come to use. */
static bool
is_warning(const char *line, size_t size)
{
    const char *at = strstr(line, ": warning: ");

    return at && at < line + size;
}

/* The messages that were said. */
static unsigned
counted(const char *name, const char *said)
{
    unsigned count = 0;

    for (const char *at = said; *at; at += *at == '\n') {
        size_t size = strcspn(at, "\n");

        count += !strncmp(at, name, strlen(name)) && !is_warning(at, size);
        at += size;
    }
    return count;
}

static void
refuse(const char *name)
{
    char path[4096];
    char *proto, *said;
    unsigned count;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    proto = file_read(path);
    assert_non_null(proto);
    said = compile(name);
    assert_null(strstr(said, "ACCEPTED"));
    count = expected(name, proto, said);
    if (count == 0 || count != counted(name, said))
        fail_msg("%s says more or less than expected:\n%s", name, said);
    free(proto);
    free(said);
}

static void
every_wrong_proto_is_refused_with_its_place_and_rule(void **state)
{
    DIR *dir = opendir(root);
    struct dirent *entry;
    unsigned count = 0;

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (!strstr(entry->d_name, ".proto"))
            continue;
        refuse(entry->d_name);
        count++;
    }
    closedir(dir);
    assert_true(count >= 20);
}

static int
make_work(void **state)
{
    (void)state;
    return mkdtemp(work) ? 0 : -1;
}

static int
remove_work(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", work);
    free(file_command(command));
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_proto_is_refused_with_its_place_and_rule),
    };

    snprintf(root, sizeof(root), "%s/tests/unit/gen/wrong",
             file_dir("IDEM_SOURCE_DIR"));
    return cmocka_run_group_tests(tests, make_work, remove_work);
}
