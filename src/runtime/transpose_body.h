/* transpose_body.h - rectangles turned in registers, for one set of instructions and elements of TURN_BYTES.
 *
 * Whole lines of 64 bytes are read and written. A line is a few vectors, a vector is Q pieces of 128 bits with T elements each. In each piece T rows of T elements are
 * turned by log2(T) rounds, in which the vectors (i, i + T/2) are interleaved,
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
 *     b0 b1 b2 b3   =>   a2 c2 a3 c3   =>   a1 b1 c1 d1
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 *
 * which is done for four times T rows; then pieces of those four change places, and each column is a line. */

#define Q        (VECTOR_BYTES / 16)
#define T        (16 / TURN_BYTES)
#define VT       (VECTOR_BYTES / TURN_BYTES)
#define TURN(x)  HLORT_PASTE(HLORT_PASTE(hlort_turn_##x, TURN_BYTES), HLORT_SET)

typedef HLORT_PASTE(TURN_WORD, TURN_BYTES) TURN(v) __attribute__((vector_size(VECTOR_BYTES)));
typedef HLORT_PASTE(TURN_WORD, TURN_BYTES) TURN(vu) __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

#if TURN_BYTES == 1
#define LOW(k)  16 * k, VT + 16 * k, 16 * k + 1, VT + 16 * k + 1, 16 * k + 2, VT + 16 * k + 2, 16 * k + 3, VT + 16 * k + 3, 16 * k + 4, VT + 16 * k + 4, 16 * k + 5, \
    VT + 16 * k + 5, 16 * k + 6, VT + 16 * k + 6, 16 * k + 7, VT + 16 * k + 7
#define HIGH(k) 16 * k + 8, VT + 16 * k + 8, 16 * k + 9, VT + 16 * k + 9, 16 * k + 10, VT + 16 * k + 10, 16 * k + 11, VT + 16 * k + 11, 16 * k + 12, VT + 16 * k + 12, \
    16 * k + 13, VT + 16 * k + 13, 16 * k + 14, VT + 16 * k + 14, 16 * k + 15, VT + 16 * k + 15
#elif TURN_BYTES == 2
#define LOW(k)  8 * k, VT + 8 * k, 8 * k + 1, VT + 8 * k + 1, 8 * k + 2, VT + 8 * k + 2, 8 * k + 3, VT + 8 * k + 3
#define HIGH(k) 8 * k + 4, VT + 8 * k + 4, 8 * k + 5, VT + 8 * k + 5, 8 * k + 6, VT + 8 * k + 6, 8 * k + 7, VT + 8 * k + 7
#elif TURN_BYTES == 4
#define LOW(k)  4 * k, VT + 4 * k, 4 * k + 1, VT + 4 * k + 1
#define HIGH(k) 4 * k + 2, VT + 4 * k + 2, 4 * k + 3, VT + 4 * k + 3
#else
#define LOW(k)  2 * k, VT + 2 * k
#define HIGH(k) 2 * k + 1, VT + 2 * k + 1
#endif
#if TURN_BYTES == 1
#define TURN_FEW_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define TURN_FEW_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define TURN_MORE_LOW 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55
#define TURN_MORE_HIGH 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63
#elif TURN_BYTES == 2
#define TURN_FEW_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define TURN_FEW_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define TURN_MORE_LOW 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27
#define TURN_MORE_HIGH 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31
#elif TURN_BYTES == 4
#define TURN_FEW_LOW  0, 4, 1, 5
#define TURN_FEW_HIGH 2, 6, 3, 7
#define TURN_MORE_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define TURN_MORE_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#else
#define TURN_FEW_LOW  0, 2
#define TURN_FEW_HIGH 1, 3
#define TURN_MORE_LOW 0, 4, 2, 6
#define TURN_MORE_HIGH 1, 5, 3, 7
#endif
#if VECTOR_BYTES == 64
#define PIECES(f) f(0), f(1), f(2), f(3)
#elif VECTOR_BYTES == 32
#define PIECES(f) f(0), f(1)
#else
#define PIECES(f) f(0)
#endif

/* Where row i is: rows are `row` apart, or lie as a table says. */
INLINE int64_t TURN(at)(const int64_t *rows, int64_t row, int64_t i)
{
    return rows ? rows[i] : i * row;
}

/* Columns of T rows, from row `first` on: piece q of r[i] is column q * T + i. */
INLINE void TURN(pieces)(TURN(v) r[T], const char *from, const int64_t *rows, int64_t from_row, int first)
{
    UNROLL for (int i = 0; i < T; i++)
        r[i] = *(const TURN(vu) *)(from + TURN(at)(rows, from_row, first + i));
#if T > 1
    UNROLL for (int round = 1; round < T; round *= 2) {
        TURN(v) s[T];
        UNROLL for (int i = 0; i < T / 2; i++) {
            s[2 * i] = __builtin_shufflevector(r[i], r[i + T / 2], PIECES(LOW));
            s[2 * i + 1] = __builtin_shufflevector(r[i], r[i + T / 2], PIECES(HIGH));
        }
        UNROLL for (int i = 0; i < T; i++)
            r[i] = s[i];
    }
#endif
}

