/* Every beginning of a module's text, and the text without each one of its bytes: read or refused, never more than that. What is read
 * prints as something that can be read. */
#include <stdlib.h>
#include <string.h>

#include "ir/verify.h"
#include "support/check.h"
#include "text/parse.h"
#include "text/print.h"

static const char module[] =
    "HloModule m, entry_computation_layout={(f32[2,3]{1,0}, s32[]{:T(2)})->(f32[2]{0}, pred[])}\n"
    "%add (a: f32[], b: f32[]) -> f32[] {\n"
    "  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%a, %b), metadata={op_name=\"jit(f)/add\" source_file=\"f.py\" source_line=7}\n"
    "}\n"
    "ENTRY %e (x: f32[2,3], n: s32[]) -> (f32[2], pred[]) {\n"
    "  %x = f32[2,3]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}\n"
    "  %n = s32[] parameter(1)\n"
    "  %c = f32[2,3] constant({ { 1, -2.5, nan }, { 0.125, inf, 3e2 } })\n"
    "  %d = f32[2,2] dot(%x, %c), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
    "  %z = f32[] constant(-0.0)\n"
    "  %p = f32[5,3] pad(%x, %z), padding=1_2x0_0\n"
    "  %w = f32[5,3] reduce-window(%p, %z), window={size=3x1 stride=1x1 pad=1_1x0_0}, to_apply=%add\n"
    "  %r = f32[2] reduce(%d, %z), dimensions={1}, to_apply=%add /* rows */\n"
    "  %g = pred[] compare(%n, s32[] %n), direction=GE, frontend_attributes={a=\"b\"}\n"
    "  ROOT %t = (f32[2]{0}, pred[]) tuple(%r, %g)\n"
    "}\n";

static Module *read_text(Arena *a, const char *text, size_t n, Diag *d)
{
    char *copy = malloc(n ? n : 1); /* of its exact size, so that a checker sees reads behind it */
    memcpy(copy, text, n);
    diag_init(d, a);
    diag_source(d, "damaged.hlo", copy, n);
    Module *m = parse_module(copy, n, d);
    bool    errors = d->errors > 0;
    CHECK(errors == !m); /* one or the other */
    free(copy);
    return m;
}

/* Whether it is a module; whatever it is, this returns. */
static bool survives(const char *text, size_t n)
{
    Arena       *a = arena_new();
    Diag         d;
    Buf          printed = { 0 };
    PrintOptions o = print_options_default();
    Module      *m = read_text(a, text, n, &d);
    if (m) {
        diag_source(&d, "damaged.hlo", text, n);
        verify_module(m, &d);
        m->changed = true;
        print_module(&printed, m, &o);
        Module *again = read_text(a, printed.p, printed.n, &d);
        CHECK(again != NULL);
        module_free(again);
    }
    module_free(m);
    buf_free(&printed);
    arena_free(a);
    return m != NULL;
}

int main(void)
{
    size_t n = sizeof module - 1;
    char   text[sizeof module];
    int    read = 0;
    CHECK(survives(module, n));
    for (size_t k = 0; k < n; k++)
        read += survives(module, k);
    CHECK(read == 3); /* without the last newline; the first computation alone, with and without its newline */
    for (size_t k = 0; k < n; k++) {
        memcpy(text, module, k);
        memcpy(text + k, module + k + 1, n - k - 1);
        read += survives(text, n - 1);
    }
    CHECK(read > 100 && read < (int)n); /* blanks can go, braces cannot */
    puts("ok damage");
    return 0;
}
