#ifndef IDEM_KEY_H
#define IDEM_KEY_H

#include <idem/clock.h>
#include <idem/interceptor.h>
#include <idem/method.h>
#include <idem/outcome.h>
#include <idem/parent.h>
#include <idem/session.h>

/* Idempotency keys: text of 1 to 255 bytes of 0x21..0x7E (semantics.md 3.11).
 *
 * A minted key carries its time: "idk_", 32 hex digits of a UUIDv7, "_", its
 * window in seconds, "_", 8 hex digits of a CRC-32C over all before. Any other
 * key is opaque.
 *
 * A session's key is minted too, all of a session at one time: "ids_", the 32
 * digits, "_", the window, "_", a number from 1, "_", the checksum. Before the
 * number stands the session's name. */

struct idem_context;

struct idem_key {
    bool minted;
    int64_t minted_ms;   /* wall clock of the minting; 0 for an opaque key */
    int64_t window_ms;   /* 0 for an opaque key */
    int64_t sequence;    /* of a session's key, from 1; else 0 */
    size_t session_size; /* … and the bytes of text that name the session */
    struct idem_bytes text; /* a view of what was parsed */
};

/* The scope of the records of all session keys: not a method's. */
#define IDEM_SESSION_SCOPE "all sessions"

IDEM_BEGIN_DECLS

/* Make a key. text receives at most IDEM_KEY_MAX + 1 bytes, NUL-terminated. */
IDEM_API void idem_key_mint(char *text, const struct idem_clock *clock,
                            int64_t window_ms);

/* The same, as if the wall clock were so far ahead of what it says. */
IDEM_API void idem_key_mint_skewed(char *text, const struct idem_clock *clock,
                                   int64_t skew_ms, int64_t window_ms);

/* Make a session's name, of at most IDEM_SESSION_MAX bytes with the NUL. */
IDEM_API void idem_session_mint(char *text, const struct idem_clock *clock,
                                int64_t skew_ms, int64_t window_ms);

/**
 * Read a key.
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT  reason KEY_EMPTY, KEY_TOO_LONG, KEY_CHARSET,
 * or KEY_FORMAT: begins like a minted key and is none
 */
IDEM_API enum idem_status idem_key_parse(struct idem_key *key,
                                         struct idem_bytes text,
                                         struct idem_error *err)
    IDEM_MUST_CHECK;

/* How many bits a guesser has to find, at most 255 * 6: the estimate of
 * docs/wire.md, section 3. A key that goes on is never weaker. */
IDEM_API unsigned idem_key_bits(struct idem_bytes text);

/**
 * Read a key that somebody chose for a call of the method.
 *
 * @retval IDEM_INVALID_ARGUMENT  as idem_key_parse; or KEY_WEAK: the method has
 * secret_keys, and the key is opaque and of less than 64 bits
 */
IDEM_API enum idem_status
idem_key_admit(struct idem_key *key, const struct idem_method *method,
               struct idem_bytes text, struct idem_error *err) IDEM_MUST_CHECK;

/* The key of a call that a handler makes, without a word of its author's: the
 * same for the same execution's parent, method and step or number. It is of its
 * parent's tenant and scope too, for two of them may use one key for what has
 * nothing to do with each other. The child of a minted key is minted: it
 * carries its parent's time and window. text as above. */
IDEM_API void idem_key_of_child(char *text, const struct idem_parent *parent,
                                const struct idem_method *method);

/* Make of a minted key, in place, the first of a session that is as old: the
 * same for the same key. False: it carries no time, and is as it was. */
IDEM_API bool idem_key_to_session(char *text) IDEM_MUST_CHECK;

/**
 * The key of what a handler does in a system that is none of idem's, to hand to
 * it: the same whenever the call runs again, another one for each step of the
 * handler. Of what the key of a child is made.
 *
 * @retval IDEM_OK
 * @retval IDEM_FAILED_PRECONDITION  KEY_MISSING: the handler's call has no key,
 *                                   and all that have none would share one
 */
IDEM_API enum idem_status
idem_key_of_step(char *text, const struct idem_context *context,
                 const char *step, struct idem_error *err) IDEM_MUST_CHECK;

/**
 * Write the key that the method's fields make: a digest of paths and values,
 * each length-prefixed, the same on client and server. text as above.
 *
 * Without presence, the empty string and the number 0 cannot be told from a
 * field that was forgotten and count as not set (false and an enum's 0 do not):
 * calls that forgot it would all share one key.
 *
 * @retval IDEM_INVALID_ARGUMENT  KEY_MISSING: a message on the path, or the
 *                                field, is not set; names it
 */
IDEM_API enum idem_status
idem_key_from_fields(char *text, const struct idem_method *method,
                     const struct ProtobufCMessage *request,
                     struct idem_error *err) IDEM_MUST_CHECK;

/* The client's interceptor: puts a key on every call of a method that wants
 * one, once, above retry. A key that the caller gave wins: it may be repeating
 * a call from before a restart. Standard in a channel. NULL: out of memory.
 *
 * A minted key that was refused as KEY_EXPIRED because this side's clock is
 * wrong is minted once more, by the server's time, if no attempt with it can
 * have taken effect; the keys of later calls are minted by that time too. */
IDEM_API struct idem_interceptor *idem_key_interceptor_new(void);

IDEM_END_DECLS

#endif
