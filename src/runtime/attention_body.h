/* attention_body.h - rows of attention (attention.h), for types that are summed in f32.
 *
 * Included after gemm_body.h, with its names, where ATTENTION is set, and
 *
 *   RESULTS(x)          a vector of sums in a narrower type, if there is one
 *   WEIGHTS(x)          likewise, of numbers that are 0 or less, or 1 or less, where G is 2
 *
 * A group of up to MR rows meets all of its keys, then all of its values:
 *
 *   for each block of KEYS keys: scores [row][key] = Q K^T, in tiles         each block [MR][LDA] floats, so that its rows
 *   for each row: the largest, exponentials, their sum                       become rows of A for the next product, in place
 *   each sum gets its term, if there is one
 *   O [row][wide] = weights V, in tiles, block by block, divided by those sums on the way out
 *
 * Of few rows, the scores are sums in lanes, the results sums of vectors of values, and nothing is packed.
 *
 * The blocks of a group lie in the first or second cache. Weights are divided by their sum themselves where sums of values times exponentials might overflow. */

typedef int32_t N(Ints) __attribute__((vector_size(VECTOR_BYTES)));

enum {
    N(KEYS) = KC / K(NR) * K(NR), /* of a block: whole panels */
    N(STRIP) = MR * K(LDA),       /* floats of a block */
    N(O_ROW) = HLORT_MOST_WIDE + 2 * K(NR),
#if FUSED && IN_PLACE
    N(LYING) = K(PLAIN) /* how tiles read values where they lie */
#else
    N(LYING) = K(PACKED) /* none do */
#endif
};

typedef struct {
    TW    q[N(STRIP)] __attribute__((aligned(64)));
    float o[MR * N(O_ROW)];
    float inverse[MR]; /* what O's rows are multiplied by */
    float strip[];
} N(Group);
_Static_assert(sizeof(N(Group)) + (HLORT_MOST_KEYS / N(KEYS) + 1) * N(STRIP) * sizeof(float) <= HLORT_WORK_BYTES && HLORT_MOST_HEAD <= KC && N(KEYS) % G == 0 &&
                   K(NR) <= 32, "work");
_Static_assert(sizeof(N(Group)) + (ATTENTION_OWN_KEYS / N(KEYS) + 1) * N(STRIP) * sizeof(float) <= HLORT_WORK_BYTES - ATTENTION_OWN, "a thread's own member");

/* ---- packing ---- */

/* The size of the largest of `rows` times n words, which may be infinite or NaN. */
static float N(most)(const TW *w, int64_t row, int64_t rows, int64_t n)
{
    N(Ints) most = { 0 };
    union {
        int32_t i;
        float   f;
    } all = { 0 };
    for (int64_t r = 0; r < rows; r++, w += row)
        for (int64_t p = 0; p < n; p += VL)
            for (int g = 0; g < G; g++) {
                const N(Ints) y = (N(Ints))*(const VWU *)(w + p), x = G == 1 ? y & 0x7fffffff : (y << 16 * g) & 0x7fff0000, more = x > most;
                most = (x & more) | (most & ~more);
            }
    for (int l = 0; l < VL; l++)
        all.i = most[l] > all.i ? most[l] : all.i;
    return all.f;
}

/* How many columns of values are read where they lie: whole panels, which few groups of rows meet. */
static int64_t N(columns_read)(const hlort_attention *d)
{
#if FUSED && IN_PLACE
    if (d->v_col == 1 && d->rows <= 2 * MR)
        return d->wide / K(NR) * K(NR);
#endif
    (void)d;
    return 0;
}

static void N(attention_pack)(AttentionMember *m, int values)
{
    const hlort_attention *d = m->d;
    const int64_t          keys = hlort_ceildiv(d->keys, G), head = hlort_ceildiv(d->head, G), read = values ? N(columns_read)(d) : 0;
    TW                    *to = (TW *)(values ? m->values : m->keys) + read * keys;
    int64_t                n = 0;
    if (values)
        for (int64_t c = read; c < d->wide; c += K(NR), n += keys * K(NR))
            N(pack_b)(to + n, (const TE *)m->v + c * d->v_col, d->v_row, d->v_col, hlort_min(K(NR), d->wide - c), d->keys);
    else
        for (int64_t j = 0; j < d->keys; j += K(NR), n += head * K(NR))
            N(pack_b)(to + n, (const TE *)m->k + j * d->k_row, d->k_col, d->k_row, hlort_min(K(NR), d->keys - j), d->head);
    if (values || d->beside_it) {
        const float packed = N(most)(to, 0, 1, n), lying = read ? N(most)(m->v, d->v_row, d->keys, read) : 0;
        *(values ? &m->most_value : &m->most_key) = lying > packed || lying != lying ? lying : packed;
    }
}

