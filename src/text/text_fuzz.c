/* A fuzzer for the reading side: parse, verify, print, parse, print, parse, print; the last two must be the same bytes, nothing
 * may crash.
 *
 *   text_fuzz [SECONDS [SEED]] FILE...
 *
 * Inputs are the files, changed by a fixed generator: bytes flipped, lines removed, doubled or swapped, numbers replaced by
 * extreme ones, pieces spliced in from other files. The seed of a failure is printed with the module, which is kept as
 * fuzz-failure.hlo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/verify.h"
#include "text/fuzz.h"
#include "text/parse.h"
#include "text/print.h"

/* The line around position at: [*start, *end). */
static void line_around(const Buf *b, size_t at, size_t *start, size_t *end)
{
    *start = *end = at;
    while (*start > 0 && b->p[*start - 1] != '\n')
        --*start;
    while (*end < b->n && b->p[*end] != '\n')
        ++*end;
    *end += *end < b->n;
}

static void mutate(Buf *b, uint64_t *rng, const Seed *other)
{
    static const char *const extremes[] = {"0", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e999",
                                           "nan", "{", "}", "(", ")", ",", "f32[]", "{...}", "?", "<=4", "%x", "=", "\"", "/*"};
    size_t at = fuzz_below(rng, b->n), start, end;
    switch (fuzz_below(rng, 7)) {
    case 0:
        if (b->n)
            b->p[at] = (char)fuzz_random(rng);
        break;
    case 1: fuzz_splice(b, at, fuzz_below(rng, 20), "", 0); break;
    case 2: {
        const char *s = extremes[fuzz_below(rng, sizeof extremes / sizeof *extremes)];
        size_t      digits = strspn(b->p + at, "-0123456789");
        fuzz_splice(b, at, digits, s, strlen(s));
        break;
    }
    case 3:
        line_around(b, at, &start, &end);
        fuzz_splice(b, start, end - start, "", 0);
        break;
    case 4: {
        line_around(b, at, &start, &end);
        char *line = mem_alloc((int64_t)(end - start) + 1, 1);
        memcpy(line, b->p + start, end - start);
        fuzz_splice(b, fuzz_below(rng, 2) ? start : fuzz_below(rng, b->n), 0, line, end - start);
        mem_free(line);
        break;
    }
    case 5: {
        size_t from = fuzz_below(rng, other->n), n = fuzz_below(rng, 60);
        fuzz_splice(b, at, 0, other->text + from, n < other->n - from ? n : other->n - from);
        break;
    }
    default: fuzz_splice(b, at, b->n, "", 0); break; /* truncated */
    }
}

static Module *read_module(Arena *a, const Buf *text, Diag *d)
{
    diag_init(d, a);
    diag_source(d, "fuzz.hlo", text->p, text->n);
    return parse_module(text->p, text->n, d);
}

/* The module that m's print, which goes to text, reads back as; NULL when it does not: some text cannot be read. */
static Module *reread(Module *m, Buf *text, Diag *d, Arena *a)
{
    PrintOptions o = print_options_default();
    m->changed = true; /* -0 is printed so that it reads back */
    print_module(text, m, &o);
    return read_module(a, text, d);
}

/* False when printing what was printed gives other bytes. The first reading of a print may change it: some strings are taken for
 * something else, as in XLA (backend_config={a} // {b} ends before the comment). */
static bool check(const Buf *text)
{
    Arena  *a = arena_new();
    Buf     first = {0}, second = {0}, third = {0};
    Diag    d;
    Module *m = read_module(a, text, &d);
    if (m)
        verify_module(m, &d);
    Module *settled = m ? reread(m, &first, &d, a) : NULL;
    Module *again = settled ? reread(settled, &second, &d, a) : NULL;
    Module *last = again ? reread(again, &third, &d, a) : NULL;
    bool    ok = !again || (second.n == third.n && memcmp(second.p, third.p, third.n) == 0);
    module_free(m);
    module_free(settled);
    module_free(again);
    module_free(last);
    buf_free(&first);
    buf_free(&second);
    buf_free(&third);
    arena_free(a);
    return ok;
}

int main(int argc, char **argv)
{
    double   seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    Arena   *a = arena_new();
    Seeds    seeds = fuzz_seeds(a, argc > 3 ? argc - 3 : 0, argv + 3);
    if (!seeds.n) {
        fprintf(stderr, "usage: text_fuzz SECONDS SEED FILE...\n");
        return 2;
    }
    time_t   start = time(NULL);
    uint64_t runs = 0;
    for (uint64_t seed = first; difftime(time(NULL), start) < seconds; seed++, runs++) {
        uint64_t    rng = seed;
        const Seed *s = &seeds.v[fuzz_below(&rng, (size_t)seeds.n)];
        Buf         text = {0};
        buf_put(&text, s->text, s->n);
        for (size_t k = 1 + fuzz_below(&rng, 4); k > 0; k--)
            mutate(&text, &rng, &seeds.v[fuzz_below(&rng, (size_t)seeds.n)]);
        fuzz_keep("fuzz-failure.hlo", "", &text); /* stays when the next line crashes */
        if (!check(&text)) {
            printf("text_fuzz: seed %llu: printing twice differs; the module is in fuzz-failure.hlo\n", (unsigned long long)seed);
            buf_free(&text);
            arena_free(a);
            return 1;
        }
        buf_free(&text);
    }
    remove("fuzz-failure.hlo");
    printf("text_fuzz: %llu modules, no failure\n", (unsigned long long)runs);
    arena_free(a);
    return 0;
}
