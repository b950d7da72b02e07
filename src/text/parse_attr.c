/* Values of attributes: lists, windows, dimension labels. Source: reference text 5.4, 6.2. */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "text/parse_int.h"

double number_value(Number x)
{
    switch (x.kind) {
    case NUM_INT: return (double)x.i;
    case NUM_DECIMAL: return x.f;
    case NUM_NAN: return x.negative ? -__builtin_nan("") : __builtin_nan("");
    case NUM_INF: return x.negative ? -__builtin_inf() : __builtin_inf();
    }
    die("number of kind %d", (int)x.kind);
}

RawAttr *attr_add(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc)
{
    vec_push(p->tmp, &p->raw, ((RawAttr){.name = name, .cls = cls, .loc = loc, .value_loc = value_loc, .id = ATTR_COUNT}));
    return &p->raw.v[p->raw.n - 1];
}

/* What follows MARK, which may stand behind blanks; NULL where something else does. */
static const char *past_mark(const char *s, char mark)
{
    s += strspn(s, " \t\n\f\r");
    return *s == mark ? s + 1 : NULL;
}

/* XLA drops a list that its GPU compiler no longer writes, wherever it stands: "wait_on_operation_queues" : [ ] , of which only the blanks
 * may differ. Almost no text has it, so almost none is copied. */
const char *config_value(Parser *p, const char *v)
{
    static const char dropped[] = "\"wait_on_operation_queues\"";
    const size_t      length = sizeof dropped - 1;
    const char       *end = v + intern_len(v), *from = v;
    char             *text = NULL, *to = NULL;
    for (const char *at = v; (at = memmem(at, (size_t)(end - at), dropped, length)) != NULL;) {
        const char *rest = at + length;
        for (const char *marks = ":[],"; rest && *marks; marks++)
            rest = past_mark(rest, *marks);
        if (rest) {
            if (!text)
                text = to = ARENA_ARRAY(p->tmp, char, end - v);
            memcpy(to, from, (size_t)(at - from));
            to += at - from;
            from = rest;
        }
        at = rest ? rest : at + length;
    }
    if (!text)
        return v;
    memcpy(to, from, (size_t)(end - from));
    return intern(p->strings, text, (size_t)(to - text) + (size_t)(end - from));
}

void attr_lists(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc, const IntsVec *v)
{
    IntsList *l = ARENA_NEW(p->a, IntsList);
    *l = list_lists(p, v);
    RawAttr *x = attr_add(p, name, cls, loc, value_loc);
    x->value.lists = l;
    x->nested = true;
}

void attr_comps(Parser *p, const char *name, AttrClass cls, Loc loc, Loc value_loc, CompVec *v)
{
    attr_add(p, name, cls, loc, value_loc)->comps = v ? v : ARENA_NEW(p->tmp, CompVec);
}

void attr_shapes(Parser *p, const char *name, Loc loc, Loc value_loc, const ShapeVec *v)
{
    attr_add(p, name, ATTR_CLASS_SHAPES, loc, value_loc)->value.shapes = list_shapes(p, v);
}

void attr_literal(Parser *p, const char *name, Loc loc, Loc value_loc, AttrLiteral v)
{
    attr_add(p, name, ATTR_CLASS_LITERAL, loc, value_loc)->value.literal = arena_copy(p->a, &v, sizeof v);
}

void attr_aliasing(Parser *p, const char *name, Loc loc, Loc value_loc, const AliasVec *v)
{
    Aliasing *x = ARENA_NEW(p->a, Aliasing);
    if (v)
        *x = (Aliasing){v->n, arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v)};
    attr_add(p, name, ATTR_CLASS_ALIASING, loc, value_loc)->value.aliasing = x;
}

static int compare_keys(const void *x, const void *y)
{
    const char *s = ((const Stat *)x)->key, *t = ((const Stat *)y)->key;
    int         order = strcmp(s, t); /* keys are words */
    return order ? order : ((const Stat *)x)->loc.off < ((const Stat *)y)->loc.off ? -1 : 1;
}

/* Sorted; of a key given twice the last value stays. */
const KeyValues *key_values(Parser *p, const StatVec *v)
{
    KeyValues *x = ARENA_NEW(p->a, KeyValues);
    int32_t    n = v ? v->n : 0;
    Stat      *sorted = v ? arena_copy(p->tmp, v->v, (size_t)n * sizeof *sorted) : NULL;
    for (int32_t k = 0; k < n; k++)
        sorted[k].loc.off = k;
    if (n > 1)
        qsort(sorted, (size_t)n, sizeof *sorted, compare_keys);
    KeyValue *out = ARENA_ARRAY(p->a, KeyValue, n);
    int32_t   count = 0;
    for (int32_t k = 0; k < n; k++)
        if (k + 1 == n || sorted[k].key != sorted[k + 1].key)
            out[count++] = (KeyValue){sorted[k].key, sorted[k].value};
    *x = (KeyValues){count, out};
    return x;
}

