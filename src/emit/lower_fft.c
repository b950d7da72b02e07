/* fft over the last dimensions, line by line in working memory, real and imaginary parts apart so that loops vectorise. It is of f32 when all that
 * comes in and goes out is, and of f64 under Bluestein, whose chirp needs more digits.
 *
 * A length whose prime factors are small is transformed in stages, one a factor p, from one line buffer to the other (m: product of the
 * factors done, s = n / (m p), w = e^(-+2 pi i / n)):
 *
 *   b[(k + m r) s + q] = sum over t < p of (w^(t k s) a[(k p + t) s + q]) e^(-+2 pi i t r / p)         k < m, r < p, q < s
 *
 * which ends in the right order. Along other axes than the last one several lines lie side by side and are transformed at once: s counts q of all of them.
 * The loops over q get shorter from stage to stage: odd factors come first, and the last one, whose loop is over k, is
 * a 4 where n has one, because vectors are taken apart by fours in few instructions. Any other length is a convolution with a chirp (Bluestein), of the next power of two above 2 n - 1:
 *
 *   c[j] = e^(-+pi i j^2 / n)        X[k] = c[k] * sum over j of (x[j] c[j]) conj(c[k - j])
 *
 * A real line of even length l is transformed as l/2 complex numbers z[j] = x[2 j] + i x[2 j + 1]: with h = l / 2, v = e^(-2 pi i / l)
 *
 *   X[k] = (Z[k] + conj Z[h - k]) / 2 + v^k (Z[k] - conj Z[h - k]) / 2i            X[0] = Re Z[0] + Im Z[0], X[h] = Re Z[0] - Im Z[0]
 *
 * IRFFT reads neither the imaginary part of X[0] nor that of X[l/2]: they cannot reach a real result.
 *
 * For many threads all lines of an axis lie behind each other in working memory, and each step, as a stage is one, is a nest of its own over all of them, whose iterations are apart. */
#include "emit/lower.h"

#include <math.h>

enum { ROLE_BATCH = 80, ROLE_PASS = 81, MAX_AXES = 3, MAX_FACTOR = 13, MAX_TABLE = 32, WIDTH = 16 /* lines at once, half of it of long ones */, LONG = 4096, MOST_APART = 1 << 28 /* bytes of lines */ };

typedef struct Z { const KExpr *re, *im; } Z;
typedef struct Line { KArray *re, *im; } Line;

typedef struct Length {
    int64_t n, padded; /* padded: n, or the length that Bluestein transforms */
    bool    inverse;   /* sign of what stages do: false under Bluestein, where the chirp has it */
    Line    roots;     /* of padded */
    Line    last[MAX_FACTOR + 1]; /* of the last stage: w^(t k) for t > 1, by k */
    Line    chirp, filter; /* Bluestein: c; the transform of conj c over padded */
} Length;

typedef struct Fft {
    const Inst *x;
    KArray     *to;
    Type        type;                /* of lines */
    Word        kind;
    bool        inverse;
    int32_t     axes;
    int64_t     grid_dims[MAX_AXES]; /* between axes: of the half spectrum for RFFT and IRFFT */
    Length      lengths[MAX_AXES];
    Line        line[2], grid;
    /* the pass */
    int32_t     axis;
    int64_t     width;               /* lines at once, and the first of them */
    const Ix   *column;
    bool        pairs;               /* lines along the last axis are pairs of real numbers */
    Line        twist;               /* v^k */
    bool        from_operand, to_result;
    const Ix *const *batch;
    const Ix   *at[MAX_AXES];
    bool        apart;               /* each step goes through all lines, */
    int32_t     n_open;              /* for which so many loops are open */
} Fft;

static const KExpr *number(Arena *a, Type t, double v) { return kx_float(a, t, v); }
static const KExpr *add(Arena *a, const KExpr *x, const KExpr *y) { return kx_binary(a, KOP_ADD, x->type, x, y); }
static const KExpr *sub(Arena *a, const KExpr *x, const KExpr *y) { return kx_binary(a, KOP_SUB, x->type, x, y); }
static const KExpr *mul(Arena *a, const KExpr *x, const KExpr *y) { return kx_binary(a, KOP_MUL, x->type, x, y); }
static const KExpr *neg(Arena *a, const KExpr *x) { return kx_unary(a, KOP_NEG, x->type, x); }

static Z z_add(Arena *a, Z x, Z y) { return (Z){ add(a, x.re, y.re), add(a, x.im, y.im) }; }
static Z z_sub(Arena *a, Z x, Z y) { return (Z){ sub(a, x.re, y.re), sub(a, x.im, y.im) }; }

