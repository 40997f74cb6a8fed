#ifndef CODE_H
#define CODE_H

#include <stdbool.h>
#include <stdint.h>

/* The 17 canonical status codes, by name in any letter case. */

#define CODE_OK 0
#define CODE_UNAVAILABLE 14

/* What a recording method records unless it says otherwise: the answers that
 * cannot become another one by trying again (options.proto). */
extern const uint32_t code_recorded_default;

bool code_parse(const char *name, unsigned *code);

#endif
