/* The fuzz target of the reading side: parse, verify, print, parse, print, parse, print; the last two must be the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/verify.h"
#include "text/fuzz.h"
#include "text/fuzz_target.h"
#include "text/parse.h"
#include "text/print.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    Buf text = {.p = (char *)(uintptr_t)p, .n = n};
    if (!check(&text))
        die("printing twice differs");
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most, unsigned seed)
{
    uint64_t rng = seed;
    Buf      b = {0};
    if (fuzz_below(&rng, 3) == 0)
        return LLVMFuzzerMutate(p, n, most);
    buf_put(&b, p, n);
    for (size_t k = 1 + fuzz_below(&rng, 3); k > 0; k--)
        fuzz_mutate(&b, &rng, (const char *)p, n);
    return fuzz_give(p, &b, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *p, size_t np, const uint8_t *q, size_t nq, uint8_t *out, size_t most, unsigned seed)
{
    uint64_t rng = seed;
    Buf      b = {0};
    buf_put(&b, p, np);
    fuzz_mutate(&b, &rng, (const char *)q, nq);
    return fuzz_give(out, &b, most);
}
