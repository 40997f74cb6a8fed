#include "crc32c.h"

#include <idem/digest.h>

#include <endian.h>
#include <pthread.h>
#include <string.h>

/* --- By tables --- */

/* The n-th is of a byte with n more bytes behind it. */
static uint32_t tables[4][256];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void
fill_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78 & (0 - (crc & 1)));
        tables[0][byte] = crc;
    }
    for (int n = 1; n < 4; n++)
        for (int byte = 0; byte < 256; byte++)
            tables[n][byte] = (tables[n - 1][byte] >> 8) ^
                              tables[0][tables[n - 1][byte] & 0xFF];
}

uint32_t
crc32c_by_tables(struct idem_bytes bytes)
{
    uint32_t crc = UINT32_MAX, word;
    size_t i = 0;

    pthread_once(&filled, fill_tables);
    for (; bytes.size - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, bytes.data + i, sizeof(word));
        crc ^= le32toh(word);
        crc = tables[3][crc & 0xFF] ^ tables[2][crc >> 8 & 0xFF] ^
              tables[1][crc >> 16 & 0xFF] ^ tables[0][crc >> 24];
    }
    for (; i < bytes.size; i++)
        crc = (crc >> 8) ^ tables[0][(crc ^ bytes.data[i]) & 0xFF];
    return ~crc;
}

/* --- By the instruction: SSE 4.2 has it, which builds do not ask for --- */

#ifdef __x86_64__

bool
crc32c_has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) uint32_t
crc32c_by_instruction(struct idem_bytes bytes)
{
    uint64_t crc = UINT32_MAX, word;
    size_t i = 0;

    for (; bytes.size - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, bytes.data + i, sizeof(word));
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; i < bytes.size; i++)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, bytes.data[i]);
    return ~(uint32_t)crc;
}

#else

bool
crc32c_has_instruction(void)
{
    return false;
}

uint32_t
crc32c_by_instruction(struct idem_bytes bytes)
{
    return crc32c_by_tables(bytes);
}

#endif

uint32_t
idem_crc32c(struct idem_bytes bytes)
{
    return crc32c_has_instruction() ? crc32c_by_instruction(bytes)
                                    : crc32c_by_tables(bytes);
}
