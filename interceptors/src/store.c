#include <idem/store.h>

void
idem_store_free(struct idem_store *store)
{
    if (store)
        store->ops->free(store);
}
