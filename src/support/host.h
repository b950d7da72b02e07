/* What this machine has: memory and processors, as far as this process may use them. */
#ifndef SUPPORT_HOST_H
#define SUPPORT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory: the machine's, or less where a control group or a resource limit says so. */
int64_t host_memory(void);

/* What `packed` bytes of compressed data may become when nobody knows how much it should be: modules and arrays are packed to a tenth
 * or so, a bomb to a thousandth. 256 MiB are always allowed, half of the memory is the most. */
int64_t host_unpacked_limit(int64_t packed);

/* Processors that this process may run on (its affinity mask). */
int host_processors(void);

/* Whether the processor takes subnormal floats as zeros and gives zeros for them: of this thread and of those it starts from then on. They may take it a
 * hundred times as long as other numbers. False: this processor is not known, nothing changes. */
bool host_flush_subnormals(bool on);

/* A 64-bit hash of bytes for content that may be large: a few GB/s. The same on every machine. */
uint64_t host_hash(uint64_t seed, const void *p, size_t n);
void     host_hash_two(uint64_t h[2], const void *p, size_t n); /* two of them in one go, h their seeds */

#endif
