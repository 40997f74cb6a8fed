#include "io.h"

#include <string.h>

#define TLS "tls+"

static const struct io *const transports[] = {&io_socket, &io_nng, &io_inproc};

unsigned
io_skip(struct idem_bytes *parts, unsigned n, size_t written)
{
    unsigned whole = 0;

    while (whole < n && written >= parts[whole].size)
        written -= parts[whole++].size;
    n -= whole;
    memmove(parts, parts + whole, n * sizeof(parts[0]));
    if (n > 0) {
        parts[0].data += written;
        parts[0].size -= written;
    }
    return n;
}

static bool
has_scheme(const struct io *io, const char *scheme, size_t size)
{
    for (const char *at = io->schemes; *at;) {
        size_t word = strcspn(at, " ");

        if (word == size && memcmp(at, scheme, size) == 0)
            return true;
        at += word;
        at += strspn(at, " ");
    }
    return false;
}

enum idem_status
io_find(const char *address, const struct io **io, struct idem_error *err)
{
    const char *rest = address ? strstr(address, "://") : NULL;
    size_t size;

    if (!rest || !rest[3])
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "\"%s\" is no address: want scheme://place",
                         address ? address : "");
    if (strncmp(address, TLS, sizeof TLS - 1) == 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "%s needs TLS options, and there are none", address);
    size = (size_t)(rest - address);
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        if (has_scheme(transports[i], address, size)) {
            *io = transports[i];
            return IDEM_OK;
        }
    }
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "no transport \"%.*s\": there are %s %s %s", (int)size,
                     address, io_socket.schemes, io_nng.schemes,
                     io_inproc.schemes);
}
