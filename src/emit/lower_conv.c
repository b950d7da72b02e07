/* convolution: out[n, y, f] = sum over window positions k and input features z of
 *     lhs[n + bg*(N/B), (y*stride + k*rhs_dilate - pad) / lhs_dilate, fg*Z + z] * rhs[k', z, f]
 * where what falls outside the image or between its dilated elements is left out.
 *
 * A tile of pixels (along the last spatial dimension) x features is summed in a local array: vectorised over features when they are the
 * kernel's fastest dimension (HWIO), else over pixels. Pixels whose whole window is inside the image along that dimension come in tiles;
 * those at the border one by one, with a test in the loop over the window.
 *
 * For targets that deal loops out to threads each result is one sum over the window and the input features.
 *
 * Long sums (a gradient of the weights is one over the whole image) are summed a window row at a time, and the rows' sums are summed. */
#include "emit/lower.h"

enum { ROLE_OUTER = 20, LONG_CHAIN = 1024 /* more terms than that are not added one after another */ };

typedef struct Conv {
    const Inst      *x;
    Type             type; /* of products and sums */
    const Shape     *lhs, *rhs;
    const DimLabels *labels;
    const Window    *window;
    int64_t          groups, per; /* output feature = group * per + j */
    bool             batch_groups;
    int32_t          last;        /* the spatial dimension that is tiled, -1: none */
    bool             by_feature;  /* features are the vector, pixels are unrolled */
    bool             each_group;  /* the tile's features are one of each group (per == 1) */
    KArray          *to, *acc;
    bool             rows;        /* sum rows of the window, then their sums */
    KArray          *total;       /* of the rows' sums, or NULL */
    KTemp           *sum;         /* of the only pixel and feature, for targets that deal loops out to threads; else NULL */
    /* where the tile is */
    int64_t          pixels, features;
    const Ix *const *outer;       /* index of the result; the tiled pixel and feature are at their first */
    const Ix        *pixel, *feature, *group;
    const Ix       **k;           /* window position */
    const Ix       **at;          /* image position */
    const Ix        *z;
} Conv;

/* Image coordinate along spatial dimension d before dividing by the dilation, for pixel p of the tile. */
static const Ix *position(Lower *L, const Conv *c, int32_t d, const Ix *p)
{
    const WindowDim *w = &c->window->v[d];
    const Ix        *y = c->outer[c->labels->out_spatial[d]];
    if (d == c->last)
        y = ix_add(&L->ix, ix_add(&L->ix, y, c->pixel), p);
    return ix_plus(&L->ix, ix_add(&L->ix, ix_times(&L->ix, y, w->stride), ix_times(&L->ix, c->k[d], w->window_dilation)), -w->pad_lo);
}

/* Group and feature within the group of feature j of the tile. */
static const Ix *group_of(Lower *L, const Conv *c, const Ix *j)
{
    if (c->sum)
        return ix_div(&L->ix, c->outer[c->labels->out_feature], c->per);
    return c->each_group ? ix_add(&L->ix, c->feature, j) : c->group;
}

static const Ix *feature_of(Lower *L, const Conv *c, const Ix *j)
{
    if (c->sum)
        return c->outer[c->labels->out_feature];
    if (c->each_group)
        return ix_add(&L->ix, c->feature, j);
    return ix_add(&L->ix, ix_times(&L->ix, c->group, c->per), ix_add(&L->ix, c->feature, j));
}

static const KExpr *operand_at(Lower *L, const Conv *c, int32_t k, const Ix *const *at)
{
    int32_t     leaf = 0;
    const Inst *from = resolve(L, inst_operand(c->x, k), &leaf);
    Type        t = from->shape->type, result = c->x->shape->type;
    const KExpr *v = value_at(L, from, leaf, at);
    if (type_is_int(result) || result == TYPE_PRED) { /* operands take the result's type first */
        v = scalar_convert(L->arena, t, result, v);
        t = result;
    }
    return scalar_convert(L->arena, t, c->type, v);
}

