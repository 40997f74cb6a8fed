#include "store_postgres_busy.h"

bool
pg_busy_begin(struct pg_busy *busy, const uint8_t digest[32], unsigned *place)
{
    unsigned at = (unsigned)digest[0] << 8 | digest[1];
    uint64_t bit = UINT64_C(1) << (at % 64);

    if (busy->bits[at / 64] & bit)
        return false;
    busy->bits[at / 64] |= bit;
    *place = at;
    return true;
}

void
pg_busy_end(struct pg_busy *busy, unsigned place)
{
    busy->bits[place / 64] &= ~(UINT64_C(1) << (place % 64));
}