/* ---- rows ---- */

INLINE VC N(larger)(VC a, VC b)
{
#if defined(__clang__)
    return __builtin_elementwise_max(a, b);
#elif defined(HALF_512)
    return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#elif defined(HALF_F16C)
    return __builtin_ia32_maxps256(a, b);
#elif defined(__x86_64__) && VECTOR_BYTES == 16
    return __builtin_ia32_maxps(a, b);
#else
    const N(Ints) more = a > b;
    return (VC)(((N(Ints))a & more) | ((N(Ints))b & ~more));
#endif
}

/* e^x for x of 0 at most, or NaN: below 2 ulp; what would be subnormal is 0. */
INLINE VC N(exp_below)(VC x)
{
    VC t = x * 1.44269504f + 12583039.0f, n = t - 12583039.0f, r = n * -0.693359375f + x;
    r = n * 2.12194440e-4f + r;
    VC q = r * 0.008312480188f + 0.04189054998f;
    q = q * r + 0.1666711628f;
    q = q * r + 0.4999922883f;
    q = (q * r + 1.0f) * r + 1.0f;
    const VC y = q * (VC)((N(Ints))t << 23);
    return (VC)((N(Ints))y & ~(x < -88.0f));
}

/* Scores of a group: keys from `first` to before `end` are made, of which row r counts those from low[r] to before high[r]. */
typedef struct {
    const AttentionMember *m;
    N(Group)              *w;
    int64_t                i, n;
    int64_t                first, end;
    int64_t                place[MR], low[MR], high[MR]; /* place: in dimension mask_row */
    int64_t                o[MR];
    float                  term[MR];
    float                  scale; /* still to be multiplied by */
    VC                     top[MR];
} N(Rows);

INLINE float *N(scores)(const N(Rows) *x, int64_t b, int64_t r)
{
    return x->w->strip + b * N(STRIP) + r * K(LDA);
}

/* Keys of block b that count for row r, from the vector with the first to behind that with the last one. */
INLINE void N(vectors)(const N(Rows) *x, int64_t b, int64_t r, int64_t *from, int64_t *to)
{
    *from = hlort_min(hlort_max(x->low[r] - b * N(KEYS), 0), N(KEYS)) / VL * VL;
    *to = hlort_ceildiv(hlort_max(hlort_min(x->high[r] - b * N(KEYS), N(KEYS)), 0), VL) * VL;
}

/* What is in these vectors but counts not becomes -infinity. */
INLINE void N(clip)(const N(Rows) *x, int64_t r)
{
    const int64_t at[2] = { x->low[r], x->high[r] };
    UNROLL for (int k = 0; k < 2; k++)
        if (at[k] % VL) {
            VCU           *s = (VCU *)(N(scores)(x, at[k] / N(KEYS), r) + at[k] % N(KEYS) / VL * VL);
            const K(Bytes) behind = *(const K(BytesU) *)(K(mask) + (VL - at[k] % VL) * (int64_t)sizeof(float)), gone = k == 0 ? ~behind : behind;
            *s = (VC)(((K(Bytes))(VC)*s & ~gone) | ((K(Bytes))((VC){ 0 } - __builtin_inff()) & gone));
        }
}

/* All lanes of each of n vectors become one: their largest, or their sum. */
INLINE void N(fold)(float *to, const VC *v, int64_t n, int sum)
{
    for (int64_t r = 0; r < n; r += VL) {
        VW t[VL];
        UNROLL for (int l = 0; l < VL; l++)
            t[l] = (VW)v[hlort_min(r + l, n - 1)];
        if (sum) {
            t[0] = (VW)N(sum_lanes)((VC *)t, VL);
        } else {
            N(transpose)(t);
            UNROLL for (int s = VL / 2; s > 0; s /= 2)
                UNROLL for (int l = 0; l < s; l++)
                    t[l] = (VW)N(larger)((VC)t[l], (VC)t[l + s]);
        }
        if (n - r >= VL)
            *(VCU *)(to + r) = (VC)t[0];
        for (int64_t l = 0; l < n - r && n - r < VL; l++)
            to[r + l] = ((VC)t[0])[l];
    }
}

