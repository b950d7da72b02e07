/* constant_folding - compute what depends on constants alone.
 *
 *   %c = s32[2] constant({1, 2})
 *   %d = s32[2] constant({3, 4})
 *   ROOT %s = s32[2] add(%c, %d)        =>     ROOT %s = s32[2] constant({4, 6})
 *
 * The evaluator computes, so that a folded value has the bits that the evaluator gives. An operand may also be the broadcast of a
 * constant or an iota; for a single element, and for a dot of up to 4 KB, all of them may. Bounded so that no small text takes long or grows: max=N elements of operands and
 * result a fold (default 65536, more where a constant goes that is as large as the result), a bound for all folds of a run, and limits of work
 * inside each (loops of called computations) and all. Broadcasts and
 * iotas stay: they say the same in less. But a kernel of them and constants alone (a fusion without arguments, of up to 4 KB, for other kernels) would be begun at
 * each run: indices of a resized image, positions to sort. One that gives the same everywhere stays: as a constant it would become a broadcast, which is part of
 * other kernels. Never folded: elided constants, random numbers, effects, control edges, loops and
 * branches, what asks for the device or a backend, values that text cannot hold. */
#include "config.h"

#include "passes/pass.h"

#include <math.h>

#include "eval/eval.h"
#include "passes/util.h"

enum { MAX_ELEMENTS = 65536, MAX_TOTAL = 1 << 24, MAX_WORK = 1 << 20, MAX_TOTAL_WORK = 1 << 24, MAX_KERNEL = 4096 /* bytes */, MAX_STEPS = 4 };

typedef struct Folder {
    PassCtx *cx;
    Arena  *scratch;
    Diag   *diag;
    int64_t max, left; /* elements: a fold, all folds */
    bool    bounded;   /* max was given, for all folds */
    int64_t work;      /* element operations of all folds */
} Folder;

static bool is_foldable(Op op)
{
    if (op_has(op, F_ELEMENTWISE))
        return true;
    switch (op) {
    case OP_RESHAPE:
    case OP_TRANSPOSE:
    case OP_REVERSE:
    case OP_SHUFFLE:
    case OP_SLICE:
    case OP_PAD:
    case OP_CONCATENATE:
    case OP_COPY:
    case OP_BITCAST_CONVERT:
    case OP_DYNAMIC_SLICE:
    case OP_DYNAMIC_UPDATE_SLICE:
    case OP_GATHER:
    case OP_SCATTER:
    case OP_REDUCE:
    case OP_REDUCE_WINDOW:
    case OP_MAP:
    case OP_DOT:
        return true;
    default:
        return false;
    }
}

static bool known_array(const Inst *i)
{
    return i->op == OP_CONSTANT && shape_is_array(i->shape) && !i->literal->elided;
}

/* A constant, or what is known without saying each element. */
static bool is_known(const Inst *i)
{
    return known_array(i) || i->op == OP_IOTA || (i->op == OP_BROADCAST && known_array(inst_operand(i, 0)));
}

/* Of what is known alone, in few steps, each of up to 4 KB. */
static bool is_made_of_known(const Inst *i, int steps)
{
    if (is_known(i))
        return true;
    bool made = steps > 0 && i->n_operands > 0 && (is_foldable(i->op) || i->op == OP_BROADCAST) && inst_is_free(i) && shape_bytes(i->shape) <= MAX_KERNEL;
    for (int32_t k = 0; k < i->n_operands && made; k++)
        made = is_made_of_known(inst_operand(i, k), steps - 1);
    return made;
}

/* What a dot reads is stored, whatever it is made of: behind fusion it would be a constant, and the dot be folded then. */
static bool is_known_by(const Inst *user, const Inst *i)
{
    return user->op == OP_DOT ? is_made_of_known(i, MAX_STEPS) : is_known(i);
}

/* Other passes have rules for constants that are state of loops or indices of scatters: they would have had their turn before. */
static bool reads_arrays(Op op)
{
    return op == OP_FUSION || op == OP_SORT || op == OP_DOT || op == OP_CONVOLUTION;
}

