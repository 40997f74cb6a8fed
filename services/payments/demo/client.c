#include "client.h"

#include <stdio.h>
#include <string.h>

#include <idem/standard.h>

#include "ask.h"

/* The second finger of a double click. */
struct finger {
    struct client *client;
    const struct plan_call *call;
    struct answer answer;
};

static void *
click_again(void *argument)
{
    struct finger *finger = argument;

    ask_until_final(finger->client->channel, finger->call,
                    finger->call->patience_ms, finger->client->tally,
                    &finger->answer);
    return NULL;
}

/* The same key twice at once, from two threads. */
static void
double_click(struct client *client, struct plan_call *call)
{
    struct finger finger = {.client = client, .call = call};
    pthread_t thread;
    bool twice = pthread_create(&thread, NULL, click_again, &finger) == 0;

    if (ask_until_final(client->channel, call, ASK_PATIENCE_MS, client->tally,
                        &call->answer))
        tally_settled(client->tally);
    if (!twice)
        return;
    pthread_join(thread, NULL);
    if (!answers_agree(&call->answer, &finger.answer))
        tally_differs(client->tally);
}

/* A duplicate of a call that was answered long ago. */
static void
repeat_late(struct client *client, const struct plan_call *call)
{
    struct answer answer;

    ask_until_final(client->channel, call, ASK_PATIENCE_MS, client->tally,
                    &answer);
    if (!answers_agree(&call->answer, &answer))
        tally_differs(client->tally);
}

static void
repeat_oldest(struct client *client)
{
    repeat_late(client, client->late[0]);
    client->n_late--;
    memmove(client->late, client->late + 1,
            client->n_late * sizeof *client->late);
}

static void *
run(void *argument)
{
    struct client *client = argument;
    struct plan *plan = client->plan;

    for (unsigned i = client->number; i < plan->n_calls; i += client->of) {
        double_click(client, &plan->calls[i]);
        if (client->n_late == CLIENT_LATE_MAX)
            repeat_oldest(client);
        client->late[client->n_late++] = &plan->calls[i];
    }
    while (client->n_late > 0)
        repeat_oldest(client);
    tally_finished(client->tally);
    return NULL;
}

bool
client_start(struct client *client, const char *server)
{
    const struct idem_channel_options options = {
        .connect_backoff_ms = 20,
        .connect_backoff_max_ms = 200,
    };
    struct idem_error err;

    if (idem_client_open(&client->channel, server, &options, &err) != IDEM_OK) {
        fprintf(stderr, "demo: client %u: %s\n", client->number, err.message);
        return false;
    }
    if (pthread_create(&client->thread, NULL, run, client) == 0)
        return true;
    fprintf(stderr, "demo: client %u: no thread\n", client->number);
    idem_channel_close(client->channel);
    return false;
}

void
client_join(struct client *client)
{
    pthread_join(client->thread, NULL);
    idem_channel_close(client->channel);
}
