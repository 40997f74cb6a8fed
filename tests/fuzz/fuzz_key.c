#include "fuzz.h"

#include <idem/key.h>
#include <idem/store.h>

#include <string.h>

/* Keys: a key has one spelling, and what is derived from it is a key. */

static void
check_session(const struct idem_key *key)
{
    char session[IDEM_SESSION_MAX], text[IDEM_KEY_MAX + 1];

    IDEM_ASSERT(key->minted && key->session_size < sizeof session);
    memcpy(session, key->text.data, key->session_size);
    session[key->session_size] = 0;
    idem_key_of_session(text, session, key->sequence);
    IDEM_ASSERT(idem_bytes_equal(idem_bytes_of(text), key->text));
}

static void
check_child(const struct idem_key *key)
{
    static const struct idem_method method = {.scope = "fuzz.v1.Fuzz/Call"};
    const struct idem_parent parent = {.key = key->text, .number = 1};
    char text[IDEM_KEY_MAX + 1];
    struct idem_key child;

    idem_key_of_child(text, &parent, &method);
    IDEM_ASSERT(idem_key_parse(&child, idem_bytes_of(text), NULL) == IDEM_OK);
    IDEM_ASSERT(child.minted == key->minted);
    IDEM_ASSERT(child.minted_ms == key->minted_ms);
    IDEM_ASSERT(child.window_ms == key->window_ms);
}

/* docs/wire.md, section 10. */
static void
check_bits(struct idem_bytes text)
{
    unsigned bits = idem_key_bits(text);

    IDEM_ASSERT(bits <= 6 * text.size);
    text.size--;
    IDEM_ASSERT(idem_key_bits(text) <= bits);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_key key;
    struct idem_error err = {0};

    if (idem_key_parse(&key, (struct idem_bytes){data, size}, &err) !=
        IDEM_OK) {
        IDEM_ASSERT(err.status == IDEM_INVALID_ARGUMENT && err.message[0]);
        return 0;
    }
    IDEM_ASSERT(size > 0 && size <= IDEM_KEY_MAX);
    IDEM_ASSERT(key.minted || (key.minted_ms == 0 && key.window_ms == 0));
    if (key.sequence > 0)
        check_session(&key);
    check_child(&key);
    check_bits(key.text);
    return 0;
}
