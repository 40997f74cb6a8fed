#ifndef UTF8_H
#define UTF8_H

#include <idem/base.h>

/* UTF-8 as Unicode has it (RFC 3629): no overlong forms, no surrogates, nothing
 * over U+10FFFF. NUL is a character like others. */
bool utf8_valid(struct idem_bytes text);

/* Replace each byte that is not part of a character by '?', also those of a
 * last character that was cut (rpc case 85: the code of a status survives a bad
 * message). */
void utf8_repair(char *text);

#endif
