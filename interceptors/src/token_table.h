#ifndef TOKEN_TABLE_H
#define TOKEN_TABLE_H

#include "kept_file.h"

#include <idem/digest.h>

/* The file of tokens that a server takes (auth.h): hashes only, so that who
 * reads it can use none of them. */

struct token_entry {
    uint8_t hash[IDEM_SHA256_SIZE]; /* of the token */
    struct idem_bytes identity;
    struct idem_bytes *roles;
    unsigned n_roles;
};

struct token_table {
    struct token_entry *entries; /* by hash */
    unsigned n;
};

extern const struct kept_file_ops token_table_ops; /* meaning: a table */

/* NULL: nobody's. How long it takes depends on the token's hash alone. */
const struct token_entry *token_table_find(const struct token_table *table,
                                           struct idem_bytes token);

#endif
