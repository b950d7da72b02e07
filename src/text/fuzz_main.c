/* A main for fuzz targets without libFuzzer: no coverage guides it, else it does the same.
 *
 *   TARGET [SECONDS [SEED]] FILE...
 *
 * Every file is tried as it is, then changed ones until the time is over (0 seconds: none). Input k follows from SEED + k alone. What a
 * target dies of stays in fuzz-failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/fuzz.h"
#include "text/fuzz_target.h"

#pragma weak LLVMFuzzerCustomMutator
#pragma weak LLVMFuzzerCustomCrossOver

enum { MOST = 1 << 16 };
static const char failure[] = "fuzz-failure";

/* libFuzzer's own way to change bytes; its state is a bare number, which starts anew for each input. */
static uint64_t mutate_state;

size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t most)
{
    static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
    uint64_t *rng = &mutate_state;
    size_t    at = fuzz_below(rng, n), run = 1 + fuzz_below(rng, 8);
    switch (fuzz_below(rng, 4)) {
    case 0:
        if (n)
            p[at] = (uint8_t)fuzz_random(rng);
        return n;
    case 1:
        if (n)
            p[at] = odd[fuzz_below(rng, sizeof odd)];
        return n;
    case 2: /* a run removed */
        run = run < n - at ? run : n - at;
        memmove(p + at, p + at + run, n - at - run);
        return n - run;
    default: /* a run doubled */
        run = run < n - at ? run : n - at;
        if (n + run > most)
            return n;
        memmove(p + at + run, p + at, n - at);
        return n + run;
    }
}

static void try_input(const uint8_t *p, size_t n)
{
    Buf      kept = { 0 };
    uint8_t *exact = malloc(n ? n : 1); /* so that a checker sees reads behind it */
    if (n)
        memcpy(exact, p, n);
    buf_put(&kept, p, n);
    fuzz_keep(failure, "", &kept);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    buf_free(&kept);
}

static void try_changed(const Seed *s, const Seed *other, uint64_t rng)
{
    static uint8_t from[MOST], to[MOST];
    size_t         n = s->n < MOST ? s->n : MOST;
    memcpy(from, s->text, n);
    mutate_state = fuzz_random(&rng);
    if (LLVMFuzzerCustomCrossOver && fuzz_below(&rng, 3) == 0) {
        n = LLVMFuzzerCustomCrossOver(from, n, (const uint8_t *)other->text, other->n, to, MOST, (unsigned)fuzz_random(&rng));
        memcpy(from, to, n);
    }
    for (size_t k = 1 + fuzz_below(&rng, 4); k > 0; k--)
        n = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(from, n, MOST, (unsigned)fuzz_random(&rng)) : LLVMFuzzerMutate(from, n, MOST);
    try_input(from, n);
}

static Seeds read_files(Arena *a, int n, char **files)
{
    Seeds seeds = { 0 };
    for (int k = 0; k < n; k++) {
        Buf b = { 0 };
        if (buf_read_file(&b, files[k]))
            vec_push(a, &seeds, ((Seed){ arena_copy(a, b.p ? b.p : "", b.n), b.n }));
        buf_free(&b);
    }
    return seeds;
}

int main(int argc, char **argv)
{
    double   seconds = argc > 1 ? atof(argv[1]) : 0;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, runs = 0;
    Arena   *a = arena_new();
    Seeds    seeds = read_files(a, argc > 3 ? argc - 3 : 0, argv + 3);
    if (!seeds.n) {
        fprintf(stderr, "usage: %s SECONDS SEED FILE...\n", argv[0]);
        return 2;
    }
    time_t start = time(NULL);
    for (int32_t k = 0; k < seeds.n; k++)
        try_input((const uint8_t *)seeds.v[k].text, seeds.v[k].n);
    for (; difftime(time(NULL), start) < seconds; runs++) {
        uint64_t    rng = first + runs;
        const Seed *s = &seeds.v[fuzz_below(&rng, (size_t)seeds.n)], *other = &seeds.v[fuzz_below(&rng, (size_t)seeds.n)];
        try_changed(s, other, fuzz_random(&rng));
    }
    remove(failure);
    printf("%s: %d files, %llu changed ones, no failure\n", argv[0], (int)seeds.n, (unsigned long long)runs);
    arena_free(a);
    return 0;
}
