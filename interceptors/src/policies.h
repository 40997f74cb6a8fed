#ifndef POLICIES_H
#define POLICIES_H

#include "budget.h"
#include "policy.h"
#include "throttle.h"

#include <idem/call.h>
#include <idem/interceptor.h>
#include <idem/policy.h>
#include <idem/watch.h>

#include <stdatomic.h>

/* The client's policies: an interceptor that gives each call its own, from the
 * book of the time at which it began.
 *
 * policies.c        the interceptor
 * policies_book.c   one state of the configs, and the policies made of it
 * policies_load.c   files and texts into a book
 * policies_check.c  … if it suits the methods that are known
 * policies_watch.c  a file that changes is read again
 * policies_report.c what the program is told
 * policies_explain.c */

#define POLICY_SHELVES 64 /* a power of two */

/* The policies of one state of the configs. Counted: by the interceptor while
 * it is the present one, and by each call that began with it. */
struct policy_book {
    atomic_uint refs;
    struct config *file, *environment; /* NULL: none */
    unsigned attempts_max;             /* the program's … */
    bool no_retries;                   /* … likewise */
    pthread_mutex_t lock;              /* of who adds a page; reading needs
                                        * none: pages stay where they are */
    _Atomic(struct policy_page *) pages[POLICY_SHELVES]; /* by the method's
                                                          * address */
};

struct policy_page {
    struct policy_book *book;
    struct policy_page *next; /* on its shelf */
    struct policy policy;
};

/* Owns the configs. */
struct policy_book *policy_book_new(struct config *file,
                                    struct config *environment,
                                    unsigned attempts_max, bool no_retries);
struct policy_book *policy_book_ref(struct policy_book *book);
void policy_book_unref(struct policy_book *book);

/* Made when it is asked for first; lives as long as the book. */
struct policy_page *policy_book_find(struct policy_book *book,
                                     const struct idem_method *method);
struct policy_layers policy_book_layers(const struct policy_book *book);

/* Which of the configs says how calls are placed, and how many are repeated;
 * NULL: none does. */
const struct config *policy_book_balancing(const struct policy_book *book);
const struct config *policy_book_throttling(const struct policy_book *book);
const struct config *policy_book_budgeting(const struct policy_book *book);

struct policy_line;

struct policies {
    struct idem_interceptor base;
    char *path;                         /* of the file; NULL: none */
    struct idem_policy_options options; /* path and text are not kept here */
    struct throttle throttle;
    struct budget budget;
    struct idem_watch *watch; /* NULL: no file */

    pthread_mutex_t loading;      /* one load at a time; then lock */
    struct idem_channel *channel; /* whose chain it is in; NULL: none yet */
    enum idem_balancer own; /* the channel's, where no config says another */
    char *environment;      /* as it was when the channel was made; or NULL */
    char *text;  /* what the file had when it was last read, or what was given
                  * when there is none */
    char *above; /* the same of the file that the environment names */
    struct policy_line *lines, **last_line; /* said and not told yet */

    pthread_mutex_t lock; /* guards the present book */
    struct policy_book *book;
};

extern const struct idem_interceptor_ops policies_ops;

/* The policy that the call began with. */
const struct policy *policies_of(const struct policies *policies,
                                 const struct idem_call *call);

/* The present book, a reference. */
struct policy_book *policies_book(struct policies *policies);

/**
 * Take this text from now on; NULL reads the files. All is checked first.
 *
 * @param unchanged  true: files that have the text which they had are left
 */
enum idem_status policies_load(struct policies *policies, const char *json,
                               bool unchanged, struct idem_error *err);

/* The file that IDEM_SERVICE_CONFIG names; NULL: it has the text itself, or
 * nothing. */
const char *policies_environment_path(const struct policies *policies);

/* Does the book suit the methods that were given, and those that were called?
 * Names that are no method's are reported. */
enum idem_status policies_check(struct policies *policies,
                                struct policy_book *book,
                                struct idem_error *err);

/* It is in the channel's chain now. */
void policies_join(struct idem_interceptor *self, struct idem_channel *channel);

/* Say a line, with loading held. */
void policies_report(struct policies *policies, const char *format, ...)
    IDEM_PRINTF(2, 3);

/* With loading held: what was said. */
struct policy_line *policies_take_lines(struct policies *policies);

/* Without it: tell the program, and free them. */
void policies_tell(const struct policies *policies, struct policy_line *lines);

/* Read the files again whenever one of them changes. */
enum idem_status policy_watch_start(struct policies *policies,
                                    struct idem_error *err);
void policy_watch_stop(struct policies *policies);

#endif