static bool only_kernels_read(const Inst *i)
{
    const Comp *c = i->comp;
    if (shape_is_tuple(i->shape) && i == c->root)
        return false;
    for (const Use *u = i->uses; u; u = u->next) {
        const Inst *user = u->user;
        bool        result = user == c->root && user->op == OP_TUPLE && c == c->module->entry;
        if (shape_is_tuple(i->shape) ? user->op != OP_GET_TUPLE_ELEMENT || !only_kernels_read(user) : !reads_arrays(user->op) && !result)
            return false;
    }
    return i != c->root || c == c->module->entry;
}

/* Adds the elements of a kernel's operand or result to *sum; false: not of an array of a fixed size, of up to 4 KB. */
static bool add_small(const Shape *s, int64_t *sum)
{
    if (!shape_is_array(s) || shape_is_dynamic(s) || shape_bytes(s) > MAX_KERNEL)
        return false;
    *sum += shape_count(s);
    return true;
}

/* A fusion of what is known without arguments: the elements of its operands and results, else -1. */
static int64_t kernel_size(const Inst *i)
{
    int64_t sum = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!known_array(inst_operand(i, k)) || !add_small(inst_operand(i, k)->shape, &sum))
            return -1;
    const Comp *c = inst_callee(i, 0);
    bool        several = shape_is_tuple(i->shape) && c->root->op == OP_TUPLE;
    for (int32_t k = 0; k < (several ? i->shape->n_elems : 1); k++)
        if (!add_small(several ? i->shape->elems[k] : i->shape, &sum))
            return -1;
    for (const Inst *x = c->first; x; x = x->next)
        if (!known_array(x) && x->op != OP_IOTA && x->op != OP_BROADCAST && x->op != OP_PARAMETER && !(several && x == c->root) && !is_foldable(x->op))
            return -1;
    return only_kernels_read(i) ? sum : -1;
}

/* Elements that folding i touches, or the braces of a result without any; -1: it is not to be folded. */
static int64_t fold_size(const Inst *i)
{
    if (i->op == OP_FUSION)
        return kernel_size(i);
    bool    constant = i->op == OP_DOT && shape_bytes(i->shape) <= MAX_KERNEL;
    int64_t sum = shape_is_array(i->shape) ? shape_count(i->shape) : -1;
    if (sum == 0)
        sum = literal_braces(i->shape->rank, i->shape->dims);
    if (sum < 0)
        return -1;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        int64_t     n = is_known_by(i, o) && !shape_is_dynamic(o->shape) ? shape_count(o->shape) : -1;
        if (n < 0 || !size_add(sum, n, &sum))
            return -1;
        constant |= known_array(o);
    }
    return constant || shape_count(i->shape) == 1 ? sum : -1;
}

static bool is_splat(const Inst *i)
{
    return i->op == OP_BROADCAST && known_array(inst_operand(i, 0)) && shape_is_scalar(inst_operand(i, 0)->shape);
}

/* Two splats give a splat, which broadcast says in one element. */
static bool is_splat_of_splats(const Inst *i)
{
    bool all = i->n_operands > 0;
    for (int32_t k = 0; k < i->n_operands && all; k++)
        all = is_splat(inst_operand(i, k));
    return all;
}

/* The value of i of its operands' values, or NULL. */
static Literal *value_of(Folder *f, const Inst *i, const EvalOptions *o)
{
    if (i->op == OP_CONSTANT)
        return literal_ref(i->literal);
    Literal **values = ARENA_ARRAY(f->scratch, Literal *, i->n_operands);
    bool      good = true;
    for (int32_t k = 0; k < i->n_operands && good; k++) {
        values[k] = value_of(f, inst_operand(i, k), o);
        good = values[k] != NULL;
    }
    Literal *v = good ? eval_inst(i, values, o, f->diag) : NULL;
    for (int32_t k = 0; k < i->n_operands; k++)
        literal_unref(values[k]);
    return v;
}

/* The text does not grow: nobody else reads one of the constants, which is as large as the result. */
static bool takes_place(const Inst *i)
{
    if (!op_has(i->op, F_ELEMENTWISE | F_MOVES) && i->op != OP_RESHAPE)
        return false;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (known_array(o) && o->n_uses == 1 && o->comp->root != o && shape_bytes(o->shape) >= shape_bytes(i->shape))
            return true;
    }
    return false;
}

/* Elements that the fold may touch. */
static int64_t most_elements(const Folder *f, const Inst *i)
{
    int64_t most = !f->bounded && takes_place(i) ? MAX_TOTAL : f->max;
    return most < f->left ? most : f->left;
}

