/* For unit tests: CHECK(condition) names the place and ends the test with status 1. */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                                                                \
    do {                                                                                                                        \
        if (!(x)) {                                                                                                             \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #x);                                                     \
            exit(1);                                                                                                            \
        }                                                                                                                       \
    } while (0)

#endif
