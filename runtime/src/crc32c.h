#ifndef CRC32C_H
#define CRC32C_H

#include <idem/base.h>

/* The two ways of idem_crc32c. Same result; any thread. */

/* By tables, four bytes at a time. */
uint32_t crc32c_by_tables(struct idem_bytes bytes);

/* By the processor's own instruction, eight bytes at a time: a quarter of the
 * time. Only where crc32c_has_instruction says that there is one. */
uint32_t crc32c_by_instruction(struct idem_bytes bytes);
bool crc32c_has_instruction(void);

#endif
