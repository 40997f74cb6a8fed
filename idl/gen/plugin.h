#ifndef PLUGIN_H
#define PLUGIN_H

#include "pool.h"
#include "proto.h"

typedef Google__Protobuf__Compiler__CodeGeneratorRequest plugin_request;
typedef Google__Protobuf__Compiler__CodeGeneratorResponse plugin_response;

/* What protoc is answered: a header and a source for each file that is to be
 * generated, or, when one breaks a rule, all that is wrong with it and no file.
 * The request is as protoc makes it: names and references are checked. It and
 * the response live in the pool. */
plugin_response *plugin_answer(struct pool *pool,
                               const plugin_request *request);

#endif
