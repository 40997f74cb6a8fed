#include "watermark.h"

#include <idem/digest.h>
#include <idem/key.h>
#include <idem/outcome.h>

#include <string.h>

#define DAY_MS INT64_C(86400000)

static struct idem_bytes
session_of(const struct idem_record_id *id)
{
    return (struct idem_bytes){id->key.text.data, id->key.session_size};
}

void
watermark_digest(const struct idem_record_id *id, uint8_t digest[32])
{
    const struct idem_bytes parts[] = {idem_bytes_of("idem-session1"),
                                       id->tenant, session_of(id)};

    idem_sha256_of_parts(parts, 3, digest);
}

int64_t
watermark_bounded(const struct idem_ticket *ticket)
{
    int64_t own = ticket->id.key.sequence;

    return ticket->ack_below < (uint64_t)own ? (int64_t)ticket->ack_below : own;
}

int64_t
watermark_gone_ms(const struct idem_record_id *id)
{
    return id->key.minted_ms + id->key.window_ms + DAY_MS;
}

void
watermark_record(const struct idem_record_id *id, int64_t sequence,
                 uint8_t digest[32])
{
    struct idem_record_id other = *id;
    char session[IDEM_SESSION_MAX], text[IDEM_KEY_MAX + 1];
    struct idem_bytes name = session_of(id);

    IDEM_ASSERT(name.size > 0 && name.size < sizeof session);
    memcpy(session, name.data, name.size);
    session[name.size] = '\0';
    idem_key_of_session(text, session, sequence);
    other.scope = IDEM_SESSION_SCOPE;
    other.key.text = idem_bytes_of(text);
    idem_record_id_digest(&other);
    memcpy(digest, other.digest, sizeof other.digest);
}
