/* Random instructions that call nothing: elementwise ones, conversions, movement, contractions. Each function writes one instruction,
 * with what it needs in front, or gives up; what comes in and what it makes is checked against the facts. */
#include "driver/random_int.h"

#include <math.h>
#include <string.h>

/* ---- which values ---- */

static bool is_int(const Ty *t)
{
    return type_is_int(t->type);
}

static bool is_bits(const Ty *t)
{
    return type_is_int(t->type) || t->type == TYPE_PRED;
}

static bool is_float(const Ty *t)
{
    return is_arith_float(t->type);
}

static bool is_exact_float(const Ty *t)
{
    return is_float(t) && t->facts.acc != ROUGH;
}

static bool is_tame_float(const Ty *t)
{
    return is_float(t) && t->facts.bound <= 100;
}

static bool is_number(const Ty *t)
{
    return is_int(t) || is_float(t) || type_is_complex(t->type);
}

static bool is_complex(const Ty *t)
{
    return type_is_complex(t->type);
}

static bool has_rank(const Ty *t)
{
    return t->type != TYPE_TUPLE && t->rank > 0;
}

static bool is_convertible(const Ty *t)
{
    return t->type != TYPE_TUPLE;
}

/* Bits that everybody sees the same. */
static bool is_bare(const Ty *t)
{
    return t->type != TYPE_TUPLE && t->facts.acc != ROUGH && !t->facts.vague;
}

static bool is_comparable(const Ty *t)
{
    return t->type != TYPE_TUPLE && !is_complex(t) && t->facts.acc != ROUGH;
}

static bool done(Body *b, Value *v)
{
    body_keep(b, v);
    return true;
}

static const Ty *as(Body *b, const Value *x, Type t, Facts f)
{
    return ty_as(b->g, x->ty, t, f);
}

static bool unary(Body *b, const char *op, const Value *x, Type t, Facts f)
{
    return done(b, body_emit(b, as(b, x, t, f), "%s(%s)", op, x->name));
}

static bool binary(Body *b, const char *op, const Value *x, const Value *y, Facts f)
{
    return done(b, body_emit(b, as(b, x, x->ty->type, f), "%s(%s, %s)", op, x->name, y->name));
}

/* ---- elementwise ---- */

static bool int_unary(Body *b)
{
    static const char *const ops[] = { "negate", "not", "popcnt", "count-leading-zeros", "abs", "sign" };
    Value                   *x = any_of(b, is_int);
    return x && unary(b, ops[below(b->g, type_is_signed_int(x->ty->type) ? 6 : 4)], x, x->ty->type, facts_int(x->ty->type));
}

static bool int_binary(Body *b)
{
    static const char *const ops[] = { "and",        "or",         "xor",      "maximum", "minimum",   "add", /* these for pred, too */
                                       "multiply",   "subtract",   "divide",   "power",   "remainder", "shift-left",
                                       "shift-right-arithmetic", "shift-right-logical" };
    Value                   *x = any_of(b, is_bits);
    if (!x)
        return false;
    Value      *y = want(b, x->ty->type, x->ty->rank, x->ty->dims);
    const char *op = ops[below(b->g, x->ty->type == TYPE_PRED ? 7 : 14)];
    return binary(b, op, x, y, facts_int(x->ty->type));
}

/* What keeps the accuracy of its operand: rounding jumps, so not of a rough one. */
static bool float_unary(Body *b)
{
    static const char *const any[] = { "negate", "abs", "copy" }, *const jumps[] = { "floor", "ceil", "round-nearest-afz", "round-nearest-even", "sign" };
    Value                   *x = any_of(b, is_float);
    if (!x)
        return false;
    Facts f = x->ty->facts;
    bool  jump = f.acc != ROUGH && chance(b->g, 2);
    if (!jump) {
        f.vague |= f.nan;
        return unary(b, any[below(b->g, 3)], x, x->ty->type, f);
    }
    f.vague = true;
    f.bound += 1;
    if (f.acc == EXACT && f.bound <= whole_limit(x->ty->type))
        f.acc = WHOLE;
    return unary(b, jumps[below(b->g, 5)], x, x->ty->type, f);
}

static bool float_test(Body *b)
{
    Value *x = any_of(b, is_exact_float);
    return x && unary(b, "is-finite", x, TYPE_PRED, facts_int(TYPE_PRED));
}

