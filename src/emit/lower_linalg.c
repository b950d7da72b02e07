/* cholesky and triangular-solve (what the runtime does not solve), matrix by matrix in working memory of f64 or c128, rows innermost so that they vectorise.
 *
 * Cholesky, a = u^H u (a lower triangle is read and written transposed, l = u^H), row by row:
 *
 *   for k: for p < k: w[k,k..] -= conj(w[p,k]) * w[p,k..];  d = sqrt(w[k,k]);  w[k,k+1..] /= d
 *
 * A pivot that is negative or NaN makes the whole matrix NaN; the other triangle is 0.
 *
 * Triangular solve, t w = b for all columns of b at once (those of b^T when a is on the right), from the first row down or from the last up:
 *
 *   for r: for s before r, four at a time: w[r,..] -= t[r,s] * w[s,..];  w[r,..] /= t[r,r] */
#include "emit/lower.h"

#include <math.h>

enum { ROLE_MATRICES = 60, TOGETHER = 4 }; /* rows that are subtracted at once */

static Type wide_type(Type t) { return type_is_complex(t) ? TYPE_C128 : TYPE_F64; }

/* The conjugate; 0 - x keeps the zeros of real numbers positive. */
static const KExpr *conjugate(Arena *a, const KExpr *z)
{
    const KExpr *imag = kx_binary(a, KOP_SUB, TYPE_F64, kx_float(a, TYPE_F64, 0.0), kx_unary(a, KOP_IMAG, TYPE_F64, z));
    return scalar_binary(a, OP_COMPLEX, TYPE_F64, kx_unary(a, KOP_REAL, TYPE_F64, z), imag);
}

/* x at matrix `batch`, row r, column c, as the wide type. */
static const KExpr *element(Lower *L, const Inst *x, const Ix *const *batch, const Ix *r, const Ix *c, bool conjugated)
{
    const Shape *s = x->shape;
    const Ix   **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    int32_t      leaf = 0;
    for (int32_t d = 0; d < s->rank - 2; d++)
        at[d] = batch[d];
    at[s->rank - 2] = r;
    at[s->rank - 1] = c;
    x = resolve(L, x, &leaf);
    Type         wide = wide_type(s->type);
    const KExpr *v = scalar_convert(L->arena, s->type, wide, value_at(L, x, leaf, at));
    return conjugated && wide == TYPE_C128 ? conjugate(L->arena, bind(L, v, "z")) : v;
}

static void put_element(Lower *L, KArray *to, const Ix *const *batch, const Ix *r, const Ix *c, const KExpr *v)
{
    const Shape *s = to->shape;
    const Ix   **at = ARENA_ARRAY(L->arena, const Ix *, s->rank);
    for (int32_t d = 0; d < s->rank - 2; d++)
        at[d] = batch[d];
    at[s->rank - 2] = r;
    at[s->rank - 1] = c;
    store_at(L, to, at, scalar_convert(L->arena, wide_type(s->type), s->type, v));
}

typedef struct Matrix {
    const Inst *x;
    KArray     *to;
    Type        type;     /* computed in */
    KArray     *w;        /* [rows, columns] */
    int64_t     rows, columns;
    bool        lower;
    /* triangular-solve */
    bool        left, unit, adjoint;
    bool        turned;   /* t[r,c] is a[c,r] */
    bool        forward;
} Matrix;

static const Ix *place(Lower *L, const Matrix *m, const Ix *r, const Ix *c)
{
    return ix_add(&L->ix, ix_times(&L->ix, r, m->columns), c);
}

static const Ix *open_rows(Lower *L, const Matrix *m)
{
    return ix_of(&L->ix, loop_open(L, 0, m->rows, NULL, 1));
}

static const KExpr *at_present(Lower *L, const Matrix *m, const Ix *r, const Ix *c)
{
    return load_current(L, m->w, place(L, m, r, c));
}

/* w[r, c] -= factor * w[s, c] */
static void subtract_row(Lower *L, const Matrix *m, const KExpr *factor, const Ix *r, const Ix *s, const Ix *c)
{
    const KExpr *product = kx_binary(L->arena, KOP_MUL, m->type, factor, at_present(L, m, s, c));
    store(L, m->w, place(L, m, r, c), kx_binary(L->arena, KOP_SUB, m->type, at_present(L, m, r, c), product));
}

/* w[r, c] /= divisor */
static void divide_row(Lower *L, const Matrix *m, const KExpr *divisor, const Ix *r, const Ix *c)
{
    store(L, m->w, place(L, m, r, c), kx_binary(L->arena, KOP_DIV, m->type, at_present(L, m, r, c), divisor));
}

