#include "shield.h"

void
shield_looks_push(struct shield_looks *looks, struct idem_shield_look *look)
{
    look->next = NULL;
    *(looks->last ? looks->last : &looks->first) = look;
    looks->last = &look->next;
}

struct idem_shield_look *
shield_looks_pop(struct shield_looks *looks)
{
    struct idem_shield_look *look = looks->first;

    if (!look)
        return NULL;
    looks->first = look->next;
    if (!looks->first)
        looks->last = NULL;
    return look;
}

void
shield_fills_push(struct shield_fills *fills, struct shield_fill *fill)
{
    fill->next = NULL;
    *(fills->last ? fills->last : &fills->first) = fill;
    fills->last = &fill->next;
    fills->count++;
}

struct shield_fill *
shield_fills_pop(struct shield_fills *fills)
{
    struct shield_fill *fill = fills->first;

    if (!fill)
        return NULL;
    fills->first = fill->next;
    if (!fills->first)
        fills->last = NULL;
    fills->count--;
    return fill;
}
