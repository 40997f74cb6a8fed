#include "seed.h"

#include <idem/message.h>

#include <idem/v1/options.pb-c.h>

#include <protobuf-c/protobuf-c.h>

#include "shapes.pb-c.h"

/* --- Messages --- */

static void
fill_all(Shapes__V1__All *all, Shapes__V1__Inner *inner)
{
    static const char text[] = "text", name[] = "n\xc3\xa4me";
    static uint8_t blob[] = {0, 1, 255};
    static int32_t numbers[] = {1, -1, 1 << 30};
    static const char *texts[] = {text, name};

    inner->a = -5;
    inner->name = name;
    all->i32 = -1;
    all->s64 = -1;
    all->real = 1.5F;
    all->flag = 1;
    all->color = SHAPES__V1__COLOR__BLUE;
    all->text = text;
    all->blob = (ProtobufCBinaryData){sizeof blob, blob};
    all->inner = inner;
    all->pick_case = SHAPES__V1__ALL__PICK_PICK_INNER;
    all->pick_inner = inner;
    all->n_r_i32 = 3;
    all->r_i32 = numbers;
    all->n_r_text = 2;
    all->r_text = texts;
}

static void
save_message(const char *name, uint8_t how, struct idem_bytes bytes)
{
    struct seed seed = seed_begin(how);

    seed_add(&seed, bytes.data, bytes.size);
    seed_save(&seed, "message", name);
}

void
seed_messages(struct idem_arena *arena)
{
    Shapes__V1__All all = SHAPES__V1__ALL__INIT;
    Shapes__V1__Inner inner = SHAPES__V1__INNER__INIT,
                      deep = SHAPES__V1__INNER__INIT;
    struct idem_bytes bytes;

    fill_all(&all, &inner);
    IDEM_ASSERT(idem_message_pack(&all.base, arena, &bytes, NULL) == IDEM_OK);
    save_message("all", 0, bytes);
    deep.inner = &inner;
    deep.b = 3;
    IDEM_ASSERT(idem_message_pack(&deep.base, arena, &bytes, NULL) == IDEM_OK);
    save_message("inner", 1, bytes);
    save_message("unknown", 2, bytes);
}

/* --- Options --- */

static void
save_policy(const char *name, uint8_t how, const ProtobufCMessage *policy)
{
    struct seed seed = seed_begin(how);
    uint8_t bytes[4096];

    IDEM_ASSERT(protobuf_c_message_get_packed_size(policy) <= sizeof bytes);
    seed_add(&seed, bytes, protobuf_c_message_pack(policy, bytes));
    seed_save(&seed, "options", name);
}

void
seed_options(void)
{
    static const char code[] = "ABORTED", field[] = "inner.id";
    static const char *codes[] = {code}, *fields[] = {field};
    Idem__V1__Retry retry = IDEM__V1__RETRY__INIT;
    Idem__V1__Key key = IDEM__V1__KEY__INIT;
    Idem__V1__MethodPolicy policy = IDEM__V1__METHOD_POLICY__INIT;
    Idem__V1__FieldPolicy of_field = IDEM__V1__FIELD_POLICY__INIT;
    Idem__V1__FilePolicy of_file = IDEM__V1__FILE_POLICY__INIT;

    policy.mode = IDEM__V1__METHOD_POLICY__MODE__TRANSACTION;
    save_policy("transaction", 0, &policy.base);
    key.fields = fields;
    key.n_fields = 1;
    policy.key = &key;
    save_policy("key", 0, &policy.base);
    retry.codes = codes;
    retry.n_codes = 1;
    retry.max_attempts = 3;
    policy.retry = &retry;
    policy.mode = IDEM__V1__METHOD_POLICY__MODE__LEASED;
    policy.recorded = codes;
    policy.n_recorded = 1;
    policy.lease_ms = 5000;
    save_policy("leased", 0, &policy.base);
    of_field.not_in_fingerprint = 1;
    save_policy("field", 2, &of_field.base);
    of_file.prefix = "pay";
    save_policy("file", 3, &of_file.base);
}
