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
