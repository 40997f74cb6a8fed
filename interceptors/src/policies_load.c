#include "policies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)

/* From a file, a text or the environment to the present book. */

/* --- One config --- */

struct listening {
    struct policies *policies;
    const char *source;
    unsigned faults;
    char first[IDEM_MESSAGE_MAX];
};

static void
hear_fault(void *with, const char *line)
{
    struct listening *listening = with;

    if (listening->faults++ == 0)
        snprintf(listening->first, sizeof listening->first, "%s", line);
    policies_report(listening->policies, "%s: %s", listening->source, line);
}

static void
hear_note(void *with, const char *line)
{
    const struct listening *listening = with;

    policies_report(listening->policies, "%s: %s", listening->source, line);
}

static unsigned
attempts_max(const struct policies *policies)
{
    unsigned max = policies->options.max_attempts;

    return max >= 2 ? max : CONFIG_ATTEMPTS_DEFAULT;
}

static enum idem_status
parse(struct policies *policies, const char *source, const char *text,
      struct config **config, struct idem_error *err)
{
    struct listening listening = {.policies = policies, .source = source};
    const struct config_listener listener = {hear_fault, hear_note, &listening};

    *config =
        config_read(idem_bytes_of(text), attempts_max(policies), &listener);
    if (*config)
        return IDEM_OK;
    if (listening.faults > 1)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: %s (and %u more)",
                         source, listening.first, listening.faults - 1);
    return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: %s", source,
                     listening.first);
}

/* --- Files --- */

static enum idem_status
read_file(const char *path, char **text, struct idem_error *err)
{
    FILE *file = fopen(path, "re");
    char *bytes = malloc(FILE_MAX_BYTES + 1);
    enum idem_status status = IDEM_OK;
    size_t size;

    IDEM_ASSERT(bytes);
    if (!file) {
        free(bytes);
        return idem_fail(err, IDEM_NOT_FOUND, "%s: %s", path, strerror(errno));
    }
    size = fread(bytes, 1, FILE_MAX_BYTES + 1, file);
    bytes[size < FILE_MAX_BYTES ? size : FILE_MAX_BYTES] = 0;
    if (ferror(file))
        status =
            idem_fail(err, IDEM_NOT_FOUND, "%s: %s", path, strerror(errno));
    else if (size > FILE_MAX_BYTES)
        status = idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: is over %zu bytes",
                           path, FILE_MAX_BYTES);
    else if (strlen(bytes) < size)
        status =
            idem_fail(err, IDEM_INVALID_ARGUMENT,
                      "%s: byte %zu is 0, it is no text", path, strlen(bytes));
    fclose(file);
    if (status == IDEM_OK)
        *text = bytes;
    else
        free(bytes);
    return status;
}

const char *
policies_environment_path(const struct policies *policies)
{
    const char *stated = policies->environment;

    if (!stated || !stated[0] || stated[strspn(stated, " \t\r\n")] == '{')
        return NULL;
    return stated;
}

/* above: what its file has, if it names one. */
static enum idem_status
parse_environment(struct policies *policies, const char *above,
                  struct config **config, struct idem_error *err)
{
    const char *stated = policies->environment;

    *config = NULL;
    if (!stated || !stated[0])
        return IDEM_OK;
    if (above)
        return parse(policies, stated, above, config, err);
    return parse(policies, "IDEM_SERVICE_CONFIG", stated, config, err);
}

/* --- The book --- */

/* With loading held. */
static void
place_calls(struct policies *policies, const struct policy_book *book)
{
    const struct config *config = policy_book_balancing(book);
    enum idem_status status;

    if (!policies->channel)
        return;
    status = idem_channel_set_balancer(
        policies->channel, config ? config->balancer : policies->own, NULL);
    IDEM_ASSERT(status == IDEM_OK);
}

void
policies_join(struct idem_interceptor *self, struct idem_channel *channel)
{
    struct policies *policies = (struct policies *)self;

    pthread_mutex_lock(&policies->loading);
    policies->channel = channel;
    policies->own = idem_channel_balancer(channel);
    place_calls(policies, policies->book);
    pthread_mutex_unlock(&policies->loading);
}

