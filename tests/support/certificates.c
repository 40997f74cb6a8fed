#include "certificates.h"

#include "support.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S (24 * 60 * 60)
#define DAYS 30

struct authority {
    EVP_PKEY *key;
    X509 *x509;
};

static void
add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static atomic_uint serial = 1; /* the next */

/* Not signed yet. */
static X509 *
draw_up(EVP_PKEY *key, const char *common_name, int valid_days)
{
    X509 *x509 = X509_new();
    long until_s = valid_days < 0
                       ? -DAY_S / 2
                       : (valid_days ? valid_days : DAYS) * (long)DAY_S;

    assert_non_null(x509);
    assert_int_equal(X509_set_version(x509, X509_VERSION_3), 1);
    ASN1_INTEGER_set(X509_get_serialNumber(x509),
                     (long)atomic_fetch_add(&serial, 1));
    X509_gmtime_adj(X509_getm_notBefore(x509), -DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(x509), until_s);
    assert_int_equal(X509_set_pubkey(x509, key), 1);
    if (common_name)
        assert_int_equal(X509_NAME_add_entry_by_txt(
                             X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                             (const unsigned char *)common_name, -1, -1, 0),
                         1);
    return x509;
}

struct authority *
authority_new(const char *name)
{
    struct authority *authority = calloc(1, sizeof *authority);

    assert_non_null(authority);
    authority->key = EVP_EC_gen("P-256");
    authority->x509 = draw_up(authority->key, name, 0);
    X509_set_issuer_name(authority->x509,
                         X509_get_subject_name(authority->x509));
    add_extension(authority->x509, authority->x509, NID_basic_constraints,
                  "critical,CA:TRUE");
    assert_true(X509_sign(authority->x509, authority->key, EVP_sha256()) > 0);
    return authority;
}

void
authority_free(struct authority *authority)
{
    EVP_PKEY_free(authority->key);
    X509_free(authority->x509);
    free(authority);
}

/* Beside the path, until it is whole. */
static FILE *
begin_file(const char *path, char *beside, size_t room)
{
    FILE *file;

    assert_true(snprintf(beside, room, "%s.new", path) < (int)room);
    file = fopen(beside, "we");
    assert_non_null(file);
    return file;
}

static void
end_file(FILE *file, const char *path, const char *beside)
{
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(beside, path), 0);
}

static void
write_x509(X509 *x509, const char *path)
{
    char beside[256];
    FILE *file = begin_file(path, beside, sizeof beside);

    assert_int_equal(PEM_write_X509(file, x509), 1);
    end_file(file, path, beside);
}

void
authority_write(const struct authority *authority, const char *path)
{
    write_x509(authority->x509, path);
}

static void
write_key(EVP_PKEY *key, const char *password, const char *path)
{
    char beside[256];
    FILE *file = begin_file(path, beside, sizeof beside);

    assert_int_equal(
        PEM_write_PrivateKey(file, key, password ? EVP_aes_256_cbc() : NULL,
                             (const unsigned char *)password,
                             password ? (int)strlen(password) : 0, NULL, NULL),
        1);
    end_file(file, path, beside);
}

void
authority_issue(const struct authority *authority,
                const struct certificate_order *order,
                const char *certificate_path, const char *key_path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = draw_up(key, order->common_name, order->valid_days);

    X509_set_issuer_name(x509, X509_get_subject_name(authority->x509));
    if (order->names)
        add_extension(x509, authority->x509, NID_subject_alt_name,
                      order->names);
    assert_true(X509_sign(x509, authority->key, EVP_sha256()) > 0);
    write_key(key, order->password, key_path);
    write_x509(x509, certificate_path);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void
add_revoked(X509_CRL *crl, long number)
{
    X509_REVOKED *revoked = X509_REVOKED_new();
    ASN1_INTEGER *of = ASN1_INTEGER_new();
    ASN1_TIME *when = X509_gmtime_adj(NULL, -DAY_S);

    ASN1_INTEGER_set(of, number);
    X509_REVOKED_set_serialNumber(revoked, of);
    X509_REVOKED_set_revocationDate(revoked, when);
    assert_int_equal(X509_CRL_add0_revoked(crl, revoked), 1);
    ASN1_INTEGER_free(of);
    ASN1_TIME_free(when);
}

void
authority_revoke(const struct authority *authority, unsigned last, bool over,
                 const char *path)
{
    ASN1_TIME *since = X509_gmtime_adj(NULL, -2 * DAY_S);
    ASN1_TIME *until = X509_gmtime_adj(NULL, over ? -DAY_S : DAY_S);
    X509_CRL *crl = X509_CRL_new();
    char beside[256];
    FILE *file = begin_file(path, beside, sizeof beside);

    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(authority->x509));
    X509_CRL_set1_lastUpdate(crl, since);
    X509_CRL_set1_nextUpdate(crl, until);
    for (unsigned i = 1; i <= last; i++)
        add_revoked(crl, (long)(atomic_load(&serial) - i));
    assert_true(X509_CRL_sign(crl, authority->key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509_CRL(file, crl), 1);
    end_file(file, path, beside);
    X509_CRL_free(crl);
    ASN1_TIME_free(since);
    ASN1_TIME_free(until);
}
