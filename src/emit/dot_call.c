/* Which products of matrices a dot is. Its dimensions are of four kinds, by who has them: batch (all three), rows (lhs and result), columns (rhs and result), sums
 * (lhs and rhs). Neighbouring dimensions of one kind that lie in memory like one become one:
 *
 *     f32[12,64,768] dot f32[768,3072], k = {2}      rows 12 x 64 are rows 768        C [768,3072] = A [768,768] B [768,3072]
 *
 * What is left beside one dimension for rows, columns and sums joins the batch, where a distance of 0 says that an operand does not have it. */
#include "emit/dot_call.h"

enum { KINDS = 4, LEAST = 4096, LEAST_OF_BYTES = 1024, LEAST_OF_MANY = 256 }; /* multiplications below which loops in the text are as good: of a product, of one of bytes, of one of many */
typedef enum Kind { BATCH, ROWS, COLUMNS, SUMS } Kind;
enum { OF_LHS, OF_RHS, OF_RESULT };

typedef struct Dim {
    int64_t count, by[3]; /* distances of lhs, rhs, result; 0: it has no such dimension */
} Dim;

enum { MOST_DIMS = 32 };
typedef struct Dims {
    int32_t n;
    Dim     v[MOST_DIMS];
} Dims;

static const struct {
    Type        in, out;
    const char *symbol;
} functions[] = {
    { TYPE_F32, TYPE_F32, "hlort_dot_f32" },
    { TYPE_F64, TYPE_F64, "hlort_dot_f64" },
    { TYPE_BF16, TYPE_BF16, "hlort_dot_bf16" },
    { TYPE_BF16, TYPE_F32, "hlort_dot_bf16_f32" },
    { TYPE_F16, TYPE_F16, "hlort_dot_f16" },
    { TYPE_F16, TYPE_F32, "hlort_dot_f16_f32" },
    { TYPE_S32, TYPE_S32, "hlort_dot_s32" },
    { TYPE_U32, TYPE_U32, "hlort_dot_s32" },
    { TYPE_S8, TYPE_S32, "hlort_dot_s8_s32" },
    { TYPE_U8, TYPE_S32, "hlort_dot_u8_s32" },
    { TYPE_U8, TYPE_U32, "hlort_dot_u8_s32" },
    { TYPE_C64, TYPE_C64, "hlort_dot_c64" },
    { TYPE_C128, TYPE_C128, "hlort_dot_c128" },
};

static const char *symbol_of(Type lhs, Type rhs, Type out)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (functions[k].in == lhs && functions[k].in == rhs && functions[k].out == out)
            return functions[k].symbol;
    return NULL;
}

/* Adds a dimension; it becomes one with an earlier one when the two lie in memory like one. */
static void add(Dims *d, Dim x)
{
    if (x.count == 1)
        return;
    for (int32_t k = 0; k < d->n; k++) {
        Dim *y = &d->v[k];
        bool outer = true, inner = true; /* y is outside of x, inside */
        for (int32_t e = 0; e < 3; e++) {
            outer &= y->by[e] == x.by[e] * x.count;
            inner &= x.by[e] == y->by[e] * y->count;
        }
        if (!outer && !inner)
            continue;
        x.count *= y->count;
        for (int32_t e = 0; e < 3 && inner; e++)
            x.by[e] = y->by[e];
        *y = d->v[--d->n];
        add(d, x);
        return;
    }
    d->v[d->n++] = x;
}

static void add_free(Dims *d, const Inst *i, const Shape *s, const int64_t *strides, const int64_t *result, int32_t operand, int32_t *at)
{
    Ints batch = inst_ints(i, operand ? ATTR_RHS_BATCH_DIMS : ATTR_LHS_BATCH_DIMS);
    Ints sums = inst_ints(i, operand ? ATTR_RHS_CONTRACTING_DIMS : ATTR_LHS_CONTRACTING_DIMS);
    for (int32_t k = 0; k < s->rank; k++)
        if (!ints_has(batch, k) && !ints_has(sums, k)) {
            Dim x = { .count = s->dims[k] };
            x.by[operand] = strides[k];
            x.by[OF_RESULT] = result[(*at)++];
            add(d, x);
        }
}

