#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#include <stdbool.h>

/* Certificates for tests of TLS, made on the spot: P-256, PEM files. A file is
 * replaced by renaming, so that who watches it sees it whole. */
struct authority;

struct authority *authority_new(const char *name);
void authority_free(struct authority *authority);

/* Its own certificate, which peers trust. */
void authority_write(const struct authority *authority, const char *path);

/* What a certificate is to say; all may be NULL. */
struct certificate_order {
    const char *common_name;
    const char *names; /* of the SAN: "DNS:pay,IP:127.0.0.1,URI:spiffe://b/t" */
    const char *password; /* of the key's file */
    int valid_days;       /* from a day ago; 0: 30. Negative: over already */
};

/* Sign one and write it, and its key. */
void authority_issue(const struct authority *authority,
                     const struct certificate_order *order,
                     const char *certificate_path, const char *key_path);

/* The list of those that the authority has taken back, so many of those that it
 * issued last; over: it should have been renewed a day ago. */
void authority_revoke(const struct authority *authority, unsigned last,
                      bool over, const char *path);

#endif
