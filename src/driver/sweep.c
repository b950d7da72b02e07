/* make sweep: cases to sheets, sheets to compiled code, results to verdicts.
 *
 *   sweep [--all] [--cc=COMPILER] [OPCODE...]      without --all a sample of every opcode's cases
 *
 * A sheet runs in a process of its own, as it stands and optimized; when that process dies, its cases run one by one, so that the
 * guilty one is known. A case that differs stays as a module in sweep-failures/, its arguments as constants. */
#include "config.h"

#include "driver/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/compare.h"
#include "data/fill.h"
#include "driver/driver.h"
#include "driver/inputs.h"
#include "emit/program.h"
#include "eval/eval.h"
#include "ir/numeric.h"
#include "ir/shape.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "text/parse.h"

enum { CASES_EACH = 48, SECONDS_EACH = 600, SAMPLE = 26, DIFFERENCES = 4 };

typedef enum Outcome { AGREES, DIFFERS, DIES } Outcome;

typedef struct OpCount {
    int agree, differ, refused, invalid;
} OpCount;

struct Sweep {
    Arena *arena;       /* of the cases of a sheet */
    const char *cc;     /* the C compiler, NULL for the usual one */
    bool all, met;      /* met: this opcode had a case that is valid */
    int next_id, of_op; /* of_op: cases of this opcode so far */
    VEC(Case *) sheet;
    OpCount count[OP_COUNT];
    int problems;
};

/* ---- cases as text ---- */

static void put_parameters(Buf *b, const Case *c, int32_t *next, bool constants)
{
    for (int32_t k = 0; k < c->params.n; k++)
        if (!constants) {
            buf_printf(b, "  %s = %s parameter(%d)\n", c->params.v[k].name, c->params.v[k].shape, (*next)++);
        } else {
            buf_printf(b, "  %s = %s constant(", c->params.v[k].name, c->params.v[k].shape);
            literal_print(b, c->args[k], true);
            buf_puts(b, ")\n");
        }
}

/* The module of some cases: a tuple of their roots, or the one root. */
static void put_module(Buf *b, int32_t n, Case *const *cases, bool constants)
{
    int32_t next = 0;
    buf_puts(b, "HloModule sweep\n\n");
    for (int32_t k = 0; k < n; k++)
        buf_put(b, cases[k]->comps.p, cases[k]->comps.n);
    buf_puts(b, "ENTRY %main {\n");
    for (int32_t k = 0; k < n; k++) {
        put_parameters(b, cases[k], &next, constants);
        buf_put(b, cases[k]->body.p, cases[k]->body.n);
        buf_printf(b, "  %s%%c%d.root = %s\n", n == 1 ? "ROOT " : "", cases[k]->id, cases[k]->root);
    }
    if (n > 1)
        buf_puts(b, "  ROOT %all = tuple(");
    for (int32_t k = 0; n > 1 && k < n; k++)
        buf_printf(b, "%s%%c%d.root", k ? ", " : "", cases[k]->id);
    buf_puts(b, n > 1 ? ")\n}\n" : "}\n");
}

static Module *read_cases(int32_t n, Case *const *cases, Diag *d)
{
    Buf b = {0};
    put_module(&b, n, cases, false);
    const char *text = arena_strndup(d->arena, b.p, b.n);
    diag_source(d, "sweep.hlo", text, b.n);
    Module *m = parse_module(text, b.n, d);
    buf_free(&b);
    if (m && !verify_module(m, d)) {
        module_free(m);
        m = NULL;
    }
    return m;
}

/* ---- building a case ---- */

/* In a sample: the first one that is valid, and some of the others. */
static bool is_wanted(const Sweep *s)
{
    return s->all || !s->met || fill_hash(17, (uint64_t)s->of_op) % SAMPLE == 0;
}

