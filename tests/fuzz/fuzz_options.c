#include "fuzz.h"

#include "plugin.h"
#include "wire.h"

#include <string.h>

/* The options reader of protoc-gen-idem: a file as protoc makes it, whose
 * method, field or file has any bytes as our option. It is generated whole, or
 * refused with words. */

typedef Google__Protobuf__MethodOptions method_options;
typedef Google__Protobuf__FieldOptions field_options;
typedef Google__Protobuf__FileOptions file_options;

#define LEVELS 3 /* of idempotency_level */

/* message Request { string id = 1; int64 n = 2; Request inner = 3; } and
 * service Pay { rpc Charge(Request) returns (Request); } */
struct sample {
    file_proto file;
    message_proto message, *messages[1];
    field_proto field[3], *fields[3];
    service_proto service, *services[1];
    method_proto method, *methods[1];
    method_options of_method;
    field_options of_field;
    file_options of_file;
};

static void
add_field(struct sample *sample, int number, const char *name, int type)
{
    static const field_proto empty =
        GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__INIT;
    field_proto *field = &sample->field[number - 1];
    static char message[] = ".pay.v1.Request";

    *field = empty;
    field->name = (char *)(uintptr_t)name;
    field->has_number = field->has_type = field->has_label = 1;
    field->number = number;
    field->type = (Google__Protobuf__FieldDescriptorProto__Type)type;
    field->label = FIELD_LABEL(OPTIONAL);
    if (field->type == FIELD_TYPE(MESSAGE))
        field->type_name = message;
    sample->fields[number - 1] = field;
}

static void
fill_message(struct sample *sample)
{
    static char name[] = "Request";

    google__protobuf__descriptor_proto__init(&sample->message);
    google__protobuf__field_options__init(&sample->of_field);
    sample->message.name = name;
    add_field(sample, 1, "id", FIELD_TYPE(STRING));
    add_field(sample, 2, "n", FIELD_TYPE(INT64));
    add_field(sample, 3, "inner", FIELD_TYPE(MESSAGE));
    sample->field[1].options = &sample->of_field;
    sample->message.field = sample->fields;
    sample->message.n_field = 3;
    sample->messages[0] = &sample->message;
}

static void
fill_service(struct sample *sample)
{
    static char name[] = "Pay", method[] = "Charge", type[] = ".pay.v1.Request";

    google__protobuf__service_descriptor_proto__init(&sample->service);
    google__protobuf__method_descriptor_proto__init(&sample->method);
    google__protobuf__method_options__init(&sample->of_method);
    sample->method.name = method;
    sample->method.input_type = sample->method.output_type = type;
    sample->method.options = &sample->of_method;
    sample->methods[0] = &sample->method;
    sample->service.name = name;
    sample->service.method = sample->methods;
    sample->service.n_method = 1;
    sample->services[0] = &sample->service;
}

static void
fill(struct sample *sample)
{
    static char name[] = "pay/v1/pay.proto", package[] = "pay.v1",
                syntax[] = "proto3";

    google__protobuf__file_descriptor_proto__init(&sample->file);
    google__protobuf__file_options__init(&sample->of_file);
    fill_message(sample);
    fill_service(sample);
    sample->file.name = name;
    sample->file.package = package;
    sample->file.syntax = syntax;
    sample->file.options = &sample->of_file;
    sample->file.message_type = sample->messages;
    sample->file.n_message_type = 1;
    sample->file.service = sample->services;
    sample->file.n_service = 1;
}

static void
set_option(struct pool *pool, struct sample *sample, uint8_t how,
           struct idem_bytes bytes)
{
    ProtobufCMessage *const where[] = {
        &sample->of_method.base, &sample->of_method.base,
        &sample->of_field.base, &sample->of_file.base};

    sample->of_method.has_idempotency_level = 1;
    sample->of_method.idempotency_level =
        (Google__Protobuf__MethodOptions__IdempotencyLevel)(how / 4 % LEVELS);
    wire_add_unknown(pool, where[how % 4], OPTION_NUMBER, bytes.data,
                     bytes.size);
}

static void
check(const plugin_response *response)
{
    if (response->error) {
        IDEM_ASSERT(response->n_file == 0);
        IDEM_ASSERT(strstr(response->error, "pay/v1/pay.proto:"));
        return;
    }
    IDEM_ASSERT(response->n_file == 2);
    for (size_t i = 0; i < response->n_file; i++)
        IDEM_ASSERT(response->file[i]->content && response->file[i]->name);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "pay/v1/pay.proto";
    char *names[] = {name};
    struct idem_bytes input = {data, size};
    uint8_t how = fuzz_take_byte(&input);
    struct sample sample;
    file_proto *files[] = {&sample.file};
    plugin_request request =
        GOOGLE__PROTOBUF__COMPILER__CODE_GENERATOR_REQUEST__INIT;
    struct pool pool;

    pool_init(&pool);
    fill(&sample);
    set_option(&pool, &sample, how, input);
    request.file_to_generate = names;
    request.n_file_to_generate = 1;
    request.proto_file = files;
    request.n_proto_file = 1;
    check(plugin_answer(&pool, &request));
    pool_fini(&pool);
    return 0;
}
