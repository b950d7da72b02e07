/* scan_body.h - scan.h for one type and one set of instructions. TE is the type, TU what wraps as it does, SCAN_LANES how many of them a vector has, S(x) a name for them, TM integers of their size; LEAST and
 * MOST change no maximum and no minimum, NOTHING no sum.
 *
 *     v = v op (v moved by 1), then by 2, 4, 8        every lane has all lanes before it
 *     y = carry op v,  carry = carry op last lane     so that one operation a vector waits for the one before */
typedef TE S(v) __attribute__((vector_size(VECTOR_BYTES)));
typedef TU S(u) __attribute__((vector_size(VECTOR_BYTES)));
typedef TM S(m) __attribute__((vector_size(VECTOR_BYTES)));
typedef TE S(any) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(TE)), may_alias));

#if SCAN_LANES == 16
#define LANES_BEFORE(k, z, v)                                                                                                                              \
    ((k) == 1 ? __builtin_shufflevector(z, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)                                               \
     : (k) == 2 ? __builtin_shufflevector(z, v, 0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)                                              \
     : (k) == 4 ? __builtin_shufflevector(z, v, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)                                                \
                : __builtin_shufflevector(z, v, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23))
#define LAST_LANE(v)  __builtin_shufflevector(v, v, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15)
#define TURNED(v)     __builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif SCAN_LANES == 8
#define LANES_BEFORE(k, z, v)                                                                                                                              \
    ((k) == 1 ? __builtin_shufflevector(z, v, 0, 8, 9, 10, 11, 12, 13, 14)                                                                                 \
     : (k) == 2 ? __builtin_shufflevector(z, v, 0, 1, 8, 9, 10, 11, 12, 13)                                                                                \
                : __builtin_shufflevector(z, v, 0, 1, 2, 3, 8, 9, 10, 11))
#define LAST_LANE(v)  __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7)
#define TURNED(v)     __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0)
#elif SCAN_LANES == 4
#define LANES_BEFORE(k, z, v) ((k) == 1 ? __builtin_shufflevector(z, v, 0, 4, 5, 6) : __builtin_shufflevector(z, v, 0, 1, 4, 5))
#define LAST_LANE(v)  __builtin_shufflevector(v, v, 3, 3, 3, 3)
#define TURNED(v)     __builtin_shufflevector(v, v, 3, 2, 1, 0)
#else
#define LANES_BEFORE(k, z, v) __builtin_shufflevector(z, v, 0, 2)
#define LAST_LANE(v)  __builtin_shufflevector(v, v, 1, 1)
#define TURNED(v)     __builtin_shufflevector(v, v, 1, 0)
#endif

INLINE S(v) S(all)(TE x)
{
    S(v) v;
    UNROLL for (int k = 0; k < SCAN_LANES; k++)
        v[k] = x;
    return v;
}

INLINE S(v) S(load)(const TE *x, int backward)
{
    S(v) v = *(const S(any) *)x;
    return backward ? TURNED(v) : v;
}

INLINE S(v) S(choose)(S(m) which, S(v) a, S(v) b)
{
    return (S(v))((which & (S(m))a) | (~which & (S(m))b));
}

#if SCAN_FLOAT
#define IS_NAN(type, x) ((type)((x) != (x)))
#else
#define IS_NAN(type, x) ((type)((x) ^ (x)))
#endif

/* a is what comes first: it is kept where both are equal, and where it is NaN. */
INLINE S(v) S(add)(S(v) a, S(v) b) { return (S(v))((S(u))a + (S(u))b); }
INLINE S(v) S(multiply)(S(v) a, S(v) b) { return (S(v))((S(u))a * (S(u))b); }
INLINE S(v) S(minimum)(S(v) a, S(v) b) { return S(choose)((S(m))(b < a) | IS_NAN(S(m), b), b, a); }
INLINE S(v) S(maximum)(S(v) a, S(v) b) { return S(choose)((S(m))(b > a) | IS_NAN(S(m), b), b, a); }
INLINE TE S(add_one)(TE a, TE b) { return (TE)((TU)a + (TU)b); }
INLINE TE S(multiply_one)(TE a, TE b) { return (TE)((TU)a * (TU)b); }
INLINE TE S(minimum_one)(TE a, TE b) { return b < a || IS_NAN(int, b) ? b : a; }
INLINE TE S(maximum_one)(TE a, TE b) { return b > a || IS_NAN(int, b) ? b : a; }

/* Element j of x, counted from where the line begins. */
#define AT(x, j, count) (backward ? (x) + n - (j) - (count) : (x) + (j))