Case *sweep_case(Sweep *s, Op op)
{
    s->next_id++;
    s->of_op++;
    if (!is_wanted(s))
        return NULL;
    Case *c = ARENA_NEW(s->arena, Case);
    c->sweep = s;
    c->id = s->next_id;
    c->op = op;
    return c;
}

const char *case_param(Case *c, Values v, const char *shape, ...)
{
    if (!c)
        return NULL;
    Arena *a = c->sweep->arena;
    va_list ap;
    va_start(ap, shape);
    CaseParam p = {arena_printf(a, "%%c%d.p%d", c->id, (int)c->params.n), arena_vprintf(a, shape, ap), v};
    va_end(ap);
    vec_push(a, &c->params, p);
    return p.name;
}

const char *case_comp(Case *c, const char *text, ...)
{
    if (!c)
        return NULL;
    va_list ap;
    const char *name = arena_printf(c->sweep->arena, "%%c%d.f%d", c->id, c->n_names++);
    va_start(ap, text);
    buf_printf(&c->comps, "%s {\n", name);
    buf_vprintf(&c->comps, text, ap);
    buf_puts(&c->comps, "}\n\n");
    va_end(ap);
    return name;
}

const char *case_reducer(Case *c, Op op, Type t)
{
    const char *type = type_name(t);
    return case_comp(c, "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  ROOT r = %s[] %s(a, b)\n", type, type, type,
                     op_name(op));
}

const char *case_let(Case *c, const char *text, ...)
{
    if (!c)
        return NULL;
    va_list ap;
    const char *name = arena_printf(c->sweep->arena, "%%c%d.v%d", c->id, c->n_names++);
    va_start(ap, text);
    buf_printf(&c->body, "  %s = ", name);
    buf_vprintf(&c->body, text, ap);
    buf_putc(&c->body, '\n');
    va_end(ap);
    return name;
}

void case_refusable(Case *c, bool yes)
{
    if (c)
        c->refusable = yes;
}

void case_units(Case *c, double units)
{
    if (c)
        c->units = units;
}

/* ---- judging ---- */

static bool same_real(const Case *c, Type t, double a, double e, double scale)
{
    if (isnan(a) || isnan(e))
        return isnan(a) && isnan(e);
    if (a == e) /* f4 and f6 have a zero for NaN, of either sign */
        return c->same == SAME_NUMBER || c->same == SAME_NORM || type_info[t].specials == SPECIALS_FINITE ||
               signbit(a) == signbit(e);
    if ((c->same != SAME_CLOSE && c->same != SAME_NORM) || isinf(e))
        return false;
    double ulps = c->units > 0 ? c->units : type_bits(t) >= 32 ? 4 : 1, at = c->same == SAME_NORM ? scale : fabs(e);
    int least = 1 - type_info[t].bias, exponent = at > 0 ? ilogb(at) : least;
    return fabs(a - e) <= ulps * ldexp(1, (exponent < least ? least : exponent) - type_info[t].man);
}

static double magnitude(const Literal *l, int64_t i)
{
    return fmax(fabs(literal_get_f64(l, i)), type_is_complex(l->type) ? fabs(literal_get_imag(l, i)) : 0);
}

static double largest(const Literal *l)
{
    double top = 0;
    for (int64_t i = 0; i < l->count; i++)
        if (isfinite(magnitude(l, i)))
            top = fmax(top, magnitude(l, i));
    return top;
}

/* Complex numbers count as one when they are close: one part may be what is left of the other. */
static bool same_element(const Case *c, const Literal *a, const Literal *e, int64_t i, double scale)
{
    size_t bytes = (size_t)type_bytes(e->type);
    if (!memcmp((const char *)a->data + (size_t)i * bytes, (const char *)e->data + (size_t)i * bytes, bytes))
        return true;
    if (c->same == SAME_BITS || !(type_is_float(e->type) || type_is_complex(e->type)))
        return false;
    Type t = type_component(e->type);
    if (!type_is_complex(e->type))
        return same_real(c, t, literal_get_f64(a, i), literal_get_f64(e, i), scale);
    Case by_norm = *c;
    if (c->same == SAME_CLOSE) {
        by_norm.same = SAME_NORM;
        scale = magnitude(e, i);
    }
    return same_real(&by_norm, t, literal_get_f64(a, i), literal_get_f64(e, i), scale) &&
           same_real(&by_norm, t, literal_get_imag(a, i), literal_get_imag(e, i), scale);
}

