#include "support.h"

#include "child.h"
#include "loopback.h"
#include "redis_house.h"
#include "shield_world.h"

#include <idem/digest.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A master that Sentinels know, and a cluster of three: real ones. What moves,
 * falls over or is away is a miss until it is found again. */

#define NODES 3
#define SLOTS 16384
#define RECORDS 60
#define PATIENCE_MS 30000

static void
say(struct redis *redis, const char *command, char *reply, size_t size)
{
    redis_say(redis, command, reply, size);
    if (reply[0] == '-')
        fail_msg("%s: %s", command, reply);
}

static void
do_say(struct redis *redis, const char *command)
{
    char reply[256];

    say(redis, command, reply, sizeof(reply));
}

/* --- Sentinel --- */

static int
open_house(void **state)
{
    *state = redis_house_start();
    return 0;
}

static int
close_house(void **state)
{
    redis_house_free(*state);
    return 0;
}

/* The first Sentinel of the URL is not there. */
static void
a_sentinel_says_where_the_master_is(void **state)
{
    struct redis_house *house = *state;
    struct idem_shield *shield = shield_open_connected(
        (struct idem_redis_options){.url = redis_house_url(house)});

    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

static bool
is_filled_again(void *with)
{
    struct idem_shield *shield = with;

    shield_learn(shield, 2);
    shield_ask(shield, 1);
    return shield_ask(shield, 2) == IDEM_VERDICT_DONE;
}

static void
after_a_failover_the_new_master_is_found(void **state)
{
    struct redis_house *house = *state;
    struct idem_shield *shield = shield_open_connected(
        (struct idem_redis_options){.url = redis_house_url(house)});

    shield_learn_for_sure(shield, 1);
    redis_kill(redis_house_master(house));
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_true(child_wait_until(is_filled_again, shield, PATIENCE_MS));
    assert_int_equal(shield_counts(shield).rejected, 0);
    idem_shield_free(shield);
}

static bool
has_an_entry(void *with)
{
    char reply[64];

    redis_say(with, "DBSIZE", reply, sizeof(reply));
    return strcmp(reply, ":0\r\n") != 0;
}

/* Whoever asked the Sentinel just before it knew may find the old one as a
 * master: until it is a replica, which takes nothing. */
static void
an_old_master_that_comes_back_is_left_for_the_new_one(void **state)
{
    struct redis_house *house = *state;
    struct idem_shield *shield = shield_open_connected(
        (struct idem_redis_options){.url = redis_house_url(house)});

    shield_learn_for_sure(shield, 1);
    redis_house_fail_over(house);
    assert_true(child_wait_until(is_filled_again, shield, PATIENCE_MS));
    redis_house_rejoin(house);
    assert_true(child_wait_until(is_filled_again, shield, PATIENCE_MS));
    assert_true(has_an_entry(redis_house_master(house)));
    assert_int_equal(shield_counts(shield).rejected, 0);
    idem_shield_free(shield);
}

static void
a_master_of_another_name_is_never_found(void **state)
{
    struct redis_house *house = *state;
    struct idem_shield *shield;
    char url[256];

    snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%u/other",
             redis_port(redis_house_sentinel(house)));
    shield = shield_open(url);
    for (int i = 0; i < 20; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).skipped, 20);
    idem_shield_free(shield);
}

static void
a_sentinel_with_a_password_is_asked_with_it(void **state)
{
    struct redis_house *house = *state;
    struct idem_shield *shield;
    char reply[64], url[300];

    redis_say(redis_house_sentinel(house), "ACL SETUSER default >open:sesame",
              reply, sizeof(reply));
    assert_string_equal(reply, "+OK\r\n");
    snprintf(url, sizeof(url), "%s?sentinel=:open%%3Asesame",
             redis_house_url(house));
    shield = shield_open_connected((struct idem_redis_options){.url = url});
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
    shield = shield_open(redis_house_url(house));
    for (int i = 0; i < 20; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).skipped, 20);
    idem_shield_free(shield);
}

/* --- Cluster --- */

struct cluster {
    struct redis *nodes[NODES];
    unsigned bus[NODES];
    char ids[NODES][48];
    char url[256];
};

static bool
is_whole(void *with)
{
    char reply[4096];

    redis_say(with, "CLUSTER INFO", reply, sizeof(reply));
    return strstr(reply, "cluster_state:ok") != NULL &&
           strstr(reply, "cluster_known_nodes:3") != NULL;
}

