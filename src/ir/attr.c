#include "ir/attr.h"

#include <string.h>
#include <strings.h>

#include "ir/attr_rare.h"
#include "support/intern.h"
#include "support/map.h"

const AttrInfo attr_info[ATTR_COUNT] = {
#define ATTR(id, text, cls) [ATTR_##id] = {text, ATTR_CLASS_##cls},
#include "ir/attrs.def"
#undef ATTR
};

enum { FOLD_CASE = 0, FOLD_NOCASE = 1 };
const AttrWord attr_words[WORD_COUNT] = {
#define WORD(attr, id, text, fold) [id] = {ATTR_##attr, text, FOLD_##fold},
#include "ir/words.def"
#undef WORD
};

Word attr_word_lookup(AttrId attr, const char *text, size_t n)
{
    for (Word w = 0; w < WORD_COUNT; w++) {
        const AttrWord *x = &attr_words[w];
        if (x->attr == attr && strlen(x->text) == n && (x->fold_case ? strncasecmp(x->text, text, n) : memcmp(x->text, text, n)) == 0)
            return w;
    }
    return WORD_COUNT;
}

Word attr_word_default(AttrId attr)
{
    Word w = 0;
    while (w < WORD_COUNT && attr_words[w].attr != attr)
        w++;
    if (w == WORD_COUNT)
        die("attribute %s has no words", attr_info[attr].text);
    return w;
}

static bool lists_equal(const IntsList *a, const IntsList *b)
{
    if (a->n != b->n)
        return false;
    for (int32_t k = 0; k < a->n; k++)
        if (!ints_equal(a->v[k], b->v[k]))
            return false;
    return true;
}

static bool windows_equal(const Window *a, const Window *b)
{
    if (a->n != b->n)
        return false;
    for (int32_t k = 0; k < a->n; k++) {
        const WindowDim *x = &a->v[k], *y = &b->v[k];
        if (x->size != y->size || x->stride != y->stride || x->pad_lo != y->pad_lo || x->pad_hi != y->pad_hi
            || x->base_dilation != y->base_dilation || x->window_dilation != y->window_dilation || x->reversal != y->reversal)
            return false;
    }
    return true;
}

static bool dim_labels_equal(const DimLabels *a, const DimLabels *b)
{
    bool same = a->spatial == b->spatial && a->lhs_batch == b->lhs_batch && a->lhs_feature == b->lhs_feature && a->rhs_in == b->rhs_in
                && a->rhs_out == b->rhs_out && a->out_batch == b->out_batch && a->out_feature == b->out_feature;
    for (int32_t k = 0; same && k < a->spatial; k++)
        same = a->lhs_spatial[k] == b->lhs_spatial[k] && a->rhs_spatial[k] == b->rhs_spatial[k] &&
               a->out_spatial[k] == b->out_spatial[k];
    return same;
}

static bool shapes_equal(const ShapeList *a, const ShapeList *b)
{
    bool same = a->n == b->n;
    for (int32_t k = 0; same && k < a->n; k++)
        same = shape_equal(a->v[k], b->v[k]);
    return same;
}

static bool aliasing_equal(const Aliasing *a, const Aliasing *b)
{
    bool same = a->n == b->n;
    for (int32_t k = 0; same && k < a->n; k++)
        same = a->v[k].operand == b->v[k].operand && ints_equal(a->v[k].output, b->v[k].output) &&
               ints_equal(a->v[k].index, b->v[k].index);
    return same;
}

static bool bytes_equal(const char *a, const char *b)
{
    return a == b || (a && b && intern_len(a) == intern_len(b) && memcmp(a, b, intern_len(a)) == 0);
}

static bool key_values_equal(const KeyValues *a, const KeyValues *b)
{
    bool same = a->n == b->n;
    for (int32_t k = 0; same && k < a->n; k++)
        same = bytes_equal(a->v[k].key, b->v[k].key) && bytes_equal(a->v[k].value, b->v[k].value);
    return same;
}