/* What a row's exponentials and its term are divided by: the largest of both, or of scores alone where that leaves NaN of them. */
INLINE float N(top_with)(const hlort_attention *d, float top, float term)
{
    return term > top && !(d->term & HLORT_TERM_BESIDE && top == -__builtin_inff()) ? term : top;
}

/* The largest score of each row and its term, unless there is a NaN. */
static void N(find_tops)(N(Rows) *x, float *tops)
{
    for (int64_t r = 0; r < x->n; r++) {
        VC m[4];
        UNROLL for (int k = 0; k < 4; k++)
            m[k] = (VC){ 0 } - __builtin_inff();
        N(clip)(x, r);
        for (int64_t b = x->first / N(KEYS); b * N(KEYS) < x->end; b++) {
            const float *s = N(scores)(x, b, r);
            int64_t      j, to;
            N(vectors)(x, b, r, &j, &to);
            for (; j + 4 * VL <= to; j += 4 * VL)
                UNROLL for (int k = 0; k < 4; k++)
                    m[k] = N(larger)(m[k], *(const VCU *)(s + j + k * VL));
            for (; j < to; j += VL)
                m[0] = N(larger)(m[0], *(const VCU *)(s + j));
        }
        x->top[r] = N(larger)(N(larger)(m[0], m[1]), N(larger)(m[2], m[3]));
    }
    N(fold)(tops, x->top, x->n, 0);
    for (int64_t r = 0; r < x->n; r++)
        tops[r] = x->m->d->term ? N(top_with)(x->m->d, tops[r] * x->scale, x->term[r]) : tops[r] * x->scale;
}

INLINE void N(put_weights)(float *row, int64_t j, int as_words, VC e)
{
#if G == 2
    if (as_words) {
        *(SET(vhu) *)((uint16_t *)row + j) = WEIGHTS(e);
        return;
    }
#endif
    (void)as_words;
    *(VCU *)(row + j) = e;
}

/* To the narrower type and back. */
INLINE VC N(rounded)(VC x)
{
#ifdef RESULTS
#if G == 2
    const SET(vh) y = WEIGHTS(x);
#else
    const SET(vh) y = RESULTS(x);
#endif
    return N(widen)((const TE *)&y);
#else
    return x;
#endif
}

INLINE VC N(weight)(const N(Rows) *x, const float *s, float top, int rounded)
{
    VC y = *(const VCU *)s * x->scale;
    IN_REGISTER(y); /* rounded like the largest, so that the difference is 0 at most */
    return rounded ? N(rounded)(N(exp_below)(N(rounded)(y - top))) : N(exp_below)(y - top);
}

/* The sum of a row's exponentials; these, times a factor, as words of A, or as they are, in the place of its scores, where they are kept. */
INLINE VC N(weigh)(const N(Rows) *x, int64_t r, float top, int keep, int words, int rounded, int times, float factor)
{
    VC sum[2] = { { 0 }, { 0 } };
    for (int64_t b = x->first / N(KEYS); b * N(KEYS) < x->end; b++) {
        float  *s = N(scores)(x, b, r);
        int64_t from, to, j;
        N(vectors)(x, b, r, &from, &to);
        for (j = hlort_min(hlort_max(x->first - b * N(KEYS), 0), from); j < from && keep; j += VL)
            N(put_weights)(s, j, words, (VC){ 0 });
        for (j = from; j + 2 * VL <= to; j += 2 * VL) {
            const VC e = N(weight)(x, s + j, top, rounded), f = N(weight)(x, s + j + VL, top, rounded);
            sum[0] += e;
            sum[1] += f;
            if (keep) {
                N(put_weights)(s, j, words, !times ? e : rounded ? N(rounded)(e * factor) : e * factor);
                N(put_weights)(s, j + VL, words, !times ? f : rounded ? N(rounded)(f * factor) : f * factor);
            }
        }
        for (; j < to; j += VL) {
            const VC e = N(weight)(x, s + j, top, rounded);
            sum[0] += e;
            if (keep)
                N(put_weights)(s, j, words, !times ? e : rounded ? N(rounded)(e * factor) : e * factor);
        }
        for (j = hlort_max(to, from); j < hlort_min(x->end - b * N(KEYS), N(KEYS)) && keep; j += VL)
            N(put_weights)(s, j, words, (VC){ 0 });
    }
    return sum[0] + sum[1];
}

