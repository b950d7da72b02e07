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
 *   FUSED               words lie in memory as such: 1, there are kernels that read B where it lies
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
    const TW *from;
    int64_t   from_row; /* B where it lies, for the kernels that read it there */
    TC       *c;
    int64_t   c_row;
    int       add;      /* C is begun */
    const TC *begin;    /* BEGUN */
} K(Tile);

/* PACKED reads the panel, NARROW its first vectors, PACKING reads B where it lies and writes the panel, PLAIN only reads B. */
enum { K(PACKED), K(NARROW), K(PACKING), K(PLAIN) };
enum { K(NEAR) = 4, K(FAR) = 32 }; /* rows ahead that B is fetched into the first and the second cache */

INLINE void K(fetch)(const TW *from, int64_t row)
{
    UNROLL for (int at = 0; at < (int)sizeof(TW) * K(NR); at += 64) {
        __builtin_prefetch((const char *)(from + K(NEAR) * row) + at);
        __builtin_prefetch((const char *)(from + K(FAR) * row) + at, 0, 2);
    }
}

INLINE void K(step)(int mr, int nv, int mode, VC acc[MR][NV], const TW *a, TW *b, const TW *from, int64_t row)
{
    VW w[NV];
    if (mode == K(PACKED)) {
        UNROLL for (int v = 0; v < nv; v++)
            w[v] = *(const VW *)(b + v * VL);
    } else {
        UNROLL for (int v = 0; v < nv; v++)
            w[v] = *(const VWU *)(from + v * VL);
        K(fetch)(from, row);
    }
    if (mode == K(PACKING))
        UNROLL for (int v = 0; v < nv; v++)
            *(VW *)(b + v * VL) = w[v];
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[r][v] = MULTIPLY_ADD(acc[r][v], a[r * K(LDA)], w[v]);
}

INLINE void K(tile)(int mr, int nv, int mode, const K(Tile) *t)
{
    VC            acc[MR][NV];
    const TW     *a = t->a, *end = a + t->kc;
    TW           *b = t->b;
    const TW     *from = t->from;
    const int64_t row = t->from_row, c_row = t->c_row;
    TC           *c = t->c;
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++) {
            acc[r][v] = BEGUN ? *(const VC *)(t->begin + v * VL) : (VC){ 0 };
            __builtin_prefetch(c + r * c_row + v * VL, 1);
        }
    ROLLED for (; a < end; a++) {
        K(step)(mr, nv, mode, acc, a, b, from, row);
        b += K(NR);
        if (mode != K(PACKED))
            from += row;
    }
    if (t->add)
        UNROLL for (int r = 0; r < mr; r++)
            UNROLL for (int v = 0; v < nv; v++)
                acc[r][v] += *(const VCU *)(c + r * c_row + v * VL);
    UNROLL for (int r = 0; r < mr; r++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)(c + r * c_row + v * VL) = acc[r][v];
}

/* A function for each number of rows, of vectors, and each mode. */
typedef void K(Kernel)(const K(Tile) *);
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
#if FUSED
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
static K(Kernel) *const K(kernels)[MR + 1][2 + 2 * FUSED] = { ROWS(X) };
#undef X
#undef ROWS
