/* sort_word.h - elements of BITS bits, for sort_body.h. Loops over a line are vectors. */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define S            PASTE(PASTE(int, BITS), _t)
#define U            PASTE(PASTE(uint, BITS), _t)
#define W(x)         SET(PASTE(x, BITS))
#define LANES        (SORT_LINE / (BITS / 8))

typedef struct W(Word_) {
    S first, size, down, infinity;
} W(Word_);

static W(Word_) W(word_)(const SortWord *w)
{
    return (W(Word_)){ (S)w->first, (S)w->size, (S)w->down, (S)w->infinity };
}

INLINE S W(signed_)(S x, W(Word_) w, int canonical)
{
    if (canonical) {
        const S size = (S)(x & w.size);
        x = size == 0 ? 0 : x;
        x = size > w.infinity ? (S)(w.infinity + 1) : x;
    }
    x ^= w.first;
#if BITS > 8 /* no floats are shorter */
    x ^= (S)((S)(x >> (BITS - 1)) & w.size);
#endif
    return x ^ w.down;
}

#if BITS > 32
#define KEY       uint64_t
#define RANK_KEYS RANKED(rank_64)
#else
#define KEY       uint32_t
#define RANK_KEYS RANKED(rank_32)
#endif

INLINE void W(keys_as_)(W(Word_) w, int canonical, const S *restrict x, int64_t n, KEY *restrict to)
{
    for (int64_t k = 0; k < n; k++)
        to[k] = (U)((U)W(signed_)(x[k], w, canonical) ^ (U)((U)1 << (BITS - 1)));
}

static void W(keys_)(const SortWord *w, const void *p, int64_t n, void *out)
{
    if (w->infinity)
        W(keys_as_)(W(word_)(w), 1, p, n, out);
    else
        W(keys_as_)(W(word_)(w), 0, p, n, out);
}

INLINE void W(least_as_)(W(Word_) w, int canonical, const S *restrict x, int64_t blocks, int64_t height, S *restrict to)
{
    for (int64_t b = 0; b < blocks; b++, to += LANES) {
        S line[LANES];
        for (int j = 0; j < LANES; j++)
            line[j] = W(signed_)(x[j], w, canonical);
        x += LANES;
        for (int64_t i = 1; i < height; i++, x += LANES)
            for (int j = 0; j < LANES; j++) {
                const S v = W(signed_)(x[j], w, canonical);
                line[j] = v < line[j] ? v : line[j];
            }
        __builtin_memcpy(to, line, sizeof line);
    }
}

static void W(least_)(const SortWord *w, const void *p, int64_t blocks, int64_t height, void *out)
{
    if (w->infinity)
        W(least_as_)(W(word_)(w), 1, p, blocks, height, out);
    else
        W(least_as_)(W(word_)(w), 0, p, blocks, height, out);
}

static int64_t W(count_)(const S *restrict x, int64_t n, S most)
{
    int64_t count = 0;
    while (n > 0) { /* so few that a sum does not overflow */
        const int64_t m = hlort_min(n, BITS == 8 ? 64 : 16384);
        S             some = 0;
        for (int64_t k = 0; k < m; k++)
            some = (S)(some + (x[k] <= most));
        count += some;
        x += m;
        n -= m;
    }
    return count;
}

/* Bit by bit from the highest in which keys differ. Where there are many, two are one as long as enough are left. */
static int64_t W(bar_)(void *keys, int64_t n, int64_t kept)
{
    enum { FEW = 32 };
    const U sign = (U)((U)1 << (BITS - 1));
    S *restrict x = keys;
    S low = x[0], high = x[0];
    while (n >= 16 * kept && n > LANES) {
        const int64_t m = (n / LANES + 1) / 2 * LANES;
        for (int64_t k = 0; k < n - m; k++)
            x[k] = x[k] < x[m + k] ? x[k] : x[m + k];
        n = m;
    }
    if (n <= FEW) {
        KEY key[FEW + SORT_LINE / sizeof(KEY)], place[FEW + SORT_LINE / sizeof(KEY)];
        for (int64_t k = 0; k < n; k++)
            key[k] = (U)((U)x[k] ^ sign);
        RANK_KEYS(key, n, place);
        for (int64_t k = 0; k < n; k++)
            low = place[k] == (KEY)(kept - 1) ? x[k] : low;
        return low;
    }
    for (int64_t k = 0; k < n; k++) {
        low = x[k] < low ? x[k] : low;
        high = x[k] > high ? x[k] : high;
    }
    const uint64_t differ = (U)((U)low ^ (U)high);
    uint64_t       bit = differ ? (uint64_t)1 << (63 - __builtin_clzll(differ)) : 0, least = (U)((U)low ^ sign);
    least &= ~(bit ? 2 * bit - 1 : 0);
    for (; bit; bit >>= 1) { /* the one looked for is at least `least` and has the bits above */
        const uint64_t most = least + bit - 1;
        const int64_t  count = W(count_)(x, n, (S)(U)((U)most ^ sign));
        if (count == kept)
            return (S)(U)((U)most ^ sign);
        least = count < kept ? least + bit : least;
    }
    return (S)(U)((U)least ^ sign);
}

static int64_t W(next_)(const void *lines, int64_t from, int64_t n, int64_t bar)
{
    const S *restrict x = (const S *)lines + from * LANES;
    const S most = (S)bar;
    for (; from < n; from++, x += LANES) {
        S some = 0;
        for (int j = 0; j < LANES; j++)
            some = (S)(some | (x[j] <= most));
        if (some)
            return from;
    }
    return n;
}

#undef KEY
#undef RANK_KEYS
#undef PASTE_
#undef PASTE
#undef S
#undef U
#undef W
#undef LANES
#undef BITS
