/* Types and layouts. Source: reference text 3. */
#include "config.h"

#include "text/parse_int.h"

void dims_begin(Parser *p)
{
    p->dims.n = 0;
}

void dim_add(Parser *p, int64_t size, bool dynamic, Loc loc)
{
    if (size < 0 && !(dynamic && size == DIM_UNBOUNDED)) /* the smallest number as a bound is '?' */
        parse_error(p, loc, "a dimension has a size of 0 or more, found %lld", (long long)size);
    vec_push(p->tmp, &p->dims, ((Dim){size, dynamic}));
}

LayoutDraft *layout_begin(Parser *p, const IntVec *minor_to_major)
{
    LayoutDraft *d = ARENA_NEW(p->tmp, LayoutDraft);
    d->l = (Layout){
        .minor_to_major = list_ints(p, minor_to_major), .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT};
    return p->layout = d;
}

void layout_field(Parser *p, LayoutField f, Loc loc)
{
    if (f == FIELD_P)
        parse_error(p, loc, "a layout cannot have a physical shape");
    else if (p->layout->last >= f)
        parse_error(p, loc, "the fields of a layout stand once each, in the order D T L # * E S SC P M");
    p->layout->last = f;
}

void layout_int(Parser *p, LayoutField f, Loc loc, int64_t v, Loc at)
{
    Layout *l = &p->layout->l;
    layout_field(p, f, loc);
    switch (f) {
    case FIELD_L:
        if (v < 1)
            parse_error(p, at, "tail padding is in multiples of 1 or more, found %lld", (long long)v);
        l->tail_padding = v;
        break;
    case FIELD_E: l->element_bits = v; break;
    case FIELD_S: l->memory_space = (int8_t)v; break; /* XLA keeps 8 bits */
    case FIELD_M: l->metadata_prefix = v; break;
    default: die("field %d of a layout has no number", (int)f);
    }
}

/* Another type than an integer is noted as an error and then taken for none that is valid, as in XLA. */
void layout_type(Parser *p, LayoutField f, Loc loc, Type t)
{
    layout_field(p, f, loc);
    if (!type_is_int(t))
        t = LAYOUT_NO_TYPE;
    if (f == FIELD_INDEX)
        p->layout->l.index_type = t;
    else
        p->layout->l.pointer_type = t;
}

void layout_level(Parser *p, const char *word, Loc loc)
{
    if (word[1] || !strchr("DCSH", word[0]))
        parse_error(p, loc, "expected a level type D, C, S or H, found '%s'", word);
}

void layout_tile(Parser *p, const IntVec *dims, Loc loc)
{
    for (int32_t k = 0; dims && k < dims->n; k++)
        if (dims->v[k] < 0 && dims->v[k] != TILE_COMBINE)
            parse_error(p, loc, "a tile has a size of 0 or more, found %lld", (long long)dims->v[k]);
    vec_push(p->tmp, &p->layout->tiles, (Tile){list_ints(p, dims)});
}

void layout_split(Parser *p, int64_t dim, const IntVec *indices)
{
    vec_push(p->tmp, &p->layout->splits, ((SplitConfig){dim, list_ints(p, indices)}));
}

const Layout *layout_settled(Parser *p, const Layout *l)
{
    bool fields = l->n_tiles || l->n_splits || l->tail_padding != 1 || l->index_type != TYPE_COUNT || l->pointer_type != TYPE_COUNT
                  || l->element_bits || l->memory_space || l->metadata_prefix > 0;
    return fields ? l : layout_from_order(p->a, l->minor_to_major);
}

static const Layout *layout_end(Parser *p, const LayoutDraft *d)
{
    Layout *l = arena_copy(p->a, &d->l, sizeof d->l);
    l->tiles = arena_copy(p->a, d->tiles.v, (size_t)d->tiles.n * sizeof *d->tiles.v);
    l->n_tiles = d->tiles.n;
    l->splits = arena_copy(p->a, d->splits.v, (size_t)d->splits.n * sizeof *d->splits.v);
    l->n_splits = d->splits.n;
    if (l->metadata_prefix < 0)
        l->metadata_prefix = 0;
    return layout_settled(p, l);
}

