/* gemv_body.h - products with few rows or few columns: the memory is the limit, the large operand is read once and as it lies.
 *
 * Included after gemm_body.h, with its names and
 *   N(widen)(const TE *)     VC of VL elements, as accumulators
 *   N(widen1)(TE)            one
 *   B_WORDS(w)               what becomes of the large operand's words where they are multiplied as they lie, and then
 *   FEW_BEGUN                sums of a row begin at what N(begin_row)(a, step, k) says
 *   HELD_PAIRS               a word is two elements, also where it lies in A
 *
 *   held     B is small: sums of a few rows and columns stay in registers for all of k
 *   few      up to 16 rows, or columns, which are packed; the other operand's lines are read as they lie
 *     across   their columns are neighbours: sums of some vectors of columns stay in registers along a block of k
 *     swept    likewise, a single row: some lines at a time, in their whole length, sums in the first cache
 *     along    k lies along them: sums of products in lanes */

enum {
    N(SPAN) = 1024,             /* columns that are finished before the next ones */
    N(TURNED) = 512,            /* rows likewise, whose sums are turned */
    N(BESIDE) = 256,            /* rows or columns likewise, whose sums are not */
    N(SUMS) = MR * NV - 4,      /* registers of sums, beside those of operands */
    N(ROWS) = MR < 8 ? MR : MR < 12 ? 8 : 12, /* of a kernel, across */
    N(WIDE) = 16 / NV * NV,     /* vectors of columns of it, at most */
    N(TOGETHER_ROWS) = MR < 8 ? 4 : 8, /* of a kernel, along, at most */
    N(FEWER_ROWS) = 4,          /* likewise, of more rows than one kernel takes: a line is read again by the next one, and what all of them are multiplied by fills the first cache */
    N(LINES) = 8,               /* of it, at most: so many streams, each of them slow, together are as fast as memory */
    N(ALONG_K) = 4096 / (int)sizeof(TW) * G, /* elements of k in a block, of fewer rows than that more */
    N(ACROSS_K) = 256 * G,      /* elements of k in a block: each of them is on a page of its own */
    N(FAR_K) = 32 * G,          /* likewise, where B does not stay in the third cache and is to be read in few streams, of which more than the second cache's sets have room for may lie powers of two apart */
    N(CACHED) = 16 << 20,       /* bytes that stay there */
    N(SECOND) = 1 << 20,        /* in the second cache */
    N(AHEAD) = 32,              /* rows of words from what is multiplied to what is fetched; where there are no more in a block */
    N(ACROSS_AHEAD) = 384,      /* bytes likewise, in the rows' direction (one thread of a Zen 5, 8 x 4096 x 4096 of f32 3100 and 1880 us, f16 8 x 4096 x 12288 7830 and 6150) */
    N(ALONG_AHEAD) = 8192,      /* bytes likewise, along: two pages, at whose ends processors stop foreseeing */
    N(APART_BYTES) = 512,       /* from row to row, from which on rows are fetched */
    N(HELD_ROWS) = 8,           /* rows that are finished before the next ones */
    N(HELD_TALL) = 8,           /* rows of a single vector of columns: as many sums do not wait for each other */
    N(SWEPT) = 8,               /* rows of words that a single row of C is swept over at once: as many streams of the whole of B */
    N(SWEPT_K) = KC * NC / 2 * G, /* elements of k, of which the words are packed, likewise */
    N(CHAINS) = 4,              /* sums of a single line: as many as follow each other in the time of a multiplication */
    N(ROW) = 256 + 16           /* words of a row, as in tiles */
};

/* B, whose rows are read in vectors: those from `rows` on would end behind it and are in `tail`, VL elements each. */
typedef struct {
    const TE *b, *tail;
    int64_t   rows;
} N(Held);

/* mr rows and nv vectors of C, from where a, b and c are, the last of them at `last`. */
INLINE void N(held)(int mr, int nv, int64_t last, const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row)
{
    VC acc[N(HELD_TALL)][8];
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = (VC){ 0 };
    ROLLED for (int64_t p = 0; p < g->k; p++, a += g->a_col, b += g->b_row) {
        VC w[8];
        UNROLL for (int v = 0; v < nv; v++)
            w[v] = N(widen)(b + (v < nv - 1 ? v * VL : last));
        UNROLL for (int r = 0; r < mr; r++) {
            TC x = N(widen1)(a[r * g->a_row]);
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] += x * w[v];
        }
    }
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + r * c_row + (v < nv - 1 ? v * VL : last)) = acc[r][v];
}

/* mr rows of C, pairs of vectors. Where the last columns do not fill theirs, others are summed twice. What is left is a vector at most. */
INLINE int64_t N(hold_pairs)(int mr, const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t n)
{
    int64_t j = 0;
    if (mr == 1)
        for (; j + VL * 8 <= n; j += VL * 8)
            N(held)(1, 8, VL * 7, g, a, b + j, c + j, c_row);
    for (; j + VL < n; j += VL * 2)
        N(held)(mr, 2, hlort_min(VL, n - j - VL), g, a, b + j, c + j, c_row);
    return n - j;
}

/* mr rows of C. */
INLINE void N(hold)(int mr, const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t n)
{
    if (N(hold_pairs)(mr, g, a, b, c, c_row, n) > 0)
        N(held)(mr, 1, 0, g, a, b + n - VL, c + n - VL, c_row);
}