/* Smooth functions of slope and value at most `slope` and `most` where the operand is within [-4, 4]. */
static bool function(Body *b)
{
    static const struct {
        const char *op;
        double      slope, most;
    } all[] = { { "tanh", 1, 1 },   { "sine", 1, 1 },     { "cosine", 1, 1 },       { "logistic", 1, 1 },
                { "erf", 1.2, 1 },  { "asinh", 1, 3 },    { "exponential", 55, 55 }, { "exponential-minus-one", 55, 55 },
                { "exp2", 12, 16 }, { "sinh", 28, 28 },   { "cosh", 28, 28 } };
    Value *x = any_of(b, is_tame_float);
    if (!x || type_bits(x->ty->type) <= 8)
        return false;
    if (x->ty->facts.bound > 4)
        x = clamped(b, x, 4);
    size_t k = below(b->g, sizeof all / sizeof *all);
    Facts  f = x->ty->facts;
    f.acc = ROUGH;
    f.bound = all[k].most;
    f.error = f.error * all[k].slope + ldexp(all[k].most, 3 - type_info[x->ty->type].man);
    f.vague = true;
    return unary(b, all[k].op, x, x->ty->type, f);
}

/* op(|x| + 1): the operand is in the domain and away from the pole. */
static bool positive_function(Body *b)
{
    static const char *const ops[] = { "log", "sqrt", "rsqrt", "cbrt", "log2", "log-plus-one" };
    Value                   *x = any_of(b, is_tame_float);
    if (!x || type_bits(x->ty->type) <= 8)
        return false;
    Type  t = x->ty->type;
    Facts f = x->ty->facts, g = facts_add(t, f, facts_whole(1));
    Value *one = broadcast_scalar(b, constant_scalar(b, t, 1), x->ty);
    Value *size = body_emit(b, as(b, x, t, f), "abs(%s)", x->name);
    Value *y = body_emit(b, as(b, x, t, g), "add(%s, %s)", size->name, one->name);
    g.acc = ROUGH;
    g.error = 1.5 * g.error + ldexp(g.bound, 3 - type_info[t].man);
    g.vague = true;
    return unary(b, ops[below(b->g, 6)], y, t, g);
}

static bool float_binary(Body *b)
{
    static const char *const ops[] = { "add", "subtract", "multiply" };
    Value                   *x = any_of(b, is_float);
    if (!x)
        return false;
    Type   t = x->ty->type;
    Value *y = want(b, t, x->ty->rank, x->ty->dims);
    size_t op = below(b->g, 3);
    return binary(b, ops[op], x, y, op == 2 ? facts_mul(t, x->ty->facts, y->ty->facts) : facts_add(t, x->ty->facts, y->ty->facts));
}

/* Which zero, which NaN is open. */
static bool float_choice(Body *b)
{
    static const char *const ops[] = { "maximum", "minimum" };
    Value                   *x = any_of(b, is_float);
    if (!x)
        return false;
    Value *y = want(b, x->ty->type, x->ty->rank, x->ty->dims);
    Facts  f = facts_join(x->ty->facts, y->ty->facts);
    f.vague = true;
    return binary(b, ops[below(b->g, 2)], x, y, f);
}

/* By a number of which every zero has a known sign, or of which the magnitude is 1 and more. */
static bool divide(Body *b)
{
    static const char *const ops[] = { "divide", "remainder" };
    Value                   *x = any_of(b, is_exact_float);
    if (!x)
        return false;
    Value *y = want_exact(b, x->ty->type, x->ty->rank, x->ty->dims);
    Facts  f = facts_join(x->ty->facts, y->ty->facts);
    if (y->ty->facts.vague)
        return false;
    f = (Facts){ .acc = EXACT, .bound = INFINITY, .nan = true, .vague = true };
    return binary(b, ops[below(b->g, 2)], x, y, f);
}

static bool complex_op(Body *b)
{
    Value *x = any_of(b, is_complex);
    if (!x)
        return false;
    Type  t = x->ty->type, part = type_component(t);
    Facts f = x->ty->facts;
    if (chance(b->g, 2)) {
        static const char *const ops[] = { "real", "imag" };
        return unary(b, ops[below(b->g, 2)], x, part, f);
    }
    if (chance(b->g, 3)) {
        f.vague |= f.nan;
        return unary(b, "negate", x, t, f);
    }
    static const char *const ops[] = { "add", "subtract", "multiply" };
    Value                   *y = want(b, t, x->ty->rank, x->ty->dims);
    size_t                   op = below(b->g, 3);
    return binary(b, ops[op], x, y, op == 2 ? facts_mul(t, f, y->ty->facts) : facts_add(t, f, y->ty->facts));
}