static const KExpr *image(Lower *L, const Conv *c, const Ix *p, const Ix *j)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, c->lhs->rank);
    const Ix  *g = group_of(L, c, j), *n = c->outer[c->labels->out_batch];
    int64_t    z = c->rhs->dims[c->labels->rhs_in];
    at[c->labels->lhs_batch] = c->batch_groups ? ix_add(&L->ix, n, ix_times(&L->ix, g, c->x->shape->dims[c->labels->out_batch])) : n;
    at[c->labels->lhs_feature] = c->batch_groups ? c->z : ix_add(&L->ix, ix_times(&L->ix, g, z), c->z);
    for (int32_t d = 0; d < c->labels->spatial; d++)
        at[c->labels->lhs_spatial[d]] = ix_div(&L->ix, position(L, c, d, p), c->window->v[d].base_dilation);
    return operand_at(L, c, 0, at);
}

static const KExpr *weight(Lower *L, const Conv *c, const Ix *j)
{
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, c->rhs->rank);
    at[c->labels->rhs_in] = c->z;
    at[c->labels->rhs_out] = feature_of(L, c, j);
    for (int32_t d = 0; d < c->labels->spatial; d++) {
        const WindowDim *w = &c->window->v[d];
        at[c->labels->rhs_spatial[d]] = w->reversal ? ix_plus(&L->ix, ix_times(&L->ix, c->k[d], -1), w->size - 1) : c->k[d];
    }
    return operand_at(L, c, 1, at);
}

static void add_product(Lower *L, const Conv *c, const Ix *at, const KExpr *x, const KExpr *y)
{
    const KExpr *product = scalar_binary(L->arena, OP_MULTIPLY, c->type, x, y);
    store(L, c->acc, at, scalar_binary(L->arena, OP_ADD, c->type, load_current(L, c->acc, at), product));
}

/* Opens a loop of n trips unless there is only one. */
static const Ix *open_trips(Lower *L, int64_t n)
{
    return n > 1 ? ix_of(&L->ix, loop_open(L, 0, n, NULL, 1)) : ix_const(&L->ix, 0);
}

static void close_trips(Lower *L, int64_t n)
{
    if (n > 1)
        block_close(L);
}

/* One term of every sum of the tile: the side that is not the vector has a scalar a row. */
static void tile_terms(Lower *L, Conv *c)
{
    int64_t       rows = c->by_feature ? c->pixels : c->features, cols = c->by_feature ? c->features : c->pixels;
    const KExpr **a = ARENA_ARRAY(L->arena, const KExpr *, rows);
    const Ix     *none = ix_const(&L->ix, 0);
    bool          hoisted = !c->each_group;
    for (int64_t r = 0; r < rows && hoisted; r++) {
        const Ix *i = ix_const(&L->ix, r);
        a[r] = bind(L, c->by_feature ? image(L, c, i, none) : weight(L, c, i), arena_printf(L->arena, "a%lld", (long long)r));
    }
    const Ix    *j = open_trips(L, cols);
    const KExpr *b = NULL;
    if (hoisted || c->by_feature)
        b = c->by_feature ? weight(L, c, j) : image(L, c, j, none);
    if (b && rows > 1)
        b = bind(L, b, "b");
    for (int64_t r = 0; r < rows; r++) {
        const Ix *i = ix_const(&L->ix, r), *at = ix_plus(&L->ix, j, r * cols);
        if (hoisted)
            add_product(L, c, at, a[r], b);
        else if (c->by_feature)
            add_product(L, c, at, image(L, c, i, j), b);
        else
            add_product(L, c, at, weight(L, c, i), image(L, c, j, i));
    }
    close_trips(L, cols);
}

static void one_term(Lower *L, const Conv *c)
{
    const Ix    *none = ix_const(&L->ix, 0);
    const KExpr *product = scalar_binary(L->arena, OP_MULTIPLY, c->type, image(L, c, none, none), weight(L, c, none));
    assign(L, c->sum, scalar_binary(L->arena, OP_ADD, c->type, current(L, c->sum), product));
}