INLINE void TURN(put)(char *to, SET(pairs) v, const int past)
{
    if (past)
        SET(hlort_past_caches)(to, v);
    else
        *(SET(pairs_u) *)to = v;
}

INLINE void TURN(block_of)(const char *from, const int64_t *rows, int64_t from_row, char *to, const int64_t *columns, int64_t to_row, const int past)
{
    for (int h = 0; h < HLORT_LINE / VECTOR_BYTES; h++) {
        TURN(v) r[4][T];
#if TURN_BYTES < 4
        ROLLED
#else
        UNROLL
#endif
        for (int g = 0; g < 4; g++)
            TURN(pieces)(r[g], from + h * VECTOR_BYTES, rows, from_row, g * T);
        UNROLL for (int i = 0; i < T; i++) {
            SET(pairs) p[4], line[Q][4 / Q];
            UNROLL for (int g = 0; g < 4; g++)
                p[g] = (SET(pairs))r[g][i];
#if VECTOR_BYTES == 64
            SET(pairs) a = __builtin_shufflevector(p[0], p[1], 0, 1, 2, 3, 8, 9, 10, 11), b = __builtin_shufflevector(p[0], p[1], 4, 5, 6, 7, 12, 13, 14, 15);
            SET(pairs) c = __builtin_shufflevector(p[2], p[3], 0, 1, 2, 3, 8, 9, 10, 11), d = __builtin_shufflevector(p[2], p[3], 4, 5, 6, 7, 12, 13, 14, 15);
            line[0][0] = __builtin_shufflevector(a, c, 0, 1, 4, 5, 8, 9, 12, 13);
            line[1][0] = __builtin_shufflevector(a, c, 2, 3, 6, 7, 10, 11, 14, 15);
            line[2][0] = __builtin_shufflevector(b, d, 0, 1, 4, 5, 8, 9, 12, 13);
            line[3][0] = __builtin_shufflevector(b, d, 2, 3, 6, 7, 10, 11, 14, 15);
#elif VECTOR_BYTES == 32
            UNROLL for (int g = 0; g < 2; g++) {
                line[0][g] = __builtin_shufflevector(p[2 * g], p[2 * g + 1], 0, 1, 4, 5);
                line[1][g] = __builtin_shufflevector(p[2 * g], p[2 * g + 1], 2, 3, 6, 7);
            }
#else
            UNROLL for (int g = 0; g < 4; g++)
                line[0][g] = p[g];
#endif
            UNROLL for (int q = 0; q < Q; q++)
                UNROLL for (int g = 0; g < 4 / Q; g++)
                    TURN(put)(to + TURN(at)(columns, to_row, (h * Q + q) * T + i) + g * VECTOR_BYTES, line[q][g], past);
        }
    }
}

INLINE void TURN(block)(const char *from, int64_t from_row, char *to, int64_t to_row, const int past)
{
    TURN(block_of)(from, NULL, from_row, to, NULL, to_row, past);
}

/* ---- what lines do not fill: vectors of 128 bits, one piece of those above ---- */

typedef HLORT_PASTE(TURN_WORD, TURN_BYTES) TURN(few) __attribute__((vector_size(16)));

INLINE TURN(few) TURN(few_load)(const char *from, int64_t bytes, const int whole)
{
    hlort_two_words x = { 0 };
    if (whole)
        __builtin_memcpy(&x, from, 16);
    else
        x = hlort_load_part(from, bytes);
    return (TURN(few))x;
}

INLINE void TURN(few_store)(char *to, TURN(few) x, int64_t bytes, const int whole)
{
    if (whole)
        __builtin_memcpy(to, &x, 16);
    else
        hlort_store_part(to, (hlort_two_words)x, bytes);
}

/* So many rounds of n vectors. */
INLINE void TURN(zip)(TURN(few) *r, const int n, const int rounds)
{
#if T > 1
    UNROLL for (int round = 0; round < rounds; round++) {
        TURN(few) s[T];
        UNROLL for (int i = 0; i < n / 2; i++) {
            s[2 * i] = __builtin_shufflevector(r[i], r[i + n / 2], TURN_FEW_LOW);
            s[2 * i + 1] = __builtin_shufflevector(r[i], r[i + n / 2], TURN_FEW_HIGH);
        }
        UNROLL for (int i = 0; i < n; i++)
            r[i] = s[i];
    }
#else
    (void)r, (void)n, (void)rounds;
#endif
}

enum { TURN(rounds) = T == 16 ? 4 : T == 8 ? 3 : T == 4 ? 2 : T == 2 };

/* ---- cells of some times T rows and T columns: a vector is pieces of rows that are T apart, loads that put them there are no shuffles, and what rounds leave is a column ---- */

#if VECTOR_BYTES >= 32
typedef HLORT_PASTE(TURN_WORD, TURN_BYTES) TURN(more) __attribute__((vector_size(32)));
typedef HLORT_PASTE(TURN_WORD, TURN_BYTES) TURN(more_u) __attribute__((vector_size(32), aligned(1), may_alias));
#endif