void attr_key_values(Parser *p, const char *name, Loc loc, Loc value_loc, const StatVec *v)
{
    attr_add(p, name, ATTR_CLASS_KEY_VALUES, loc, value_loc)->value.key_values = key_values(p, v);
}

/* ---- numbers inside one token: 2x3, 0_1x2_3_4 ---- */

/* The number at *s, which moves behind it; clamped, reported when it is too large. The token may be the last of a text without a NUL. */
static int64_t token_int(Parser *p, const char **s, const char *end, Loc loc)
{
    bool     negative = **s == '-';
    uint64_t x = 0;
    bool     over = false;
    for (*s += negative; *s < end && **s >= '0' && **s <= '9'; ++*s)
        over |= __builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, (uint64_t)(**s - '0'), &x);
    if (over || x > (uint64_t)INT64_MAX + negative) {
        parse_error(p, loc, "a number here does not fit 64 bits");
        return 0;
    }
    return (int64_t)(negative ? 0 - x : x);
}

IntVec *dxd_list(Parser *p, Loc text)
{
    const char *s = p->text + text.off, *end = s + text.len;
    IntVec     *v = int_list(p, NULL, token_int(p, &s, end, text));
    while (s < end) {
        s++; /* x */
        v = int_list(p, v, token_int(p, &s, end, text));
    }
    return v;
}

/* lo_hi or lo_hi_interior, joined by x. */
static const PadDim *pad_list(Parser *p, Loc text, int32_t *n, bool *three)
{
    const char *s = p->text + text.off, *end = s + text.len;
    VEC(PadDim) v = {0};
    *three = false;
    while (s < end) {
        PadDim d = {0};
        d.lo = token_int(p, &s, end, text);
        s++; /* _ */
        d.hi = token_int(p, &s, end, text);
        if (s < end && *s == '_') {
            s++;
            d.interior = token_int(p, &s, end, text);
            *three = true;
        }
        vec_push(p->tmp, &v, d);
        s++; /* x, or the end */
    }
    *n = v.n;
    return arena_copy(p->a, v.v, (size_t)v.n * sizeof *v.v);
}

void attr_padding(Parser *p, const char *name, Loc loc, Loc text)
{
    Padding *x = ARENA_NEW(p->a, Padding);
    x->v = pad_list(p, text, &x->n, &x->three);
    attr_add(p, name, ATTR_CLASS_PADDING, loc, text)->value.padding = x;
}

/* ---- slices, windows ---- */

SliceVec *range_add(Parser *p, SliceVec *v, const IntVec *parts, Loc loc)
{
    SliceRange r = {0, 0, 1};
    if (parts->n != 2 && parts->n != 3)
        parse_error(p, loc, "a range is [start:limit] or [start:limit:stride], found %d numbers", parts->n);
    else
        r = (SliceRange){parts->v[0], parts->v[1], parts->n == 3 ? parts->v[2] : 1};
    if (!v)
        v = ARENA_NEW(p->tmp, SliceVec);
    vec_push(p->tmp, v, r);
    return v;
}

void attr_slices(Parser *p, const char *name, Loc loc, Loc value_loc, const SliceVec *v)
{
    Slices *x = ARENA_NEW(p->a, Slices);
    if (v)
        *x = (Slices){v->n, arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v)};
    attr_add(p, name, ATTR_CLASS_SLICES, loc, value_loc)->value.slices = x;
}

enum { W_SIZE, W_STRIDE, W_PAD, W_BASE, W_WINDOW, W_REVERSAL, W_FIELDS };
static const char *const window_keys[W_FIELDS] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};

static WindowDraft *window_begin_field(Parser *p, WindowDraft *w, const char *key, Loc loc, int *field)
{
    if (!w)
        w = ARENA_NEW(p->tmp, WindowDraft);
    for (*field = 0; *field < W_FIELDS && strcmp(window_keys[*field], key) != 0;)
        ++*field;
    if (*field == W_FIELDS) {
        parse_error(p, loc, "a window has no field '%s'", key);
        parse_suggest(p, loc, key, window_keys, W_FIELDS);
        return w;
    }
    if (w->given[*field])
        parse_error(p, loc, "the field '%s' of the window is given twice", key);
    w->given[*field] = true;
    return w;
}

WindowDraft *window_field(Parser *p, WindowDraft *w, const char *key, Loc loc, const IntVec *v)
{
    int  field;
    Ints x = {v->v, v->n};
    w = window_begin_field(p, w, key, loc, &field);
    switch (field) {
    case W_SIZE: w->size = x; break;
    case W_STRIDE: w->stride = x; break;
    case W_BASE: w->base_dilation = x; break;
    case W_WINDOW: w->window_dilation = x; break;
    case W_REVERSAL: w->reversal = x; break;
    default: break; /* reported */
    }
    return w;
}