static void
give_slots(struct cluster *cluster, unsigned i)
{
    char command[96];

    snprintf(command, sizeof(command), "CLUSTER ADDSLOTSRANGE %u %u",
             SLOTS * i / NODES, SLOTS * (i + 1) / NODES - 1);
    do_say(cluster->nodes[i], command);
    snprintf(command, sizeof(command), "CLUSTER MEET 127.0.0.1 %u %u",
             redis_port(cluster->nodes[i]), cluster->bus[i]);
    do_say(cluster->nodes[0], command);
}

static void
start_node(struct cluster *cluster, unsigned i)
{
    char options[160], reply[128];

    cluster->bus[i] = loopback_free_port();
    snprintf(options, sizeof(options),
             "cluster-enabled yes\ncluster-port %u\n"
             "cluster-node-timeout 2000\n"
             "cluster-require-full-coverage no\n",
             cluster->bus[i]);
    cluster->nodes[i] = redis_start(options);
    say(cluster->nodes[i], "CLUSTER MYID", reply, sizeof(reply));
    snprintf(cluster->ids[i], sizeof(cluster->ids[i]), "%.40s",
             strchr(reply, '\n') + 1);
}

static int
open_cluster(void **state)
{
    struct cluster *cluster = calloc(1, sizeof(*cluster));

    assert_non_null(cluster);
    for (unsigned i = 0; i < NODES; i++)
        start_node(cluster, i);
    for (unsigned i = 0; i < NODES; i++)
        give_slots(cluster, i);
    for (unsigned i = 0; i < NODES; i++)
        assert_true(child_wait_until(is_whole, cluster->nodes[i], PATIENCE_MS));
    snprintf(cluster->url, sizeof(cluster->url),
             "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", loopback_free_port(),
             redis_port(cluster->nodes[0]));
    *state = cluster;
    return 0;
}

static int
close_cluster(void **state)
{
    struct cluster *cluster = *state;

    for (unsigned i = 0; i < NODES; i++)
        redis_free(cluster->nodes[i]);
    free(cluster);
    return 0;
}

static bool
all_are_done(void *with)
{
    struct idem_shield *shield = with;
    unsigned done = 0;

    for (unsigned n = 0; n < RECORDS; n++) {
        if (shield_ask(shield, n) == IDEM_VERDICT_DONE)
            done++;
        else
            shield_learn(shield, n);
    }
    return done == RECORDS;
}

static struct idem_shield *
open_filled(const char *url)
{
    struct idem_shield *shield =
        shield_open_connected((struct idem_redis_options){.url = url});

    assert_true(child_wait_until(all_are_done, shield, PATIENCE_MS));
    return shield;
}

static unsigned
keys_of(struct redis *redis)
{
    char reply[64];

    say(redis, "DBSIZE", reply, sizeof(reply));
    return (unsigned)strtoul(reply + 1, NULL, 10);
}

/* One node of the URL is there, and speaks of the others. */
static void
every_key_is_at_the_node_of_its_slot(void **state)
{
    struct cluster *cluster = *state;
    struct idem_shield *shield = open_filled(cluster->url);
    unsigned keys = 0;

    for (unsigned i = 0; i < NODES; i++) {
        assert_true(keys_of(cluster->nodes[i]) > 0);
        keys += keys_of(cluster->nodes[i]);
    }
    assert_int_equal(keys, RECORDS);
    idem_shield_free(shield);
}

/* The slot of a record's key, as Redis reckons, and the node that has it. */
static unsigned
slot_of(struct cluster *cluster, unsigned number, char *key, size_t size)
{
    char name[32], command[256], reply[64];
    uint8_t digest[IDEM_SHA256_SIZE];
    int at = snprintf(key, size, "\"idem:");

    snprintf(name, sizeof(name), "key-%u", number);
    idem_sha256_of(idem_bytes_of(name), digest);
    for (int i = 0; i < IDEM_SHA256_SIZE; i++)
        at += snprintf(key + at, size - (size_t)at, "\\x%02x", digest[i]);
    snprintf(key + at, size - (size_t)at, "\"");
    snprintf(command, sizeof(command), "CLUSTER KEYSLOT %s", key);
    say(cluster->nodes[0], command, reply, sizeof(reply));
    return (unsigned)strtoul(reply + 1, NULL, 10);
}

static unsigned
node_of(unsigned slot)
{
    unsigned i = 0;

    while (slot >= SLOTS * (i + 1) / NODES)
        i++;
    return i;
}

static void
set_slot(struct cluster *cluster, unsigned at, unsigned slot, const char *verb,
         unsigned node)
{
    char command[128];

    snprintf(command, sizeof(command), "CLUSTER SETSLOT %u %s %s", slot, verb,
             cluster->ids[node]);
    do_say(cluster->nodes[at], command);
}