/* A row's weights, which are rounded, times a factor. */
static void N(multiply)(const N(Rows) *x, int64_t r, float factor)
{
    for (int64_t b = x->first / N(KEYS); b * N(KEYS) < x->end; b++) {
        float *s = N(scores)(x, b, r);
        for (int64_t j = hlort_max(x->first - b * N(KEYS), 0); j < hlort_min(x->end - b * N(KEYS), N(KEYS)); j += VL) {
            const VC all = *(const VCU *)(s + j), e = G == 2 ? N(widen)((const TE *)s + j) : all;
            N(put_weights)(s, j, 1, N(rounded)(e * factor));
        }
    }
}

INLINE float N(round1)(float x)
{
    return N(rounded)((VC){ 0 } + x)[0];
}

/* 1 divided by a row's sum and its term. */
static float N(inverse)(const N(Rows) *x, int64_t r, float top, float sum)
{
    const hlort_attention *d = x->m->d;
    const int              rounded = d->rounded;
    if (d->term) {
        const float off = x->term[r] - top, e = N(exp_below)((VC){ 0 } + (rounded ? N(round1)(off) : off))[0];
        sum = (d->term & HLORT_TERM_LAST && rounded ? N(round1)(sum) : sum) + (rounded ? N(round1)(e) : e);
    }
    return 1 / (rounded ? N(round1)(sum) : sum);
}

/* Where no sum of values times exponentials overflows, the results are divided instead of the weights. */
static void N(weigh_all)(N(Rows) *x, const float *tops)
{
    const int rounded = x->m->d->rounded, late = !rounded && x->m->most_value <= 1e30f;
    float     sums[MR > VL ? MR : VL];
    for (int64_t r = 0; r < x->n; r++)
        x->top[r] = late ? N(weigh)(x, r, tops[r], 1, 1, 0, 0, 1) : rounded ? N(weigh)(x, r, tops[r], 1, 1, 1, 0, 1) : N(weigh)(x, r, tops[r], 0, 1, 0, 0, 1);
    N(fold)(sums, x->top, x->n, 1);
    for (int64_t r = 0; r < x->n; r++) {
        const float inverse = N(inverse)(x, r, tops[r], sums[r]);
        x->w->inverse[r] = late ? inverse : 1;
        if (rounded)
            N(multiply)(x, r, inverse);
        else if (!late)
            N(weigh)(x, r, tops[r], 1, 1, 0, 1, inverse);
    }
}

/* ---- the products ---- */

/* Rows of Q as those of A; where the results belong. */
static void N(take_rows)(N(Rows) *x)
{
    const hlort_attention *d = x->m->d;
    const TE              *q = x->m->q;
    int64_t                at[MR];
    for (int64_t r = 0; r < x->n; r++) {
        int64_t rest = x->i + r, term = 0;
        at[r] = 0;
        x->o[r] = 0;
        x->place[r] = 0;
        for (int64_t k = d->n_rows - 1; k >= 0; k--) {
            const int64_t digit = k == 0 ? rest : rest % d->row[k].count;
            rest = k == 0 ? 0 : rest / d->row[k].count;
            at[r] += digit * d->row[k].q;
            x->o[r] += digit * d->row[k].o;
            term += digit * d->row[k].t;
            x->place[r] = k == d->mask_row ? digit : x->place[r];
        }
        x->term[r] = !x->m->t ? d->term_value : d->rounded ? (float)N(widen1)(((const TE *)x->m->t)[term]) : ((const float *)x->m->t)[term];
        for (int64_t p = 0; p < d->head && x->m->few; p++)
            ((float *)x->w->q)[r * K(LDA) + p] = N(widen1)(q[at[r] + p * d->q_col]);
    }
    for (int64_t r = 0, n; r < x->n && !x->m->few; r += n) { /* rows that are evenly apart */
        const int64_t apart = r + 1 < x->n ? at[r + 1] - at[r] : 0;
        for (n = 1; r + n < x->n && at[r + n] - at[r + n - 1] == apart; n++)
            ;
        N(pack_a)(x->w->q + r * K(LDA), q + at[r], apart, d->q_col, n, d->head);
    }
}

