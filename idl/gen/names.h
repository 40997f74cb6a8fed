#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>

#include "pool.h"

/* Names in C: protoc-c's, which we must hit exactly, and ours. */

/* "payments.v1.ChargeRequest" as protoc-c writes it:
 * Payments__V1__ChargeRequest, payments__v1__charge_request,
 * PAYMENTS__V1__CHARGE_REQUEST. */
const char *names_theirs_type(struct pool *pool, const char *full);
const char *names_theirs_lower(struct pool *pool, const char *full);
const char *names_theirs_upper(struct pool *pool, const char *full);

/* A field's member in protoc-c's struct: lower case, a keyword with an
 * underscore behind it. */
const char *names_theirs_member(struct pool *pool, const char *field);

/* Ours: "HTTPServer" is http_server, "GetURL" is get_url, "a.b" is a_b. */
const char *names_snake(struct pool *pool, const char *name);
const char *names_shout(struct pool *pool, const char *name);

/* a_b; the other one when one is empty. */
const char *names_join(struct pool *pool, const char *a, const char *b);

/* A word of C or C++, which protoc-c puts an underscore behind. */
bool names_keyword(const char *name);

/* A word that protoc-c leaves as it is though C or C++ has other plans with it:
 * later keywords and macros. */
bool names_unsafe(const char *name);

bool names_identifier(const char *name);

#endif
