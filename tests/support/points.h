#ifndef POINTS_H
#define POINTS_H

/* The fault points that a server came to, as it wrote them down
 * (IDEM_FAULT_LOG): what an enumerator lets a process die at, one after
 * another, so that a new step cannot escape. */

#define POINTS_MAX 40
#define POINT_SIZE 64

struct points {
    unsigned n;
    char name[POINTS_MAX][POINT_SIZE]; /* in the order of their first time */
    unsigned times[POINTS_MAX];        /* that each was reached */
};

/* Fails the test when these are fewer than any call comes to. */
void points_read(struct points *points, const char *path);

#endif
