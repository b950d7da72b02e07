/* The parser through its interface: what a module looks like after reading, and that damaged text is an error, never a crash. */
#include <string.h>

#include "support/check.h"
#include "text/parse.h"
#include "text/print.h"

static const char sample[] =
    "HloModule sample, input_output_alias={ {1}: (0, {}) }\n"
    "\n"
    "%sum (a: f32[], b: f32[]) -> f32[] {\n"
    "  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%a, %b)\n"
    "}\n"
    "\n"
    "ENTRY %main (x: f32[2,3]) -> (f32[2], f32[2,3]) {\n"
    "  %x = f32[2,3]{1,0:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name=\"a\\tb\" source_line=3}\n"
    "  %c = f32[2,3]{1,0} constant({ { 1, -2.5, nan }, { inf, 3e2, -0.0 } })\n"
    "  %w = f32[2,3]{1,0} reduce-window(%x, f32[] constant(0)), window={size=1x2 pad=0_0x1_0}, to_apply=%sum\n"
    "  %r = f32[2]{0} reduce(%w, f32[] constant(0)), dimensions={1}, to_apply=%sum, backend_config={\"k\": [1]}\n"
    "  ROOT %t = (f32[2]{0}, f32[2,3]{1,0}) tuple(%r, /*index=1*/%c), frontend_attributes={m={x}}\n"
    "}\n";

static Module *read_text(const char *text, size_t n, int *errors)
{
    Arena *a = arena_new();
    Diag   d;
    diag_init(&d, a);
    diag_source(&d, "test", text, n);
    Module *m = parse_module(text, n, &d);
    CHECK((m == NULL) == (d.errors > 0));
    *errors = d.errors;
    arena_free(a);
    return m;
}

static void test_module(void)
{
    int     errors;
    Module *m = read_text(sample, sizeof sample - 1, &errors);
    CHECK(m && strcmp(m->name, "sample") == 0 && m->n_comps == 2);
    CHECK(strcmp(m->first->name, "sum") == 0 && m->entry == m->last);
    CHECK(m->entry->n_params == 1 && m->entry->params[0]->op == OP_PARAMETER);
    CHECK(m->n_aliases == 1 && m->aliases[0].kind == ALIAS_MAY && m->entry_params->n == 1);
    CHECK(m->entry->root->op == OP_TUPLE && m->entry->root->n_operands == 2);
    const Inst *r = inst_operand(m->entry->root, 0), *c = inst_operand(m->entry->root, 1);
    CHECK(r->op == OP_REDUCE && r->n_callees == 1 && r->callees[0] == m->first && inst_ints(r, ATTR_DIMENSIONS).v[0] == 1);
    CHECK(strcmp(inst_string(r, ATTR_BACKEND_CONFIG), "{\"k\": [1]}") == 0);
    CHECK(inst_window(inst_operand(r, 0))->v[1].pad_lo == 1);
    CHECK(literal_get_f64(c->literal, 1) == -2.5 && __builtin_signbit(literal_get_f64(c->literal, 5)));
    CHECK(strcmp(m->entry->params[0]->meta->op_name, "a\tb") == 0);
    CHECK(m->entry->params[0]->shape->layout->n_tiles == 1);
    for (const Comp *k = m->first; k; k = k->next) /* operands before their users */
        for (Inst *i = k->first; i; i = i->next) {
            i->mark = 1;
            for (int32_t j = 0; j < i->n_operands; j++)
                CHECK(inst_operand(i, j)->mark == 1);
        }
    module_free(m);
    puts("ok module");
}

/* What was printed reads back to the same print; in a changed module -0.0 keeps its sign. */
static void test_round_trip(void)
{
    int          errors;
    Module      *m = read_text(sample, sizeof sample - 1, &errors);
    PrintOptions o = print_options_default();
    Buf          once = {0}, twice = {0};
    m->changed = true;
    print_module(&once, m, &o);
    module_free(m);
    m = read_text(once.p, once.n, &errors);
    CHECK(m);
    m->changed = true;
    print_module(&twice, m, &o);
    CHECK(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0);
    module_free(m);
    buf_free(&once);
    buf_free(&twice);
    puts("ok round trip");
}

