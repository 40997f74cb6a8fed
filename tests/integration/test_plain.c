/* Plain nng REQ clients, spoken by hand over a socket. */
#include "once_stage.h"

#include "header_wire.h"
#include "plain.h"
#include "wire_client.h"

#include <idem/reason.h>
#include <idem/server.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BODY_MAX 300000
#define MANY 64

static const uint8_t req_hello[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

struct answer {
    uint8_t bytes[BODY_MAX];
    size_t size;
    struct idem_bytes route, message;
    struct header_end end;
};

static void
read_whole(struct wire *wire, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = recv(wire->fd, bytes, size, 0);

        assert_true(n > 0);
        bytes += n;
        size -= (size_t)n;
    }
}

static void
greet(struct wire *wire, const char *address)
{
    static const uint8_t rep_hello[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    uint8_t theirs[sizeof rep_hello];

    wire_connect(wire, address);
    wire_write(wire, req_hello, sizeof req_hello);
    read_whole(wire, theirs, sizeof theirs);
    assert_memory_equal(theirs, rep_hello, sizeof theirs);
}

static void
write_size(struct wire *wire, uint64_t size)
{
    uint8_t head[8];

    for (unsigned i = 0; i < 8; i++)
        head[i] = (uint8_t)(size >> (56 - 8 * i));
    wire_write(wire, head, sizeof head);
}

static void
write_body(struct wire *wire, struct idem_bytes route, struct idem_bytes body)
{
    write_size(wire, route.size + body.size);
    wire_write(wire, route.data, route.size);
    wire_write(wire, body.data, body.size);
}

/* A route of one word: a request's id. */
static struct idem_bytes
route_of(uint8_t word[4], unsigned id)
{
    const uint8_t made[] = {0x80 | (uint8_t)(id >> 24), (uint8_t)(id >> 16),
                            (uint8_t)(id >> 8), (uint8_t)id};

    memcpy(word, made, sizeof made);
    return (struct idem_bytes){word, 4};
}

static void
ask_on(struct wire *wire, struct idem_bytes route,
       const struct header_open *open, struct idem_bytes message)
{
    static uint8_t bytes[BODY_MAX];
    uint8_t header[1024];
    struct header_writer writer = {bytes, bytes + sizeof bytes};
    size_t size = header_open_write(header, sizeof header, open, NULL);

    header_put_bytes(&writer, 1, (struct idem_bytes){header, size});
    header_put_bytes(&writer, 2, message);
    write_body(wire, route,
               (struct idem_bytes){bytes, (size_t)(writer.at - bytes)});
}

static void
ask(struct wire *wire, unsigned id, const char *method, const char *key,
    struct idem_bytes message)
{
    const struct header_open open = {.method = idem_bytes_of(method),
                                     .key = idem_bytes_of(key ? key : "")};
    uint8_t word[4];

    ask_on(wire, route_of(word, id), &open, message);
}

static void
take(struct wire *wire, struct answer *answer)
{
    struct header_reader reader;
    struct header_field field;
    uint8_t head[8];
    uint64_t size;
    int more;

    memset(answer, 0, sizeof *answer);
    read_whole(wire, head, sizeof head);
    assert_true(plain_head_read(head, false, &size));
    assert_in_range(size, 4, BODY_MAX);
    read_whole(wire, answer->bytes, (size_t)size);
    answer->size = (size_t)size;
    assert_true(plain_route_read(
        (struct idem_bytes){answer->bytes, answer->size}, &answer->route));
    reader.at = answer->bytes + answer->route.size;
    reader.end = answer->bytes + answer->size;
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.number == 1)
            assert_true(header_end_read(field.bytes, &answer->end));
        else
            answer->message = field.bytes;
    }
    assert_int_equal(more, 0);
}

static unsigned
id_of(const struct answer *answer)
{
    const uint8_t *word = answer->route.data;

    assert_int_equal(answer->route.size, 4);
    return (unsigned)(word[0] & 0x7F) << 24 | (unsigned)word[1] << 16 |
           (unsigned)word[2] << 8 | word[3];
}

static struct idem_bytes
add_request(int64_t amount, unsigned reply_bytes)
{
    static uint8_t bytes[64];
    struct header_writer writer = {bytes, bytes + sizeof bytes};

    header_put_varint(&writer, 1, (uint64_t)amount);
    header_put_varint(&writer, 8, reply_bytes);
    return (struct idem_bytes){bytes, (size_t)(writer.at - bytes)};
}

static void
assert_refused(const struct answer *answer, enum idem_status status,
               const char *reason)
{
    assert_int_equal(answer->end.status, status);
    assert_int_equal(answer->end.effect, IDEM_EFFECT_REFUSED);
    assert_true(idem_bytes_equal(answer->end.reason, idem_bytes_of(reason)));
}

static const char *
address_of(const struct stage *stage)
{
    return idem_server_address(stage->servers[0], 0);
}

static const struct idem_bytes nothing = {(const uint8_t *)"", 0};
static struct answer answer;

/* --- Calls --- */

