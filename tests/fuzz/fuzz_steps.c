#include "fuzz_steps.h"

#include "arena.h"
#include "codec.h"
#include "fuzz.h"
#include "header.h"
#include "stream.h"

#include <idem/key.h>

#include <string.h>

#include "flow.idem.h"

#define BODY_MAX 4096

const struct fuzz_kind fuzz_flow_kinds[FUZZ_FLOW_KINDS] = {
    {FLOW_COUNT_METHOD, IDEM_STREAMS_SERVER},
    {FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT},
    {FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH},
    {FLOW_COUNT_ASYNC_METHOD, IDEM_STREAMS_SERVER},
    {FLOW_SUM_ASYNC_METHOD, IDEM_STREAMS_CLIENT},
    {FLOW_CHAT_ASYNC_METHOD, IDEM_STREAMS_BOTH},
};

/* --- Frames --- */

/* False: no room; the frame is left out. */
static bool
add(struct fuzz_steps *steps, const struct frame *frame)
{
    size_t size = FRAME_HEAD + frame->header.size + frame->payload.size;
    uint8_t *at = steps->bytes + steps->size;

    if (size > FUZZ_STEPS_MAX - steps->size)
        return false;
    frame_head_write(at, frame);
    at += FRAME_HEAD;
    if (frame->header.size > 0)
        memcpy(at, frame->header.data, frame->header.size);
    at += frame->header.size;
    if (frame->payload.size > 0)
        memcpy(at, frame->payload.data, frame->payload.size);
    steps->size += size;
    return true;
}

/* NULL: of a stream that there is not. */
static struct fuzz_account *
account_of(struct fuzz_steps *steps, uint32_t stream)
{
    if (stream < steps->first || stream - steps->first >= steps->opened)
        return NULL;
    return &steps->accounts[stream - steps->first];
}

/* --- Steps --- */

static struct idem_bytes
take(struct fuzz_steps *steps, size_t size)
{
    struct idem_bytes taken = steps->input;

    if (taken.size > size)
        taken.size = size;
    steps->input.data += taken.size;
    steps->input.size -= taken.size;
    return taken;
}

/* Where its messages have numbers: in the session of all of them. */
static void
number(struct fuzz_steps *steps, struct header_open *open, char *key,
       uint8_t how)
{
    struct fuzz_account *account = &steps->accounts[steps->opened];

    account->numbered = true;
    account->asks = open->streams & IDEM_STREAMS_SERVER;
    account->first = 1 + (how >> 6);
    idem_key_of_session(key, steps->session, (int64_t)account->first);
    open->key = idem_bytes_of(key);
    open->ack_below = how & 16 ? account->first : 0;
}

/* A stream of the kind that is next, or what is none of that kind. */
static void
open_next(struct fuzz_steps *steps, uint8_t how)
{
    const struct fuzz_kind *kind =
        &steps->kinds[steps->opened % steps->n_kinds];
    struct header_open open = {.method = idem_bytes_of(kind->method),
                               .streams = how & 1 ? how & 3 : kind->streams,
                               .has_timeout = how & 4,
                               .timeout_us = how & 8 ? 1000 : 10000000,
                               .resume_after = how & 16,
                               .plain_reply = how & 32};
    static const uint8_t count[] = {0x08, 0x14};
    char key[IDEM_KEY_MAX + 1];
    uint8_t header[512];
    struct frame frame = {.type = FRAME_OPEN,
                          .stream = steps->first + steps->opened,
                          .header = {header, 0}};

    if (steps->opened == FUZZ_STREAMS_MAX)
        return;
    if (open.streams & HEADER_EACH)
        number(steps, &open, key, how);
    if (!(open.streams & IDEM_STREAMS_CLIENT)) {
        frame.flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
        frame.payload = (struct idem_bytes){count, sizeof count};
    }
    frame.header.size = header_open_write(header, sizeof header, &open, NULL);
    if (add(steps, &frame))
        steps->accounts[steps->opened++].given = steps->window;
}

/* Where messages have numbers one may acknowledge those before it. */
static void
acknowledge(const struct fuzz_account *account, uint8_t how,
            struct frame *frame, uint8_t *header, size_t room)
{
    const struct header_message said = {
        .ack_below = how & 4     ? account->first + account->n_sent
                     : how & 128 ? how >> 4
                                 : 0};

    frame->header.data = header;
    frame->header.size = header_message_write(header, room, &said);
}

/* A mark, of the how's size. */
static void
mark(uint8_t how, struct frame *frame, uint8_t *header, size_t room)
{
    static const uint8_t text[16];
    const struct header_message said = {.token = {text, how >> 4}};

    frame->header.data = header;
    frame->header.size = header_message_write(header, room, &said);
}

