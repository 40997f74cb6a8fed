#include "shield_topology.h"

#include <string.h>

/* CRC-16/XMODEM, four bits at a time. */
static unsigned
crc16(struct idem_bytes bytes)
{
    static const uint16_t table[16] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50A5, 0x60C6, 0x70E7,
        0x8108, 0x9129, 0xA14A, 0xB16B, 0xC18C, 0xD1AD, 0xE1CE, 0xF1EF};
    unsigned crc = 0;

    for (size_t i = 0; i < bytes.size; i++) {
        crc =
            (crc << 4 ^ table[(crc >> 12 ^ bytes.data[i] >> 4) & 15]) & 0xFFFF;
        crc = (crc << 4 ^ table[(crc >> 12 ^ bytes.data[i]) & 15]) & 0xFFFF;
    }
    return crc;
}

unsigned
shield_slot_of(struct idem_bytes key)
{
    const uint8_t *end = key.data + key.size;
    const uint8_t *open = memchr(key.data, '{', key.size), *close;

    close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    if (close && close > open + 1)
        key = (struct idem_bytes){open + 1, (size_t)(close - open - 1)};
    return crc16(key) % SHIELD_SLOTS;
}

/* --- Words --- */

/* What stands before the next such character, which is skipped with it. */
static struct idem_bytes
take_until(struct idem_bytes *rest, char end)
{
    const uint8_t *at =
        rest->size > 0 ? memchr(rest->data, end, rest->size) : NULL;
    struct idem_bytes word = {rest->data,
                              at ? (size_t)(at - rest->data) : rest->size};
    size_t taken = at ? word.size + 1 : word.size;

    rest->data = rest->data ? rest->data + taken : NULL;
    rest->size -= taken;
    if (word.size > 0 && word.data[word.size - 1] == '\r')
        word.size--;
    return word;
}

static bool
is_word(struct idem_bytes word, const char *text)
{
    return idem_bytes_equal(word, idem_bytes_of(text));
}

static bool
take_number(struct idem_bytes word, unsigned max, unsigned *number)
{
    *number = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return false;
        *number = *number * 10 + (word.data[i] - '0');
        if (*number > max)
            return false;
    }
    return word.size > 0;
}

static bool
copy(char *to, size_t room, struct idem_bytes from)
{
    if (from.size >= room || (from.size > 0 && memchr(from.data, 0, from.size)))
        return false;
    if (from.size > 0)
        memcpy(to, from.data, from.size);
    to[from.size] = 0;
    return true;
}

/* "host:port", of which an IPv6 host has colons, too; "…@busport" and what
 * follows is left out. */
static bool
read_place(struct shield_place *place, struct idem_bytes word, const char *here)
{
    struct idem_bytes at = take_until(&word, '@');
    size_t colon = at.size;
    unsigned port;

    while (colon > 0 && at.data[colon - 1] != ':')
        colon--;
    if (colon == 0 ||
        !take_number((struct idem_bytes){at.data + colon, at.size - colon},
                     65535, &port) ||
        port == 0)
        return false;
    if (!copy(place->host, sizeof(place->host),
              colon > 1 ? (struct idem_bytes){at.data, colon - 1}
                        : idem_bytes_of(here)))
        return false;
    return copy(place->port, sizeof(place->port),
                (struct idem_bytes){at.data + colon, at.size - colon}) &&
           place->host[0];
}

/* --- A cluster's nodes --- */

/* "myself,master" */
static bool
is_serving_master(struct idem_bytes flags)
{
    bool master = false;

    while (flags.size > 0) {
        struct idem_bytes flag = take_until(&flags, ',');

        if (is_word(flag, "fail") || is_word(flag, "noaddr"))
            return false;
        master = master || is_word(flag, "master");
    }
    return master;
}

/* "0-5460", "77"; "[93-<-…" is of a slot on its way and says nothing. */
static bool
read_range(struct idem_bytes word, unsigned *first, unsigned *last)
{
    struct idem_bytes from = take_until(&word, '-');

    if (!take_number(from, SHIELD_SLOTS - 1, first))
        return false;
    *last = *first;
    return word.size == 0 || take_number(word, SHIELD_SLOTS - 1, last);
}

static void
read_node(struct idem_bytes line, const char *here, shield_range_fn *range,
          void *with)
{
    struct shield_place place;
    struct idem_bytes address, flags;
    unsigned first, last;

    (void)take_until(&line, ' '); /* its id */
    address = take_until(&line, ' ');
    flags = take_until(&line, ' ');
    for (int i = 0; i < 5; i++) /* its master, ping, pong, epoch, link */
        (void)take_until(&line, ' ');
    if (!is_serving_master(flags) || !read_place(&place, address, here))
        return;
    while (line.size > 0)
        if (read_range(take_until(&line, ' '), &first, &last))
            range(with, &place, first, last);
}

void
shield_read_cluster(struct idem_bytes text, const char *here,
                    shield_range_fn *range, void *with)
{
    while (text.size > 0)
        read_node(take_until(&text, '\n'), here, range, with);
}

/* --- A Sentinel's masters --- */

/* "master0:name=…,status=ok,address=127.0.0.1:6379,…" */
static bool
read_master(struct shield_place *place, struct idem_bytes line,
            const char *name)
{
    bool named = false, placed = false;

    (void)take_until(&line, ':');
    while (line.size > 0) {
        struct idem_bytes value = take_until(&line, ',');
        struct idem_bytes field = take_until(&value, '=');

        if (is_word(field, "name"))
            named = is_word(value, name);
        else if (is_word(field, "address"))
            placed = read_place(place, value, "");
    }
    return named && placed;
}

bool
shield_read_master(struct shield_place *place, struct idem_bytes text,
                   const char *name)
{
    while (text.size > 0) {
        struct idem_bytes line = take_until(&text, '\n');

        if (line.size > 6 && memcmp(line.data, "master", 6) == 0 &&
            read_master(place, line, name))
            return true;
    }
    return false;
}

/* --- A redirection --- */

bool
shield_read_redirect(struct shield_redirect *redirect, struct idem_bytes text,
                     const char *here)
{
    struct idem_bytes kind = take_until(&text, ' ');
    unsigned slot;

    redirect->asking = is_word(kind, "ASK");
    return (redirect->asking || is_word(kind, "MOVED")) &&
           take_number(take_until(&text, ' '), SHIELD_SLOTS - 1, &slot) &&
           read_place(&redirect->place, text, here);
}