static void input_features(Lower *L, Conv *c)
{
    int64_t n = c->rhs->dims[c->labels->rhs_in];
    if (n == 0)
        return;
    c->z = open_trips(L, n);
    if (c->sum)
        one_term(L, c);
    else
        tile_terms(L, c);
    close_trips(L, n);
}

static void clear(Lower *L, const Conv *c, KArray *x)
{
    int64_t   n = c->pixels * c->features;
    const Ix *j = open_trips(L, n);
    store(L, x, j, scalar_zero(L->arena, c->type));
    close_trips(L, n);
}

static void window_loops(Lower *L, Conv *c, int32_t d);

/* One row of the window, its sum added to the total. */
static void window_row(Lower *L, Conv *c)
{
    int64_t n = c->pixels * c->features;
    c->acc = local_array(L, c->type, n, "acc");
    clear(L, c, c->acc);
    window_loops(L, c, 1);
    const Ix *j = open_trips(L, n);
    store(L, c->total, j, scalar_binary(L->arena, OP_ADD, c->type, load_current(L, c->total, j), load_current(L, c->acc, j)));
    close_trips(L, n);
}

/* Loops over the window from dimension d on, leaving out what is not in the image. */
static void window_loops(Lower *L, Conv *c, int32_t d)
{
    if (d == c->labels->spatial) {
        input_features(L, c);
        return;
    }
    const WindowDim *w = &c->window->v[d];
    int64_t          size = c->lhs->dims[c->labels->lhs_spatial[d]], reach = (size - 1) * w->base_dilation + 1;
    c->k[d] = open_trips(L, w->size);
    /* All pixels of a tile are inside when one of them is not known to be: then there is only one. */
    const Ix    *first = position(L, c, d, ix_const(&L->ix, 0));
    int64_t      least, most, end;
    const KExpr *cond = NULL, *v = kx_index(L->arena, first);
    ix_range(first, &least, &most);
    end = d == c->last ? reach - (c->pixels - 1) * w->stride : reach;
    bool never = size == 0 || (c->sum ? most < 0 || least >= reach : in_range(L, first, 0, reach) == 0);
    if (!never && least < 0)
        cond = kx_binary(L->arena, KOP_GE, TYPE_PRED, v, kx_int(L->arena, TYPE_S64, 0));
    if (!never && most >= end) {
        const KExpr *below = kx_binary(L->arena, KOP_LT, TYPE_PRED, v, kx_int(L->arena, TYPE_S64, reach));
        cond = cond ? kx_binary(L->arena, KOP_LAND, TYPE_PRED, cond, below) : below;
    }
    if (!never && w->base_dilation > 1) {
        const Ix *rest = ix_mod(&L->ix, first, w->base_dilation);
        int64_t   hole;
        if (!ix_is_const(rest, &hole)) {
            const KExpr *hit = kx_binary(L->arena, KOP_EQ, TYPE_PRED, kx_index(L->arena, rest), kx_int(L->arena, TYPE_S64, 0));
            cond = cond ? kx_binary(L->arena, KOP_LAND, TYPE_PRED, cond, hit) : hit;
        } else
            never = hole != 0;
    }
    if (cond && !never)
        if_open(L, cond);
    if (!never && d == 0 && c->total)
        window_row(L, c);
    else if (!never)
        window_loops(L, c, d + 1);
    if (cond && !never)
        block_close(L);
    close_trips(L, w->size);
}

static const KExpr *result_value(Lower *L, const Conv *c, const KExpr *sum)
{
    Type t = c->x->shape->type;
    if (type_is_int(t) && type_bits(t) >= 8 && type_bits(t) < 64)
        return kx_call(L->arena, arena_printf(L->arena, "saturate_%s", type_name(t)), t, 1, &sum);
    return scalar_convert(L->arena, c->type, t, sum);
}