/* A note with so many bytes, of letters; or an entry, where messages have
 * numbers.
 */
static struct idem_bytes
note_of(size_t body, bool entry)
{
    static uint8_t note[BODY_MAX + 5] = {0x08, 0x07};

    if (!note[5])
        memset(note + 5, 'w', BODY_MAX);
    note[2] = entry ? 0x1a : 0x12;
    note[3] = (uint8_t)(0x80 | (body & 0x7f));
    note[4] = (uint8_t)(body >> 7);
    return (struct idem_bytes){note, 5 + body};
}

static struct idem_bytes
squeezed_note(void)
{
    static const struct idem_compression zstd = {.codec = IDEM_CODEC_ZSTD};
    static uint8_t bytes[BODY_MAX];
    static size_t size;
    struct idem_arena *arena;
    struct idem_bytes squeezed;

    if (size == 0) {
        arena = arena_new(BODY_MAX, 0);
        IDEM_ASSERT(arena);
        IDEM_ASSERT(
            codec_squeeze(&squeezed, &zstd, note_of(BODY_MAX, false), arena));
        size = squeezed.size;
        memcpy(bytes, squeezed.data, size);
        arena_free(arena);
    }
    return (struct idem_bytes){bytes, size};
}

static void
message(struct fuzz_steps *steps, uint32_t stream, uint8_t how)
{
    struct fuzz_account *account = account_of(steps, stream);
    struct frame frame = {
        .type = FRAME_MESSAGE, .flags = FRAME_FLAG_MESSAGE, .stream = stream};
    uint8_t header[32];

    if (steps->client && account && account->numbered)
        acknowledge(account, how, &frame, header, sizeof header);
    if (steps->marks)
        mark(fuzz_take_byte(&steps->input), &frame, header, sizeof header);
    switch (how & 3) {
    case 0:
        frame.payload = note_of((size_t)(how >> 2) * 32,
                                steps->client && account && account->numbered);
        break;
    case 1:
        frame.payload = take(steps, how >> 2);
        break;
    case 2:
        frame.flags |= FRAME_FLAG_SQUEEZED;
        frame.payload = squeezed_note();
        break;
    default:
        frame.flags |= FRAME_FLAG_SQUEEZED;
        frame.payload = take(steps, how >> 2);
        break;
    }
    if (!add(steps, &frame) || !account)
        return;
    account->sent += (int64_t)frame.payload.size + STREAM_COST;
    account->n_sent++;
}

/* Any flags, without a message. */
static void
flags_only(struct fuzz_steps *steps, uint32_t stream, uint8_t flags)
{
    struct fuzz_account *account = account_of(steps, stream);

    if (add(steps, &(struct frame){.type = FRAME_MESSAGE,
                                   .flags = flags & ~FRAME_FLAG_MESSAGE,
                                   .stream = stream}) &&
        account)
        account->ended |= flags & FRAME_FLAG_LAST;
}

static void
window(struct fuzz_steps *steps, uint32_t stream, uint8_t how)
{
    struct fuzz_account *account = account_of(steps, stream);
    const struct header_window window = {
        .credit = how & 128 ? 1U << (how & 31) : how * 64U,
        .watermark = steps->marks ? fuzz_take_byte(&steps->input) : 0};
    uint8_t header[16];
    struct frame frame = {
        .type = FRAME_WINDOW, .stream = stream, .header = {header, 0}};

    frame.header.size = header_window_write(header, sizeof header, &window);
    if (add(steps, &frame) && account)
        account->given += window.credit;
}

static void
end(struct fuzz_steps *steps, uint32_t stream, uint8_t how)
{
    const struct header_end end = {
        .status = how & 15,
        .effect = how >> 4,
        .watermark = steps->marks ? fuzz_take_byte(&steps->input) : 0};
    uint8_t header[64];
    struct frame frame = {.type = FRAME_END,
                          .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
                          .stream = stream,
                          .header = {header, 0},
                          .payload = take(steps, how & 7)};

    frame.header.size = header_end_write(header, sizeof header, &end, NULL);
    (void)add(steps, &frame);
}

static void
go_away(struct fuzz_steps *steps, uint8_t how)
{
    const struct header_goaway goaway = {steps->first + how % 4,
                                         idem_bytes_of("drain")};
    uint8_t header[32];
    struct frame frame = {.type = FRAME_GOAWAY, .header = {header, 0}};

    frame.header.size = header_goaway_write(header, sizeof header, &goaway);
    (void)add(steps, &frame);
}

static void
give_up(struct fuzz_steps *steps, uint32_t stream, uint8_t how)
{
    struct fuzz_account *account = account_of(steps, stream);

    if (add(steps,
            &(struct frame){.type = how & 1 ? FRAME_CANCEL : FRAME_DETACH,
                            .stream = stream}) &&
        account)
        account->left = true;
}

