#include "fuzz_talk.h"

#include "fuzz_peer.h"

#define WINDOW 512

static void
listen_to(struct fuzz_peer *peer, struct fuzz_steps *steps)
{
    struct frame frame;
    bool answered = false;

    while ((!answered || fuzz_steps_owed(steps)) &&
           fuzz_peer_next(peer, &frame)) {
        if (fuzz_is_pong(&frame))
            answered = true;
        else
            fuzz_steps_check(steps, &frame);
    }
}

void
fuzz_talk(struct idem_bytes input, const struct fuzz_kind *kinds,
          unsigned n_kinds)
{
    static uint8_t bytes[FUZZ_HELLO_MAX + FUZZ_STEPS_MAX + FUZZ_PING_MAX];
    size_t hello = fuzz_put_hello(bytes, WINDOW);
    struct fuzz_steps steps = {.input = input,
                               .client = true,
                               .kinds = kinds,
                               .n_kinds = n_kinds,
                               .window = WINDOW,
                               .first = 1,
                               .bytes = bytes + hello};
    struct fuzz_peer peer;

    fuzz_steps_write(&steps);
    steps.size += fuzz_put_ping(steps.bytes + steps.size);
    fuzz_peer_connect(&peer);
    (void)fuzz_peer_send(&peer, (struct idem_bytes){bytes, hello + steps.size});
    listen_to(&peer, &steps);
    fuzz_peer_close(&peer);
}
