/* Random modules: types, values, computations and the header. What an instruction may be is in random_ops.c and random_calls.c.
 *
 * A computation is written from its first line to its last, each instruction taking values that stand before it; a called computation is
 * finished before the instruction that calls it is written, so that the text has callees first. */
#include "driver/random_int.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

size_t below(Gen *g, size_t n)
{
    return fuzz_below(&g->rng, n);
}

bool chance(Gen *g, size_t one_in)
{
    return below(g, one_in) == 0;
}

int64_t between(Gen *g, int64_t lo, int64_t hi)
{
    return lo + (int64_t)below(g, (size_t)(hi - lo + 1));
}

/* ---- types ---- */

int64_t ty_count(const Ty *t)
{
    int64_t n = 1;
    for (int32_t k = 0; k < t->rank; k++)
        n *= t->dims[k];
    return n;
}

static void random_order(Gen *g, Ty *t)
{
    for (int32_t k = 0; k < t->rank; k++)
        t->order[k] = t->rank - 1 - k;
    if (!g->layouts || !chance(g, 3))
        return;
    for (int32_t k = t->rank - 1; k > 0; k--) {
        size_t  other = below(g, (size_t)k + 1);
        int32_t kept = t->order[k];
        t->order[k] = t->order[other];
        t->order[other] = kept;
    }
}

Ty *ty_array(Gen *g, Type t, int32_t rank, const int64_t *dims, Facts f)
{
    Ty *x = ARENA_NEW(g->a, Ty);
    *x = (Ty){ .type = t, .rank = rank, .facts = f };
    for (int32_t k = 0; k < rank; k++)
        x->dims[k] = dims[k];
    random_order(g, x);
    return x;
}

const Ty *ty_as(Gen *g, const Ty *t, Type type, Facts f)
{
    Ty *x = ARENA_NEW(g->a, Ty);
    *x = *t;
    x->type = type;
    x->facts = f;
    return x;
}

const Ty *ty_tuple(Gen *g, int32_t n, const Ty *const *elems)
{
    Ty *x = ARENA_NEW(g->a, Ty);
    *x = (Ty){ .type = TYPE_TUPLE, .n = n, .elems = arena_copy(g->a, elems, (size_t)n * sizeof *elems) };
    return x;
}

Type type_random(Gen *g)
{
    if (!chance(g, 6))
        return g->types[below(g, (size_t)g->n_types)];
    return (Type)below(g, TYPE_C128 + 1);
}

static int64_t random_size(Gen *g)
{
    static const int64_t common[] = { 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17 };
    return chance(g, 60) ? 0 : common[below(g, sizeof common / sizeof *common)];
}

static int32_t new_dims(Gen *g, int64_t *dims)
{
    static const int32_t ranks[] = { 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5 };
    int32_t              rank = ranks[below(g, sizeof ranks / sizeof *ranks)];
    int64_t              count = 1;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = chance(g, 3) ? random_size(g) : g->sizes[below(g, 4)];
        if (count * dims[k] > MAX_COUNT / 2)
            dims[k] = 1;
        count *= dims[k];
    }
    return rank;
}

Ints dims_random(Gen *g)
{
    int64_t *dims = ARENA_ARRAY(g->a, int64_t, MAX_RANK);
    size_t   k = below(g, (size_t)g->n_shapes);
    if (g->n_shapes == 0 || chance(g, 4))
        return (Ints){ dims, new_dims(g, dims) };
    memcpy(dims, g->shapes[k], sizeof g->shapes[k]);
    return (Ints){ dims, g->ranks[k] };
}

const Ty *ty_random(Gen *g, Type t)
{
    Ints dims = dims_random(g);
    return ty_array(g, t, dims.n, dims.v, facts_data(g, t));
}

