#include "bearer_jwt_pem.h"

#include "word_lines.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <stdlib.h>
#include <string.h>

#define RSA_MIN_BITS 2048
#define RSA_MAX_BITS 8192
#define P256_BYTES 32

/* NULL: not written. */
static char *
write_pem(EVP_PKEY *key, size_t *size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text, *pem = NULL;

    if (bio && PEM_write_bio_PUBKEY(bio, key) == 1) {
        *size = (size_t)BIO_get_mem_data(bio, &text);
        pem = word_copy((struct idem_bytes){(const uint8_t *)text, *size});
    }
    BIO_free(bio);
    return pem;
}

/* Of the kind, with the parameters; NULL: OpenSSL does not take them. */
static EVP_PKEY *
make_key(const char *kind, OSSL_PARAM_BLD *build)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *key = NULL;

    if (!params || !context || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    return key;
}

static bool
is_sound(EVP_PKEY *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    bool sound = context && EVP_PKEY_public_check(context) == 1;

    EVP_PKEY_CTX_free(context);
    return sound;
}

/* Frees the key. */
static const char *
to_pem(EVP_PKEY *key, const char *fault, char **pem, size_t *size)
{
    *pem = key && is_sound(key) ? write_pem(key, size) : NULL;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return *pem ? NULL : fault;
}

static const char *
check_rsa(const BIGNUM *n, const BIGNUM *e)
{
    int bits = BN_num_bits(n);

    if (bits < RSA_MIN_BITS || bits > RSA_MAX_BITS)
        return "its n has under 2048 or over 8192 bits";
    if (!BN_is_odd(e) || BN_is_one(e))
        return "its e is even or 1";
    return NULL;
}

static EVP_PKEY *
rsa_of(const BIGNUM *n, const BIGNUM *e)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;

    if (build && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e))
        key = make_key("RSA", build);
    OSSL_PARAM_BLD_free(build);
    return key;
}

const char *
bearer_pem_of_rsa(struct idem_bytes n, struct idem_bytes e, char **pem,
                  size_t *size)
{
    BIGNUM *modulus, *exponent;
    const char *fault;

    if (n.size > RSA_MAX_BITS / 8 || e.size > RSA_MAX_BITS / 8)
        return "its n has under 2048 or over 8192 bits";
    modulus = BN_bin2bn(n.data, (int)n.size, NULL);
    exponent = BN_bin2bn(e.data, (int)e.size, NULL);
    IDEM_ASSERT(modulus && exponent);
    fault = check_rsa(modulus, exponent);
    if (!fault)
        fault = to_pem(rsa_of(modulus, exponent), "is no RSA key", pem, size);
    BN_free(modulus);
    BN_free(exponent);
    return fault;
}

const char *
bearer_pem_of_p256(struct idem_bytes x, struct idem_bytes y, char **pem,
                   size_t *size)
{
    uint8_t point[1 + 2 * P256_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    OSSL_PARAM_BLD *build;
    EVP_PKEY *key = NULL;

    if (x.size != P256_BYTES || y.size != P256_BYTES)
        return "its x or y has not 32 bytes";
    memcpy(point + 1, x.data, P256_BYTES);
    memcpy(point + 1 + P256_BYTES, y.data, P256_BYTES);
    build = OSSL_PARAM_BLD_new();
    if (build &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME,
                                        "P-256", 0) &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
                                         sizeof point))
        key = make_key("EC", build);
    OSSL_PARAM_BLD_free(build);
    return to_pem(key, "is no point of P-256", pem, size);
}
