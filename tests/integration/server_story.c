#include "server_story.h"

struct header_open
open_of(const char *method)
{
    return (struct header_open){.method = idem_bytes_of(method)};
}

void
assert_works(struct echo_world *world)
{
    struct echo_result result = echo_world_call(world, 42, 42, NULL);

    assert_echoed(&result, 42, 42);
}

void
assert_refused(struct header_end end, enum idem_status status)
{
    assert_int_equal(end.status, status);
    assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
    assert_false(end.final);
}
