#include <idem/digest.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <endian.h>
#include <pthread.h>
#include <string.h>

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

/* A thread's context that is in no hash: to make one costs more than to hash a
 * small message. */
static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;

static void
free_spare(void *context)
{
    EVP_MD_CTX_free(context);
}

static void
make_spare_key(void)
{
    int rc = pthread_key_create(&spare_key, free_spare);

    IDEM_ASSERT(rc == 0);
}

static EVP_MD_CTX *
take_spare(void)
{
    EVP_MD_CTX *context;

    pthread_once(&spare_once, make_spare_key);
    context = pthread_getspecific(spare_key);
    if (context)
        pthread_setspecific(spare_key, NULL);
    return context;
}

static void
give_spare(EVP_MD_CTX *context)
{
    if (pthread_getspecific(spare_key) ||
        pthread_setspecific(spare_key, context) != 0)
        EVP_MD_CTX_free(context);
}

struct idem_sha256 *
idem_sha256_new(void)
{
    EVP_MD_CTX *context = take_spare();
    bool ready;

    if (!context)
        context = EVP_MD_CTX_new();
    ready = context && EVP_DigestInit_ex(context, sha256(), NULL) == 1;
    IDEM_ASSERT(ready);
    return (struct idem_sha256 *)context;
}

void
idem_sha256_add(struct idem_sha256 *sha, const void *bytes, size_t size)
{
    bool added = EVP_DigestUpdate(context_of(sha), bytes, size) == 1;

    IDEM_ASSERT(added);
}

/* A small part goes with its size: each add costs more than some bytes. */
void
idem_sha256_add_part(struct idem_sha256 *sha, struct idem_bytes part)
{
    uint8_t head[128];
    uint64_t size = htole64(part.size);
    bool whole = part.size <= sizeof(head) - sizeof(size);

    memcpy(head, &size, sizeof(size));
    if (whole && part.size > 0)
        memcpy(head + sizeof(size), part.data, part.size);
    idem_sha256_add(sha, head, sizeof(size) + (whole ? part.size : 0));
    if (!whole)
        idem_sha256_add(sha, part.data, part.size);
}

void
idem_sha256_finish(struct idem_sha256 *sha, uint8_t hash[IDEM_SHA256_SIZE])
{
    bool done = EVP_DigestFinal_ex(context_of(sha), hash, NULL) == 1;

    IDEM_ASSERT(done);
    give_spare(context_of(sha));
}

void
idem_sha256_of(struct idem_bytes bytes, uint8_t hash[IDEM_SHA256_SIZE])
{
    struct idem_sha256 *sha = idem_sha256_new();

    idem_sha256_add(sha, bytes.data, bytes.size);
    idem_sha256_finish(sha, hash);
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
