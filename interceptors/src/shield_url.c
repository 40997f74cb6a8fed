#include "shield_url.h"

#include <stdlib.h>
#include <string.h>

#define DB_MAX 65535

/* A piece of the text. */
struct span {
    const char *at;
    size_t size;
};

static bool
copy(char *to, size_t room, struct span from)
{
    if (from.size >= room)
        return false;
    memcpy(to, from.at, from.size);
    to[from.size] = 0;
    return true;
}

static int
hex_digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at;

    at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

static bool
decode(char *to, size_t room, struct span from)
{
    size_t size = 0;

    for (size_t i = 0; i < from.size; i++) {
        int c = (unsigned char)from.at[i];

        if (c == '%') {
            if (i + 2 >= from.size || hex_digit(from.at[i + 1]) < 0 ||
                hex_digit(from.at[i + 2]) < 0)
                return false;
            c = hex_digit(from.at[i + 1]) * 16 + hex_digit(from.at[i + 2]);
            i += 2;
        }
        if (c == 0 || size + 1 >= room)
            return false;
        to[size++] = (char)c;
    }
    to[size] = 0;
    return true;
}

/* Decimal digits only, to the end. */
static bool
read_number(const char *text, unsigned max, unsigned *number)
{
    char *end;
    unsigned long value;

    if (*text < '0' || *text > '9')
        return false;
    value = strtoul(text, &end, 10);
    if (*end || value > max)
        return false;
    *number = (unsigned)value;
    return true;
}

/* "[user]:password@" in front of the rest, if it is there. */
static const char *
read_login(struct shield_url *url, const char *text)
{
    const char *at = strrchr(text, '@'), *colon;

    if (!at)
        return text;
    colon = memchr(text, ':', (size_t)(at - text));
    if (!colon ||
        !decode(url->user, sizeof(url->user),
                (struct span){text, (size_t)(colon - text)}) ||
        !decode(url->password, sizeof(url->password),
                (struct span){colon + 1, (size_t)(at - colon - 1)}))
        return NULL;
    return at + 1;
}

/* "host", "host:port" or "[::1]:port", before the end. */
static bool
read_host(struct shield_url *url, const char *text, const char *end)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));
    struct span host = {text, (size_t)(end - text)};
    unsigned port = 6379;

    if (*text == '[') {
        const char *close = memchr(text, ']', host.size);

        if (!close)
            return false;
        host = (struct span){text + 1, (size_t)(close - text - 1)};
        colon = close[1] == ':' ? close + 1 : NULL;
        if (!colon && close + 1 != end)
            return false;
    } else if (colon) {
        host.size = (size_t)(colon - text);
    }
    strcpy(url->port, "6379");
    if (colon && (!copy(url->port, sizeof(url->port),
                        (struct span){colon + 1, (size_t)(end - colon - 1)}) ||
                  !read_number(url->port, 65535, &port)))
        return false;
    return host.size > 0 && port > 0 &&
           copy(url->host, sizeof(url->host), host);
}

static bool
read_tcp(struct shield_url *url, const char *text)
{
    const char *slash = strchrnul(text, '/');

    if (!read_host(url, text, slash))
        return false;
    return *slash == 0 || slash[1] == 0 ||
           read_number(slash + 1, DB_MAX, &url->db);
}

static bool
read_unix(struct shield_url *url, const char *text)
{
    const char *query = strchrnul(text, '?');

    if (*text != '/' || !copy(url->path, sizeof(url->path),
                              (struct span){text, (size_t)(query - text)}))
        return false;
    return *query == 0 || (strncmp(query, "?db=", 4) == 0 &&
                           read_number(query + 4, DB_MAX, &url->db));
}

enum idem_status
shield_url_parse(struct shield_url *url, const char *text,
                 struct idem_error *err)
{
    struct shield_url read = {.db = 0};
    bool tcp = strncmp(text, "redis://", 8) == 0;
    const char *rest;

    if (!tcp && strncmp(text, "unix://", 7) != 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a Redis URL begins with redis:// or unix://");
    rest = read_login(&read, text + (tcp ? 8 : 7));
    if (!rest)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "the login of the Redis URL is not [user]:password@");
    if (!(tcp ? read_tcp(&read, rest) : read_unix(&read, rest)))
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "\"%s\" is not %s", rest,
                         tcp ? "host[:port][/db]" : "/path[?db=N]");
    *url = read;
    return IDEM_OK;
}