#define SCANS(OP, NEUTRAL)                                                                                                  \
    INLINE S(v) S(OP##_before)(S(v) v)                                                                                      \
    {                                                                                                                       \
        const S(v) z = S(all)(NEUTRAL);                                                                                     \
        v = S(OP)(LANES_BEFORE(1, z, v), v);                                                                                \
        v = SCAN_LANES > 2 ? S(OP)(LANES_BEFORE(2, z, v), v) : v;                                                           \
        v = SCAN_LANES > 4 ? S(OP)(LANES_BEFORE(4, z, v), v) : v;                                                           \
        return SCAN_LANES > 8 ? S(OP)(LANES_BEFORE(8, z, v), v) : v;                                                        \
    }                                                                                                                       \
    INLINE void S(OP##_line)(const TE *x, TE *y, int64_t n, TE *carry, const int backward)                                  \
    {                                                                                                                       \
        enum { ROUND = 4 * SCAN_LANES };                                                                                    \
        S(v)    c = S(all)(*carry);                                                                                         \
        int64_t j = 0;                                                                                                      \
        ROLLED for (; j + ROUND <= n; j += ROUND) {                                                                         \
            S(v) v[4];                                                                                                      \
            UNROLL for (int k = 0; k < 4; k++)                                                                              \
                v[k] = S(OP##_before)(S(load)(AT(x, j + k * SCAN_LANES, SCAN_LANES), backward));                            \
            UNROLL for (int k = 0; k < 4; k++) {                                                                            \
                const S(v) o = S(OP)(c, v[k]);                                                                              \
                *(S(any) *)AT(y, j + k * SCAN_LANES, SCAN_LANES) = backward ? TURNED(o) : o;                                \
                c = S(OP)(c, LAST_LANE(v[k]));                                                                              \
            }                                                                                                               \
        }                                                                                                                   \
        TE s = c[0];                                                                                                        \
        for (; j < n; j++)                                                                                                  \
            *AT(y, j, 1) = s = S(OP##_one)(s, *AT(x, j, 1));                                                                \
        *carry = s;                                                                                                         \
    }                                                                                                                       \
    static void S(OP##_scan)(const void *x, void *y, int64_t n, void *carry, int backward)                                  \
    {                                                                                                                       \
        if (backward)                                                                                                       \
            S(OP##_line)(x, y, n, carry, 1);                                                                                \
        else                                                                                                                \
            S(OP##_line)(x, y, n, carry, 0);                                                                                \
    }                                                                                                                       \
    static void S(OP##_fold)(const void *from, int64_t n, void *all, int backward)                                          \
    {                                                                                                                       \
        enum { ROUND = 4 * SCAN_LANES };                                                                                    \
        const TE *x = from;                                                                                                 \
        TE        s = NEUTRAL;                                                                                              \
        int64_t   j = 0;                                                                                                    \
        if (n >= ROUND) {                                                                                                   \
            S(v) v[4];                                                                                                      \
            UNROLL for (int k = 0; k < 4; k++)                                                                              \
                v[k] = S(all)(NEUTRAL);                                                                                     \
            ROLLED for (; j + ROUND <= n; j += ROUND)                                                                       \
                UNROLL for (int k = 0; k < 4; k++)                                                                          \
                    v[k] = S(OP)(v[k], S(load)(AT(x, j + k * SCAN_LANES, SCAN_LANES), 0));                                  \
            v[0] = S(OP##_before)(S(OP)(S(OP)(v[0], v[1]), S(OP)(v[2], v[3])));                                             \
            s = v[0][SCAN_LANES - 1];                                                                                       \
        }                                                                                                                   \
        for (; j < n; j++)                                                                                                  \
            s = S(OP##_one)(s, *AT(x, j, 1));                                                                               \
        *(TE *)all = s;                                                                                                     \
    }

SCANS(add, NOTHING)
SCANS(multiply, 1)
SCANS(minimum, MOST)
SCANS(maximum, LEAST)

static const ScanKernels S(kernels) = {
    .scan = { S(add_scan), S(multiply_scan), S(minimum_scan), S(maximum_scan) },
    .fold = { S(add_fold), S(multiply_fold), S(minimum_fold), S(maximum_fold) },
};

#undef AT
#undef IS_NAN
#undef SCANS
#undef LANES_BEFORE
#undef LAST_LANE
#undef TURNED
#undef S
#undef SCAN_FLOAT
#undef TE
#undef TU
#undef TM
#undef LEAST
#undef MOST
#undef NOTHING
