#ifndef PROTO_H
#define PROTO_H

#include <google/protobuf/compiler/plugin.pb-c.h>
#include <google/protobuf/descriptor.pb-c.h>
#include <idem/v1/options.pb-c.h>

/* Words for what protoc-c calls its classes. */
typedef Google__Protobuf__FileDescriptorSet set_proto;
typedef Google__Protobuf__FileDescriptorProto file_proto;
typedef Google__Protobuf__DescriptorProto message_proto;
typedef Google__Protobuf__EnumDescriptorProto enum_proto;
typedef Google__Protobuf__FieldDescriptorProto field_proto;
typedef Google__Protobuf__ServiceDescriptorProto service_proto;
typedef Google__Protobuf__MethodDescriptorProto method_proto;
typedef Google__Protobuf__SourceCodeInfo__Location location_proto;

typedef Idem__V1__MethodPolicy method_policy;
typedef Idem__V1__Key key_policy;
typedef Idem__V1__Retry retry_policy;
typedef Idem__V1__Limit limit_policy;
typedef Idem__V1__Allow allow_policy;

#define FIELD_TYPE(name)                                                       \
    GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_##name
#define FIELD_LABEL(name)                                                      \
    GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_##name

#define OPTION_NUMBER 50700 /* of idem.v1.method, .service, .field, .file */

/* Numbers of descriptor.proto's fields, for paths of source locations. */
enum {
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    FILE_OPTIONS = 8,
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    MESSAGE_ONEOF = 8,
    FIELD_OPTIONS = 8,
    ENUM_VALUE = 2,
    SERVICE_METHOD = 2,
    SERVICE_OPTIONS = 3,
    METHOD_OPTIONS = 4,
};

#endif
