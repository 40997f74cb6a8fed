#include "tls_identity.h"

#include <openssl/x509v3.h>

#include <string.h>

/* True: it is one, and copied. */
static bool
take(char text[TLS_IDENTITY_MAX], const ASN1_STRING *string)
{
    const unsigned char *data = ASN1_STRING_get0_data(string);
    int size = ASN1_STRING_length(string);

    if (size <= 0 || size >= TLS_IDENTITY_MAX)
        return false;
    for (int i = 0; i < size; i++)
        if (data[i] < 0x21 || data[i] > 0x7E)
            return false;
    memcpy(text, data, (size_t)size);
    text[size] = 0;
    return true;
}

static bool
take_name(char text[TLS_IDENTITY_MAX], const GENERAL_NAMES *names, int type)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == type && take(text, name->d.ia5))
            return true;
    }
    return false;
}

static void
take_common_name(char text[TLS_IDENTITY_MAX], const X509 *x509)
{
    const X509_NAME *subject = X509_get_subject_name(x509);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

    if (at >= 0)
        (void)take(text,
                   X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

void
tls_identity(char text[TLS_IDENTITY_MAX], const X509 *x509)
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);

    text[0] = 0;
    if (!names ||
        (!take_name(text, names, GEN_URI) && !take_name(text, names, GEN_DNS)))
        take_common_name(text, x509);
    GENERAL_NAMES_free(names);
}