static void show_difference(Buf *b, const Case *c, const Literal *a, const Literal *e, int64_t i)
{
    buf_printf(b, "  [%lld]: expected ", (long long)i);
    values_print(b, e, i);
    buf_puts(b, ", got ");
    values_print(b, a, i);
    for (int32_t k = 0; k < c->params.n; k++)
        if (c->args[k]->count == e->count || c->args[k]->count == 1) {
            buf_puts(b, k ? ", " : " from ");
            values_print(b, c->args[k], c->args[k]->count == 1 ? 0 : i);
        }
    buf_putc(b, '\n');
}

static bool same_leaf(Buf *b, const Case *c, const Literal *a, const Literal *e)
{
    int64_t wrong = 0;
    double scale = c->same == SAME_NORM ? largest(e) : 0;
    for (int64_t i = 0; i < e->count; i++)
        if (!same_element(c, a, e, i, scale) && wrong++ < DIFFERENCES)
            show_difference(b, c, a, e, i);
    if (wrong)
        buf_printf(b, "  %lld of %lld elements differ\n", (long long)wrong, (long long)e->count);
    return !wrong;
}

static const char *failure_file(Arena *a, const Case *c)
{
    mkdir("sweep-failures", 0777);
    return arena_printf(a, "sweep-failures/%s-%d.hlo", op_name(c->op), c->id);
}

static void keep(const Case *c)
{
    Buf b = {0};
    put_module(&b, 1, (Case *const[]){(Case *)c}, true);
    if (!buf_write_file(&b, failure_file(c->sweep->arena, c)))
        perror("sweep");
    buf_free(&b);
}

static Outcome judge(const Case *c, int level, Literal *const *results)
{
    Buf b = {0};
    bool same = true;
    for (int32_t k = 0; k < c->n_results; k++)
        same &= same_leaf(&b, c, results[k], c->results[k]);
    if (!same) {
        keep(c);
        printf("sweep: -O%d, %s: %s\n%s", level, failure_file(c->sweep->arena, c), c->root, b.p);
    }
    buf_free(&b);
    return same ? AGREES : DIFFERS;
}

/* ---- a sheet, in its own process ---- */

static bool trouble(const char *what, Diag *d)
{
    printf("sweep: %s\n", what);
    diag_print(d, stdout, false);
    return false;
}

static bool run_level(Arena *a, int32_t n, Case *const *cases, int level, const char *cc, Outcome *verdicts)
{
    Diag d;
    RunTimes times = {0};
    diag_init(&d, a);
    Cache *cache = cache_open(a, true);
    Module *m = read_cases(n, cases, &d);
    const char *passes = pipeline_for_level(level, "cpu");
    PipelineOptions po = {.verify_each = true, .log = stdout};
    if (!cache || !m || (*passes && !pipeline_run(m, passes, &po, &d)))
        return trouble("the sheet is no module", &d);
    Signature *s = signature_of(a, m, &d);
    Compiled *code = s ? compiled_build(a, cache, m, s, NULL, &(CompileOptions){.cc = cc}, &times, &d) : NULL;
    if (!code)
        return trouble("the sheet cannot be compiled", &d);
    Literal **args = ARENA_ARRAY(a, Literal *, s->n_args), **results = ARENA_ARRAY(a, Literal *, s->n_results), **at = args;
    for (int32_t k = 0; k < n; k++)
        for (int32_t j = 0; j < cases[k]->params.n; j++)
            *at++ = cases[k]->args[j];
    Execution e = {.signature = s, .compiled = code, .module = m, .threads = 1};
    if (!execution_run(&e, args, results, &times, &d))
        return trouble("the sheet does not run", &d);
    for (int32_t k = 0; k < n; k++) {
        Outcome o = judge(cases[k], level, results);
        verdicts[k] = o > verdicts[k] ? o : verdicts[k];
        results += cases[k]->n_results;
    }
    return true;
}

