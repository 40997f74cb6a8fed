#include "inbox.h"

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

static void
drop_skipped(struct inbox *inbox)
{
    size_t have = inbox->tail - inbox->head;
    size_t drop = inbox->skip < have ? (size_t)inbox->skip : have;

    inbox->head += drop;
    inbox->skip -= drop;
}

static void
fill(struct frame *frame, const struct frame_head *head, const uint8_t *bytes)
{
    *frame = (struct frame){
        .type = head->type,
        .flags = head->flags,
        .stream = head->stream,
        .header = {bytes + FRAME_HEAD, head->header},
        .payload = {bytes + FRAME_HEAD + head->header,
                    head->size - head->header},
    };
}

static enum inbox_next
take_big(struct inbox *inbox, struct frame *frame)
{
    struct frame_head head;

    if (inbox->big_at < inbox->big_size)
        return INBOX_MORE;
    if (!frame_head_read(inbox->big, &head))
        return INBOX_BROKEN;
    fill(frame, &head, inbox->big);
    inbox->big_given = true;
    return INBOX_FRAME;
}

/* The header of a frame whose message is over the limit: whoever it is for can
 * be told, and the connection stays in use. */
static enum inbox_next
take_oversize(struct inbox *inbox, const struct frame_head *head,
              struct frame *frame)
{
    size_t want = FRAME_HEAD + (size_t)head->header;

    if (inbox->tail - inbox->head < want)
        return want_more(inbox);
    fill(frame, head, inbox->chunk + inbox->head);
    frame->oversize = true;
    frame->payload.data = NULL;
    inbox->head += want;
    inbox->skip = frame->payload.size;
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
take_frame(struct inbox *inbox, const struct frame_head *head,
           struct frame *frame)
{
    size_t total = FRAME_HEAD + (size_t)head->size;

    if (inbox->tail - inbox->head < total)
        return total > INBOX_CHUNK ? begin_big(inbox, total) : want_more(inbox);
    fill(frame, head, inbox->chunk + inbox->head);
    inbox->head += total;
    return INBOX_FRAME;
}

enum inbox_next
inbox_next(struct inbox *inbox, struct frame *frame)
{
    struct frame_head head;

    if (inbox->big_given) {
        free(inbox->big);
        inbox->big = NULL;
        inbox->big_given = false;
    }
    if (inbox->big)
        return take_big(inbox, frame);
    drop_skipped(inbox);
    if (inbox->skip || inbox->tail - inbox->head < FRAME_HEAD)
        return want_more(inbox);
    if (!frame_head_read(inbox->chunk + inbox->head, &head))
        return INBOX_BROKEN;
    if (head.size - head.header > inbox->max_message)
        return take_oversize(inbox, &head, frame);
    return take_frame(inbox, &head, frame);
}

size_t
inbox_begun(const struct inbox *inbox)
{
    size_t have = inbox->tail - inbox->head;
    struct frame_head head;

    if (inbox->big && !inbox->big_given)
        return inbox->big_size;
    if (inbox->skip > 0)
        return (size_t)inbox->skip;
    if (have < FRAME_HEAD ||
        !frame_head_read(inbox->chunk + inbox->head, &head))
        return have;
    return FRAME_HEAD + (size_t)head.size;
}