static void
a_read_is_answered_along_the_route_it_came(void **state)
{
    static const uint8_t route[] = {0, 0, 0, 7, 0, 0, 1, 9, 0x80, 0, 0, 3};
    const struct header_open open = {.method =
                                         idem_bytes_of(EFFECTS_COUNT_METHOD)};
    struct stage *stage = *state;
    struct wire wire;

    greet(&wire, address_of(stage));
    ask_on(&wire, (struct idem_bytes){route, sizeof route}, &open, nothing);
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    assert_int_equal(answer.route.size, sizeof route);
    assert_memory_equal(answer.route.data, route, sizeof route);
    wire_close(&wire);
}

static void
a_call_with_a_key_takes_effect_once(void **state)
{
    struct stage *stage = *state;
    struct wire wire;
    uint8_t first[64];
    size_t size;

    greet(&wire, address_of(stage));
    ask(&wire, 1, EFFECTS_ADD_METHOD, "k1", add_request(7, 0));
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    assert_int_equal(answer.end.effect, IDEM_EFFECT_COMMITTED);
    assert_true(answer.end.final);
    size = answer.message.size;
    assert_in_range(size, 1, sizeof first);
    memcpy(first, answer.message.data, size);
    wire_close(&wire);

    greet(&wire, address_of(stage)); /* as nng does when it lost a connection */
    ask(&wire, 1, EFFECTS_ADD_METHOD, "k1", add_request(7, 0));
    take(&wire, &answer);
    assert_int_equal(answer.end.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(answer.message.size, size);
    assert_memory_equal(answer.message.data, first, size);
    assert_int_equal(stage_effects(stage), 1);
    wire_close(&wire);
}

static void
what_could_take_effect_twice_is_refused(void **state)
{
    struct stage *stage = *state;
    struct wire wire;

    greet(&wire, address_of(stage));
    ask(&wire, 1, EFFECTS_ADD_METHOD, NULL, add_request(7, 0));
    take(&wire, &answer);
    assert_refused(&answer, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING);
    ask(&wire, 2, EFFECTS_ADD_LOOSE_METHOD, NULL, add_request(7, 0));
    take(&wire, &answer);
    assert_refused(&answer, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING);
    ask(&wire, 3, EFFECTS_PUSH_METHOD, NULL, add_request(7, 0));
    take(&wire, &answer);
    assert_refused(&answer, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING);
    ask(&wire, 4, EFFECTS_NOTE_METHOD, "k1", add_request(7, 0));
    take(&wire, &answer);
    assert_refused(&answer, IDEM_FAILED_PRECONDITION, IDEM_NOT_RECORDED);
    assert_int_equal(id_of(&answer), 4);
    assert_int_equal(stage_effects(stage), 0);
    assert_int_equal(stage_counts(stage, 0).claims, 0);
    ask(&wire, 5, EFFECTS_ADD_LOOSE_METHOD, "k1", add_request(7, 0));
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    wire_close(&wire);
}

static void
a_key_of_fields_is_the_servers_to_make(void **state)
{
    static uint8_t request[] = {1 << 3, 7, 3 << 3 | 2, 2, 'o', '1'};
    struct stage *stage = *state;
    struct wire wire;

    greet(&wire, address_of(stage));
    for (unsigned i = 1; i <= 2; i++) {
        ask(&wire, i, EFFECTS_ADD_ORDER_METHOD, NULL,
            (struct idem_bytes){request, sizeof request});
        take(&wire, &answer);
        assert_int_equal(answer.end.status, IDEM_OK);
        assert_int_equal(answer.end.effect,
                         i == 1 ? IDEM_EFFECT_COMMITTED : IDEM_EFFECT_REPLAYED);
    }
    assert_int_equal(stage_effects(stage), 1);
    wire_close(&wire);
}

static void
many_at_once_get_their_own_answers(void **state)
{
    struct stage *stage = *state;
    bool seen[MANY] = {false};
    struct wire wire;

    greet(&wire, address_of(stage));
    for (unsigned i = 0; i < MANY; i++) {
        char key[16];

        snprintf(key, sizeof key, "many-%u", i);
        ask(&wire, i, EFFECTS_ADD_METHOD, key, add_request(i + 1, 0));
    }
    for (unsigned i = 0; i < MANY; i++) {
        take(&wire, &answer);
        assert_int_equal(answer.end.status, IDEM_OK);
        assert_in_range(id_of(&answer), 0, MANY - 1);
        assert_false(seen[id_of(&answer)]);
        seen[id_of(&answer)] = true;
    }
    assert_int_equal(stage_effects(stage), MANY);
    wire_close(&wire);
}

/* Over a chunk of the reader, and over what the writer copies. */
static void
large_messages_go_both_ways(void **state)
{
    static uint8_t request[200008] = {1 << 3, 7,    8 << 3,    0xA0,
                                      0x8D,   0x06, 2 << 3 | 2};
    struct stage *stage = *state;
    struct wire wire;

    memcpy(request + 7, "\xBA\x9A\x0C", 3); /* 199,994 bytes of note */
    memset(request + 10, 'n', sizeof request - 10);
    greet(&wire, address_of(stage));
    ask(&wire, 1, EFFECTS_ADD_METHOD, "large",
        (struct idem_bytes){request, 10 + 199994});
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    assert_in_range(answer.message.size, 100000, 100100);
    wire_close(&wire);
}

/* --- What is not a call --- */

static void
a_message_that_is_no_call_is_told_so(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum idem_status status;
    } table[] = {
        {"\xFF\xFF\xFF", 3, IDEM_INVALID_ARGUMENT},
        {"\x0A\x7F", 2, IDEM_INVALID_ARGUMENT}, /* a field that is cut */
        {"", 0, IDEM_UNIMPLEMENTED},            /* a call of no method */
        {"\x0A\x02\xFF\xFF", 4, IDEM_INTERNAL}, /* no OpenHeader */
    };
    struct stage *stage = *state;
    struct wire wire;
    uint8_t word[4];

    greet(&wire, address_of(stage));
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        write_body(&wire, route_of(word, i),
                   (struct idem_bytes){(const uint8_t *)table[i].bytes,
                                       table[i].size});
        take(&wire, &answer);
        assert_int_equal(id_of(&answer), i);
        assert_int_equal(answer.end.status, table[i].status);
        assert_int_equal(answer.end.effect, IDEM_EFFECT_REFUSED);
    }
    ask(&wire, 9, EFFECTS_COUNT_METHOD, NULL, nothing);
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    wire_close(&wire);
}

