/* A fuzzer for everything behind the parser: a random pipeline on a module must leave its results as they are, on made-up arguments and with
 * special values, bit for bit but for the payload of NaN; what it leaves must read back, verify, print the same twice, and go through the emitter.
 *
 *   pipeline_fuzz [SECONDS [SEED]] FILE...
 *
 * Modules are those of the files, most of them changed in ways that often leave them valid: an opcode for another one of its kind, a
 * number or an element type for another one everywhere, one operand for another, one value of a constant. Those that do not verify
 * are left alone. A failure stays in fuzz-failure.hlo, the pipeline in its first line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/check.h"
#include "emit/program.h"
#include "ir/shape.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "target-c/target_c.h"
#include "text/fuzz.h"
#include "text/parse.h"
#include "text/print.h"

enum { WORK = 4000000, MEMORY = 64 << 20, SECONDS_EACH = 60 };

/* ---- changing modules ---- */

/* Words of one row may stand for each other. */
static const char *const kinds[][14] = {
    {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "and", "or", "xor", "atan2"},
    {"negate", "abs", "exponential", "tanh", "sqrt", "sign", "floor", "not", "cosine", "copy", "log", "rsqrt", "logistic"},
    {"shift-left", "shift-right-logical", "shift-right-arithmetic", "multiply", "divide"},
    {"EQ", "NE", "LT", "LE", "GT", "GE"},
    {"f32", "bf16", "f16", "f64", "s32", "u32", "s8", "u8", "pred", "s64", "c64", "f8e4m3fn", "s4"},
    {"reshape", "bitcast", "copy"},
    {"true", "false"},
};
static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "8", "16"};
static const char *const values[] = {"0", "-0.0", "1", "-1", "2", "nan", "inf", "-inf", "0.5", "3", "127", "-128", "255", "1e-40"};

typedef struct Span {
    size_t at, n;
} Span;
typedef VEC(Span) Spans;

