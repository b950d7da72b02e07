/* The first instruction that makes a NaN or an infinity.
 *
 * An element is made here when its operands do not explain it: an infinity out of finite operands, a NaN out of operands without NaN. The operands of
 * an element are, of an elementwise instruction, the elements at its index; else all elements. What runs other instructions (a loop, a call) makes nothing itself.
 * Everything is put into words at once, since a step's values are gone afterwards. */
#include "config.h"

#include "driver/find.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct Nonfinite {
    Arena     *arena;
    int64_t    devices;
    Ints       assignment; /* of them to processes; none: in order */
    const char *came_in; /* the first of the run: a line about an argument, a constant or what the host sent; NULL: none */
    const char *made;    /* lines about the instruction; NULL: none */
    EvalWatch  watch;
};

/* What is not finite, least bad first. */
typedef enum Badness { FINITE, INFINITE, NOT_A_NUMBER } Badness;

static Badness badness_of(double v)
{
    return isnan(v) ? NOT_A_NUMBER : isinf(v) ? INFINITE : FINITE;
}

static bool is_inexact(const Literal *l)
{
    return type_is_float(l->type) || type_is_complex(l->type);
}

static Badness element_badness(const Literal *l, int64_t i)
{
    Badness re, im;
    if (!is_inexact(l))
        return FINITE;
    re = badness_of(literal_get_f64(l, i));
    im = type_is_complex(l->type) ? badness_of(literal_get_imag(l, i)) : FINITE;
    return re > im ? re : im;
}

typedef struct Range {
    int64_t finite, nan, inf;
    double  least, most; /* of the finite ones' parts */
} Range;

static void count_part(Range *r, double v)
{
    r->least = isfinite(v) ? fmin(r->least, v) : r->least;
    r->most = isfinite(v) ? fmax(r->most, v) : r->most;
}

static Range range_of(const Literal *l)
{
    Range r = {.least = INFINITY, .most = -INFINITY};
    for (int64_t i = 0; i < l->count; i++) {
        Badness bad = element_badness(l, i);
        r.finite += bad == FINITE;
        r.inf += bad == INFINITE;
        r.nan += bad == NOT_A_NUMBER;
        count_part(&r, literal_get_f64(l, i));
        if (type_is_complex(l->type))
            count_part(&r, literal_get_imag(l, i));
    }
    return r;
}

/* The worst of all leaves. */
static Badness worst_of(const Literal *l)
{
    Badness worst = FINITE;
    for (int32_t k = 0; l->type == TYPE_TUPLE && k < l->n_elems; k++) {
        Badness bad = worst_of(l->elems[k]);
        worst = bad > worst ? bad : worst;
    }
    for (int64_t i = 0; is_inexact(l) && i < l->count && worst < NOT_A_NUMBER; i++) {
        Badness bad = element_badness(l, i);
        worst = bad > worst ? bad : worst;
    }
    return worst;
}

/* The index at which operand x goes into element i of l, or -1: all of x does. */
static int64_t operand_index(const Inst *inst, const Literal *l, const Literal *x, int64_t i)
{
    if (!op_has(inst->op, F_ELEMENTWISE) || !type_is_array(x->type))
        return -1;
    return x->count == l->count ? i : x->rank == 0 ? 0 : -1;
}

/* Of the operands of element i. all[k] is the worst of all of operand k. */
static Badness operands_badness(const EvalStep *s, const Literal *l, const Badness *all, int64_t i)
{
    Badness worst = FINITE;
    for (int32_t k = 0; k < s->inst->n_operands; k++) {
        int64_t at = operand_index(s->inst, l, s->operands[k], i);
        Badness bad = at < 0 ? all[k] : element_badness(s->operands[k], at);
        worst = bad > worst ? bad : worst;
    }
    return worst;
}

/* ---- words ---- */

/* A NaN's sign says nothing. */
static void put_real(Buf *b, Type part, double v)
{
    if (isnan(v))
        buf_puts(b, "nan");
    else
        buf_printf(b, part == TYPE_F64 ? "%.17g" : "%.9g", v);
}

static void put_number(Buf *b, const Literal *l, int64_t i)
{
    if (type_is_complex(l->type)) {
        buf_putc(b, '(');
        put_real(b, type_component(l->type), literal_get_f64(l, i));
        buf_puts(b, ", ");
        put_real(b, type_component(l->type), literal_get_imag(l, i));
        buf_putc(b, ')');
    } else if (is_inexact(l))
        put_real(b, l->type, literal_get_f64(l, i));
    else if (l->type == TYPE_U64)
        buf_printf(b, "%" PRIu64, (uint64_t)literal_get_s64(l, i));
    else
        buf_printf(b, "%" PRId64, literal_get_s64(l, i));
}

static void put_range(Buf *b, const Literal *l)
{
    if (l->type == TYPE_TUPLE) {
        for (int32_t k = 0; k < l->n_elems; k++) {
            buf_puts(b, k ? "; " : "");
            put_range(b, l->elems[k]);
        }
        return;
    }
    Range r = range_of(l);
    buf_printf(b, "%" PRId64 " finite", r.finite);
    if (r.finite > 0)
        buf_printf(b, ", %.9g to %.9g", r.least, r.most);
    if (r.inf > 0)
        buf_printf(b, ", %" PRId64 " infinite", r.inf);
    if (r.nan > 0)
        buf_printf(b, ", %" PRId64 " NaN", r.nan);
}