static void
turn_to(struct policies *policies, struct policy_book *book)
{
    const struct config *throttle = policy_book_throttling(book);
    const struct config *budget = policy_book_budgeting(book);
    struct policy_book *before;

    throttle_set(&policies->throttle, throttle ? throttle->max_tokens_milli : 0,
                 throttle ? throttle->token_ratio_milli : 0);
    if (budget)
        budget_set(&policies->budget, budget->budget_milli,
                   budget->budget_floor, budget->budget_window_ms);
    else
        budget_open(&policies->budget);
    place_calls(policies, book);
    pthread_mutex_lock(&policies->lock);
    before = policies->book;
    policies->book = book;
    pthread_mutex_unlock(&policies->lock);
    policy_book_unref(before);
}

/* What the layers are read from. */
struct texts {
    const char *source; /* of the file's, for messages */
    char *file, *above; /* NULL: none */
};

static enum idem_status
load(struct policies *policies, const struct texts *texts,
     struct idem_error *err)
{
    struct config *file = NULL, *environment = NULL;
    struct policy_book *book;
    enum idem_status status = IDEM_OK;

    if (texts->file)
        status = parse(policies, texts->source, texts->file, &file, err);
    if (status == IDEM_OK)
        status = parse_environment(policies, texts->above, &environment, err);
    if (status != IDEM_OK) {
        config_free(file);
        return status;
    }
    book = policy_book_new(file, environment, attempts_max(policies),
                           policies->options.no_retries);
    status = policies_check(policies, book, err);
    if (status == IDEM_OK)
        turn_to(policies, book);
    else
        policy_book_unref(book);
    return status;
}

/* A copy of what was given when there is no file. */
static enum idem_status
read_texts(struct policies *policies, const char *json, struct texts *texts,
           struct idem_error *err)
{
    const char *above = policies_environment_path(policies);
    const char *given = json ? json : policies->text;
    enum idem_status status = IDEM_OK;

    *texts = (struct texts){.source = "config"};
    if (!json && policies->path) {
        texts->source = policies->path;
        status = read_file(policies->path, &texts->file, err);
    } else if (given) {
        texts->file = strdup(given);
        IDEM_ASSERT(texts->file);
    }
    if (status == IDEM_OK && above)
        status = read_file(above, &texts->above, err);
    if (status != IDEM_OK && policies->book)
        policies_report(policies, "%s; what was before holds", err->message);
    return status;
}

static bool
is_same(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

/* What was read last, also when it is not taken: it is told once. */
static void
keep_texts(struct policies *policies, struct texts *texts)
{
    free(policies->text);
    free(policies->above);
    policies->text = texts->file;
    policies->above = texts->above;
    texts->file = texts->above = NULL;
}

/* With loading held: what was read, if it is not what was read before. */
static enum idem_status
load_again(struct policies *policies, struct texts *texts, bool unchanged,
           struct idem_error *err)
{
    bool same = is_same(policies->text, texts->file);
    const char *source = policies->path && !same
                             ? policies->path
                             : policies_environment_path(policies);
    enum idem_status status;

    if (unchanged && same && is_same(policies->above, texts->above))
        return IDEM_OK;
    status = load(policies, texts, err);
    keep_texts(policies, texts);
    source = source ? source : policies->path;
    if (source)
        policies_report(policies,
                        status == IDEM_OK ? "%s: is taken%s"
                                          : "%s: is not taken; what was before "
                                            "holds: %s",
                        source, status == IDEM_OK ? "" : err->message);
    return status;
}

/* With loading held: a text that is given stays until the file changes, or for
 * good when there is none. */
static enum idem_status
load_given(struct policies *policies, struct texts *texts,
           struct idem_error *err)
{
    enum idem_status status = load(policies, texts, err);

    if (status == IDEM_OK && !policies->path)
        keep_texts(policies, texts);
    return status;
}

enum idem_status
policies_load(struct policies *policies, const char *json, bool unchanged,
              struct idem_error *err)
{
    struct policy_line *lines;
    struct idem_error local;
    struct texts texts;
    enum idem_status status;

    err = err ? err : &local;
    pthread_mutex_lock(&policies->loading);
    status = read_texts(policies, json, &texts, err);
    if (status == IDEM_OK && json)
        status = load_given(policies, &texts, err);
    else if (status == IDEM_OK)
        status = load_again(policies, &texts, unchanged, err);
    lines = policies_take_lines(policies);
    pthread_mutex_unlock(&policies->loading);
    policies_tell(policies, lines);
    free(texts.file);
    free(texts.above);
    return status;
}