bool ty_same(const Ty *a, const Ty *b)
{
    bool same = a->type == b->type && a->rank == b->rank && a->n == b->n;
    for (int32_t k = 0; same && k < a->rank; k++)
        same = a->dims[k] == b->dims[k];
    for (int32_t k = 0; same && k < a->n; k++)
        same = ty_same(a->elems[k], b->elems[k]);
    return same;
}

static bool is_row_major(const Ty *t)
{
    for (int32_t k = 0; k < t->rank; k++)
        if (t->order[k] != t->rank - 1 - k)
            return false;
    return true;
}

static void put_list(Buf *b, int32_t n, const int64_t *v)
{
    for (int32_t k = 0; k < n; k++)
        buf_printf(b, "%s%lld", k ? "," : "", (long long)v[k]);
}

void ty_print(Buf *b, const Ty *t)
{
    if (t->type == TYPE_TUPLE) {
        buf_puts(b, "(");
        for (int32_t k = 0; k < t->n; k++) {
            buf_puts(b, k ? ", " : "");
            ty_print(b, t->elems[k]);
        }
        buf_puts(b, ")");
        return;
    }
    buf_printf(b, "%s[", type_name(t->type));
    put_list(b, t->rank, t->dims);
    buf_puts(b, "]");
    if (is_row_major(t) && ty_count(t) % 2) /* left out now and then: it is the default */
        return;
    for (int32_t k = 0; k < t->rank; k++)
        buf_printf(b, "%s%d", k ? "," : "{", t->order[k]);
    buf_puts(b, t->rank ? "}" : "");
}

/* ---- instructions ---- */

static Value *value_new(Body *b, const Ty *t, const char *base)
{
    Value *v = ARENA_NEW(b->g->a, Value);
    *v = (Value){ .name = arena_printf(b->g->a, "%%%s.%d", base, b->g->next++), .ty = t };
    return v;
}

/* The word that the text begins with: the opcode. */
static const char *first_word(Gen *g, const char *text)
{
    return arena_strndup(g->a, text, strcspn(text, "("));
}

static void put_notes(Body *b)
{
    static const char *const names[] = { "jit(f)/add", "a/b[dims=(0,)]/c", "quote \\\"x\\\"", "tab\\tand \\303\\244" };
    Gen                     *g = b->g;
    if (!g->notes)
        return;
    if (b->scope == SCOPE_ANY && b->values.n && chance(g, 40))
        buf_printf(&b->text, ", control-predecessors={%s}", b->values.v[below(g, (size_t)b->values.n)]->name);
    if (chance(g, 40))
        buf_printf(&b->text, ", frontend_attributes={k%d=\"v\"}", (int)below(g, 3));
    if (chance(g, 6))
        buf_printf(&b->text, ", metadata={op_type=\"t\" op_name=\"%s\" source_file=\"dir/model.py\" source_line=%d}", names[below(g, 4)],
                   (int)below(g, 500));
}

Value *body_emit(Body *b, const Ty *t, const char *fmt, ...)
{
    Gen    *g = b->g;
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(g->a, fmt, ap);
    va_end(ap);
    Value *v = value_new(b, t, first_word(g, text));
    buf_printf(&b->text, "  %s = ", v->name);
    ty_print(&b->text, t);
    buf_printf(&b->text, " %s", text);
    put_notes(b);
    buf_puts(&b->text, "\n");
    g->left--;
    return v;
}

static bool too_rough(const Ty *t)
{
    for (int32_t k = 0; k < t->n; k++)
        if (too_rough(t->elems[k]))
            return true;
    return t->facts.acc == ROUGH && !(t->facts.error <= 0.02 && t->facts.bound < 1e4);
}

Value *body_keep(Body *b, Value *v)
{
    if (!too_rough(v->ty))
        vec_push(b->g->a, &b->values, v);
    return v;
}

char *ints_text(Gen *g, const char *before, int32_t n, const int64_t *v)
{
    Buf t = { 0 };
    buf_printf(&t, "%s{", before);
    put_list(&t, n, v);
    buf_puts(&t, "}");
    char *text = arena_strndup(g->a, t.p, t.n);
    buf_free(&t);
    return text;
}