static Z z_mul(Arena *a, Z x, Z y)
{
    return (Z){ sub(a, mul(a, x.re, y.re), mul(a, x.im, y.im)), add(a, mul(a, x.re, y.im), mul(a, x.im, y.re)) };
}

/* i * x, or -i * x */
static Z z_turn(Arena *a, Z x, bool forward)
{
    return forward ? (Z){ x.im, neg(a, x.re) } : (Z){ neg(a, x.im), x.re };
}

static Z z_bind(Lower *L, Z x, const char *name)
{
    Arena *a = L->arena;
    return (Z){ bind(L, x.re, arena_printf(a, "%s_re", name)), bind(L, x.im, arena_printf(a, "%s_im", name)) };
}

static Z line_load(Lower *L, Line x, const Ix *at) { return (Z){ load_current(L, x.re, at), load_current(L, x.im, at) }; }

static void line_store(Lower *L, Line x, const Ix *at, Z v)
{
    store(L, x.re, at, v.re);
    store(L, x.im, at, v.im);
}

static Line line_swapped(Line x) { return (Line){ x.im, x.re }; }

static Line new_line(Lower *L, Type t, int64_t n, const char *name)
{
    const Shape *s = shape_array(L->arena, t, 1, &n);
    Line         x = { stage_array(L, s, arena_printf(L->arena, "%s_re", name)), NULL };
    x.im = stage_array(L, s, arena_printf(L->arena, "%s_im", name));
    return x;
}

/* e^(-+2 pi i k / n), exact at quarter turns; 0 <= k < n. */
static void root_of_unity(int64_t k, int64_t n, bool inverse, double *re, double *im)
{
    static const long double half_pi = 1.57079632679489661923132169163975L;
    int64_t     quarter = 4 * k / n;
    long double angle = half_pi * ((long double)(4 * k - quarter * n) / (long double)n);
    double      c = (double)cosl(angle), s = (double)sinl(angle);
    *re = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    *im = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    if (!inverse)
        *im = *im == 0 ? 0 : -*im;
}

static KArray *table(Lower *L, Literal *l, const char *name)
{
    KArray *x = ARENA_NEW(L->arena, KArray);
    *x = (KArray){ .kind = KARRAY_CONST, .type = TYPE_F64, .name = name, .count = l->count, .literal = literal_keep(L->arena, l), .serial = L->arrays.n };
    vec_push(L->arena, &L->arrays, x);
    return x;
}

/* Static tables of e^(-+2 pi i k step / n), k < count. */
static Line root_table(Lower *L, int64_t count, int64_t step, int64_t n, bool inverse, const char *name)
{
    Literal *re = literal_new(TYPE_F64, 1, &count), *im = literal_new(TYPE_F64, 1, &count);
    for (int64_t k = 0; k < count; k++) {
        double c, s;
        root_of_unity(k * step % n, n, inverse, &c, &s);
        literal_set_f64(re, k, c, 0);
        literal_set_f64(im, k, s, 0);
    }
    return (Line){ table(L, re, arena_printf(L->arena, "%s_re", name)), table(L, im, arena_printf(L->arena, "%s_im", name)) };
}

/* All roots, or more: short lengths in a table, long ones as products of two of about sqrt(n) each, in f64: w^(h B + l) = w^(h B) w^l. */
static Line roots_of_unity(Lower *L, Type t, int64_t n, bool inverse)
{
    if (n <= MAX_TABLE && t == TYPE_F64)
        return root_table(L, n, 1, n, inverse, "root");
    int64_t width = 1;
    while (width * width < n)
        width *= 2;
    int64_t   rows = (n + width - 1) / width;
    Line      roots = new_line(L, t, rows * width, "root"), coarse = root_table(L, rows, width, n, inverse, "coarse");
    Line      fine = root_table(L, width, 1, n, inverse, "fine");
    const Ix *h = ix_of(&L->ix, loop_open(L, 0, rows, NULL, 1)), *l = ix_of(&L->ix, loop_open(L, 0, width, NULL, 1));
    Z product = z_mul(L->arena, line_load(L, coarse, h), line_load(L, fine, l));
    line_store(L, roots, ix_add(&L->ix, ix_times(&L->ix, h, width), l), (Z){ kx_cast(L->arena, t, product.re), kx_cast(L->arena, t, product.im) });
    block_close(L);
    block_close(L);
    return roots;
}

