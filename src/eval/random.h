/* The generator behind rng-bit-generator and rng. */
#ifndef EVAL_RANDOM_H
#define EVAL_RANDOM_H

#include <stdint.h>

/* Philox4x32, 10 rounds: the four words of a counter under a key. */
void random_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t x[4]);

#endif
