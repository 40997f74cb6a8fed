#include "policies.h"

#include <stdlib.h>

struct policy_book *
policy_book_new(struct config *file, struct config *environment,
                unsigned attempts_max, bool no_retries)
{
    struct policy_book *book = calloc(1, sizeof *book);

    IDEM_ASSERT(book);
    atomic_init(&book->refs, 1);
    book->file = file;
    book->environment = environment;
    book->attempts_max = attempts_max;
    book->no_retries = no_retries;
    pthread_mutex_init(&book->lock, NULL);
    return book;
}

struct policy_book *
policy_book_ref(struct policy_book *book)
{
    atomic_fetch_add_explicit(&book->refs, 1, memory_order_relaxed);
    return book;
}

static void
free_pages(struct policy_page *page)
{
    while (page) {
        struct policy_page *next = page->next;

        free(page);
        page = next;
    }
}

void
policy_book_unref(struct policy_book *book)
{
    if (!book ||
        atomic_fetch_sub_explicit(&book->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned i = 0; i < POLICY_SHELVES; i++)
        free_pages(atomic_load(&book->pages[i]));
    config_free(book->file);
    config_free(book->environment);
    pthread_mutex_destroy(&book->lock);
    free(book);
}

struct policy_layers
policy_book_layers(const struct policy_book *book)
{
    return (struct policy_layers){book->file, book->environment,
                                  book->attempts_max, book->no_retries};
}

const struct config *
policy_book_balancing(const struct policy_book *book)
{
    if (book->environment && book->environment->balancing[0])
        return book->environment;
    return book->file && book->file->balancing[0] ? book->file : NULL;
}

const struct config *
policy_book_throttling(const struct policy_book *book)
{
    if (book->environment && book->environment->max_tokens_milli)
        return book->environment;
    return book->file && book->file->max_tokens_milli ? book->file : NULL;
}

const struct config *
policy_book_budgeting(const struct policy_book *book)
{
    if (book->environment && book->environment->budget_milli)
        return book->environment;
    return book->file && book->file->budget_milli ? book->file : NULL;
}

static struct policy_page *
page_of(struct policy_page *page, const struct idem_method *method)
{
    while (page && page->policy.method != method)
        page = page->next;
    return page;
}

/* It was not there a moment ago. */
static struct policy_page *
add_page(struct policy_book *book, const struct idem_method *method,
         _Atomic(struct policy_page *) *shelf)
{
    const struct policy_layers layers = policy_book_layers(book);
    struct policy_page *page;

    pthread_mutex_lock(&book->lock);
    page = page_of(atomic_load(shelf), method);
    if (!page) {
        page = calloc(1, sizeof *page);
        IDEM_ASSERT(page);
        page->book = book;
        page->next = atomic_load(shelf);
        policy_make(&page->policy, method, &layers);
        atomic_store_explicit(shelf, page, memory_order_release);
    }
    pthread_mutex_unlock(&book->lock);
    return page;
}

struct policy_page *
policy_book_find(struct policy_book *book, const struct idem_method *method)
{
    _Atomic(struct policy_page *) *shelf =
        &book->pages[((uintptr_t)method >> 6) % POLICY_SHELVES];
    struct policy_page *page =
        page_of(atomic_load_explicit(shelf, memory_order_acquire), method);

    return page ? page : add_page(book, method, shelf);
}
