/* What this machine has: memory and processors, as far as this process may use them. */
#ifndef SUPPORT_HOST_H
#define SUPPORT_HOST_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory: the machine's, or less where a control group or a resource limit says so. */
int64_t host_memory(void);

/* Processors that this process may run on (its affinity mask). */
int host_processors(void);

/* A 64-bit hash of bytes for content that may be large: a few GB/s. The same on every machine. */
uint64_t host_hash(uint64_t seed, const void *p, size_t n);

#endif