static void
a_message_over_the_limit_is_told_so_and_skipped(void **state)
{
    enum { OVER = (4 << 20) + 100000 };
    struct stage *stage = *state;
    uint8_t word[4], *zeros = calloc(1, OVER);
    struct wire wire;

    assert_non_null(zeros);
    greet(&wire, address_of(stage));
    write_body(&wire, route_of(word, 1), (struct idem_bytes){zeros, OVER});
    take(&wire, &answer);
    assert_refused(&answer, IDEM_RESOURCE_EXHAUSTED, IDEM_REQUEST_TOO_LARGE);
    ask(&wire, 2, EFFECTS_COUNT_METHOD, NULL, nothing);
    take(&wire, &answer);
    assert_int_equal(id_of(&answer), 2);
    assert_int_equal(answer.end.status, IDEM_OK);
    wire_close(&wire);
    free(zeros);
}

static void
assert_works(struct stage *stage)
{
    struct wire wire;

    greet(&wire, address_of(stage));
    ask(&wire, 1, EFFECTS_COUNT_METHOD, NULL, nothing);
    take(&wire, &answer);
    assert_int_equal(answer.end.status, IDEM_OK);
    wire_close(&wire);
}

/* No route, one that does not end, a length that nobody has. */
static void
what_is_no_message_of_req_closes_the_connection(void **state)
{
    static const uint8_t no_end[80];
    struct stage *stage = *state;
    struct wire wire;

    greet(&wire, address_of(stage));
    write_body(&wire, nothing, (struct idem_bytes){no_end, 3});
    wire_await_close(&wire);
    wire_close(&wire);
    greet(&wire, address_of(stage));
    write_body(&wire, nothing, (struct idem_bytes){no_end, sizeof no_end});
    wire_await_close(&wire);
    wire_close(&wire);
    greet(&wire, address_of(stage));
    write_size(&wire, UINT64_MAX);
    wire_await_close(&wire);
    wire_close(&wire);
    assert_works(stage);
}

/* SUB, PUSH, and half of a hello of nobody's. */
static void
other_sockets_of_nng_are_closed(void **state)
{
    static const uint8_t protocols[] = {0x10, 0x21, 0x31, 0x50, 0x51};
    struct stage *stage = *state;
    struct wire wire;

    for (unsigned i = 0; i < sizeof protocols; i++) {
        uint8_t hello[sizeof req_hello];

        memcpy(hello, req_hello, sizeof hello);
        hello[5] = protocols[i];
        wire_connect(&wire, address_of(stage));
        wire_write(&wire, hello, sizeof hello);
        wire_await_close(&wire);
        wire_close(&wire);
    }
    assert_works(stage);
}

/* --- The end --- */

static void
a_server_that_stops_closes_it(void **state)
{
    struct stage *stage = *state;
    struct wire wire;

    greet(&wire, address_of(stage));
    ask(&wire, 1, EFFECTS_COUNT_METHOD, NULL, nothing);
    take(&wire, &answer);
    idem_server_stop(stage->servers[0]);
    wire_await_close(&wire);
    wire_close(&wire);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, stage_sqlite_tcp, stage_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_is_answered_along_the_route_it_came),
        TEST(a_call_with_a_key_takes_effect_once),
        TEST(what_could_take_effect_twice_is_refused),
        TEST(a_key_of_fields_is_the_servers_to_make),
        TEST(many_at_once_get_their_own_answers),
        TEST(large_messages_go_both_ways),
        TEST(a_message_that_is_no_call_is_told_so),
        TEST(a_message_over_the_limit_is_told_so_and_skipped),
        TEST(what_is_no_message_of_req_closes_the_connection),
        TEST(other_sockets_of_nng_are_closed),
        TEST(a_server_that_stops_closes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
