/* A fuzzer with random modules: what holds of every legal module is tried on them.
 *
 *   module_fuzz [COUNT [SEED [SECONDS [no-code]]]]     COUNT modules from SEED on, as far as SECONDS (0: no limit) allow
 *
 *   reading     the text is legal; what is printed reads back and prints the same
 *   passes      each pass alone and each level leave the results as they are, bit for bit but for the payload of NaN; what was
 *               optimized verifies, reads back, and optimizing it again ends
 *   code        the emitted program compiles without a warning and computes what the evaluator does, as it stands and optimized;
 *               under -fsanitize=address,undefined, too
 *
 * Each module is tried in a process of its own, so that one that kills it is one failure. The module stays in random-SEED.hlo, the
 * arguments in random-SEED.npz. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data/fill.h"
#include "data/npz.h"
#include "driver/process.h"
#include "driver/random_module.h"
#include "driver/signature.h"
#include "emit/program.h"
#include "eval/eval.h"
#include "ir/canon.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "target-c/target_c.h"
#include "text/fuzz.h"
#include "text/parse.h"
#include "text/print.h"

enum { WORK = 20000000, MEMORY = 64 << 20, SECONDS_EACH = 120 };

typedef struct Trial {
    Arena       *a;
    uint64_t     seed;
    RandomModule random;
    const char  *folder; /* for what is compiled; NULL: nothing is */
    Literal    **args;
    int32_t      n_args;
    Literal     *expected;
} Trial;

static int failed(const Trial *t, const char *what, Diag *d)
{
    printf("module_fuzz: seed %llu: %s\n", (unsigned long long)t->seed, what);
    if (d)
        diag_print(d, stdout, false);
    return 1;
}

/* ---- modules and values ---- */

static Module *read_module(const char *p, size_t n, Diag *d)
{
    diag_source(d, "random.hlo", p, n);
    Module *m = parse_module(p, n, d);
    if (m)
        module_settle_order(m); /* else it is XLA's, which its own print may change */
    return m && verify_module(m, d) ? m : NULL;
}

static Literal *evaluate(const Trial *t, const Module *m, Diag *d)
{
    EvalOptions o = { .work_limit = WORK, .memory_limit = MEMORY };
    return eval_supported(m, d) ? eval_module(m, t->n_args, t->args, &o, d) : NULL;
}

typedef VEC(const Literal *) Leaves;

static void add_leaves(Arena *a, Leaves *leaves, const Literal *l)
{
    if (l->type != TYPE_TUPLE)
        vec_push(a, leaves, l);
    for (int32_t k = 0; k < l->n_elems; k++)
        add_leaves(a, leaves, l->elems[k]);
}

/* exact: NaN alone has a payload that may change; else as the leaf says. */
static bool same_number(double x, double y, bool exact, const RandomLeaf *leaf)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (!exact && leaf->error > 0)
        return fabs(x - y) <= leaf->error * 2;
    return x == y && (signbit(x) == signbit(y) || (!exact && leaf->vague));
}

static bool same_array(const Literal *x, const Literal *y, bool exact, const RandomLeaf *leaf)
{
    if (literal_equal(x, y))
        return true;
    if (x->type != y->type || x->count != y->count || (!type_is_float(x->type) && !type_is_complex(x->type)))
        return false;
    for (int64_t k = 0; k < x->count; k++)
        if (!same_number(literal_get_f64(x, k), literal_get_f64(y, k), exact, leaf) ||
            !same_number(literal_get_imag(x, k), literal_get_imag(y, k), exact, leaf))
            return false;
    return true;
}

static int compare_leaf(const Trial *t, const char *what, int32_t k, const Literal *actual, const Literal *expected, bool exact)
{
    if (same_array(actual, expected, exact, &t->random.leaves[k]))
        return 0;
    Buf b = { 0 };
    for (int64_t e = 0; e < expected->count && e < actual->count; e++)
        if (!same_number(literal_get_f64(actual, e), literal_get_f64(expected, e), exact, &t->random.leaves[k])) {
            buf_printf(&b, ", element %lld is %.17g, expected %.17g", (long long)e, literal_get_f64(actual, e), literal_get_f64(expected, e));
            break;
        }
    buf_putc(&b, '\0');
    failed(t, arena_printf(t->a, "%s: result %d differs%s", what, k, b.p), NULL);
    buf_free(&b);
    return 1;
}

