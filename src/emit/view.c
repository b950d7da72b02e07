/* Where elements lie behind reshapes, transposes, slices and broadcasts. */
#include "emit/view.h"

/* ---- from a parameter to what is made of it ---- */

/* A dimension's indices, or the outer or inner part of them, and how far apart they lie. */
typedef struct Piece {
    int64_t count, by;
} Piece;

typedef struct Pieces {
    int64_t start;
    int32_t n, of[VIEW_MOST_DIMS]; /* pieces of each dimension, the outermost first */
    Piece   v[VIEW_MOST_STEPS];
} Pieces;

static bool add_piece(Pieces *x, int64_t count, int64_t by)
{
    if (count == 1)
        return true;
    if (x->n == VIEW_MOST_STEPS)
        return false;
    x->v[x->n++] = (Piece){ count, by };
    return true;
}

/* Those of dimension d. */
static const Piece *pieces_of(const Pieces *x, int32_t d)
{
    int32_t at = 0;
    for (int32_t k = 0; k < d; k++)
        at += x->of[k];
    return x->v + at;
}

static bool regroup(const Pieces *x, const Shape *to, Pieces *out)
{
    Piece   rest = { 1, 0 };
    int32_t at = 0;
    for (int32_t d = 0; d < to->rank; d++) {
        const int32_t before = out->n;
        for (int64_t need = to->dims[d]; need > 1;) {
            while (rest.count == 1 && at < x->n)
                rest = x->v[at++];
            const int64_t part = rest.count <= need ? rest.count : need;
            if (part == 1 || need % part != 0 || rest.count % part != 0 || !add_piece(out, part, rest.by * (rest.count / part)))
                return false;
            need /= part;
            rest.count /= part;
        }
        out->of[d] = out->n - before;
    }
    return true;
}

/* The dimension of y's operand that dimension d of a transpose or a broadcast is; -1: it is repeated. */
static int32_t dim_from(const Inst *y, int32_t d)
{
    const Ints dims = inst_ints(y, ATTR_DIMENSIONS);
    if (y->op == OP_TRANSPOSE)
        return (int32_t)dims.v[d];
    for (int32_t k = 0; k < dims.n; k++)
        if (dims.v[k] == d)
            return k;
    return -1;
}

static bool reorder(const Pieces *x, const Inst *y, Pieces *out)
{
    for (int32_t d = 0; d < y->shape->rank; d++) {
        const int32_t from = dim_from(y, d), before = out->n;
        if (from < 0 && !add_piece(out, y->shape->dims[d], 0))
            return false;
        for (int32_t k = 0; from >= 0 && k < x->of[from]; k++)
            if (!add_piece(out, pieces_of(x, from)[k].count, pieces_of(x, from)[k].by))
                return false;
        out->of[d] = out->n - before;
    }
    return true;
}

/* Of a dimension of `total` indices, `count` of them that are `stride` apart from `first` on. */
static bool cut_dim(const Piece *p, int32_t n, int64_t total, int64_t first, int64_t count, int64_t stride, Pieces *out)
{
    for (; n > 1; p++, n--) {
        const int64_t inner = total / p->count, last = first + (count - 1) * stride;
        if (first / inner != last / inner) {
            if (stride != 1 || first % inner != 0 || count % inner != 0 || !add_piece(out, count / inner, p->by))
                return false;
            out->start += first / inner * p->by;
            for (int32_t k = 1; k < n; k++)
                if (!add_piece(out, p[k].count, p[k].by))
                    return false;
            return true;
        }
        out->start += first / inner * p->by;
        first %= inner;
        total = inner;
    }
    if (n == 0)
        return true;
    out->start += first * p->by;
    return add_piece(out, count, p->by * stride);
}

static bool cut(const Pieces *x, const Inst *slice, Pieces *out)
{
    const Slices *s = inst_attr(slice, ATTR_SLICE)->value.slices;
    for (int32_t d = 0; d < slice->shape->rank; d++) {
        const int32_t before = out->n;
        if (!cut_dim(pieces_of(x, d), x->of[d], inst_operand(slice, 0)->shape->dims[d], s->v[d].start, slice->shape->dims[d], s->v[d].stride, out))
            return false;
        out->of[d] = out->n - before;
    }
    return true;
}

static bool moves(const Inst *x)
{
    return x->op == OP_RESHAPE || x->op == OP_TRANSPOSE || x->op == OP_BROADCAST || x->op == OP_COPY || x->op == OP_SLICE;
}