/* ---- constants ---- */

static void put_number(Gen *g, Buf *b, Type t, Facts f)
{
    static const char *const specials[] = { "nan", "inf", "-inf", "-0.0", "1e-40", "-nan", "3e38", "0.0" };
    static const char *const fractions[] = { "0.5", "-0.25", "1.5", "-1", "0", "1", "-0.0", "0.1", "-1.3" };
    static const char *const powers[] = { "0.25", "0.5", "1", "2", "1.0", "0.25", "0.5", "1", "2" };
    double                   limit = whole_limit(t) < 8 ? whole_limit(t) : 8;
    if (t == TYPE_PRED)
        buf_puts(b, chance(g, 2) ? "true" : "false");
    else if (type_is_int(t) && chance(g, 8))
        buf_printf(b, "%lld", (long long)(type_is_signed_int(t) ? INT64_MIN >> (64 - type_bits(t)) : (1LL << (type_bits(t) < 32 ? type_bits(t) : 32)) - 1));
    else if (type_is_int(t))
        buf_printf(b, "%lld", (long long)between(g, type_is_signed_int(t) ? type_bits(t) < 8 ? -1 : -9 : 0,
                                                 type_bits(t) < 8 ? type_bits(t) > 1 || type_is_unsigned_int(t) : 20));
    else if (f.acc == WHOLE)
        buf_printf(b, "%lld", (long long)between(g, (int64_t)-limit, (int64_t)limit));
    else if (f.nan && type_bits(t) >= 32 && chance(g, 2))
        buf_puts(b, specials[below(g, 8)]);
    else
        buf_puts(b, t == TYPE_F8E8M0FNU ? powers[below(g, 9)] : fractions[below(g, 9)]);
}

static void put_element(Gen *g, Buf *b, Type t, Facts f)
{
    if (!type_is_complex(t)) {
        put_number(g, b, t, f);
        return;
    }
    buf_puts(b, "(");
    put_number(g, b, type_component(t), f);
    buf_puts(b, ", ");
    put_number(g, b, type_component(t), f);
    buf_puts(b, ")");
}

static void put_level(Gen *g, Buf *b, const Ty *t, int32_t depth)
{
    if (depth == t->rank) {
        put_element(g, b, t->type, t->facts);
        return;
    }
    buf_puts(b, "{");
    for (int64_t k = 0; k < t->dims[depth]; k++) {
        buf_puts(b, k ? ", " : "");
        put_level(g, b, t, depth + 1);
    }
    buf_puts(b, "}");
}

/* Whole numbers where the type has them, or data. */
Value *constant_random(Body *b, const Ty *t)
{
    Gen  *g = b->g;
    Facts f = facts_data(g, t->type);
    double limit = whole_limit(t->type) < 8 ? whole_limit(t->type) : 8;
    if (limit > 0 && chance(g, 2))
        f = facts_whole(limit);
    if (type_is_complex(t->type))
        f.vague = false;
    t = ty_as(g, t, t->type, f);
    Buf text = { 0 };
    put_level(g, &text, t, 0);
    Value *v = body_keep(b, body_emit(b, t, "constant(%s)", text.p));
    buf_free(&text);
    return v;
}

Value *constant_scalar(Body *b, Type t, double v)
{
    double      size = v < 0 ? -v : v;
    bool        is_whole = v == floor(v) && (!is_arith_float(t) || size <= whole_limit(t));
    Facts       f = { .acc = is_whole ? WHOLE : EXACT, .bound = size };
    const Ty   *ty = ty_array(b->g, t, 0, NULL, f);
    const char *text = t == TYPE_PRED ? v != 0 ? "true" : "false" : arena_printf(b->g->a, "%g", v);
    return body_emit(b, ty, type_is_complex(t) ? "constant((%s, 0))" : "constant(%s)", text);
}