static uint32_t
pick(const struct fuzz_steps *steps, uint8_t what)
{
    unsigned number = what >> 3;

    /* One that was never opened, nor is when streams go on at another. */
    if (steps->opened == 0 || number == 31)
        return steps->first + steps->opened +
               (steps->marks ? FUZZ_STREAMS_MAX : 0);
    return steps->first + number % steps->opened;
}

static void
step(struct fuzz_steps *steps, uint8_t what, uint8_t how)
{
    uint32_t stream = pick(steps, what);

    switch (what & 7) {
    case 0:
        if (steps->client)
            open_next(steps, how);
        else
            go_away(steps, how);
        break;
    case 4:
        window(steps, stream, how);
        break;
    case 5:
        flags_only(steps, stream, how & 1 ? FRAME_FLAG_LAST : how);
        break;
    case 6:
        if (steps->client)
            give_up(steps, stream, how);
        else
            end(steps, stream, how);
        break;
    default:
        message(steps, stream, how);
        break;
    }
}

void
fuzz_steps_write(struct fuzz_steps *steps)
{
    idem_session_mint(steps->session, idem_clock_system(), 0, 60000);
    while (steps->input.size > 0) {
        uint8_t what = fuzz_take_byte(&steps->input);

        step(steps, what, fuzz_take_byte(&steps->input));
    }
}

/* --- What comes --- */

/* Of a client: no more than its own number. */
static void
check_ack(const struct fuzz_account *account, const struct frame *came)
{
    struct header_message said;

    IDEM_ASSERT(header_message_read(came->header, &said));
    IDEM_ASSERT(said.ack_below <= account->first + account->n_came);
}

static void
check_message(struct fuzz_steps *steps, struct fuzz_account *account,
              const struct frame *came)
{
    IDEM_ASSERT(!account->last && !account->over);
    IDEM_ASSERT(came->flags & (FRAME_FLAG_MESSAGE | FRAME_FLAG_LAST));
    /* A server ends with END. */
    IDEM_ASSERT(!steps->client || !(came->flags & FRAME_FLAG_LAST));
    account->last = came->flags & FRAME_FLAG_LAST;
    if (!(came->flags & FRAME_FLAG_MESSAGE))
        return;
    IDEM_ASSERT(account->came < account->given);
    if (!steps->client && account->numbered)
        check_ack(account, came);
    account->n_came++;
    IDEM_ASSERT(!steps->client || !account->asks ||
                account->n_came <= account->n_sent);
    account->came += (int64_t)came->payload.size + STREAM_COST;
}

static void
check_watermark(const struct fuzz_account *account, uint64_t watermark)
{
    uint64_t most = account->asks ? account->n_came : account->n_sent;

    if (watermark == 0)
        return;
    IDEM_ASSERT(account->numbered);
    IDEM_ASSERT(watermark < account->first + most);
}

static void
check_window(struct fuzz_account *account, const struct frame *came)
{
    struct header_window window;

    IDEM_ASSERT(!account->over);
    IDEM_ASSERT(header_window_read(came->header, &window));
    check_watermark(account, window.watermark);
    account->won += window.credit;
    IDEM_ASSERT(account->won <= account->sent);
}

static void
check_end(struct fuzz_account *account, const struct frame *came)
{
    struct header_end end;

    IDEM_ASSERT(!account->over);
    IDEM_ASSERT(header_end_read(came->header, &end));
    IDEM_ASSERT(end.effect != IDEM_EFFECT_NOT_SENT);
    check_watermark(account, end.watermark);
    account->over = true;
}

void
fuzz_steps_check(struct fuzz_steps *steps, const struct frame *came)
{
    struct fuzz_account *account = account_of(steps, came->stream);

    if (!account)
        return;
    switch (came->type) {
    case FRAME_MESSAGE:
        check_message(steps, account, came);
        break;
    case FRAME_WINDOW:
        check_window(account, came);
        break;
    case FRAME_END:
        IDEM_ASSERT(steps->client);
        check_end(account, came);
        break;
    case FRAME_CANCEL:
    case FRAME_DETACH:
        IDEM_ASSERT(!steps->client && !account->over);
        account->over = true;
        break;
    default:
        break;
    }
}

bool
fuzz_steps_owed(const struct fuzz_steps *steps)
{
    for (uint32_t i = 0; i < steps->opened; i++) {
        const struct fuzz_account *account = &steps->accounts[i];

        if (account->numbered && !account->asks && account->ended &&
            !account->left && !account->over)
            return true;
    }
    return false;
}