/* MOVED. */
static void
a_slot_that_moved_is_followed(void **state)
{
    struct cluster *cluster = *state;
    struct idem_shield *shield = open_filled(cluster->url);
    char key[160];
    unsigned slot = slot_of(cluster, 1, key, sizeof(key));
    unsigned from = node_of(slot), to = (from + 1) % NODES;

    do_say(cluster->nodes[from], "FLUSHALL");
    set_slot(cluster, to, slot, "NODE", to);
    set_slot(cluster, from, slot, "NODE", to);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_true(child_wait_until(all_are_done, shield, PATIENCE_MS));
    assert_int_equal(shield_counts(shield).rejected, 0);
    idem_shield_free(shield);
}

struct filled {
    struct idem_shield *shield;
    uint64_t before;
};

static bool
is_one_more(void *with)
{
    const struct filled *filled = with;

    return shield_counts(filled->shield).fills > filled->before;
}

/* Nobody has looked since: the fill itself finds out, and is not lost. */
static void
a_fill_follows_its_slot(void **state)
{
    struct cluster *cluster = *state;
    struct idem_shield *shield = open_filled(cluster->url);
    char key[160], command[200], reply[32];
    unsigned slot = slot_of(cluster, 1, key, sizeof(key));
    unsigned from = node_of(slot), to = (from + 1) % NODES;
    uint64_t failed = shield_counts(shield).failed;
    struct filled filled = {shield, shield_counts(shield).fills};

    do_say(cluster->nodes[from], "FLUSHALL");
    set_slot(cluster, to, slot, "NODE", to);
    set_slot(cluster, from, slot, "NODE", to);
    shield_learn(shield, 1);
    assert_true(child_wait_until(is_one_more, &filled, PATIENCE_MS));
    snprintf(command, sizeof(command), "EXISTS %s", key);
    say(cluster->nodes[to], command, reply, sizeof(reply));
    assert_string_equal(reply, ":1\r\n");
    assert_int_equal(shield_counts(shield).failed, failed);
    idem_shield_free(shield);
}

/* ASK. */
static void
a_key_on_its_way_is_asked_for_where_it_is(void **state)
{
    struct cluster *cluster = *state;
    struct idem_shield *shield = open_filled(cluster->url);
    char key[160], command[256];
    unsigned slot = slot_of(cluster, 1, key, sizeof(key));
    unsigned from = node_of(slot), to = (from + 1) % NODES;
    uint64_t failed = shield_counts(shield).failed;

    set_slot(cluster, to, slot, "IMPORTING", from);
    set_slot(cluster, from, slot, "MIGRATING", to);
    snprintf(command, sizeof(command), "MIGRATE 127.0.0.1 %u %s 0 5000",
             redis_port(cluster->nodes[to]), key);
    do_say(cluster->nodes[from], command);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    assert_int_equal(shield_counts(shield).failed, failed);
    idem_shield_free(shield);
}

static void
a_node_that_is_away_costs_only_its_own_keys(void **state)
{
    struct cluster *cluster = *state;
    struct idem_shield *shield = open_filled(cluster->url);
    unsigned away = keys_of(cluster->nodes[2]), absent = 0;

    redis_kill(cluster->nodes[2]);
    for (unsigned n = 0; n < RECORDS; n++)
        absent += shield_ask(shield, n) == IDEM_VERDICT_ABSENT;
    assert_int_equal(absent, away);
    redis_restart(cluster->nodes[2]);
    assert_true(child_wait_until(all_are_done, shield, PATIENCE_MS));
    idem_shield_free(shield);
}

#define IN_HOUSE(test)                                                         \
    cmocka_unit_test_setup_teardown(test, open_house, close_house)
#define IN_CLUSTER(test)                                                       \
    cmocka_unit_test_setup_teardown(test, open_cluster, close_cluster)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_HOUSE(a_sentinel_says_where_the_master_is),
        IN_HOUSE(a_sentinel_with_a_password_is_asked_with_it),
        IN_HOUSE(after_a_failover_the_new_master_is_found),
        IN_HOUSE(an_old_master_that_comes_back_is_left_for_the_new_one),
        IN_HOUSE(a_master_of_another_name_is_never_found),
        IN_CLUSTER(every_key_is_at_the_node_of_its_slot),
        IN_CLUSTER(a_slot_that_moved_is_followed),
        IN_CLUSTER(a_fill_follows_its_slot),
        IN_CLUSTER(a_key_on_its_way_is_asked_for_where_it_is),
        IN_CLUSTER(a_node_that_is_away_costs_only_its_own_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
