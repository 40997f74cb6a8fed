#include "support.h"

#include "fake_clock.h"
#include "target.h"
#include "tempdir.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where addresses come from: files that change, names that are looked up. */

#define AGAIN_MS 30000
#define AWAIT_S 10

/* What a target told. */
struct sink {
    struct target *target;
    struct fake_clock clock;
    struct tempdir dir;
    char path[200];
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t told;
    unsigned found, troubles;
    char addresses[400]; /* "tcp://a:1 tcp://b:2" */
    char trouble[IDEM_MESSAGE_MAX];
};

static void
found(void *with, const char *const *addresses, unsigned n)
{
    struct sink *sink = with;
    size_t at = 0;

    pthread_mutex_lock(&sink->lock);
    for (unsigned i = 0; i < n; i++)
        at +=
            (size_t)snprintf(sink->addresses + at, sizeof sink->addresses - at,
                             "%s%s", i ? " " : "", addresses[i]);
    sink->found++;
    pthread_cond_broadcast(&sink->told);
    pthread_mutex_unlock(&sink->lock);
}

static void
trouble(void *with, const struct idem_error *err)
{
    struct sink *sink = with;

    pthread_mutex_lock(&sink->lock);
    snprintf(sink->trouble, sizeof sink->trouble, "%s", err->message);
    sink->troubles++;
    pthread_cond_broadcast(&sink->told);
    pthread_mutex_unlock(&sink->lock);
}

static void
await(struct sink *sink, const unsigned *count, unsigned n)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += AWAIT_S;
    pthread_mutex_lock(&sink->lock);
    while (*count < n && rc == 0)
        rc = pthread_cond_timedwait(&sink->told, &sink->lock, &end);
    pthread_mutex_unlock(&sink->lock);
    assert_int_equal(rc, 0);
}

static void
assert_found(struct sink *sink, unsigned times, const char *addresses)
{
    pthread_mutex_lock(&sink->lock);
    assert_int_equal(sink->found, times);
    assert_string_equal(sink->addresses, addresses);
    pthread_mutex_unlock(&sink->lock);
}

static void
assert_trouble(struct sink *sink, const char *names)
{
    pthread_mutex_lock(&sink->lock);
    assert_non_null(strstr(sink->trouble, names));
    pthread_mutex_unlock(&sink->lock);
}

static void
open_sink(struct sink *sink)
{
    memset(sink, 0, sizeof *sink);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->told, NULL);
    fake_clock_init(&sink->clock);
    tempdir_open(&sink->dir);
    tempdir_file(&sink->dir, "servers", sink->path, sizeof sink->path);
}

static void
close_sink(struct sink *sink)
{
    target_free(sink->target);
    tempdir_close(&sink->dir);
    fake_clock_fini(&sink->clock);
    pthread_cond_destroy(&sink->told);
    pthread_mutex_destroy(&sink->lock);
}

static enum idem_status
new_target(struct sink *sink, const char *text, target_lookup_fn *lookup,
           struct idem_error *err)
{
    const struct target_options options = {
        .clock = &sink->clock.clock,
        .again_ms = AGAIN_MS,
        .lookup = lookup,
        .found = found,
        .trouble = trouble,
        .with = sink,
    };

    return target_new(&sink->target, text, &options, err);
}

static void
start(struct sink *sink, const char *text, target_lookup_fn *lookup)
{
    struct idem_error err = {0};

    assert_int_equal(new_target(sink, text, lookup, &err), IDEM_OK);
    assert_int_equal(target_start(sink->target, &err), IDEM_OK);
}

static void
assert_wrong(struct sink *sink, const char *text, const char *names)
{
    struct idem_error err = {0};

    assert_int_equal(new_target(sink, text, NULL, &err), IDEM_INVALID_ARGUMENT);
    assert_null(sink->target);
    if (!strstr(err.message, names))
        print_error("%s: %s\n", text, err.message);
    assert_non_null(strstr(err.message, names));
}

/* --- Files --- */

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void
file_target(const struct sink *sink, char target[256])
{
    snprintf(target, 256, "file://%s", sink->path);
}

static void
a_file_names_an_address_a_line(void **state)
{
    struct sink sink;
    char target[256];

    (void)state;
    open_sink(&sink);
    file_target(&sink, target);
    write_file(sink.path, "# ours\n 10.0.0.1:7070 \n\n"
                          "ipc:///run/pay.sock # near\r\n10.0.0.1:7070\n");
    start(&sink, target, NULL);
    assert_found(&sink, 1, "tcp://10.0.0.1:7070 ipc:///run/pay.sock");
    close_sink(&sink);
}

