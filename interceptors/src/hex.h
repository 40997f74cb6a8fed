#ifndef HEX_H
#define HEX_H

#include <idem/base.h>

/* Write 2 * size digits, lower case, and a NUL. */
void hex_write(char *text, const uint8_t *bytes, size_t size);

#endif