static Literal *compute(Folder *f, const Inst *i, int64_t size)
{
    int64_t     work = size > MAX_ELEMENTS ? 4 * size : MAX_WORK;
    EvalOptions o = {.work_limit = work, .memory_limit = 0, .quiet = true, .work = &f->work};
    return value_of(f, i, &o);
}

/* Text cannot say every complex value with a NaN part: (nan, 0) reads back as (nan, nan). */
static bool text_holds(const Literal *v)
{
    for (int32_t k = 0; k < v->n_elems; k++)
        if (!text_holds(v->elems[k]))
            return false;
    if (!type_is_complex(v->type))
        return true;
    for (int64_t k = 0; k < v->count; k++)
        if (isnan(literal_get_f64(v, k)) || isnan(literal_get_imag(v, k)))
            return false;
    return true;
}

/* With its layout, in which a constant of text has no E(n). */
static const Shape *constant_shape(Arena *a, const Shape *s)
{
    const Layout *l = s->layout;
    return l && l->element_bits && !l->n_tiles && !l->memory_space ? shape_with_layout(a, s, layout_from_order(a, l->minor_to_major)) : s;
}

static void replace(const Folder *f, Inst *i, Literal *v)
{
    Inst *c = inst_constant(i->comp, i, v, NULL);
    c->shape = constant_shape(i->comp->module->arena, i->shape);
    pass_remark(f->cx, i, "%%%s is the constant %%%s", i->name, c->name);
    inst_replace(i, c);
}

static void replace_results(const Folder *f, Inst *fusion, Literal *v)
{
    for (const Use *u = fusion->uses, *next; u; u = next) {
        Inst *element = u->user;
        next = u->next;
        replace(f, element, literal_ref(v->elems[inst_int(element, ATTR_INDEX, 0)]));
        inst_delete(element);
    }
    literal_unref(v);
}

/* What stands behind i when its results are replaced. */
static Inst *behind(const Inst *i)
{
    Inst *next = i->next;
    while (next && next->op == OP_GET_TUPLE_ELEMENT && inst_operand(next, 0) == i)
        next = next->next;
    return next;
}

/* One value everywhere, or places: algsimp would write that as a formula again. */
static bool has_formula(const Literal *v)
{
    for (int32_t k = 0; k < v->n_elems; k++)
        if (has_formula(v->elems[k]))
            return true;
    return v->n_elems == 0 && v->count > 1 && (literal_all_equal_bits(v) || literal_step(v) > 0);
}

static bool fold(Folder *f, Inst *i)
{
    if ((i->op != OP_FUSION && (!is_foldable(i->op) || i->n_operands == 0)) || !inst_is_free(i) || is_splat_of_splats(i))
        return false;
    int64_t size = fold_size(i);
    if (size < 0)
        return false;
    if (size > most_elements(f, i) || f->work > MAX_TOTAL_WORK) {
        pass_remark(f->cx, i, "%%%s is not computed here: it has or reads %lld elements, at most %lld are", i->name, (long long)size,
                    (long long)most_elements(f, i));
        return false;
    }
    f->left -= size;
    Literal *v = compute(f, i, size);
    if (!v || !text_holds(v)) {
        pass_remark(f->cx, i, "%%%s is not computed here: %s", i->name, v ? "its text would not hold every value" : "too much work");
        literal_unref(v);
        return false;
    }
    if (i->op == OP_FUSION && has_formula(v)) {
        literal_unref(v);
        return false;
    }
    if (shape_is_tuple(i->shape))
        replace_results(f, i, v);
    else
        replace(f, i, v);
    return true;
}

bool pass_constant_folding(Module *m, PassCtx *cx)
{
    Folder f = {cx, cx->scratch, cx->diag, pass_arg_int(cx, "max", MAX_ELEMENTS), MAX_TOTAL, pass_arg(cx, "max") != NULL, 0};
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next) {
        if (c->mark & (COMP_FUSED | COMP_OPAQUE))
            continue;
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            const char *name = i->name;
            next = behind(i);
            if (fold(&f, i)) {
                cx->did_at = name;
                inst_delete_dead(i, cx->scratch);
                cx->rewrites++;
            }
        }
    }
    return cx->rewrites > 0;
}
