/* scan_narrow.h - scan.h for f16 and bf16 and one set of instructions. Every step rounds, so that the order is that of the elements: the lanes of vectors are lines.
 *
 * Of some lines pieces are turned, so that a vector has one element of each, go through their steps, and are turned back. Steps wait for each other, so that vectors
 * of several lines go side by side where there are as many. */
typedef struct {
    SET(vf) x[SCAN_ABREAST][SCAN_PIECE];
} SET(ScanPieces);

#define NARROW_SCANS(TYPE, OP, ROUNDED)                                                                                                     \
    INLINE SET(vf) SET(hlort_scan_##TYPE##_##OP)(SET(vf) a, SET(vf) b)                                                                      \
    {                                                                                                                                       \
        const SET(vf) v = SET(hlort_scan_f32_##OP)(a, b);                                                                                   \
        const SET(vhu) narrow = SET(hlort_to_##TYPE)(v);                                                                                    \
        return ROUNDED ? SET(hlort_from_##TYPE)((const uint16_t *)&narrow) : v;                                                             \
    }                                                                                                                                       \
    /* `vectors` vectors of lines, of which `lines` are there. */                                                                           \
    INLINE void SET(hlort_scan_##TYPE##_##OP##_some)(const uint16_t *x, uint16_t *y, int64_t count, int64_t lines, float start,             \
                                                     const int vectors, const int backward)                                                 \
    {                                                                                                                                       \
        SET(ScanPieces) pieces;                                                                                                             \
        SET(vf)         carry[SCAN_ABREAST];                                                                                                \
        UNROLL for (int v = 0; v < vectors; v++)                                                                                            \
            carry[v] = (SET(vf)){ 0 } + start;                                                                                              \
        for (int64_t j = 0, n; j < count; j += n) {                                                                                         \
            n = hlort_min(SCAN_PIECE, count - j);                                                                                           \
            const int64_t at = backward ? count - j - n : j, ahead = j + 2 * SCAN_PIECE > count ? 0 : backward ? -SCAN_PIECE : SCAN_PIECE;  \
            for (int v = 0; v < vectors; v++)                                                                                               \
                SET(hlort_scan_##TYPE##_load)(pieces.x[v], x + at + v * SCAN_LANES * count, count, lines - v * SCAN_LANES, n, ahead);       \
            ROLLED for (int64_t k = 0; k < n; k++) {                                                                                        \
                const int64_t e = backward ? n - 1 - k : k;                                                                                 \
                UNROLL for (int v = 0; v < vectors; v++)                                                                                    \
                    pieces.x[v][e] = carry[v] = SET(hlort_scan_##TYPE##_##OP)(carry[v], pieces.x[v][e]);                                    \
            }                                                                                                                               \
            for (int v = 0; v < vectors; v++)                                                                                               \
                SET(hlort_scan_##TYPE##_store)(y + at + v * SCAN_LANES * count, pieces.x[v], count, lines - v * SCAN_LANES, n);             \
        }                                                                                                                                   \
    }                                                                                                                                       \
    static void SET(hlort_scan_##TYPE##_##OP##_lines)(const uint16_t *x, uint16_t *y, int64_t count, int64_t lines, const uint16_t *start,  \
                                                      int backward)                                                                         \
    {                                                                                                                                       \
        enum { MANY = SCAN_ABREAST * SCAN_LANES };                                                                                          \
        uint16_t    few[SCAN_LANES] = { *start };                                                                                           \
        const float first = SET(hlort_from_##TYPE)(few)[0];                                                                                 \
        for (int64_t i = 0, n; i < lines; i += n, x += n * count, y += n * count) {                                                         \
            n = hlort_min(MANY, lines - i);                                                                                                 \
            if (n > SCAN_LANES && backward)                                                                                                 \
                SET(hlort_scan_##TYPE##_##OP##_some)(x, y, count, n, first, SCAN_ABREAST, 1);                                               \
            else if (n > SCAN_LANES)                                                                                                        \
                SET(hlort_scan_##TYPE##_##OP##_some)(x, y, count, n, first, SCAN_ABREAST, 0);                                               \
            else if (backward)                                                                                                              \
                SET(hlort_scan_##TYPE##_##OP##_some)(x, y, count, n, first, 1, 1);                                                          \
            else                                                                                                                            \
                SET(hlort_scan_##TYPE##_##OP##_some)(x, y, count, n, first, 1, 0);                                                          \
        }                                                                                                                                   \
    }

#define NARROW_TYPE(TYPE)                                                                                                                   \
    /* n elements of each of up to SCAN_LANES lines, turned, zeros for lines that are not there; what lies `ahead` of them is fetched. */   \
    APART void SET(hlort_scan_##TYPE##_load)(SET(vf) *to, const uint16_t *x, int64_t count, int64_t lines, int64_t n, int64_t ahead)        \
    {                                                                                                                                       \
        if (lines <= 0) {                                                                                                                   \
            __builtin_memset(to, 0, (uint64_t)n * sizeof *to);                                                                              \
            return;                                                                                                                         \
        }                                                                                                                                   \
        for (int64_t e = 0; e < n; e += SCAN_LANES) {                                                                                       \
            SET(vf) r[SCAN_LANES];                                                                                                          \
            if (lines >= SCAN_LANES && n - e >= SCAN_LANES) {                                                                               \
                UNROLL for (int i = 0; i < SCAN_LANES; i++)                                                                                 \
                    r[i] = SET(hlort_from_##TYPE)(x + i * count + e);                                                                       \
            } else {                                                                                                                        \
                for (int64_t i = 0; i < SCAN_LANES; i++) {                                                                                  \
                    uint16_t few[SCAN_LANES] = { 0 };                                                                                       \
                    if (i < lines)                                                                                                          \
                        __builtin_memcpy(few, x + i * count + e, (uint64_t)hlort_min(SCAN_LANES, n - e) * sizeof *few);                     \
                    r[i] = SET(hlort_from_##TYPE)(few);                                                                                     \
                }                                                                                                                           \
            }                                                                                                                               \
            SET(hlort_f32_transpose)(r);                                                                                                    \
            UNROLL for (int i = 0; i < SCAN_LANES; i++)                                                                                     \
                to[e + i] = r[i];                                                                                                           \
        }                                                                                                                                   \
        for (int64_t i = 0; i < hlort_min(SCAN_LANES, lines) && ahead; i++)                                                                 \
            __builtin_prefetch(x + i * count + ahead);                                                                                      \
    }                                                                                                                                       \
    APART void SET(hlort_scan_##TYPE##_store)(uint16_t *y, const SET(vf) *from, int64_t count, int64_t lines, int64_t n)                    \
    {                                                                                                                                       \
        for (int64_t e = 0; e < n && lines > 0; e += SCAN_LANES) {                                                                          \
            SET(vf) r[SCAN_LANES];                                                                                                          \
            UNROLL for (int i = 0; i < SCAN_LANES; i++)                                                                                     \
                r[i] = from[e + i];                                                                                                         \
            SET(hlort_f32_transpose)(r);                                                                                                    \
            if (lines >= SCAN_LANES && n - e >= SCAN_LANES) {                                                                               \
                UNROLL for (int i = 0; i < SCAN_LANES; i++)                                                                                 \
                    *(SET(vhu) *)(y + i * count + e) = SET(hlort_to_##TYPE)(r[i]);                                                          \
                continue;                                                                                                                   \
            }                                                                                                                               \
            for (int64_t i = 0; i < hlort_min(SCAN_LANES, lines); i++) {                                                                    \
                const SET(vhu) few = SET(hlort_to_##TYPE)(r[i]);                                                                            \
                __builtin_memcpy(y + i * count + e, &few, (uint64_t)hlort_min(SCAN_LANES, n - e) * sizeof *y);                              \
            }                                                                                                                               \
        }                                                                                                                                   \
    }                                                                                                                                       \
    NARROW_SCANS(TYPE, add, 1)                                                                                                              \
    NARROW_SCANS(TYPE, multiply, 1)                                                                                                         \
    NARROW_SCANS(TYPE, minimum, 0)                                                                                                          \
    NARROW_SCANS(TYPE, maximum, 0)

NARROW_TYPE(f16)
NARROW_TYPE(bf16)
#undef NARROW_SCANS
#undef NARROW_TYPE