/* Scores that are made are changed by the caller. */
static void N(change_scores)(N(Rows) *x)
{
    const AttentionMember *m = x->m;
    const hlort_attention *d = m->d;
    for (int64_t b = x->first / N(KEYS), from, end; b * N(KEYS) < x->end && m->how->epilogue; b++) {
        from = hlort_max(x->first, b * N(KEYS));
        end = hlort_min(x->end, (b + 1) * N(KEYS));
        hlort_tile tile = { N(scores)(x, b, 0) + (from - b * N(KEYS)), K(LDA), m->number, x->i, from, x->n, end - from,
                            (m->number * d->rows + x->i) * d->keys + from, d->keys };
        m->how->epilogue(m->how->context, &tile);
    }
    x->scale = d->scale;
}

/* Scores of all keys from first to before end. */
static void N(make_scores)(N(Rows) *x)
{
    const AttentionMember *m = x->m;
    const int64_t          head = hlort_ceildiv(m->d->head, G);
    K(Tile)                t = { .kc = head, .a = x->w->q, .c_row = K(LDA) };
    x->first = x->first / K(NR) * K(NR);
    for (int64_t j = x->first; j < x->end; j += K(NR)) {
        t.b = (TW *)m->keys + j * head;
        t.c = N(scores)(x, j / N(KEYS), 0) + j % N(KEYS);
        K(kernels)[x->n][NV > 1 && m->d->keys - j <= VL ? K(NARROW) : K(PACKED)](&t);
    }
    N(change_scores)(x);
}

/* A row's keys: what it sees, or all. */
static void N(set_keys)(N(Rows) *x, int some)
{
    const hlort_attention *d = x->m->d;
    x->first = some ? d->keys : 0;
    x->end = some ? 0 : d->keys;
    for (int64_t r = 0; r < x->n; r++) {
        x->low[r] = some ? hlort_min(hlort_max(x->place[r] - d->above, 0), d->keys - 1) : 0;
        x->high[r] = some ? hlort_max(hlort_min(x->place[r] + d->below + 1, d->keys), x->low[r] + 1) : d->keys;
        x->first = hlort_min(x->first, x->low[r]);
        x->end = hlort_max(x->end, x->high[r]);
    }
}

/* Whether keys that rows do not see have weights of 0, which make 0 of their values. */
static int N(may_leave_out)(const N(Rows) *x, const float *tops)
{
    const hlort_attention *d = x->m->d;
    float                  hidden = d->hidden < -3e38f ? -3e38f : d->hidden; /* finite: rows of nothing above it keep all keys */
    int                    may = x->m->most_value <= 3e38f;
    if (d->beside_it) {
        float q = 0;
        for (int64_t r = 0; r < x->n; r++) {
            const float most = N(most)(x->w->q + r * K(LDA), 0, 1, hlort_ceildiv(d->head, G));
            q = most > q || most != most ? most : q;
        }
        hidden += 2 * d->bound * (float)d->head * q * x->m->most_key;
    }
    for (int64_t r = 0; r < x->n; r++)
        may &= tops[r] > hidden + 100.0f && tops[r] > hidden - hidden / 65536;
    return may;
}

/* Scores that are masked and that no epilogue has made so. */
static void N(hide)(N(Rows) *x)
{
    const hlort_attention *d = x->m->d;
    for (int64_t r = 0; r < x->n; r++)
        for (int64_t b = 0; b * N(KEYS) < d->keys; b++) {
            const int64_t n = hlort_min(d->keys - b * N(KEYS), N(KEYS)), low = hlort_min(hlort_max(x->place[r] - d->above - b * N(KEYS), 0), n);
            const int64_t high = hlort_min(hlort_max(x->place[r] + d->below + 1 - b * N(KEYS), 0), n);
            float        *s = N(scores)(x, b, r);
            for (int64_t j = 0; j < n; j++)
                s[j] *= d->scale;
            for (int64_t j = 0; j < low; j++)
                s[j] = d->beside_it ? s[j] + d->hidden : d->hidden;
            for (int64_t j = high; j < n; j++)
                s[j] = d->beside_it ? s[j] + d->hidden : d->hidden;
        }
    x->scale = 1;
}