bool attr_value_equal(const Attr *a, const Attr *b)
{
    const AttrValue *x = &a->value, *y = &b->value;
    switch (attr_info[a->id].cls) {
    case ATTR_CLASS_INT:
    case ATTR_CLASS_BOOL:
    case ATTR_CLASS_WORD: return x->i == y->i;
    case ATTR_CLASS_NUMBER: return memcmp(&x->f, &y->f, sizeof x->f) == 0;
    case ATTR_CLASS_STRING:
    case ATTR_CLASS_RAW: return bytes_equal(x->s, y->s);
    case ATTR_CLASS_INTS:
    case ATTR_CLASS_BOOLS:
    case ATTR_CLASS_PRECISION: return ints_equal(x->ints, y->ints);
    case ATTR_CLASS_LISTS: return lists_equal(x->lists, y->lists);
    case ATTR_CLASS_INTS_OR_LISTS:
        return a->nested == b->nested && (a->nested ? lists_equal(x->lists, y->lists) : ints_equal(x->ints, y->ints));
    case ATTR_CLASS_SLICES:
        return x->slices->n == y->slices->n
               && (x->slices->n == 0 || memcmp(x->slices->v, y->slices->v, (size_t)x->slices->n * sizeof *x->slices->v) == 0);
    case ATTR_CLASS_PADDING:
        return x->padding->n == y->padding->n
               && (x->padding->n == 0 || memcmp(x->padding->v, y->padding->v, (size_t)x->padding->n * sizeof *x->padding->v) == 0);
    case ATTR_CLASS_WINDOW: return windows_equal(x->window, y->window);
    case ATTR_CLASS_DIM_LABELS: return dim_labels_equal(x->dim_labels, y->dim_labels);
    case ATTR_CLASS_SHAPE: return shape_equal(x->shape, y->shape);
    case ATTR_CLASS_SHAPES: return shapes_equal(x->shapes, y->shapes);
    case ATTR_CLASS_LITERAL:
        return shape_equal(x->literal->shape, y->literal->shape) && literal_equal(x->literal->value, y->literal->value);
    case ATTR_CLASS_ALIASING: return aliasing_equal(x->aliasing, y->aliasing);
    case ATTR_CLASS_KEY_VALUES: return key_values_equal(x->key_values, y->key_values);
    case ATTR_CLASS_GROUPS:
    case ATTR_CLASS_SPARSITY:
    case ATTR_CLASS_SCALING:
    case ATTR_CLASS_DOMAIN:
    case ATTR_CLASS_SHARDING:
    case ATTR_CLASS_STATISTICS:
    case ATTR_CLASS_ACCURACY:
    case ATTR_CLASS_ORIGIN: return attr_rare_equal(a, b);
    case ATTR_CLASS_METADATA: /* fields of Inst, never in the list */
    case ATTR_CLASS_INSTS:
    case ATTR_CLASS_COMP:
    case ATTR_CLASS_COMPS: break;
    }
    die("attribute %s is not in the list of an instruction", attr_info[a->id].text);
}

/* Coarse on purpose: lists and numbers, the values that tell instructions apart. */
uint64_t attr_value_hash(const Attr *a)
{
    uint64_t h = hash_u64(0, a->id);
    switch (attr_info[a->id].cls) {
    case ATTR_CLASS_INT:
    case ATTR_CLASS_BOOL:
    case ATTR_CLASS_WORD: return hash_u64(h, (uint64_t)a->value.i);
    case ATTR_CLASS_STRING:
    case ATTR_CLASS_RAW: return hash_bytes(h, a->value.s, intern_len(a->value.s));
    case ATTR_CLASS_INTS:
    case ATTR_CLASS_BOOLS:
    case ATTR_CLASS_PRECISION: return hash_bytes(h, a->value.ints.v, (size_t)a->value.ints.n * sizeof(int64_t));
    case ATTR_CLASS_SLICES: return hash_bytes(h, a->value.slices->v, (size_t)a->value.slices->n * sizeof(SliceRange));
    case ATTR_CLASS_PADDING: return hash_bytes(h, a->value.padding->v, (size_t)a->value.padding->n * sizeof(PadDim));
    default: return h;
    }
}