static bool make_complex(Body *b)
{
    Value *x = any_of(b, is_float);
    if (!x || (x->ty->type != TYPE_F32 && x->ty->type != TYPE_F64))
        return false;
    Value *y = want(b, x->ty->type, x->ty->rank, x->ty->dims);
    Type   t = x->ty->type == TYPE_F32 ? TYPE_C64 : TYPE_C128;
    return done(b, body_emit(b, as(b, x, t, facts_join(x->ty->facts, y->ty->facts)), "complex(%s, %s)", x->name, y->name));
}

static bool compare(Body *b)
{
    static const char *const directions[] = { "EQ", "NE", "GE", "GT", "LE", "LT" };
    Value                   *x = any_of(b, is_comparable);
    if (!x)
        return false;
    Value      *y = want_exact(b, x->ty->type, x->ty->rank, x->ty->dims);
    bool        total = type_is_float(x->ty->type) && !x->ty->facts.vague && !y->ty->facts.vague && chance(b->g, 2);
    const Ty   *t = as(b, x, TYPE_PRED, facts_int(TYPE_PRED));
    return done(b, body_emit(b, t, "compare(%s, %s), direction=%s%s", x->name, y->name, directions[below(b->g, 6)], total ? ", type=TOTALORDER" : ""));
}

static bool select_op(Body *b)
{
    Value *x = any_array(b), *y = want(b, x->ty->type, x->ty->rank, x->ty->dims);
    bool   scalar = chance(b->g, 4);
    Value *p = want_exact(b, TYPE_PRED, scalar ? 0 : x->ty->rank, x->ty->dims);
    const Ty *t = as(b, x, x->ty->type, facts_join(x->ty->facts, y->ty->facts));
    return done(b, body_emit(b, t, "select(%s, %s, %s)", p->name, x->name, y->name));
}

static bool clamp(Body *b)
{
    Value *x = any_of(b, is_number);
    if (!x || is_complex(x->ty))
        return false;
    bool   scalar = chance(b->g, 3);
    Value *lo = want(b, x->ty->type, scalar ? 0 : x->ty->rank, x->ty->dims), *hi = want(b, x->ty->type, scalar ? 0 : x->ty->rank, x->ty->dims);
    Facts  f = facts_join(facts_join(lo->ty->facts, hi->ty->facts), x->ty->facts);
    f.vague = true;
    return done(b, body_emit(b, as(b, x, x->ty->type, f), "clamp(%s, %s, %s)", lo->name, x->name, hi->name));
}

/* Whole numbers from data. */
static bool whole(Body *b)
{
    Value *x = any_of(b, is_exact_float);
    if (!x || x->ty->facts.acc == WHOLE)
        return false;
    Type   t = x->ty->type;
    double limit = whole_limit(t) < 8 ? whole_limit(t) : 8;
    x = clamped(b, x, 1);
    Facts  f = { .acc = EXACT, .bound = limit, .nan = x->ty->facts.nan, .vague = true };
    Value *by = broadcast_scalar(b, constant_scalar(b, t, limit), x->ty);
    Value *y = body_emit(b, as(b, x, t, f), "multiply(%s, %s)", x->name, by->name);
    f.acc = WHOLE;
    return unary(b, "round-nearest-even", y, t, f);
}

static bool convert(Body *b)
{
    Value *x = any_of(b, is_convertible);
    if (!x)
        return false;
    Type from = x->ty->type, to = type_random(b->g);
    if ((type_is_complex(from) && !type_is_complex(to)) || (x->ty->facts.acc == ROUGH && !is_arith_float(to) && !type_is_complex(to)))
        return false;
    if (to == TYPE_F8E8M0FNU && x->ty->facts.vague)
        return false;
    return unary(b, "convert", x, to, facts_convert(to, from, x->ty->facts));
}

static bool reduce_precision(Body *b)
{
    Value *x = any_of(b, is_exact_float);
    if (!x)
        return false;
    Facts f = { .acc = EXACT, .bound = INFINITY, .nan = true, .vague = true };
    return done(b, body_emit(b, as(b, x, x->ty->type, f), "reduce-precision(%s), exponent_bits=%d, mantissa_bits=%d", x->name,
                        (int)between(b->g, 2, 11), (int)between(b->g, 0, 30)));
}

