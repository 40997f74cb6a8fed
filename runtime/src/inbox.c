#include "inbox.h"

#include "plain.h"

#include <stdlib.h>
#include <string.h>

bool
inbox_init(struct inbox *inbox, size_t max_message)
{
    *inbox = (struct inbox){.max_message = max_message};
    inbox->chunk = malloc(INBOX_CHUNK);
    return inbox->chunk;
}

void
inbox_fini(struct inbox *inbox)
{
    free(inbox->chunk);
    free(inbox->big);
}

uint8_t *
inbox_space(const struct inbox *inbox, size_t *size)
{
    if (inbox->big) {
        *size = inbox->big_size - inbox->big_at;
        return inbox->big + inbox->big_at;
    }
    *size = INBOX_CHUNK - inbox->tail;
    return inbox->chunk + inbox->tail;
}

void
inbox_filled(struct inbox *inbox, size_t size)
{
    if (inbox->big)
        inbox->big_at += size;
    else
        inbox->tail += size;
}

/* What is left of the chunk goes to its front, so that there is room. */
static enum inbox_next
want_more(struct inbox *inbox)
{
    size_t left = inbox->tail - inbox->head;

    if (inbox->head > 0 && left > 0)
        memmove(inbox->chunk, inbox->chunk + inbox->head, left);
    inbox->head = 0;
    inbox->tail = left;
    return INBOX_MORE;
}

enum inbox_next
inbox_preface(struct inbox *inbox)
{
    if (inbox->tail - inbox->head < FRAME_PREFACE)
        return INBOX_MORE;
    if (!frame_preface_check(inbox->chunk + inbox->head))
        return INBOX_BROKEN;
    inbox->head += FRAME_PREFACE;
    return INBOX_FRAME;
}

bool
inbox_preface_plain(struct inbox *inbox, bool local)
{
    if (!plain_preface_check(inbox->chunk + inbox->head))
        return false;
    inbox->head += FRAME_PREFACE;
    inbox->language = local ? INBOX_PLAIN_LOCAL : INBOX_PLAIN;
    return true;
}

static void
drop_skipped(struct inbox *inbox)
{
    size_t have = inbox->tail - inbox->head;
    size_t drop = inbox->skip < have ? (size_t)inbox->skip : have;

    inbox->head += drop;
    inbox->skip -= drop;
}

/* What the first bytes of a frame, or of a plain message, say. */
struct cut {
    size_t head;   /* bytes of them */
    uint64_t body; /* bytes that follow */
    size_t told;   /* of the body: enough for an oversize one to be told */
    bool oversize;
    struct frame_head frame;
};

static bool
is_local(const struct inbox *inbox)
{
    return inbox->language == INBOX_PLAIN_LOCAL;
}

static enum inbox_next
read_plain(const struct inbox *inbox, const uint8_t *bytes, size_t have,
           struct cut *cut)
{
    *cut = (struct cut){.head = plain_head_size(is_local(inbox))};
    if (have < cut->head)
        return INBOX_MORE;
    if (!plain_head_read(bytes, is_local(inbox), &cut->body))
        return INBOX_BROKEN;
    cut->told = cut->body < PLAIN_ROUTE_MAX ? cut->body : PLAIN_ROUTE_MAX;
    cut->oversize = inbox->max_message < INT64_MAX - PLAIN_BESIDE_MAX &&
                    cut->body > inbox->max_message + PLAIN_BESIDE_MAX;
    return INBOX_FRAME;
}

static enum inbox_next
read_cut(const struct inbox *inbox, const uint8_t *bytes, size_t have,
         struct cut *cut)
{
    struct frame_head *head = &cut->frame;

    if (inbox->language != INBOX_FRAMES)
        return read_plain(inbox, bytes, have, cut);
    *cut = (struct cut){.head = FRAME_HEAD};
    if (have < FRAME_HEAD)
        return INBOX_MORE;
    if (!frame_head_read(bytes, head))
        return INBOX_BROKEN;
    cut->body = head->size;
    cut->told = head->header;
    cut->oversize = head->size - head->header > inbox->max_message;
    return INBOX_FRAME;
}

static enum inbox_next
fill_plain(const struct inbox *inbox, struct idem_bytes body,
           struct frame *frame)
{
    if (!plain_call_read(body, frame))
        return INBOX_BROKEN;
    frame->oversize = frame->payload.size > inbox->max_message;
    return INBOX_FRAME;
}