/* Any prefix and any changed byte: a module or an error. */
static void test_damage(void)
{
    static const char bytes[] = {'\0', '{', ')', '"', '\xff', '9'};
    char              text[sizeof sample];
    int               errors, accepted = 0;
    for (size_t n = 0; n < sizeof sample; n++)
        module_free(read_text(sample, n, &errors));
    for (size_t at = 0; at < sizeof sample - 1; at++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            memcpy(text, sample, sizeof sample);
            text[at] = bytes[k];
            Module *m = read_text(text, sizeof sample - 1, &errors);
            accepted += m != NULL;
            module_free(m);
        }
    CHECK(accepted > 0); /* inside strings, names and comments */
    static const char *const ends[] = {"ENTRY m { p = f32[] parameter(0), metadata ",
                                       "ENTRY m { p = f32[] parameter(0), x=", "HloModule f32"};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) { /* in blocks of their own, so that reading past the end shows */
        size_t n = strlen(ends[k]);
        char  *exact = mem_alloc((int64_t)n, 1);
        memcpy(exact, ends[k], n);
        CHECK(!read_text(exact, n, &errors));
        mem_free(exact);
    }
    puts("ok damage");
}

/* prefix, n times open, middle, n times close, suffix. */
static Buf nested(const char *prefix, const char *open, const char *middle, const char *close, const char *suffix, int n)
{
    Buf b = {0};
    buf_puts(&b, prefix);
    for (int k = 0; k < n; k++)
        buf_puts(&b, open);
    buf_puts(&b, middle);
    for (int k = 0; k < n; k++)
        buf_puts(&b, close);
    buf_puts(&b, suffix);
    return b;
}

static bool accepts(Buf b)
{
    int     errors;
    Module *m = read_text(b.p, b.n, &errors);
    module_free(m);
    buf_free(&b);
    return m != NULL;
}

static void test_nesting(void)
{
    CHECK(accepts(nested("ENTRY m { ROOT p = ", "(", "f32[]", ")", " parameter(0) }", 4000)));
    CHECK(!accepts(nested("ENTRY m { ROOT p = ", "(", "f32[]", ")", " parameter(0) }", 9000)));
    CHECK(accepts(nested("ENTRY m { p = f32[] parameter(0) ROOT r = ", "negate(", "p", ")", " }", 4000)));
    CHECK(!accepts(nested("ENTRY m { p = f32[] parameter(0) ROOT r = ", "negate(", "p", ")", " }", 100000)));
    CHECK(!accepts(nested("ENTRY m { ROOT r = f32[] constant(", "{", "1", "}", ") }", 100000)));
    CHECK(accepts(nested("ENTRY m { ROOT p = f32[] parameter(0), backend_config={", "{", "", "}", "} }", 100000)));
    CHECK(accepts(nested("ENTRY m { p = f32[] parameter(0) ROOT r = ",
                         "call(p), to_apply={ p = f32[] parameter(0) ROOT r = ", "negate(p)", " }", " }", 1000)));
    puts("ok nesting");
}

/* After 20 errors the parser stops looking. */
static void test_limit(void)
{
    Buf b = {0};
    int errors;
    buf_puts(&b, "ENTRY m {\n");
    for (int k = 0; k < 1000; k++)
        buf_printf(&b, "  a%d = f32[] negate(x)\n", k);
    buf_puts(&b, "}\n");
    CHECK(!read_text(b.p, b.n, &errors) && errors >= 20 && errors < 30);
    buf_free(&b);
    puts("ok limit");
}

int main(void)
{
    test_module();
    test_round_trip();
    test_damage();
    test_nesting();
    test_limit();
    return 0;
}