/* As many rows as a single vector of columns is summed of together, of which pairs leave one. */
INLINE void N(hold_tall)(const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t n)
{
    enum { PART = N(HELD_TALL) / 2 };
    N(hold_pairs)(PART, g, a, b, c, c_row, n);
    N(hold_pairs)(PART, g, a + PART * g->a_row, b, c + PART * c_row, c_row, n);
    N(held)(N(HELD_TALL), 1, 0, g, a, b + n - VL, c + n - VL, c_row);
}

/* `rows` rows of C, n columns. */
APART void N(hold_rows)(const Gemm *g, const TE *a, const TE *b, TC *c, int64_t c_row, int64_t rows, int64_t n)
{
    if ((n - 1) % (2 * VL) < VL)
        for (; rows >= N(HELD_TALL); rows -= N(HELD_TALL), a += N(HELD_TALL) * g->a_row, c += N(HELD_TALL) * c_row)
            N(hold_tall)(g, a, b, c, c_row, n);
    for (; rows >= 4; rows -= 4, a += 4 * g->a_row, c += 4 * c_row)
        N(hold)(4, g, a, b, c, c_row, n);
    for (; rows >= 2; rows -= 2, a += 2 * g->a_row, c += 2 * c_row)
        N(hold)(2, g, a, b, c, c_row, n);
    if (rows)
        N(hold)(1, g, a, b, c, c_row, n);
}

