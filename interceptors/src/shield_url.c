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

/* "[user]:password", before the end. */
static bool
read_user(char user[128], char password[512], const char *text, const char *end)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));

    return colon &&
           decode(user, 128, (struct span){text, (size_t)(colon - text)}) &&
           decode(password, 512,
                  (struct span){colon + 1, (size_t)(end - colon - 1)});
}

/* A login and "@" in front of the rest, if it is there. */
static const char *
read_login(struct shield_url *url, const char *text)
{
    const char *at = strrchr(text, '@');

    if (!at)
        return text;
    return read_user(url->user, url->password, text, at) ? at + 1 : NULL;
}

/* "host", "host:port" or "[::1]:port", before the end. */
static bool
read_place(struct shield_place *place, const char *text, const char *end,
           const char *usual_port)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));
    struct span host = {text, (size_t)(end - text)};
    unsigned port = 1;

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
    strcpy(place->port, usual_port);
    if (colon && (!copy(place->port, sizeof(place->port),
                        (struct span){colon + 1, (size_t)(end - colon - 1)}) ||
                  !read_number(place->port, 65535, &port)))
        return false;
    return host.size > 0 && !memchr(host.at, ',', host.size) && port > 0 &&
           copy(place->host, sizeof(place->host), host);
}

/* Places between commas, before the end. */
static bool
read_places(struct shield_url *url, const char *text, const char *end,
            const char *usual_port)
{
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));

        if (url->n_hosts == SHIELD_HOSTS_MAX ||
            !read_place(&url->hosts[url->n_hosts], text, comma ? comma : end,
                        usual_port))
            return false;
        url->n_hosts++;
        if (!comma)
            return true;
        text = comma + 1;
    }
}

/* "", "/" or "/db". */
static bool
read_db(struct shield_url *url, const char *slash)
{
    return *slash == 0 || slash[1] == 0 ||
           read_number(slash + 1, DB_MAX, &url->db);
}

static bool
read_single(struct shield_url *url, const char *text)
{
    const char *slash = strchrnul(text, '/');

    url->n_hosts = 1;
    return read_place(&url->hosts[0], text, slash, "6379") &&
           read_db(url, slash);
}

static bool
read_masters(struct shield_url *url, const char *text)
{
    const char *slash = strchrnul(text, '/'), *end;

    if (*slash == 0 || !read_places(url, text, slash, "26379"))
        return false;
    end = strchrnul(slash + 1, '/');
    return end > slash + 1 &&
           copy(url->master, sizeof(url->master),
                (struct span){slash + 1, (size_t)(end - slash - 1)}) &&
           read_db(url, end);
}

static bool
read_sentinel(struct shield_url *url, const char *text)
{
    static const char name[] = "?sentinel=";
    const char *query = strchrnul(text, '?'), *login = query + strlen(name);
    char *front = strndup(text, (size_t)(query - text));
    bool read = front && read_masters(url, front);

    free(front);
    if (!read || *query == 0)
        return read;
    return strncmp(query, name, strlen(name)) == 0 &&
           read_user(url->sentinel_user, url->sentinel_password, login,
                     login + strlen(login));
}

static bool
read_cluster(struct shield_url *url, const char *text)
{
    return !strchr(text, '/') &&
           read_places(url, text, text + strlen(text), "6379");
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

static const struct form {
    const char *scheme, *rest;
    enum shield_kind kind;
    bool (*read)(struct shield_url *url, const char *text);
} forms[] = {
    {"redis://", "host[:port][/db]", SHIELD_SINGLE, read_single},
    {"unix://", "/path[?db=N]", SHIELD_SINGLE, read_unix},
    {"redis+sentinel://",
     "host[:port],…/master[/db][?sentinel=[user]:password]", SHIELD_SENTINEL,
     read_sentinel},
    {"redis+cluster://", "host[:port],…", SHIELD_CLUSTER, read_cluster},
};

static const struct form *
find_form(const char *text)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strncmp(text, forms[i].scheme, strlen(forms[i].scheme)) == 0)
            return &forms[i];
    return NULL;
}

enum idem_status
shield_url_parse(struct shield_url *url, const char *text,
                 struct idem_error *err)
{
    const struct form *form = find_form(text);
    struct shield_url read = {.db = 0};
    const char *rest;

    if (!form)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a Redis URL begins with redis://, unix://, "
                         "redis+sentinel:// or redis+cluster://");
    read.kind = form->kind;
    rest = read_login(&read, text + strlen(form->scheme));
    if (!rest)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "the login of the Redis URL is not [user]:password@");
    if (!form->read(&read, rest))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "\"%.*s\" is not %s, with up to %d hosts",
                         (int)(strchrnul(rest, '?') - rest), rest, form->rest,
                         SHIELD_HOSTS_MAX);
    *url = read;
    return IDEM_OK;
}