/* Bits become data of any value, NaN among them. */
static Facts facts_bits(const Gen *g, Type t)
{
    Facts f = facts_data(g, t);
    if (type_is_float(t) || type_is_complex(t))
        f = (Facts){ .acc = EXACT, .bound = INFINITY, .nan = true };
    return f;
}

static int bits_of(Type t)
{
    return type_bits(t) == 6 ? 8 : type_bits(t); /* six bits take eight */
}

static bool bitcast_convert(Body *b)
{
    Value *x = any_of(b, is_bare);
    Type   to = type_random(b->g);
    if (!x || to == TYPE_PRED || is_complex(x->ty) != type_is_complex(to))
        return false;
    int64_t dims[MAX_RANK + 1];
    int32_t rank = x->ty->rank;
    int     from_bits = bits_of(x->ty->type), to_bits = bits_of(to);
    if (type_bits(to) == 6 || (x->ty->facts.nan && type_bits(x->ty->type) < 8))
        return false;
    memcpy(dims, x->ty->dims, sizeof x->ty->dims);
    if (from_bits > to_bits) {
        if (rank == MAX_RANK || b->scope == SCOPE_SCALAR || ty_count(x->ty) * (from_bits / to_bits) > MAX_COUNT)
            return false;
        dims[rank++] = from_bits / to_bits;
    } else if (from_bits < to_bits && (rank == 0 || dims[--rank] != to_bits / from_bits))
        return false;
    return done(b, body_emit(b, ty_array(b->g, to, rank, dims, facts_bits(b->g, to)), "bitcast-convert(%s)", x->name));
}

/* ---- movement ---- */

static bool iota(Body *b)
{
    Ints dims = dims_random(b->g);
    Type t = type_random(b->g);
    if (dims.n == 0 || t == TYPE_PRED || t == TYPE_F8E8M0FNU)
        return false;
    int32_t k = (int32_t)below(b->g, (size_t)dims.n);
    Facts   f = facts_convert(t, TYPE_S64, facts_whole((double)dims.v[k]));
    return done(b, body_emit(b, ty_array(b->g, t, dims.n, dims.v, f), "iota(), iota_dimension=%d", k));
}

static bool constant(Body *b)
{
    Type      t = type_random(b->g);
    const Ty *ty = ty_random(b->g, t);
    if (b->scope == SCOPE_SCALAR)
        ty = ty_array(b->g, t, 0, NULL, ty->facts);
    if (ty_count(ty) > 60 && !chance(b->g, 6))
        return false;
    constant_random(b, ty);
    return true;
}

static bool broadcast(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_array(b);
    int64_t dims[MAX_RANK], at[MAX_RANK], count = 1;
    int32_t rank = x->ty->rank + (int32_t)below(g, (size_t)(MAX_RANK - x->ty->rank) + 1), next = 0;
    for (int32_t k = 0; k < rank; k++) {
        bool taken = next < x->ty->rank && (rank - k == x->ty->rank - next || chance(g, 2));
        dims[k] = taken ? x->ty->dims[next] : between(g, 1, 4);
        if (taken)
            at[next++] = k;
        count *= dims[k];
    }
    if (count > MAX_COUNT)
        return false;
    const Ty *t = ty_array(g, x->ty->type, rank, dims, x->ty->facts);
    return done(b, body_emit(b, t, "broadcast(%s), %s", x->name, ints_text(g, "dimensions=", x->ty->rank, at)));
}

/* Other dimensions of the same count: some joined, some split, ones put in. */
static Ints same_count(Gen *g, const Ty *t)
{
    int64_t *dims = ARENA_ARRAY(g->a, int64_t, MAX_RANK);
    int32_t  n = 0;
    for (int32_t k = 0; k < t->rank; k++) {
        int64_t d = t->dims[k];
        int64_t by = d % 3 == 0 && d > 3 ? 3 : d % 2 == 0 && d > 2 ? 2 : 1;
        if (n > 0 && chance(g, 2))
            dims[n - 1] *= d;
        else if (by > 1 && n + (t->rank - k) < MAX_RANK && chance(g, 2)) {
            dims[n++] = by;
            dims[n++] = d / by;
        } else if (d != 1 || chance(g, 2))
            dims[n++] = d;
        if (n + (t->rank - k) < MAX_RANK && chance(g, 5))
            dims[n++] = 1;
    }
    return (Ints){ dims, n };
}

