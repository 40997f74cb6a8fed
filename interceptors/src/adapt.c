#include "adapt.h"

#define FIRST 100
#define CUT_PART 10 /* of the limit, one */

void
adapt_init(struct adapt *adapt, unsigned least, unsigned most)
{
    *adapt = (struct adapt){
        .limit = most < FIRST ? most : FIRST,
        .least = least,
        .most = most,
        .cut_ns = INT64_MIN,
    };
    if (adapt->limit < least)
        adapt->limit = least;
}

static void
cut(struct adapt *adapt, int64_t now_ns)
{
    unsigned part = adapt->limit / CUT_PART;

    adapt->limit -= part > 0 ? part : 1;
    if (adapt->limit < adapt->least)
        adapt->limit = adapt->least;
    adapt->in_time = 0;
    adapt->cut_ns = now_ns;
}

void
adapt_done(struct adapt *adapt, int64_t began_ns, int64_t now_ns, bool late,
           unsigned in_use)
{
    if (late) {
        if (began_ns >= adapt->cut_ns)
            cut(adapt, now_ns);
        return;
    }
    if (in_use < adapt->limit / 2 || ++adapt->in_time < adapt->limit)
        return;
    adapt->in_time = 0;
    if (adapt->limit < adapt->most)
        adapt->limit++;
}