static void N(sum_values)(const N(Rows) *x)
{
    const AttentionMember *m = x->m;
    const hlort_attention *d = m->d;
    const int64_t          words = hlort_ceildiv(d->keys, G);
    for (int64_t c = 0, panel = 0; c < d->wide; c += K(NR), panel++) {
        const int lies = c < N(columns_read)(d), mode = lies ? N(LYING) : NV > 1 && d->wide - c <= VL ? (int)K(NARROW) : K(PACKED);
        K(Tile)   t = { .c = x->w->o + c, .c_row = N(O_ROW) };
        for (int64_t b = x->first / N(KEYS); b * N(KEYS) < x->end; b++) {
            const int64_t from = hlort_max(x->first - b * N(KEYS), 0) / G, end = hlort_ceildiv(hlort_min(x->end - b * N(KEYS), N(KEYS)), G);
            t.kc = end - from;
            t.a = (const TW *)N(scores)(x, b, 0) + from;
            t.b = (TW *)m->values + (panel * words + b * N(KEYS) / G + from) * K(NR);
#if FUSED && IN_PLACE
            t.from = (const TE *)m->v + (b * N(KEYS) + from) * d->v_row + c;
            t.from_row = d->v_row;
            t.from_next = c + K(NR) < d->wide ? K(NR) : 0;
#endif
            K(kernels)[x->n][mode](&t);
            t.add = 1;
        }
    }
}

static void N(put_rows)(const N(Rows) *x)
{
    const hlort_attention *d = x->m->d;
    for (int64_t r = 0; r < x->n; r++) {
        float *from = x->w->o + r * N(O_ROW);
        for (int64_t c = 0; c < d->wide; c += VL)
            *(VCU *)(from + c) *= x->w->inverse[r];
#ifdef RESULTS
        if (x->m->o_is_narrow) {
            uint16_t *to = (uint16_t *)x->m->o + x->o[r], few[VL];
            for (int64_t c = 0; c < d->wide; c += VL) {
                const SET(vh) y = RESULTS(*(const VCU *)(from + c));
                if (d->o_col == 1 && c + VL <= d->wide) {
                    *(SET(vhu) *)(to + c) = y;
                    continue;
                }
                *(SET(vhu) *)few = y;
                for (int64_t l = 0; l < hlort_min(VL, d->wide - c); l++)
                    to[(c + l) * d->o_col] = few[l];
            }
            continue;
        }
#endif
        float  *to = (float *)x->m->o + x->o[r];
        int64_t c = 0;
        for (; c + VL <= d->wide && d->o_col == 1; c += VL)
            *(VCU *)(to + c) = *(const VCU *)(from + c);
        for (; c < d->wide; c++)
            to[c * d->o_col] = from[c];
    }
}

static void N(attend_group)(N(Rows) *x)
{
    const hlort_attention *d = x->m->d;
    float                  tops[MR];
    N(take_rows)(x);
    N(set_keys)(x, d->masked);
    N(make_scores)(x);
    N(find_tops)(x, tops);
    if (d->masked && !N(may_leave_out)(x, tops)) {
        N(set_keys)(x, 0);
        N(make_scores)(x);
        if (!x->m->how->epilogue)
            N(hide)(x);
        N(find_tops)(x, tops);
    }
    N(weigh_all)(x, tops);
    N(sum_values)(x);
    N(put_rows)(x);
}

/* ---- few rows: keys and values are read once, as they lie, with neighbours along rows of at least a vector ---- */

/* A vector that ends where a row does, of which `rest` elements are not in one before: zeros for the others. */
INLINE VC N(last_of)(const TE *end, int64_t rest)
{
    const K(Bytes) mask = *(const K(BytesU) *)(K(mask) + rest * (int64_t)sizeof(float));
    return (VC)((K(Bytes))N(widen)(end - VL) & mask);
}

enum {
    N(FEW_TOGETHER) = 2,              /* rows for which keys and values are converted once */
    N(FEW_SUMS) = MR >= 14 ? 16 : 8,  /* vectors of sums */
    N(FEW_AHEAD_BYTES) = 8192         /* from what is multiplied to what is fetched: two pages, at whose ends processors stop foreseeing */
};

/* Elements from a key or value to the one that is fetched meanwhile, of rows of n elements that are row apart. */
INLINE int64_t N(few_ahead)(int64_t n, int64_t row)
{
    return hlort_ceildiv(N(FEW_AHEAD_BYTES), n * (int64_t)sizeof(TE)) * row;
}