static void
a_file_is_read_again_when_it_changes_or_is_replaced(void **state)
{
    struct sink sink;
    char target[256], other[220];

    (void)state;
    open_sink(&sink);
    file_target(&sink, target);
    write_file(sink.path, "10.0.0.1:1\n");
    start(&sink, target, NULL);
    write_file(sink.path, "10.0.0.2:2\n");
    await(&sink, &sink.found, 2);
    assert_found(&sink, 2, "tcp://10.0.0.2:2");
    snprintf(other, sizeof other, "%s.new", sink.path);
    write_file(other, "10.0.0.3:3\n10.0.0.4:4\n");
    assert_int_equal(rename(other, sink.path), 0);
    await(&sink, &sink.found, 3);
    assert_found(&sink, 3, "tcp://10.0.0.3:3 tcp://10.0.0.4:4");
    close_sink(&sink);
}

/* As Kubernetes mounts it: the file is a link through a link to a folder, which
 * is what is replaced. */
static void
a_file_behind_a_link_is_read_again_when_the_link_is_another(void **state)
{
    struct sink sink;
    char target[256], one[220], two[220], data[220], draft[220];

    (void)state;
    open_sink(&sink);
    file_target(&sink, target);
    tempdir_file(&sink.dir, "one", one, sizeof one);
    tempdir_file(&sink.dir, "two", two, sizeof two);
    tempdir_file(&sink.dir, "..data", data, sizeof data);
    tempdir_file(&sink.dir, "draft", draft, sizeof draft);
    write_file(one, "10.0.0.1:1\n");
    write_file(two, "10.0.0.2:2\n");
    assert_int_equal(symlink("one", data), 0);
    assert_int_equal(symlink("..data", sink.path), 0);
    start(&sink, target, NULL);
    assert_int_equal(symlink("two", draft), 0);
    assert_int_equal(rename(draft, data), 0);
    await(&sink, &sink.found, 2);
    assert_found(&sink, 2, "tcp://10.0.0.2:2");
    close_sink(&sink);
}

static void
a_bad_file_says_so_and_keeps_the_old_list(void **state)
{
    struct sink sink;
    char target[256];

    (void)state;
    open_sink(&sink);
    file_target(&sink, target);
    write_file(sink.path, "10.0.0.1:1\n");
    start(&sink, target, NULL);
    write_file(sink.path, "10.0.0.2:2\npigeon://x\n");
    await(&sink, &sink.troubles, 1);
    assert_trouble(&sink, "servers: line 2: no transport");
    assert_int_equal(remove(sink.path), 0);
    await(&sink, &sink.troubles, 2);
    assert_trouble(&sink, "No such file");
    assert_found(&sink, 1, "tcp://10.0.0.1:1");
    write_file(sink.path, "10.0.0.2:2\n");
    await(&sink, &sink.found, 2);
    close_sink(&sink);
}

static void
a_file_that_is_wrong_at_first_is_refused(void **state)
{
    struct sink sink;
    char target[256];

    (void)state;
    open_sink(&sink);
    file_target(&sink, target);
    assert_wrong(&sink, target, "servers: No such file");
    write_file(sink.path, "# nobody\n");
    assert_wrong(&sink, target, "servers has no address");
    assert_wrong(&sink, "file://servers", "want an absolute path");
    assert_wrong(&sink, "file:///no/such/folder/x", "its folder");
    close_sink(&sink);
}

/* --- Names --- */

static struct {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    unsigned lookups;
    bool fails, blocks;
} zone = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

static void
set_zone(bool fails, bool blocks)
{
    pthread_mutex_lock(&zone.lock);
    zone.fails = fails;
    zone.blocks = blocks;
    zone.lookups = 0;
    pthread_cond_broadcast(&zone.change);
    pthread_mutex_unlock(&zone.lock);
}

/* 10.0.0.N for the n-th lookup, and one that stays. */
static enum idem_status
look_up(const char *host, const char *port, struct target_names *names,
        struct idem_error *err)
{
    char text[64];
    unsigned n;
    bool fails;

