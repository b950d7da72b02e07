/* Fuzz targets: one source file each, which libFuzzer drives or, without clang, the main of text/fuzz_main.c. The names are libFuzzer's.
 *
 *   text/text_target.c          text to module and back
 *   proto/proto_target.c        messages to modules and back
 *   data/data_target.c          files of arrays
 *   driver/structure_target.c   random legal modules through every form
 *
 * A target aborts when something does not hold. What it allocates it frees: leaks are failures, too. */
#ifndef TEXT_FUZZ_TARGET_H
#define TEXT_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* One input, tried; always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Changes p[0..n) in place, to at most `most` bytes; the new length. The driver's own way: bytes. */
size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t most);
/* A target that knows better has both of these. The second one puts p with something of q into out. */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *p, size_t np, const uint8_t *q, size_t nq, uint8_t *out, size_t most, unsigned seed);

#endif