/* ---- values ---- */

static bool is_array(const Ty *t)
{
    return t->type != TYPE_TUPLE;
}

Value *any_of(Body *b, bool (*good)(const Ty *t))
{
    enum { TRIES = 30, RECENT = 12 };
    for (int tries = 0; tries < TRIES && b->values.n > 0; tries++) {
        int32_t from = chance(b->g, 2) && b->values.n > RECENT ? b->values.n - RECENT : 0;
        Value  *v = b->values.v[between(b->g, from, b->values.n - 1)];
        if (good(v->ty)) {
            v->uses++;
            return v;
        }
    }
    return NULL;
}

Value *any_array(Body *b)
{
    Value *v = any_of(b, is_array);
    if (v)
        return v;
    Type t = type_random(b->g);
    return constant_random(b, b->scope == SCOPE_SCALAR ? ty_array(b->g, t, 0, NULL, facts_data(b->g, t)) : ty_random(b->g, t));
}

static bool has_dims(const Ty *t, int32_t rank, const int64_t *dims)
{
    bool same = is_array(t) && t->rank == rank;
    for (int32_t k = 0; same && k < rank; k++)
        same = t->dims[k] == dims[k];
    return same;
}

static bool can_convert(const Ty *t, Type to)
{
    if (type_is_complex(t->type))
        return type_is_complex(to);
    return t->facts.acc != ROUGH || type_is_float(to) || type_is_complex(to);
}

/* A value of these dims, of type t or (t TYPE_COUNT) one that can become `to`. */
static Value *find(Body *b, Type t, int32_t rank, const int64_t *dims, bool rough, Type to)
{
    Value  *found = NULL;
    int32_t n = 0;
    for (int32_t k = 0; k < b->values.n; k++) {
        Value *v = b->values.v[k];
        bool   fits = has_dims(v->ty, rank, dims) && (rough || v->ty->facts.acc != ROUGH) &&
                    (t != TYPE_COUNT ? v->ty->type == t : can_convert(v->ty, to));
        if (fits && below(b->g, (size_t)++n) == 0)
            found = v;
    }
    if (found)
        found->uses++;
    return found;
}

Value *broadcast_scalar(Body *b, Value *scalar, const Ty *like)
{
    const Ty *t = ty_as(b->g, like, scalar->ty->type, scalar->ty->facts);
    return t->rank ? body_emit(b, t, "broadcast(%s), dimensions={}", scalar->name) : scalar;
}

static Value *make(Body *b, Type t, int32_t rank, const int64_t *dims, bool rough)
{
    Gen      *g = b->g;
    const Ty *ty = ty_array(g, t, rank, dims, facts_data(g, t));
    Value    *from = NULL;
    if (!chance(g, 3))
        from = find(b, TYPE_COUNT, rank, dims, rough, t);
    if (from)
        return body_keep(b, body_emit(b, ty_as(g, ty, t, facts_convert(t, from->ty->type, from->ty->facts)), "convert(%s)", from->name));
    if (rank > 0 && !chance(g, 3) && (from = find(b, t, 0, NULL, rough, t)))
        return body_keep(b, broadcast_scalar(b, from, ty));
    if (rank > 0 && (ty_count(ty) > 60 || chance(g, 3)))
        return body_keep(b, broadcast_scalar(b, constant_random(b, ty_array(g, t, 0, NULL, ty->facts)), ty));
    return constant_random(b, ty);
}

Value *want(Body *b, Type t, int32_t rank, const int64_t *dims)
{
    Value *v = chance(b->g, 10) ? NULL : find(b, t, rank, dims, true, t);
    return v ? v : make(b, t, rank, dims, true);
}

Value *want_exact(Body *b, Type t, int32_t rank, const int64_t *dims)
{
    Value *v = chance(b->g, 10) ? NULL : find(b, t, rank, dims, false, t);
    return v ? v : make(b, t, rank, dims, false);
}