static bool find_pieces(const Inst *x, const Shape *as, Pieces *out, const Inst **param)
{
    const Inst *chain[VIEW_MOST_STEPS];
    int64_t     by[VIEW_MOST_DIMS];
    int32_t     n = 0;
    for (; x->op != OP_PARAMETER; x = inst_operand(x, 0)) {
        if (n == VIEW_MOST_STEPS || !moves(x) || x->shape->rank > VIEW_MOST_DIMS)
            return false;
        chain[n++] = x;
    }
    if (x->shape->rank > VIEW_MOST_DIMS)
        return false;
    *param = x;
    shape_strides(as ? as : x->shape, by);
    *out = (Pieces){ 0 };
    for (int32_t d = 0; d < x->shape->rank; d++) {
        add_piece(out, x->shape->dims[d], by[d]);
        out->of[d] = x->shape->dims[d] > 1;
    }
    while (n-- > 0) {
        const Pieces in = *out;
        if (chain[n]->op == OP_COPY)
            continue;
        *out = (Pieces){ .start = in.start };
        const Inst *y = chain[n];
        if (!(y->op == OP_RESHAPE ? regroup(&in, y->shape, out) : y->op == OP_SLICE ? cut(&in, y, out) : reorder(&in, y, out)))
            return false;
    }
    return true;
}

/* The last pieces that are one. */
static Piece join(const Piece *p, int32_t *n)
{
    Piece all = *n > 0 ? p[--*n] : (Piece){ 1, 0 };
    for (; *n > 0 && p[*n - 1].by == all.by * all.count; --*n)
        all.count *= p[*n - 1].count;
    return all;
}

bool view_of_param(const Inst *x, const Shape *as, Along *of, int64_t *start, const Inst **param)
{
    Pieces all;
    if (shape_count(x->shape) == 0 || !find_pieces(x, as, &all, param))
        return false;
    for (int32_t d = 0; d < x->shape->rank; d++) {
        int32_t     n = all.of[d];
        const Piece near = join(pieces_of(&all, d), &n), far = join(pieces_of(&all, d), &n);
        if (n > 0)
            return false;
        of[d] = (Along){ near.count, near.by, far.count > 1 ? far.by : near.by * near.count };
    }
    *start = all.start;
    return true;
}

/* ---- from a result back to what it is made of ---- */

/* Distances of the elements of reshape x's operand, from those of x. */
static bool before_reshape(const Inst *x, const int64_t *by, int64_t *of)
{
    const Shape *to = x->shape, *from = inst_operand(x, 0)->shape;
    int32_t      t = to->rank - 1;
    int64_t      left = 1, step = 0; /* of dimension t of the result, elements that are not yet handed out, and how far they are apart */
    for (int32_t d = from->rank; d-- > 0;) {
        int64_t need = from->dims[d];
        of[d] = 0;
        for (bool first = true; need > 1; first = false) {
            while (left == 1 && t >= 0) {
                const int64_t before = step;
                left = to->dims[t];
                step = by[t--];
                if (left > 1 && !first && before != step)
                    return false;
            }
            of[d] = first ? step : of[d];
            const int64_t part = left <= need ? left : need;
            if (left % part != 0 || need % part != 0)
                return false;
            left /= part;
            need /= part;
            step *= part;
        }
    }
    return true;
}

static bool before(const Inst *x, const int64_t *by, int64_t *of)
{
    const int32_t rank = inst_operand(x, 0)->shape->rank;
    if (rank > VIEW_MOST_DIMS)
        return false;
    if (x->op == OP_RESHAPE)
        return before_reshape(x, by, of);
    for (int32_t d = 0; d < rank; d++)
        of[x->op == OP_TRANSPOSE ? inst_ints(x, ATTR_DIMENSIONS).v[d] : d] = by[d];
    return x->op == OP_TRANSPOSE || x->op == OP_COPY;
}

bool view_in_root(const Inst *x, const Inst *root, Along *of)
{
    int64_t by[VIEW_MOST_DIMS], next[VIEW_MOST_DIMS];
    if (root->shape->rank > VIEW_MOST_DIMS || shape_count(x->shape) == 0)
        return false;
    shape_strides(root->shape, by);
    for (; root != x; root = inst_operand(root, 0)) {
        if (!moves(root) || !before(root, by, next))
            return false;
        for (int32_t d = 0; d < inst_operand(root, 0)->shape->rank; d++)
            by[d] = next[d];
    }
    for (int32_t d = 0; d < x->shape->rank; d++)
        of[d] = (Along){ x->shape->dims[d], by[d], by[d] * x->shape->dims[d] };
    return true;
}

void view_of_shape(const Shape *s, Along *of)
{
    int64_t by[VIEW_MOST_DIMS];
    shape_strides(s, by);
    for (int32_t d = 0; d < s->rank; d++)
        of[d] = (Along){ s->dims[d], by[d], by[d] * s->dims[d] };
}
