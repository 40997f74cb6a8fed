#ifndef SUPPORT_H
#define SUPPORT_H

/* Include first in a test: what cmocka.h needs, and cmocka.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