WindowDraft *window_pad(Parser *p, WindowDraft *w, const char *key, Loc loc, Loc text)
{
    int  field;
    bool three;
    w = window_begin_field(p, w, key, loc, &field);
    w->pad = pad_list(p, text, &w->n_pad, &three);
    if (three)
        parse_error(p, text, "the padding of a window has two numbers for each dimension");
    return w;
}

static void check_window_field(Parser *p, Loc loc, int32_t rank, int field, bool given, int32_t n)
{
    if (given && n != rank)
        parse_error(p, loc, "'%s' of the window has %d entries, 'size' has %d", window_keys[field], n, rank);
}

void attr_window(Parser *p, const char *name, Loc loc, Loc value_loc, const WindowDraft *w)
{
    static const WindowDraft none;
    if (!w)
        w = &none;
    int32_t n = w->size.n;
    int     errors = p->d->errors;
    check_window_field(p, value_loc, n, W_STRIDE, w->given[W_STRIDE], w->stride.n);
    check_window_field(p, value_loc, n, W_PAD, w->given[W_PAD], w->n_pad);
    check_window_field(p, value_loc, n, W_BASE, w->given[W_BASE], w->base_dilation.n);
    check_window_field(p, value_loc, n, W_WINDOW, w->given[W_WINDOW], w->window_dilation.n);
    check_window_field(p, value_loc, n, W_REVERSAL, w->given[W_REVERSAL], w->reversal.n);
    Window    *x = ARENA_NEW(p->a, Window);
    WindowDim *v = ARENA_ARRAY(p->a, WindowDim, n);
    for (int32_t k = 0; k < n && p->d->errors == errors; k++)
        v[k] = (WindowDim){.size = w->size.v[k],
                           .stride = w->given[W_STRIDE] ? w->stride.v[k] : 1,
                           .pad_lo = w->given[W_PAD] ? w->pad[k].lo : 0,
                           .pad_hi = w->given[W_PAD] ? w->pad[k].hi : 0,
                           .base_dilation = w->given[W_BASE] ? w->base_dilation.v[k] : 1,
                           .window_dilation = w->given[W_WINDOW] ? w->window_dilation.v[k] : 1,
                           .reversal = w->given[W_REVERSAL] && w->reversal.v[k] == 1};
    *x = (Window){n, v};
    attr_add(p, name, ATTR_CLASS_WINDOW, loc, value_loc)->value.window = x;
}

/* ---- dim_labels ---- */

enum { MAX_SPATIAL = 10 };
static const char *const label_parts[] = {"input", "kernel", "output"};

/* One of the three parts: first and second are the two letters; a missing letter counts as position 0, as in XLA. */
static int32_t read_labels(Parser *p, Loc loc, int part, const char *s, int n, char first, char second, int64_t *at_first,
                           int64_t *at_second, int64_t *spatial)
{
    int32_t count = 0;
    bool    seen[256] = {false};
    *at_first = *at_second = 0;
    for (int k = 0; k < n; k++)
        count += s[k] >= '0' && s[k] <= '9';
    for (int k = 0; k < n; k++) {
        char c = s[k];
        if (c == '?')
            continue;
        if (seen[(unsigned char)c]) {
            parse_error(p, loc, "'%c' stands twice in the %s part of the labels", c, label_parts[part]);
            return -1;
        }
        seen[(unsigned char)c] = true;
        if (c == first)
            *at_first = k;
        else if (c == second)
            *at_second = k;
        else if (c < '0' || c - '0' >= count) {
            parse_error(p, loc, "'%c' in the %s part of the labels, which has %d spatial dimensions", c, label_parts[part], count);
            return -1;
        } else
            spatial[c - '0'] = k;
    }
    return count;
}

void attr_dim_labels(Parser *p, const char *name, Loc loc, Loc text)
{
    const char *lhs = p->text + text.off, *end = lhs + text.len;
    const char *bar = memchr(lhs, '_', (size_t)text.len), *arrow = memchr(bar, '-', (size_t)(end - bar));
    DimLabels  *x = ARENA_NEW(p->a, DimLabels);
    int32_t a = read_labels(p, text, 0, lhs, (int)(bar - lhs), 'b', 'f', &x->lhs_batch, &x->lhs_feature, x->lhs_spatial);
    int32_t b =
        a < 0 ? -1 : read_labels(p, text, 1, bar + 1, (int)(arrow - bar - 1), 'i', 'o', &x->rhs_in, &x->rhs_out, x->rhs_spatial);
    int32_t c = b < 0 ? -1 : read_labels(p, text, 2, arrow + 2, (int)(end - arrow - 2), 'b', 'f', &x->out_batch, &x->out_feature,
                                         x->out_spatial);
    if (c >= 0 && (a != b || b != c))
        parse_error(p, text, "the parts of the labels have %d, %d and %d spatial dimensions", a, b, c);
    x->spatial = a;
    attr_add(p, name, ATTR_CLASS_DIM_LABELS, loc, text)->value.dim_labels = x;
}
