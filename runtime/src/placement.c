#include <idem/placement.h>

#include <string.h>

static const char *const state_names[] = {
#define STATE_NAME(name, text) #name,
    IDEM_CHANNEL_STATE_LIST(STATE_NAME)
#undef STATE_NAME
};

static const char *const balancer_names[] = {
#define BALANCER_NAME(name, text) text,
    IDEM_BALANCER_LIST(BALANCER_NAME)
#undef BALANCER_NAME
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *
idem_channel_state_name(enum idem_channel_state state)
{
    return (size_t)state < COUNT(state_names) ? state_names[state] : "UNKNOWN";
}

const char *
idem_balancer_name(enum idem_balancer balancer)
{
    return (size_t)balancer < COUNT(balancer_names) ? balancer_names[balancer]
                                                    : "unknown";
}

bool
idem_balancer_parse(const char *name, enum idem_balancer *balancer)
{
    for (size_t i = 0; i < COUNT(balancer_names); i++) {
        if (strcmp(name, balancer_names[i]) == 0) {
            *balancer = (enum idem_balancer)i;
            return true;
        }
    }
    return false;
}
