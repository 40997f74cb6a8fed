// Generated code in C++: it compiles without a warning and links.
#include "fake_runtime.h"
#include "shop/quirks.idem.h"
#include "shop/rich.idem.h"

#include <cstring>

static enum idem_status
remove_it(struct idem_context *, const shop_common_money *request,
          shop_common_money *reply)
{
    reply->minor = request->minor + 1;
    return IDEM_OK;
}

int
main()
{
    struct shop_handlers handlers = {};
    shop_common_money request = SHOP_COMMON_MONEY_INIT;
    shop_common_money reply = SHOP_COMMON_MONEY_INIT;

    handlers.delete_ = remove_it;
    request.currency = "EUR";
    request.minor = 41;
    if (shop_register(nullptr, &handlers, nullptr, nullptr) != IDEM_OK)
        return 1;
    if (shop_delete_method.invoke(&handlers, nullptr, &request.base,
                                  &reply.base) != IDEM_OK)
        return 2;
    if (reply.minor != 42 || std::strcmp(shop_service.name, SHOP_SERVICE) != 0)
        return 3;
    return shop_delete(nullptr, &request, nullptr, nullptr, nullptr);
}
