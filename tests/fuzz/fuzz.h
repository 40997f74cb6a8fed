#ifndef FUZZ_H
#define FUZZ_H

#include <idem/base.h>

/* A fuzz target is one file that defines this: whatever the bytes are, it
 * returns 0, and what it holds true (IDEM_ASSERT) is true. libFuzzer calls it
 * in the fuzz preset; in the others replay.c does, once for each file of the
 * committed corpus (docs/fuzzing.md). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes the first byte: what the target chooses by. 0 when there is none. */
static inline uint8_t
fuzz_take_byte(struct idem_bytes *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

#endif