static bool reshape(Body *b)
{
    Value *x = any_array(b);
    Ints   dims = same_count(b->g, x->ty);
    return done(b, body_emit(b, ty_array(b->g, x->ty->type, dims.n, dims.v, x->ty->facts), "reshape(%s)", x->name));
}

/* Of a value in row-major order to another one: a reshape. */
static bool bitcast(Body *b)
{
    bool layouts = b->g->layouts;
    b->g->layouts = false;
    Value    *x = any_array(b);
    Ints      dims = same_count(b->g, x->ty);
    Ty       *from = ty_array(b->g, x->ty->type, x->ty->rank, x->ty->dims, x->ty->facts);
    const Ty *to = ty_array(b->g, x->ty->type, dims.n, dims.v, x->ty->facts);
    b->g->layouts = layouts;
    Value *y = body_emit(b, from, "copy(%s)", x->name);
    return done(b, body_emit(b, to, "bitcast(%s)", y->name));
}

static bool copy(Body *b)
{
    Value *x = any_array(b);
    return done(b, body_emit(b, ty_array(b->g, x->ty->type, x->ty->rank, x->ty->dims, x->ty->facts), "copy(%s)", x->name));
}

static bool transpose(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t perm[MAX_RANK], dims[MAX_RANK];
    if (!x)
        return false;
    int32_t rank = x->ty->rank;
    for (int32_t k = 0; k < rank; k++)
        perm[k] = k;
    for (int32_t k = rank - 1; k > 0; k--) {
        size_t  other = below(b->g, (size_t)k + 1);
        int64_t kept = perm[k];
        perm[k] = perm[other];
        perm[other] = kept;
    }
    for (int32_t k = 0; k < rank; k++)
        dims[k] = x->ty->dims[perm[k]];
    const Ty *t = ty_array(b->g, x->ty->type, rank, dims, x->ty->facts);
    return done(b, body_emit(b, t, "transpose(%s), %s", x->name, ints_text(b->g, "dimensions=", rank, perm)));
}

static bool slice(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK];
    Buf     text = { 0 };
    if (!x)
        return false;
    for (int32_t k = 0; k < x->ty->rank; k++) {
        int64_t d = x->ty->dims[k], whole_dim = chance(b->g, 2);
        int64_t start = whole_dim ? 0 : between(b->g, 0, d > 0 ? d - 1 : 0);
        int64_t limit = whole_dim ? d : chance(b->g, 30) ? start : between(b->g, d > start ? start + 1 : start, d);
        int64_t stride = chance(b->g, 3) ? between(b->g, 2, 3) : 1;
        dims[k] = (limit - start + stride - 1) / stride;
        buf_printf(&text, "%s[%lld:%lld", k ? ", " : "", (long long)start, (long long)limit);
        buf_printf(&text, stride > 1 ? ":%lld]" : "]", (long long)stride);
    }
    const Ty *t = ty_array(b->g, x->ty->type, x->ty->rank, dims, x->ty->facts);
    Value    *v = body_emit(b, t, "slice(%s), slice={%s}", x->name, text.p);
    buf_free(&text);
    return done(b, v);
}

static bool pad(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK], count = 1;
    Buf     text = { 0 };
    if (!x)
        return false;
    Value *with = want(b, x->ty->type, 0, NULL);
    for (int32_t k = 0; k < x->ty->rank; k++) {
        int64_t d = x->ty->dims[k], between_each = chance(g, 4) ? between(g, 1, 2) : 0;
        int64_t spread = d > 0 ? d + (d - 1) * between_each : 0, lo = chance(g, 2) ? 0 : between(g, -2, 3), hi = chance(g, 2) ? 0 : between(g, -2, 3);
        if (spread + lo + hi < 0)
            lo = hi = 0;
        dims[k] = spread + lo + hi;
        count *= dims[k];
        buf_printf(&text, "%s%lld_%lld", k ? "x" : "", (long long)lo, (long long)hi);
        if (between_each)
            buf_printf(&text, "_%lld", (long long)between_each);
    }
    const Ty *t = ty_array(g, x->ty->type, x->ty->rank, dims, facts_join(x->ty->facts, with->ty->facts));
    Value    *v = count > MAX_COUNT ? NULL : body_emit(b, t, "pad(%s, %s), padding=%s", x->name, with->name, text.p);
    buf_free(&text);
    return v && done(b, v);
}