/* Of one round. */
#if T > 1
#define TURN_ROUND(type, low, high)                                          \
    {                                                                        \
        type s[T];                                                           \
        UNROLL for (int i = 0; i < T / 2; i++) {                             \
            s[2 * i] = __builtin_shufflevector(r[i], r[i + T / 2], low);     \
            s[2 * i + 1] = __builtin_shufflevector(r[i], r[i + T / 2], high); \
        }                                                                    \
        UNROLL for (int i = 0; i < T; i++)                                   \
            r[i] = s[i];                                                     \
    }
#else
#define TURN_ROUND(type, low, high) { }
#endif

INLINE hlort_two_words TURN(piece)(const char *from, int64_t from_row, int64_t row)
{
    hlort_two_words x;
    __builtin_memcpy(&x, from + row * from_row, 16);
    return x;
}

INLINE void TURN(cell)(const char *from, int64_t from_row, char *to, int64_t to_row, const int times)
{
    (void)times;
#if VECTOR_BYTES == 64
    if (times == 4) {
        TURN(v) r[T];
        UNROLL for (int i = 0; i < T; i++)
            r[i] = (TURN(v))SET(hlort_four_pieces)(TURN(piece)(from, from_row, i), TURN(piece)(from, from_row, T + i), TURN(piece)(from, from_row, 2 * T + i), TURN(piece)(from, from_row, 3 * T + i));
        UNROLL for (int round = 1; round < T; round *= 2)
            TURN_ROUND(TURN(v), PIECES(LOW), PIECES(HIGH))
        UNROLL for (int i = 0; i < T; i++)
            *(TURN(vu) *)(to + i * to_row) = r[i];
    } else
#endif
#if VECTOR_BYTES >= 32
    if (times == 2) {
        TURN(more) r[T];
        UNROLL for (int i = 0; i < T; i++)
            r[i] = (TURN(more))__builtin_shufflevector(TURN(piece)(from, from_row, i), TURN(piece)(from, from_row, T + i), 0, 1, 2, 3);
        UNROLL for (int round = 1; round < T; round *= 2)
            TURN_ROUND(TURN(more), TURN_MORE_LOW, TURN_MORE_HIGH)
        UNROLL for (int i = 0; i < T; i++)
            *(TURN(more_u) *)(to + i * to_row) = r[i];
    } else
#endif
    {
        TURN(few) r[T];
        UNROLL for (int i = 0; i < T; i++)
            r[i] = (TURN(few))TURN(piece)(from, from_row, i);
        TURN(zip)(r, T, TURN(rounds));
        UNROLL for (int i = 0; i < T; i++)
            __builtin_memcpy(to + i * to_row, &r[i], 16);
    }
}

/* Strips of some rows, one below the other, of members of a batch. The last strip ends with the rows, its last cell with the columns. Lines that the next strip is stored to are fetched where it comes soon. */
typedef struct TURN(Strips) {
    const char *from;
    char       *to;
    int64_t     from_row, to_row, rows, columns, members, from_next, to_next;
} TURN(Strips);

INLINE void TURN(strips_of)(const TURN(Strips) *x, const int times)
{
    const int64_t from_row = x->from_row, to_row = x->to_row, columns = x->columns, last = columns - T, last_row = x->rows - times * T;
    const int     soon = times > 1 && columns <= 32 * T;
    const char   *from_member = x->from;
    char         *to_member = x->to;
    ROLLED for (int64_t k = 0; k < x->members; k++, from_member += x->from_next, to_member += x->to_next) {
        const char *from_strip = from_member;
        char       *to_strip = to_member;
        ROLLED for (int64_t r = 0; r < last_row + times * T; r += times * T, from_strip += times * T * from_row, to_strip += 16 * times) {
            if (r > last_row) {
                from_strip -= (r - last_row) * from_row;
                to_strip -= (r - last_row) * TURN_BYTES;
            }
            const char *from = from_strip;
            char       *to = to_strip;
            const int   next = soon && r < last_row;
            ROLLED for (int64_t c = 0; c < columns; c += T, from += 16, to += T * to_row) {
                if (c > last) {
                    from -= (c - last) * TURN_BYTES;
                    to -= (c - last) * to_row;
                }
                if (next)
                    UNROLL for (int i = 0; i < T; i++)
                        __builtin_prefetch(to + i * to_row + HLORT_LINE, 1, 3);
                TURN(cell)(from, from_row, to, to_row, times);
            }
        }
    }
}

APART void TURN(strips_1)(const TURN(Strips) *x)
{
    TURN(strips_of)(x, 1);
}

#if VECTOR_BYTES >= 32
APART void TURN(strips_2)(const TURN(Strips) *x)
{
    TURN(strips_of)(x, 2);
}
#endif

#if VECTOR_BYTES >= 64
APART void TURN(strips_4)(const TURN(Strips) *x)
{
    TURN(strips_of)(x, 4);
}
#endif

