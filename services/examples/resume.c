/* A charge that survives its client:
 *
 *    resume ADDRESS FILE ACCOUNT AMOUNT
 *
 * takes AMOUNT from ACCOUNT once, however often it is started and killed. FILE
 * is the intent: key and request, on the disk before the first call. It goes
 * when the call is settled; until then the next start resumes it, whatever
 * ACCOUNT and AMOUNT that one is given.
 *
 * Exit code 0: charged; 1: settled, not charged; 75: start it again. */
#include "payments.idem.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <idem/key.h>
#include <idem/standard.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_AGAIN 75 /* EX_TEMPFAIL */
#define WINDOW_MS 86400000
#define ACCOUNT_MAX 63

struct intent {
    char key[IDEM_KEY_MAX + 1];
    char account[ACCOUNT_MAX + 1];
    int64_t amount;
};

/* False: there is none. */
static bool
intent_read(struct intent *intent, const char *path)
{
    FILE *file = fopen(path, "re");
    int fields;

    if (!file && errno == ENOENT)
        return false;
    if (!file)
        err(EXIT_AGAIN, "%s", path);
    fields = fscanf(file, "%255s %63s %" SCNd64, intent->key, intent->account,
                    &intent->amount);
    fclose(file);
    if (fields != 3)
        errx(EXIT_AGAIN, "%s: is not an intent", path);
    return true;
}

/* A name is on the disk when its folder is. */
static void
sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd =
        copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd < 0 || fsync(fd) < 0)
        err(EXIT_AGAIN, "the folder of %s", path);
    close(fd);
    free(copy);
}

/* All of it or nothing, and on the disk when it returns. */
static void
intent_write(const struct intent *intent, const char *path)
{
    char draft[4096];
    FILE *file;

    snprintf(draft, sizeof draft, "%s.draft", path);
    file = fopen(draft, "we");
    if (!file ||
        fprintf(file, "%s %s %" PRId64 "\n", intent->key, intent->account,
                intent->amount) < 0 ||
        fflush(file) != 0 || fsync(fileno(file)) < 0 || fclose(file) != 0 ||
        rename(draft, path) < 0)
        err(EXIT_AGAIN, "%s", draft);
    sync_folder(path);
}

static void
intent_make(struct intent *intent, const char *account, const char *amount)
{
    char *end;

    if (!account[0] || strlen(account) > ACCOUNT_MAX ||
        strpbrk(account, " \t\n"))
        errx(64, "an account has 1 to %d bytes, and no spaces: \"%s\"",
             ACCOUNT_MAX, account);
    errno = 0;
    intent->amount = strtoll(amount, &end, 10);
    if (errno || end == amount || *end)
        errx(64, "AMOUNT is a number: \"%s\"", amount);
    strcpy(intent->account, account);
    idem_key_mint(intent->key, idem_clock_system(), WINDOW_MS);
}

/* The key has its answer for good. Not when it is in doubt, nor when nothing
 * came of the call: the next start tries again. */
static bool
is_settled(const struct idem_outcome *outcome)
{
    return outcome->status == IDEM_OK || outcome->final;
}

static int
charge(struct idem_channel *channel, const struct intent *intent,
       const char *path)
{
    const struct idem_call_options options = {.key = intent->key,
                                              .timeout_ms = 60000};
    payments_charge_request request = PAYMENTS_CHARGE_REQUEST_INIT;
    payments_charge_reply *reply = NULL;
    struct idem_outcome outcome;

    request.account = intent->account;
    request.amount = intent->amount;
    if (payments_charge(channel, &request, &reply, &options, &outcome) ==
        IDEM_OK)
        printf("balance %" PRId64 ", entry %" PRId64 ", ", reply->balance,
               reply->entry);
    printf("%s %s %s %s\n", idem_status_name(outcome.status),
           idem_effect_name(outcome.effect), outcome.key, outcome.message);
    payments_charge_reply_free(reply);
    if (!is_settled(&outcome))
        return EXIT_AGAIN;
    if (unlink(path) < 0)
        err(EXIT_AGAIN, "%s", path);
    return outcome.status == IDEM_OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
    struct idem_channel *channel;
    struct intent intent;
    struct idem_error error;
    int code;

    if (argc != 5)
        errx(64, "resume ADDRESS FILE ACCOUNT AMOUNT");
    if (!intent_read(&intent, argv[2])) {
        intent_make(&intent, argv[3], argv[4]);
        intent_write(&intent, argv[2]);
    }
    if (idem_client_open(&channel, argv[1], NULL, &error))
        errx(64, "%s", error.message);
    code = charge(channel, &intent, argv[2]);
    idem_channel_close(channel);
    return code;
}
