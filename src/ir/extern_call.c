/* Shapes, configuration and aliasing of a custom call, taken apart. */
#include "ir/extern_call.h"

#include <string.h>

#include "ir/call_options.h"

const char *extern_symbol(Arena *a, const char *target)
{
    char *s = arena_printf(a, "hlo_call_%s", target);
    for (char *c = s; *c; c++)
        if (!strchr("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *c))
            *c = '_';
    return s;
}

/* ---- arrays ---- */

typedef struct Leaves {
    Arena        *arena;
    const Shape **v;
    int32_t       n;
    const char   *refused;
} Leaves;

static void add_leaves(Leaves *l, const Shape *s)
{
    if (shape_is_tuple(s))
        for (int32_t k = 0; k < s->n_elems; k++)
            add_leaves(l, s->elems[k]);
    else if (type_bytes(s->type) > 0) {
        if (shape_is_dynamic(s))
            l->refused = arena_printf(l->arena, "%s has no fixed size", shape_text(l->arena, s));
        l->v[l->n++] = s;
    } else if (s->type != TYPE_TOKEN)
        l->refused = arena_printf(l->arena, "there are no values of type %s", type_name(s->type));
}

/* The types that operand_layout_constraints want; the operands' own where it is not given. */
static void add_operands(Leaves *l, const Inst *i)
{
    const Attr *wanted = inst_attr(i, ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    int32_t     n = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
        n += shape_leaf_count(inst_operand(i, k)->shape, false);
    l->v = ARENA_ARRAY(l->arena, const Shape *, n);
    for (int32_t k = 0; k < i->n_operands; k++)
        add_leaves(l, wanted && k < wanted->value.shapes->n ? wanted->value.shapes->v[k] : inst_operand(i, k)->shape);
}

/* ---- aliasing ---- */

/* Where the leaves of each operand begin, and of each element of the result, so that long lists of pairs are not walked for each. */
typedef struct Starts {
    const int32_t *operands, *elements;
    bool          *taken; /* operand leaves that have a pair */
} Starts;

static Starts starts_of(Arena *a, const Inst *i, int32_t n_leaves)
{
    int32_t *operands = ARENA_ARRAY(a, int32_t, i->n_operands + 1), *elements = ARENA_ARRAY(a, int32_t, i->shape->n_elems + 1);
    for (int32_t k = 0; k < i->n_operands; k++)
        operands[k + 1] = operands[k] + shape_leaf_count(inst_operand(i, k)->shape, false);
    for (int32_t k = 0; k < i->shape->n_elems; k++)
        elements[k + 1] = elements[k] + shape_leaf_count(i->shape->elems[k], false);
    return (Starts){ operands, elements, ARENA_ARRAY(a, bool, n_leaves) };
}

/* The leaf at index of s from number `from` of it on, counted from first on; -1: what is there is no array. */
static int32_t leaf_at(const Shape *s, Ints index, int32_t from, int32_t first)
{
    for (int32_t k = from; k < index.n; k++) {
        for (int64_t e = 0; e < index.v[k]; e++)
            first += shape_leaf_count(s->elems[e], false);
        s = s->elems[index.v[k]];
    }
    return shape_is_array(s) ? first : -1;
}

static int32_t result_leaf(const Inst *i, const Starts *s, Ints index)
{
    return index.n == 0 ? leaf_at(i->shape, index, 0, 0) : leaf_at(i->shape->elems[index.v[0]], index, 1, s->elements[index.v[0]]);
}

static bool same_memory(const Shape *a, const Shape *b)
{
    bool same = a->type == b->type && shape_same_dims(a, b);
    for (int32_t k = 0; k < a->rank && same; k++)
        same = layout_dim(a, k) == layout_dim(b, k);
    return same;
}

static const char *pair(Arena *a, ExternCall *c, const Inst *i, const Starts *s, const OperandAlias *x)
{
    int32_t o = leaf_at(inst_operand(i, (int32_t)x->operand)->shape, x->index, 0, s->operands[x->operand]), r = result_leaf(i, s, x->output);
    if (o < 0 || r < 0)
        return "output_to_operand_aliasing pairs what is no array";
    if (!same_memory(c->operands[o], c->results[r]))
        return arena_printf(a, "output_to_operand_aliasing pairs result %d and operand %d, which do not lie in memory alike", r, o);
    if (c->alias[r] >= 0)
        return arena_printf(a, "output_to_operand_aliasing has result %d twice", r);
    if (s->taken[o])
        return arena_printf(a, "output_to_operand_aliasing has operand %d twice", o);
    c->alias[r] = o;
    s->taken[o] = true;
    return NULL;
}

static const char *pair_all(Arena *a, ExternCall *c, const Inst *i)
{
    const Attr *x = inst_attr(i, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    const char *why = NULL;
    c->alias = ARENA_ARRAY(a, int32_t, c->n_results);
    for (int32_t k = 0; k < c->n_results; k++)
        c->alias[k] = -1;
    Starts s = starts_of(a, i, c->n_operands);
    for (int32_t k = 0; x && k < x->value.aliasing->n && !why; k++)
        why = pair(a, c, i, &s, &x->value.aliasing->v[k]);
    return why;
}

/* ---- configuration ---- */

static void read_attributes(Arena *a, ExternCall *c, const Inst *i)
{
    CallOptions o;
    if (!call_options_read(a, i, &o))
        return;
    hlo_attribute *v = ARENA_ARRAY(a, hlo_attribute, o.n);
    for (int32_t k = 0; k < o.n; k++) {
        const CallOption *x = &o.v[k];
        v[k] = (hlo_attribute){ x->name, x->text, x->type, x->is_string ? HLO_STRING : x->is_number ? HLO_INTEGER : x->is_real ? HLO_REAL : HLO_OTHER,
                                x->number, x->real };
    }
    c->n_attributes = o.n;
    c->attributes = v;
}

static int32_t api_version(const Inst *i)
{
    switch (inst_word(i, ATTR_API_VERSION)) {
    case API_VERSION_STATUS_RETURNING: return 2;
    case API_VERSION_STATUS_RETURNING_UNIFIED: return 3;
    case API_VERSION_TYPED_FFI: return 4;
    default: return 1;
    }
}

const char *extern_call(Arena *a, const Inst *i, ExternCall *c)
{
    Leaves in = { .arena = a }, out = { .arena = a };
    *c = (ExternCall){ .target = inst_string(i, ATTR_CUSTOM_CALL_TARGET), .name = i->name, .config = call_config_text(i), .api_version = api_version(i) };
    c->symbol = extern_symbol(a, c->target);
    c->config_bytes = *c->config ? (int64_t)intern_len(c->config) : 0;
    c->who = arena_printf(a, "custom-call \"%.80s\" %%%.80s: ", c->target, c->name);
    add_operands(&in, i);
    out.v = ARENA_ARRAY(a, const Shape *, shape_leaf_count(i->shape, false));
    add_leaves(&out, i->shape);
    c->n_operands = in.n;
    c->operands = in.v;
    c->n_results = out.n;
    c->results = out.v;
    if (in.refused || out.refused)
        return in.refused ? in.refused : out.refused;
    read_attributes(a, c, i);
    return pair_all(a, c, i);
}
