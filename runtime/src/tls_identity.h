#ifndef TLS_IDENTITY_H
#define TLS_IDENTITY_H

#include <idem/status.h>

#define TLS_IDENTITY_MAX 512 /* with its NUL */

struct x509_st; /* OpenSSL's X509 */

/* Who a certificate says it is: the first URI of its SAN, else the first DNS
 * name, else its CN; "" when none of them is printable ASCII and short enough.
 * A name with a NUL in it is no name (CVE-2009-2408). */
void tls_identity(char text[TLS_IDENTITY_MAX], const struct x509_st *x509);

#endif
