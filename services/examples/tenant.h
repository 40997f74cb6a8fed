#ifndef TENANT_H
#define TENANT_H

#include <idem/interceptor.h>

/* Whose call it is, by a header: an example of an interceptor on each side. The
 * header is believed, so both sides must be within one house; who lets in
 * strangers asks for a token. */
#define TENANT_HEADER "tenant"

/* For a channel: says this name with every attempt. Copied. NULL: out of
 * memory. */
struct idem_interceptor *tenant_header_new(const char *name);

/* For a server: takes the name as the caller's identity, to which all keys
 * belong. A call without one is turned away. NULL: out of memory. */
struct idem_interceptor *tenant_from_header_new(void);

#endif