static void sort_dims(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, Dims kinds[KINDS])
{
    int64_t a[MOST_DIMS], b[MOST_DIMS], c[MOST_DIMS];
    Ints    batch[] = { inst_ints(i, ATTR_LHS_BATCH_DIMS), inst_ints(i, ATTR_RHS_BATCH_DIMS) };
    Ints    sums[] = { inst_ints(i, ATTR_LHS_CONTRACTING_DIMS), inst_ints(i, ATTR_RHS_CONTRACTING_DIMS) };
    int32_t at = batch[0].n;
    shape_strides(lhs, a);
    shape_strides(rhs, b);
    shape_strides(result, c);
    for (int32_t k = 0; k < batch[0].n; k++)
        add(&kinds[BATCH], (Dim){ lhs->dims[batch[0].v[k]], { a[batch[0].v[k]], b[batch[1].v[k]], c[k] } });
    for (int32_t k = 0; k < sums[0].n; k++)
        add(&kinds[SUMS], (Dim){ lhs->dims[sums[0].v[k]], { a[sums[0].v[k]], b[sums[1].v[k]], 0 } });
    add_free(&kinds[ROWS], i, lhs, a, c, OF_LHS, &at);
    add_free(&kinds[COLUMNS], i, rhs, b, c, OF_RHS, &at);
}

/* Takes the best dimension out: the one whose neighbours lie together in the result (a size of 1 if there is none, which may be said to), or the largest. */
static Dim take(Dims *d, bool neighbours)
{
    int32_t best = -1;
    for (int32_t k = 0; k < d->n; k++)
        if (neighbours ? d->v[k].by[OF_RESULT] == 1 : best < 0 || d->v[k].count > d->v[best].count)
            best = k;
    if (best < 0)
        return (Dim){ 1, { 1, 1, 1 } };
    Dim x = d->v[best];
    d->v[best] = d->v[--d->n];
    return x;
}

static bool has_neighbours(const Dims *d)
{
    for (int32_t k = 0; k < d->n; k++)
        if (d->v[k].by[OF_RESULT] == 1)
            return true;
    return false;
}

static bool add_batch(DotCall *out, const Dims *d, int32_t a, int32_t b)
{
    for (int32_t k = 0; k < d->n; k++) {
        if (out->n_batch == HLORT_MOST_BATCHES)
            return false;
        out->batch[out->n_batch].count = d->v[k].count;
        out->batch[out->n_batch].a = d->v[k].by[a];
        out->batch[out->n_batch].b = d->v[k].by[b];
        out->batch[out->n_batch++].c = d->v[k].by[OF_RESULT];
    }
    return true;
}

static double batch_count(const DotCall *d)
{
    double n = 1;
    for (int32_t k = 0; k < d->n_batch; k++)
        n *= (double)d->batch[k].count;
    return n;
}

/* Many products that are a few vectors each: a call's choices would take longer than they do (measured: 10000 of 8 x 8 x 8 398 us, as text 173). */
static bool is_few(const DotCall *d)
{
    return !type_is_complex(d->in) && d->in != TYPE_F16 && d->n <= DOT_FEW_COLUMNS && d->k <= DOT_FEW_TERMS && batch_count(d) > 1;
}

/* A batch of matrices times a vector each: both are read once, as they lie, which loops of the text do with all extents in them (measured: 32 of 32 x 8 13.3 us, as text 0.7, 16 of
 * 64 x 64 6.2 and 2.4, 8 of 128 x 128 of bf16, whose pairs a call multiplies at once, 5.0 and 8.0). */
static bool is_row(const DotCall *d)
{
    enum { MOST = 16384, MOST_PAIRS = 4096 };
    return !type_is_complex(d->in) && d->m == 1 && batch_count(d) > 1 && (double)d->n * (double)d->k <= (d->in == TYPE_BF16 ? MOST_PAIRS : MOST);
}

/* A single matrix times a vector likewise where k lies along its lines; or across them, where sums of all columns are some vectors, which a call would keep in registers for no longer than its
 * choices take (one thread of an Emerald Rapids, f32 and f64, a call and as text: 64 lines of 64 340 and 200 ns, 460 and 240, 240 of 60 3160 and 860, 3810 and 1240, 500 of 100 4360 and 2670, 6860
 * and 4270; across 100 x 100 530 and 380, 1130 and 850, but 1000 x 16 810 and 1390, 60 x 240 of f64 1020 and 1360). */
static bool is_line(const DotCall *d)
{
    enum { MOST = 1 << 17, MOST_ACROSS = 16384, LEAST_SUMS = 128, MOST_SUMS = 1024 /* bytes */ };
    const int64_t sums = d->n * type_bytes(d->in);
    const double  n = (double)d->n * (double)d->k;
    if (d->m != 1 || batch_count(d) > 1 || type_is_complex(d->in) || type_bits(d->in) < 32)
        return false;
    return d->b_row == 1 ? n <= MOST : d->b_col == 1 && n <= MOST_ACROSS && sums >= LEAST_SUMS && sums <= MOST_SUMS;
}