static void load_triangle(Lower *L, const Matrix *m, const Ix *const *batch)
{
    const Ix *r = open_rows(L, m), *c;
    if (loop_between(L, r, ix_const(&L->ix, m->rows), &c)) {
        const Inst *from = inst_operand(m->x, 0);
        store(L, m->w, place(L, m, r, c), m->lower ? element(L, from, batch, c, r, true) : element(L, from, batch, r, c, false));
        block_close(L);
    }
    block_close(L);
}

static void factor_rows(Lower *L, const Matrix *m, KTemp *failed)
{
    Arena    *a = L->arena;
    bool      complex = m->type == TYPE_C128;
    const Ix *k = open_rows(L, m), *n = ix_const(&L->ix, m->rows), *p, *j;
    if (loop_between(L, ix_const(&L->ix, 0), k, &p)) {
        const KExpr *f = bind(L, at_present(L, m, p, k), "f");
        f = complex ? bind(L, conjugate(a, f), "g") : f;
        loop_between(L, k, n, &j);
        subtract_row(L, m, f, k, p, j);
        block_close(L);
        block_close(L);
    }
    const KExpr *pivot = at_present(L, m, k, k);
    pivot = bind(L, complex ? kx_unary(a, KOP_REAL, TYPE_F64, pivot) : pivot, "pivot");
    const KExpr *good = kx_binary(a, KOP_GE, TYPE_PRED, pivot, kx_float(a, TYPE_F64, 0.0));
    assign(L, failed, kx_binary(a, KOP_OR, TYPE_PRED, current(L, failed), kx_unary(a, KOP_NOT, TYPE_PRED, good)));
    const KExpr *root = bind(L, kx_call(a, "sqrt", TYPE_F64, 1, &pivot), "root");
    store(L, m->w, place(L, m, k, k), kx_cast(a, m->type, root));
    if (loop_between(L, ix_plus(&L->ix, k, 1), n, &j)) {
        divide_row(L, m, root, k, j);
        block_close(L);
    }
    block_close(L);
}

/* Both triangles, or NaN all over. */
static void store_triangle(Lower *L, const Matrix *m, const Ix *const *batch, KTemp *failed)
{
    Arena       *a = L->arena;
    const Ix    *r = open_rows(L, m), *n = ix_const(&L->ix, m->rows), *c;
    const KExpr *nan = kx_cast(a, m->type, kx_float(a, TYPE_F64, NAN));
    if (loop_between(L, r, n, &c)) {
        const KExpr *v = at_present(L, m, r, c);
        v = kx_select(a, current(L, failed), nan, m->lower && m->type == TYPE_C128 ? conjugate(a, bind(L, v, "z")) : v);
        put_element(L, m->to, batch, m->lower ? c : r, m->lower ? r : c, v);
        block_close(L);
    }
    if (loop_between(L, ix_const(&L->ix, 0), r, &c)) {
        put_element(L, m->to, batch, m->lower ? c : r, m->lower ? r : c, kx_select(a, current(L, failed), nan, scalar_zero(a, m->type)));
        block_close(L);
    }
    block_close(L);
}

static void cholesky_matrix(Lower *L, void *cookie, const Ix *const *batch)
{
    Matrix *m = cookie;
    load_triangle(L, m, batch);
    KTemp *failed = accumulator(L, kx_int(L->arena, TYPE_PRED, 0), TYPE_PRED, "failed");
    factor_rows(L, m, failed);
    store_triangle(L, m, batch, failed);
}

/* w in working memory, then body for every matrix. */
static void each_matrix(Lower *L, Matrix *m, NestBody *body)
{
    const Shape *s = m->x->shape;
    m->to->rewritten = true; /* what is stored is not what was read at the same place */
    m->w = temp_array(L, shape_array(L->arena, m->type, 2, (const int64_t[]){ m->rows, m->columns }), "w");
    nest(L, s->rank - 2, plan_dims(L, m->x, ROLE_MATRICES, s->rank - 2, s->dims), NULL, body, m);
}

static bool operands_are_cheap(Lower *L, const Inst *x)
{
    for (int32_t k = 0; k < x->n_operands; k++)
        if (!is_cheap(L, inst_operand(x, k)))
            need_memory(L, inst_operand(x, k));
    return !L->again;
}

void stage_cholesky(Lower *L, const Inst *x, KArray *const *to)
{
    const Shape *s = x->shape;
    Matrix       m = { .x = x, .to = to[0], .type = wide_type(s->type), .rows = s->dims[s->rank - 1], .columns = s->dims[s->rank - 1] };
    m.lower = inst_bool(x, ATTR_LOWER);
    if (operands_are_cheap(L, x))
        each_matrix(L, &m, cholesky_matrix);
}