INLINE void TURN(strips)(const TURN(Strips) *x, int times)
{
#if VECTOR_BYTES >= 64
    if (times == 4) {
        TURN(strips_4)(x);
        return;
    }
#endif
#if VECTOR_BYTES >= 32
    if (times == 2) {
        TURN(strips_2)(x);
        return;
    }
#endif
    (void)times;
    TURN(strips_1)(x);
}

/* Of the rows that are left: what a vector holds, which is a smaller one for fewer, or ends with them. */
INLINE int TURN(cell_times)(int64_t rows, int64_t left)
{
    if (left == 0)
        left = rows;
    return VECTOR_BYTES >= 64 && rows >= 4 * T && left > 2 * T ? 4 : VECTOR_BYTES >= 32 && rows >= 2 * T && left > T ? 2 : 1;
}

/* At least T rows and columns. Lines of the result that rows end within are in the first cache when the next rows begin there. */
static void TURN(even_strips)(const TurnPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES, NEAR = 16 * 1024 };
    const int64_t rows = x->rows, columns = x->columns;
    const int     times = TURN(cell_times)(rows, rows), rest_times = TURN(cell_times)(rows, rows % (times * T));
    const int64_t done = rest_times < times ? rows - rows % (times * T) : rows, rest = rows - rest_times * T;
    const int64_t most = rows * columns * TURN_BYTES <= NEAR ? columns : hlort_max(1, NEAR / (rows * HLORT_LINE)) * EDGE;
    TURN(Strips)  y = { x->from, x->to, x->from_row, x->to_row, done, columns, x->times, x->from_next, x->to_next };
    if (done == rows && (most == columns || rows == times * T)) {
        TURN(strips)(&y, times);
        return;
    }
    y.members = 1;
    ROLLED for (int64_t k = 0; k < x->times; k++)
        ROLLED for (int64_t c0 = 0; c0 < columns; c0 += most) {
            const int64_t c = hlort_min(c0, hlort_max(0, columns - T));
            y.rows = done;
            y.columns = hlort_min(most, columns - c);
            y.from = x->from + k * x->from_next + c * TURN_BYTES;
            y.to = x->to + k * x->to_next + c * x->to_row;
            TURN(strips)(&y, times);
            if (done < rows) {
                y.rows = rest_times * T;
                y.from += rest * x->from_row;
                y.to += rest * TURN_BYTES;
                TURN(strips)(&y, rest_times);
            }
        }
}

enum { TURN(page) = 4096, TURN(ways) = 8 }; /* of the first cache: bytes of a way, lines so far apart being in the same set; and lines that a set has, at least */

/* More of so many rows' lines than `ways` are in one set. */
INLINE int TURN(crowds)(int64_t rows, int64_t row, int64_t ways)
{
    return rows * hlort_min(TURN(page), row & -row) > ways * TURN(page);
}

/* Blocks take more shuffles, most for the smallest elements, and do some rows and columns twice; but they read lines whole. Rows of which a strip's are in the same sets of the first cache leave it
 * before their next piece is wanted. */
static int TURN(prefers_strips)(const TurnPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES, WAYS = 6 };
    const int64_t rows = x->rows, columns = x->columns;
    const int     crowded = TURN(crowds)(hlort_min(rows, EDGE), x->from_row, WAYS);
    if (T < 2 || VECTOR_BYTES < 32)
        return 0;
    if (T < 4)
        return columns < 3 * EDGE ? columns % EDGE != 0 || rows >= 16 * EDGE : rows < 2 * EDGE && rows % EDGE != 0;
    if (T < 8)
        return (columns < 3 * EDGE && columns % EDGE != 0) || (rows < 3 * EDGE && !crowded);
    return columns < 3 * EDGE || !crowded;
}

/* Lines of the result that a block is stored to crowd their sets. */
INLINE int TURN(is_crowded)(const TurnPart *x)
{
    return T >= 4 && VECTOR_BYTES >= 32 && TURN(crowds)(HLORT_LINE / TURN_BYTES, x->to_row, TURN(ways));
}

/* Lines of the result that a block is stored to are more than a set of the first cache has room for, so that each waits for the next cache: T columns at a time are stored from the first row to the
 * last, and lines of the source, which the first cache has room for, are read four times. */
static void TURN(down)(const TurnPart *x)
{
    enum { ROWS = Q * T };
    ROLLED for (int64_t c0 = 0; c0 < x->columns; c0 += T) {
        const int64_t c = hlort_min(c0, x->columns - T);
        const char   *from = x->from + c * TURN_BYTES;
        char         *to = x->to + c * x->to_row;
        ROLLED for (int64_t r0 = 0; r0 < x->rows; r0 += ROWS) {
            const int64_t r = hlort_min(r0, x->rows - ROWS);
            TURN(cell)(from + r * x->from_row, x->from_row, to + r * TURN_BYTES, x->to_row, Q);
        }
    }
}

