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

/* protoc, then the lowering, then the plugin whatever the lowering said. */
static char *
compile(const char *name)
{
    const char *build = file_dir("IDEM_BINARY_DIR");
    char command[4096];

    snprintf(command, sizeof(command),
             "cd %s && protoc -I%s -I%s/idl --include_imports "
             "--include_source_info --descriptor_set_out=a.fds %s && { "
             "%s/idl/gen/protoc-gen-idem --lower a.fds b.fds; "
             "protoc --descriptor_set_in=a.fds --idem_out=. "
             "--plugin=protoc-gen-idem=%s/idl/gen/protoc-gen-idem %s "
             "&& echo ACCEPTED; }",
             work, root, file_dir("IDEM_SOURCE_DIR"), name, build, build, name);
    return file_command(command);
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

/* The messages that were said, each counted once: the lowering and the plugin
 * say the same about shapes. */
static unsigned
distinct(const char *name, const char *said)
{
    unsigned count = 0;

    for (const char *at = said; *at; at += *at == '\n') {
        size_t size = strcspn(at, "\n");
        bool message = !strncmp(at, name, strlen(name));
        char *before = strndup(said, (size_t)(at - said));

        if (message && !is_warning(at, size) && !has_line(before, at, size))
            count++;
        free(before);
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
    if (count == 0 || count != distinct(name, said))
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
