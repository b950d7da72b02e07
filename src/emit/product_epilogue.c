/* The body of a fusion is taken apart from its root on: the activation, then the terms of a sum, then the factors of each.
 *
 *     maximum(add(multiply(dot(a, b), 0.5), broadcast(v)), 0)      alpha 0.5, bias v, relu
 *     add(dot(a, b), c)                                            beta 1
 *
 * A gelu is recognized by what it computes: as polynomials in x and t = tanh(u), u is sqrt(2/pi) (x + 0.044715 x^3) and the whole is x/2 + x t/2, however it is
 * written. */
#include "emit/product_epilogue.h"

#include "passes/util.h"

#include <math.h>

enum { MOST_DEPTH = 16, MOST_INSTS = 40, MOST_RANK = 32 }; /* of a body that is looked at */

/* ---- what an instruction of the body is ---- */

typedef struct Epilogue {
    const Inst      *fusion;
    const Shape     *result;
    Op               op; /* of the hero */
    ProductEpilogue *out;
} Epilogue;

/* Without conversions between floats. */
static const Inst *unconverted(const Inst *x)
{
    while (x->op == OP_CONVERT && type_is_float(x->shape->type) && type_is_float(inst_operand(x, 0)->shape->type))
        x = inst_operand(x, 0);
    return x;
}

/* A number that is the same for all elements. */
static bool is_number(const Epilogue *e, const Inst *x, double *v)
{
    for (int n = 0; n < MOST_DEPTH && (x->op == OP_BROADCAST || x->op == OP_RESHAPE || x->op == OP_CONVERT); n++)
        x = inst_operand(x, 0);
    if (x->op == OP_PARAMETER)
        x = inst_operand(e->fusion, (int32_t)x->param);
    const Literal *l = splat_value(x);
    if (!l || !type_is_float(x->shape->type))
        return false;
    *v = literal_get_f64(l, 0);
    return isfinite(*v);
}

/* Written into the kernel: no array in memory. */
static bool is_uniform(const Inst *x)
{
    return splat_value(x) != NULL;
}

/* The operand of the fusion that x is, of the result's type; -1: it is none. */
static int32_t operand_of(const Epilogue *e, const Inst *x)
{
    return x->op == OP_PARAMETER && x->shape->type == e->result->type && !is_uniform(inst_operand(e->fusion, (int32_t)x->param)) ? (int32_t)x->param : -1;
}

static bool same_places(const Shape *x, const Shape *y)
{
    int64_t a[MOST_RANK], b[MOST_RANK];
    if (x->rank != y->rank || x->rank > MOST_RANK)
        return false;
    shape_strides(x, a);
    shape_strides(y, b);
    for (int32_t k = 0; k < x->rank; k++)
        if (x->dims[k] != y->dims[k] || (x->dims[k] > 1 && a[k] != b[k]))
            return false;
    return true;
}

/* ---- the sum ---- */

static bool take_hero(Epilogue *e, const Inst *x, double by)
{
    ProductEpilogue *p = e->out;
    const Inst      *lhs = inst_operand(x, 0), *rhs = inst_operand(x, 1);
    if (p->hero || by == 0 || lhs->op != OP_PARAMETER || rhs->op != OP_PARAMETER)
        return false;
    p->hero = x;
    p->lhs = (int32_t)lhs->param;
    p->rhs = (int32_t)rhs->param;
    p->alpha = by;
    return !is_uniform(inst_operand(e->fusion, p->lhs)) && !is_uniform(inst_operand(e->fusion, p->rhs));
}

static bool take_matrix(Epilogue *e, const Inst *x, double by)
{
    if (e->out->added >= 0 || by == 0 || !same_places(x->shape, e->result))
        return false;
    e->out->added = operand_of(e, x);
    e->out->beta = by;
    return e->out->added >= 0;
}

static bool take_bias(Epilogue *e, const Inst *x, double by)
{
    if (e->out->bias >= 0 || by != 1)
        return false;
    e->out->bias = operand_of(e, inst_operand(x, 0));
    e->out->along = x;
    return e->out->bias >= 0;
}