/* Blocks at the lower and the right edge are moved back: what they share with those before is written twice. The next block across is fetched ahead, since it lies on
 * the same pages; the one below where there is none. So are lines that the next block is stored to, across or, of a few columns of many rows, below, which no processor foresees (one thread of an Emerald Rapids, f32:
 * 1024 x 1000 438 and 355 us, 1000 x 1024 607 and 355; 2000 x 1500 of 16 bits 995 and 630; 2427 x 16 8.2 and 4.9). */
INLINE void TURN(part)(const TurnPart *x, const int past)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t rows = x->rows, columns = x->columns, from_row = x->from_row, to_row = x->to_row;
    const int     narrow = columns <= 4 * EDGE, tall = narrow && rows >= 8 * EDGE;
    ROLLED for (int64_t c0 = 0; c0 < columns; c0 += EDGE) {
        const int64_t c = hlort_min(c0, columns - EDGE);
        ROLLED for (int64_t r0 = 0; r0 < rows; r0 += EDGE) {
            const int64_t r = hlort_min(r0, rows - EDGE);
            const char   *from = x->from + r * from_row + c * TURN_BYTES;
            char         *to = x->to + c * to_row + r * TURN_BYTES;
            if (narrow && r + 2 * EDGE <= rows)
                ROLLED for (int i = 0; i < EDGE; i++)
                    __builtin_prefetch(from + (EDGE + i) * from_row, 0, 2);
            else if (!narrow && c + 2 * EDGE <= columns)
                ROLLED for (int i = 0; i < EDGE; i++)
                    __builtin_prefetch(from + i * from_row + HLORT_LINE, 0, 2);
            if (tall && !past && r + 2 * EDGE <= rows)
                ROLLED for (int i = 0; i < EDGE; i++)
                    __builtin_prefetch(to + i * to_row + HLORT_LINE, 1, 3);
            if (!narrow && !past && c + EDGE < columns)
                ROLLED for (int i = 0; i < EDGE; i++)
                    __builtin_prefetch(to + (hlort_min(EDGE, columns - EDGE - c) + i) * to_row, 1, 3);
            if (past && r == r0)
                TURN(block)(from, from_row, to, to_row, 1);
            else
                TURN(block)(from, from_row, to, to_row, 0);
        }
    }
}

static void TURN(plain)(const TurnPart *x)
{
    TURN(part)(x, 0);
}

static void TURN(past)(const TurnPart *x)
{
    TURN(part)(x, 1);
}

/* A few blocks' lines lie beside each other first: where rows of the result begin anywhere, so that most of memory's lines are whole when they go past the caches; where they crowd a set of the first
 * cache, so that each is stored by itself. */
INLINE void TURN(collected)(const TurnPart *x, const int past)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES, ROW = HLORT_COLLECTED + HLORT_LINE };
    const int64_t most = (past ? HLORT_COLLECTED : HLORT_COLLECTED / 2) / TURN_BYTES;
    char lines[EDGE * ROW] __attribute__((aligned(64)));
    for (int64_t c0 = 0; c0 < x->columns; c0 += EDGE) {
        const int64_t c = hlort_min(c0, x->columns - EDGE);
        for (int64_t first = 0; first < x->rows; first += most) {
            const int64_t r = hlort_min(first, hlort_max(0, x->rows - most)), rows = hlort_min(x->rows - r, most);
            const char   *from = x->from + r * x->from_row + c * TURN_BYTES;
            char         *to = x->to + c * x->to_row + r * TURN_BYTES;
            TURN(plain)(&(TurnPart){ from, lines, rows, EDGE, x->from_row, ROW, HLORT_STORED, 1, 0, 0 });
            ROLLED for (int64_t k = c0 - c; k < EDGE; k++)
                if (past)
                    SET(hlort_put_run)(to + k * x->to_row, lines + k * ROW, rows * TURN_BYTES);
                else
                    SET(hlort_copy_run)(to + k * x->to_row, lines + k * ROW, rows * TURN_BYTES);
        }
    }
}

/* One thread of a Zen 5: 1024 x 1000 of f32 195 and 85 us, 1024 x 1024 190 and 160; 2048 x 1000 of 16 bits 297 and 84, 2048 x 1024 296 and 147; 4096 x 1000 bytes 361 and 153. */
static void TURN(crowded)(const TurnPart *x)
{
    if (TURN(crowds)(x->rows, x->from_row, TURN(ways)))
        TURN(collected)(x, 0);
    else
        TURN(down)(x);
}

static void TURN(blocks_of)(const TurnPart *x)
{
    if (x->past == HLORT_ANYWHERE)
        TURN(collected)(x, 1);
    else if (x->past == HLORT_LINES)
        TURN(past)(x);
    else if (TURN(is_crowded)(x))
        TURN(crowded)(x);
    else
        TURN(plain)(x);
}

