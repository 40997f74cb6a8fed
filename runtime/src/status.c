#include <idem/outcome.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const status_names[] = {
#define STATUS_NAME(name, number, text) [number] = #name,
    IDEM_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
};

static const char *const effect_names[] = {
#define EFFECT_NAME(name, number, text) [number] = #name,
    IDEM_EFFECT_LIST(EFFECT_NAME)
#undef EFFECT_NAME
};

static const char *const stop_names[] = {
#define STOP_NAME(name, text) [IDEM_STOP_##name] = #name,
    IDEM_STOP_LIST(STOP_NAME)
#undef STOP_NAME
};

static const char *const stop_texts[] = {
#define STOP_TEXT(name, text) [IDEM_STOP_##name] = text,
    IDEM_STOP_LIST(STOP_TEXT)
#undef STOP_TEXT
};

#define COUNT(names) (sizeof(names) / sizeof(names[0]))

static const char *
name_at(const char *const *names, size_t count, unsigned number)
{
    return number < count ? names[number] : "UNKNOWN";
}

static enum idem_status IDEM_PRINTF(4, 0)
    fail(struct idem_error *err, enum idem_status status, const char *reason,
         const char *format, va_list args)
{
    if (!err)
        return status;

    /* The text may quote the error itself, so it is written aside first. */
    char message[IDEM_MESSAGE_MAX];

    vsnprintf(message, sizeof(message), format, args);
    err->status = status;
    snprintf(err->reason, sizeof(err->reason), "%s", reason);
    memcpy(err->message, message, sizeof(message));
    return status;
}

const char *
idem_status_name(enum idem_status status)
{
    return name_at(status_names, COUNT(status_names), (unsigned)status);
}

bool
idem_status_parse(const char *name, enum idem_status *status)
{
    for (unsigned i = 0; i < COUNT(status_names); i++)
        if (strcasecmp(name, status_names[i]) == 0) {
            *status = (enum idem_status)i;
            return true;
        }
    return false;
}

const char *
idem_effect_name(enum idem_effect effect)
{
    return name_at(effect_names, COUNT(effect_names), (unsigned)effect);
}

const char *
idem_stop_name(enum idem_stop stop)
{
    return name_at(stop_names, COUNT(stop_names), (unsigned)stop);
}

const char *
idem_stop_text(enum idem_stop stop)
{
    return name_at(stop_texts, COUNT(stop_texts), (unsigned)stop);
}

enum idem_status
idem_fail(struct idem_error *err, enum idem_status status, const char *format,
          ...)
{
    va_list args;

    va_start(args, format);
    fail(err, status, "", format, args);
    va_end(args);
    return status;
}

enum idem_status
idem_fail_reason(struct idem_error *err, enum idem_status status,
                 const char *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail(err, status, reason, format, args);
    va_end(args);
    return status;
}