Value *tuple_of(Body *b, int32_t n, Value *const *v)
{
    Buf        text = { 0 };
    const Ty **types = ARENA_ARRAY(b->g->a, const Ty *, n);
    buf_puts(&text, "tuple(");
    for (int32_t k = 0; k < n; k++) {
        types[k] = v[k]->ty;
        buf_printf(&text, "%s%s", k ? ", " : "", v[k]->name);
    }
    buf_puts(&text, ")");
    Value *t = body_emit(b, ty_tuple(b->g, n, types), "%s", text.p);
    buf_free(&text);
    return t;
}

Value *element_of(Body *b, Value *tuple, int32_t k)
{
    return body_emit(b, tuple->ty->elems[k], "get-tuple-element(%s), index=%d", tuple->name, k);
}

Value *want_ty(Body *b, const Ty *t)
{
    if (is_array(t))
        return want(b, t->type, t->rank, t->dims);
    Value **v = ARENA_ARRAY(b->g->a, Value *, t->n);
    for (int32_t k = 0; k < t->n; k++)
        v[k] = want_ty(b, t->elems[k]);
    return tuple_of(b, t->n, v);
}

/* Within [-bound, bound]; NaN stays. */
Value *clamped(Body *b, Value *x, double bound)
{
    Facts f = x->ty->facts;
    Value *hi = constant_scalar(b, x->ty->type, bound), *lo = constant_scalar(b, x->ty->type, -bound);
    f.bound = bound;
    f.vague = true;
    return body_emit(b, ty_as(b->g, x->ty, x->ty->type, f), "clamp(%s, %s, %s)", lo->name, x->name, hi->name);
}

/* ---- computations ---- */

void body_start(Body *b, Gen *g, Scope scope, int32_t depth)
{
    *b = (Body){ .g = g, .scope = scope, .depth = depth };
}

Value *body_param(Body *b, int32_t number, const Ty *t)
{
    Value *v = value_new(b, t, "p");
    buf_printf(&b->text, "  %s = ", v->name);
    ty_print(&b->text, t);
    buf_printf(&b->text, " parameter(%d)\n", number);
    return body_keep(b, v);
}

/* An instruction's name stands in text with no more digits behind it. */
bool is_used(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = text; (p = strstr(p, name)) != NULL; p += n)
        if (p[n] < '0' || p[n] > '9')
            return true;
    return false;
}

static char *name_of_line(Arena *a, const char *line)
{
    return arena_strndup(a, line + 2, strcspn(line + 2, " "));
}

typedef VEC(char *) Lines;

static Lines lines_of(Body *b)
{
    Lines all = { 0 };
    buf_putc(&b->text, '\0');
    for (const char *p = b->text.p, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        vec_push(b->g->a, &all, arena_strndup(b->g->a, p, (size_t)(end - p)));
    }
    b->text.n = 0;
    return all;
}

/* A fusion has no dead instructions: from the last one to the first those go that nobody uses, but for parameters. What stays, as text. */
const char *body_prune(Body *b, const Value *root)
{
    Arena      *a = b->g->a;
    Lines       all = lines_of(b);
    const char *kept = "";
    for (int32_t k = all.n - 1; k >= 0; k--) {
        const char *name = name_of_line(a, all.v[k]);
        bool        is_param = strncmp(name, "%p.", 3) == 0;
        if (strcmp(name, root->name) != 0 && !is_param && !is_used(kept, name))
            all.v[k] = NULL;
        else if (!is_param)
            kept = arena_printf(a, "%s\n%s", all.v[k], kept);
    }
    for (int32_t k = 0; k < all.n; k++)
        if (all.v[k])
            buf_printf(&b->text, "%s\n", all.v[k]);
    return kept;
}