/* True when the process came to its end; verdicts are shared with it. */
static bool run_apart(int32_t n, Case *const *cases, const char *cc, Outcome *verdicts)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_EACH);
        Arena *a = arena_new();
        bool ok = run_level(a, n, cases, 0, cc, verdicts) && run_level(a, n, cases, 2, cc, verdicts);
        arena_free(a);
        fflush(stdout);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_sheet(Sweep *s)
{
    int32_t n = s->sheet.n;
    size_t bytes = sizeof(Outcome) * CASES_EACH;
    Outcome *verdicts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdicts == MAP_FAILED)
        die_out_of_memory("verdicts");
    bool ok = n == 0 || run_apart(n, s->sheet.v, s->cc, verdicts);
    for (int32_t k = 0; !ok && k < n; k++) {
        verdicts[k] = AGREES;
        if (!run_apart(1, &s->sheet.v[k], s->cc, &verdicts[k])) {
            verdicts[k] = DIES;
            keep(s->sheet.v[k]);
            printf("sweep: %s does not run: %s\n", failure_file(s->arena, s->sheet.v[k]), s->sheet.v[k]->root);
        }
    }
    for (int32_t k = 0; k < n; k++) {
        OpCount *o = &s->count[s->sheet.v[k]->op];
        *(verdicts[k] == AGREES ? &o->agree : &o->differ) += 1;
    }
    munmap(verdicts, bytes);
}

static void free_case(Case *c)
{
    literals_unref(c->args ? c->params.n : 0, c->args);
    literals_unref(c->n_results, c->results);
    buf_free(&c->comps);
    buf_free(&c->body);
}

static void free_sheet(Sweep *s)
{
    for (int32_t k = 0; k < s->sheet.n; k++)
        free_case(s->sheet.v[k]);
    arena_free(s->arena);
    s->arena = arena_new();
    memset(&s->sheet, 0, sizeof s->sheet);
}

static void flush(Sweep *s)
{
    run_sheet(s);
    free_sheet(s);
}

/* ---- the end of a case ---- */

/* What the evaluator makes of the case: its results, or NULL. */
static bool evaluate(Case *c, const Module *m, Diag *d)
{
    Arena *a = c->sweep->arena;
    c->args = ARENA_ARRAY(a, Literal *, c->params.n);
    for (int32_t k = 0; k < c->params.n; k++) {
        c->args[k] = literal_for_shape(comp_param(m->entry, k)->shape, true);
        values_fill(c->args[k], c->params.v[k].values, (uint64_t)(c->id * 100 + k));
    }
    EvalOptions o = {.memory_limit = 1 << 30};
    Literal *root = eval_supported(m, d) ? eval_module(m, c->params.n, c->args, &o, d) : NULL;
    if (!root)
        return false;
    c->n_results = shape_leaf_count(m->entry->root->shape, false);
    c->results = ARENA_ARRAY(a, Literal *, c->n_results);
    leaves_flatten(1, &root, c->results);
    literal_unref(root);
    return true;
}

/* Something is wrong with the case itself. */
static void complain(Case *c, const char *what, Diag *d)
{
    Buf b = {0};
    put_module(&b, 1, &c, false);
    printf("sweep: %s\n%s", what, b.p);
    diag_print(d, stdout, false);
    buf_free(&b);
    c->sweep->problems++;
}

