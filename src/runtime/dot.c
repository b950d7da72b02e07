/* dot.c - a dot as products of matrices: which kernels, which way, one product for each member of the batch. */
#include "runtime/packed.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <stddef.h>

int hlort_has(const KernelSet *s)
{
    if (!s->rest && !s->gemm[GEMM_F32])
        return 0;
#if defined(__x86_64__)
    if (s == &hlort_v4n || s == &hlort_v4b)
        return hlort_has(&hlort_v4) && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
    if (s == &hlort_v4)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq");
    if (s == &hlort_v3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (s == &hlort_v2)
        return __builtin_cpu_supports("sse4.2");
#endif
    return s == &hlort_base;
}

const KernelSet *hlort_kernels(void)
{
#if defined(__x86_64__)
    static const KernelSet *const best_first[] = { &hlort_v4n, &hlort_v4b, &hlort_v4, &hlort_v3, &hlort_v2 };
    for (size_t k = __builtin_cpu_is("intel") ? 1 : 0 /* kernels_v4n.c */; k < sizeof best_first / sizeof *best_first; k++)
        if (hlort_has(best_first[k]))
            return best_first[k];
#endif
    return &hlort_base;
}

/* C [m, 1] with neighbouring rows is C [1, m] of the transposed product. */
static void as_row(Gemm *g)
{
    Gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.a_row = g->b_col;
    t.a_col = g->b_row;
    t.b = g->a;
    t.b_row = g->a_col;
    t.b_col = g->a_row;
    t.c_row = g->m;
    *g = t;
}

enum { SMALL = 128 * 1024, SHORT = 16, LONG = 64, WIDE = 16 }; /* bytes of B that stay in a cache; k that is not worth packing, that is worth it; lanes */
enum { LONGER = 256 };                                         /* k of few rows and few columns that are summed as they lie */
enum { TINY = 1024, MANY = 8, NARROW = 4 };                    /* bytes of a B that is held where words are several elements; rows for which longer ones are turned; columns that fill few lanes */

/* Lines along which k lies are held turned, some at a time, where they are short or few rows meet them: in tiles those would be packed one by one, along lanes they would fill none. */
static int is_held(const Gemm *g, int64_t bytes, int together)
{
    const int64_t b = g->n * g->k * bytes;
    if (g->b_row == 1 && g->b_col > 1)
        return g->k < SHORT || (g->m <= GEMM_MOST_FEW && g->k < (g->m > MANY ? LONGER : LONG)) || (g->m > GEMM_MOST_FEW && b <= (together ? TINY : GEMM_MOST_HELD));
    if (g->b_col != 1 || g->b_row <= 0)
        return 0;
    if (together) /* what is held is multiplied by elements */
        return b <= TINY;
    return g->m == 1 ? b <= SMALL : g->k <= SHORT || b <= GEMM_MOST_HELD;
}

/* Rows of A are neighbours, or there is one, and so are columns of B; a word is one element, which it is not of bytes in pairs. */
static int is_both(const Gemm *g, int64_t bytes, int together)
{
    return !together && bytes > 1 && g->m <= GEMM_MOST_FEW && g->n <= GEMM_MOST_FEW && g->k >= LONGER && g->b_col == 1 && g->b_row > 0 && (g->m == 1 || g->a_row == 1);
}

static GemmWay way_of(const Gemm *g, int64_t bytes, int together)
{
    if (is_both(g, bytes, together))
        return GEMM_BOTH;
    if ((g->m == 1 || (g->n > NARROW && g->a_col == 1 && !together)) && is_held(g, bytes, together))
        return GEMM_HELD;
    if (g->n <= GEMM_MOST_FEW && g->k >= LONG && (g->a_col == 1 || (g->a_row == 1 && g->m >= WIDE)))
        return GEMM_COLUMNS;
    if (is_held(g, bytes, together))
        return GEMM_HELD;
    if (g->m <= GEMM_MOST_FEW && ((g->b_col == 1 && g->n >= WIDE) || g->b_row == 1))
        return GEMM_ROWS;
    return GEMM_TILES;
}

enum { IN, OUT };
const int8_t hlort_bytes[GEMM_TYPES][2] = {
    [GEMM_F32] = { 4, 4 }, [GEMM_F64] = { 8, 8 },     [GEMM_BF16] = { 2, 2 }, [GEMM_BF16_F32] = { 2, 4 },
    [GEMM_F16] = { 2, 2 }, [GEMM_F16_F32] = { 2, 4 }, [GEMM_S32] = { 4, 4 },  [GEMM_S8_S32] = { 1, 4 },
    [GEMM_U8_S32] = { 1, 4 }, [GEMM_C64] = { 8, 8 }, [GEMM_C128] = { 16, 16 },
};

/* Few columns, of which all sums of some rows stay in registers: as many words of A as vectors of B, unless so many sums along k are less. */
static int is_paired(const Gemm *g)
{
    enum { LANES = 16, MOST_COLUMNS = 2 * LANES, MOST_TERMS = 1024, ROWS = 4, JOINED = 4 /* words that a sum along k takes longer */ };
    const int64_t vectors = hlort_ceildiv(g->n, LANES), words = g->k / 2;
    return g->m >= ROWS && g->a_col == 1 && g->n <= MOST_COLUMNS && g->k > 0 && g->k * vectors <= MOST_TERMS && words * vectors <= g->n * (words / LANES + JOINED) &&
           ((g->b_col == 1 && g->b_row >= g->n && g->m + g->n > LANES) || (g->b_row == 1 && g->b_col >= g->k));
}

/* Bytes, of which an instruction multiplies four at once, are multiplied in tiles unless few of them meet lines that are long enough for lanes, to be added up once a line. What is held is multiplied by
 * elements. (One thread of an Emerald Rapids, as for f32 and so: 815 x 112 by 112 x 8 18.2 and 10.2 us, 16 x 112 by 815 rows of 112 112 and 10.2, 100 x 112 by 8 rows of 112 2.9 and 1.4.) */
static GemmWay way_of_bytes(const Gemm *g)
{
    enum { LITTLE = 1024 /* multiplications that are worth no tile */, VECTOR = 64, LANES = 600, REST = 400, TILE = 64 };
    const int     columns = g->n <= GEMM_MOST_FEW && g->k >= LONG && (g->a_col == 1 || (g->a_row == 1 && g->m >= WIDE));
    const int     rows = g->m <= GEMM_MOST_FEW && ((g->b_col == 1 && g->n >= WIDE) || g->b_row == 1), along = columns ? g->a_col == 1 : g->b_row == 1;
    const int64_t few = columns ? g->n : g->m;
    if (g->m == 1 || g->m * g->n * g->k <= LITTLE)
        return way_of(g, 1, 1);
    if (!columns && !rows)
        return GEMM_TILES;
    if (along ? few * (g->k + LANES + (g->k % VECTOR ? REST : 0)) > 20 * (g->k + TILE) /* measured */ : few > MANY && !columns)
        return GEMM_TILES;
    return columns ? GEMM_COLUMNS : GEMM_ROWS;
}

/* Up to half a vector of columns are sums along k in whole ones where a processor begins as many of these as of halves, and k is long enough that adding up their lanes is little: Intel's. */
static int is_along(const KernelSet *s, GemmType type, const Gemm *g)
{
#if defined(__x86_64__)
    enum { HALF = 8, ROWS = 48, SHORTEST = 100, SHORTEST_WIDE = 128 };
    const int narrow = s->widen[type] != NULL;
    return s == &hlort_v4b && (narrow || type == GEMM_F32) && g->a_col == 1 && g->m >= ROWS && g->n > 1 && g->n <= HALF && g->k >= (narrow ? SHORTEST : SHORTEST_WIDE);
#else
    (void)s, (void)type, (void)g;
    return 0;
#endif
}

/* Whether so many multiply-adds of 512 bits begin at once as of fewer: not on Zen 4, which has no vp2intersect. */
static int is_whole(const KernelSet *s)
{
#if defined(__x86_64__)
    return s == &hlort_v4n && __builtin_cpu_supports("avx512vp2intersect");
#else
    (void)s;
    return 0;
#endif
}

/* Elements that are words, in rows that lie as they are multiplied, of which those of B are so many bytes at most. */
static int is_near(const KernelSet *s, GemmType type, const Gemm *g, int64_t most)
{
    enum { ROWS = 8 };
    return is_whole(s) && !s->together[type] && (type == GEMM_F32 || type == GEMM_F64 || type == GEMM_S32) && g->m >= ROWS && g->a_col == 1 && g->b_col == 1 && g->b_row > 0 && g->n * g->k * hlort_bytes[type][IN] <= most;
}

/* Few columns. Of a row, in lanes of multiplications: held, some vectors of columns; else sums along k, the lanes of which are added up, of columns that are packed once (one thread of a Zen 5, f32, held and so: 200 x 128 by
 * 128 x 6 3.7 and 2.6 us, 200 x 500 by 500 x 8 13.2 and 9.8; 1000 x 512 by 512 x 16 72 and 88). */
static GemmWay way_of_few_columns(const Gemm *g, int64_t bytes)
{
    enum { PACKED = 20 /* of an element */ };
    const int64_t lanes = 64 / bytes, vectors = hlort_ceildiv(g->n, lanes), joined = lanes * lanes / 2;
    return g->n * (g->k + g->k * PACKED / g->m + joined) < g->k * lanes * vectors ? GEMM_COLUMNS : GEMM_HELD;
}

/* Products of pairs fill whole panels or take as long as those: smaller ones are of f32. */
static GemmWay way_of_narrow(const KernelSet *s, GemmType type, const Gemm *g)
{
    enum { PANEL = 32, MOST = 4096 /* bytes */, NEAR = 64 * 1024 };
    const int together = s->together[type];
    if (is_along(s, type, g))
        return GEMM_COLUMNS;
    if (g->n > 1 && g->n <= GEMM_MOST_FEW && g->k >= LONG && is_near(s, type, g, NEAR))
        return way_of_few_columns(g, hlort_bytes[type][IN]);
    if (g->n > GEMM_MOST_FEW && is_near(s, type, g, NEAR / 2)) /* all of it in the first cache */
        return GEMM_HELD;
    if (together == 4)
        return way_of_bytes(g);
    if (together == 2 && s->widen[type] && is_paired(g))
        return GEMM_PAIRS;
    if (together && s->widen[type] && g->m > 1 && (g->n < PANEL || g->k < PANEL) && g->n * g->k * 2 <= MOST && way_of(g, 2, 0) == GEMM_HELD)
        return GEMM_HELD;
    if (!together && s->widen[type] && g->b_row == 1 && g->b_col > 1) /* turned as f32 */
        return way_of(g, sizeof(float), together);
    return way_of(g, hlort_bytes[type][IN], together);
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* An epilogue that rounds sums to C's type. */
typedef struct Narrow {
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
    void (*rows)(uint16_t *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t n); /* NULL: there is none for these sums */
    uint16_t *c;
    int64_t   c_row;
} Narrow;

static void narrow_tile(const void *context, const hlort_tile *t)
{
    const Narrow *x = context;
    if (x->rows)
        x->rows(x->c + t->row * x->c_row + t->column, x->c_row, t->sums, t->stride, t->rows, t->columns);
    else if (t->stride == t->columns && x->c_row == t->columns)
        x->narrow(x->c + t->row * x->c_row, t->sums, t->rows * t->columns);
    else
        for (int64_t i = 0; i < t->rows; i++)
            x->narrow(x->c + (t->row + i) * x->c_row + t->column, (const float *)t->sums + i * t->stride, t->columns);
}

/* Complex numbers as real ones, of which elements of B or, of few rows, of A are several. */
typedef enum Spread { SPREAD_NOT, SPREAD_B, SPREAD_A } Spread;

/* All products, for the threads. */
typedef struct Parts {
    const hlort_dot *d;
    const KernelSet *set;
    GemmType         type;
    Gemm             g;
    int              as_row; /* g's operands are the dot's, exchanged */
    Spread           spread; /* g's way is that of the real product */
    Cut              cut;
} Parts;

/* So many elements of the dot's operands and of C on. */
static void move(const Parts *x, Gemm *g, int64_t a, int64_t b, int64_t c)
{
    g->a = (const char *)g->a + (x->as_row ? b : a) * hlort_bytes[x->type][IN];
    g->b = (const char *)g->b + (x->as_row ? a : b) * hlort_bytes[x->type][IN];
    g->c = g->c ? (char *)g->c + c * hlort_bytes[x->type][OUT] : NULL;
    g->place += c;
}

static void first_member(const Parts *x, int64_t number, Gemm *g, int64_t at[HLORT_MOST_BATCHES])
{
    const hlort_dot *d = x->d;
    g->batch = number;
    for (int64_t k = d->n_batch - 1; k >= 0; k--) {
        at[k] = number % d->batch[k].count;
        number /= d->batch[k].count;
        move(x, g, at[k] * d->batch[k].a, at[k] * d->batch[k].b, at[k] * d->batch[k].c);
    }
}

/* Small members take no longer than a division. */
static void next_member(const Parts *x, Gemm *g, int64_t at[HLORT_MOST_BATCHES])
{
    const hlort_dot *d = x->d;
    g->batch++;
    for (int64_t k = d->n_batch - 1; k >= 0; k--) {
        const int64_t by = ++at[k] < d->batch[k].count ? 1 : 1 - at[k];
        move(x, g, by * d->batch[k].a, by * d->batch[k].b, by * d->batch[k].c);
        if (by == 1)
            return;
        at[k] = 0;
    }
}

static void cut_piece(const Parts *x, int64_t piece, Gemm *g)
{
    const Cut *cut = &x->cut;
    int64_t    from = piece * cut->size, whole = cut->by_rows ? g->m : g->n, left = whole - from, size = left < cut->size ? left : cut->size;
    if (cut->by_rows) {
        g->a = (const char *)g->a + from * g->a_row * hlort_bytes[x->type][IN];
        g->m = size;
        g->row = from;
    } else {
        g->b = (const char *)g->b + from * g->b_col * hlort_bytes[x->type][IN];
        g->n = size;
        g->column = from;
    }
    const int64_t c = from * (cut->by_rows ? g->c_row : 1);
    g->place += c;
    if (g->c)
        g->c = (char *)g->c + c * hlort_bytes[x->type][OUT];
}

/* ---- small products of narrow floats: of f32 ones, of operands that are converted behind the product's own memory ---- */

enum { UNIT_COLUMNS = 64, WIDE_B = 16 * 1024, WIDE_A = 8 * 1024, WIDE_C = 16 * 1024, WIDE_ROWS = 64 }; /* a part of them; elements; rows of A at once where they are short enough */
_Static_assert((WIDE_A + WIDE_B + WIDE_C) * sizeof(float) <= HLORT_SUMS_BYTES, "wide operands");

/* Lines of either lie one after the other. */
static int is_widened(const KernelSet *s, GemmType type, const Gemm *g)
{
    return s->widen[type] && g->way == GEMM_HELD && g->m > 1 && g->k > 0 && g->k <= WIDE_A / MANY && g->k * least(g->n, UNIT_COLUMNS) <= WIDE_B && (g->a_col == 1 || g->a_row == 1) &&
           (g->b_col == 1 || g->b_row == 1);
}

/* `lines` lines of n neighbours each, one behind the other. */
static void widen_lines(void (*widen)(float *to, const uint16_t *from, int64_t n), float *to, const uint16_t *from, int64_t line, int64_t lines, int64_t n)
{
    if (line == n || lines == 1) {
        widen(to, from, n * lines);
        return;
    }
    for (int64_t i = 0; i < lines; i++)
        widen(to + i * n, from + i * line, n);
}

/* Some rows of A by all of b, which is g's B converted. */
static void run_rows(const Parts *x, const Gemm *g, const float *b, float *a)
{
    const int     along = g->a_col == 1, b_along = g->b_col != 1;
    const int64_t most = least(WIDE_ROWS, WIDE_A / g->k / MANY * MANY);
    Gemm          w = *g;
    w.a = a;
    w.b = b;
    w.b_row = b_along ? 1 : g->n;
    w.b_col = b_along ? g->k : 1;
    for (int64_t i = 0; i < g->m; i += most) {
        w.m = least(most, g->m - i);
        w.a_row = along ? g->k : 1;
        w.a_col = along ? 1 : w.m;
        widen_lines(x->set->widen[x->type], a, (const uint16_t *)g->a + i * g->a_row, along ? g->a_row : g->a_col, along ? w.m : g->k, along ? g->k : w.m);
        w.row = g->row + i;
        w.place = g->place + i * g->c_row;
        w.c = g->c ? (char *)g->c + i * g->c_row * hlort_bytes[x->type][OUT] : NULL;
        hlort_kernel(x->set, GEMM_F32)(&w);
    }
}

static void run_widened(const Parts *x, const Gemm *g)
{
    float        *b = (float *)((char *)g->work + HLORT_TILES_BYTES);
    const int     along = g->b_col != 1;
    const int64_t most = g->n * g->k <= WIDE_B ? g->n : WIDE_B / g->k / UNIT_COLUMNS * UNIT_COLUMNS;
    Gemm          some = *g;
    for (int64_t j = 0; j < g->n; j += most) {
        some.n = least(most, g->n - j);
        some.b = (const uint16_t *)g->b + j * g->b_col;
        some.column = g->column + j;
        some.place = g->place + j;
        some.c = g->c ? (char *)g->c + j * hlort_bytes[x->type][OUT] : NULL;
        widen_lines(x->set->widen[x->type], b, some.b, along ? g->b_col : g->b_row, along ? some.n : g->k, along ? g->k : some.n);
        run_rows(x, &some, b, b + WIDE_B);
    }
}

/* How many members from g on lie one behind the other, A, B and C whole, and are few enough to be converted at once: of the smallest ones a call for each takes as long as the product. */
static int64_t members_together(const Parts *x, const Gemm *g, const int64_t at[HLORT_MOST_BATCHES], int64_t most)
{
    const hlort_dot *d = x->d;
    const int64_t    last = d->n_batch - 1, a = g->m * g->k, b = g->k * g->n, c = g->m * g->n;
    if (last < 0 || x->as_row || x->cut.pieces > 1 || (x->g.epilogue != NULL))
        return 1;
    const int whole_a = d->batch[last].a == a && (g->a_col == 1 ? g->a_row == g->k : g->a_col == g->m), whole_c = d->batch[last].c == c && g->c_row == g->n;
    const int whole_b = d->batch[last].b == b && (g->b_col == 1 ? g->b_row == g->n : g->b_col == g->k);
    if (!whole_a || !whole_b || !whole_c)
        return 1;
    const int64_t fit = least(least(WIDE_A / a, WIDE_B / b), WIDE_C / c);
    return fit < 1 ? 1 : least(least(fit, most), d->batch[last].count - at[last]);
}

static void run_together(const Parts *x, const Gemm *g, int64_t count)
{
    const int64_t  c_bytes = hlort_bytes[x->type][OUT], size = g->m * g->n;
    float         *b = (float *)((char *)g->work + HLORT_TILES_BYTES), *a = b + WIDE_B, *c = c_bytes == 4 ? g->c : a + WIDE_A;
    GemmFunction  *run = hlort_kernel(x->set, GEMM_F32);
    Gemm           w = *g;
    x->set->widen[x->type](a, g->a, count * g->m * g->k);
    x->set->widen[x->type](b, g->b, count * g->k * g->n);
    for (int64_t e = 0; e < count; e++) {
        w.a = a + e * g->m * g->k;
        w.b = b + e * g->k * g->n;
        w.c = c + e * size;
        run(&w);
    }
    if (c_bytes != 4)
        x->set->narrow[x->type](g->c, c, count * size);
}

/* ---- complex numbers as real ones, A and C as they lie, B's elements two by two behind the products' own memory:
 *
 *     | re  im |  *  |  Br  Bi |
 *                    | -Bi  Br |
 */

enum { SPREAD_ROWS = 24, SPREAD_COLUMNS = 64, SPREAD_UNIT = UNIT_COLUMNS / 2 }; /* that are worth it, fewer where columns are few; columns at least where B is taken in pieces, and what those are multiples of */

typedef float    Four __attribute__((vector_size(16)));
typedef uint32_t FourU __attribute__((vector_size(16)));
typedef float    Pair __attribute__((vector_size(8)));
typedef double   PairD __attribute__((vector_size(16)));

/* Columns of B that there is room for; half of the room is A's where that is turned. */
static int64_t spread_columns(GemmType type, const Gemm *g)
{
    const int64_t room = HLORT_SUMS_BYTES / (g->a_col == 1 ? 1 : 2), fit = room / (2 * hlort_bytes[type][IN] * g->k);
    return g->n <= fit ? g->n : fit / SPREAD_UNIT * SPREAD_UNIT;
}

/* Rows of A that are turned at once. */
static int64_t spread_rows(GemmType type, const Gemm *g)
{
    return g->a_col == 1 ? g->m : least(g->m, HLORT_SUMS_BYTES / 2 / (hlort_bytes[type][IN] * g->k));
}

static int is_spread_b(GemmType type, const Gemm *g)
{
    if (type < GEMM_C64 || g->m < (g->n <= GEMM_MOST_FEW ? MANY : SPREAD_ROWS) || g->k == 0 || (g->a_col != 1 && g->a_row != 1))
        return 0;
    return spread_columns(type, g) >= least(g->n, SPREAD_COLUMNS) && spread_rows(type, g) >= MANY;
}

/* The real product: n columns of B from b on, which are one behind the other. */
static Gemm spread_product(const Gemm *g, const void *b, int64_t n)
{
    Gemm r = *g;
    r.n = 2 * n;
    r.k = 2 * g->k;
    r.a_row = 2 * g->a_row;
    r.a_col = 1;
    r.b = b;
    r.b_row = 2 * n;
    r.b_col = 1;
    r.c_row = 2 * g->c_row;
    r.epilogue = NULL;
    return r;
}

/* One row of B. */
static void spread_row(GemmType type, void *to, const void *from, int64_t step, int64_t n)
{
    int64_t j = 0;
    if (type == GEMM_C64) {
        const float *x = from;
        float       *y = to, *z = y + 2 * n;
        for (; step == 1 && j + 2 <= n; j += 2) {
            Four v, w;
            __builtin_memcpy(&v, x + 2 * j, sizeof v);
            w = (Four)((FourU)__builtin_shufflevector(v, v, 1, 0, 3, 2) ^ (FourU){ UINT32_C(1) << 31, 0, UINT32_C(1) << 31, 0 });
            __builtin_memcpy(y + 2 * j, &v, sizeof v);
            __builtin_memcpy(z + 2 * j, &w, sizeof w);
        }
        for (; j < n; j++) {
            const Pair v = { x[2 * j * step], x[2 * j * step + 1] }, w = { -v[1], v[0] };
            __builtin_memcpy(y + 2 * j, &v, sizeof v);
            __builtin_memcpy(z + 2 * j, &w, sizeof w);
        }
        return;
    }
    const double *x = from;
    double       *y = to, *z = y + 2 * n;
    for (; j < n; j++) {
        const PairD v = { x[2 * j * step], x[2 * j * step + 1] }, w = { -v[1], v[0] };
        __builtin_memcpy(y + 2 * j, &v, sizeof v);
        __builtin_memcpy(z + 2 * j, &w, sizeof w);
    }
}

/* to[i][p] = from[p][i], of complex numbers. */
static void turn_rows(const Parts *x, char *to, const char *from, int64_t from_row, int64_t rows, int64_t k)
{
    const int64_t bytes = hlort_bytes[x->type][IN];
    if (least(rows, k) * bytes >= HLORT_LINE) {
        (x->set->runs ? x->set : x->set->rest)->turn[x->type == GEMM_C64 ? 3 : 4](&(TurnPart){ from, to, k, rows, from_row * bytes, k * bytes, HLORT_STORED, 1, 0, 0 });
        return;
    }
    if (x->type == GEMM_C64)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t p = 0; p < k; p++)
                __builtin_memcpy(to + (i * k + p) * 8, from + (p * from_row + i) * 8, 8);
    else
        for (int64_t i = 0; i < rows; i++)
            for (int64_t p = 0; p < k; p++)
                __builtin_memcpy(to + (i * k + p) * 16, from + (p * from_row + i) * 16, 16);
}

static void run_spread(const Parts *x, const Gemm *g)
{
    char         *b = (char *)g->work + HLORT_TILES_BYTES, *a = b + HLORT_SUMS_BYTES / 2;
    const int64_t bytes = hlort_bytes[x->type][IN], columns = spread_columns(x->type, g), rows = spread_rows(x->type, g);
    for (int64_t j = 0, n; j < g->n; j += n) {
        n = least(columns, g->n - j);
        for (int64_t p = 0; p < g->k; p++)
            spread_row(x->type, b + 2 * p * n * bytes, (const char *)g->b + (p * g->b_row + j * g->b_col) * bytes, g->b_col, n);
        Gemm r = spread_product(g, b, n);
        for (int64_t i = 0; i < g->m; i += rows) {
            r.m = least(rows, g->m - i);
            r.c = (char *)g->c + (i * g->c_row + j) * bytes;
            if (g->a_col != 1) {
                turn_rows(x, a, (const char *)g->a + i * bytes, g->a_col, r.m, g->k);
                r.a = a;
                r.a_row = r.k;
            }
            hlort_kernel(x->set, x->type == GEMM_C64 ? GEMM_F32 : GEMM_F64)(&r);
            if (g->epilogue)
                g->epilogue(g->context, &(hlort_tile){ r.c, g->c_row, g->batch, g->row + i, g->column + j, r.m, n, 0, 0 });
        }
    }
}

/* Few rows by a B as it lies: rows of A are two real ones of sums, which become C's pairs.
 *
 *     columns of B are neighbours:  | re |         k along its lines, pairs of real numbers:  | re -im |
 *     (P, Q) pairs, C = P + i Q     | im |         re and im of C                             | im  re |
 */

enum { SPREAD_FEW = 8, SPREAD_LEAST = 512 }; /* rows, of which twice as many are few still, and columns; elements of B */

static int64_t real_bytes(GemmType type)
{
    return type == GEMM_C64 ? sizeof(float) : sizeof(double);
}

/* Columns of which half of the room holds the sums. */
static int64_t spread_sums(GemmType type, const Gemm *g)
{
    return least(g->n, HLORT_SUMS_BYTES / 2 / (4 * g->m * real_bytes(type)) / UNIT_COLUMNS * UNIT_COLUMNS);
}

static int is_spread_a(GemmType type, const Gemm *g)
{
    return type >= GEMM_C64 && g->m <= SPREAD_FEW && g->k > 0 && g->n >= SPREAD_FEW && g->n * g->k >= SPREAD_LEAST && (g->b_col == 1 || g->b_row == 1) && 4 * g->m * g->k * real_bytes(type) <= HLORT_SUMS_BYTES / 2;
}

static Spread spread_of(GemmType type, const Gemm *g)
{
    return is_spread_b(type, g) ? SPREAD_B : is_spread_a(type, g) ? SPREAD_A : SPREAD_NOT;
}

static Gemm spread_rows_product(const Gemm *g, const void *a)
{
    const int pairs = g->b_col == 1;
    Gemm      r = *g;
    r.m = 2 * g->m;
    r.n = pairs ? 2 * g->n : g->n;
    r.k = pairs ? g->k : 2 * g->k;
    r.a = a;
    r.a_row = r.k;
    r.a_col = 1;
    r.b_row = pairs ? 2 * g->b_row : 1;
    r.b_col = pairs ? 1 : 2 * g->b_col;
    r.c_row = r.n;
    r.epilogue = NULL;
    return r;
}

/* A's rows as they are wanted, and C's pairs out of the sums of a row. */
#define ROWS_OF(name, type)                                                                                          \
    static void name##_rows(type *to, const type *from, const Gemm *g, int pairs)                                    \
    {                                                                                                                \
        for (int64_t i = 0; i < g->m; i++)                                                                           \
            for (int64_t p = 0; p < g->k; p++) {                                                                     \
                const type *x = from + 2 * (i * g->a_row + p * g->a_col);                                            \
                if (pairs) {                                                                                         \
                    to[i * g->k + p] = x[0];                                                                         \
                    to[(g->m + i) * g->k + p] = x[1];                                                                \
                } else {                                                                                             \
                    type *re = to + 2 * (i * g->k + p), *im = re + 2 * g->m * g->k;                                  \
                    re[0] = x[0], re[1] = -x[1];                                                                     \
                    im[0] = x[1], im[1] = x[0];                                                                      \
                }                                                                                                    \
            }                                                                                                        \
    }                                                                                                                \
    static void name##_join(type *restrict to, const type *restrict re, const type *restrict im, int64_t n, int pairs) \
    {                                                                                                                \
        for (int64_t j = 0; pairs && j < n; j++) {                                                                   \
            to[2 * j] = re[2 * j] - im[2 * j + 1];                                                                   \
            to[2 * j + 1] = re[2 * j + 1] + im[2 * j];                                                               \
        }                                                                                                            \
        for (int64_t j = 0; !pairs && j < n; j++) {                                                                  \
            to[2 * j] = re[j];                                                                                       \
            to[2 * j + 1] = im[j];                                                                                   \
        }                                                                                                            \
    }
ROWS_OF(c64, float)
ROWS_OF(c128, double)
#undef ROWS_OF

static void run_spread_rows(const Parts *x, const Gemm *g)
{
    const int     pairs = g->b_col == 1;
    const int64_t bytes = hlort_bytes[x->type][IN], columns = spread_sums(x->type, g);
    char         *a = (char *)g->work + HLORT_TILES_BYTES, *sums = a + HLORT_SUMS_BYTES / 2;
    Gemm          some = *g;
    if (x->type == GEMM_C64)
        c64_rows((float *)a, g->a, g, pairs);
    else
        c128_rows((double *)a, g->a, g, pairs);
    for (int64_t j = 0; j < g->n; j += columns) {
        some.n = least(columns, g->n - j);
        some.b = (const char *)g->b + j * g->b_col * bytes;
        Gemm r = spread_rows_product(&some, a);
        r.c = sums;
        hlort_kernel(x->set, x->type == GEMM_C64 ? GEMM_F32 : GEMM_F64)(&r);
        for (int64_t i = 0; i < g->m; i++) {
            char *to = (char *)g->c + (i * g->c_row + j) * bytes;
            if (x->type == GEMM_C64)
                c64_join((float *)to, (float *)sums + i * r.n, (float *)sums + (g->m + i) * r.n, some.n, pairs);
            else
                c128_join((double *)to, (double *)sums + i * r.n, (double *)sums + (g->m + i) * r.n, some.n, pairs);
        }
        if (g->epilogue)
            g->epilogue(g->context, &(hlort_tile){ (char *)g->c + j * bytes, g->c_row, g->batch, g->row, g->column + j, g->m, some.n, 0, 0 });
    }
}

static void part(void *job, int64_t number, void *work)
{
    const Parts  *x = job;
    const Cut    *c = &x->cut;
    const int64_t first = number / c->pieces * c->members, n = least(c->members, c->count - first);
    GemmFunction *run = hlort_kernel(x->set, x->type);
    Narrow        narrow = { .narrow = x->set->narrow[x->type], .c_row = x->g.c_row };
    const int     narrows = narrow.narrow && !x->g.epilogue, widened = is_widened(x->set, x->type, &x->g);
    int64_t       at[HLORT_MOST_BATCHES];
    Gemm          g = x->g;
    g.work = work;
    if (g.way == GEMM_TILES || g.way == GEMM_PAIRS)
        narrow.rows = x->set->narrow_rows[x->type];
    if (narrows) {
        g.epilogue = narrow_tile;
        g.context = &narrow;
    }
    first_member(x, first, &g, at);
    for (int64_t k = 0, together; k < n; k += together) {
        together = widened ? members_together(x, &g, at, n - k) : 1;
        if (together > 1) {
            g.epilogue = NULL;
            run_together(x, &g, together);
            g.epilogue = narrows ? narrow_tile : NULL;
            for (int64_t e = 0; e < together && k + e + 1 < n; e++)
                next_member(x, &g, at);
            continue;
        }
        narrow.c = g.c;
        if (narrows)
            g.c = NULL;
        if (c->pieces > 1)
            cut_piece(x, number % c->pieces, &g);
        if (x->spread)
            (x->spread == SPREAD_B ? run_spread : run_spread_rows)(x, &g);
        else if (widened)
            run_widened(x, &g);
        else
            run(&g);
        if (narrows)
            g.c = narrow.c;
        if (k + 1 < n)
            next_member(x, &g, at);
    }
}

/* Enough parts that a thread which is late delays little, each of them worth the trouble: 2^17 multiplications are some microseconds; as many of them as take
 * hardly longer than the number that takes least, with what is packed for every piece again. Of lines that come from memory and are read across, each thread gets
 * as much of one as can be. */
enum { WORTH = 1 << 17, PIECE = 384, UNIT_ROWS = 14, UNIT_OTHER_ROWS = 84, FAR = 1 << 20 /* elements */ };

/* Pieces, and what the thread with the most of them does, in multiplications along k. */
typedef struct Pieces {
    int     by_rows;
    int64_t size, cost;
} Pieces;

/* What packing the other operand for a piece takes, in its lines (measured). */
static int64_t lines_of_packing(const Gemm *g, int by_rows)
{
    if (g->way != GEMM_TILES || g->packed)
        return 0;
    if (by_rows)
        return g->b_col == 1 ? 3 : 12;
    return g->image || g->a_row == 1 ? 16 : 8;
}

static Pieces pieces_of(const Cut *x, const Gemm *g, int by_rows, int64_t pieces, int threads)
{
    const int64_t whole = by_rows ? g->m : g->n, unit = !by_rows ? UNIT_COLUMNS : g->way == GEMM_TILES ? UNIT_ROWS : UNIT_OTHER_ROWS;
    const int64_t size = hlort_ceildiv(hlort_ceildiv(whole, pieces), unit) * unit, all = hlort_ceildiv(whole, size), rounds = hlort_ceildiv(x->count * all, threads);
    const int     alone = x->count == 1 && (all - 1) % threads == 0; /* the last one, which is shorter, in its round */
    const int64_t lines = alone ? (rounds - 1) * size + whole - (all - 1) * size : rounds * least(size, whole);
    const int64_t packing = rounds * lines_of_packing(g, by_rows) * (by_rows ? 1 : hlort_ceildiv(least(size, whole), PIECE));
    return (Pieces){ by_rows, size, (lines + packing) * (by_rows ? g->n : g->m) };
}

/* The most pieces that take 2 % more than the best number of them, at most. */
static Pieces best_pieces(const Cut *x, const Gemm *g, int by_rows, int threads)
{
    const int64_t whole = by_rows ? g->m : g->n, worth = (int64_t)((double)g->m * (double)g->n * (double)(g->k + 1) / WORTH) + 1, most = least(worth, POOL_MOST_PARTS / x->count);
    const int     across = by_rows ? g->a_row == 1 : g->way == GEMM_ROWS && g->b_col == 1;
    if (across && g->way != GEMM_TILES && whole * g->k >= FAR)
        return pieces_of(x, g, by_rows, least(threads, most), threads);
    const int64_t want = hlort_max(whole / PIECE, 2 * (int64_t)threads), end = least(2 * want, most);
    Pieces        best = pieces_of(x, g, by_rows, 1, threads), more = best;
    for (int64_t n = 2; n <= end; n++) {
        const Pieces p = pieces_of(x, g, by_rows, n, threads);
        if (p.cost < best.cost)
            best = p;
        if (p.cost <= best.cost + best.cost / 50 && n <= want)
            more = p;
    }
    return more.cost <= best.cost + best.cost / 50 ? more : best;
}

/* How many members the thread with the most of them has, of parts of so many. */
static int64_t members_of(const Cut *x, int64_t members, int threads)
{
    return hlort_ceildiv(hlort_ceildiv(x->count, members), threads) * members;
}

void hlort_cut(Cut *x, const Gemm *g, int threads)
{
    const double each = (double)g->m * (double)g->n * (double)(g->k + 1), all = each * (double)x->count;
    x->members = x->count;
    x->pieces = 1;
    if (threads < 2 || all < 2 * WORTH)
        return;
    if (x->count >= 2 * threads) {
        const int64_t parts = least(4 * (int64_t)threads, (int64_t)least((int64_t)(all / WORTH), x->count));
        x->members = hlort_ceildiv(x->count, parts);
        for (int64_t more = x->members + 1; more <= hlort_ceildiv(x->count, threads); more++)
            if (members_of(x, more, threads) < members_of(x, x->members, threads))
                x->members = more;
        if (each < 2 * WORTH || 2 * x->count > POOL_MOST_PARTS || 16 * members_of(x, x->members, threads) * threads <= 17 * x->count)
            return;
    }
    x->members = 1;
    const int rows = g->way == GEMM_TILES || g->way == GEMM_HELD || g->way == GEMM_PAIRS;
    x->by_rows = (rows && g->m > g->n) || g->way == GEMM_COLUMNS;
    Pieces p = best_pieces(x, g, x->by_rows, threads);
    if (g->way == GEMM_TILES && !g->image) {
        const Pieces other = best_pieces(x, g, !x->by_rows, threads);
        if (50 * other.cost < 49 * p.cost)
            p = other;
    }
    x->by_rows = p.by_rows;
    x->size = p.size;
    x->pieces = hlort_ceildiv(p.by_rows ? g->m : g->n, p.size);
}

int64_t hlort_cut_parts(const Cut *x)
{
    return hlort_ceildiv(x->count, x->members) * x->pieces;
}

/* ---- a B that is packed once ---- */

static int is_one_b(const hlort_dot *d)
{
    for (int64_t k = 0; k < d->n_batch; k++)
        if (d->batch[k].count > 1 && d->batch[k].b != 0)
            return 0;
    return 1;
}

/* Has tiles of x take B's panels from memory, which they are put into if nobody has done so. */
static void use_packed(Parts *x, const hlort_how *how)
{
    const int64_t columns = packed_columns(x->g.n), bytes = hlort_panels_bytes(hlort_bytes[x->type][IN], x->g.k, x->g.n);
    if (x->g.way != GEMM_TILES || x->type >= GEMM_C64 || x->as_row || x->g.k == 0 || !is_one_b(x->d))
        return;
    const PackedUse use = packed_use(how->packed, bytes);
    if (use == PACKED_NOT)
        return;
    x->g.packed = how->packed->memory;
    x->g.packed_columns = columns;
    if (use == PACKED_READ)
        return;
    Parts fill = *x;
    fill.g.way = GEMM_PACK;
    fill.cut = packed_cut(1, columns);
    pool_run(how->pool, part, &fill, hlort_cut_parts(&fill.cut), how->work);
    packed_done(how->packed);
}

void hlort_gemm(const KernelSet *s, GemmType type, const hlort_dot *d, const hlort_how *how, const void *a, const void *b, void *c)
{
    Parts x = { .d = d, .set = s, .type = type, .cut.count = 1 };
    x.g = (Gemm){ .m = d->m, .n = d->n, .k = d->k, .a = a, .a_row = d->a_row, .a_col = d->a_col, .b = b, .b_row = d->b_row, .b_col = d->b_col, .c = c,
                  .c_row = d->c_row, .epilogue = how->epilogue, .context = how->context, .in_blocks = how->epilogue != NULL };
    for (int64_t k = 0; k < d->n_batch; k++)
        x.cut.count *= d->batch[k].count;
    if (d->m == 0 || d->n == 0 || x.cut.count == 0)
        return;
    x.as_row = x.g.n == 1 && x.g.c_row == 1 && !x.g.epilogue && !(is_spread_b(type, &x.g) && x.g.a_col == 1);
    if (x.as_row)
        as_row(&x.g);
    x.spread = spread_of(type, &x.g);
    Gemm real = x.spread == SPREAD_B ? spread_product(&x.g, b, x.g.n) : x.spread == SPREAD_A ? spread_rows_product(&x.g, a) : x.g;
    real.way = x.g.way = way_of_narrow(s, x.spread ? (type == GEMM_C64 ? GEMM_F32 : GEMM_F64) : type, &real);
    if (how->packed)
        use_packed(&x, how);
    real.packed = x.g.packed;
    hlort_cut(&x.cut, &real, pool_threads(how->pool));
    x.cut.size /= x.spread && real.n != x.g.n && !x.cut.by_rows ? 2 : 1;
    pool_run(how->pool, part, &x, hlort_cut_parts(&x.cut), how->work);
}

#define FUNCTION(name, type, in, out)                                                                         \
    void hlort_dot_##name(const hlort_dot *d, const hlort_how *how, const in *a, const in *b, out *c)         \
    {                                                                                                         \
        hlort_gemm(hlort_kernels(), type, d, how, a, b, c);                                                   \
    }
FUNCTION(f32, GEMM_F32, float, float)
FUNCTION(f64, GEMM_F64, double, double)
FUNCTION(bf16, GEMM_BF16, uint16_t, uint16_t)
FUNCTION(bf16_f32, GEMM_BF16_F32, uint16_t, float)
FUNCTION(f16, GEMM_F16, uint16_t, uint16_t)
FUNCTION(f16_f32, GEMM_F16_F32, uint16_t, float)
FUNCTION(s32, GEMM_S32, uint32_t, uint32_t)
FUNCTION(s8_s32, GEMM_S8_S32, int8_t, uint32_t)
FUNCTION(u8_s32, GEMM_U8_S32, uint8_t, uint32_t)
FUNCTION(c64, GEMM_C64, float, float)
FUNCTION(c128, GEMM_C128, double, double)
#undef FUNCTION