/* bytes: all of it. */
static enum inbox_next
fill(const struct inbox *inbox, const struct cut *cut, const uint8_t *bytes,
     struct frame *frame)
{
    const struct frame_head *head = &cut->frame;

    bytes += cut->head;
    if (inbox->language != INBOX_FRAMES)
        return fill_plain(inbox, (struct idem_bytes){bytes, (size_t)cut->body},
                          frame);
    *frame = (struct frame){
        .type = head->type,
        .flags = head->flags,
        .stream = head->stream,
        .header = {bytes, head->header},
        .payload = {bytes + head->header, head->size - head->header},
    };
    return INBOX_FRAME;
}

static enum inbox_next
take_big(struct inbox *inbox, struct frame *frame)
{
    struct cut cut;

    if (inbox->big_at < inbox->big_size)
        return INBOX_MORE;
    inbox->big_given = true;
    if (read_cut(inbox, inbox->big, inbox->big_size, &cut) != INBOX_FRAME)
        return INBOX_BROKEN;
    return fill(inbox, &cut, inbox->big, frame);
}

/* Of one that is too large: whose it is. */
static bool
fill_told(const struct inbox *inbox, const struct cut *cut,
          const uint8_t *bytes, struct frame *frame)
{
    if (inbox->language == INBOX_FRAMES) {
        (void)fill(inbox, cut, bytes, frame);
    } else {
        *frame = (struct frame){.type = FRAME_OPEN,
                                .payload.size = (size_t)cut->body};
        if (!plain_route_read((struct idem_bytes){bytes + cut->head, cut->told},
                              &frame->route))
            return false;
    }
    frame->oversize = true;
    frame->payload.data = NULL;
    return true;
}

/* The header of a frame whose message is over the limit: whoever it is for can
 * be told, and the connection stays in use. */
static enum inbox_next
take_oversize(struct inbox *inbox, const struct cut *cut, struct frame *frame)
{
    size_t want = cut->head + cut->told;

    if (inbox->tail - inbox->head < want)
        return want_more(inbox);
    if (!fill_told(inbox, cut, inbox->chunk + inbox->head, frame))
        return INBOX_BROKEN;
    inbox->head += want;
    inbox->skip = cut->body - cut->told;
    return INBOX_FRAME;
}

static enum inbox_next
begin_big(struct inbox *inbox, size_t total)
{
    size_t have = inbox->tail - inbox->head;

    inbox->big = malloc(total);
    if (!inbox->big)
        return INBOX_BROKEN;
    memcpy(inbox->big, inbox->chunk + inbox->head, have);
    inbox->big_size = total;
    inbox->big_at = have;
    inbox->head = inbox->tail = 0;
    return INBOX_MORE;
}

static enum inbox_next
take_frame(struct inbox *inbox, const struct cut *cut, struct frame *frame)
{
    size_t total = cut->head + (size_t)cut->body;
    const uint8_t *bytes = inbox->chunk + inbox->head;

    if (inbox->tail - inbox->head < total)
        return total > INBOX_CHUNK ? begin_big(inbox, total) : want_more(inbox);
    inbox->head += total;
    return fill(inbox, cut, bytes, frame);
}

enum inbox_next
inbox_next(struct inbox *inbox, struct frame *frame)
{
    enum inbox_next next;
    struct cut cut;

    if (inbox->big_given) {
        free(inbox->big);
        inbox->big = NULL;
        inbox->big_given = false;
    }
    if (inbox->big)
        return take_big(inbox, frame);
    drop_skipped(inbox);
    if (inbox->skip)
        return want_more(inbox);
    next = read_cut(inbox, inbox->chunk + inbox->head,
                    inbox->tail - inbox->head, &cut);
    if (next == INBOX_MORE)
        return want_more(inbox);
    if (next == INBOX_BROKEN)
        return next;
    if (cut.oversize)
        return take_oversize(inbox, &cut, frame);
    return take_frame(inbox, &cut, frame);
}

size_t
inbox_begun(const struct inbox *inbox)
{
    size_t have = inbox->tail - inbox->head;
    struct cut cut;

    if (inbox->big && !inbox->big_given)
        return inbox->big_size;
    if (inbox->skip > 0)
        return (size_t)inbox->skip;
    if (read_cut(inbox, inbox->chunk + inbox->head, have, &cut) != INBOX_FRAME)
        return have;
    return cut.head + (size_t)cut.body;
}
