#include "policies.h"

#include <string.h>

/* Is what the configs say right for the methods that are known? All are looked
 * at, so that all faults are told. */

static enum idem_status
check_method(struct policies *policies, struct policy_book *book,
             const struct idem_method *method, struct idem_error *err)
{
    const struct policy *policy = &policy_book_find(book, method)->policy;

    if (!policy->refused[0])
        return IDEM_OK;
    policies_report(policies, "%s", policy->refused);
    return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s", policy->refused);
}

static enum idem_status
check_services(struct policies *policies, struct policy_book *book,
               struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    for (size_t i = 0; i < policies->options.n_services; i++) {
        const struct idem_service *service = policies->options.services[i];

        for (unsigned j = 0; j < service->n_methods; j++)
            if (check_method(policies, book, &service->methods[j], err))
                status = IDEM_INVALID_ARGUMENT;
    }
    return status;
}

static bool
check_shelf(struct policies *policies, struct policy_book *book,
            const struct policy_page *page, struct idem_error *err)
{
    bool good = true;

    for (; page; page = page->next)
        if (check_method(policies, book, page->policy.method, err))
            good = false;
    return good;
}

/* Methods that were called already are checked as those that were named. */
static enum idem_status
check_called(struct policies *policies, struct policy_book *book,
             struct idem_error *err)
{
    struct policy_book *present = policies_book(policies);
    enum idem_status status = IDEM_OK;

    if (!present)
        return IDEM_OK;
    for (unsigned i = 0; i < POLICY_SHELVES; i++)
        if (!check_shelf(policies, book, atomic_load(&present->pages[i]), err))
            status = IDEM_INVALID_ARGUMENT;
    policy_book_unref(present);
    return status;
}

static bool
has_method(const struct idem_service *service, const char *method)
{
    size_t size = strlen(service->name);

    for (unsigned i = 0; i < service->n_methods; i++)
        if (strcmp(service->methods[i].name + size + 1, method) == 0)
            return true;
    return false;
}

/* A word that is misspelt would do nothing, and nobody would know. It is no
 * fault: the config may be for programs of a later day, too. */
static void
note_strangers(struct policies *policies, const struct config *config,
               const char *layer)
{
    for (unsigned i = 0; config && i < config->n_names; i++) {
        const struct config_name *name = &config->names[i];

        for (size_t j = 0; name->method[0] && j < policies->options.n_services;
             j++) {
            const struct idem_service *service = policies->options.services[j];

            if (strcmp(service->name, name->service) == 0 &&
                !has_method(service, name->method))
                policies_report(policies,
                                "%s: methodConfig[%u].name: %s has no method "
                                "%s",
                                layer, name->entry, name->service,
                                name->method);
        }
    }
}

enum idem_status
policies_check(struct policies *policies, struct policy_book *book,
               struct idem_error *err)
{
    enum idem_status status = check_services(policies, book, err);

    if (status == IDEM_OK)
        status = check_called(policies, book, err);
    if (status == IDEM_OK) {
        note_strangers(policies, book->file, "file");
        note_strangers(policies, book->environment, "environment");
    }
    return status;
}
