#ifndef SANITIZER_H
#define SANITIZER_H

/* What this build runs under; gcc and clang say so in their own words. */

#ifndef __has_feature /* clang's */
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SANITIZED_THREADS 1
#else
#define SANITIZED_THREADS 0
#endif

/* Has memory and time of its own for each of ours: neither is measured. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED SANITIZED_THREADS
#endif

#endif