/* The next factor of n: the smallest odd prime, a 2 that leaves fours, 4. */
static int64_t next_factor(int64_t n)
{
    int64_t odd = n;
    while (odd % 2 == 0)
        odd /= 2;
    for (int64_t p = 3; p * p <= odd; p += 2)
        if (odd % p == 0)
            return p;
    if (odd > 1)
        return odd;
    return __builtin_ctzll((uint64_t)n) % 2 ? 2 : 4;
}

/* Those of the last stage again, side by side. */
static void last_roots(Lower *L, Type type, Length *n)
{
    int64_t p = n->padded, m;
    while (next_factor(p) < p)
        p /= next_factor(p);
    m = n->padded / p;
    for (int64_t t = 2; t < p && p <= MAX_FACTOR && m > 1; t++) {
        n->last[t] = new_line(L, type, m, "turn");
        const Ix *k = ix_of(&L->ix, loop_open(L, 0, m, NULL, 1));
        line_store(L, n->last[t], k, line_load(L, n->roots, ix_times(&L->ix, k, t)));
        block_close(L);
    }
}

/* out[r] = sum over t of z[t] e^(-+2 pi i t r / p), p odd: pairs t and p - t share their products. */
static void odd_butterfly(Lower *L, int64_t p, const Z *z, bool inverse, Z *out)
{
    Arena *a = L->arena;
    Z      even[MAX_FACTOR], odd[MAX_FACTOR];
    out[0] = z[0];
    for (int64_t t = 1; t <= p / 2; t++) {
        even[t] = z_bind(L, z_add(a, z[t], z[p - t]), "even");
        odd[t] = z_bind(L, z_sub(a, z[t], z[p - t]), "odd");
        out[0] = z_add(a, out[0], even[t]);
    }
    for (int64_t r = 1; r <= p / 2; r++) {
        Z x = z[0], y = { NULL, NULL };
        for (int64_t t = 1; t <= p / 2; t++) {
            double c, s;
            root_of_unity(t * r % p, p, true, &c, &s);
            Z by_sine = { mul(a, number(a, odd[t].re->type, s), odd[t].re), mul(a, number(a, odd[t].im->type, s), odd[t].im) };
            x = z_add(a, x, (Z){ mul(a, number(a, even[t].re->type, c), even[t].re), mul(a, number(a, even[t].im->type, c), even[t].im) });
            y = y.re ? z_add(a, y, by_sine) : by_sine;
        }
        x = z_bind(L, x, "x");
        y = z_bind(L, y, "y");
        Z plus = { sub(a, x.re, y.im), add(a, x.im, y.re) }, minus = { add(a, x.re, y.im), sub(a, x.im, y.re) }; /* x + i y, x - i y */
        out[inverse ? r : p - r] = plus;
        out[inverse ? p - r : r] = minus;
    }
}

static void butterfly(Lower *L, int64_t p, const Z *z, bool inverse, Z *out)
{
    Arena *a = L->arena;
    if (p == 2) {
        out[0] = z_add(a, z[0], z[1]);
        out[1] = z_sub(a, z[0], z[1]);
    } else if (p == 4) {
        Z s = z_bind(L, z_add(a, z[0], z[2]), "s"), d = z_bind(L, z_sub(a, z[0], z[2]), "d");
        Z u = z_bind(L, z_add(a, z[1], z[3]), "u"), v = z_bind(L, z_turn(a, z_sub(a, z[1], z[3]), !inverse), "v");
        out[0] = z_add(a, s, u);
        out[1] = z_add(a, d, v);
        out[2] = z_sub(a, s, u);
        out[3] = z_sub(a, d, v);
    } else
        odd_butterfly(L, p, z, inverse, out);
}

static const Ix *loop_over(Lower *L, Fft *f, int64_t n)
{
    f->n_open++;
    return ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
}

/* Goes to each line of the axis; where it begins. What a step does for a single one is in a loop, too: so it stays behind the step before. */
static const Ix *lines_open(Lower *L, Fft *f)
{
    const Shape  *s = f->x->shape;
    const int32_t n = s->rank - f->axes;
    const Ix    **at = ARENA_ARRAY(L->arena, const Ix *, n), *line = ix_const(&L->ix, 0);
    if (!f->apart)
        return line;
    for (int32_t d = 0; d < n; d++) {
        at[d] = loop_over(L, f, s->dims[d]);
        line = ix_add(&L->ix, ix_times(&L->ix, line, s->dims[d]), at[d]);
    }
    f->batch = at;
    if (n == 0 && f->axes == 1)
        line = loop_over(L, f, 1);
    for (int32_t k = 0; k < f->axes; k++)
        if (k != f->axis) {
            f->at[k] = loop_over(L, f, f->grid_dims[k]);
            line = ix_add(&L->ix, ix_times(&L->ix, line, f->grid_dims[k]), f->at[k]);
        }
    return ix_times(&L->ix, line, f->lengths[f->axis].padded);
}

