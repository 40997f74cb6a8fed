#include "config_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define NS_PER_MS 1000000
#define SECONDS_MAX 315576000000 /* of a duration (protobuf's JSON) */

/* --- Places and lines --- */

static size_t
write_place(char *text, size_t room, const struct place *place)
{
    size_t used;

    if (!place->outer)
        return 0;
    used = write_place(text, room, place->outer);
    if (used >= room)
        return used;
    if (place->name)
        used += (size_t)snprintf(text + used, room - used, "%s%s",
                                 used ? "." : "", place->name);
    else
        used +=
            (size_t)snprintf(text + used, room - used, "[%zu]", place->index);
    return used;
}

static void IDEM_PRINTF(4, 0)
    say(void (*told)(void *with, const char *line), void *with,
        const struct place *place, const char *format, va_list args)
{
    char line[LINE_MAX_BYTES] = "";
    size_t used = write_place(line, sizeof line, place);

    if (used > 0 && used < sizeof line - 2) {
        memcpy(line + used, ": ", 3);
        used += 2;
    }
    if (used < sizeof line)
        vsnprintf(line + used, sizeof line - used, format, args);
    told(with, line);
}

void
reader_fault(struct reader *reader, const struct place *place,
             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(reader->listener->fault, reader->listener->with, place, format, args);
    va_end(args);
    reader->faults++;
}

void
reader_note(struct reader *reader, const struct place *place,
            const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(reader->listener->note, reader->listener->with, place, format, args);
    va_end(args);
}

/* --- Objects --- */

static const struct member *
find_member(const struct member *members, size_t n_members, const char *name)
{
    for (size_t i = 0; i < n_members; i++)
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    return NULL;
}

void
read_members(struct reader *reader, const struct place *place,
             const json_t *value, const struct member *members,
             size_t n_members, void *into)
{
    const char *name;
    json_t *member;

    if (!json_is_object(value)) {
        reader_fault(reader, place, "is not an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        struct place inner = {place, name, 0};
        const struct member *known = find_member(members, n_members, name);

        if (!known)
            reader_fault(reader, &inner, "there is no such setting");
        else if (!json_is_null(member))
            known->read(reader, &inner, member, into);
    }
    for (size_t i = 0; i < n_members; i++) {
        struct place inner = {place, members[i].name, 0};
        const json_t *there = json_object_get(value, members[i].name);

        if (members[i].required && (!there || json_is_null(there)))
            reader_fault(reader, &inner, "is missing");
    }
}

/* --- Values --- */

/* "1.5s": digits, at most nine decimals, an s. */
static bool
parse_duration(const char *text, int64_t *ns)
{
    char *end;
    int64_t seconds, fraction = 0;
    int64_t unit = 100000000;

    if (text[0] < '0' || text[0] > '9')
        return false;
    seconds = strtoll(text, &end, 10);
    if (seconds > SECONDS_MAX)
        return false;
    if (*end == '.') {
        for (end++; *end >= '0' && *end <= '9' && unit > 0; end++, unit /= 10)
            fraction += (*end - '0') * unit;
        if (end[-1] == '.')
            return false;
    }
    if (strcmp(end, "s") != 0)
        return false;
    *ns = seconds < INT64_MAX / 1000000000 - 1 ? seconds * 1000000000 + fraction
                                               : INT64_MAX - NS_PER_MS;
    return true;
}

void
read_duration(struct reader *reader, const struct place *place,
              const json_t *value, bool zero_too, int64_t *ms)
{
    const char *text = json_string_value(value);
    int64_t ns;

    if (!text)
        reader_fault(reader, place, "is not a duration such as \"1.5s\"");
    else if (!parse_duration(text, &ns))
        reader_fault(reader, place,
                     "\"%.40s\" is not a duration such as \"1.5s\"", text);
    else if (ns == 0 && !zero_too)
        reader_fault(reader, place, "is \"%.40s\"; it is over 0", text);
    else
        *ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
}

void
read_whole(struct reader *reader, const struct place *place,
           const json_t *value, int64_t low, int64_t high, int64_t *number)
{
    double real = json_is_number(value) ? json_number_value(value) : NAN;

    if (!json_is_number(value) || real != floor(real))
        reader_fault(reader, place, "is not a whole number");
    else if (real < (double)low || real > (double)high)
        reader_fault(reader, place,
                     "is %.0f; it is from %" PRId64 " to %" PRId64, real, low,
                     high);
    else
        *number = (int64_t)real;
}

void
read_thousandths(struct reader *reader, const struct place *place,
                 const json_t *value, double high, int64_t *milli)
{
    const double below_any_thousandth = 1e-6; /* 0.546 is 545.999… of them */
    double real = json_is_number(value) ? json_number_value(value) : NAN;

    if (!json_is_number(value))
        reader_fault(reader, place, "is not a number");
    else if (real < 0.001 || real > high)
        reader_fault(reader, place, "is %g; it is from 0.001 to %g", real,
                     high);
    else
        *milli = (int64_t)floor(real * 1000 + below_any_thousandth);
}

void
read_bool(struct reader *reader, const struct place *place, const json_t *value,
          bool *is)
{
    if (json_is_boolean(value))
        *is = json_is_true(value);
    else
        reader_fault(reader, place, "is not true or false");
}

static bool
parse_code(const json_t *value, enum idem_status *code)
{
    if (json_is_string(value))
        return idem_status_parse(json_string_value(value), code);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > IDEM_UNAUTHENTICATED)
        return false;
    *code = (enum idem_status)json_integer_value(value);
    return true;
}

void
read_codes(struct reader *reader, const struct place *place,
           const json_t *value, uint32_t *codes)
{
    if (!json_is_array(value)) {
        reader_fault(reader, place, "is not an array of status codes");
        return;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct place inner = {place, NULL, i};
        const json_t *element = json_array_get(value, i);
        enum idem_status code;

        if (!parse_code(element, &code))
            reader_fault(reader, &inner,
                         "is no status code, or no name of one");
        else if (code == IDEM_OK)
            reader_fault(reader, &inner,
                         "OK is a success, which is not repeated");
        else
            *codes |= 1u << code;
    }
}

void
read_foreign(struct reader *reader, const struct place *place,
             const json_t *value, void *into)
{
    (void)value;
    (void)into;
    reader_note(reader, place, "is gRPC's and has no meaning here");
}
