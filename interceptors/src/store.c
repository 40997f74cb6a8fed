#include <idem/digest.h>
#include <idem/store.h>

void
idem_record_id_digest(struct idem_record_id *id)
{
    struct idem_sha256 *sha = idem_sha256_new();

    idem_sha256_add_part(sha, idem_bytes_of("idem1"));
    idem_sha256_add_part(sha, id->tenant);
    idem_sha256_add_part(sha, idem_bytes_of(id->scope));
    idem_sha256_add_part(sha, id->key.text);
    idem_sha256_finish(sha, id->digest);
}

void
idem_store_free(struct idem_store *store)
{
    if (store)
        store->ops->free(store);
}
