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
#if VECTOR_BYTES == 64
#define PIECES(f) f(0), f(1), f(2), f(3)
#elif VECTOR_BYTES == 32
#define PIECES(f) f(0), f(1)
#else
#define PIECES(f) f(0)
#endif

/* Columns of T rows, from these on: piece q of r[i] is column q * T + i. */
INLINE void TURN(pieces)(TURN(v) r[T], const char *from, int64_t from_row)
{
    UNROLL for (int i = 0; i < T; i++)
        r[i] = *(const TURN(vu) *)(from + i * from_row);
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

INLINE void TURN(block)(const char *from, int64_t from_row, char *to, int64_t to_row, const int past)
{
    for (int h = 0; h < HLORT_LINE / VECTOR_BYTES; h++) {
        TURN(v) r[4][T];
#if TURN_BYTES < 4
        ROLLED
#else
        UNROLL
#endif
        for (int g = 0; g < 4; g++)
            TURN(pieces)(r[g], from + g * T * from_row + h * VECTOR_BYTES, from_row);
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
                    TURN(put)(to + ((h * Q + q) * T + i) * to_row + g * VECTOR_BYTES, line[q][g], past);
        }
    }
}

/* Blocks at the lower and the right edge are moved back: what they share with those before is written twice. The next block across is fetched ahead, since it lies on
 * the same pages; the one below where there is none. So are lines that the next block across is stored to, which no processor foresees (one thread of an Emerald Rapids, f32:
 * 1024 x 1000 438 and 355 us, 1000 x 1024 607 and 355; 2000 x 1500 of 16 bits 995 and 630). */
INLINE void TURN(part)(const TurnPart *x, const int past)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES };
    const int64_t rows = x->rows, columns = x->columns, from_row = x->from_row, to_row = x->to_row;
    const int     narrow = columns <= 4 * EDGE;
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

/* Rows of the result that begin anywhere: a few blocks' lines lie beside each other first, so that most of memory's lines are whole. */
static void TURN(collected)(const TurnPart *x)
{
    enum { EDGE = HLORT_LINE / TURN_BYTES, MOST = HLORT_COLLECTED, ROW = MOST + HLORT_LINE };
    char lines[EDGE * ROW] __attribute__((aligned(64)));
    for (int64_t c0 = 0; c0 < x->columns; c0 += EDGE) {
        const int64_t c = hlort_min(c0, x->columns - EDGE);
        for (int64_t first = 0; first < x->rows; first += MOST / TURN_BYTES) {
            const int64_t r = hlort_min(first, hlort_max(0, x->rows - MOST / TURN_BYTES)), rows = hlort_min(x->rows - r, MOST / TURN_BYTES);
            const char   *from = x->from + r * x->from_row + c * TURN_BYTES;
            char         *to = x->to + c * x->to_row + r * TURN_BYTES;
            TURN(plain)(&(TurnPart){ from, lines, rows, EDGE, x->from_row, ROW, 0 });
            ROLLED for (int64_t k = c0 - c; k < EDGE; k++)
                SET(hlort_put_run)(to + k * x->to_row, lines + k * ROW, rows * TURN_BYTES);
        }
    }
}

static void TURN(any)(const TurnPart *x)
{
    switch (x->past) {
    case HLORT_STORED: TURN(plain)(x); break;
    case HLORT_LINES: TURN(past)(x); break;
    default: TURN(collected)(x); break;
    }
}

#undef Q
#undef T
#undef VT
#undef TURN
#undef LOW
#undef HIGH
#undef PIECES
#undef TURN_BYTES
