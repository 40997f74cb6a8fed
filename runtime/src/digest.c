/* A hash by EVP allocates and looks for engines, which costs three times what
 * it costs to hash a small message (decision 49). */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <idem/digest.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_SIZE sizeof(uint64_t) /* of a part */
#define PACKED_MAX ((size_t)512)

/* A thread's first hash needs no memory, those beside it do. */
struct idem_sha256 {
    SHA256_CTX context;
    bool taken, allocated;
};

static _Thread_local struct idem_sha256 first;

static struct idem_sha256 *
allocate(void)
{
    struct idem_sha256 *sha = malloc(sizeof(*sha));

    IDEM_ASSERT(sha);
    sha->allocated = true;
    return sha;
}

struct idem_sha256 *
idem_sha256_new(void)
{
    struct idem_sha256 *sha = first.taken ? allocate() : &first;
    bool ready = SHA256_Init(&sha->context) == 1;

    IDEM_ASSERT(ready);
    sha->taken = true;
    return sha;
}

void
idem_sha256_add(struct idem_sha256 *sha, const void *bytes, size_t size)
{
    bool added = SHA256_Update(&sha->context, bytes, size) == 1;

    IDEM_ASSERT(added);
}

void
idem_sha256_add_part(struct idem_sha256 *sha, struct idem_bytes part)
{
    uint64_t size = htole64(part.size);

    idem_sha256_add(sha, &size, PREFIX_SIZE);
    idem_sha256_add(sha, part.data, part.size);
}

void
idem_sha256_finish(struct idem_sha256 *sha, uint8_t hash[IDEM_SHA256_SIZE])
{
    bool done = SHA256_Final(hash, &sha->context) == 1;

    IDEM_ASSERT(done);
    sha->taken = false;
    if (sha->allocated)
        free(sha);
}

void
idem_sha256_of(struct idem_bytes bytes, uint8_t hash[IDEM_SHA256_SIZE])
{
    struct idem_sha256 *sha = idem_sha256_new();

    idem_sha256_add(sha, bytes.data, bytes.size);
    idem_sha256_finish(sha, hash);
}

static size_t
pack(uint8_t *packed, struct idem_bytes part)
{
    uint64_t size = htole64(part.size);

    memcpy(packed, &size, PREFIX_SIZE);
    if (part.size > 0)
        memcpy(packed + PREFIX_SIZE, part.data, part.size);
    return PREFIX_SIZE + part.size;
}

/* Small parts go together: each add costs more than some bytes. */
void
idem_sha256_of_parts(const struct idem_bytes *parts, size_t n,
                     uint8_t hash[IDEM_SHA256_SIZE])
{
    struct idem_sha256 *sha = idem_sha256_new();
    uint8_t packed[PACKED_MAX];
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        bool small = parts[i].size <= PACKED_MAX - PREFIX_SIZE;

        if (!small || at + PREFIX_SIZE + parts[i].size > PACKED_MAX) {
            idem_sha256_add(sha, packed, at);
            at = 0;
        }
        if (small)
            at += pack(packed + at, parts[i]);
        else
            idem_sha256_add_part(sha, parts[i]);
    }
    idem_sha256_add(sha, packed, at);
    idem_sha256_finish(sha, hash);
}

/* One half of RFC 2104: the hash of the padded key and some bytes. */
static void
hash_padded(const uint8_t key[SHA256_CBLOCK], uint8_t pad,
            struct idem_bytes bytes, uint8_t hash[IDEM_SHA256_SIZE])
{
    struct idem_sha256 *sha = idem_sha256_new();
    uint8_t block[SHA256_CBLOCK];

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = key[i] ^ pad;
    idem_sha256_add(sha, block, sizeof(block));
    idem_sha256_add(sha, bytes.data, bytes.size);
    idem_sha256_finish(sha, hash);
    OPENSSL_cleanse(block, sizeof(block));
}

void
idem_hmac_sha256(struct idem_bytes secret, struct idem_bytes bytes,
                 uint8_t tag[IDEM_SHA256_SIZE])
{
    uint8_t key[SHA256_CBLOCK] = {0}, inner[IDEM_SHA256_SIZE];

    if (secret.size > sizeof(key))
        idem_sha256_of(secret, key);
    else if (secret.size > 0)
        memcpy(key, secret.data, secret.size);
    hash_padded(key, 0x36, bytes, inner);
    hash_padded(key, 0x5c, (struct idem_bytes){inner, sizeof(inner)}, tag);
    OPENSSL_cleanse(key, sizeof(key));
}

bool
idem_digest_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}