static void lines_close(Lower *L, Fft *f)
{
    for (; f->n_open > 0; f->n_open--)
        block_close(L);
}

/* One stage, from a to b, which hold width lines. */
static void stage_factor(Lower *L, Fft *f, const Length *n, int64_t m, int64_t p, int64_t width, Line a, Line b)
{
    int64_t   turn = n->padded / (m * p), s = turn * width;
    IxCtx    *cx = &L->ix;
    const Ix *line = lines_open(L, f);
    const Ix *k = m > 1 ? ix_of(cx, loop_open(L, 0, m, NULL, 1)) : ix_const(cx, 0);
    Z         w[MAX_FACTOR + 1], z[MAX_FACTOR + 1] = { { NULL, NULL } }, out[MAX_FACTOR + 1];
    for (int64_t t = 1; t < p && m > 1; t++)
        w[t] = z_bind(L, n->last[t].re && s == 1 ? line_load(L, n->last[t], k) : line_load(L, n->roots, ix_times(cx, k, t * turn)), "w");
    const Ix *q = ix_add(cx, line, s > 1 ? ix_of(cx, loop_open(L, 0, s, NULL, 1)) : ix_const(cx, 0));
    for (int64_t t = 0; t < p; t++) {
        const Ix *from = ix_add(cx, ix_add(cx, ix_times(cx, k, p * s), q), ix_const(cx, t * s));
        z[t] = z_bind(L, line_load(L, a, from), "a");
        if (m > 1 && t > 0)
            z[t] = z_bind(L, z_mul(L->arena, z[t], w[t]), "z");
    }
    butterfly(L, p, z, n->inverse, out);
    for (int64_t r = 0; r < p; r++)
        line_store(L, b, ix_add(cx, ix_add(cx, ix_times(cx, k, s), q), ix_const(cx, m * r * s)), out[r]);
    if (s > 1)
        block_close(L);
    if (m > 1)
        block_close(L);
    lines_close(L, f);
}

/* Transforms *a; the result is in *a, the other line in *b. */
static void stages(Lower *L, Fft *f, const Length *n, int64_t width, Line *a, Line *b)
{
    for (int64_t m = 1, p; m < n->padded; m *= p) {
        p = next_factor(n->padded / m);
        stage_factor(L, f, n, m, p, width, *a, *b);
        Line swap = *a;
        *a = *b;
        *b = swap;
    }
}

static bool has_large_factor(int64_t n)
{
    for (; n > 1; n /= next_factor(n))
        if (next_factor(n) > MAX_FACTOR)
            return true;
    return false;
}

/* x[j] *= y[j], 0 <= j < n */
static void multiply_line(Lower *L, Fft *f, Line x, Line y, int64_t n)
{
    const Ix *line = lines_open(L, f), *j = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1)), *place = ix_add(&L->ix, line, j);
    Z         v = z_bind(L, line_load(L, x, place), "a");
    line_store(L, x, place, z_mul(L->arena, v, line_load(L, y, j)));
    block_close(L);
    lines_close(L, f);
}

static void clear_line(Lower *L, Fft *f, Line x, int64_t from, int64_t end)
{
    const Ix *line = lines_open(L, f), *j = ix_of(&L->ix, loop_open(L, from, end, NULL, 1));
    line_store(L, x, ix_add(&L->ix, line, j), (Z){ number(L->arena, x.re->type, 0), number(L->arena, x.re->type, 0) });
    block_close(L);
    lines_close(L, f);
}

/* c[j] = e^(-+pi i j^2 / n), the angle of j^2 modulo 2 n. */
static void make_chirp(Lower *L, const Length *n, bool inverse)
{
    Arena       *a = L->arena;
    const Ix    *j = ix_of(&L->ix, loop_open(L, 0, n->n, NULL, 1));
    const KExpr *square = kx_binary(a, KOP_MUL, TYPE_S64, kx_index(a, j), kx_index(a, j));
    const KExpr *turns = kx_cast(a, TYPE_F64, kx_binary(a, KOP_REM, TYPE_S64, square, kx_int(a, TYPE_S64, 2 * n->n)));
    const KExpr *angle = bind(L, mul(a, turns, number(a, TYPE_F64, 3.14159265358979323846 / (double)n->n)), "angle");
    const KExpr *sine = kx_call(a, "sin", TYPE_F64, 1, &angle);
    line_store(L, n->chirp, j, (Z){ kx_call(a, "cos", TYPE_F64, 1, &angle), inverse ? sine : neg(a, sine) });
    block_close(L);
}

