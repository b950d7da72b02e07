/* A fusion around a dot or a convolution that the runtime, or a device's library, computes better than loops in the text: that for itself, then a fusion of the rest, which may write over
 * its result in place.
 *
 *     out = fusion(x, w, b), kind=kOutput        =>   d = dot(x, w);  out = fusion(x, w, b, d), kind=kLoop
 *
 * One of them stays inside when the runtime can hand over its elements as they are finished, and the rest wants them one by one: the fusion is one call (plan_dot.c).
 *
 * In the text of the module it stays where the optimizer has put it; which code computes it is for the emitter to choose. */
#include "emit/conv_call.h"
#include "emit/conv_graph.h"
#include "emit/dot_call.h"
#include "emit/expand.h"
#include "emit/product_call.h"

#include "analysis/cost.h"
#include "passes/util.h"

enum { LEAST = 16384 }; /* multiplications from which the call and one more pass over the result are faster than loops (32 x 32 x 16 with a bias 0.54 and 0.41 us, half of it as long) */

/* Loops would have to turn one of them first: any call is faster (16 x 64 x 10 with a bias 0.56 and 0.41 us). */
static bool is_rows_by_rows(const DotCall *d)
{
    return d->m > 1 && d->n > 1 && d->b_row == 1 && d->b_col != 1;
}

/* A dot whose operands are made something else first. */
static bool is_changed(const Inst *x)
{
    return dot_widens(x) || dot_joins(x);
}

/* Sums that are finished one by one, of each of which something dear is made: no vector of them would be there for that (200 leaps along the gradient of a
 * logistic loss of 256 rows of 10, one thread of an Emerald Rapids, 8290 us, and 550 with their products in front, XLA 1260). */
static bool is_of_dear_sums(const Inst *x, const DotCall *d)
{
    enum { LEAST_SUMS = 16 };
    const int64_t sums = shape_count(x->shape);
    bool          dear = false;
    for (const Inst *i = x->next; i && !dear; i = i->next)
        dear = op_has(i->op, F_ELEMENTWISE) && inst_is_dear(i) && shape_count(i->shape) >= sums;
    return dear && sums >= LEAST_SUMS && (d->n == 1 || (d->m == 1 && d->b_row == 1));
}

/* A dot or a convolution of parameters of a fusion that is worth a call. */
static bool is_called(const Inst *x)
{
    DotCall      d;
    ConvCall     c;
    const bool   product = (x->op == OP_DOT && x->n_operands == 2 && !inst_attr(x, ATTR_SPARSITY_CONFIG)) || x->op == OP_CONVOLUTION;
    const Inst  *lhs = product ? inst_operand(x, 0) : NULL, *rhs = lhs ? inst_operand(x, 1) : NULL;
    if (!lhs || lhs->op != OP_PARAMETER || rhs->op != OP_PARAMETER)
        return false;
    if (x->op == OP_CONVOLUTION)
        return conv_call(x, lhs->shape, rhs->shape, x->shape, &c);
    if (is_changed(x))
        return true;
    if (dot_call_sizes(x, lhs->shape, rhs->shape, x->shape, &d) && is_of_dear_sums(x, &d))
        return true;
    return dot_call(x, lhs->shape, rhs->shape, x->shape, &d) && ((double)d.m * (double)d.n * (double)d.k >= LEAST || is_rows_by_rows(&d));
}

typedef bool IsCalled(const Inst *x);

static const Inst *called_dot(const Comp *body, IsCalled *is)
{
    const Inst *x = body->first;
    while (x && !is(x))
        x = x->next;
    return x == body->root ? NULL : x;
}

static bool takes_arrays(const Inst *i)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        if (!shape_is_array(inst_operand(i, k)->shape))
            return false;
    return true;
}

const Inst *output_hero(const Inst *i, int64_t *row)
{
    const Inst *x = i->op == OP_FUSION && i->n_callees == 1 && takes_arrays(i) ? called_dot(inst_callee(i, 0), is_called) : NULL;
    DotCall     d;
    ConvCall    c;
    if (!x || is_changed(x))
        return NULL;
    const Shape *lhs = inst_operand(x, 0)->shape, *rhs = inst_operand(x, 1)->shape;
    if (x->op == OP_CONVOLUTION)
        *row = conv_call(x, lhs, rhs, x->shape, &c) ? conv_call_row(&c) : 0;
    else
        *row = dot_call(x, lhs, rhs, x->shape, &d) ? dot_call_row(&d) : 0;
    Arena        *a = arena_new();
    const Kernel *k = kernel_lower_tile(a, i, x, *row);
    *row = k ? kernel_tile_row(k) : 0;
    arena_free(a);
    return *row ? x : NULL;
}

bool output_expands(const Inst *i)
{
    int64_t row;
    return i->op == OP_FUSION && i->n_callees == 1 && called_dot(inst_callee(i, 0), is_called) && !output_hero(i, &row);
}

static bool is_for_library(const Inst *x)
{
    return product_call_alone(x) || conv_graph_alone(x);
}