typedef struct Term {
    const Inst *x;
    double      by;
} Term;

/* Sums and factors that are numbers. */
static bool add_terms(const Epilogue *e, const Inst *x, double by, Term *v, int32_t *n, int depth)
{
    double c;
    x = unconverted(x);
    if (depth == MOST_DEPTH || !isfinite(by))
        return false;
    if (x->op == OP_ADD || x->op == OP_SUBTRACT)
        return add_terms(e, inst_operand(x, 0), by, v, n, depth + 1) && add_terms(e, inst_operand(x, 1), x->op == OP_ADD ? by : -by, v, n, depth + 1);
    if (x->op == OP_NEGATE)
        return add_terms(e, inst_operand(x, 0), -by, v, n, depth + 1);
    if (x->op == OP_MULTIPLY && is_number(e, inst_operand(x, 1), &c))
        return add_terms(e, inst_operand(x, 0), by * c, v, n, depth + 1);
    if (x->op == OP_MULTIPLY && is_number(e, inst_operand(x, 0), &c))
        return add_terms(e, inst_operand(x, 1), by * c, v, n, depth + 1);
    if (x->op == OP_DIVIDE && is_number(e, inst_operand(x, 1), &c) && c != 0)
        return add_terms(e, inst_operand(x, 0), by / c, v, n, depth + 1);
    if (*n == 3)
        return false;
    v[(*n)++] = (Term){ x, by };
    return true;
}

static bool take_term(Epilogue *e, const Term *t)
{
    if (t->x->op == e->op)
        return take_hero(e, t->x, t->by);
    return t->x->op == OP_PARAMETER ? take_matrix(e, t->x, t->by) : t->x->op == OP_BROADCAST && take_bias(e, t->x, t->by);
}

static bool take_sum(Epilogue *e, const Inst *x)
{
    Term    terms[3];
    int32_t n = 0;
    if (!add_terms(e, x, 1, terms, &n, 0))
        return false;
    for (int32_t k = 0; k < n; k++)
        if (!take_term(e, &terms[k]))
            return false;
    return e->out->hero != NULL;
}

/* ---- the activation ---- */

enum { POWERS = 4, TANHS = 2 };

/* Sum of c[t][x] tanh^t x^x. */
typedef struct Poly {
    double c[TANHS][POWERS];
} Poly;

typedef struct Gelu {
    const Epilogue *e;
    const Inst     *x, *tanh;
    int             left; /* steps until it is no use */
} Gelu;

static bool poly_multiply(Poly *out, const Poly *a, const Poly *b)
{
    Poly p = { 0 };
    for (int t = 0; t < TANHS; t++)
        for (int k = 0; k < POWERS; k++)
            for (int u = 0; u < TANHS && a->c[t][k] != 0; u++)
                for (int j = 0; j < POWERS; j++) {
                    if (b->c[u][j] == 0)
                        continue;
                    if (t + u >= TANHS || k + j >= POWERS)
                        return false;
                    p.c[t + u][k + j] += a->c[t][k] * b->c[u][j];
                }
    *out = p;
    return true;
}

