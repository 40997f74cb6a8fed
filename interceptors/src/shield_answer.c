#include "shield.h"

#include <string.h>

static bool
copy(struct idem_arena *arena, struct idem_bytes *bytes)
{
    bytes->data = idem_arena_copy(arena, *bytes);
    return bytes->data != NULL;
}

/* The reply's bytes go with the reply; the answer stays with the call. */
static bool
keep_answer(struct idem_shield_look *look, struct idem_answer answer)
{
    if (!copy(look->arena, &answer.message) ||
        !copy(look->arena, &answer.reason) ||
        !copy(look->arena, &answer.reply) ||
        !copy(look->arena, &answer.trailers))
        return false;
    look->answer = answer;
    return true;
}

/* Made under the authority's epoch as it is now? */
static bool
is_current(struct idem_shield *shield, const struct shield_entry *entry)
{
    uint8_t epoch[IDEM_SHA256_SIZE];

    return shield_epoch(shield, epoch) &&
           memcmp(epoch, entry->epoch, sizeof(epoch)) == 0;
}

/* The entry is ours, of this key and of now. */
static void
judge(struct idem_shield *shield, struct idem_shield_look *look,
      const struct shield_entry *entry)
{
    const struct idem_fingerprint *recorded = &entry->fingerprint;
    bool same = idem_fingerprint_match(recorded, look->fingerprint);

    /* Of a server that writes another canonical form: the record knows. */
    if (!same && recorded->version != look->fingerprint->version) {
        shield_count(&shield->misses, 1);
        return;
    }

    if (!keep_answer(look, entry->answer)) {
        shield_count(&shield->failed, 1);
        return;
    }
    look->verdict = same ? IDEM_VERDICT_DONE : IDEM_VERDICT_REUSED;
    shield_count(&shield->hits, 1);
}

static bool
take_value(struct idem_shield *shield, struct idem_shield_look *look,
           struct idem_bytes bytes)
{
    struct shield_entry entry;
    enum shield_read read = shield_entry_read(&entry, &shield->secrets, bytes);

    if (read != SHIELD_READ_GOOD) {
        shield_count(&shield->rejected, 1);
        if (read == SHIELD_READ_FOREIGN)
            shield_count(&shield->foreign, 1);
        return true;
    }
    /* Another key's entry, and a good one: replies and commands are out of
     * step (case B061). */
    if (memcmp(entry.digest, look->id->digest, sizeof(entry.digest)) != 0) {
        shield_count(&shield->rejected, 1);
        return false;
    }
    if (is_current(shield, &entry))
        judge(shield, look, &entry);
    else
        shield_count(&shield->rejected, 1);
    return true;
}

bool
shield_answer(struct idem_shield *shield, struct idem_shield_look *look,
              const struct redis_reply *reply)
{
    look->verdict = IDEM_VERDICT_ABSENT;
    switch (reply->kind) {
    case REDIS_VALUE:
        return take_value(shield, look, reply->bytes);
    case REDIS_NIL:
        shield_count(&shield->misses, 1);
        return true;
    case REDIS_REFUSAL:
        shield_count(&shield->failed, 1);
        return true;
    case REDIS_STATUS:
    case REDIS_ODD:
        break;
    }
    shield_count(&shield->rejected, 1);
    return false;
}