static void finish(Case *c, bool must_be_valid)
{
    Sweep *s = c->sweep;
    OpCount *count = &s->count[c->op];
    Arena *work = arena_new();
    bool kept = false;
    Diag d;
    diag_init(&d, work);
    Module *m = read_cases(1, &c, &d);
    if (!m) {
        if (must_be_valid)
            complain(c, "a case that is no module", &d);
        count->invalid++;
    } else if (!evaluate(c, m, &d) || !program_plan(work, m, NULL, &d)) {
        count->refused++;
        if (!c->refusable)
            complain(c, "a case that a backend refuses", &d);
    } else {
        s->met = kept = true;
        vec_push(s->arena, &s->sheet, c);
    }
    if (!kept)
        free_case(c);
    module_free(m);
    arena_free(work);
    if (s->sheet.n == CASES_EACH)
        flush(s);
}

static void case_end(Case *c, bool must_be_valid, Same same, const char *text, va_list ap)
{
    c->root = arena_vprintf(c->sweep->arena, text, ap);
    c->same = same;
    finish(c, must_be_valid);
}

void case_root(Case *c, Same same, const char *text, ...)
{
    va_list ap;
    va_start(ap, text);
    if (c)
        case_end(c, true, same, text, ap);
    va_end(ap);
}

void case_root_if_valid(Case *c, Same same, const char *text, ...)
{
    va_list ap;
    va_start(ap, text);
    if (c)
        case_end(c, false, same, text, ap);
    va_end(ap);
}

/* ---- all opcodes ---- */

typedef void Recipe(Sweep *s, Op op);

static Recipe *const recipes[OP_COUNT] = {
#define OP(id, text, n, family, shape, flags) [OP_##id] = sweep_##family,
#include "ir/ops.def"
#undef OP
};

/* No opcode may have come off without a comparison, but for those that a backend refuses whole. */
static void report(Sweep *s, const bool *chosen)
{
    OpCount all = {0};
    for (Op op = 0; op < OP_COUNT; op++) {
        OpCount *o = &s->count[op];
        if (chosen[op] && !o->agree && !o->differ && !o->refused) {
            printf("sweep: %s was not tried\n", op_name(op));
            s->problems++;
        } else if (chosen[op] && !o->agree && !o->differ) {
            printf("sweep: %s is refused\n", op_name(op));
        }
        all.agree += o->agree;
        all.differ += o->differ;
        all.refused += o->refused;
        all.invalid += o->invalid;
    }
    printf("sweep: %d cases agree, %d differ; %d are refused, %d are not valid\n", all.agree, all.differ, all.refused,
           all.invalid);
    s->problems += all.differ;
}

static bool choose(int n, char **names, bool *chosen)
{
    for (int k = 0; k < n; k++) {
        Op op = 0;
        while (op < OP_COUNT && strcmp(op_name(op), names[k]) != 0)
            op++;
        if (op == OP_COUNT) {
            fprintf(stderr, "sweep: '%s' is no opcode\nusage: sweep [--all] [--cc=COMPILER] [OPCODE...]\n", names[k]);
            return false;
        }
        chosen[op] = true;
    }
    for (Op op = 0; n == 0 && op < OP_COUNT; op++)
        chosen[op] = true;
    return true;
}

int main(int argc, char **argv)
{
    bool chosen[OP_COUNT] = {false};
    Sweep s = {.arena = arena_new()};
    int k = 1;
    for (; k < argc && !strncmp(argv[k], "--", 2); k++)
        if (!strcmp(argv[k], "--all"))
            s.all = true;
        else if (!strncmp(argv[k], "--cc=", 5))
            s.cc = argv[k] + 5;
        else
            break;
    if (!choose(argc - k, argv + k, chosen))
        return 2;
    for (Op op = 0; op < OP_COUNT; op++) {
        s.of_op = 0;
        s.met = false;
        s.next_id = (int)op * 10000;
        if (chosen[op])
            recipes[op](&s, op);
    }
    flush(&s);
    report(&s, chosen);
    arena_free(s.arena);
    return s.problems > 0;
}
