#include "numbered_story.h"

#include <stdio.h>
#include <string.h>

struct journal_world numbered_world;
static bool on_postgres;

void
numbered_choose(int argc, char **argv)
{
    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
}

int
numbered_up(void **state)
{
    const struct journal_world_options options = {.postgres = on_postgres};

    (void)state;
    journal_world_open(&numbered_world, &options);
    return 0;
}

int
numbered_down(void **state)
{
    (void)state;
    journal_world_close(&numbered_world);
    return 0;
}

struct numbered
numbered_finish(struct journal_write_stream *stream)
{
    struct numbered written = {.entries = -1};
    journal_receipt *receipt = NULL;

    written.status = journal_write_finish(stream, &receipt, &written.outcome);
    if (written.status == IDEM_OK) {
        written.entries = receipt->entries;
        snprintf(written.word, sizeof written.word, "%s", receipt->word);
        journal_receipt_free(receipt);
    }
    return written;
}

struct numbered
numbered_write(const char *key, int64_t from, int64_t to)
{
    const struct idem_call_options options = {.key = key, .timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(numbered_world.channel, &options);

    for (int64_t i = from; i <= to; i++)
        if (journal_write_write(stream, journal_entry_of(i)) != IDEM_OK)
            break;
    return numbered_finish(stream);
}

const char *
numbered_key(const char *session, int64_t number)
{
    static char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session, number);
    return key;
}

const char *
numbered_session(void)
{
    static char session[IDEM_SESSION_MAX];

    idem_session_mint(session, idem_clock_system(), 0, 60000);
    return session;
}

void
assert_numbered_refused(const struct numbered *written, enum idem_status status,
                        const char *reason)
{
    if (written->status != status)
        print_error("%s: %s\n", idem_status_name(written->status),
                    written->outcome.message);
    assert_int_equal(written->status, status);
    assert_string_equal(written->outcome.reason, reason);
}
