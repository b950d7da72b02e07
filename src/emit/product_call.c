/* Which dots, and fusions around one, are products of cuBLASLt: types, sizes, matrices that lie as it wants them, and what it can do to them on their way out. */
#include "emit/product_call.h"

#include "emit/kernel_ir.h"
#include "passes/util.h"

enum { LEAST_PRODUCT = 1 << 18, LEAST_SIDE = 8, LEAST_FEW = 2, MOST_CALLS = 64 }; /* multiplications; rows, columns and sums; rows or columns where a member has so much work; members of an outer batch */
/* What cuBLAS is told to want: 32 MiB on Hopper; for less work 4. Source: cuBLAS documentation, cublasSetWorkspace. */
enum { MUCH_WORK = 1 << 30, MUCH_MEMORY = 32 << 20, LITTLE_MEMORY = 4 << 20 };
enum { MOST_RANK = 32 };

/* ---- the dot ---- */

/* Source: cuBLAS documentation, cublasLtMatmul(), "Supported types". */
static const struct {
    Type lhs, rhs, out;
} types[] = {
    { TYPE_F32, TYPE_F32, TYPE_F32 },       { TYPE_F64, TYPE_F64, TYPE_F64 },       { TYPE_BF16, TYPE_BF16, TYPE_BF16 },     { TYPE_BF16, TYPE_BF16, TYPE_F32 },
    { TYPE_F16, TYPE_F16, TYPE_F16 },       { TYPE_F16, TYPE_F16, TYPE_F32 },       { TYPE_S8, TYPE_S8, TYPE_S32 },          { TYPE_C64, TYPE_C64, TYPE_C64 },
    { TYPE_C128, TYPE_C128, TYPE_C128 },    { TYPE_F8E4M3FN, TYPE_F8E4M3FN, TYPE_F32 }, { TYPE_F8E4M3FN, TYPE_F8E5M2, TYPE_F32 }, { TYPE_F8E5M2, TYPE_F8E4M3FN, TYPE_F32 },
    { TYPE_F8E4M3FN, TYPE_F8E4M3FN, TYPE_BF16 }, { TYPE_F8E4M3FN, TYPE_F8E5M2, TYPE_BF16 }, { TYPE_F8E5M2, TYPE_F8E4M3FN, TYPE_BF16 },
    { TYPE_F8E4M3FN, TYPE_F8E4M3FN, TYPE_F16 }, { TYPE_F8E4M3FN, TYPE_F8E5M2, TYPE_F16 }, { TYPE_F8E5M2, TYPE_F8E4M3FN, TYPE_F16 },
};

static bool has_types(Type lhs, Type rhs, Type out)
{
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].lhs == lhs && types[k].rhs == rhs && types[k].out == out)
            return true;
    return false;
}

/* Rows or columns lie side by side, and no two are the same. */
static bool is_matrix(int64_t rows, int64_t cols, int64_t by_row, int64_t by_col)
{
    return (by_row == 1 && by_col >= rows) || (by_col == 1 && by_row >= cols);
}

/* Few rows are too few threads for long sums: of 4 x 4096 x 4096 each of 16384 would go through 4096 terms, of which it has 8 under way. A single one is cut into pieces. */
static bool has_sides(const DotCall *d)
{
    const int64_t least = (double)d->m * (double)d->n * (double)d->k < LEAST_PRODUCT ? LEAST_SIDE : LEAST_FEW;
    return d->m >= least && d->n >= least && d->k >= LEAST_SIDE;
}

static bool is_product(const DotCall *d)
{
    double work = (double)d->m * (double)d->n * (double)d->k;
    for (int32_t k = 0; k < d->n_batch; k++)
        work *= (double)d->batch[k].count;
    if (d->n_batch == 2 && d->batch[0].count > MOST_CALLS && d->batch[1].count > MOST_CALLS)
        return false;
    return has_sides(d) && work >= LEAST_PRODUCT && d->n_batch <= 2 && is_matrix(d->m, d->k, d->a_row, d->a_col) &&
           is_matrix(d->k, d->n, d->b_row, d->b_col) && d->c_row >= d->n;
}