static bool concatenate(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK];
    Buf     text = { 0 };
    if (!x)
        return false;
    int32_t k = (int32_t)below(b->g, (size_t)x->ty->rank), n = (int32_t)between(b->g, 1, 3);
    Facts   f = x->ty->facts;
    memcpy(dims, x->ty->dims, sizeof dims);
    buf_puts(&text, x->name);
    for (int32_t e = 1; e < n && ty_count(x->ty) * (e + 1) <= MAX_COUNT; e++) {
        Value *y = want(b, x->ty->type, x->ty->rank, x->ty->dims);
        buf_printf(&text, ", %s", y->name);
        f = facts_join(f, y->ty->facts);
        dims[k] += x->ty->dims[k];
    }
    Value *v = body_emit(b, ty_array(b->g, x->ty->type, x->ty->rank, dims, f), "concatenate(%s), dimensions={%d}", text.p, k);
    buf_free(&text);
    return done(b, v);
}

static bool reverse(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK];
    int32_t n = 0;
    for (int32_t k = 0; x && k < x->ty->rank; k++)
        if (chance(b->g, 2))
            dims[n++] = k;
    return x && done(b, body_emit(b, as(b, x, x->ty->type, x->ty->facts), "reverse(%s), %s", x->name, ints_text(b->g, "dimensions=", n, dims)));
}

/* ", %i, %j": one index a dimension, all of one type; any number, since they are clamped. */
static char *indices(Body *b, int32_t rank)
{
    static const Type types[] = { TYPE_S32, TYPE_S32, TYPE_S64, TYPE_U8, TYPE_U32, TYPE_S8 };
    Type              t = types[below(b->g, 6)];
    Buf               text = { 0 };
    buf_puts(&text, "");
    for (int32_t k = 0; k < rank; k++)
        buf_printf(&text, ", %s", chance(b->g, 2) ? constant_scalar(b, t, (double)between(b->g, 0, 4))->name : want_exact(b, t, 0, NULL)->name);
    char *s = arena_strndup(b->g->a, text.p ? text.p : "", text.n);
    buf_free(&text);
    return s;
}

static void smaller_dims(Gen *g, const Ty *t, int64_t *dims)
{
    for (int32_t k = 0; k < t->rank; k++)
        dims[k] = chance(g, 3) ? t->dims[k] : t->dims[k] > 0 ? between(g, 1, t->dims[k]) : 0;
}

static bool dynamic_slice(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK];
    if (!x)
        return false;
    smaller_dims(b->g, x->ty, dims);
    char     *at = indices(b, x->ty->rank);
    const Ty *t = ty_array(b->g, x->ty->type, x->ty->rank, dims, x->ty->facts);
    return done(b, body_emit(b, t, "dynamic-slice(%s%s), %s", x->name, at, ints_text(b->g, "dynamic_slice_sizes=", x->ty->rank, dims)));
}

static bool dynamic_update_slice(Body *b)
{
    Value  *x = any_of(b, has_rank);
    int64_t dims[MAX_RANK];
    if (!x)
        return false;
    smaller_dims(b->g, x->ty, dims);
    Value *u = want(b, x->ty->type, x->ty->rank, dims);
    char  *at = indices(b, x->ty->rank);
    Facts  f = facts_join(x->ty->facts, u->ty->facts);
    return done(b, body_emit(b, as(b, x, x->ty->type, f), "dynamic-update-slice(%s, %s%s)", x->name, u->name, at));
}

/* indices [n, m] (m the mapped dimensions) or [n]; the mapped dimensions collapse or are kept as windows. */
static bool gather(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_of(b, has_rank);
    int64_t map[MAX_RANK], collapsed[MAX_RANK], offset[MAX_RANK], sizes[MAX_RANK], dims[MAX_RANK + 1], window[MAX_RANK], index_dims[2];
    int32_t n_map = 0, n_collapsed = 0, n_window = 0;
    if (!x || x->ty->rank >= MAX_RANK)
        return false;
    for (int32_t k = 0; k < x->ty->rank; k++) {
        bool mapped = chance(g, 2), gone = mapped && x->ty->dims[k] > 0 && chance(g, 2);
        sizes[k] = gone ? 1 : mapped && x->ty->dims[k] > 0 ? between(g, 1, x->ty->dims[k]) : x->ty->dims[k];
        if (mapped)
            map[n_map++] = k;
        if (gone)
            collapsed[n_collapsed++] = k;
        else
            window[n_window++] = sizes[k];
    }
    index_dims[0] = between(g, 1, 5);
    index_dims[1] = n_map;
    bool    flat = n_map == 1 && chance(g, 2), first = chance(g, 2);
    int64_t count = index_dims[0];
    dims[first ? 0 : n_window] = index_dims[0];
    for (int32_t k = 0; k < n_window; k++) {
        offset[k] = first ? k + 1 : k;
        dims[offset[k]] = window[k];
        count *= window[k];
    }
    if (n_map == 0 || count > MAX_COUNT)
        return false;
    Value    *at = want_exact(b, chance(g, 3) ? TYPE_S64 : TYPE_S32, flat ? 1 : 2, index_dims);
    const Ty *t = ty_array(g, x->ty->type, n_window + 1, dims, x->ty->facts);
    return done(b, body_emit(b, t, "gather(%s, %s), %s, %s, %s, index_vector_dim=1, %s", x->name, at->name, ints_text(g, "offset_dims=", n_window, offset),
                        ints_text(g, "collapsed_slice_dims=", n_collapsed, collapsed), ints_text(g, "start_index_map=", n_map, map),
                        ints_text(g, "slice_sizes=", x->ty->rank, sizes)));
}