static bool in_word(char c)
{
    return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_number(const char *p, Span w)
{
    return w.n > 0 && strspn(p + w.at, "0123456789") >= w.n;
}

/* What stands behind the names' '%', too. Comments are kept out: nothing in them counts. */
static Spans words_of(Arena *a, const Buf *b)
{
    Spans words = {0};
    for (size_t k = 0; k < b->n;) {
        size_t n = 0;
        if (b->p[k] == '/' && k + 1 < b->n && b->p[k + 1] == '/')
            while (k < b->n && b->p[k] != '\n')
                k++;
        while (k + n < b->n && in_word(b->p[k + n]))
            n++;
        if (n)
            vec_push(a, &words, ((Span){k, n}));
        k += n ? n : 1;
    }
    return words;
}

static bool same_word(const Buf *b, Span w, const char *s)
{
    return strlen(s) == w.n && memcmp(b->p + w.at, s, w.n) == 0;
}

static void replace_word(Buf *b, Span w, const char *s)
{
    fuzz_splice(b, w.at, w.n, s, strlen(s));
}

/* From the last one on, so that places stay right. */
static void replace_everywhere(Buf *b, const Spans *words, const char *old, const char *new)
{
    for (int32_t k = words->n - 1; k >= 0; k--)
        if (same_word(b, words->v[k], old))
            replace_word(b, words->v[k], new);
}

static const char *other_of_kind(const Buf *b, Span w, uint64_t *rng)
{
    for (size_t row = 0; row < sizeof kinds / sizeof *kinds; row++) {
        size_t n = 0, found = SIZE_MAX;
        for (; n < sizeof *kinds / sizeof **kinds && kinds[row][n]; n++)
            if (same_word(b, w, kinds[row][n]))
                found = n;
        if (found != SIZE_MAX)
            return kinds[row][fuzz_below(rng, n)];
    }
    return NULL;
}

static bool is_defined(const Buf *b, Span w)
{
    return w.at + w.n + 2 < b->n && memcmp(b->p + w.at + w.n, " = ", 3) == 0;
}

static const char *text_of(Arena *a, const Buf *b, Span w)
{
    return arena_strndup(a, b->p + w.at, w.n);
}

static const char *any_name(Arena *a, const Buf *b, const Spans *words, uint64_t *rng)
{
    for (int tries = 0; tries < 50; tries++) {
        Span w = words->v[fuzz_below(rng, (size_t)words->n)];
        if (is_defined(b, w))
            return text_of(a, b, w);
    }
    return NULL;
}

/* One try; it may leave the text as it is. */
static void change(Arena *a, Buf *b, uint64_t *rng)
{
    Spans words = words_of(a, b);
    if (!words.n)
        return;
    Span        w = words.v[fuzz_below(rng, (size_t)words.n)];
    const char *other = other_of_kind(b, w, rng), *name;
    if (other && fuzz_below(rng, 2))
        replace_everywhere(b, &words, text_of(a, b, w), other);
    else if (other)
        replace_word(b, w, other);
    else if (is_number(b->p, w) && fuzz_below(rng, 2))
        replace_everywhere(b, &words, text_of(a, b, w), numbers[fuzz_below(rng, sizeof numbers / sizeof *numbers)]);
    else if (is_number(b->p, w))
        replace_word(b, w, values[fuzz_below(rng, sizeof values / sizeof *values)]);
    else if (!is_defined(b, w) && (name = any_name(a, b, &words, rng)))
        replace_word(b, w, name);
}

static void change_often(Arena *a, Buf *b, uint64_t *rng)
{
    if (fuzz_below(rng, 8) == 0)
        return;
    for (size_t k = 1 + fuzz_below(rng, 6); k > 0; k--)
        change(a, b, rng);
}

/* Results may be rounded otherwise, so that they cannot be held to the bits. */
static bool is_rounding(const char *pass)
{
    static const char *const names[] = {"simplify-fp-conversions", "logistic-expander", "batchnorm_expander", "float-normalization-bf16",
                                        "float-normalization-f8", "tree_reduction_rewriter", "all-reduce-promotion"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(pass, names[k]) == 0)
            return true;
    return false;
}

static const PassInfo *random_exact_pass(uint64_t *rng)
{
    for (;;) {
        const PassInfo *pass = &pass_table[fuzz_below(rng, (size_t)pass_count)];
        if (!is_rounding(pass->name))
            return pass;
    }
}

/* A level, its rules held to the bits for all values and without the stages that are not. */
static const char *exact_level(Arena *a, int level, const char *target)
{
    static const char finite[] = "algsimp{finite}", norms[] = "batchnorm_expander";
    Buf b = {0};
    for (const char *p = pipeline_for_level(level, target); *p;)
        if (strncmp(p, finite, sizeof finite - 1) == 0) {
            buf_puts(&b, "algsimp{exact}");
            p += sizeof finite - 1;
        } else if (strncmp(p, norms, sizeof norms - 1) == 0) {
            p = strchr(p, ',') + 1;
        } else {
            buf_putc(&b, *p++);
        }
    const char *text = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return text;
}

static const char *random_pipeline(Arena *a, uint64_t *rng)
{
    if (fuzz_below(rng, 3) == 0)
        return exact_level(a, 1 + (int)fuzz_below(rng, 2), fuzz_below(rng, 2) ? "cpu" : "cuda");
    const char *text = "";
    for (size_t n = 1 + fuzz_below(rng, 6); n > 0; n--) {
        const PassInfo *pass = random_exact_pass(rng);
        const char     *name = pass->name, *args = strstr(pass->options, "exact") ? "{exact}" : "";
        if (strcmp(name, "fusion") == 0 || strcmp(name, "constant_folding") == 0)
            args = fuzz_below(rng, 2) ? arena_printf(a, "{max=%d}", (int)fuzz_below(rng, 20)) : "";
        bool fix = fuzz_below(rng, 6) == 0;
        text = arena_printf(a, "%s%s%s%s%s%s", text, *text ? "," : "", fix ? "fix(" : "", name, args, fix ? ",dce)" : "");
    }
    return text;
}

/* ---- checks ---- */

static Module *read_module(const char *p, size_t n, Diag *d)
{
    diag_source(d, "fuzz.hlo", p, n);
    Module *m = parse_module(p, n, d);
    if (m && !verify_module(m, d)) {
        module_free(m);
        m = NULL;
    }
    return m;
}

/* NULL when the module is not for the evaluator, draws random numbers, or is too large. */
static Check *start_check(const Module *m, uint64_t seed, Arena *a)
{
    CheckOptions o = {.plain = true, .special = true, .exact = true, .seed = seed, .work = WORK, .memory = MEMORY};
    Diag         d;
    diag_init(&d, a);
    return check_begin(m, &o, &d);
}

/* The module that print reads back as, with its own print in text; NULL with a reason in *wrong. */
static Module *reread(Module *m, Buf *text, Arena *a, const char **wrong)
{
    PrintOptions o = print_options_default();
    Diag         d;
    diag_init(&d, a);
    m->changed = true; /* -0 is printed so that it reads back */
    print_module(text, m, &o);
    Module *again = read_module(text->p, text->n, &d);
    if (!again)
        *wrong = arena_printf(a, "what was printed does not read back: %s", d.first ? d.first->text : "");
    return again;
}

/* The first reading settles the order of computations, numbers stack frames and takes strings as XLA does; the second one changes nothing. */
static const char *check_settled(Module *once, Arena *a)
{
    Buf         first = {0}, second = {0};
    const char *wrong = NULL;
    Module     *twice = reread(once, &first, a, &wrong);
    Module     *thrice = twice ? reread(twice, &second, a, &wrong) : NULL;
    if (thrice && (first.n != second.n || memcmp(first.p, second.p, first.n) != 0))
        wrong = "printing twice differs";
    module_free(twice);
    module_free(thrice);
    buf_free(&first);
    buf_free(&second);
    return wrong;
}

static void emit(const Module *m, Arena *a)
{
    Diag           d;
    Buf            b = {0};
    TargetCOptions o = {0};
    diag_init(&d, a);
    const Program *p = program_plan(a, m, &(PlanOptions){ .name = "fuzz" }, &d);
    if (p && d.errors == 0) {
        target_c_main(&b, p, &o);
        target_c_header(&b, p);
    }
    buf_free(&b);
}

/* What was optimized, as a reader of the text has it. */
static const char *check_product(Module *m, Check *same, Arena *a)
{
    Buf         text = {0};
    const char *wrong = NULL;
    Module     *again = reread(m, &text, a, &wrong);
    Diag        d;
    diag_init(&d, a);
    if (again)
        wrong = check_settled(again, a);
    if (!wrong && same && !check_module(same, again, "the pipeline", &d))
        wrong = "results differ";
    if (!wrong)
        emit(again, a);
    diag_print(&d, stdout, false);
    module_free(again);
    buf_free(&text);
    return wrong;
}

/* What is wrong, or NULL. */
static const char *check(Module *m, const char *pipeline, uint64_t seed, Arena *a)
{
    PipelineOptions o = {.verify_each = true, .log = stdout};
    Check          *same = start_check(m, seed, a);
    Diag            d;
    diag_init(&d, a);
    const char *wrong = pipeline_run(m, pipeline, &o, &d) ? check_product(m, same, a) : "the pipeline fails";
    diag_print(&d, stdout, false);
    check_end(same);
    return wrong;
}

typedef struct Count {
    uint64_t runs, valid;
} Count;

static bool try_one(uint64_t seed, const Seeds *seeds, Count *count)
{
    static const char file[] = "fuzz-failure.hlo";
    uint64_t          rng = seed;
    Arena            *a = arena_new();
    const Seed       *s = &seeds->v[fuzz_below(&rng, (size_t)seeds->n)];
    Buf               text = {0};
    Diag              d;
    const char       *wrong = NULL;
    buf_put(&text, s->text, s->n);
    change_often(a, &text, &rng);
    const char *pipeline = random_pipeline(a, &rng);
    fuzz_keep(file, arena_printf(a, "// seed %llu: hlo-opt --passes='%s'\n", (unsigned long long)seed, pipeline), &text);
    alarm(SECONDS_EACH); /* what hangs dies, and the module stays */
    diag_init(&d, a);
    Module *m = read_module(text.p, text.n, &d);
    count->runs++;
    if (m) {
        count->valid++;
        wrong = check(m, pipeline, seed, a);
        module_free(m);
    }
    if (wrong)
        printf("pipeline_fuzz: seed %llu: %s; the module is in %s\n", (unsigned long long)seed, wrong, file);
    else
        remove(file);
    buf_free(&text);
    arena_free(a);
    return !wrong;
}

int main(int argc, char **argv)
{
    double   seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    Arena   *a = arena_new();
    Seeds    seeds = fuzz_seeds(a, argc > 3 ? argc - 3 : 0, argv + 3);
    Count    count = {0};
    bool     good = true;
    if (!seeds.n) {
        fprintf(stderr, "usage: pipeline_fuzz SECONDS SEED FILE...\n");
        return 2;
    }
    for (time_t start = time(NULL); good && difftime(time(NULL), start) < seconds; seed++)
        good = try_one(seed, &seeds, &count);
    if (good)
        printf("pipeline_fuzz: %llu modules, %llu of them valid, no failure\n", (unsigned long long)count.runs, (unsigned long long)count.valid);
    arena_free(a);
    return !good;
}