static Attr copy_pointers(Arena *a, Interner *t, const Attr *x)
{
    Attr y = *x;
    switch (attr_info[x->id].cls) {
    case ATTR_CLASS_SLICES: {
        Slices *s = arena_copy(a, x->value.slices, sizeof *s);
        s->v = arena_copy(a, s->v, (size_t)s->n * sizeof *s->v);
        y.value.slices = s;
        return y;
    }
    case ATTR_CLASS_PADDING: {
        Padding *p = arena_copy(a, x->value.padding, sizeof *p);
        p->v = arena_copy(a, p->v, (size_t)p->n * sizeof *p->v);
        y.value.padding = p;
        return y;
    }
    case ATTR_CLASS_WINDOW: {
        Window *w = arena_copy(a, x->value.window, sizeof *w);
        w->v = arena_copy(a, w->v, (size_t)w->n * sizeof *w->v);
        y.value.window = w;
        return y;
    }
    case ATTR_CLASS_DIM_LABELS: y.value.dim_labels = arena_copy(a, x->value.dim_labels, sizeof(DimLabels)); return y;
    case ATTR_CLASS_SHAPE: y.value.shape = shape_copy(a, x->value.shape); return y;
    case ATTR_CLASS_SHAPES: {
        const ShapeList *from = x->value.shapes;
        const Shape    **v = ARENA_ARRAY(a, const Shape *, from->n);
        for (int32_t k = 0; k < from->n; k++)
            v[k] = shape_copy(a, from->v[k]);
        ShapeList *l = ARENA_NEW(a, ShapeList);
        *l = (ShapeList){from->n, v};
        y.value.shapes = l;
        return y;
    }
    case ATTR_CLASS_LITERAL: {
        AttrLiteral *l = ARENA_NEW(a, AttrLiteral);
        *l = (AttrLiteral){shape_copy(a, x->value.literal->shape), literal_keep(a, literal_ref(x->value.literal->value))};
        y.value.literal = l;
        return y;
    }
    case ATTR_CLASS_ALIASING: {
        const Aliasing *from = x->value.aliasing;
        OperandAlias   *v = ARENA_ARRAY(a, OperandAlias, from->n);
        for (int32_t k = 0; k < from->n; k++)
            v[k] = (OperandAlias){ints_copy(a, from->v[k].output), from->v[k].operand, ints_copy(a, from->v[k].index)};
        Aliasing *l = ARENA_NEW(a, Aliasing);
        *l = (Aliasing){from->n, v};
        y.value.aliasing = l;
        return y;
    }
    case ATTR_CLASS_KEY_VALUES: y.value.key_values = key_values_copy(a, t, x->value.key_values); return y;
    default: return attr_rare_copy(a, t, x);
    }
}

const KeyValues *key_values_copy(Arena *a, Interner *t, const KeyValues *x)
{
    KeyValue *v = ARENA_ARRAY(a, KeyValue, x->n);
    for (int32_t k = 0; k < x->n; k++)
        v[k] = (KeyValue){intern(t, x->v[k].key, intern_len(x->v[k].key)), intern(t, x->v[k].value, intern_len(x->v[k].value))};
    KeyValues *y = ARENA_NEW(a, KeyValues);
    *y = (KeyValues){x->n, v};
    return y;
}

static const IntsList *lists_copy(Arena *a, const IntsList *x)
{
    Ints *v = ARENA_ARRAY(a, Ints, x->n);
    for (int32_t k = 0; k < x->n; k++)
        v[k] = ints_copy(a, x->v[k]);
    IntsList *y = ARENA_NEW(a, IntsList);
    *y = (IntsList){v, x->n};
    return y;
}

Attr attr_copy(Arena *a, Interner *t, const Attr *x)
{
    Attr y = *x;
    switch (attr_info[x->id].cls) {
    case ATTR_CLASS_INT:
    case ATTR_CLASS_BOOL:
    case ATTR_CLASS_WORD:
    case ATTR_CLASS_NUMBER: return y;
    case ATTR_CLASS_STRING:
    case ATTR_CLASS_RAW: y.value.s = intern(t, x->value.s, intern_len(x->value.s)); return y;
    case ATTR_CLASS_INTS:
    case ATTR_CLASS_BOOLS:
    case ATTR_CLASS_PRECISION: y.value.ints = ints_copy(a, x->value.ints); return y;
    case ATTR_CLASS_LISTS: y.value.lists = lists_copy(a, x->value.lists); return y;
    case ATTR_CLASS_INTS_OR_LISTS:
        if (x->nested)
            y.value.lists = lists_copy(a, x->value.lists);
        else
            y.value.ints = ints_copy(a, x->value.ints);
        return y;
    default: return copy_pointers(a, t, x);
    }
}
