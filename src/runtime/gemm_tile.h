/* gemm_tile.h - tiles of the product: the sums of some rows and columns along a block of k, once for all words.
 *
 * A word has 32 or 64 bits: it is what one lane multiplies, one element or, of narrow ones, neighbours along k. Who includes it defines
 *
 *   K(x)                name of x for this kind of word and set of instructions
 *   TW, TC              word, accumulator
 *   VW, VC              vectors of VL words, of VL accumulators       VL
 *   VWU, VCU            the same at any address
 *   MR, NV              a tile: MR rows, NV vectors of columns
 *   KC                  words of k in a block
 *   MULTIPLY_ADD(c, a, b)   c + a * b, a word for all lanes and a vector of words
 *   IN_PLACE            1: there are kernels that read B where it lies. They want
 *   TB, IN_WORD         what lies there, so many rows of which are words
 *   LOAD_WORDS(w, from, row)   NV vectors of words from rows that are `row` apart
 *   BEGUN               sums of a tile begin at what its columns have in `begin`, not at 0
 *
 * A is packed as [row][k], B as [k][NV * VL]. */

/* A vector of these from byte n on keeps the last n bytes of another one. */
typedef uint8_t K(Bytes) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t K(BytesU) __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
static const uint8_t K(mask)[2 * VECTOR_BYTES] = { [VECTOR_BYTES ... 2 * VECTOR_BYTES - 1] = 0xff };

enum { K(NR) = NV * VL, K(LDA) = KC + 16 }; /* + 16: rows that are a power of two apart would share their place in the cache */

typedef struct {
    int64_t   kc; /* words of k */
    const TW *a;  /* packed rows */
    TW       *b;  /* packed panel */
#if IN_PLACE
    const TB *from;     /* B where it lies, for the kernels that read it there */
    int64_t   from_row, from_next; /* to the next row, to the panel that comes then */
#endif
    const char *ahead;  /* what is fetched into the second cache meanwhile, unless it is 0: pieces of some bytes */
    int64_t   ahead_bytes, ahead_step;
    TC       *c;
    int64_t   c_row;
    int       add;      /* C is begun */
    const TC *begin;    /* BEGUN */
} K(Tile);

/* PACKED reads the panel, NARROW its first vectors, PACKING reads B where it lies and writes the panel, PLAIN only reads B. */
enum { K(PACKED), K(NARROW), K(PACKING), K(PLAIN) };
enum { K(SHORT) = 128 }; /* words of k that are not worth more loops */
#if IN_PLACE
enum { K(NEAR) = 4, K(FAR) = 32 }; /* words ahead that B is fetched into the first and the second cache: in the first one rows far apart share their place */

/* Rows of words that come soon, and those that are `far`, to the last byte: the line that a row begins in was the last one of the panel before. */
INLINE void K(fetch)(const TB *from, int64_t row, const TB *far)
{
    const int size = (int)sizeof(TB) * K(NR);
    UNROLL for (int g = 0; g < IN_WORD; g++)
        UNROLL for (int at = 0; at < size; at += 64) {
            const int last = at + 63 < size ? at + 63 : size - 1;
            __builtin_prefetch((const char *)(from + (K(NEAR) * IN_WORD + g) * row) + last);
            __builtin_prefetch((const char *)(far + g * row) + last, 0, 2);
        }
}
#endif

typedef struct {
    const TW *a;
    TW       *b;
#if IN_PLACE
    const TB *from, *far, *wrap; /* after wrap comes what lies `jump` from there */
    int64_t   row, jump;
#endif
} K(At);

INLINE void K(step)(int mr, int nv, int mode, VC acc[MR][NV], K(At) *x)
{
    VW w[NV];
    if (mode == K(PACKED))
        UNROLL for (int v = 0; v < nv; v++)
            w[v] = *(const VW *)(x->b + v * VL);
#if IN_PLACE
    if (mode != K(PACKED)) {
        if (x->far >= x->wrap)
            x->far += x->jump;
        LOAD_WORDS(w, x->from, x->row);
        K(fetch)(x->from, x->row, x->far);
        x->from += IN_WORD * x->row;
        x->far += IN_WORD * x->row;
    }
    if (mode == K(PACKING))
        UNROLL for (int v = 0; v < nv; v++)
            *(VW *)(x->b + v * VL) = w[v];
#endif
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = MULTIPLY_ADD(acc[r][v], x->a[r * K(LDA)], w[v]);
    x->a++;
    x->b += K(NR);
}

