#include "frame.h"

#include <string.h>

static const uint8_t preface[FRAME_PREFACE] = {'I',           'D', 'E', 'M',
                                               FRAME_VERSION, 0,   0,   0};

static void
put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void
put_u32(uint8_t *at, uint32_t value)
{
    put_u16(at, (uint16_t)value);
    put_u16(at + 2, (uint16_t)(value >> 16));
}

static uint16_t
get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t
get_u32(const uint8_t *at)
{
    return get_u16(at) | (uint32_t)get_u16(at + 2) << 16;
}

void
frame_head_write(uint8_t bytes[FRAME_HEAD], const struct frame *frame)
{
    IDEM_ASSERT(frame->header.size <= FRAME_HEADER_MAX);
    IDEM_ASSERT(frame->payload.size <= UINT32_MAX - FRAME_HEADER_MAX);
    put_u32(bytes, (uint32_t)(frame->header.size + frame->payload.size));
    bytes[4] = frame->type;
    bytes[5] = frame->flags;
    put_u16(bytes + 6, (uint16_t)frame->header.size);
    put_u32(bytes + 8, frame->stream);
}

bool
frame_head_read(const uint8_t bytes[FRAME_HEAD], struct frame_head *head)
{
    head->size = get_u32(bytes);
    head->type = bytes[4];
    head->flags = bytes[5];
    head->header = get_u16(bytes + 6);
    head->stream = get_u32(bytes + 8);
    return head->header <= head->size && head->header <= FRAME_HEADER_MAX;
}

void
frame_preface_write(uint8_t bytes[FRAME_PREFACE])
{
    memcpy(bytes, preface, FRAME_PREFACE);
}

bool
frame_preface_check(const uint8_t bytes[FRAME_PREFACE])
{
    return memcmp(bytes, preface, FRAME_PREFACE) == 0;
}