/* Of the dot with a result in this layout. */
static bool dot_as_product(const Inst *dot, const Shape *result, DotCall *out)
{
    if (dot->op != OP_DOT || dot->n_operands != 2 || inst_attr(dot, ATTR_SPARSITY_CONFIG))
        return false;
    const Shape *lhs = inst_operand(dot, 0)->shape, *rhs = inst_operand(dot, 1)->shape;
    return has_types(lhs->type, rhs->type, result->type) && dot_call_sizes(dot, lhs, rhs, result, out) && is_product(out);
}

bool product_call_alone(const Inst *dot)
{
    DotCall d;
    return dot->op == OP_DOT && inst_operand(dot, 0)->op == OP_PARAMETER && inst_operand(dot, 1)->op == OP_PARAMETER && dot_as_product(dot, dot->shape, &d);
}

/* ---- what the library does to it ---- */

/* v is broadcast so that each row of the product has all of it, in order. */
static bool is_along_columns(const Inst *broadcast, const Shape *result, int64_t columns)
{
    const Shape *v = inst_operand(broadcast, 0)->shape;
    Ints         dims = inst_ints(broadcast, ATTR_DIMENSIONS);
    int64_t      own[MOST_RANK], to[MOST_RANK];
    if (v->rank > MOST_RANK || result->rank > MOST_RANK)
        return false;
    shape_strides(v, own);
    shape_strides(result, to);
    for (int32_t k = 0; k < v->rank; k++)
        if (v->dims[k] > 1 && own[k] != to[dims.v[k]])
            return false;
    return shape_count(v) == columns;
}

/* Of other types the library has products alone. Source: as above. */
static bool may_have(const ProductCall *p)
{
    const Type t = p->dot.out;
    const bool narrow = t == TYPE_F32 || t == TYPE_BF16 || t == TYPE_F16, f8 = type_bits(p->dot.in) == 8 && type_is_float(p->dot.in);
    if (p->epilogue.act != ACT_NONE || p->epilogue.bias >= 0)
        return narrow && !(f8 && t == TYPE_F32);
    return narrow || t == TYPE_F64 || (p->epilogue.alpha == 1 && p->epilogue.added < 0);
}

static bool fusion_call(const Inst *i, ProductCall *out)
{
    ProductEpilogue *e = &out->epilogue;
    return product_epilogue(i, OP_DOT, e) && dot_as_product(e->hero, i->shape, &out->dot) && (!e->along || is_along_columns(e->along, i->shape, out->dot.n)) && may_have(out);
}

bool product_call(const Inst *i, ProductCall *out)
{
    *out = (ProductCall){ .epilogue = { .added = -1, .bias = -1, .alpha = 1, .rhs = 1 } };
    if (i->op == OP_FUSION && i->n_callees == 1) {
        if (!fusion_call(i, out))
            return false;
    } else if (dot_as_product(i, i->shape, &out->dot) && !splat_value(inst_operand(i, 0)) && !splat_value(inst_operand(i, 1))) {
        out->epilogue.hero = i;
    } else {
        return false;
    }
    out->work = (double)out->dot.m * (double)out->dot.n * (double)out->dot.k >= MUCH_WORK ? MUCH_MEMORY : LITTLE_MEMORY;
    return true;
}

/* The kernel has the operand as a pointer, its own or that of another one that is the same; none needs none. */
static bool find_operand(const Kernel *k, int32_t *operand)
{
    for (int32_t j = 0; j < k->n_operands && *operand >= 0; j++)
        if (inst_operand(k->inst, j) == inst_operand(k->inst, *operand) && kernel_uses_param(k, j)) {
            *operand = j;
            return true;
        }
    return *operand < 0;
}

bool kernel_has_operands(const Kernel *k, ProductEpilogue *e)
{
    return find_operand(k, &e->lhs) && find_operand(k, &e->rhs) && find_operand(k, &e->added) && find_operand(k, &e->bias);
}

bool product_call_of_kernel(const Kernel *k, ProductCall *out)
{
    const Inst *i = k->inst;
    if (k->n_operands != i->n_operands || k->n_results != 1 || !product_call(i, out))
        return false;
    return kernel_has_operands(k, &out->epilogue);
}

void kernel_for_product(Kernel *k)
{
    ProductCall p;
    if (product_call_of_kernel(k, &p) && k->temp_bytes < p.work + PRODUCT_ALIGN)
        k->temp_bytes = p.work + PRODUCT_ALIGN;
}
