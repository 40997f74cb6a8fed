#include "bearer_jwt_text.h"

#include "word_lines.h"

#include <idem/auth.h>
#include <idem/reason.h>

#include <jansson.h>

#include <string.h>

/* --- base64url (RFC 4648, 5), without padding --- */

static int
value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

/* Bits that no byte is made of are 0: one value has one text. */
bool
bearer_decode(struct idem_bytes *bytes, struct idem_bytes text,
              struct idem_arena *arena)
{
    uint8_t *to = idem_arena_alloc(arena, text.size * 3 / 4 + 1);
    unsigned bits = 0, held = 0;
    size_t size = 0;

    if (!to || text.size % 4 == 1)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int value = value_of(text.data[i]);

        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        to[size++] = (uint8_t)(bits >> held);
        bits &= (1u << held) - 1;
    }
    *bytes = (struct idem_bytes){to, size};
    return bits == 0;
}

/* --- Parts --- */

static bool
take_part(struct idem_bytes *rest, struct idem_bytes *part)
{
    size_t size = 0;

    while (size < rest->size && value_of(rest->data[size]) >= 0)
        size++;
    *part = (struct idem_bytes){rest->data, size};
    *rest = (struct idem_bytes){rest->data + size, rest->size - size};
    return size > 0;
}

static bool
take_dot(struct idem_bytes *rest)
{
    if (rest->size == 0 || rest->data[0] != '.')
        return false;
    *rest = (struct idem_bytes){rest->data + 1, rest->size - 1};
    return true;
}

/* An empty signature is that of "alg": "none": its header is still read, so
 * that the refusal says what is wrong. */
bool
bearer_split(struct idem_bytes token, struct bearer_parts *parts)
{
    struct idem_bytes rest = token;

    parts->whole = token;
    if (!take_part(&rest, &parts->header) || !take_dot(&rest) ||
        !take_part(&rest, &parts->claims))
        return false;
    parts->signed_text =
        (struct idem_bytes){token.data, (size_t)(rest.data - token.data)};
    if (!take_dot(&rest))
        return false;
    (void)take_part(&rest, &parts->signature);
    return rest.size == 0;
}

/* --- JSON --- */

static enum idem_status
malformed(struct idem_error *err, const char *what)
{
    return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                            "the token's %s", what);
}

/* NULL: no object, or one with a member twice. */
static json_t *
load(struct idem_bytes part, struct idem_arena *arena)
{
    struct idem_bytes text;
    json_t *object;

    if (!bearer_decode(&text, part, arena))
        return NULL;
    object = json_loadb((const char *)text.data, text.size,
                        JSON_REJECT_DUPLICATES, NULL);
    if (object && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* False: out of memory. */
static bool
copy_string(struct idem_bytes *to, const json_t *string,
            struct idem_arena *arena)
{
    struct idem_bytes text = {(const uint8_t *)json_string_value(string),
                              json_string_length(string)};

    to->data = idem_arena_copy(arena, text);
    to->size = to->data ? text.size : 0;
    return to->data != NULL;
}

/* One that is not there stays empty. */
static bool
read_string(struct idem_bytes *to, const json_t *object, const char *name,
            struct idem_arena *arena)
{
    const json_t *value = json_object_get(object, name);

    return !value || (json_is_string(value) && copy_string(to, value, arena));
}

static bool
read_number(bool *has, double *to, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    *has = value != NULL;
    if (!value)
        return true;
    *to = json_number_value(value);
    return json_is_number(value);
}

/* --- The header --- */

static enum idem_status
read_algorithm(struct bearer_header *header, const json_t *object,
               struct idem_error *err)
{
    static const char *const names[] = {
        [BEARER_RS256] = "RS256",
        [BEARER_ES256] = "ES256",
        [BEARER_HS256] = "HS256",
    };
    const char *name = json_string_value(json_object_get(object, "alg"));

    for (unsigned i = BEARER_RS256; name && i <= BEARER_HS256; i++)
        if (strcmp(name, names[i]) == 0) {
            header->algorithm = (enum bearer_algorithm)i;
            return IDEM_OK;
        }
    return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_ALGORITHM,
                            "the token's algorithm is none of RS256, ES256 and "
                            "HS256");
}

enum idem_status
bearer_header_read(struct bearer_header *header, struct idem_bytes part,
                   struct idem_arena *arena, struct idem_error *err)
{
    json_t *object = load(part, arena);
    enum idem_status status;

    *header = (struct bearer_header){0};
    if (!object)
        return malformed(err, "header is no JSON object");
    status = read_algorithm(header, object, err);
    if (status == IDEM_OK && !read_string(&header->id, object, "kid", arena))
        status = malformed(err, "\"kid\" is no string");
    if (status == IDEM_OK && json_object_get(object, "crit"))
        status = malformed(err, "\"crit\" asks for what is not understood");
    json_decref(object);
    return status;
}

/* --- The claims --- */

/* A list of strings, or one string. False: neither, or too many. */
static bool
read_list(struct idem_bytes **list, unsigned *n, unsigned max,
          const json_t *value, struct idem_arena *arena)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;

    if (count > max)
        return false;
    *list = idem_arena_alloc(arena, (count + 1) * sizeof **list);
    if (!*list)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *item =
            json_is_array(value) ? json_array_get(value, i) : value;

        if (!json_is_string(item) || !copy_string(&(*list)[i], item, arena))
            return false;
        ++*n;
    }
    return true;
}