/* Scores of nr rows with the VL keys from j on. */
INLINE void N(few_products)(int nr, const N(Rows) *x, int64_t r, int64_t j)
{
    enum { KEYS = 4 }; /* at once */
    const hlort_attention *d = x->m->d;
    const int64_t          whole = d->head / VL * VL, rest = d->head - whole;
    const int64_t          ahead = N(few_ahead)(d->head, d->k_row), row_bytes = d->head * (int64_t)sizeof(TE);
    const float           *q = (const float *)x->w->q + r * K(LDA);
    VC                     s[N(FEW_TOGETHER)][VL];
    UNROLL for (int l = 0; l < VL; l += KEYS) {
        const TE *k[KEYS];
        UNROLL for (int e = 0; e < KEYS; e++) {
            k[e] = (const TE *)x->m->k + hlort_min(j + l + e, d->keys - 1) * d->k_row;
            UNROLL for (int i = 0; i < nr; i++)
                s[i][l + e] = (VC){ 0 };
        }
        for (int64_t at = 0; x->m->far && at < row_bytes; at += HLORT_LINE)
            UNROLL for (int e = 0; e < KEYS; e++)
                __builtin_prefetch((const char *)(k[e] + ahead) + at, 0, 2);
        for (int64_t p = 0; p < whole; p += VL)
            UNROLL for (int e = 0; e < KEYS; e++) {
                const VC y = N(widen)(k[e] + p);
                UNROLL for (int i = 0; i < nr; i++)
                    s[i][l + e] += *(const VCU *)(q + i * K(LDA) + p) * y;
            }
        if (rest)
            UNROLL for (int e = 0; e < KEYS; e++) {
                const VC y = N(last_of)(k[e] + d->head, rest);
                UNROLL for (int i = 0; i < nr; i++)
                    s[i][l + e] += *(const VCU *)(q + i * K(LDA) + d->head - VL) * y;
            }
    }
    UNROLL for (int i = 0; i < nr; i++)
        N(fold)(N(scores)(x, j / N(KEYS), r + i) + j % N(KEYS), s[i], VL, 1);
}

static void N(few_scores)(N(Rows) *x)
{
    for (int64_t j = 0; j < x->m->d->keys; j += VL) {
        int64_t r = 0;
        for (; r + N(FEW_TOGETHER) <= x->n; r += N(FEW_TOGETHER))
            N(few_products)(N(FEW_TOGETHER), x, r, j);
        if (r < x->n)
            N(few_products)(1, x, r, j);
    }
}

/* o += sum over n keys of their weights and nv vectors of their values, of nr rows, a few keys side by side. */
INLINE void N(few_columns)(int nv, int nr, int far, const float *w, const TE *v, int64_t v_row, int64_t n, float *o)
{
    const int     ways = N(FEW_SUMS) / (nv * nr), bytes = nv * VL * (int)sizeof(TE);
    const int64_t ahead = N(few_ahead)(nv * VL, v_row);
    VC            sum[N(FEW_SUMS)];
    int64_t       j = 0;
    UNROLL for (int i = 0; i < nr; i++)
        UNROLL for (int k = 0; k < nv; k++)
            sum[i * nv + k] = *(const VCU *)(o + i * N(O_ROW) + k * VL);
    UNROLL for (int k = nr * nv; k < N(FEW_SUMS); k++)
        sum[k] = (VC){ 0 };
    for (; j + ways <= n; j += ways) {
        if (far)
            UNROLL for (int e = 0; e < ways; e++)
                UNROLL for (int at = 0; at < bytes; at += HLORT_LINE)
                    __builtin_prefetch((const char *)(v + (j + e) * v_row + ahead) + at, 0, 2);
        UNROLL for (int e = 0; e < ways; e++)
            UNROLL for (int k = 0; k < nv; k++) {
                const VC y = N(widen)(v + (j + e) * v_row + k * VL);
                UNROLL for (int i = 0; i < nr; i++)
                    sum[(e * nr + i) * nv + k] += w[i * K(LDA) + j + e] * y;
            }
    }
    for (; j < n; j++)
        UNROLL for (int k = 0; k < nv; k++) {
            const VC y = N(widen)(v + j * v_row + k * VL);
            UNROLL for (int i = 0; i < nr; i++)
                sum[i * nv + k] += w[i * K(LDA) + j] * y;
        }
    UNROLL for (int e = 1; e < ways; e++)
        UNROLL for (int k = 0; k < nr * nv; k++)
            sum[k] += sum[e * nr * nv + k];
    UNROLL for (int i = 0; i < nr; i++)
        UNROLL for (int k = 0; k < nv; k++)
            *(VCU *)(o + i * N(O_ROW) + k * VL) = sum[i * nv + k];
}