static void put_operands(Buf *b, const EvalStep *s, const Literal *l, int64_t i)
{
    for (int32_t k = 0; k < s->inst->n_operands; k++) {
        const Literal *x = s->operands[k];
        const Inst    *from = inst_operand(s->inst, k);
        int64_t        at = operand_index(s->inst, l, x, i);
        if (x->type == TYPE_TOKEN)
            continue;
        buf_printf(b, "  operand %d, %s (%s): ", k, from->name, op_name(from->op));
        if (at >= 0)
            put_number(b, x, at);
        else
            put_range(b, x);
        buf_putc(b, '\n');
    }
}

/* "element [1,0] of f32[2,4] is inf, one of 3 not finite" */
static void put_element(Buf *b, Arena *a, const Literal *l, int64_t i)
{
    Range r = range_of(l);
    buf_puts(b, "element ");
    place_index(b, l, i);
    buf_printf(b, " of %s is ", shape_text(a, literal_shape(a, l)));
    put_number(b, l, i);
    if (l->count > 1)
        buf_printf(b, " (of %" PRId64 " elements %" PRId64 " are not finite)", l->count, r.inf + r.nan);
}

static int32_t device_of(const Nonfinite *n, const EvalStep *s)
{
    return n->assignment.n > 0 ? (int32_t)n->assignment.v[s->device] : s->device;
}

static void put_place(Buf *b, const Nonfinite *n, const EvalStep *s)
{
    const char *line = inst_source_line(n->arena, s->inst);
    if (n->devices > 1)
        buf_printf(b, "  on device %d\n", device_of(n, s));
    if (s->frame->outer) {
        buf_puts(b, "  ");
        place_text(b, s->frame);
        buf_putc(b, '\n');
    }
    if (line)
        buf_printf(b, "  from %s\n", line);
}

static void describe(Nonfinite *n, const EvalStep *s, const Literal *l, int64_t i, Badness from)
{
    Buf b = {0};
    buf_printf(&b, "%s (%s) makes %s out of %s\n  ", s->inst->name, op_name(s->inst->op),
               element_badness(l, i) == NOT_A_NUMBER ? "NaN" : "an infinity", from == FINITE ? "finite values" : "infinities");
    put_element(&b, n->arena, l, i);
    buf_putc(&b, '\n');
    put_operands(&b, s, l, i);
    put_place(&b, n, s);
    n->made = arena_strndup(n->arena, b.p, b.n);
    buf_free(&b);
}

/* ---- looking ---- */

/* Comes from outside of what runs. */
static bool is_source(Op op)
{
    return op == OP_PARAMETER || op == OP_CONSTANT || op == OP_INFEED || op == OP_RECV || op == OP_RECV_DONE;
}

/* False: something was made, and described. */
static bool look_at_leaf(Nonfinite *n, const EvalStep *s, const Literal *l, const Badness *all)
{
    for (int64_t i = 0; is_inexact(l) && i < l->count; i++) {
        Badness bad = element_badness(l, i);
        Badness from = bad == FINITE ? FINITE : operands_badness(s, l, all, i);
        if (bad > from) {
            describe(n, s, l, i, from);
            return false;
        }
    }
    for (int32_t k = 0; l->type == TYPE_TUPLE && k < l->n_elems; k++)
        if (!look_at_leaf(n, s, l->elems[k], all))
            return false;
    return true;
}

/* Of the first leaf of a value that came from outside. */
static void note_source(Nonfinite *n, const EvalStep *s, const Literal *l)
{
    for (int32_t k = 0; l->type == TYPE_TUPLE && !n->came_in && k < l->n_elems; k++)
        note_source(n, s, l->elems[k]);
    for (int64_t i = 0; is_inexact(l) && !n->came_in && i < l->count; i++)
        if (element_badness(l, i) != FINITE) {
            Buf b = {0};
            buf_printf(&b, "%s (%s) came with it: ", s->inst->name, op_name(s->inst->op));
            put_element(&b, n->arena, l, i);
            if (n->devices > 1)
                buf_printf(&b, ", on device %d", device_of(n, s));
            buf_putc(&b, '\n');
            n->came_in = arena_strndup(n->arena, b.p, b.n);
            buf_free(&b);
        }
}

static bool after(void *cookie, const EvalStep *s)
{
    Nonfinite *n = cookie;
    const Inst *i = s->inst;
    if (is_source(i->op)) {
        if (!n->came_in && (i->op != OP_PARAMETER || !s->frame->outer))
            note_source(n, s, s->value);
        return true;
    }
    if (inst_has_steps(i) || worst_of(s->value) == FINITE)
        return true;
    Badness *all = mem_alloc(i->n_operands + 1, sizeof *all);
    for (int32_t k = 0; k < i->n_operands; k++)
        all[k] = worst_of(s->operands[k]);
    bool go_on = look_at_leaf(n, s, s->value, all);
    free(all);
    return go_on;
}

Nonfinite *nonfinite_open(Arena *a, int64_t devices, Ints assignment)
{
    Nonfinite *n = ARENA_NEW(a, Nonfinite);
    *n = (Nonfinite){.arena = a, .devices = devices, .assignment = assignment};
    n->watch = (EvalWatch){.cookie = n, .wants_operands = true, .after = after};
    return n;
}

const EvalWatch *nonfinite_watch(const Nonfinite *n)
{
    return &n->watch;
}

bool nonfinite_stopped(const Nonfinite *n)
{
    return n->made != NULL;
}

bool nonfinite_report(Buf *b, const Nonfinite *n, int32_t n_results, Literal *const *results)
{
    if (n->made)
        buf_puts(b, n->made);
    else
        buf_puts(b, "no instruction makes a NaN or an infinity\n");
    if (n->came_in)
        buf_puts(b, n->came_in);
    bool found = n->made != NULL;
    for (int32_t k = 0; !n->made && k < n_results; k++)
        if (worst_of(results[k]) != FINITE) {
            buf_printf(b, "out%d has some\n", k);
            found = true;
        }
    return found;
}