static bool poly_of(Gelu *g, const Inst *i, Poly *out)
{
    Poly a, b;
    *out = (Poly){ 0 };
    if (g->left-- <= 0)
        return false;
    if (i == g->x || i == g->tanh) {
        out->c[i == g->tanh][i == g->x] = 1;
        return true;
    }
    if (is_number(g->e, i, &out->c[0][0]))
        return true;
    switch (i->op) {
    case OP_CONVERT: return type_is_float(i->shape->type) && poly_of(g, inst_operand(i, 0), out);
    case OP_NEGATE: case OP_ADD: case OP_SUBTRACT: case OP_MULTIPLY: case OP_DIVIDE: case OP_POWER: break;
    default: return false;
    }
    double n;
    b = (Poly){ 0 };
    if (!poly_of(g, inst_operand(i, 0), &a) || (i->op != OP_NEGATE && !poly_of(g, inst_operand(i, 1), &b)))
        return false;
    switch (i->op) {
    case OP_MULTIPLY: return poly_multiply(out, &a, &b);
    case OP_POWER:
        if (!is_number(g->e, inst_operand(i, 1), &n) || (n != 2 && n != 3) || !poly_multiply(out, &a, &a))
            return false;
        return n == 2 || poly_multiply(out, out, &a);
    case OP_DIVIDE:
        if (!is_number(g->e, inst_operand(i, 1), &n) || n == 0)
            return false;
        b = (Poly){ .c[0][0] = 1 / n };
        return poly_multiply(out, &a, &b);
    default: break;
    }
    for (int t = 0; t < TANHS; t++)
        for (int k = 0; k < POWERS; k++)
            out->c[t][k] = i->op == OP_NEGATE ? -a.c[t][k] : i->op == OP_ADD ? a.c[t][k] + b.c[t][k] : a.c[t][k] - b.c[t][k];
    return true;
}

/* As near as the constants of a type can be. */
static bool poly_is(const Poly *p, const Poly *wanted, Type t)
{
    const double near = t == TYPE_BF16 ? 1.0 / 64 : t == TYPE_F16 ? 1.0 / 512 : 1e-5;
    for (int u = 0; u < TANHS; u++)
        for (int k = 0; k < POWERS; k++)
            if (fabs(p->c[u][k] - wanted->c[u][k]) > near * fabs(wanted->c[u][k]))
                return false;
    return true;
}

/* root is the gelu of x. */
static bool is_gelu(const Epilogue *e, const Inst *root, const Inst *tanh, const Inst *x)
{
    const double root_2_pi = sqrt(2 / M_PI);
    const Poly   inside = { .c[0] = { 0, root_2_pi, 0, 0.044715 * root_2_pi } }, all = { .c = { { 0, 0.5 }, { 0, 0.5 } } };
    Poly         p;
    Gelu         of_u = { e, x, NULL, 4 * MOST_INSTS }, of_all = { e, x, tanh, 4 * MOST_INSTS };
    return poly_of(&of_u, inst_operand(tanh, 0), &p) && poly_is(&p, &inside, tanh->shape->type) && poly_of(&of_all, root, &p) && poly_is(&p, &all, tanh->shape->type);
}

static const Inst *inside_of_gelu(const Epilogue *e, const Inst *root)
{
    const Inst *tanh = NULL;
    for (const Inst *i = root->comp->first; i; i = i->next)
        if (i->op == OP_TANH && tanh)
            return NULL;
        else if (i->op == OP_TANH)
            tanh = i;
    for (const Inst *x = root->comp->first; x && tanh; x = x->next)
        if (x != root && is_gelu(e, root, tanh, x))
            return x;
    return NULL;
}

static const Inst *inside_of_relu(const Epilogue *e, const Inst *root)
{
    double zero;
    for (int32_t k = 0; k < 2 && root->op == OP_MAXIMUM; k++)
        if (is_number(e, inst_operand(root, k), &zero) && zero == 0)
            return inst_operand(root, 1 - k);
    return NULL;
}

/* ---- all of it ---- */

bool product_epilogue(const Inst *i, Op op, ProductEpilogue *out)
{
    const Comp *body = inst_callee(i, 0);
    Epilogue    e = { i, i->shape, op, out };
    int         n = 0;
    *out = (ProductEpilogue){ .added = -1, .bias = -1, .alpha = 1 };
    if (!shape_is_array(i->shape) || body->n_insts > MOST_INSTS)
        return false;
    for (const Inst *x = body->first; x; x = x->next)
        n += x->op == op;
    const Inst *root = unconverted(body->root), *inside = n == 1 ? inside_of_relu(&e, root) : NULL;
    if (inside)
        out->act = ACT_RELU;
    else if (n == 1 && (inside = inside_of_gelu(&e, root)))
        out->act = ACT_GELU;
    return n == 1 && take_sum(&e, inside ? inside : root);
}