const Shape *type_array(Parser *p, Type t, const DimVec *dims, LayoutDraft *l, Loc loc, Loc layout_loc)
{
    int32_t rank = dims ? dims->n : 0;
    if (!type_is_array(t) && (rank || l))
        parse_error(p, loc, "%s takes empty brackets%s", type_name(t), rank ? "" : " and no layout");
    Shape *s = ARENA_NEW(p->a, Shape);
    s->type = t;
    s->rank = rank;
    int64_t *sizes = ARENA_ARRAY(p->a, int64_t, rank);
    bool     any = false;
    for (int32_t k = 0; k < rank; k++) {
        sizes[k] = dims->v[k].size;
        any |= dims->v[k].dynamic;
    }
    s->dims = sizes;
    if (any) {
        bool *dynamic = ARENA_ARRAY(p->a, bool, rank);
        for (int32_t k = 0; k < rank; k++)
            dynamic[k] = dims->v[k].dynamic;
        s->dynamic = dynamic;
    }
    if (!l)
        return s;
    bool no_order = l->l.minor_to_major.n == 0 && l->l.memory_space; /* {:S(1)} is the one layout that XLA takes without */
    if (l->l.minor_to_major.n != rank && !no_order)
        parse_error(p, layout_loc, "the layout orders %d dimensions, the type has %d", l->l.minor_to_major.n, rank);
    else
        s->layout = layout_end(p, l);
    return s;
}

/* Each dimension is split once, at ascending indices inside it. */
static bool splits_are_good(const Shape *s)
{
    const Layout *l = s->layout;
    for (int32_t k = 0; k < l->n_splits; k++)
        for (int32_t j = 0; j < k; j++)
            if (l->splits[j].dim == l->splits[k].dim)
                return false;
    return layout_splits_fit(l, s);
}

/* Elements, then bytes, stay within 64 bits while the dimensions are multiplied from the first on. */
static bool size_is_countable(const Shape *s)
{
    int64_t n = type_is_array(s->type) ? type_bytes(s->type) : 0, count = 1;
    for (int32_t k = 0; k < s->rank; k++)
        if (s->dims[k] != DIM_UNBOUNDED && !size_mul(count, s->dims[k], &count))
            return false;
    return size_mul(n, count, &n);
}

const char *layout_fault(Parser *p, const Shape *s)
{
    const Layout *l = s->layout;
    if (!l || (l->minor_to_major.n == 0 && l->memory_space)) /* of {:S(1)} XLA looks at nothing else */
        return NULL;
    if (l->index_type != TYPE_COUNT || l->pointer_type != TYPE_COUNT)
        return "an index or pointer type";
    if (l->element_bits < 0)
        return "a negative element size";
    for (int32_t k = 0; k < l->n_tiles; k++)
        if (l->tiles[k].dims.n == 0 || ints_has(l->tiles[k].dims, 0))
            return "a tile without elements";
    if (!splits_are_good(s))
        return "splits that are not ascending indices inside a dimension";
    bool *seen = ARENA_ARRAY(p->tmp, bool, s->rank);
    for (int32_t k = 0; k < l->minor_to_major.n; k++) {
        int64_t d = l->minor_to_major.v[k];
        if (d < 0 || d >= s->rank || seen[d])
            return "an order that is no permutation of the dimensions";
        seen[d] = true;
    }
    return NULL;
}

const Shape *type_tuple(Parser *p, const ShapeVec *elems, Loc loc)
{
    int32_t n = elems ? elems->n : 0;
    for (int32_t k = 0; k < n; k++) {
        const char *fault = layout_fault(p, elems->v[k]);
        if (fault)
            parse_error(p, loc, "element %d of this tuple type has a layout with %s", k, fault);
        else if (!size_is_countable(elems->v[k]))
            parse_error(p, loc, "element %d of this tuple type has more bytes than 64 bits can count", k);
    }
    return shape_tuple(p->a, n, elems ? elems->v : NULL);
}

const Shape *type_buffer(Parser *p, const Shape *inner, Loc loc)
{
    if (!shape_is_array(inner)) {
        parse_error(p, loc, "a buffer holds an array, not %s", shape_text(p->tmp, inner));
        return inner;
    }
    Shape *s = arena_copy(p->a, inner, sizeof *inner);
    s->buffer = true;
    return s;
}