/* A dot or a convolution of i's body that is for the library of a device; NULL as well where that can do all of i. */
static const Inst *product_inside(const Inst *i)
{
    ProductCall p;
    ConvGraph   g;
    return i->op == OP_FUSION && i->n_callees == 1 && !product_call(i, &p) && !conv_graph(i, &g) ? called_dot(inst_callee(i, 0), is_for_library) : NULL;
}

/* What a dot of i's body takes is a part of an operand of i: attention reads it where it lies, but a library wants it for itself. NULL: of none. */
static const Inst *part_inside(const Inst *i)
{
    for (const Inst *x = i->op == OP_FUSION && i->n_callees == 1 ? inst_callee(i, 0)->first : NULL; x; x = x->next)
        for (int32_t k = 0; x->op == OP_DOT && k < x->n_operands; k++) {
            const Inst *o = inst_operand(x, k);
            bool        cut = false;
            for (; o->op == OP_SLICE || o->op == OP_RESHAPE || o->op == OP_TRANSPOSE || o->op == OP_COPY; o = inst_operand(o, 0))
                cut |= o->op == OP_SLICE;
            if (cut && o->op == OP_PARAMETER)
                return inst_operand(x, k);
        }
    return NULL;
}

bool product_expands(const Inst *i)
{
    return product_inside(i) != NULL || conv_graph_moves(i) || part_inside(i);
}

/* The dot of i's body in front of i. */
static Inst *dot_outside(Inst *i, const Inst *dot, bool runtime)
{
    Inst *operands[2];
    for (int32_t k = 0; k < 2; k++)
        operands[k] = inst_operand(i, (int32_t)inst_operand(dot, k)->param);
    if (runtime && dot_widens(dot))
        return dot_widened(i, dot, operands);
    return runtime && dot_joins(dot) ? dot_joined(i, dot, operands) : inst_clone_into(i->comp, i, dot, 2, operands);
}

/* A copy of the body in which what is inside are parameters behind the others, without what only that has needed. */
static Comp *rest_of(const Inst *i, int32_t n, const Inst *const *inside, Inst *const *outside)
{
    Comp  *body = inst_callee(i, 0), *rest = comp_clone(body, body->name);
    Inst **copies = ARENA_ARRAY(i->comp->module->arena, Inst *, n), *x = rest->first;
    for (const Inst *y = body->first; y; y = y->next, x = x->next)
        for (int32_t k = 0; k < n; k++)
            if (y == inside[k])
                copies[k] = x;
    for (int32_t k = 0; k < n; k++)
        inst_replace(copies[k], inst_parameter(rest, rest->first, rest->n_params, outside[k]->shape, NULL));
    comp_sweep_dead(rest, rest->n_insts);
    return rest;
}

Inst *output_replace(Inst *i, int32_t n, const Inst *const *inside, Inst *const *outside)
{
    const int32_t own = i->n_operands;
    Inst        **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, own + n);
    for (int32_t k = 0; k < own + n; k++)
        operands[k] = k < own ? inst_operand(i, k) : outside[k - own];
    Comp *rest = rest_of(i, n, inside, outside);
    Inst *f = expand_fusion(i, FUSION_LOOP, rest, own + n, operands);
    f->shape = i->shape;
    inst_replace(i, f);
    inst_delete(i);
    return f;
}

void expand_output(Inst *i)
{
    int64_t row;
    for (const Inst *dot; (dot = called_dot(inst_callee(i, 0), is_called)) && !output_hero(i, &row);) {
        Inst *outside = dot_outside(i, dot, true);
        i = output_replace(i, 1, &dot, &outside);
        if (conv_turns(outside))
            expand_conv(outside);
    }
}

Inst *output_outside(Inst *i, const Inst *x)
{
    if (x->op == OP_PARAMETER)
        return inst_operand(i, (int32_t)x->param);
    Comp  *body = inst_callee(i, 0), *c = comp_clone(body, "operand");
    Inst **operands = ARENA_ARRAY(i->comp->module->arena, Inst *, i->n_operands), *root = c->first;
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k] = inst_operand(i, k);
    for (const Inst *y = body->first; y != x; y = y->next)
        root = root->next;
    c->root = root;
    comp_move_before(c, i->comp);
    comp_sweep_dead(c, c->n_insts);
    Inst *f = inst_new(i->comp, i, OP_FUSION, x->shape, i->n_operands, operands, NULL);
    inst_set_word(f, ATTR_FUSION_KIND, FUSION_LOOP);
    inst_set_callees(f, 1, &c);
    return f;
}

void expand_product(Inst *i)
{
    for (const Inst *x; (x = part_inside(i));) {
        const Word kind = inst_word(i, ATTR_FUSION_KIND);
        i = output_replace(i, 1, &x, (Inst *[]){ output_outside(i, x) });
        inst_set_word(i, ATTR_FUSION_KIND, kind);
    }
    for (const Inst *dot; (dot = product_inside(i));) {
        Inst *outside = dot_outside(i, dot, false);
        i = output_replace(i, 1, &dot, &outside);
        if (conv_graph_moves(outside))
            conv_graph_move(outside);
    }
    if (conv_graph_moves(i))
        conv_graph_move(i);
}