/* What is read right after it was written in smaller parts waits: a copy is made for more than one member. */
static void TURN(any)(const TurnPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    if (x->rows < EDGE || x->columns < EDGE || (x->past == HLORT_STORED && !TURN(is_crowded)(x) && TURN(prefers_strips)(x))) {
        TURN(even_strips)(x);
        return;
    }
    TURN(blocks_of)(x);
    if (x->times > 1) {
        TurnPart y = *x;
        for (int64_t k = 1; k < x->times; k++) {
            y.from += x->from_next;
            y.to += x->to_next;
            TURN(blocks_of)(&y);
        }
    }
}

INLINE void TURN(cells_of)(const GridPart *x, const int whole_rows, const int whole_columns)
{
    const int64_t  rows = x->rows, columns = x->columns, down = hlort_min(T, rows), across = hlort_min(T, columns);
    const int64_t *from_row = x->from_row, *to_row = x->to_row;
    ROLLED for (int64_t c0 = 0; c0 < columns; c0 += T) {
        const int64_t c = hlort_min(c0, columns - across);
        const char   *from = x->from + c * TURN_BYTES;
        char         *to[T];
        UNROLL for (int i = 0; i < T; i++)
            to[i] = x->to + to_row[c + i];
        ROLLED for (int64_t r0 = 0; r0 < rows; r0 += T) {
            const int64_t r = hlort_min(r0, rows - down);
            TURN(few)     cell[T];
            UNROLL for (int i = 0; i < T; i++)
                cell[i] = TURN(few_load)(from + from_row[r + i], across * TURN_BYTES, whole_columns);
            TURN(zip)(cell, T, TURN(rounds));
            UNROLL for (int i = 0; i < T; i++)
                if (whole_columns || i < across)
                    TURN(few_store)(to[i] + r * TURN_BYTES, cell[i], down * TURN_BYTES, whole_rows);
        }
    }
}

#if VECTOR_BYTES >= 32
/* Cells of twice T rows and columns. */
static void TURN(large_cells)(const GridPart *x)
{
    const int64_t  rows = x->rows, columns = x->columns;
    const int64_t *from_row = x->from_row, *to_row = x->to_row;
    ROLLED for (int64_t c0 = 0; c0 < columns; c0 += 2 * T) {
        const int64_t c = hlort_min(c0, columns - 2 * T);
        const char   *from = x->from + c * TURN_BYTES;
        char         *to[2 * T];
        UNROLL for (int i = 0; i < 2 * T; i++)
            to[i] = x->to + to_row[c + i];
        ROLLED for (int64_t r0 = 0; r0 < rows; r0 += 2 * T) {
            const int64_t r = hlort_min(r0, rows - 2 * T);
            TURN(more)    v[2][T];
#if TURN_BYTES < 2
            ROLLED
#else
            UNROLL
#endif
            for (int g = 0; g < 2; g++) {
                UNROLL for (int i = 0; i < T; i++)
                    v[g][i] = *(const TURN(more_u) *)(from + from_row[r + g * T + i]);
#if T > 1
                UNROLL for (int round = 1; round < T; round *= 2) {
                    TURN(more) s[T];
                    UNROLL for (int i = 0; i < T / 2; i++) {
                        s[2 * i] = __builtin_shufflevector(v[g][i], v[g][i + T / 2], TURN_MORE_LOW);
                        s[2 * i + 1] = __builtin_shufflevector(v[g][i], v[g][i + T / 2], TURN_MORE_HIGH);
                    }
                    UNROLL for (int i = 0; i < T; i++)
                        v[g][i] = s[i];
                }
#endif
            }
            UNROLL for (int i = 0; i < T; i++) {
                typedef long long four __attribute__((vector_size(32)));
                const four a = (four)v[0][i], b = (four)v[1][i];
                *(TURN(more_u) *)(to[i] + r * TURN_BYTES) = (TURN(more))__builtin_shufflevector(a, b, 0, 1, 4, 5);
                *(TURN(more_u) *)(to[T + i] + r * TURN_BYTES) = (TURN(more))__builtin_shufflevector(a, b, 2, 3, 6, 7);
            }
        }
    }
}
#endif

/* Pieces of sides that are evenly apart, where they are not small. */
static int TURN(grid_strips)(const GridPart *x)
{
    enum { LEAST = 32 * T * T };
    const int64_t n = x->inner_rows, m = x->inner_columns;
    if (n < T || m < T || n * m < LEAST || (n < 4 * T && n < x->rows) || (m < 4 * T && m < x->columns))
        return 0;
    ROLLED for (int64_t r = 0; r < x->rows; r += n)
        ROLLED for (int64_t c = 0; c < x->columns; c += m)
            TURN(even_strips)(&(TurnPart){ x->from + x->from_row[r] + c * TURN_BYTES, x->to + x->to_row[c] + r * TURN_BYTES, n, m, x->from_row[1], x->to_row[1], HLORT_STORED, 1, 0, 0 });
    return 1;
}