/* C's rows are fetched one a step, then what is ahead. */
INLINE void K(tile)(int mr, int nv, int mode, const K(Tile) *t)
{
    VC            acc[MR][NV];
    K(At)         x = { .a = t->a, .b = t->b };
    const TW     *end = t->a + t->kc;
    const int64_t c_row = t->c_row;
    TC           *c = t->c;
#if IN_PLACE
    if (mode != K(PACKED)) {
        x.from = t->from;
        x.row = t->from_row;
        x.far = t->from + hlort_min(t->kc, K(FAR)) * IN_WORD * x.row;
        x.wrap = t->from + t->kc * IN_WORD * x.row;
        x.jump = t->from_next - t->kc * IN_WORD * x.row;
    }
#endif
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = BEGUN ? *(const VC *)(t->begin + v * VL) : (VC){ 0 };
    if (t->kc < K(SHORT)) {
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                __builtin_prefetch(c + r * c_row + v * VL, 1);
    } else {
        ROLLED for (const TW *turn = x.a + mr; x.a < turn; c += c_row) {
            UNROLL for (int v = 0; v < nv; v++)
                __builtin_prefetch(c + v * VL, 1);
            K(step)(mr, nv, mode, acc, &x);
        }
        c = t->c;
    }
    if (t->ahead) {
        const int64_t step = t->ahead_step, skip = step - (t->ahead_bytes + 127) / 128 * 128;
        const char   *ahead = t->ahead, *piece = ahead + t->ahead_bytes;
        ROLLED while (x.a < end) {
            __builtin_prefetch(ahead, 0, 2);
            __builtin_prefetch(ahead + 64, 0, 2);
            ahead += 128;
            if (ahead >= piece) {
                ahead += skip;
                piece += step;
            }
            K(step)(mr, nv, mode, acc, &x);
        }
    }
    ROLLED while (x.a < end)
        K(step)(mr, nv, mode, acc, &x);
    if (t->add)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] += *(const VCU *)(c + r * c_row + v * VL);
    else /* a product that underflows leaves -0, behind which zeros may be left out */
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] += (VC){ 0 };
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + r * c_row + v * VL) = acc[r][v];
}

/* A function for each number of rows, of vectors, and each mode. */
typedef void K(Kernel)(const K(Tile) *);
#undef ROWS
#if MR == 14
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif MR == 8
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#elif MR == 6
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif MR == 5
#define ROWS(X) X(1) X(2) X(3) X(4) X(5)
#endif
#define X(r)                                                    \
    APART void K(packed1_##r)(const K(Tile) *t)                 \
    {                                                           \
        K(tile)(r, 1, K(PACKED), t);                            \
    }                                                           \
    APART void K(packed_##r)(const K(Tile) *t)                  \
    {                                                           \
        K(tile)(r, NV, K(PACKED), t);                           \
    }
ROWS(X)
#undef X
#if IN_PLACE
#define X(r)                                                    \
    APART void K(packing_##r)(const K(Tile) *t)                 \
    {                                                           \
        K(tile)(r, NV, K(PACKING), t);                          \
    }                                                           \
    APART void K(plain_##r)(const K(Tile) *t)                   \
    {                                                           \
        K(tile)(r, NV, K(PLAIN), t);                            \
    }
ROWS(X)
#undef X
#define X(r) [r] = { K(packed_##r), K(packed1_##r), K(packing_##r), K(plain_##r) },
#else
#define X(r) [r] = { K(packed_##r), K(packed1_##r) },
#endif
static K(Kernel) *const K(kernels)[MR + 1][2 + 2 * IN_PLACE] = { ROWS(X) };
#undef X
#if IN_PLACE
#undef TB
#undef IN_WORD
#undef LOAD_WORDS
#endif