/* ---- contractions ---- */

static int64_t terms(const Ty *t, int32_t n, const int64_t *dims)
{
    int64_t count = 1;
    for (int32_t k = 0; k < n; k++)
        count *= t->dims[dims[k]];
    return count;
}

/* [batch, free..., contracted] in any order on both sides. */
static bool dot(Body *b)
{
    Gen    *g = b->g;
    Value  *x = any_of(b, is_number);
    int64_t dims[MAX_RANK], rhs[MAX_RANK], free_dims = 0;
    int64_t lb[MAX_RANK], lc[MAX_RANK], rb[MAX_RANK], rc[MAX_RANK], count = 1;
    int32_t nb = 0, nc = 0, n = 0, nr = 0;
    if (!x || type_bits(x->ty->type) < 8 || (type_is_float(x->ty->type) && type_bits(x->ty->type) < 16))
        return false;
    for (int32_t k = 0; k < x->ty->rank; k++) {
        if (chance(g, 5)) {
            lb[nb] = k;
            rb[nb++] = nr;
            rhs[nr++] = x->ty->dims[k];
        } else if (chance(g, 2)) {
            lc[nc] = k;
            rc[nc++] = nr;
            rhs[nr++] = x->ty->dims[k];
        } else
            free_dims++;
    }
    for (int32_t k = 0; k < nb; k++)
        dims[n++] = x->ty->dims[lb[k]];
    for (int32_t k = 0; k < x->ty->rank; k++) {
        bool used = false;
        for (int32_t e = 0; e < nb || e < nc; e++)
            used |= (e < nb && lb[e] == k) || (e < nc && lc[e] == k);
        if (!used)
            dims[n++] = x->ty->dims[k];
    }
    if (nr < MAX_RANK && n < MAX_RANK && chance(g, 2)) {
        rhs[nr++] = between(g, 1, 5);
        dims[n++] = rhs[nr - 1];
    }
    for (int32_t k = 0; k < n; k++)
        count *= dims[k];
    Type   t = x->ty->type, to = t;
    Value *y = want(b, t, nr, rhs);
    if (chance(g, 4)) /* the result may be wider */
        to = t == TYPE_BF16 || t == TYPE_F16 ? TYPE_F32 : t == TYPE_S8 ? TYPE_S32 : t == TYPE_F32 ? TYPE_F64 : t;
    Facts  f = facts_sum(to, facts_mul(to, x->ty->facts, y->ty->facts), (double)terms(x->ty, nc, lc) + 1);
    if (count > MAX_COUNT || y->ty->facts.nan != x->ty->facts.nan)
        return false;
    return done(b, body_emit(b, ty_array(g, to, n, dims, f), "dot(%s, %s), %s, %s, %s, %s", x->name, y->name, ints_text(g, "lhs_batch_dims=", nb, lb),
                        ints_text(g, "lhs_contracting_dims=", nc, lc), ints_text(g, "rhs_batch_dims=", nb, rb),
                        ints_text(g, "rhs_contracting_dims=", nc, rc)));
}