/* n columns that lie one behind the other in the source, rows as well: T rows are n vectors. */
INLINE void TURN(apart)(const GridPart *x, const int n)
{
    enum { AHEAD = 8 };
    const int64_t  inner = x->inner_rows, rows = x->rows;
    const int64_t *from_row = x->from_row;
    const char    *source = x->from;
    char          *to[T];
    UNROLL for (int i = 0; i < n; i++)
        to[i] = x->to + x->to_row[i];
    ROLLED for (int64_t row = 0; row < rows; row += inner) {
        if (row + AHEAD * inner < rows)
            __builtin_prefetch(source + from_row[row + AHEAD * inner], 0, 3);
        ROLLED for (int64_t r0 = 0; r0 < inner; r0 += T) {
            const int64_t r = hlort_min(r0, inner - T);
            const char   *from = source + from_row[row] + r * n * TURN_BYTES;
            TURN(few)     v[T];
            UNROLL for (int i = 0; i < n; i++)
                v[i] = TURN(few_load)(from + 16 * i, 16, 1);
            TURN(zip)(v, n, TURN(rounds));
            UNROLL for (int i = 0; i < n; i++)
                TURN(few_store)(to[i] + (row + r) * TURN_BYTES, v[i], 16, 1);
        }
    }
}

/* Likewise in the result: T columns of n rows. */
INLINE void TURN(together)(const GridPart *x, const int n)
{
    const int64_t  inner = x->inner_columns, columns = x->columns;
    const int64_t *to_row = x->to_row;
    const char    *from[T];
    char          *result = x->to;
    UNROLL for (int i = 0; i < n; i++)
        from[i] = x->from + x->from_row[i];
    ROLLED for (int64_t column = 0; column < columns; column += inner)
        ROLLED for (int64_t c0 = 0; c0 < inner; c0 += T) {
            const int64_t c = hlort_min(c0, inner - T);
            char         *to = result + to_row[column] + c * n * TURN_BYTES;
            TURN(few)     v[T];
            UNROLL for (int i = 0; i < n; i++)
                v[i] = TURN(few_load)(from[i] + (column + c) * TURN_BYTES, 16, 1);
            TURN(zip)(v, n, n == 8 ? 3 : n == 4 ? 2 : 1);
            UNROLL for (int i = 0; i < n; i++)
                TURN(few_store)(to + 16 * i, v[i], 16, 1);
        }
}

#if VECTOR_BYTES == 64 && (TURN_BYTES == 2 || TURN_BYTES == 4)
/* Likewise a line at once, which one instruction sorts: rows of 2 or 4 that lie one behind the other are as many pieces of columns, and back. */
#if TURN_BYTES == 2
#define TURN_APART_2 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define TURN_APART_4 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31
#define TURN_TOGETHER_2 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define TURN_TOGETHER_4 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31
#else
#define TURN_APART_2 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15
#define TURN_APART_4 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15
#define TURN_TOGETHER_2 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15
#define TURN_TOGETHER_4 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15
#endif
typedef long long TURN(four_words) __attribute__((vector_size(32)));

INLINE void TURN(lines_apart)(const GridPart *x, const int n)
{
    enum { AHEAD = 8, EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t  inner = x->inner_rows, rows = x->rows, at_once = EDGE / n;
    const int64_t *from_row = x->from_row;
    const char    *source = x->from;
    char          *to[4];
    UNROLL for (int i = 0; i < n; i++)
        to[i] = x->to + x->to_row[i];
    ROLLED for (int64_t row = 0; row < rows; row += inner) {
        if (row + AHEAD * inner < rows)
            __builtin_prefetch(source + from_row[row + AHEAD * inner], 0, 3);
        ROLLED for (int64_t r0 = 0; r0 < inner; r0 += at_once) {
            const int64_t r = hlort_min(r0, inner - at_once), at = (row + r) * TURN_BYTES;
            const TURN(v) v = *(const TURN(vu) *)(source + from_row[row] + r * n * TURN_BYTES);
            UNROLL for (int i = 0; i < n; i++)
                __builtin_prefetch(to[i] + at + 2 * HLORT_LINE, 1, 3);
            if (n == 2) {
                const SET(pairs) w = (SET(pairs))__builtin_shufflevector(v, v, TURN_APART_2);
                const TURN(four_words) low = __builtin_shufflevector(w, w, 0, 1, 2, 3), high = __builtin_shufflevector(w, w, 4, 5, 6, 7);
                __builtin_memcpy(to[0] + at, &low, 32);
                __builtin_memcpy(to[1] + at, &high, 32);
            } else {
                const SET(pairs) w = (SET(pairs))__builtin_shufflevector(v, v, TURN_APART_4);
                const hlort_two_words a = (hlort_two_words)__builtin_shufflevector(w, w, 0, 1), b = (hlort_two_words)__builtin_shufflevector(w, w, 2, 3);
                const hlort_two_words c = (hlort_two_words)__builtin_shufflevector(w, w, 4, 5), d = (hlort_two_words)__builtin_shufflevector(w, w, 6, 7);
                __builtin_memcpy(to[0] + at, &a, 16);
                __builtin_memcpy(to[1] + at, &b, 16);
                __builtin_memcpy(to[2] + at, &c, 16);
                __builtin_memcpy(to[3] + at, &d, 16);
            }
        }
    }
}

INLINE void TURN(lines_together)(const GridPart *x, const int n)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t  inner = x->inner_columns, columns = x->columns, at_once = EDGE / n;
    const int64_t *to_row = x->to_row;
    const char    *from[4];
    char          *result = x->to;
    UNROLL for (int i = 0; i < n; i++)
        from[i] = x->from + x->from_row[i];
    ROLLED for (int64_t column = 0; column < columns; column += inner)
        ROLLED for (int64_t c0 = 0; c0 < inner; c0 += at_once) {
            const int64_t c = hlort_min(c0, inner - at_once), at = (column + c) * TURN_BYTES;
            TURN(v)       v;
            if (n == 2) {
                TURN(four_words) low, high;
                __builtin_memcpy(&low, from[0] + at, 32);
                __builtin_memcpy(&high, from[1] + at, 32);
                v = (TURN(v))__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
                v = __builtin_shufflevector(v, v, TURN_TOGETHER_2);
            } else {
                hlort_two_words piece[4];
                UNROLL for (int i = 0; i < 4; i++)
                    __builtin_memcpy(&piece[i], from[i] + at, 16);
                v = (TURN(v))SET(hlort_four_pieces)(piece[0], piece[1], piece[2], piece[3]);
                v = __builtin_shufflevector(v, v, TURN_TOGETHER_4);
            }
            *(TURN(vu) *)(result + to_row[column] + c * n * TURN_BYTES) = v;
        }
}

