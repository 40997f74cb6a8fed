#include "seed.h"

#include "shield_entry.h"
#include "trailers.h"

#include <stdio.h>

/* --- Redis --- */

static const uint8_t secret[] = "0123456789abcdef";

static size_t
write_entry(uint8_t *bytes, struct idem_arena *arena)
{
    const struct idem_metadata metadata = seed_two_entries(arena);
    const struct shield_secrets secrets = {
        .list = {{.id = 1, .bytes = {secret, 16}}}, .count = 1};
    struct shield_entry entry = {.fingerprint = {.version = 1}};

    entry.answer.status = IDEM_OK;
    entry.answer.first_at_ms = 1700000000000;
    entry.answer.executions = 1;
    entry.answer.message = idem_bytes_of("fine");
    entry.answer.reply = idem_bytes_of("reply");
    IDEM_ASSERT(trailers_encode(&metadata, arena, &entry.answer.trailers));
    IDEM_ASSERT(shield_entry_size(&entry) <= 1024);
    shield_entry_write(&entry, &secrets, bytes);
    return shield_entry_size(&entry);
}

static void
seed_entry(struct idem_arena *arena)
{
    uint8_t bytes[1024];
    size_t size = write_entry(bytes, arena);
    struct seed seed = seed_begin(0);

    seed_add(&seed, bytes, size);
    seed_save(&seed, "shield_entry", "as_it_is");
    seed = seed_begin(1);
    seed_add(&seed, bytes, size - SHIELD_TAG_SIZE);
    seed_save(&seed, "shield_entry", "to_be_signed");
    seed = seed_begin(0);
    seed.size += (size_t)snprintf((char *)seed.bytes + 1, SEED_ROOM - 1,
                                  "$%zu\r\n", size);
    seed_add(&seed, bytes, size);
    seed_add(&seed, "\r\n+OK\r\n", 7);
    seed_save(&seed, "redis", "entry");
}

static void
seed_replies(void)
{
    seed_save_choice("redis", "nil", 1,
                     "$-1\r\n+OK\r\n-ERR unknown command\r\n");
    seed_save_choice(
        "redis", "refusals", 0,
        "-LOADING Redis is loading\r\n-READONLY You can't write\r\n"
        "-ERR no\r\n-MOVED 3999 127.0.0.1:6381\r\n$3\r\nabc\r\n");
    seed_save_choice("redis", "odd", 9, ":1\r\n*2\r\n$1\r\na\r\n*-1\r\n");
    seed_save_choice("redis", "long", 200, "$2000000000\r\nabc");
    seed_save_choice(
        "shield_topology", "cluster", 0,
        "07c3 127.0.0.1:30004@31004 slave e7d1 0 1426238317239 4 "
        "connected\n"
        "67ed [::1]:30002@31002,name myself,master - 0 0 2 connected "
        "5461-10922 [93-<-292f] 77\n");
    seed_save_choice(
        "shield_topology", "sentinel", 1,
        "# Sentinel\r\nsentinel_masters:1\r\nmaster0:name=mine,"
        "status=ok,address=127.0.0.1:6379,slaves=1,sentinels=3\r\n");
    seed_save_choice("shield_topology", "moved", 2,
                     "MOVED 3999 127.0.0.1:6381");
    seed_save_choice("shield_topology", "ask", 2, "ASK 3999 :6381");
    seed_save_choice("shield_topology", "url", 3,
                     "redis://user:p%40ss@127.0.0.1:6379/3");
    seed_save_choice("shield_topology", "url_unix", 3,
                     "unix://:pw@/run/redis.sock?db=2");
    seed_save_choice("shield_topology", "url_sentinel", 3,
                     "redis+sentinel://[::1]:26379,b/mine/0");
    seed_save_choice("shield_topology", "url_cluster", 3,
                     "redis+cluster://a:7000,b:7001");
}

void
seed_redis(struct idem_arena *arena)
{
    seed_entry(arena);
    seed_replies();
}
