#include "signer.h"

#include "support.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P256_BYTES 32
#define SIGNATURE_MAX 1024

struct signer {
    EVP_PKEY *pair; /* NULL: a secret */
    unsigned char *secret;
    size_t secret_size;
};

static struct signer *
new_signer(void)
{
    struct signer *signer = calloc(1, sizeof *signer);

    assert_non_null(signer);
    return signer;
}

struct signer *
signer_rsa(unsigned bits)
{
    struct signer *signer = new_signer();

    signer->pair = EVP_RSA_gen(bits);
    assert_non_null(signer->pair);
    return signer;
}

struct signer *
signer_p256(void)
{
    struct signer *signer = new_signer();

    signer->pair = EVP_EC_gen("P-256");
    assert_non_null(signer->pair);
    return signer;
}

struct signer *
signer_secret(const void *secret, size_t size)
{
    struct signer *signer = new_signer();

    signer->secret = malloc(size + 1);
    assert_non_null(signer->secret);
    memcpy(signer->secret, secret, size);
    signer->secret_size = size;
    return signer;
}

void
signer_free(struct signer *signer)
{
    EVP_PKEY_free(signer->pair);
    free(signer->secret);
    free(signer);
}

/* --- base64url --- */

static char *
encode(const void *bytes, size_t size)
{
    char *text = malloc(4 * size / 3 + 8);
    int n;

    assert_non_null(text);
    n = EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
    while (n > 0 && text[n - 1] == '=')
        text[--n] = 0;
    for (char *at = text; *at; at++)
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    return text;
}

static char *
encode_number(const EVP_PKEY *pair, const char *name, int least)
{
    unsigned char bytes[1024];
    BIGNUM *number = NULL;
    char *text;
    int size;

    assert_int_equal(EVP_PKEY_get_bn_param(pair, name, &number), 1);
    size = BN_num_bytes(number);
    size = size < least ? least : size;
    assert_int_equal(BN_bn2binpad(number, bytes, size), size);
    text = encode(bytes, (size_t)size);
    BN_free(number);
    return text;
}

/* --- JWK --- */

static char *
jwk_of_pair(const struct signer *signer, const char *tail)
{
    bool rsa = EVP_PKEY_is_a(signer->pair, "RSA");
    int least = rsa ? 1 : P256_BYTES;
    char *one = encode_number(
        signer->pair, rsa ? OSSL_PKEY_PARAM_RSA_N : OSSL_PKEY_PARAM_EC_PUB_X,
        least);
    char *other = encode_number(
        signer->pair, rsa ? OSSL_PKEY_PARAM_RSA_E : OSSL_PKEY_PARAM_EC_PUB_Y,
        least);
    char *jwk;

    assert_true(asprintf(&jwk,
                         rsa ? "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}"
                             : "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\","
                               "\"y\":\"%s\"%s}",
                         one, other, tail) > 0);
    free(one);
    free(other);
    return jwk;
}

static char *
jwk_of_secret(const struct signer *signer, const char *tail)
{
    char *k = encode(signer->secret, signer->secret_size);
    char *jwk;

    assert_true(asprintf(&jwk, "{\"kty\":\"oct\",\"k\":\"%s\"%s}", k, tail) >
                0);
    free(k);
    return jwk;
}

char *
signer_jwk(const struct signer *signer, const char *kid, const char *more)
{
    char tail[512];

    snprintf(tail, sizeof tail, "%s%s%s%s", kid ? ",\"kid\":\"" : "",
             kid ? kid : "", kid ? "\"" : "", more ? more : "");
    return signer->pair ? jwk_of_pair(signer, tail)
                        : jwk_of_secret(signer, tail);
}

char *
signer_pem(const struct signer *signer)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text, *pem;
    long size;

    assert_int_equal(PEM_write_bio_PUBKEY(bio, signer->pair), 1);
    size = BIO_get_mem_data(bio, &text);
    pem = calloc(1, (size_t)size + 1);
    assert_non_null(pem);
    memcpy(pem, text, (size_t)size);
    BIO_free(bio);
    return pem;
}

/* --- Signing --- */

/* JWS has r and s side by side, each of 32 bytes (RFC 7518, 3.4). */
static size_t
flatten(unsigned char *signature, size_t size)
{
    const unsigned char *at = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)size);

    assert_non_null(pair);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, P256_BYTES);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + P256_BYTES, P256_BYTES);
    ECDSA_SIG_free(pair);
    return (size_t)2 * P256_BYTES;
}

static size_t
sign(const struct signer *signer, const char *text,
     unsigned char signature[SIGNATURE_MAX])
{
    size_t size = SIGNATURE_MAX;
    unsigned hmac_size;
    EVP_MD_CTX *context;

    if (!signer->pair) {
        HMAC(EVP_sha256(), signer->secret, (int)signer->secret_size,
             (const unsigned char *)text, strlen(text), signature, &hmac_size);
        return hmac_size;
    }
    context = EVP_MD_CTX_new();
    assert_int_equal(
        EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, signer->pair), 1);
    assert_int_equal(EVP_DigestSign(context, signature, &size,
                                    (const unsigned char *)text, strlen(text)),
                     1);
    EVP_MD_CTX_free(context);
    return EVP_PKEY_is_a(signer->pair, "RSA") ? size : flatten(signature, size);
}

char *
signer_unsigned(const char *header, const char *claims)
{
    char *one = encode(header, strlen(header));
    char *other = encode(claims, strlen(claims));
    char *token;

    assert_true(asprintf(&token, "%s.%s.", one, other) > 0);
    free(one);
    free(other);
    return token;
}

char *
signer_sign(const struct signer *signer, const char *header, const char *claims)
{
    unsigned char signature[SIGNATURE_MAX];
    char *text = signer_unsigned(header, claims), *encoded, *token;
    size_t size;

    text[strlen(text) - 1] = 0;
    size = sign(signer, text, signature);
    encoded = encode(signature, size);
    assert_true(asprintf(&token, "%s.%s", text, encoded) > 0);
    free(encoded);
    free(text);
    return token;
}
