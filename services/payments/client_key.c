#include "client_key.h"

#include <stdio.h>
#include <string.h>

#include <idem/resolve.h>

#include "client_replies.h"

#define EXIT_USAGE 64

static void
show_opened(struct idem_bytes bytes)
{
    payments_open_account_reply *reply;

    if (payments_open_account_read_reply(bytes, &reply, NULL) != IDEM_OK)
        return;
    show_open_account(reply);
    payments_open_account_reply_free(reply);
}

static void
show_charged(struct idem_bytes bytes)
{
    payments_charge_reply *reply;

    if (payments_charge_read_reply(bytes, &reply, NULL) != IDEM_OK)
        return;
    show_charge(reply);
    payments_charge_reply_free(reply);
}

static void
show_transferred(struct idem_bytes bytes)
{
    payments_transfer_reply *reply;

    if (payments_transfer_read_reply(bytes, &reply, NULL) != IDEM_OK)
        return;
    show_transfer(reply);
    payments_transfer_reply_free(reply);
}

static void
show_paid_out(struct idem_bytes bytes)
{
    payments_payout_reply *reply;

    if (payments_payout_read_reply(bytes, &reply, NULL) != IDEM_OK)
        return;
    show_payout(reply);
    payments_payout_reply_free(reply);
}

/* The methods whose calls have a key. */
static const struct {
    const char *name;
    const struct idem_method *method;
    void (*show)(struct idem_bytes reply);
} methods[] = {
    {"open", &payments_open_account_method, show_opened},
    {"charge", &payments_charge_method, show_charged},
    {"transfer", &payments_transfer_method, show_transferred},
    {"payout", &payments_payout_method, show_paid_out},
};

static void
say(const struct idem_resolution *resolution,
    void (*show)(struct idem_bytes reply))
{
    printf("state     %s\nmeaning   %s\n",
           idem_resolved_name(resolution->state),
           idem_resolved_text(resolution->state));
    if (resolution->state == IDEM_RESOLVED_RUNNING && resolution->lease_ms > 0)
        printf("lease-ms  %lld\n", (long long)resolution->lease_ms);
    if (resolution->state != IDEM_RESOLVED_DONE)
        return;
    printf("status    %s\n", idem_status_name(resolution->status));
    if (resolution->status == IDEM_OK)
        show(resolution->reply);
    if (resolution->reason[0])
        printf("reason    %s\n", resolution->reason);
    if (resolution->message[0])
        printf("message   %s\n", resolution->message);
}

static int
ask(struct idem_channel *channel, const struct client_options *options,
    const struct idem_method *method, void (*show)(struct idem_bytes reply))
{
    struct idem_resolution resolution;
    struct idem_error err;
    enum idem_status status;

    if (strcmp(options->command, "abandon") == 0)
        status = idem_abandon(channel, method, options->key,
                              options->timeout_ms, &resolution, &err);
    else
        status = idem_resolve(channel, method, options->key,
                              options->timeout_ms, &resolution, &err);
    if (status == IDEM_OK) {
        say(&resolution, show);
        idem_resolution_fini(&resolution);
    } else {
        printf("status    %s\nmessage   %s\n", idem_status_name(status),
               err.message);
    }
    return (int)status;
}

bool
client_key_has(const char *command)
{
    return strcmp(command, "resolve") == 0 || strcmp(command, "abandon") == 0;
}

int
client_key_run(struct idem_channel *channel,
               const struct client_options *options)
{
    for (size_t i = 0; options->key && i < sizeof methods / sizeof *methods;
         i++)
        if (strcmp(options->method, methods[i].name) == 0)
            return ask(channel, options, methods[i].method, methods[i].show);
    fprintf(stderr,
            "payments: %s wants --key and --method open, charge, "
            "transfer or payout\n",
            options->command);
    return EXIT_USAGE;
}