/* conj c[j] / padded */
static Z filter_value(Lower *L, const Length *n, const Ix *j)
{
    Arena       *a = L->arena;
    const KExpr *scale = number(a, TYPE_F64, 1.0 / (double)n->padded);
    Z            c = line_load(L, n->chirp, j);
    return z_bind(L, (Z){ mul(a, c.re, scale), mul(a, c.im, neg(a, scale)) }, "c");
}

/* The filter: that of |j|, around 0, transformed. */
static void make_filter(Lower *L, Fft *f, const Length *n)
{
    Line         x = f->line[0], other = f->line[1];
    const bool   apart = f->apart;
    f->apart = false; /* there is one */
    clear_line(L, f, x, 0, n->padded);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, n->n, NULL, 1));
    line_store(L, x, j, filter_value(L, n, j));
    block_close(L);
    const Ix *k = ix_of(&L->ix, loop_open(L, 1, n->n, NULL, 1));
    line_store(L, x, ix_plus(&L->ix, ix_times(&L->ix, k, -1), n->padded), filter_value(L, n, k));
    block_close(L);
    stages(L, f, n, 1, &x, &other);
    j = ix_of(&L->ix, loop_open(L, 0, n->padded, NULL, 1));
    line_store(L, n->filter, j, line_load(L, x, j));
    block_close(L);
    f->apart = apart;
}

static void bluestein(Lower *L, Fft *f, const Length *n, Line *a, Line *b)
{
    multiply_line(L, f, *a, n->chirp, n->n);
    clear_line(L, f, *a, n->n, n->padded);
    stages(L, f, n, 1, a, b);
    multiply_line(L, f, *a, n->filter, n->padded);
    *a = line_swapped(*a); /* the inverse transform is the transform with its parts swapped, before and after */
    *b = line_swapped(*b);
    stages(L, f, n, 1, a, b);
    *a = line_swapped(*a);
    *b = line_swapped(*b);
    multiply_line(L, f, *a, n->chirp, n->n);
}

/* Where the element at f->at is between axes. */
static const Ix *grid_place(Lower *L, const Fft *f)
{
    const Ix *batch = ix_const(&L->ix, 0), *place = ix_linear(&L->ix, f->axes, f->at, f->grid_dims);
    int64_t   points = 1;
    if (!f->apart)
        return place;
    for (int32_t d = 0; d < f->x->shape->rank - f->axes; d++)
        batch = ix_add(&L->ix, ix_times(&L->ix, batch, f->x->shape->dims[d]), f->batch[d]);
    for (int32_t k = 0; k < f->axes; k++)
        points *= f->grid_dims[k];
    return ix_add(&L->ix, ix_times(&L->ix, batch, points), place);
}

/* The element at f->at with index k along the axis, from the operand or from between axes. */
static Z read_element(Lower *L, Fft *f, const Ix *k)
{
    Arena *a = L->arena;
    f->at[f->axis] = k;
    if (!f->from_operand)
        return z_bind(L, line_load(L, f->grid, grid_place(L, f)), "a");
    const Inst  *x = inst_operand(f->x, 0);
    Type         t = x->shape->type;
    int32_t      rank = x->shape->rank, leaf = 0;
    const Ix   **at = ARENA_ARRAY(a, const Ix *, rank);
    for (int32_t d = 0; d < rank; d++)
        at[d] = d < rank - f->axes ? f->batch[d] : f->at[d - (rank - f->axes)];
    x = resolve(L, x, &leaf);
    const KExpr *v = value_at(L, x, leaf, at);
    if (!type_is_complex(t))
        return (Z){ scalar_convert(a, t, f->type, v), number(a, f->type, 0) };
    v = bind(L, v, "v");
    Type part = type_component(t);
    return (Z){ kx_cast(a, f->type, kx_unary(a, KOP_REAL, part, v)), kx_cast(a, f->type, kx_unary(a, KOP_IMAG, part, v)) };
}

/* The place of element k of the lines, one of which a loop goes to. */
static const Ix *line_open(Lower *L, Fft *f, const Ix *line, const Ix *k)
{
    if (f->width == 1)
        return ix_add(&L->ix, line, k);
    const Ix *j = ix_of(&L->ix, loop_open(L, 0, f->width, NULL, 1));
    f->at[f->axes - 1] = ix_add(&L->ix, f->column, j);
    return ix_add(&L->ix, ix_times(&L->ix, k, f->width), j);
}