#undef TURN_APART_2
#undef TURN_APART_4
#undef TURN_TOGETHER_2
#undef TURN_TOGETHER_4
#define TURN_LINES(n)                                                                              \
    if (columns == n && x->inner_rows >= HLORT_LINE / TURN_BYTES / n && x->from_row[1] == n * TURN_BYTES) { \
        TURN(lines_apart)(x, n);                                                                   \
        return 1;                                                                                  \
    }                                                                                              \
    if (rows == n && x->inner_columns >= HLORT_LINE / TURN_BYTES / n && x->to_row[1] == n * TURN_BYTES) {   \
        TURN(lines_together)(x, n);                                                                \
        return 1;                                                                                  \
    }
#endif

static int TURN(thin)(const GridPart *x)
{
    const int64_t rows = x->rows, columns = x->columns;
#if defined(TURN_LINES)
    TURN_LINES(2)
    TURN_LINES(4)
#undef TURN_LINES
#endif
#define THIN(n)                                                                          \
    if (n < T && columns == n && x->inner_rows >= T && x->from_row[1] == n * TURN_BYTES) { \
        TURN(apart)(x, n);                                                               \
        return 1;                                                                        \
    }                                                                                    \
    if (n < T && rows == n && x->inner_columns >= T && x->to_row[1] == n * TURN_BYTES) {   \
        TURN(together)(x, n);                                                            \
        return 1;                                                                        \
    }
#if T > 2
    THIN(2)
#endif
#if T > 4
    THIN(4)
#endif
#if T > 8
    THIN(8)
#endif
#undef THIN
    (void)rows, (void)columns;
    return 0;
}

static void TURN(blocks)(const GridPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t rows = x->rows, columns = x->columns;
    ROLLED for (int64_t c0 = 0; c0 < columns; c0 += EDGE) {
        const int64_t c = hlort_min(c0, columns - EDGE);
        ROLLED for (int64_t r0 = 0; r0 < rows; r0 += EDGE) {
            const int64_t r = hlort_min(r0, rows - EDGE);
            TURN(block_of)(x->from + c * TURN_BYTES, x->from_row + r, 0, x->to + r * TURN_BYTES, x->to_row + c, 0, 0);
        }
    }
}

static void TURN(one_grid)(const GridPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t rows = x->rows, columns = x->columns;
    if (rows >= EDGE && columns >= EDGE)
        TURN(blocks)(x);
    else if (TURN(thin)(x))
        ;
    else if (TURN(grid_strips)(x))
        ;
#if VECTOR_BYTES >= 32
    else if (rows >= 2 * T && columns >= 2 * T)
        TURN(large_cells)(x);
#endif
    else if (rows >= T && columns >= T)
        TURN(cells_of)(x, 1, 1);
    else if (rows >= T)
        TURN(cells_of)(x, 1, 0);
    else if (columns >= T)
        TURN(cells_of)(x, 0, 1);
    else
        TURN(cells_of)(x, 0, 0);
}

static void TURN(grid)(const GridPart *x)
{
    TURN(one_grid)(x);
    if (x->times > 1) {
        GridPart y = *x;
        for (int64_t k = 1; k < x->times; k++) {
            y.from += x->from_next;
            y.to += x->to_next;
            TURN(one_grid)(&y);
        }
    }
}

#undef TURN_ROUND
#undef TURN_FEW_LOW
#undef TURN_FEW_HIGH
#undef TURN_MORE_LOW
#undef TURN_MORE_HIGH
#undef Q
#undef T
#undef VT
#undef TURN
#undef LOW
#undef HIGH
#undef PIECES
#undef TURN_BYTES