/* mr rows of fewer columns than a vector has, which are the first ones of one: of a whole one, or of the part of it that they fit in. */
#define HOLD_FEW(name, part)                                                                                          \
    typedef TC N(name##_lanes) __attribute__((vector_size(VL / (part) * (int)sizeof(TC))));                           \
    INLINE void N(name)(int mr, const Gemm *g, const TE *a, const N(Held) *h, TC *c, int64_t c_row, int64_t n)        \
    {                                                                                                                 \
        N(name##_lanes) acc[N(HELD_TALL)], w;                                                                         \
        TC              few[VL] __attribute__((aligned(64))) = { 0 };                                                 \
        int64_t         row = g->b_row;                                                                               \
        const TE       *b = h->b;                                                                                     \
        UNROLL for (int r = 0; r < mr; r++)                                                                           \
            acc[r] = (N(name##_lanes)){ 0 };                                                                          \
        for (int64_t p = 0, end = h->rows; p < g->k || p < end; b = h->tail, row = VL, end = g->k)                    \
            ROLLED for (; p < end; p++, a += g->a_col, b += row) {                                                    \
                const VC all = N(widen)(b);                                                                           \
                __builtin_memcpy(&w, &all, sizeof w);                                                                 \
                IN_REGISTER(w);                                                                                       \
                UNROLL for (int r = 0; r < mr; r++)                                                                   \
                    acc[r] += N(widen1)(a[r * g->a_row]) * w;                                                         \
            }                                                                                                         \
        UNROLL for (int r = 0; r < mr; r++)                                                                           \
            if (n == VL / (part)) {                                                                                   \
                __builtin_memcpy(c + r * c_row, &acc[r], sizeof acc[r]);                                              \
            } else {                                                                                                  \
                __builtin_memcpy(few, &acc[r], sizeof acc[r]);                                                        \
                N(copy_some)(c + r * c_row, few, n);                                                                  \
            }                                                                                                         \
    }                                                                                                                 \
    APART void N(name##_rows)(const Gemm *g, const TE *a, const N(Held) *h, TC *c, int64_t c_row, int64_t rows, int64_t n) \
    {                                                                                                                 \
        for (; rows >= N(HELD_TALL); rows -= N(HELD_TALL), a += N(HELD_TALL) * g->a_row, c += N(HELD_TALL) * c_row)   \
            N(name)(N(HELD_TALL), g, a, h, c, c_row, n);                                                              \
        for (; rows >= 4; rows -= 4, a += 4 * g->a_row, c += 4 * c_row)                                               \
            N(name)(4, g, a, h, c, c_row, n);                                                                         \
        for (; rows; rows--, a += g->a_row, c += c_row)                                                               \
            N(name)(1, g, a, h, c, c_row, n);                                                                         \
    }
HOLD_FEW(hold_few, 1)
#if VECTOR_BYTES >= 32
HOLD_FEW(hold_half, 2)
#endif
#if VECTOR_BYTES >= 64
HOLD_FEW(hold_quarter, 4)
#endif
#undef HOLD_FEW

/* n < VL columns. */
INLINE void N(hold_few_columns)(const Gemm *g, const TE *a, const N(Held) *h, TC *c, int64_t c_row, int64_t rows, int64_t n)
{
#if VECTOR_BYTES >= 64
    if (n <= VL / 4) {
        N(hold_quarter_rows)(g, a, h, c, c_row, rows, n);
        return;
    }
#endif
#if VECTOR_BYTES >= 32
    if (n <= VL / 2) {
        N(hold_half_rows)(g, a, h, c, c_row, rows, n);
        return;
    }
#endif
    N(hold_few_rows)(g, a, h, c, c_row, rows, n);
}

/* ---- few rows by many lines ----
 *
 * The product is that of `few` rows of words, which are packed, and of lines that are read as they lie: columns of B by rows of A, or rows of A by columns of B. */

typedef struct {
    const TW *x;           /* the rows */
    int64_t   row;         /* words from one to the next; across: ROW */
    int64_t   k;           /* elements of them */
    const TE *from;        /* the first line */
    int64_t   line, along; /* from a line to the next, from one k to the next: one of them is 1 */
    TC       *c;           /* the first row's sum with the first line */
    int64_t   c_few, c_line;
    const TC *begin;       /* what sums of the rows begin at, or NULL: at what C has */
    int       far, beyond; /* along: all lines together do not stay in a cache, in one that is near */
} N(Few);

/* nv vectors of words, of G rows of elements or of the first `there` of them. */
INLINE void N(words)(int nv, int64_t there, VW w[NV], const TE *b, int64_t b_row)
{
    if (there < G) {
        TE few[G][K(NR)] = { 0 };
        for (int64_t g = 0; g < there; g++)
            __builtin_memcpy(few[g], b + g * b_row, (uint64_t)(nv * VL) * sizeof *b);
        N(across)(w, few[0], K(NR));
    } else if (nv == NV) {
        N(across)(w, b, b_row);
    } else {
        w[0] = N(beside)(b, b_row);
    }
    UNROLL for (int v = 0; v < nv; v++)
        w[v] = B_WORDS(w[v]);
}

/* The word of G elements, of which the first `there` are there. */
INLINE TW N(strided)(const TE *from, int64_t step, int64_t there)
{
    TE few[G] = { 0 };
    if (there == G)
        UNROLL for (int g = 0; g < G; g++)
            few[g] = from[g * step];
    else
        for (int64_t g = 0; g < there; g++)
            few[g] = from[g * step];
    return N(word)(few);
}

/* Zeros behind the last word up to a vector. */
APART void N(pack_few)(TW *out, int64_t out_row, const TE *from, int64_t row, int64_t step, int64_t few, int64_t k)
{
    for (int64_t r = 0; r < few; r++, from += row, out += out_row) {
        int64_t p = 0;
        for (; step == 1 && p + VL * G <= k; p += VL * G)
            *(VWU *)(out + p / G) = N(along)(from + p);
        for (; p < k; p += G)
            out[p / G] = N(strided)(from + p * step, step, hlort_min(G, k - p));
        for (; p % (VL * G) != 0; p += G)
            out[p / G] = 0;
    }
}

/* ---- lines whose columns are neighbours: sums of some rows and columns stay in registers along a block of k ---- */

/* One step: what is at `ahead` is fetched, to its last byte; the line that it begins in was the last one of the columns before. */
INLINE void N(swath_step)(int mr, int nv, int64_t there, VC acc[N(ROWS)][N(WIDE)], const TW *x, const TE *from, int64_t row, const TE *ahead)
{
    VW w[N(WIDE)];
    const int size = (int)sizeof(TE) * nv * VL;
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int at = 0; at < size; at += 64)
            __builtin_prefetch((const char *)(ahead + g * row) + (at + 63 < size ? at + 63 : size - 1), 0, 2);
    UNROLL for (int v = 0; v < nv; v += NV)
        N(words)(nv < NV ? nv : NV, there, w + v, from + v * VL, row);
    UNROLL for (int v = 0; v < nv; v++)
        IN_REGISTER(w[v]);
    UNROLL for (int r = 0; r < mr; r++) {
        const TW y = x[r * N(ROW)];
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = MULTIPLY_FEW(acc[r][v], y, w[v]);
    }
}

/* mr rows by nv vectors of columns, of which the last `columns` are there; `next` is where the columns begin that come next. */
INLINE void N(swath)(int mr, int nv, const N(Few) *f, int64_t columns, const TE *next)
{
    VC            acc[N(ROWS)][N(WIDE)];
    TC            part[N(WIDE) * VL] __attribute__((aligned(64))) = { 0 };
    const int64_t row = f->along, c_few = f->c_few, before = nv * VL - columns, steps = f->k / G, ahead = hlort_min(steps, N(AHEAD));
    const TW     *x = f->x;
    const TE     *from = f->from, *fetched = from + ahead * G * row;
    TC           *c = f->c;
    const TC     *begin = f->begin;
    if (begin)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = (VC){ 0 } + begin[r];
    else if (!before)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = *(const VCU *)(c + r * c_few + v * VL);
    else
        UNROLL for (int r = 0; r < mr; r++) {
            __builtin_memcpy(part + before, c + r * c_few + before, (uint64_t)columns * sizeof *c);
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] = *(const VC *)(part + v * VL);
        }
    for (int64_t p = 0, end = steps - ahead; p < steps; end = steps, fetched = next)
        ROLLED for (; p < end; p++, x++, from += G * row, fetched += G * row)
            N(swath_step)(mr, nv, G, acc, x, from, row, fetched);
    if (G > 1 && f->k % G)
        N(swath_step)(mr, nv, f->k % G, acc, x, from, row, from);
    if (!before)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                *(VCU *)(c + r * c_few + v * VL) = acc[r][v];
    else
        UNROLL for (int r = 0; r < mr; r++) {
            UNROLL for (int v = 0; v < nv; v++)
                *(VC *)(part + v * VL) = acc[r][v];
            __builtin_memcpy(c + r * c_few + before, part + before, (uint64_t)columns * sizeof *c);
        }
}

#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define SWATH(r)                                                                                   \
    enum { N(WIDTH_##r) = N(SUMS) / (r) < NV ? NV : LESS(N(SUMS) / (r) / NV * NV, (int)N(WIDE)) };  \
    APART void N(swath_##r)(const N(Few) *f, int64_t vectors, int64_t columns, const TE *next)     \
    {                                                                                              \
        if (vectors == N(WIDTH_##r))                                                               \
            N(swath)(r, N(WIDTH_##r), f, columns, next);                                           \
        else if (vectors == NV)                                                                    \
            N(swath)(r, NV, f, columns, next);                                                     \
        else                                                                                       \
            N(swath)(r, 1, f, columns, next);                                                      \
    }
SWATH(1)
SWATH(2)
SWATH(3)
SWATH(4)
SWATH(5)
#if MR >= 6
SWATH(6)
#endif
#if MR >= 8
SWATH(7)
SWATH(8)
#endif
#if MR >= 12
SWATH(9)
SWATH(10)
SWATH(11)
SWATH(12)
#endif
#undef SWATH

typedef void N(Swath)(const N(Few) *, int64_t, int64_t, const TE *);
static const struct {
    N(Swath) *run;
    int64_t   width;
} N(swaths)[] = {
    { 0, 0 },
#define SWATH(r) { N(swath_##r), N(WIDTH_##r) },
    SWATH(1) SWATH(2) SWATH(3) SWATH(4) SWATH(5)
#if MR >= 6
    SWATH(6)
#endif
#if MR >= 8
    SWATH(7) SWATH(8)
#endif
#if MR >= 12
    SWATH(9) SWATH(10) SWATH(11) SWATH(12)
#endif
#undef SWATH
};

/* `few` rows by n columns; vectors that the last columns do not fill begin before them. */
static void N(few_across)(const N(Few) *all, int64_t few, int64_t n)
{
    const int64_t groups = hlort_ceildiv(few, N(ROWS)), width = groups > 1 ? NV : N(swaths)[few].width;
    for (int64_t j = 0, columns; j < n; j += columns) {
        const int64_t vectors = n - j >= width * VL ? width : n - j >= NV * VL ? NV : 1;
        columns = hlort_min(vectors * VL, n - j);
        const int64_t skipped = hlort_max(1, N(ACROSS_AHEAD) / (columns * (int64_t)sizeof(TE))) * columns;
        const int64_t before = vectors * VL - columns, next = j + skipped < n ? j + skipped : 0;
        for (int64_t q = 0, r = 0; q < groups; q++) {
            const int64_t mr = few / groups + (q < few % groups);
            N(Few)        f = *all;
            f.x += r * N(ROW);
            f.from += j - before;
            f.c += r * f.c_few + j - before;
            f.begin = f.begin ? f.begin + r : f.begin;
            N(swaths)[mr].run(&f, vectors, columns, q + 1 < groups ? f.from : all->from + next);
            r += mr;
        }
    }
}

/* ---- a single row by lines whose columns are neighbours: a few lines at a time, in their whole length, while sums stay in the first cache ---- */

/* kr rows of words, of the first `there` elements each, by nv vectors of columns. */
INLINE void N(sweep_columns)(int nv, int kr, int64_t there, const VW x[N(SWEPT)], const TE *from, int64_t row, const TC *begin, TC *c)
{
    VC acc[NV];
    UNROLL for (int v = 0; v < nv; v++)
        if (begin)
            acc[v] = (VC){ 0 } + *begin;
        else
            acc[v] = *(const VCU *)(c + v * VL);
    UNROLL for (int p = 0; p < kr; p++) {
        VW w[NV];
        N(words)(nv, there, w, from + p * G * row, row);
        UNROLL for (int v = 0; v < nv; v++)
            acc[v] = MULTIPLY_FEW(acc[v], x[p], w[v]);
    }
    UNROLL for (int v = 0; v < nv; v++)
        *(VCU *)(c + v * VL) = acc[v];
}

/* By n columns; what they leave of a vector is the vector that ends there, whose sums are aside. */
INLINE void N(sweep)(int kr, int64_t there, const N(Few) *f, int64_t n, TC *aside)
{
    VW            x[N(SWEPT)];
    const TE     *from = f->from;
    const int64_t row = f->along;
    const TC     *begin = f->begin;
    TC           *c = f->c;
    int64_t       j = 0;
    UNROLL for (int p = 0; p < kr; p++) {
        x[p] = f->x[p] - (VW){ 0 };
        IN_REGISTER(x[p]);
    }
    ROLLED for (; j + NV * VL <= n; j += NV * VL)
        N(sweep_columns)(NV, kr, there, x, from + j, row, begin, c + j);
    ROLLED for (; j + VL <= n; j += VL)
        N(sweep_columns)(1, kr, there, x, from + j, row, begin, c + j);
    if (j < n)
        N(sweep_columns)(1, kr, there, x, from + n - VL, row, begin, aside);
}

APART void N(sweep_lines)(const N(Few) *f, int64_t n, TC *aside)
{
    N(sweep)(N(SWEPT), G, f, n, aside);
}

APART void N(sweep_line)(const N(Few) *f, int64_t n, TC *aside)
{
    if (f->k >= G)
        N(sweep)(1, G, f, n, aside);
    else
        N(sweep)(1, f->k, f, n, aside);
}

static void N(few_swept)(const N(Few) *all, int64_t n, TC *aside)
{
    N(Few) f = *all;
    for (; f.k >= N(SWEPT) * G; f.k -= N(SWEPT) * G, f.x += N(SWEPT), f.from += N(SWEPT) * G * f.along, f.begin = 0)
        N(sweep_lines)(&f, n, aside);
    for (; f.k > 0; f.k -= G, f.x++, f.from += G * f.along, f.begin = 0)
        N(sweep_line)(&f, n, aside);
}

/* ---- lines along which k lies: products in lanes, which are added up at the end ---- */

/* Lane e of the result is the sum of v[e]'s lanes, for n <= VL vectors: two are added in halves, then in quarters ... */
INLINE VC N(sum_lanes)(VC v[VL], int n)
{
#define ADD(s)                                                                                                                                \
    UNROLL for (int i = 0; i < (s); i++)                                                                                                      \
        if (i + (s) < n)                                                                                                                      \
            v[i] = __builtin_shufflevector(v[i], v[i + (s)], LANES(LOW, s)) + __builtin_shufflevector(v[i], v[i + (s)], LANES(HIGH, s));      \
        else if (i < n)                                                                                                                       \
            v[i] += __builtin_shufflevector(v[i], v[i], LANES(HIGH, s));
#if VL > 8
    ADD(8)
#endif
#if VL > 4
    ADD(4)
#endif
#if VL > 2
    ADD(2)
#endif
    ADD(1)
#undef ADD
    return v[0];
}

/* The words of the `left` elements behind `at`, with zeros for what else is in their vector. */
INLINE VW N(last)(const TE *from, int64_t at, int64_t left, K(Bytes) keep)
{
    TE few[VL * G] = { 0 };
    if (at >= 0)
        return (VW)((K(Bytes))B_WORDS(N(along)(from + at)) & keep);
    __builtin_memcpy(few, from, (uint64_t)left * sizeof *from);
    return B_WORDS(N(along)(few));
}

/* What is left of k after whole vectors: vectors that end there, of which the elements that were there before count as zeros. */
INLINE void N(lines_end)(int mr, int nl, VC acc[N(TOGETHER_ROWS)][N(LINES)], const N(Few) *f, int64_t left)
{
    const int64_t    line = f->line, at = f->k - VL * G;
    const K(Bytes)   keep = *(const K(BytesU) *)(K(mask) + left * (int64_t)(sizeof(TW) / G)), all = at >= 0 ? keep : ~(K(Bytes)){ 0 };
    for (int q = 0; q < nl; q++) {
        const TE *from = f->from + q * line;
        VW        w = N(last)(from, at, left, keep);
        UNROLL for (int r = 0; r < mr; r++) {
            const char *x = (const char *)(f->x + r * f->row) + (at > 0 ? at : 0) * (int64_t)(sizeof(TW) / G);
            VW          y = (VW)(*(const K(BytesU) *)x & all);
            acc[r][q] = MULTIPLY_FEW(acc[r][q], y, w);
        }
    }
}

/* mr rows by nl lines, of which the last `wanted` are written. */
INLINE void N(lines)(int mr, int nl, const N(Few) *f, int64_t wanted)
{
    VC            acc[N(TOGETHER_ROWS)][N(LINES)];
    const int64_t line = f->line, left = f->k % (VL * G), end = f->k - left;
    const TE     *from = f->from;
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nl; q++)
            acc[r][q] = (VC){ 0 };
    ROLLED for (int64_t p = 0; p < end; p += VL * G) {
        VW x[N(TOGETHER_ROWS)], w[N(LINES)];
        if (f->far)
            UNROLL for (int q = 0; q < nl; q++)
                __builtin_prefetch(from + (q + nl) * line + p, 0, 2);
        if (nl < mr) { /* the fewer ones stay in registers */
            UNROLL for (int q = 0; q < nl; q++) {
                w[q] = B_WORDS(N(along)(from + q * line + p));
                IN_REGISTER(w[q]);
            }
            UNROLL for (int r = 0; r < mr; r++) {
                x[r] = *(const VWU *)(f->x + r * f->row + p / G);
                IN_REGISTER(x[r]);
                UNROLL for (int q = 0; q < nl; q++)
                    acc[r][q] = MULTIPLY_FEW(acc[r][q], x[r], w[q]);
            }
        } else {
            UNROLL for (int r = 0; r < mr; r++)
                x[r] = *(const VWU *)(f->x + r * f->row + p / G);
            UNROLL for (int q = 0; q < nl; q++) {
                w[q] = B_WORDS(N(along)(from + q * line + p));
                IN_REGISTER(w[q]);
                UNROLL for (int r = 0; r < mr; r++)
                    acc[r][q] = MULTIPLY_FEW(acc[r][q], x[r], w[q]);
            }
        }
    }
    if (left)
        N(lines_end)(mr, nl, acc, f, left);
    VC            v[N(TOGETHER_ROWS) * N(LINES) + VL];
    TC            sums[N(TOGETHER_ROWS) * N(LINES) + VL] __attribute__((aligned(64)));
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int q = 0; q < nl; q++)
            v[r * nl + q] = acc[r][q];
    UNROLL for (int e = 0; e < mr * nl; e += VL)
        *(VC *)(sums + e) = N(sum_lanes)(v + e, mr * nl - e < VL ? mr * nl - e : VL);
    UNROLL for (int r = 0; r < mr; r++)
        for (int64_t q = nl - wanted; q < nl; q++) {
            TC *c = f->c + r * f->c_few + q * f->c_line;
            *c = (f->begin ? f->begin[r] : *c) + sums[r * nl + q];
        }
}

#define LINES_OF(r) (N(SUMS) / (r) < 1 ? 1 : LESS(N(SUMS) / (r), (int)N(LINES)))
/* Rows are taken r at a time, or r and one more: as many lines as those have sums for. */
#define LINES(r, more)                                                                 \
    APART void N(lines_##r)(const N(Few) *f, int64_t n, int64_t wanted)                \
    {                                                                                  \
        if (n == LINES_OF(r))                                                          \
            N(lines)(r, LINES_OF(r), f, wanted);                                       \
        else if (n == LINES_OF(more))                                                  \
            N(lines)(r, LINES_OF(more), f, wanted);                                    \
        else                                                                           \
            N(lines)(r, 1, f, 1);                                                      \
    }
LINES(2, 3)
LINES(3, 4)
LINES(4, 4)
#if MR >= 8
LINES(5, 5)
LINES(6, 6)
LINES(7, 7)
LINES(8, 8)
#endif
#undef LINES

/* A line by a single row: sums in lanes. What is `ahead` bytes behind is fetched. */
INLINE VC N(line)(const N(Few) *f, const TE *from, int ahead)
{
    VC            acc[N(CHAINS)], rest[N(TOGETHER_ROWS)][N(LINES)];
    const int64_t left = f->k % (VL * G), end = f->k - left;
    const TW     *x = f->x;
    const N(Few)  one = { .x = x, .k = f->k, .from = from };
    int64_t       p = 0;
    UNROLL for (int u = 0; u < N(CHAINS); u++)
        acc[u] = (VC){ 0 };
    ROLLED for (; p + (N(CHAINS) - 1) * VL * G < end; p += N(CHAINS) * VL * G)
        UNROLL for (int u = 0; u < N(CHAINS); u++) {
            if (ahead)
                __builtin_prefetch((const char *)(from + p + u * VL * G) + ahead, 0, 2);
            acc[u] = MULTIPLY_FEW(acc[u], *(const VWU *)(x + p / G + u * VL), B_WORDS(N(along)(from + p + u * VL * G)));
        }
    ROLLED for (; p < end; p += VL * G)
        acc[0] = MULTIPLY_FEW(acc[0], *(const VWU *)(x + p / G), B_WORDS(N(along)(from + p)));
    UNROLL for (int s = N(CHAINS) / 2; s > 0; s /= 2)
        UNROLL for (int u = 0; u < s; u++)
            acc[u] += acc[u + s];
    rest[0][0] = acc[0];
    if (left)
        N(lines_end)(1, 1, rest, &one, left);
    return rest[0][0];
}

/* A single row by n lines, line after line: that is how processors foresee them. The sums of some lines' lanes are made together. */
static void N(few_lines)(const N(Few) *f, int64_t n)
{
    VC v[VL];
    TC sums[VL] __attribute__((aligned(64)));
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t count = hlort_min(VL, n - j);
        for (int64_t q = 0; q < VL; q++)
            v[q] = q >= count ? (VC){ 0 } : sizeof(TE) < 4 && f->beyond ? N(line)(f, f->from + (j + q) * f->line, N(ALONG_AHEAD)) : N(line)(f, f->from + (j + q) * f->line, 0);
        *(VC *)sums = N(sum_lanes)(v, VL);
        for (int64_t q = 0; q < count; q++) {
            TC *c = f->c + (j + q) * f->c_line;
            *c = (f->begin ? *f->begin : *c) + sums[q];
        }
    }
}

/* `few` rows by n lines; where those are not enough for a kernel, it gets some again. */
static void N(few_along)(const N(Few) *all, int64_t few, int64_t n)
{
    typedef void        Lines(const N(Few) *, int64_t, int64_t);
    static Lines *const lines[] = {
        0, 0, N(lines_2), N(lines_3), N(lines_4),
#if MR >= 8
        N(lines_5), N(lines_6), N(lines_7), N(lines_8)
#endif
    };
    const int64_t groups = few <= N(TOGETHER_ROWS) ? 1 : hlort_ceildiv(few, N(FEWER_ROWS)), most = hlort_ceildiv(few, groups), at_once = LINES_OF(most);
    const int64_t taken = n < at_once ? 1 : at_once;
    for (int64_t j = 0, wanted; j < n; j += wanted) {
        wanted = hlort_min(taken, n - j);
        for (int64_t q = 0, r = 0; q < groups; q++) {
            const int64_t mr = few / groups + (q < few % groups);
            N(Few)        f = *all;
            f.x += r * f.row;
            f.from += (j + wanted - taken) * f.line;
            f.c += r * f.c_few + (j + wanted - taken) * f.c_line;
            f.begin = f.begin ? f.begin + r : f.begin;
            lines[mr](&f, taken, wanted);
            r += mr;
        }
    }
}
#undef LINES_OF
#undef LESS

/* ---- all of C ---- */

/* What sums of the few rows begin at. */
INLINE void N(begin_few)(TC *begin, const TE *from, int64_t row, int64_t step, int64_t few, int64_t k)
{
    for (int64_t r = 0; r < few; r++)
#if FEW_BEGUN
        begin[r] = N(begin_row)(from + r * row, step, k);
#else
        begin[r] = 0;
    (void)from, (void)row, (void)step, (void)k;
#endif
}

/* Few rows of C or few columns, some of the others at a time. */
static void N(few)(const Gemm *g)
{
    N(Work)      *w = g->work;
    TC            begin[GEMM_MOST_FEW], rest[VL] __attribute__((aligned(64)));
    const int     columns = g->way == GEMM_COLUMNS;
    const TE     *small = columns ? g->b : g->a, *large = columns ? g->a : g->b;
    const int64_t few = columns ? g->n : g->m, count = columns ? g->m : g->n, row = columns ? g->b_col : g->a_row, step = columns ? g->b_row : g->a_col;
    const int64_t line = columns ? g->a_row : g->b_col, along = columns ? g->a_col : g->b_row;
    const int     across = line == 1 && along != 1; /* a single line may be said to be 1 from the next */
    const int64_t most = few < N(FEWER_ROWS) ? N(ALONG_K) * N(FEWER_ROWS) / few / (VL * G) * (VL * G) : N(ALONG_K);
    const int     swept = across && !columns && few == 1 && count >= 4 * VL; /* B in whole lines, however long */
    const int     far = across && !swept && (few <= N(ROWS) || sizeof(TE) > 1) && g->k * along * (int64_t)sizeof(TE) > N(CACHED);
    const int64_t kb = swept ? hlort_even(g->k, N(SWEPT_K), VL * G) : far ? (int64_t)N(FAR_K) : hlort_even(g->k, across ? (int64_t)N(ACROSS_K) : most, VL * G);
    const int64_t blocks = hlort_ceildiv(g->k, kb), x_row = across && !swept ? (int64_t)N(ROW) : kb / G + 16, block = few * x_row;
    const int     aside = columns && across; /* columns of C, which are rows of vectors */
    const int64_t bytes = count * g->k * (int64_t)sizeof(TE);
    const int     once = blocks * block <= KC * NC; /* there is room for all blocks of the rows */
    const int64_t wide = hlort_min(4, MC * NC / (few * N(SPAN))) * N(SPAN); /* whose sums there is room for */
    const int64_t span = aside ? N(TURNED) : far || swept ? wide : across ? (int64_t)N(SPAN) : N(BESIDE);
    N(begin_few)(begin, small, row, step, few, g->k);
    for (int64_t p = 0; p < g->k && once; p += kb)
        N(pack_few)(w->b + p / kb * block, x_row, small + p * step, row, step, few, hlort_min(kb, g->k - p));
    for (int64_t j = 0, n; j < count; j += n) {
        n = hlort_min(span, count - j);
        TC           *c = g->c ? (TC *)g->c + (columns ? j * g->c_row : j) : w->sums;
        const int64_t c_row = g->c ? g->c_row : columns ? few : span;
        TC           *turned = w->sums + N(TURNED) * GEMM_MOST_FEW;
        N(Few)        f = { .row = x_row, .line = line, .along = along, .c = aside ? turned : c, .begin = begin, .far = bytes > N(CACHED), .beyond = bytes > N(SECOND) };
        f.c_few = aside ? N(TURNED) + 16 : columns ? 1 : c_row;
        f.c_line = aside || !columns ? 1 : c_row;
        for (int64_t p = 0; p < g->k || p == 0; p += kb) {
            f.k = hlort_min(kb, g->k - p);
            f.from = large + j * line + p * along;
            TW *x = w->b + (once ? p / kb * block : 0);
            f.x = x;
            if (!once)
                N(pack_few)(x, x_row, small + p * step, row, step, few, f.k);
            if (swept)
                N(few_swept)(&f, n, rest);
            else if (across)
                N(few_across)(&f, few, n);
            else if (few == 1)
                N(few_lines)(&f, n);
            else
                N(few_along)(&f, few, n);
            f.begin = 0;
        }
        if (swept)
            __builtin_memcpy(c + n / VL * VL, rest + VL - n % VL, (uint64_t)(n % VL) * sizeof *c);
        for (int64_t i = 0; i < n && aside; i++)
            for (int64_t r = 0; r < few; r++)
                c[i * c_row + r] = turned[r * f.c_few + i];
        if (g->epilogue && columns)
            N(finish)(g, c, c_row, j, 0, n, few);
        else if (g->epilogue)
            N(finish)(g, c, c_row, 0, j, few, n);
    }
}

/* Rows of B that end less than a vector before B does are copied where vectors are read from their beginning. */
INLINE void N(hold_tail)(const Gemm *g, N(Held) *h, TE *tail)
{
    const int64_t beside = g->b_row > 0 ? hlort_ceildiv(VL - g->n, g->b_row) : g->k;
    h->rows = hlort_max(0, g->k - beside);
    h->tail = tail;
    for (int64_t p = h->rows; p < g->k; p++)
        __builtin_memcpy(tail + (p - h->rows) * VL, h->b + p * g->b_row, (uint64_t)g->n * sizeof *tail);
}

/* Four rows of four elements become columns. */
INLINE void N(turn_few)(const TE *from, int64_t from_row, TE *to, int64_t to_row)
{
    typedef TE Four __attribute__((vector_size(4 * sizeof(TE))));
    Four       r[4], t[4];
    UNROLL for (int i = 0; i < 4; i++)
        __builtin_memcpy(&r[i], from + i * from_row, sizeof r[i]);
    UNROLL for (int i = 0; i < 2; i++) {
        t[2 * i] = __builtin_shufflevector(r[i], r[i + 2], 0, 4, 1, 5);
        t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + 2], 2, 6, 3, 7);
    }
    UNROLL for (int i = 0; i < 2; i++) {
        r[2 * i] = __builtin_shufflevector(t[i], t[i + 2], 0, 4, 1, 5);
        r[2 * i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 6, 3, 7);
    }
    UNROLL for (int i = 0; i < 4; i++)
        __builtin_memcpy(to + i * to_row, &r[i], sizeof r[i]);
}

/* B along whose lines k lies, as rows of whole vectors. Blocks at the edges are moved back: what they share with those before is written twice. Lines of less than a block are read as far as
 * one goes while that is still B: what comes of it is behind the last row. */
APART int64_t N(hold_turned)(const Gemm *g, TE *to)
{
    const TE     *from = g->b;
    const int64_t row = hlort_ceildiv(g->n, VL) * VL, n = g->n, k = g->k;
    int64_t       done = 0;
    if (n < VL)
        __builtin_memset(to, 0, (uint64_t)(k * row) * sizeof *to);
    for (; k > 0 && k < 4 && (done + 3) * g->b_col + 4 <= (n - 1) * g->b_col + k; done += 4)
        N(turn_few)(from + done * g->b_col, g->b_col, to + done, row);
    for (int64_t j = done; j < n; j += 4)
        for (int64_t p = 0; p < k; p += 4) {
            const int64_t at_j = hlort_min(j, n - 4), at_p = hlort_min(p, k - 4);
            if (at_j >= 0 && at_p >= 0)
                N(turn_few)(from + at_j * g->b_col + at_p, g->b_col, to + at_p * row + at_j, row);
            else
                for (int64_t q = j; q < hlort_min(n, j + 4); q++)
                    for (int64_t s = p; s < hlort_min(k, p + 4); s++)
                        to[s * row + q] = from[q * g->b_col + s];
        }
    return row;
}

/* Processors foresee few of the lines that rows read side by side need next. */
INLINE void N(fetch_rows)(const TE *a, int64_t row, int64_t k)
{
    for (int64_t r = 0; r < N(HELD_ROWS); r++)
        for (int64_t p = 0; p < k; p += 64 / (int64_t)sizeof *a)
            __builtin_prefetch(a + r * row + p, 0, 3);
}

/* B is read again for a few rows at a time. It lies as it was, or turned in `copied`. */
APART void N(small_rows)(const Gemm *g, TE *copied)
{
    N(Work)  *w = g->work;
    N(Held)   h = { g->b, g->b, g->k };
    const int turned = g->b == copied;
    const int fetches = g->a_col == 1 && g->a_row * (int64_t)sizeof(TE) >= N(APART_BYTES) && g->m * g->a_row * (int64_t)sizeof(TE) > N(CACHED);
    if (g->n < VL && !turned)
        N(hold_tail)(g, &h, copied);
    for (int64_t j = 0, columns; j < g->n; j += columns) {
        columns = g->n - j <= N(SPAN) ? g->n - j : N(SPAN) - (g->n - j < N(SPAN) + VL ? VL : 0); /* what is left fills a vector */
        for (int64_t i = 0; i < g->m; i += N(HELD_ROWS)) {
            const int64_t rows = hlort_min(N(HELD_ROWS), g->m - i), c_row = g->c ? g->c_row : columns;
            const TE     *a = (const TE *)g->a + i * g->a_row;
            TC           *c = g->c ? (TC *)g->c + i * c_row + j : w->sums;
            if (fetches && i + 2 * N(HELD_ROWS) <= g->m)
                N(fetch_rows)(a + N(HELD_ROWS) * g->a_row, g->a_row, g->k);
            if (columns >= VL)
                N(hold_rows)(g, a, (const TE *)g->b + j, c, c_row, rows, columns);
            else
                N(hold_few_columns)(g, a, &h, c, c_row, rows, columns);
            if (g->epilogue)
                N(finish)(g, c, c_row, i, j, rows, columns);
        }
    }
}

static void N(small)(const Gemm *g)
{
    TE  *copied = (TE *)(void *)((N(Work) *)g->work)->b;
    Gemm turned;
    if (g->b_col == 1) { /* what has just been written is not copied: a small product takes no longer than that */
        N(small_rows)(g, copied);
        return;
    }
    const int64_t most = hlort_max(VL, GEMM_MOST_HELD / (g->k * (int64_t)sizeof *copied + 1) / VL * VL); /* columns that are held at once */
    for (int64_t j = 0; j < g->n; j += most) {
        Gemm some = *g;
        some.n = hlort_min(most, g->n - j);
        some.b = (const TE *)g->b + j * g->b_col;
        some.c = g->c ? (TC *)g->c + j : 0;
        some.column += j;
        some.place += j;
        turned = some;
        turned.b = copied;
        turned.b_row = N(hold_turned)(&some, copied);
        turned.b_col = 1;
        N(small_rows)(&turned, copied);
    }
}

_Static_assert(GEMM_MOST_FEW * N(SPAN) <= MC * NC && N(HELD_ROWS) * N(SPAN) <= MC * NC && GEMM_MOST_FEW * (2 * N(TURNED) + 16) <= MC * NC, "sums");
_Static_assert(GEMM_MOST_FEW * (4096 / (int)sizeof(TW) + 16) <= KC * NC, "few");
_Static_assert(GEMM_MOST_HELD * VL <= sizeof(((N(Work) *)0)->b), "held");

#if G == 1
#include "runtime/few_body.h"
#endif
#ifdef HELD_PAIRS
#include "runtime/pairs_body.h"
#endif

static void N(gemm)(const Gemm *g)
{
    if (g->way == GEMM_TILES)
        N(tiles)(g);
#if G == 1
    else if (g->way == GEMM_BOTH)
        N(both)(g);
#endif
#ifdef HELD_PAIRS
    else if (g->way == GEMM_PAIRS)
        N(pairs)(g);
#endif
    else if (g->way == GEMM_PACK)
        N(pack)(g);
    else if (g->way == GEMM_HELD)
        N(small)(g);
    else
        N(few)(g);
}

#undef LANES
#undef LOW
#undef HIGH