static const KExpr *coefficient(Lower *L, const Matrix *m, const Ix *const *batch, const Ix *r, const Ix *c)
{
    return element(L, inst_operand(m->x, 0), batch, m->turned ? c : r, m->turned ? r : c, m->adjoint);
}

static const Ix *row_in_order(Lower *L, const Matrix *m, const Ix *step)
{
    return m->forward ? step : ix_plus(&L->ix, ix_times(&L->ix, step, -1), m->rows - 1);
}

/* w[r, c] -= t[r, s] * w[s, c] for the rows `first` .. first + n - 1 in order, all at once for each c: a row is loaded and stored once. */
static void subtract_rows(Lower *L, const Matrix *m, const Ix *const *batch, const Ix *r, const Ix *first, int32_t n)
{
    const Ix    *s[TOGETHER], *c;
    const KExpr *f[TOGETHER];
    for (int32_t k = 0; k < n; k++) {
        s[k] = row_in_order(L, m, ix_plus(&L->ix, first, k));
        f[k] = bind(L, coefficient(L, m, batch, r, s[k]), "f");
    }
    loop_between(L, ix_const(&L->ix, 0), ix_const(&L->ix, m->columns), &c);
    const KExpr *sum = at_present(L, m, r, c);
    for (int32_t k = 0; k < n; k++) {
        const KExpr *product = kx_binary(L->arena, KOP_MUL, m->type, f[k], at_present(L, m, s[k], c));
        sum = kx_binary(L->arena, KOP_SUB, m->type, sum, product);
    }
    store(L, m->w, place(L, m, r, c), sum);
    block_close(L);
}

static void substitute(Lower *L, const Matrix *m, const Ix *const *batch)
{
    const Ix *step = open_rows(L, m), *group, *before, *c, *none = ix_const(&L->ix, 0), *columns = ix_const(&L->ix, m->columns);
    const Ix *r = row_in_order(L, m, step), *groups = ix_div(&L->ix, step, TOGETHER);
    if (loop_between(L, none, groups, &group)) {
        subtract_rows(L, m, batch, r, ix_times(&L->ix, group, TOGETHER), TOGETHER);
        block_close(L);
    }
    if (loop_between(L, ix_times(&L->ix, groups, TOGETHER), step, &before)) {
        subtract_rows(L, m, batch, r, before, 1);
        block_close(L);
    }
    if (!m->unit) {
        const KExpr *d = bind(L, coefficient(L, m, batch, r, r), "d");
        loop_between(L, none, columns, &c);
        divide_row(L, m, d, r, c);
        block_close(L);
    }
    block_close(L);
}

static void solve_matrix(Lower *L, void *cookie, const Ix *const *batch)
{
    Matrix   *m = cookie;
    const Ix *none = ix_const(&L->ix, 0), *r = open_rows(L, m), *c;
    loop_between(L, none, ix_const(&L->ix, m->columns), &c);
    store(L, m->w, place(L, m, r, c), element(L, inst_operand(m->x, 1), batch, m->left ? r : c, m->left ? c : r, false));
    block_close(L);
    block_close(L);
    substitute(L, m, batch);
    r = open_rows(L, m);
    loop_between(L, none, ix_const(&L->ix, m->columns), &c);
    put_element(L, m->to, batch, m->left ? r : c, m->left ? c : r, load(L, m->w, place(L, m, r, c)));
    block_close(L);
    block_close(L);
}

void stage_triangular_solve(Lower *L, const Inst *x, KArray *const *to)
{
    const Shape *s = x->shape;
    Word         op = inst_word(x, ATTR_TRANSPOSE_A);
    Matrix       m = { .x = x, .to = to[0], .type = wide_type(s->type), .lower = inst_bool(x, ATTR_LOWER) };
    m.left = inst_bool(x, ATTR_LEFT_SIDE);
    m.unit = inst_bool(x, ATTR_UNIT_DIAGONAL);
    m.adjoint = op == TRANSPOSE_ADJOINT;
    m.turned = (op != TRANSPOSE_NO) != !m.left; /* x op(a) = b is op(a)^T x^T = b^T */
    m.forward = m.lower != m.turned;
    m.rows = s->dims[s->rank - (m.left ? 2 : 1)];
    m.columns = s->dims[s->rank - (m.left ? 1 : 2)];
    if (operands_are_cheap(L, x))
        each_matrix(L, &m, solve_matrix);
}
