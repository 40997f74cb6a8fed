#include <idem/digest.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <pthread.h>

/* Fetched once: OpenSSL 3 looks an algorithm up by name at each implicit use,
 * which costs more than to hash a small message. Lives as long as the process.
 */
static EVP_MD *sha256_md;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static uint32_t crc32c_table[256];
static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;

static void
fetch_sha256(void)
{
    sha256_md = EVP_MD_fetch(NULL, "SHA2-256", NULL);
    IDEM_ASSERT(sha256_md);
}

static const EVP_MD *
sha256(void)
{
    pthread_once(&sha256_once, fetch_sha256);
    return sha256_md;
}

static void
fill_crc32c_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78 & (0 - (crc & 1)));
        crc32c_table[byte] = crc;
    }
}

/* A struct idem_sha256 is never looked into: it is OpenSSL's context under our
 * name. */
static EVP_MD_CTX *
context_of(struct idem_sha256 *sha)
{
    return (EVP_MD_CTX *)sha;
}

struct idem_sha256 *
idem_sha256_new(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ready = context && EVP_DigestInit_ex(context, sha256(), NULL) == 1;

    IDEM_ASSERT(ready);
    return (struct idem_sha256 *)context;
}

void
idem_sha256_add(struct idem_sha256 *sha, const void *bytes, size_t size)
{
    bool added = EVP_DigestUpdate(context_of(sha), bytes, size) == 1;

    IDEM_ASSERT(added);
}

void
idem_sha256_add_part(struct idem_sha256 *sha, struct idem_bytes part)
{
    uint8_t size[8];

    for (unsigned i = 0; i < sizeof(size); i++)
        size[i] = (uint8_t)((uint64_t)part.size >> (8 * i));
    idem_sha256_add(sha, size, sizeof(size));
    idem_sha256_add(sha, part.data, part.size);
}

void
idem_sha256_finish(struct idem_sha256 *sha, uint8_t hash[IDEM_SHA256_SIZE])
{
    bool done = EVP_DigestFinal_ex(context_of(sha), hash, NULL) == 1;

    IDEM_ASSERT(done);
    EVP_MD_CTX_free(context_of(sha));
}

void
idem_sha256_of(struct idem_bytes bytes, uint8_t hash[IDEM_SHA256_SIZE])
{
    bool done =
        EVP_Digest(bytes.data, bytes.size, hash, NULL, sha256(), NULL) == 1;

    IDEM_ASSERT(done);
}

void
idem_hmac_sha256(struct idem_bytes secret, struct idem_bytes bytes,
                 uint8_t tag[IDEM_SHA256_SIZE])
{
    /* NULL would mean the key of before. */
    const void *key = secret.data ? (const void *)secret.data : "";

    IDEM_ASSERT(secret.size <= INT32_MAX);

    bool done = HMAC(sha256(), key, (int)secret.size, bytes.data, bytes.size,
                     tag, NULL) != NULL;

    IDEM_ASSERT(done);
}

bool
idem_digest_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}

uint32_t
idem_crc32c(struct idem_bytes bytes)
{
    uint32_t crc = UINT32_MAX;

    pthread_once(&crc32c_once, fill_crc32c_table);
    for (size_t i = 0; i < bytes.size; i++)
        crc = (crc >> 8) ^ crc32c_table[(crc ^ bytes.data[i]) & 0xFF];
    return ~crc;
}