static void line_close(Lower *L, const Fft *f)
{
    if (f->width > 1)
        block_close(L);
}

/* X[k] and conj X[k] as X[n - k], of all k that have such another. */
static void read_pairs_of(Lower *L, Fft *f, int64_t n, bool own, bool other)
{
    Line      x = f->line[0];
    const Ix *line = lines_open(L, f), *k = ix_of(&L->ix, loop_open(L, 1, (n + 1) / 2, NULL, 1));
    Z         v = z_bind(L, read_element(L, f, k), "v");
    if (own)
        line_store(L, x, ix_add(&L->ix, line, k), v);
    if (other)
        line_store(L, x, ix_add(&L->ix, line, ix_plus(&L->ix, ix_times(&L->ix, k, -1), n)), (Z){ v.re, neg(L->arena, v.im) });
    block_close(L);
    lines_close(L, f);
}

/* From half a spectrum, of which the other half is conj X[n - k]. */
static void read_half(Lower *L, Fft *f, int64_t n)
{
    Arena    *a = L->arena;
    Line      x = f->line[0];
    const Ix *line = lines_open(L, f), *none = ix_const(&L->ix, 0), *k = ix_const(&L->ix, n / 2);
    line_store(L, x, line, (Z){ read_element(L, f, none).re, number(a, f->type, 0) });
    if (n % 2 == 0)
        line_store(L, x, ix_add(&L->ix, line, k), (Z){ read_element(L, f, k).re, number(a, f->type, 0) });
    lines_close(L, f);
    if (n > 2)
        read_pairs_of(L, f, n, true, !f->apart);
    if (n > 2 && f->apart) /* a thread for each */
        read_pairs_of(L, f, n, false, true);
}

/* Lines of n values; half: from half a spectrum. */
static void read_line(Lower *L, Fft *f, int64_t n, bool half)
{
    if (half) {
        read_half(L, f, n);
        return;
    }
    Line      x = f->line[0];
    const Ix *line = lines_open(L, f), *k = ix_of(&L->ix, loop_open(L, 0, n, NULL, 1));
    if (f->pairs && f->axis == f->axes - 1) {
        const Ix *even = ix_times(&L->ix, k, 2);
        line_store(L, x, ix_add(&L->ix, line, k), (Z){ read_element(L, f, even).re, read_element(L, f, ix_plus(&L->ix, even, 1)).re });
    } else {
        const Ix *place = line_open(L, f, line, k);
        line_store(L, x, place, read_element(L, f, k));
        line_close(L, f);
    }
    block_close(L);
    lines_close(L, f);
}

/* Element k of the transformed line, to the result or between axes. */
static void write_element(Lower *L, Fft *f, const Ix *k, Z v)
{
    Arena       *a = L->arena;
    const Shape *s = f->to->shape;
    f->at[f->axis] = k;
    if (!f->to_result) {
        line_store(L, f->grid, grid_place(L, f), v);
        return;
    }
    const Ix **at = ARENA_ARRAY(a, const Ix *, s->rank);
    for (int32_t d = 0; d < s->rank; d++)
        at[d] = d < s->rank - f->axes ? f->batch[d] : f->at[d - (s->rank - f->axes)];
    Type         part = type_component(s->type);
    const KExpr *re = kx_cast(a, part, v.re), *im = kx_cast(a, part, v.im);
    store_at(L, f->to, at, type_is_complex(s->type) ? scalar_binary(a, OP_COMPLEX, part, re, im) : re);
}

/* The first `keep` values of the transformed lines. */
static void write_line(Lower *L, Fft *f, Line x, int64_t n, int64_t keep)
{
    Arena    *a = L->arena;
    const Ix *line = lines_open(L, f), *k = ix_of(&L->ix, loop_open(L, 0, keep, NULL, 1));
    Z         v = line_load(L, x, line_open(L, f, line, k));
    if (f->inverse)
        v = (Z){ kx_binary(a, KOP_DIV, f->type, v.re, number(a, f->type, (double)n)), kx_binary(a, KOP_DIV, f->type, v.im, number(a, f->type, (double)n)) };
    write_element(L, f, k, v);
    line_close(L, f);
    block_close(L);
    lines_close(L, f);
}