static void store_tile(Lower *L, Conv *c)
{
    int64_t    rows = c->by_feature ? c->pixels : c->features, cols = c->by_feature ? c->features : c->pixels;
    const Ix  *r = open_trips(L, rows), *j = open_trips(L, cols);
    const Ix  *p = c->by_feature ? r : j, *f = c->by_feature ? j : r;
    int32_t    rank = c->x->shape->rank;
    const Ix **at = ARENA_ARRAY(L->arena, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = c->outer[d];
    if (c->last >= 0)
        at[c->labels->out_spatial[c->last]] = ix_add(&L->ix, ix_add(&L->ix, at[c->labels->out_spatial[c->last]], c->pixel), p);
    at[c->labels->out_feature] = feature_of(L, c, f);
    store_result(L, c->x, c->to, at, result_value(L, c, load(L, c->acc, ix_add(&L->ix, ix_times(&L->ix, r, cols), j))));
    close_trips(L, cols);
    close_trips(L, rows);
}

static void tile(Lower *L, Conv *c)
{
    int64_t n = c->pixels * c->features;
    c->acc = local_array(L, c->type, n, c->rows ? "total" : "acc");
    clear(L, c, c->acc);
    c->total = c->rows ? c->acc : NULL;
    window_loops(L, c, 0);
    c->acc = c->rows ? c->total : c->acc;
    store_tile(L, c);
}

/* Feature tiles of the pixels at hand. */
static void along_features(Lower *L, Conv *c)
{
    int64_t n = c->each_group ? c->groups : c->per;
    int64_t width = c->by_feature ? tile_width(n, c->pixels > 1 ? 64 : 128, 32) : tile_width(n, 4, 3);
    c->features = width;
    c->feature = ix_times(&L->ix, open_trips(L, n / width), width);
    tile(L, c);
    close_trips(L, n / width);
    if (n % width) {
        c->features = n % width;
        c->feature = ix_const(&L->ix, n / width * width);
        tile(L, c);
    }
}

/* Pixels lo .. end - 1 in tiles of at most `most`. */
static void pixel_range(Lower *L, Conv *c, int64_t lo, int64_t end, int64_t most)
{
    int64_t n = end - lo, width = most > 1 ? tile_width(n, most, most > 8 ? most / 2 : 3) : 1;
    if (n <= 0)
        return;
    c->pixels = width;
    c->pixel = ix_plus(&L->ix, ix_times(&L->ix, open_trips(L, n / width), width), lo);
    along_features(L, c);
    close_trips(L, n / width);
    if (n % width) {
        c->pixels = n % width;
        c->pixel = ix_const(&L->ix, lo + n / width * width);
        along_features(L, c);
    }
}

/* Pixels whose window lies inside the image: lo .. end - 1. */
static void inside_range(const Conv *c, int64_t n, int64_t *lo, int64_t *end)
{
    const WindowDim *w = &c->window->v[c->last];
    int64_t          size = c->lhs->dims[c->labels->lhs_spatial[c->last]];
    int64_t          room = size - 1 + w->pad_lo - (w->size - 1) * w->window_dilation;
    *lo = w->pad_lo <= 0 ? 0 : (w->pad_lo + w->stride - 1) / w->stride;
    *end = room < 0 ? 0 : room / w->stride + 1;
    if (*lo > n)
        *lo = n;
    if (*end > n)
        *end = n;
    if (w->base_dilation > 1 || *end < *lo || size == 0)
        *lo = *end = 0;
}

static void conv_body(Lower *L, void *cookie, const Ix *const *index)
{
    Conv *c = cookie;
    c->outer = index;
    c->group = ix_const(&L->ix, 0);
    bool grouped = c->groups > 1 && !c->each_group;
    if (grouped)
        c->group = ix_of(&L->ix, loop_open(L, 0, c->groups, NULL, 1));
    if (c->last < 0) {
        c->pixels = 1;
        c->pixel = ix_const(&L->ix, 0);
        along_features(L, c);
    } else {
        int64_t n = c->x->shape->dims[c->labels->out_spatial[c->last]], lo, end;
        inside_range(c, n, &lo, &end);
        pixel_range(L, c, 0, lo, 1);
        pixel_range(L, c, lo, end, c->by_feature ? 4 : 64);
        pixel_range(L, c, end, n, 1);
    }
    if (grouped)
        block_close(L);
}

/* One result, in one sum. */
static void plain_body(Lower *L, void *cookie, const Ix *const *index)
{
    Conv *c = cookie;
    c->outer = index;
    c->pixels = 1;
    c->sum = accumulator(L, scalar_zero(L->arena, c->type), machine_type(c->type), c->x->name);
    window_loops(L, c, 0);
    store_result(L, c->x, c->to, index, result_value(L, c, kx_temp(L->arena, c->sum)));
}

/* Sums of floats whose chain is long, over a window with several rows. */
static bool sums_rows(const Conv *c)
{
    int64_t n = c->rhs->dims[c->labels->rhs_in];
    for (int32_t d = 0; d < c->labels->spatial; d++)
        n = n > LONG_CHAIN ? n : n * c->window->v[d].size;
    return c->type == TYPE_F32 && n > LONG_CHAIN && c->labels->spatial > 1 && c->window->v[0].size > 1;
}

static Type conv_type(Type t)
{
    if (type_is_float(t))
        return t == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    return type_is_signed_int(t) ? TYPE_S64 : type_is_unsigned_int(t) ? TYPE_U64 : t;
}

/* The kernel's fastest dimension of some size is that of output features? */
static bool features_are_fast(const Conv *c)
{
    for (int32_t k = 0; k < c->rhs->rank; k++) {
        int64_t d = layout_dim(c->rhs, k);
        if (c->rhs->dims[d] > 1)
            return d == c->labels->rhs_out;
    }
    return true;
}

void stage_convolution(Lower *L, const Inst *x, KArray *const *to)
{
    Conv c = { .x = x, .type = conv_type(x->shape->type), .lhs = inst_operand(x, 0)->shape, .rhs = inst_operand(x, 1)->shape,
               .labels = inst_attr(x, ATTR_DIM_LABELS)->value.dim_labels, .window = inst_window(x), .to = to[0] };
    int64_t feature_groups = inst_int(x, ATTR_FEATURE_GROUP_COUNT, 1), batch_groups = inst_int(x, ATTR_BATCH_GROUP_COUNT, 1);
    for (int32_t k = 0; k < 2; k++)
        if (!is_cheap(L, inst_operand(x, k)))
            need_memory(L, inst_operand(x, k));
    if (L->again)
        return;
    c.batch_groups = batch_groups > 1;
    c.groups = c.batch_groups ? batch_groups : feature_groups;
    c.per = c.rhs->dims[c.labels->rhs_out] / c.groups;
    c.each_group = c.per == 1 && c.groups > 1;
    c.last = c.labels->spatial - 1;
    c.rows = sums_rows(&c);
    c.by_feature = c.last < 0 || features_are_fast(&c);
    c.k = ARENA_ARRAY(L->arena, const Ix *, c.labels->spatial);
    int32_t  rank = x->shape->rank;
    int64_t *extents = ARENA_ARRAY(L->arena, int64_t, rank);
    for (int32_t d = 0; d < rank; d++)
        extents[d] = x->shape->dims[d];
    if (L->plan->plain) {
        c.last = -1;
        nest(L, rank, plan_dims(L, x, ROLE_OUTER, rank, extents), major_order(L, x->shape), plain_body, &c);
        return;
    }
    extents[c.labels->out_feature] = 1;
    if (c.last >= 0)
        extents[c.labels->out_spatial[c.last]] = 1;
    nest(L, rank, plan_dims(L, x, ROLE_OUTER, rank, extents), major_order(L, x->shape), conv_body, &c);
}
