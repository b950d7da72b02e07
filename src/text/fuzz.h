/* What the fuzzers share: seeds, repeatable random numbers, changes of text, and the file that a failure leaves behind. */
#ifndef TEXT_FUZZ_H
#define TEXT_FUZZ_H

#include "support/buf.h"
#include "support/vec.h"

typedef struct Seed {
    const char *text; /* ends with a zero byte */
    size_t      n;
} Seed;

typedef VEC(Seed) Seeds;

uint64_t fuzz_random(uint64_t *state);           /* splitmix64 */
size_t   fuzz_below(uint64_t *state, size_t n); /* 0 for n == 0 */

/* The modules of the files: tests hold several, cut at the lines "// -----" and "//--- NAME". Files above 1 MiB are left out. */
Seeds fuzz_seeds(Arena *a, int n_files, char *const *files);

/* b[at..at+cut) becomes add; what lies behind the end is cut off the request. */
void fuzz_splice(Buf *b, size_t at, size_t cut, const char *add, size_t n_add);

/* b becomes a target's new input, at most `most` bytes of it; their number. */
size_t fuzz_give(uint8_t *out, Buf *b, size_t most);

/* One change of HLO text (text/fuzz_mutate.c) that knows its grammar; other is where pieces are taken from, b's own text or another one. */
void fuzz_mutate(Buf *b, uint64_t *rng, const char *other, size_t n_other);

/* Written before a module is tried and removed after the last one, so that it stays when the process dies. */
void fuzz_keep(const char *path, const char *comment, const Buf *text);

#endif