/* A value in four becomes one that arithmetic treats in a way of its own. */
static void put_specials(Literal *l, uint64_t seed)
{
    static const double specials[] = { NAN, INFINITY, -INFINITY, -0.0, 0, 1e-40, -3e38, 1e6 };
    for (int32_t k = 0; k < l->n_elems; k++)
        put_specials(l->elems[k], fill_hash(seed, (uint64_t)k));
    for (int64_t k = 0; (type_is_float(l->type) || type_is_complex(l->type)) && k < l->count; k++) {
        uint64_t h = fill_hash(seed, (uint64_t)k);
        if (h % 4 == 0)
            literal_set_f64(l, k, specials[h / 4 % 8], specials[h / 32 % 8]);
    }
}

/* ---- reading and passes ---- */

static Module *reread(Module *m, Buf *text, Arena *a, Diag *d)
{
    PrintOptions o = print_options_default();
    m->changed = true; /* -0 is printed so that it reads back */
    print_module(text, m, &o);
    return read_module(arena_strndup(a, text->p, text->n), text->n, d);
}

/* settled: m was read by read_module, which puts computations in their order; passes need not keep it. */
static int check_text(const Trial *t, const char *what, Module *m, bool settled)
{
    Diag d;
    Buf  unsettled = { 0 }, first = { 0 }, second = { 0 };
    diag_init(&d, t->a);
    Module *once = settled ? m : reread(m, &unsettled, t->a, &d), *twice = once ? reread(once, &first, t->a, &d) : NULL;
    Module *thrice = twice ? reread(twice, &second, t->a, &d) : NULL;
    int     bad = 0;
    if (!thrice)
        bad = failed(t, arena_printf(t->a, "%s: what was printed does not read back", what), &d);
    else if (first.n != second.n || memcmp(first.p, second.p, first.n) != 0)
        bad = failed(t, arena_printf(t->a, "%s: printing twice differs", what), NULL);
    buf_free(&unsettled);
    buf_free(&first);
    buf_free(&second);
    return bad;
}

static int check_values(const Trial *t, const char *what, const Module *m)
{
    Diag d;
    diag_init(&d, t->a);
    Literal *actual = evaluate(t, m, &d);
    Leaves   x = { 0 }, y = { 0 };
    int      bad = 0;
    if (!actual)
        return failed(t, arena_printf(t->a, "%s: what was optimized does not evaluate", what), &d);
    add_leaves(t->a, &x, actual);
    add_leaves(t->a, &y, t->expected);
    for (int32_t k = 0; k < x.n && !bad; k++)
        bad = compare_leaf(t, what, k, x.v[k], y.v[k], true);
    literal_unref(actual);
    return bad;
}

/* m becomes what the pipeline makes of it. */
static int run_passes(const Trial *t, Module *m, const char *pipeline)
{
    PipelineOptions o = { .verify_each = true, .log = stdout };
    Diag            d;
    diag_init(&d, t->a);
    return pipeline_run(m, pipeline, &o, &d) ? 0 : failed(t, pipeline, &d);
}

/* exact: every bit of the results stays. */
static int check_pipeline(const Trial *t, const Module *m, const char *pipeline, bool exact)
{
    Module *x = module_clone(m);
    int     bad = run_passes(t, x, pipeline) || (exact && check_values(t, pipeline, x)) || check_text(t, pipeline, x, false);
    bad = bad || run_passes(t, x, pipeline) || (exact && check_values(t, pipeline, x)); /* a second time */
    module_free(x);
    return bad;
}

/* It leaves roundings out, or rounds in each step. */
static bool rounds_otherwise(const char *pass)
{
    return strcmp(pass, "simplify-fp-conversions") == 0 || strcmp(pass, "logistic-expander") == 0;
}

/* Without its rules that round otherwise, where it has a parameter for that. */
static const char *exact_pass(const Trial *t, int k)
{
    const char *name = pass_table[k].name;
    return strstr(arena_printf(t->a, ",%s,", pass_table[k].options), ",exact,") ? arena_printf(t->a, "%s{exact}", name) : name;
}