/* The spectrum of a real line from that of its h pairs. */
static void write_pairs(Lower *L, Fft *f, Line x, int64_t h)
{
    Arena       *a = L->arena;
    const KExpr *half = number(a, f->type, 0.5), *none = number(a, f->type, 0);
    const Ix    *line = lines_open(L, f);
    Z            first = z_bind(L, line_load(L, x, line), "first");
    write_element(L, f, ix_const(&L->ix, 0), (Z){ add(a, first.re, first.im), none });
    write_element(L, f, ix_const(&L->ix, h), (Z){ sub(a, first.re, first.im), none });
    lines_close(L, f);
    if (h > 1) {
        line = lines_open(L, f);
        const Ix *k = ix_of(&L->ix, loop_open(L, 1, h, NULL, 1)), *other = ix_plus(&L->ix, ix_times(&L->ix, k, -1), h);
        Z         z = z_bind(L, line_load(L, x, ix_add(&L->ix, line, k)), "z"), y = z_bind(L, line_load(L, x, ix_add(&L->ix, line, other)), "y");
        Z         even = { mul(a, half, add(a, z.re, y.re)), mul(a, half, sub(a, z.im, y.im)) };
        Z         odd = z_bind(L, (Z){ mul(a, half, add(a, z.im, y.im)), mul(a, half, sub(a, y.re, z.re)) }, "odd");
        write_element(L, f, k, z_add(a, even, z_mul(a, line_load(L, f->twist, k), odd)));
        block_close(L);
        lines_close(L, f);
    }
}

/* Real lines of two values, without working memory: gcc 12 gets a point there wrong, read and written by each line, where it takes several lines at once. */
static void transform_two(Lower *L, Fft *f)
{
    Arena       *a = L->arena;
    const KExpr *none = number(a, f->type, 0);
    const Ix    *first = ix_const(&L->ix, 0), *second = ix_const(&L->ix, 1);
    lines_open(L, f);
    const KExpr *x = bind(L, read_element(L, f, first).re, "first"), *y = bind(L, read_element(L, f, second).re, "second");
    write_element(L, f, first, (Z){ add(a, x, y), none });
    write_element(L, f, second, (Z){ sub(a, x, y), none });
    lines_close(L, f);
}

static void transform_lines(Lower *L, Fft *f)
{
    const Length *n = &f->lengths[f->axis];
    bool          last = f->axis == f->axes - 1;
    if (last && f->pairs && n->n == 1) {
        transform_two(L, f);
        return;
    }
    Line          a = f->line[0], b = f->line[1];
    read_line(L, f, n->n, last && f->kind == FFT_IRFFT);
    if (n->padded == n->n)
        stages(L, f, n, f->width, &a, &b);
    else
        bluestein(L, f, n, &a, &b);
    if (last && f->pairs)
        write_pairs(L, f, a, n->n);
    else
        write_line(L, f, a, n->n, last && f->kind == FFT_RFFT ? n->n / 2 + 1 : n->n);
}

/* How many lines along that axis are transformed at once. */
static int64_t width_of(const Fft *f, int32_t axis)
{
    const Length *n = &f->lengths[axis];
    int64_t       most = n->n > LONG ? WIDTH / 2 : WIDTH, columns = f->grid_dims[f->axes - 1];
    return axis == f->axes - 1 || n->padded != n->n ? 1 : columns < most ? columns : most;
}

/* The lines of one row of places: those that lie side by side. */
static void transform_row(Lower *L, void *cookie, const Ix *const *index)
{
    Fft    *f = cookie;
    int64_t width = width_of(f, f->axis), columns = f->grid_dims[f->axes - 1];
    for (int32_t k = 0; k < f->axes; k++)
        f->at[k] = index[k];
    f->width = width;
    if (f->axis == f->axes - 1) {
        transform_lines(L, f);
        return;
    }
    f->column = f->at[f->axes - 1] = ix_times(&L->ix, ix_of(&L->ix, loop_open(L, 0, columns / width, NULL, 1)), width);
    transform_lines(L, f);
    block_close(L);
    if (columns % width) {
        f->width = columns % width;
        f->column = f->at[f->axes - 1] = ix_const(&L->ix, columns / width * width);
        transform_lines(L, f);
    }
}

/* Axis by axis, the last one first, but last for IRFFT. */
static void begin_pass(Fft *f, int32_t pass)
{
    f->axis = f->kind == FFT_IRFFT ? (pass == f->axes - 1 ? pass : f->axes - 2 - pass) : f->axes - 1 - pass;
    f->from_operand = pass == 0;
    f->to_result = pass == f->axes - 1;
}

static void transform_batch(Lower *L, void *cookie, const Ix *const *batch)
{
    Fft *f = cookie;
    f->batch = batch;
    for (int32_t pass = 0; pass < f->axes; pass++) {
        int64_t extents[MAX_AXES];
        begin_pass(f, pass);
        for (int32_t k = 0; k < f->axes; k++)
            extents[k] = k == f->axis || k == f->axes - 1 ? 1 : f->grid_dims[k];
        nest(L, f->axes, plan_dims(L, f->x, ROLE_PASS + pass, f->axes, extents), NULL, transform_row, f);
    }
}