static bool
read_audiences(struct bearer_claims *claims, const json_t *object,
               struct idem_arena *arena)
{
    const json_t *value = json_object_get(object, "aud");

    return !value || read_list(&claims->audiences, &claims->n_audiences,
                               BEARER_AUDIENCES_MAX, value, arena);
}

/* "teller clerk", as OAuth's scope. */
static bool
split_roles(struct bearer_claims *claims, const json_t *value,
            struct idem_arena *arena)
{
    struct idem_bytes text, word;

    claims->roles =
        idem_arena_alloc(arena, IDEM_ROLES_MAX * sizeof *claims->roles);
    if (!claims->roles || !copy_string(&text, value, arena))
        return false;
    while (word_next(&text, &word)) {
        if (claims->n_roles == IDEM_ROLES_MAX)
            return false;
        claims->roles[claims->n_roles++] = word;
    }
    return true;
}

static bool
read_roles(struct bearer_claims *claims, const json_t *object, const char *name,
           struct idem_arena *arena)
{
    const json_t *value = json_object_get(object, name);

    if (!value)
        return true;
    if (json_is_string(value))
        return split_roles(claims, value, arena);
    return json_is_array(value) && read_list(&claims->roles, &claims->n_roles,
                                             IDEM_ROLES_MAX, value, arena);
}

enum idem_status
bearer_claims_read(struct bearer_claims *claims, struct idem_bytes part,
                   const char *roles_claim, struct idem_arena *arena,
                   struct idem_error *err)
{
    json_t *object = load(part, arena);
    const char *fault = NULL;

    *claims = (struct bearer_claims){0};
    if (!object)
        return malformed(err, "claims are no JSON object");
    if (!read_string(&claims->issuer, object, "iss", arena))
        fault = "\"iss\" is no string";
    else if (!read_string(&claims->subject, object, "sub", arena))
        fault = "\"sub\" is no string";
    else if (!read_audiences(claims, object, arena))
        fault = "\"aud\" is no string and no list of at most 16";
    else if (!read_number(&claims->has_expiry, &claims->expiry_s, object,
                          "exp"))
        fault = "\"exp\" is no number";
    else if (!read_number(&claims->has_begin, &claims->begin_s, object, "nbf"))
        fault = "\"nbf\" is no number";
    else if (!read_roles(claims, object, roles_claim, arena))
        fault = "roles are no string and no list of at most 64";
    json_decref(object);
    return fault ? malformed(err, fault) : IDEM_OK;
}