static int check_passes(const Trial *t, const Module *m)
{
    int bad = 0;
    for (int k = 0; k < pass_count; k++)
        bad += check_pipeline(t, m, exact_pass(t, k), !rounds_otherwise(pass_table[k].name));
    for (int level = 1; level <= 2; level++)
        bad += check_pipeline(t, m, pipeline_for_level(level, "cpu"), true);
    return bad;
}

/* ---- code ---- */

static bool write_text(const Trial *t, const char *name, const Buf *b)
{
    return buf_write_file(b, arena_printf(t->a, "%s/%s", t->folder, name));
}

static int compile(const Trial *t, const char *what, const char *cc, const char *const *flags)
{
    const char *argv[24] = { cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas" };
    int         n = 6;
    Buf         said = { 0 };
    while (*flags)
        argv[n++] = *flags++;
    static const char *const rest[] = { "-o", "prog", "prog.c", "-lm" };
    for (int k = 0; k < 4; k++)
        argv[n++] = rest[k];
    int status = program_run(argv, t->folder, &said);
    int bad = status ? failed(t, arena_printf(t->a, "%s: %s: %.*s", what, cc, (int)(said.n < 1500 ? said.n : 1500), said.p ? said.p : ""), NULL) : 0;
    buf_free(&said);
    return bad;
}

static int check_outputs(const Trial *t, const char *what, const Signature *s)
{
    Diag d;
    int  bad = 0;
    diag_init(&d, t->a);
    Leaves           expected = { 0 };
    const ArrayFile *file = array_file_read(t->a, arena_printf(t->a, "%s/out.npz", t->folder), ARRAY_ANY, &d);
    add_leaves(t->a, &expected, t->expected);
    for (int32_t k = 0; file && k < s->n_results && !bad; k++) {
        const NpyArray *x = array_file_find(file, arena_printf(t->a, "out%d", k));
        Literal        *l = x ? literal_from_array(x, s->results[k].shape, "result", &d) : NULL;
        bad = l ? compare_leaf(t, what, k, l, expected.v[k], false) : failed(t, arena_printf(t->a, "%s: result %d is missing", what, k), &d);
        literal_unref(l);
    }
    return file ? bad : failed(t, what, &d);
}

static int run_program(const Trial *t, const char *what, const Signature *s)
{
    Buf               said = { 0 };
    const char *const argv[] = { arena_printf(t->a, "%s/prog", t->folder), "--inputs=args.npz", "--outputs=out.npz", NULL };
    int               status = program_run(argv, t->folder, &said);
    int bad = status ? failed(t, arena_printf(t->a, "%s: exit status %d: %.*s", what, status, (int)(said.n < 1500 ? said.n : 1500), said.p ? said.p : ""), NULL) : 0;
    buf_free(&said);
    return bad || check_outputs(t, what, s);
}

static int check_code(const Trial *t, const Module *m, const char *what, const char *cc, const char *const *flags)
{
    Diag           d;
    Buf            text = { 0 };
    TargetCOptions o = { 0 };
    diag_init(&d, t->a);
    Program   *p = program_plan(t->a, m, &(PlanOptions){ .name = "prog" }, &d);
    Signature *s = signature_of(t->a, m, &d);
    if (!p || !s)
        return failed(t, arena_printf(t->a, "%s: it cannot be emitted", what), &d);
    target_c_main(&text, p, &o);
    int bad = !write_text(t, "prog.c", &text) || compile(t, what, cc, flags) || run_program(t, what, s);
    buf_free(&text);
    return bad;
}

static bool write_arguments(const Trial *t, const char *path)
{
    Leaves leaves = { 0 };
    Diag   d;
    diag_init(&d, t->a);
    for (int32_t k = 0; k < t->n_args; k++)
        add_leaves(t->a, &leaves, t->args[k]);
    const char **names = ARENA_ARRAY(t->a, const char *, leaves.n + 1);
    for (int32_t k = 0; k < leaves.n; k++)
        names[k] = arena_printf(t->a, "arg%d", k);
    return array_file_write(t->a, path, leaves.n, names, (Literal *const *)leaves.v, &d);
}

/* Every seed has its compiler and its flags: with all of them on each module there would be time for few modules. */
static int check_compiled(const Trial *t, Module *m)
{
    static const char *const plain[] = { "-O0", NULL }, *const fast[] = { "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", NULL };
    static const char *const careful[] = { "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", NULL };
    static const char *const *const flags[] = { plain, plain, careful, plain, plain, fast, careful, plain };
    const char *clang = program_find(t->a, "clang-14"), *cc = program_find(t->a, HLO_CC);
    uint64_t    pick = t->seed;
    if (!write_arguments(t, arena_printf(t->a, "%s/args.npz", t->folder)))
        return failed(t, "the folder cannot be written", NULL);
    int     bad = check_code(t, m, "code", clang && pick % 3 == 0 ? clang : cc, flags[pick % 8]);
    Module *x = module_clone(m);
    bad += run_passes(t, x, pipeline_for_level(2, "cpu")) ||
           check_code(t, x, "code of -O2", clang && pick % 3 == 1 ? clang : cc, flags[(pick + pick / 8 + 2) % 8]);
    module_free(x);
    return bad;
}

/* ---- trials ---- */

static int check(Trial *t, Module *m)
{
    Diag d;
    diag_init(&d, t->a);
    t->n_args = m->entry->n_params;
    t->args = ARENA_ARRAY(t->a, Literal *, t->n_args + 1);
    if (!fake_arguments(m, t->seed, NULL, t->args, &d))
        return failed(t, "no arguments", &d);
    for (int32_t k = 0; t->random.specials && k < t->n_args; k++)
        put_specials(t->args[k], t->seed + (uint64_t)k);
    t->expected = evaluate(t, m, &d);
    if (!t->expected)
        return failed(t, "it does not evaluate", &d);
    int bad = check_text(t, "text", m, true) + check_passes(t, m) + (t->folder ? check_compiled(t, m) : 0);
    if (bad)
        write_arguments(t, arena_printf(t->a, "random-%llu.npz", (unsigned long long)t->seed));
    return bad;
}

/* Small ones mostly: they are quick to try and easy to understand. */
static int32_t size_of(uint64_t seed)
{
    uint64_t state = seed;
    size_t   kind = fuzz_below(&state, 20);
    return (int32_t)(10 + fuzz_below(&state, kind < 12 ? 30 : kind < 19 ? 120 : 800));
}

static int try_one(uint64_t seed, const char *folder)
{
    Trial t = { .a = arena_new(), .seed = seed, .folder = folder };
    Diag  d;
    diag_init(&d, t.a);
    alarm(SECONDS_EACH);
    t.random = random_module(t.a, seed, size_of(seed));
    const char *file = arena_printf(t.a, "random-%llu.hlo", (unsigned long long)seed);
    Buf         text = { 0 };
    buf_put(&text, t.random.text, t.random.n);
    fuzz_keep(file, "", &text);
    Module *m = read_module(t.random.text, t.random.n, &d);
    int     bad = m ? check(&t, m) : failed(&t, "it is not legal", &d);
    if (!bad)
        remove(file);
    return bad != 0;
}

static bool try_in_child(uint64_t seed, const char *folder)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int bad = try_one(seed, folder);
        fflush(stdout);
        _exit(bad);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (WIFSIGNALED(status))
        printf("module_fuzz: seed %llu: signal %d\n", (unsigned long long)seed, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    static const char *const files[] = { "prog.c", "prog", "args.npz", "out.npz" };
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 24, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, bad = 0, k = 0;
    double   seconds = argc > 3 ? atof(argv[3]) : 0;
    Arena   *a = arena_new();
    char    *folder = arena_printf(a, "%s/module_fuzz.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 2;
    }
    for (time_t start = time(NULL); k < count && (seconds <= 0 || difftime(time(NULL), start) < seconds); k++)
        bad += !try_in_child(seed + k, argc > 4 ? NULL : folder);
    printf("module_fuzz: %llu modules, %llu failed\n", (unsigned long long)k, (unsigned long long)bad);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        remove(arena_printf(a, "%s/%s", folder, files[f]));
    rmdir(folder);
    arena_free(a);
    return bad != 0;
}
