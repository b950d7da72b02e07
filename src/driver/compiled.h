/* The inside of a loaded module: its entry, as emitted text declares it. */
#ifndef DRIVER_COMPILED_H
#define DRIVER_COMPILED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same as in emitted text. */
typedef struct HloEnv {
    uint32_t size;
    uint32_t threads;
    char    *error;
    uint64_t error_bytes;
    uint64_t seed;
    uint64_t *random;
    const struct HloDevices *devices;
    struct hlort_pool       *pool;
    void                    *stream;
} HloEnv;

enum { HLO_GATHER, HLO_TRADE, HLO_BROADCAST, HLO_PERMUTE, HLO_SEND, HLO_RECEIVE, HLO_INFEED, HLO_OUTFEED };

typedef struct HloExchange {
    int32_t        kind, step;
    int64_t        channel, bytes;
    int32_t        n_groups;
    const int32_t *groups;
    int32_t        n_pairs;
    const int32_t *pairs;
    const char    *op, *name, *type;
} HloExchange;

typedef struct HloDevices {
    uint32_t size;
    int32_t  replicas, partitions, replica, partition;
    void    *context;
    int (*exchange)(void *context, const HloExchange *x, const void *in, void *out);
    void *communicator;
} HloDevices;

typedef int HloEntry(const HloEnv *env, const void *const *args, void *const *results, void *scratch);

/* Who looks on is told with the numbers of steps, see WatchEvent. */
typedef void HloWatcher(void *cookie, int32_t event, int32_t step, const void *const *values);

/* Memory of a device, from compiled CUDA. Not 0: failed, error says why. */
typedef struct DeviceMemory {
    int (*use)(int device); /* what this thread calls from now on is for it */
    int (*alloc)(void **p, size_t bytes);
    int (*free)(void *p);
    int (*put)(void *to, const void *from, size_t bytes);
    int (*get)(void *to, const void *from, size_t bytes);
    const char *(*error)(int e);
    int (*join)(int n, void **communicators); /* of the first n devices, as HloDevices has them; not 0: there are none. NULL: the text calls no library for it */
    void (*part)(void *communicator, int aborts); /* aborts: who waits there need not */
} DeviceMemory;

struct Compiled {
    HloEntry             *run;
    void                (*watch)(HloWatcher *f, void *cookie); /* NULL: its text tells nothing */
    bool                  has_device; /* arguments, results and scratch are in its memory */
    DeviceMemory          device;
    const struct Program *program; /* of watched ones, else NULL */
};

#endif