static void put_body(Buf *out, Body *b, const Value *root)
{
    Lines all = lines_of(b);
    for (int32_t k = 0; k < all.n; k++) {
        bool is_root = strcmp(name_of_line(b->g->a, all.v[k]), root->name) == 0;
        buf_printf(out, is_root ? "  ROOT %s\n" : "  %s\n", all.v[k] + 2);
    }
    buf_puts(out, "}\n\n");
    buf_free(&b->text);
}

const char *body_finish(Body *b, Value *root)
{
    Gen        *g = b->g;
    const char *name = arena_printf(g->a, "%%comp.%d", g->next++);
    buf_printf(&g->done, "%s {\n", name);
    put_body(&g->done, b, root);
    return name;
}

static const RandomOp *random_op(Body *b)
{
    const RandomOp *all[2] = { random_ops, random_calls };
    int32_t         counts[2] = { random_op_count, random_call_count }, sum = 0;
    for (int t = 0; t < 2; t++)
        for (int32_t k = 0; k < counts[t]; k++)
            sum += all[t][k].most >= b->scope ? all[t][k].weight : 0;
    int32_t at = (int32_t)below(b->g, (size_t)sum);
    for (int t = 0; t < 2; t++)
        for (int32_t k = 0; k < counts[t]; k++)
            if (all[t][k].most >= b->scope && (at -= all[t][k].weight) < 0)
                return &all[t][k];
    return random_ops;
}

void body_fill(Body *b, int32_t n)
{
    int32_t until = b->g->left - n;
    for (int tries = 0; b->g->left > until && tries < 20 * n + 100; tries++)
        random_op(b)->make(b);
}

/* Values without users first: they keep alive what they were computed from. */
static int32_t unused(Body *b, int32_t most, Value **v)
{
    int32_t n = 0;
    for (int32_t k = b->values.n - 1; k >= 0 && n < most; k--)
        if (!b->values.v[k]->uses && !chance(b->g, 8))
            v[n++] = b->values.v[k];
    return n;
}

Value *body_root(Body *b)
{
    enum { MOST = 8 };
    Value  *v[MOST + 3];
    int32_t n = unused(b, b->depth ? (int32_t)below(b->g, 4) : MOST, v);
    if (b->scope == SCOPE_SCALAR || chance(b->g, 8) || b->values.n == 0)
        return n ? v[0]->ty->type == TYPE_TUPLE && b->scope == SCOPE_SCALAR ? any_array(b) : v[0] : any_array(b);
    for (size_t more = below(b->g, 4); more > 0 || n == 0; more -= more > 0)
        v[n++] = b->values.v[below(b->g, (size_t)b->values.n)]; /* twice is fine, and so are parameters */
    if (n == 1 && chance(b->g, 2))
        return v[0];
    if (n > 3 && !b->depth && chance(b->g, 3)) {
        Value *inner = tuple_of(b, 2, v);
        v[1] = inner;
        return tuple_of(b, n - 1, v + 1);
    }
    return tuple_of(b, n, v);
}

/* ---- modules ---- */

static void choose(Gen *g)
{
    static const Type common[] = { TYPE_F32, TYPE_S32, TYPE_PRED, TYPE_BF16, TYPE_F64, TYPE_U8, TYPE_S64, TYPE_F16, TYPE_U32, TYPE_S8, TYPE_C64 };
    g->specials = chance(g, 4);
    g->layouts = chance(g, 2);
    g->notes = chance(g, 2);
    g->n_types = (int32_t)between(g, 2, 6);
    for (int32_t k = 0; k < g->n_types; k++)
        g->types[k] = chance(g, 4) ? (Type)below(g, TYPE_C128 + 1) : common[below(g, sizeof common / sizeof *common)];
    g->types[0] = TYPE_F32;
    for (int k = 0; k < 4; k++)
        g->sizes[k] = (int32_t)random_size(g);
    int32_t n = (int32_t)between(g, 2, 4);
    for (int32_t k = 0; k < n; k++)
        g->ranks[k] = new_dims(g, g->shapes[k]);
    g->n_shapes = n;
}