/* [N, W, I] with [w, I, O]. */
static bool convolution(Body *b)
{
    Gen    *g = b->g;
    Type    t = chance(g, 3) ? type_random(g) : TYPE_F32;
    int64_t in[3] = { between(g, 1, 2), between(g, 1, 7), between(g, 1, 3) }, kernel[3] = { between(g, 1, 3), in[2], between(g, 1, 4) };
    int64_t lo = between(g, -1, 2), hi = between(g, -1, 2), stride = between(g, 1, 2), base = between(g, 1, 2), inner = between(g, 1, 2);
    int64_t padded = lo + (in[1] - 1) * base + 1 + hi, size = (kernel[0] - 1) * inner + 1;
    if (!is_arith_float(t) || type_bits(t) < 16)
        return false;
    int64_t out[3] = { in[0], padded < size ? 0 : (padded - size) / stride + 1, kernel[2] };
    if (padded < 0)
        return false;
    Value *x = want(b, t, 3, in), *k = want(b, t, 3, kernel);
    Facts  f = facts_sum(t, facts_mul(t, x->ty->facts, k->ty->facts), (double)(kernel[0] * kernel[1]) + 1);
    return done(b, body_emit(b, ty_array(g, t, 3, out, f),
                        "convolution(%s, %s), window={size=%lld stride=%lld pad=%lld_%lld lhs_dilate=%lld rhs_dilate=%lld%s}, dim_labels=b0f_0io->b0f",
                        x->name, k->name, (long long)kernel[0], (long long)stride, (long long)lo, (long long)hi, (long long)base,
                        (long long)inner, chance(g, 3) ? " rhs_reversal=1" : ""));
}

/* ---- tuples ---- */

static bool is_tuple(const Ty *t)
{
    return t->type == TYPE_TUPLE;
}

static bool tuple(Body *b)
{
    Value  *v[4];
    int32_t n = (int32_t)below(b->g, 5);
    for (int32_t k = 0; k < n; k++)
        v[k] = chance(b->g, 4) && b->values.n ? b->values.v[below(b->g, (size_t)b->values.n)] : any_array(b);
    return done(b, tuple_of(b, n, v));
}

static bool get_tuple_element(Body *b)
{
    Value *x = any_of(b, is_tuple);
    return x && x->ty->n > 0 && done(b, element_of(b, x, (int32_t)below(b->g, (size_t)x->ty->n)));
}

static bool barrier(Body *b)
{
    Value *x = chance(b->g, 2) ? any_of(b, is_tuple) : any_array(b);
    return x && done(b, body_emit(b, x->ty, "opt-barrier(%s)", x->name));
}

const RandomOp random_ops[] = {
    { int_unary, 2, SCOPE_SCALAR },       { int_binary, 6, SCOPE_SCALAR },
    { float_unary, 3, SCOPE_SCALAR },     { float_test, 1, SCOPE_SCALAR },
    { function, 2, SCOPE_SCALAR },        { positive_function, 1, SCOPE_SCALAR },
    { float_binary, 6, SCOPE_SCALAR },    { float_choice, 2, SCOPE_SCALAR },
    { divide, 1, SCOPE_SCALAR },          { complex_op, 2, SCOPE_SCALAR },
    { make_complex, 1, SCOPE_SCALAR },    { compare, 3, SCOPE_SCALAR },
    { select_op, 3, SCOPE_SCALAR },       { clamp, 1, SCOPE_SCALAR },
    { whole, 2, SCOPE_SCALAR },           { convert, 4, SCOPE_SCALAR },
    { reduce_precision, 1, SCOPE_SCALAR }, { bitcast_convert, 2, SCOPE_SCALAR },
    { constant, 2, SCOPE_SCALAR },        { copy, 1, SCOPE_SCALAR },
    { iota, 2, SCOPE_FUSION },            { broadcast, 4, SCOPE_FUSION },
    { reshape, 3, SCOPE_FUSION },         { bitcast, 1, SCOPE_FUSION },
    { transpose, 3, SCOPE_FUSION },       { slice, 3, SCOPE_FUSION },
    { pad, 2, SCOPE_FUSION },             { concatenate, 3, SCOPE_FUSION },
    { reverse, 2, SCOPE_FUSION },         { dynamic_slice, 3, SCOPE_FUSION },
    { dynamic_update_slice, 3, SCOPE_FUSION }, { gather, 2, SCOPE_FUSION },
    { dot, 3, SCOPE_ANY },                { convolution, 1, SCOPE_ANY },
    { tuple, 1, SCOPE_ANY },              { get_tuple_element, 3, SCOPE_ANY },
    { barrier, 1, SCOPE_ANY },
};
const int32_t random_op_count = (int32_t)(sizeof random_ops / sizeof *random_ops);
