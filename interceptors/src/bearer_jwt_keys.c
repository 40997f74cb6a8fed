#include "bearer_jwt_keys.h"

#include "bearer_jwt_pem.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define KEYS_MAX 100
#define SECRET_MIN_BYTES 32 /* RFC 7518, 3.2 */

/* The arena is for what one key's members decode to. */
struct reading {
    const char *path;
    struct bearer_keys *keys;
    struct idem_arena *arena;
    size_t index; /* of the key that is read */
    struct idem_error *err;
};

static enum idem_status
refuse(const struct reading *reading, const char *why)
{
    return idem_fail(reading->err, IDEM_INVALID_ARGUMENT, "%s: keys[%zu]: %s",
                     reading->path, reading->index, why);
}

static bool
is(const json_t *jwk, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(jwk, name));

    return value && strcmp(value, text) == 0;
}

static bool
decode(const struct reading *reading, const json_t *jwk, const char *name,
       struct idem_bytes *bytes)
{
    const json_t *value = json_object_get(jwk, name);
    struct idem_bytes text = {(const uint8_t *)json_string_value(value),
                              json_string_length(value)};

    return text.data && bearer_decode(bytes, text, reading->arena) &&
           bytes->size > 0;
}

/* --- Each kind --- */

static enum idem_status
read_rsa(const struct reading *reading, const json_t *jwk,
         struct bearer_key *key)
{
    struct idem_bytes n, e;
    const char *fault;

    key->algorithm = BEARER_RS256;
    if (!decode(reading, jwk, "n", &n) || !decode(reading, jwk, "e", &e))
        return refuse(reading, "n or e is not base64url");
    fault = bearer_pem_of_rsa(n, e, (char **)&key->material, &key->size);
    return fault ? refuse(reading, fault) : IDEM_OK;
}

static enum idem_status
read_ec(const struct reading *reading, const json_t *jwk,
        struct bearer_key *key)
{
    struct idem_bytes x, y;
    const char *fault;

    key->algorithm = BEARER_ES256;
    if (!decode(reading, jwk, "x", &x) || !decode(reading, jwk, "y", &y))
        return refuse(reading, "x or y is not base64url");
    fault = bearer_pem_of_p256(x, y, (char **)&key->material, &key->size);
    return fault ? refuse(reading, fault) : IDEM_OK;
}

static enum idem_status
read_secret(const struct reading *reading, const json_t *jwk,
            struct bearer_key *key)
{
    struct idem_bytes k;

    key->algorithm = BEARER_HS256;
    if (!decode(reading, jwk, "k", &k))
        return refuse(reading, "k is not base64url");
    if (k.size < SECRET_MIN_BYTES) {
        explicit_bzero((void *)(uintptr_t)k.data, k.size);
        return refuse(reading, "k has under 32 bytes");
    }
    key->material = malloc(k.size);
    IDEM_ASSERT(key->material);
    memcpy(key->material, k.data, k.size);
    key->size = k.size;
    explicit_bzero((void *)(uintptr_t)k.data, k.size);
    return IDEM_OK;
}

/* Not for signatures, or by an algorithm that is not the kind's of ours. */
static bool
is_for_others(const json_t *jwk, const char *algorithm)
{
    return (json_object_get(jwk, "use") && !is(jwk, "use", "sig")) ||
           (json_object_get(jwk, "alg") && !is(jwk, "alg", algorithm));
}

typedef enum idem_status read_kind_fn(const struct reading *reading,
                                      const json_t *jwk,
                                      struct bearer_key *key);

/* NULL: of no kind of ours. */
static read_kind_fn *
kind_of(const json_t *jwk)
{
    if (is(jwk, "kty", "RSA") && !is_for_others(jwk, "RS256"))
        return read_rsa;
    if (is(jwk, "kty", "EC") && is(jwk, "crv", "P-256") &&
        !is_for_others(jwk, "ES256"))
        return read_ec;
    if (is(jwk, "kty", "oct") && !is_for_others(jwk, "HS256"))
        return read_secret;
    return NULL;
}