static const Ty *param_ty(Gen *g, int32_t depth)
{
    if (depth >= 2 || !chance(g, 6))
        return ty_random(g, type_random(g));
    const Ty *elems[3];
    int32_t   n = (int32_t)below(g, 4);
    for (int32_t k = 0; k < n; k++)
        elems[k] = param_ty(g, depth + 1);
    return ty_tuple(g, n, elems);
}

static bool same_order(const Ty *a, const Ty *b)
{
    return a->rank == 0 || memcmp(a->order, b->order, (size_t)a->rank * sizeof *a->order) == 0;
}

/* Each array of the result may take the memory of a parameter that has its type; each parameter gives it once. */
static void put_aliases(Gen *g, Buf *out, const Ty *root, int32_t n, const Ty *const *params)
{
    bool    taken[16] = { false };
    int32_t found = 0;
    for (int32_t k = 0; k < (root->n ? root->n : root->type != TYPE_TUPLE); k++)
        for (int32_t p = 0; p < n; p++) {
            const Ty *t = root->n ? root->elems[k] : root;
            if (taken[p] || !is_array(t) || !ty_same(t, params[p]) || !same_order(t, params[p]) || chance(g, 3))
                continue;
            taken[p] = true;
            buf_puts(out, found++ ? ", " : ", input_output_alias={ ");
            buf_printf(out, root->n ? "{%d}" : "{}", k);
            buf_printf(out, ": (%d, {}, %s)", p, chance(g, 3) ? "must-alias" : "may-alias");
            break;
        }
    buf_puts(out, found ? " }" : "");
}

static void add_leaves(RandomLeaf *leaves, int32_t *n, const Ty *t)
{
    if (is_array(t))
        leaves[(*n)++] = (RandomLeaf){ t->facts.acc == ROUGH ? t->facts.error : 0, t->facts.vague };
    for (int32_t k = 0; k < t->n; k++)
        add_leaves(leaves, n, t->elems[k]);
}

static int32_t leaf_count(const Ty *t)
{
    int32_t n = is_array(t);
    for (int32_t k = 0; k < t->n; k++)
        n += leaf_count(t->elems[k]);
    return n;
}

static RandomModule finish(Gen *g, Body *entry, uint64_t seed, Value *root, int32_t n_params, const Ty *const *params)
{
    Buf          out = { 0 };
    RandomModule m = { .specials = g->specials, .leaves = ARENA_ARRAY(g->a, RandomLeaf, leaf_count(root->ty)) };
    buf_printf(&out, "HloModule random_%llu", (unsigned long long)seed);
    if (chance(g, 8))
        buf_puts(&out, ", is_scheduled=true");
    if (chance(g, 2))
        put_aliases(g, &out, root->ty, n_params, params);
    buf_puts(&out, "\n\n");
    buf_put(&out, g->done.p ? g->done.p : "", g->done.n);
    buf_puts(&out, "ENTRY %main {\n");
    put_body(&out, entry, root);
    out.n--; /* the empty line at the end */
    add_leaves(m.leaves, &m.n_leaves, root->ty);
    m.text = arena_strndup(g->a, out.p, out.n);
    m.n = out.n;
    buf_free(&out);
    buf_free(&g->done);
    return m;
}

RandomModule random_module(Arena *a, uint64_t seed, int32_t size)
{
    Gen       g = { .a = a, .rng = seed * 2 + (uint64_t)size * UINT64_C(0x9E3779B97F4A7C15), .left = size };
    Body      entry;
    const Ty *params[8];
    choose(&g);
    int32_t n = (int32_t)below(&g, 7);
    body_start(&entry, &g, SCOPE_ANY, 0);
    for (int32_t k = 0; k < n; k++) {
        params[k] = param_ty(&g, 0);
        body_param(&entry, k, params[k]);
    }
    body_fill(&entry, size);
    Value *root = body_root(&entry);
    return finish(&g, &entry, seed, root, n, params);
}