    pthread_mutex_lock(&zone.lock);
    n = ++zone.lookups;
    pthread_cond_broadcast(&zone.change);
    while (zone.blocks)
        pthread_cond_wait(&zone.change, &zone.lock);
    fails = zone.fails;
    pthread_mutex_unlock(&zone.lock);
    assert_string_equal(host, "pay.internal");
    if (fails)
        return idem_fail(err, IDEM_UNAVAILABLE, "nobody knows");
    snprintf(text, sizeof text, "tcp://10.0.0.%u:%s", n, port);
    if (target_names_add(names, idem_bytes_of(text), err) != IDEM_OK)
        return err->status;
    return target_names_add(names, idem_bytes_of("tcp://10.0.9.9:1"), err);
}

static void
a_name_is_looked_up_again_after_a_time_or_when_somebody_asks(void **state)
{
    struct sink sink;
    int64_t now_ns;

    (void)state;
    set_zone(false, false);
    open_sink(&sink);
    now_ns = sink.clock.now_ns;
    start(&sink, "dns://pay.internal:70", look_up);
    await(&sink, &sink.found, 1);
    assert_found(&sink, 1, "tcp://10.0.0.1:70 tcp://10.0.9.9:1");
    fake_clock_await_waiter(&sink.clock, now_ns + AGAIN_MS * 1000000LL);
    fake_clock_advance_ms(&sink.clock, AGAIN_MS);
    await(&sink, &sink.found, 2);
    assert_found(&sink, 2, "tcp://10.0.0.2:70 tcp://10.0.9.9:1");
    now_ns = sink.clock.now_ns;
    target_again(sink.target);
    fake_clock_await_waiter(&sink.clock, now_ns + 1000 * 1000000LL);
    assert_found(&sink, 2, "tcp://10.0.0.2:70 tcp://10.0.9.9:1");
    fake_clock_advance_ms(&sink.clock, 1000);
    await(&sink, &sink.found, 3);
    close_sink(&sink);
}

static void
a_name_that_nobody_knows_is_trouble(void **state)
{
    struct sink sink;

    (void)state;
    set_zone(true, false);
    open_sink(&sink);
    start(&sink, "dns://pay.internal:70", look_up);
    await(&sink, &sink.troubles, 1);
    assert_trouble(&sink, "cannot look up pay.internal: nobody knows");
    assert_found(&sink, 0, "");
    close_sink(&sink);
}

static void
nobody_waits_for_a_lookup_that_takes_for_ever(void **state)
{
    struct sink sink;

    (void)state;
    set_zone(false, true);
    open_sink(&sink);
    start(&sink, "dns://pay.internal:70", look_up);
    pthread_mutex_lock(&zone.lock);
    while (zone.lookups == 0)
        pthread_cond_wait(&zone.change, &zone.lock);
    pthread_mutex_unlock(&zone.lock);
    close_sink(&sink);
    assert_int_equal(sink.found, 0);
    set_zone(false, false);
}

static void
a_real_name_has_its_addresses(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink);
    start(&sink, "dns://127.0.0.1:70", NULL);
    await(&sink, &sink.found, 1);
    assert_found(&sink, 1, "tcp://127.0.0.1:70");
    close_sink(&sink);
}

static void
a_name_without_a_port_is_refused(void **state)
{
    struct sink sink;

    (void)state;
    open_sink(&sink);
    assert_wrong(&sink, "dns://pay.internal", "want dns://host:port");
    assert_wrong(&sink, "dns://pay.internal:http", "want dns://host:port");
    assert_wrong(&sink, "dns://pay.internal:65536", "want dns://host:port");
    assert_wrong(&sink, "dns://pay.internal:0", "want dns://host:port");
    assert_wrong(&sink, "dns://:70", "want dns://host:port");
    assert_wrong(&sink, "dns:///pay:70", "want dns://host:port");
    close_sink(&sink);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_names_an_address_a_line),
        cmocka_unit_test(a_file_is_read_again_when_it_changes_or_is_replaced),
        cmocka_unit_test(
            a_file_behind_a_link_is_read_again_when_the_link_is_another),
        cmocka_unit_test(a_bad_file_says_so_and_keeps_the_old_list),
        cmocka_unit_test(a_file_that_is_wrong_at_first_is_refused),
        cmocka_unit_test(
            a_name_is_looked_up_again_after_a_time_or_when_somebody_asks),
        cmocka_unit_test(a_name_that_nobody_knows_is_trouble),
        cmocka_unit_test(nobody_waits_for_a_lookup_that_takes_for_ever),
        cmocka_unit_test(a_real_name_has_its_addresses),
        cmocka_unit_test(a_name_without_a_port_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
