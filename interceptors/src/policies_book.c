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

void
policy_book_unref(struct policy_book *book)
{
    struct policy_page *page, *next;

    if (!book ||
        atomic_fetch_sub_explicit(&book->refs, 1, memory_order_acq_rel) != 1)
        return;
    HASH_ITER (hh, book->pages, page, next) {
        HASH_DEL(book->pages, page);
        free(page);
    }
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

const struct policy *
policy_book_find(struct policy_book *book, const struct idem_method *method)
{
    const struct policy_layers layers = policy_book_layers(book);
    struct policy_page *page;

    pthread_mutex_lock(&book->lock);
    HASH_FIND_PTR(book->pages, &method, page);
    if (!page) {
        page = calloc(1, sizeof *page);
        IDEM_ASSERT(page);
        page->method = method;
        policy_make(&page->policy, method, &layers);
        HASH_ADD_PTR(book->pages, method, page);
    }
    pthread_mutex_unlock(&book->lock);
    return &page->policy;
}
