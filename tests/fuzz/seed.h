#ifndef SEED_H
#define SEED_H

#include <idem/metadata.h>

#include <stddef.h>
#include <stdint.h>

/* What a corpus begins with: made by our own encoders, always the same bytes.
 */

#define SEED_ROOM 65536

/* Bytes that grow; what begins them is what the target chooses by. */
struct seed {
    uint8_t bytes[SEED_ROOM];
    size_t size;
};

/* Where the corpora are: a folder for each target. */
extern const char *seed_folder;

void seed_add(struct seed *seed, const void *bytes, size_t size);
struct seed seed_begin(uint8_t how);
void seed_save(const struct seed *seed, const char *target, const char *name);
void seed_save_text(const char *target, const char *name, const char *text);

/* With a byte before it, which is how. */
void seed_save_choice(const char *target, const char *name, uint8_t how,
                      const char *text);

struct idem_metadata seed_two_entries(struct idem_arena *arena);

/* Those of a file each. */
void seed_wire(struct idem_arena *arena);  /* headers, frames, streams, plain */
void seed_redis(struct idem_arena *arena); /* its replies and our entries */
void seed_messages(struct idem_arena *arena);
void seed_options(void);
void seed_texts(void); /* keys, targets, configs */

#endif