/* Lines of k times so few columns that they fill no vector, which are turned (f32, a call and as text: 64 x 32 x 2 700 and 180 ns, 1000 x 16 x 3 5600 and 2500, 128 x 128 x 2 1180 and 1120, 200 x 200 x 3 3600 and 4000). */
static bool is_narrow(const DotCall *d)
{
    enum { MOST = 1 << 16, MOST_OF_SHORT = 1 << 18, SHORT = 64 /* terms */ };
    const int64_t bytes = type_bytes(d->in);
    if ((d->in != TYPE_F32 && d->in != TYPE_F64) || batch_count(d) > 1 || d->m < DOT_ROWS_AT_ONCE || d->n * bytes >= DOT_VECTOR || d->k * bytes < DOT_LEAST_LINE)
        return false;
    return d->a_col == 1 && d->n * d->k <= DOT_MOST_TURNED && (double)d->m * (double)d->n * (double)d->k <= (d->k <= SHORT ? MOST_OF_SHORT : MOST);
}

bool dot_call_sizes(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, DotCall *out)
{
    Dims kinds[KINDS] = { 0 };
    *out = (DotCall){ .in = lhs->type, .out = result->type };
    if (lhs->rank > MOST_DIMS || rhs->rank > MOST_DIMS || result->rank > MOST_DIMS || shape_count(result) == 0)
        return false;
    sort_dims(i, lhs, rhs, result, kinds);
    out->swapped = !has_neighbours(&kinds[COLUMNS]) && has_neighbours(&kinds[ROWS]);
    const int32_t a = out->swapped ? OF_RHS : OF_LHS, b = out->swapped ? OF_LHS : OF_RHS;
    Dims         *rows = &kinds[out->swapped ? COLUMNS : ROWS], *columns = &kinds[out->swapped ? ROWS : COLUMNS];
    if (kinds[SUMS].n > 1 || !has_neighbours(columns))
        return false;
    Dim k = take(&kinds[SUMS], false), n = take(columns, true), m = take(rows, false);
    out->m = m.count;
    out->n = n.count;
    out->k = k.count;
    out->a_row = m.by[a];
    out->a_col = k.by[a];
    out->b_row = k.by[b];
    out->b_col = n.by[b];
    out->c_row = m.count > 1 ? m.by[OF_RESULT] : n.count;
    return add_batch(out, &kinds[BATCH], a, b) && add_batch(out, rows, a, b) && add_batch(out, columns, a, b);
}

bool dot_call(const Inst *i, const Shape *lhs, const Shape *rhs, const Shape *result, DotCall *out)
{
    const char *symbol = symbol_of(lhs->type, rhs->type, result->type);
    if (!symbol || !dot_call_sizes(i, lhs, rhs, result, out) || is_few(out) || is_row(out) || is_line(out) || is_narrow(out))
        return false;
    out->symbol = symbol;
    const double one = (double)out->m * (double)out->n * (double)out->k;
    return one >= (type_bits(lhs->type) == 8 ? LEAST_OF_BYTES : LEAST) || (one >= LEAST_OF_MANY && one * batch_count(out) >= 2 * LEAST);
}

/* Another pass over what the third cache holds is as fast (measured, with a residual: 3136 x 256 x 64 1063 us with an epilogue, 1040 without). */
int64_t dot_call_row(const DotCall *d)
{
    enum { LARGE = 8 << 20 }; /* bytes */
    const bool large = (double)d->m * (double)d->n * batch_count(d) * type_bytes(d->out) >= LARGE;
    return large && !type_is_complex(d->in) ? d->n : 0;
}

bool dot_call_equal(const DotCall *x, const DotCall *y)
{
    bool same = x->symbol == y->symbol && x->m == y->m && x->n == y->n && x->k == y->k && x->a_row == y->a_row && x->a_col == y->a_col &&
                x->b_row == y->b_row && x->b_col == y->b_col && x->c_row == y->c_row && x->n_batch == y->n_batch;
    for (int32_t k = 0; same && k < x->n_batch; k++)
        same = x->batch[k].count == y->batch[k].count && x->batch[k].a == y->batch[k].a && x->batch[k].b == y->batch[k].b && x->batch[k].c == y->batch[k].c;
    return same;
}
