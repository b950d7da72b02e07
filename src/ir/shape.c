/* Shapes never change once built, so parts are shared freely within one arena. */
#include "ir/shape.h"

#include <string.h>

Ints ints_make(Arena *a, int32_t n)
{
    return (Ints){ARENA_ARRAY(a, int64_t, n), n};
}

Ints ints_copy(Arena *a, Ints x)
{
    Ints y = ints_make(a, x.n);
    if (x.n)
        memcpy(ints_at(y, 0), x.v, (size_t)x.n * sizeof *x.v);
    return y;
}

Ints ints_iota(Arena *a, int32_t n)
{
    Ints x = ints_make(a, n);
    for (int32_t k = 0; k < n; k++)
        *ints_at(x, k) = k;
    return x;
}

bool ints_equal(Ints a, Ints b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v) == 0);
}

bool ints_has(Ints a, int64_t x)
{
    for (int32_t k = 0; k < a.n; k++)
        if (a.v[k] == x)
            return true;
    return false;
}

bool size_mul(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool size_add(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

const Shape *shape_array(Arena *a, Type t, int32_t rank, const int64_t *dims)
{
    Shape *s = ARENA_NEW(a, Shape);
    s->type = t;
    s->rank = rank;
    s->dims = ints_copy(a, (Ints){dims, rank}).v;
    return s;
}

const Shape *shape_scalar(Arena *a, Type t)
{
    return shape_array(a, t, 0, NULL);
}

static void add_up(int32_t *sum, int32_t n)
{
    *sum = n > INT32_MAX - *sum ? INT32_MAX : *sum + n;
}

static void note_inside(Shape *s)
{
    for (int32_t k = 0; k < s->n_elems; k++) {
        const Shape *e = s->elems[k];
        s->inside.depth = e->inside.depth > s->inside.depth ? e->inside.depth : s->inside.depth;
        add_up(&s->inside.nodes, e->inside.nodes);
        add_up(&s->inside.nodes, 1);
        add_up(&s->inside.arrays, shape_leaf_count(e, false));
        add_up(&s->inside.leaves, shape_leaf_count(e, true));
        s->inside.dynamic |= shape_is_dynamic(e);
        s->inside.unbounded |= shape_is_unbounded(e);
        s->inside.buffer |= shape_has_buffer(e);
    }
    s->inside.depth++;
}

const Shape *shape_tuple(Arena *a, int32_t n, const Shape *const *elems)
{
    Shape *s = ARENA_NEW(a, Shape);
    s->type = TYPE_TUPLE;
    s->n_elems = n;
    s->elems = arena_copy(a, elems, (size_t)n * sizeof *elems);
    note_inside(s);
    return s;
}

const Shape *shape_with_layout(Arena *a, const Shape *s, const Layout *l)
{
    if (layout_equal(s->layout, l, s->rank))
        return s;
    Shape *t = arena_copy(a, s, sizeof *s);
    t->layout = l;
    return t;
}

const Shape *shape_with_type(Arena *a, const Shape *s, Type type)
{
    if (s->type == type)
        return s;
    Shape *t = arena_copy(a, s, sizeof *s);
    t->type = type;
    return t;
}

static const Layout *layout_copy(Arena *a, const Layout *l)
{
    if (!l)
        return NULL;
    Layout *m = arena_copy(a, l, sizeof *l);
    m->minor_to_major = ints_copy(a, l->minor_to_major);
    Tile *tiles = ARENA_ARRAY(a, Tile, l->n_tiles);
    for (int32_t k = 0; k < l->n_tiles; k++)
        tiles[k].dims = ints_copy(a, l->tiles[k].dims);
    m->tiles = tiles;
    SplitConfig *splits = ARENA_ARRAY(a, SplitConfig, l->n_splits);
    for (int32_t k = 0; k < l->n_splits; k++)
        splits[k] = (SplitConfig){l->splits[k].dim, ints_copy(a, l->splits[k].indices)};
    m->splits = splits;
    return m;
}

const Shape *shape_copy(Arena *a, const Shape *s)
{
    Shape *t = arena_copy(a, s, sizeof *s);
    t->dims = ints_copy(a, (Ints){s->dims, s->rank}).v;
    if (s->dynamic)
        t->dynamic = arena_copy(a, s->dynamic, (size_t)s->rank * sizeof *s->dynamic);
    t->layout = layout_copy(a, s->layout);
    const Shape **elems = ARENA_ARRAY(a, const Shape *, s->n_elems);
    for (int32_t k = 0; k < s->n_elems; k++)
        elems[k] = shape_copy(a, s->elems[k]);
    t->elems = elems;
    return t;
}

bool shape_is_dynamic(const Shape *s)
{
    for (int32_t k = 0; s->dynamic && k < s->rank; k++)
        if (s->dynamic[k])
            return true;
    return s->inside.dynamic;
}

bool shape_is_unbounded(const Shape *s)
{
    for (int32_t k = 0; k < s->rank; k++)
        if (s->dims[k] == DIM_UNBOUNDED)
            return true;
    return s->inside.unbounded;
}

bool shape_has_buffer(const Shape *s)
{
    return s->buffer || s->inside.buffer;
}

int64_t shape_count(const Shape *s)
{
    int64_t n = 1;
    for (int32_t k = 0; k < s->rank; k++) /* a zero anywhere wins over an overflow elsewhere */
        if (s->dims[k] == 0)
            return 0;
    for (int32_t k = 0; k < s->rank; k++)
        if (!size_mul(n, s->dims[k], &n))
            return -1;
    return n;
}

int64_t shape_bytes(const Shape *s)
{
    if (s->type == TYPE_TUPLE) {
        int64_t sum = 0;
        for (int32_t k = 0; k < s->n_elems; k++)
            if (!size_add(sum, shape_bytes(s->elems[k]), &sum))
                return -1;
        return sum;
    }
    int64_t n = shape_count(s);
    return size_mul(n, type_bytes(s->type), &n) ? n : -1;
}

int32_t shape_leaf_count(const Shape *s, bool tokens)
{
    if (s->type != TYPE_TUPLE)
        return type_is_array(s->type) || tokens;
    return tokens ? s->inside.leaves : s->inside.arrays;
}

bool shape_same_dims(const Shape *a, const Shape *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

bool shape_is_row_of(const Shape *s, const Shape *of)
{
    bool fits = shape_is_array(s) && shape_is_array(of) && s->rank < of->rank && !s->layout && !of->layout && shape_count(of) > shape_count(s);
    for (int32_t d = 0; fits && d < s->rank; d++)
        fits = s->dims[d] == of->dims[d];
    return fits;
}

bool shape_unit_dims(const Shape *from, const Shape *to, int32_t *where)
{
    int32_t j = 0;
    for (int32_t k = 0; k < from->rank; k++) {
        const bool unit = from->dims[k] == 1;
        while (!unit && j < to->rank && to->dims[j] == 1)
            j++;
        if (!unit && (j == to->rank || to->dims[j] != from->dims[k]))
            return false;
        if (where)
            where[k] = unit ? -1 : j;
        j += !unit;
    }
    while (j < to->rank && to->dims[j] == 1)
        j++;
    return j == to->rank;
}

typedef enum { COMPARE_ALL, COMPARE_COMPATIBLE, COMPARE_ANY_FLOAT } ShapeCompare;

static bool same(const Shape *a, const Shape *b, ShapeCompare how)
{
    if (a == b)
        return true;
    bool types = how == COMPARE_ANY_FLOAT ? type_same_kind(a->type, b->type) : a->type == b->type;
    if (!types || a->buffer != b->buffer || a->n_elems != b->n_elems || !shape_same_dims(a, b))
        return false;
    for (int32_t k = 0; k < a->n_elems; k++)
        if (!same(a->elems[k], b->elems[k], how))
            return false;
    if (how != COMPARE_ALL)
        return true;
    for (int32_t k = 0; k < a->rank; k++)
        if ((a->dynamic && a->dynamic[k]) != (b->dynamic && b->dynamic[k]))
            return false;
    return layout_equal(a->layout, b->layout, a->rank);
}

bool shape_equal(const Shape *a, const Shape *b)
{
    return same(a, b, COMPARE_ALL);
}

bool shape_compatible(const Shape *a, const Shape *b)
{
    return same(a, b, COMPARE_COMPATIBLE);
}

bool shape_compatible_ignoring_precision(const Shape *a, const Shape *b)
{
    return same(a, b, COMPARE_ANY_FLOAT);
}

static int64_t order_at(const Layout *l, int32_t rank, int32_t k)
{
    return l && l->minor_to_major.n ? l->minor_to_major.v[k] : rank - 1 - k;
}

bool layout_equal(const Layout *a, const Layout *b, int32_t rank)
{
    static const Layout plain = {.tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT};
    if (a == b)
        return true;
    const Layout *x = a ? a : &plain, *y = b ? b : &plain;
    int32_t       na = a ? a->minor_to_major.n : rank, nb = b ? b->minor_to_major.n : rank;
    if (na != nb || x->n_tiles != y->n_tiles || x->tail_padding != y->tail_padding || x->index_type != y->index_type
        || x->pointer_type != y->pointer_type || x->element_bits != y->element_bits || x->memory_space != y->memory_space
        || x->n_splits != y->n_splits || x->metadata_prefix != y->metadata_prefix)
        return false;
    for (int32_t k = 0; k < na; k++)
        if (order_at(a, rank, k) != order_at(b, rank, k))
            return false;
    for (int32_t k = 0; k < x->n_tiles; k++)
        if (!ints_equal(x->tiles[k].dims, y->tiles[k].dims))
            return false;
    for (int32_t k = 0; k < x->n_splits; k++)
        if (x->splits[k].dim != y->splits[k].dim || !ints_equal(x->splits[k].indices, y->splits[k].indices))
            return false;
    return true;
}

int64_t layout_dim(const Shape *s, int32_t k)
{
    return order_at(s->layout, s->rank, k);
}

bool layout_is_row_major(const Shape *s)
{
    for (int32_t k = 0; k < s->rank; k++)
        if (layout_dim(s, k) != s->rank - 1 - k)
            return false;
    return true;
}

const Layout *layout_from_order(Arena *a, Ints minor_to_major)
{
    bool plain = true;
    for (int32_t k = 0; k < minor_to_major.n; k++)
        plain = plain && minor_to_major.v[k] == minor_to_major.n - 1 - k;
    if (plain)
        return NULL;
    Layout *l = ARENA_NEW(a, Layout);
    *l = (Layout){
        .minor_to_major = ints_copy(a, minor_to_major), .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT};
    return l;
}

bool layout_tiles_fit(const Layout *l)
{
    for (int32_t k = 0; k < l->n_tiles; k++) {
        Ints dims = l->tiles[k].dims;
        if (dims.n == 0)
            return false;
        for (int32_t j = 0; j < dims.n; j++)
            if (dims.v[j] <= 0 && dims.v[j] != TILE_COMBINE)
                return false;
    }
    return true;
}

/* Dimensions are counted from the most major one. */
bool layout_splits_fit(const Layout *l, const Shape *s)
{
    Ints order = l->minor_to_major;
    for (int32_t k = 0; k < l->n_splits; k++) {
        const SplitConfig *x = &l->splits[k];
        int64_t            d = x->dim >= 0 && x->dim < order.n ? order.v[order.n - 1 - x->dim] : -1;
        if (d < 0 || d >= s->rank)
            return false;
        for (int32_t j = 0; j < x->indices.n; j++)
            if (x->indices.v[j] <= (j ? x->indices.v[j - 1] : 0) || x->indices.v[j] >= s->dims[d])
                return false;
    }
    return true;
}

void shape_strides(const Shape *s, int64_t *strides)
{
    int64_t n = 1;
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t d = layout_dim(s, k);
        strides[d] = n;
        n *= s->dims[d];
    }
}

static void print_ints(Buf *b, Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        buf_puts(b, k ? "," : ""), buf_int(b, x.v[k]);
}

static void print_tiles(Buf *b, const Layout *l)
{
    buf_puts(b, "T");
    for (int32_t k = 0; k < l->n_tiles; k++) {
        buf_putc(b, '(');
        for (int32_t j = 0; j < l->tiles[k].dims.n; j++) {
            int64_t v = l->tiles[k].dims.v[j];
            buf_puts(b, j ? "," : "");
            if (v == TILE_COMBINE)
                buf_putc(b, '*');
            else
                buf_int(b, v);
        }
        buf_putc(b, ')');
    }
}

static const char *index_type_name(Type t)
{
    return t == LAYOUT_NO_TYPE ? "invalid" : type_name(t);
}

static void print_layout_fields(Buf *b, const Layout *l)
{
    Buf f = {0};
    if (l->n_tiles)
        print_tiles(&f, l);
    if (l->tail_padding != 1)
        buf_printf(&f, "L(%lld)", (long long)l->tail_padding);
    if (l->index_type != TYPE_COUNT)
        buf_printf(&f, "#(%s)", index_type_name(l->index_type));
    if (l->pointer_type != TYPE_COUNT)
        buf_printf(&f, "*(%s)", index_type_name(l->pointer_type));
    if (l->element_bits)
        buf_printf(&f, "E(%lld)", (long long)l->element_bits);
    if (l->memory_space)
        buf_printf(&f, "S(%lld)", (long long)l->memory_space);
    for (int32_t k = 0; k < l->n_splits; k++) {
        buf_puts(&f, k ? "" : "SC");
        buf_printf(&f, "(%lld:", (long long)l->splits[k].dim);
        print_ints(&f, l->splits[k].indices);
        buf_putc(&f, ')');
    }
    if (l->metadata_prefix > 0)
        buf_printf(&f, "M(%lld)", (long long)l->metadata_prefix);
    if (f.n) {
        buf_putc(b, ':');
        buf_put(b, f.p, f.n);
    }
    buf_free(&f);
}

static void print_layout(Buf *b, const Shape *s)
{
    size_t start = b->n;
    buf_putc(b, '{');
    for (int32_t k = 0; k < s->rank && !layout_has_no_order(s); k++)
        buf_puts(b, k ? "," : ""), buf_int(b, layout_dim(s, k));
    if (s->layout)
        print_layout_fields(b, s->layout);
    if (s->rank == 0 && b->n == start + 1) { /* scalars show a layout only when it says something */
        b->n = start;
        b->p[b->n] = 0;
        return;
    }
    buf_putc(b, '}');
}

void shape_print(Buf *b, const Shape *s, bool with_layout)
{
    if (s->type == TYPE_TUPLE) {
        buf_putc(b, '(');
        for (int32_t k = 0; k < s->n_elems; k++) {
            buf_puts(b, k ? ", " : "");
            if (k && k % 5 == 0)
                buf_printf(b, "/*index=%d*/", k);
            shape_print(b, s->elems[k], with_layout);
        }
        buf_putc(b, ')');
        return;
    }
    buf_puts(b, s->buffer ? "b(" : "");
    buf_puts(b, type_name(s->type));
    buf_putc(b, '[');
    for (int32_t k = 0; k < s->rank; k++) {
        buf_puts(b, k ? "," : "");
        if (s->dims[k] == DIM_UNBOUNDED) {
            buf_putc(b, '?');
        } else {
            buf_puts(b, s->dynamic && s->dynamic[k] ? "<=" : "");
            buf_int(b, s->dims[k]);
        }
    }
    buf_putc(b, ']');
    if (with_layout && type_is_array(s->type))
        print_layout(b, s);
    if (s->buffer)
        buf_putc(b, ')');
}

char *shape_text(Arena *a, const Shape *s)
{
    Buf b = {0};
    shape_print(&b, s, false);
    char *text = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return text;
}

char *shape_brief(Arena *a, const Shape *s)
{
    enum { KEEP = 200 };
    char *text = shape_text(a, s);
    if (strlen(text) > KEEP + 20)
        memcpy(text + KEEP, "...", sizeof "...");
    return text;
}