static void transform_apart(Lower *L, Fft *f)
{
    f->width = 1;
    for (int32_t pass = 0; pass < f->axes; pass++) {
        begin_pass(f, pass);
        transform_lines(L, f);
    }
}

/* How many lines there are along that axis; -1: how many points. */
static int64_t lines_of(const Fft *f, int32_t axis)
{
    int64_t n = 1;
    for (int32_t d = 0; d < f->x->shape->rank - f->axes; d++)
        n *= f->x->shape->dims[d];
    for (int32_t k = 0; k < f->axes; k++)
        n *= k == axis ? 1 : f->grid_dims[k];
    return n;
}

static void prepare_length(Lower *L, Fft *f, int32_t axis)
{
    Length *n = &f->lengths[axis];
    for (int32_t k = 0; k < axis; k++)
        if (f->lengths[k].n == n->n) {
            *n = f->lengths[k];
            return;
        }
    n->roots = roots_of_unity(L, f->type, n->padded, n->inverse);
    last_roots(L, f->type, n);
    if (n->padded == n->n)
        return;
    n->chirp = new_line(L, TYPE_F64, n->n, "chirp");
    n->filter = new_line(L, TYPE_F64, n->padded, "filter");
    make_chirp(L, n, f->inverse);
    make_filter(L, f, n);
}

void stage_fft(Lower *L, const Inst *x, KArray *const *to)
{
    Ints         lengths = inst_ints(x, ATTR_FFT_LENGTH);
    const Shape *s = x->shape;
    Fft          f = { .x = x, .to = to[0], .kind = inst_word(x, ATTR_FFT_TYPE), .axes = lengths.n };
    int64_t      longest = 1, points = 1;
    bool         wide = type_component(s->type) == TYPE_F64 || type_component(inst_operand(x, 0)->shape->type) == TYPE_F64;
    if (!is_cheap(L, inst_operand(x, 0)))
        need_memory(L, inst_operand(x, 0));
    if (L->again)
        return;
    f.inverse = f.kind == FFT_IFFT || f.kind == FFT_IRFFT;
    for (int32_t k = 0; k < f.axes; k++) {
        Length *n = &f.lengths[k];
        bool    half = k == f.axes - 1 && (f.kind == FFT_RFFT || f.kind == FFT_IRFFT);
        points *= f.grid_dims[k] = half ? lengths.v[k] / 2 + 1 : lengths.v[k];
        f.pairs = k == f.axes - 1 && f.kind == FFT_RFFT && lengths.v[k] % 2 == 0 && lengths.v[k] > 0;
        n->n = n->padded = f.pairs ? lengths.v[k] / 2 : lengths.v[k];
        n->inverse = f.inverse;
        if (has_large_factor(n->n)) {
            n->inverse = false;
            for (n->padded = 1; n->padded < 2 * n->n - 1;)
                n->padded *= 2;
        }
        longest = n->padded > longest ? n->padded : longest;
        wide |= n->padded != n->n;
    }
    f.type = wide ? TYPE_F64 : TYPE_F32;
    int64_t all = 0;
    for (int32_t k = 0; k < f.axes; k++)
        all = f.lengths[k].padded * lines_of(&f, k) > all ? f.lengths[k].padded * lines_of(&f, k) : all;
    f.apart = L->plan->plain && all > 0 && all <= MOST_APART / 4 / type_bytes(f.type);
    for (int32_t k = 0; k < f.axes; k++)
        if (f.lengths[k].padded * width_of(&f, k) > longest)
            longest = f.lengths[k].padded * width_of(&f, k);
    f.line[0] = new_line(L, f.type, f.apart ? all : longest, "a");
    f.line[1] = new_line(L, f.type, f.apart ? all : longest, "b");
    if (f.axes > 1)
        f.grid = new_line(L, f.type, f.apart ? lines_of(&f, -1) : points, "grid");
    for (int32_t k = 0; k < f.axes; k++)
        prepare_length(L, &f, k);
    if (f.pairs)
        f.twist = roots_of_unity(L, f.type, lengths.v[f.axes - 1], false);
    f.to->rewritten = true;
    if (f.apart)
        transform_apart(L, &f);
    else
        nest(L, s->rank - f.axes, plan_dims(L, x, ROLE_BATCH, s->rank - f.axes, s->dims), NULL, transform_batch, &f);
}
