/* The inside of a loaded module: its entry, as emitted text declares it. */
#ifndef DRIVER_COMPILED_H
#define DRIVER_COMPILED_H

#include <stdint.h>

/* The same as in emitted text. */
typedef struct HloEnv {
    uint32_t size;
    uint32_t threads;
    char    *error;
    uint64_t error_bytes;
    uint64_t seed;
    uint64_t *random;
} HloEnv;

typedef int HloEntry(const HloEnv *env, const void *const *args, void *const *results, void *scratch);

struct Compiled {
    HloEntry *run;
};

#endif