/* --- The set --- */

static bool
has_id(const struct bearer_keys *keys, const char *id)
{
    for (unsigned i = 0; i < keys->n; i++)
        if (keys->at[i].id && strcmp(keys->at[i].id, id) == 0)
            return true;
    return false;
}

static enum idem_status
read_key(const struct reading *reading, const json_t *jwk)
{
    const json_t *id = json_object_get(jwk, "kid");
    read_kind_fn *read_kind = kind_of(jwk);
    struct bearer_keys *keys = reading->keys;
    struct bearer_key *key = &keys->at[keys->n];

    if (!json_is_object(jwk) || !json_is_string(json_object_get(jwk, "kty")))
        return refuse(reading, "is no object with a \"kty\"");
    if (!read_kind)
        return IDEM_OK;
    if (json_object_get(jwk, "d"))
        return refuse(reading, "has a private key: its signer's alone");
    if (id && !json_is_string(id))
        return refuse(reading, "its kid is no string");
    if (id && has_id(keys, json_string_value(id)))
        return refuse(reading, "its kid is another key's");
    keys->n++; /* frees what is there of it */
    if (id) {
        key->id = strdup(json_string_value(id));
        IDEM_ASSERT(key->id);
    }
    return read_kind(reading, jwk, key);
}

static enum idem_status
read_set(struct reading *reading, const json_t *set)
{
    const json_t *list = json_object_get(set, "keys");
    size_t n = json_array_size(list);
    enum idem_status status = IDEM_OK;

    if (!json_is_array(list) || n > KEYS_MAX)
        return idem_fail(reading->err, IDEM_INVALID_ARGUMENT,
                         "%s: \"keys\" is no list of at most %d keys",
                         reading->path, KEYS_MAX);
    reading->keys->at = calloc(n + 1, sizeof *reading->keys->at);
    IDEM_ASSERT(reading->keys->at);
    for (size_t i = 0; i < n && status == IDEM_OK; i++) {
        reading->index = i;
        status = read_key(reading, json_array_get(list, i));
    }
    if (status == IDEM_OK && reading->keys->n == 0)
        return idem_fail(reading->err, IDEM_INVALID_ARGUMENT,
                         "%s: has no key for RS256, ES256 or HS256",
                         reading->path);
    return status;
}

static void
keys_free(void *meaning)
{
    struct bearer_keys *keys = meaning;

    for (unsigned i = 0; i < keys->n; i++) {
        if (keys->at[i].material)
            explicit_bzero(keys->at[i].material, keys->at[i].size);
        free(keys->at[i].material);
        free(keys->at[i].id);
    }
    bearer_seen_free(keys->seen);
    free(keys->at);
    free(keys);
}

static enum idem_status
keys_read(void **meaning, const char *path, struct idem_bytes text,
          struct idem_error *err)
{
    struct reading reading = {.path = path, .err = err};
    json_error_t fault;
    json_t *set = json_loadb((const char *)text.data, text.size,
                             JSON_REJECT_DUPLICATES, &fault);
    enum idem_status status;

    /* The text of the fault may have a secret in it: its place will do. */
    if (!set)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "%s: line %d, column %d: is no JSON", path, fault.line,
                         fault.column);
    reading.keys = calloc(1, sizeof *reading.keys);
    reading.arena = idem_arena_new();
    IDEM_ASSERT(reading.keys && reading.arena);
    reading.keys->seen = bearer_seen_new();
    status = read_set(&reading, set);
    idem_arena_free(reading.arena);
    json_decref(set);
    if (status != IDEM_OK) {
        keys_free(reading.keys);
        return status;
    }
    *meaning = reading.keys;
    return IDEM_OK;
}

const struct kept_file_ops bearer_keys_ops = {
    .max_size = FILE_MAX_BYTES,
    .read = keys_read,
    .free = keys_free,
};