/* The values of a block for nr rows. */
INLINE void N(few_rows)(int nr, const N(Rows) *x, int64_t b, int64_t r)
{
    const int              most = nr == 1 ? 8 : N(FEW_SUMS) / nr;
    const hlort_attention *d = x->m->d;
    const int64_t          n = hlort_min(d->keys - b * N(KEYS), N(KEYS)), vectors = d->wide / VL, aside = (vectors + 1) * VL; /* where the vector that ends with the row is summed */
    const float           *w = N(scores)(x, b, r);
    const TE              *v = (const TE *)x->m->v + b * N(KEYS) * d->v_row;
    float                 *o = x->w->o + r * N(O_ROW);
    int64_t                k = 0;
    for (; k + most <= vectors; k += most)
        N(few_columns)(most, nr, x->m->far, w, v + k * VL, d->v_row, n, o + k * VL);
    for (; k + 4 <= vectors; k += 4)
        N(few_columns)(4, nr, x->m->far, w, v + k * VL, d->v_row, n, o + k * VL);
    for (; k < vectors; k++)
        N(few_columns)(1, nr, x->m->far, w, v + k * VL, d->v_row, n, o + k * VL);
    if (d->wide % VL)
        N(few_columns)(1, nr, x->m->far, w, v + d->wide - VL, d->v_row, n, o + aside);
}

static void N(few_values)(const N(Rows) *x)
{
    const hlort_attention *d = x->m->d;
    const int64_t          aside = (d->wide / VL + 1) * VL;
    for (int64_t r = 0; r < x->n; r++)
        __builtin_memset(x->w->o + r * N(O_ROW), 0, (uint64_t)(aside + VL) * sizeof(float));
    for (int64_t b = 0; b * N(KEYS) < d->keys; b++) {
        int64_t r = 0;
        for (; r + N(FEW_TOGETHER) <= x->n; r += N(FEW_TOGETHER))
            N(few_rows)(N(FEW_TOGETHER), x, b, r);
        if (r < x->n)
            N(few_rows)(1, x, b, r);
    }
    for (int64_t r = 0; r < x->n && d->wide % VL; r++)
        __builtin_memcpy(x->w->o + r * N(O_ROW) + d->wide - VL, x->w->o + r * N(O_ROW) + aside, VL * sizeof(float));
}

static void N(attend_few)(N(Rows) *x)
{
    const int rounded = x->m->d->rounded;
    float     tops[MR], sums[MR];
    N(take_rows)(x);
    N(set_keys)(x, 0);
    N(few_scores)(x);
    N(change_scores)(x);
    if (x->m->d->masked && !x->m->how->epilogue)
        N(hide)(x);
    N(find_tops)(x, tops);
    for (int64_t r = 0; r < x->n; r++)
        x->top[r] = rounded ? N(weigh)(x, r, tops[r], 0, 0, 1, 0, 1) : N(weigh)(x, r, tops[r], 0, 0, 0, 0, 1);
    N(fold)(sums, x->top, x->n, 1);
    for (int64_t r = 0; r < x->n; r++) {
        x->w->inverse[r] = 1;
        if (rounded)
            N(weigh)(x, r, tops[r], 1, 0, 1, 1, N(inverse)(x, r, tops[r], sums[r]));
        else
            N(weigh)(x, r, tops[r], 1, 0, 0, 1, N(inverse)(x, r, tops[r], sums[r]));
    }
    N(few_values)(x);
    N(put_rows)(x);
}

/* Groups are the same whoever computes them. */
static void N(attention_rows)(const AttentionMember *m, int64_t from, int64_t end, void *memory)
{
    const int64_t rows = m->d->rows, groups = hlort_ceildiv(rows, MR);
    N(Rows)       x = { .m = m, .w = memory };
    for (int64_t g = from; g < end; g++) {
        x.i = g * (rows / groups) + hlort_min(g, rows % groups);
        x.n = rows / groups + (g < rows % groups);
        if (m->few)
            N(attend_few)(&x);
        else
            N(attend_group)(&x);
    }
}
static const AttentionKernels N(attention) = { N(attention_pack), N(attention_rows), MR };
