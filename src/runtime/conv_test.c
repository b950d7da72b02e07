/* Convolutions against plain loops, on every set of instructions that this processor has: small whole numbers, so that sums are exact in any order and every result
 * must be equal. Operands are allocated to the byte: a sanitizer sees what is read beside them. */
#include "runtime/image.h"
#include "runtime/test_types.h"

#include <string.h>

enum { MOST = HLORT_MOST_SPATIAL };

typedef struct Case {
    hlort_conv v;
    int64_t    x_count, w_count, y_count;
    int       *x, *w, *want;
} Case;

/* ---- the definition ---- */

/* The sum over the taps of dimension d and those behind it, at pixel o, from x and w on. */
static int sum_taps(const Case *c, int64_t d, const int64_t *o, int64_t x, int64_t w)
{
    const hlort_conv *v = &c->v;
    int               sum = 0;
    if (d == v->n_spatial) {
        for (int64_t i = 0; i < v->in; i++)
            sum += c->x[x + i * v->x_in] * c->w[w + i * v->w_in];
        return sum;
    }
    for (int64_t t = 0; t < v->spatial[d].window; t++) {
        int64_t at = o[d] * v->spatial[d].stride + t * v->spatial[d].window_dilation - v->spatial[d].pad, base = v->spatial[d].base_dilation;
        if (at >= 0 && at % base == 0 && at / base < v->spatial[d].in)
            sum += sum_taps(c, d + 1, o, x + at / base * v->spatial[d].x, w + t * v->spatial[d].w);
    }
    return sum;
}

static void pixels(Case *c, int64_t d, int64_t *o, int64_t x, int64_t w, int64_t y)
{
    if (d == c->v.n_spatial) {
        c->want[y] = sum_taps(c, 0, o, x, w);
        return;
    }
    for (o[d] = 0; o[d] < c->v.spatial[d].out; o[d]++)
        pixels(c, d + 1, o, x, w, y + o[d] * c->v.spatial[d].y);
}

enum { UNTOUCHED = 77 };

static void add_up(Case *c)
{
    const hlort_conv *v = &c->v;
    int64_t           o[MOST];
    c->want = malloc((size_t)(c->y_count + 1) * sizeof *c->want);
    for (int64_t k = 0; k < c->y_count; k++)
        c->want[k] = UNTOUCHED;
    for (int64_t n = 0; n < v->batch; n++)
        for (int64_t g = 0; g < v->groups; g++)
            for (int64_t f = 0; f < v->out; f++)
                pixels(c, 0, o, n * v->x_batch + g * v->x_group, v->w_first + g * v->w_group + f * v->w_out, n * v->y_batch + g * v->y_group + f * v->y_out);
}

static void expect(Case *c, uint32_t *state)
{
    c->x = values(c->x_count, random_bits(state));
    c->w = values(c->w_count, random_bits(state));
    add_up(c);
}

/* ---- layouts ---- */

/* Distances of dimensions of these sizes in some order of memory: the last of `order` is the fastest. With `gap` elements between rows. */
static int64_t lay_out(int n, const int64_t *sizes, const int *order, int64_t gap, int64_t *distances)
{
    int64_t all = 1;
    for (int k = n - 1; k >= 0; k--) {
        distances[order[k]] = all;
        all = all * sizes[order[k]] + (k == n - 1 && sizes[order[k]] ? gap : 0);
    }
    return all > 0 ? all : 0;
}

typedef enum Order { FEATURES_LAST, FEATURES_SECOND, BATCH_LAST, SHUFFLED, ORDERS } Order;

static void shuffle(int n, int *order, uint32_t *state)
{
    for (int k = n - 1; k > 0; k--) {
        int j = (int)(random_bits(state) >> 16) % (k + 1), x = order[k];
        order[k] = order[j];
        order[j] = x;
    }
}

/* Of an array [first, group, second, spatial...], 3 + s dimensions. */
static void choose_order(Order kind, int s, int *order, uint32_t *state)
{
    int n = 0;
    if (kind == BATCH_LAST)
        order[n++] = 2;
    else
        order[n++] = 0;
    if (kind == FEATURES_SECOND) {
        order[n++] = 1;
        order[n++] = 2;
    }
    for (int d = 0; d < s; d++)
        order[n++] = 3 + d;
    if (kind != FEATURES_SECOND) {
        order[n++] = 1;
        order[n++] = kind == BATCH_LAST ? 0 : 2;
    }
    if (kind == SHUFFLED)
        shuffle(n, order, state);
}

/* Of a kernel [in, group, out, spatial...]: as 01io, oi01, i01o. */
static void choose_kernel_order(Order kind, int s, int *order, uint32_t *state)
{
    static const int front[ORDERS][3] = { [FEATURES_SECOND] = { 1, 2, 0 }, [BATCH_LAST] = { 0 } }, back[ORDERS][3] = { { 0, 1, 2 }, { 0 }, { 1, 2 }, { 0, 1, 2 } };
    static const int in_front[ORDERS] = { 0, 3, 1, 0 };
    int              n = 0;
    for (int k = 0; k < in_front[kind]; k++)
        order[n++] = front[kind][k];
    for (int d = 0; d < s; d++)
        order[n++] = 3 + d;
    for (int k = 0; k < 3 - in_front[kind]; k++)
        order[n++] = back[kind][k];
    if (kind == SHUFFLED)
        shuffle(n, order, state);
}

static int64_t product(int n, const int64_t *sizes)
{
    int64_t all = 1;
    for (int k = 0; k < n; k++)
        all *= sizes[k];
    return all;
}

/* Fills in the distances and allocates nothing yet. */
static void place(Case *c, const Order orders[3], int reversed, int64_t gap, uint32_t *state)
{
    hlort_conv *v = &c->v;
    const int   s = (int)v->n_spatial, n = 3 + s;
    int64_t     x[3 + MOST] = { v->batch, v->groups, v->in }, w[3 + MOST] = { v->in, v->groups, v->out }, y[3 + MOST] = { v->batch, v->groups, v->out };
    int64_t     at[3 + MOST];
    int         order[3 + MOST];
    for (int d = 0; d < s; d++) {
        x[3 + d] = v->spatial[d].in;
        w[3 + d] = v->spatial[d].window;
        y[3 + d] = v->spatial[d].out;
    }
    choose_order(orders[0], s, order, state);
    c->x_count = lay_out(n, x, order, gap, at);
    v->x_batch = at[0];
    v->x_group = at[1];
    v->x_in = at[2];
    for (int d = 0; d < s; d++)
        v->spatial[d].x = at[3 + d];
    choose_kernel_order(orders[1], s, order, state);
    c->w_count = lay_out(n, w, order, 0, at);
    v->w_in = at[0];
    v->w_group = at[1];
    v->w_out = at[2];
    v->w_first = 0;
    for (int d = 0; d < s; d++) {
        v->spatial[d].w = at[3 + d];
        if (reversed >> d & 1 && w[3 + d] > 0) {
            v->w_first += (w[3 + d] - 1) * at[3 + d];
            v->spatial[d].w = -at[3 + d];
        }
    }
    choose_order(orders[2], s, order, state);
    c->y_count = lay_out(n, y, order, gap, at);
    v->y_batch = at[0];
    v->y_group = at[1];
    v->y_out = at[2];
    for (int d = 0; d < s; d++)
        v->spatial[d].y = at[3 + d];
    if (product(n, x) == 0)
        c->x_count = 0;
    if (product(n, w) == 0)
        c->w_count = 0;
}

/* ---- running ---- */

static hlort_pool *pool; /* whose threads work, if any */

static void report(const hlort_conv *v)
{
    fprintf(stderr, "  batch %lld groups %lld in %lld out %lld, x %lld %lld %lld, w %lld %lld %lld, y %lld %lld %lld\n", (long long)v->batch, (long long)v->groups,
            (long long)v->in, (long long)v->out, (long long)v->x_batch, (long long)v->x_group, (long long)v->x_in, (long long)v->w_group, (long long)v->w_in,
            (long long)v->w_out, (long long)v->y_batch, (long long)v->y_group, (long long)v->y_out);
    for (int64_t d = 0; d < v->n_spatial; d++)
        fprintf(stderr, "  %lld -> %lld, window %lld stride %lld pad %lld dilation %lld base %lld, x %lld w %lld y %lld\n", (long long)v->spatial[d].in,
                (long long)v->spatial[d].out, (long long)v->spatial[d].window, (long long)v->spatial[d].stride, (long long)v->spatial[d].pad,
                (long long)v->spatial[d].window_dilation, (long long)v->spatial[d].base_dilation, (long long)v->spatial[d].x, (long long)v->spatial[d].w,
                (long long)v->spatial[d].y);
}

/* An epilogue that multiplies the sums and counts them; without a Y it puts them where they belong. */
typedef struct Seen {
    Kind   sums, out;
    void  *y; /* to write to, or NULL: they stay in the tile */
    int   *times;
    double factor;
} Seen;

static void see(const void *context, const hlort_tile *t)
{
    const Seen *s = context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            const int64_t at = t->place + i * t->by + j;
            const double  v = get(s->sums, t->sums, i * t->stride + j) * s->factor;
            s->times[at]++;
            if (s->y)
                put(s->out, s->y, at, stored(s->out, v));
            else
                put(s->sums, t->sums, i * t->stride + j, v);
        }
}

enum { BARE, DOUBLED, TILES_ONLY, MODES };

/* Once more, with the kernel packed by the first of two calls: the same bits. */
static void run_packed(const Case *c, const KernelSet *s, GemmType t, const hlort_how *how, const void *x, const void *w, const void *y)
{
    int64_t taps = 1, bytes = hlort_conv_packed(&c->v, hlort_bytes[t][0]);
    for (int64_t d = 0; d < c->v.n_spatial; d++)
        taps *= c->v.spatial[d].window;
    if (bytes == 0)
        bytes = c->v.groups * hlort_panels_bytes(hlort_bytes[t][0], taps * c->v.in, c->v.out);
    const size_t all = (size_t)c->y_count * size_of[kinds[t].out];
    hlort_packed packed = { .bytes = bytes, .memory = aligned_alloc(64, (size_t)bytes) };
    void        *again = malloc(all + 1);
    hlort_how    with = *how;
    with.packed = &packed;
    for (int call = 0; call < 2; call++) {
        memcpy(again, y, all);
        for (int64_t k = 0; k < c->y_count; k++)
            if (c->want[k] != UNTOUCHED)
                put(kinds[t].out, again, k, 1);
        hlort_convolve(s, t, &c->v, &with, x, w, again);
        CHECK(memcmp(again, y, all) == 0);
    }
    free(again);
    free(packed.memory);
}

static void run_values(const Case *c, const KernelSet *s, GemmType t, int mode)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    void       *x = operand(kinds[t].in, c->x, c->x_count), *w = operand(kinds[t].in, c->w, c->w_count);
    int        *before = malloc((size_t)(c->y_count + 1) * sizeof *before);
    for (int64_t k = 0; k < c->y_count; k++)
        before[k] = UNTOUCHED;
    void *y = operand(kinds[t].out, before, c->y_count);
    int *times = calloc((size_t)c->y_count + 1, sizeof *times);
    mode = mode == DOUBLED && kinds[t].out != kinds[t].sums ? TILES_ONLY : mode;
    Seen      seen = { kinds[t].sums, kinds[t].out, mode == TILES_ONLY ? y : NULL, times, 2 };
    hlort_how how = { .work = work, .pool = pool, .epilogue = mode == BARE ? NULL : see, .context = &seen };
    hlort_convolve(s, t, &c->v, &how, x, w, mode == TILES_ONLY ? NULL : y);
    for (int64_t k = 0; k < c->y_count; k++) {
        const int    of_y = c->want[k] != UNTOUCHED || (mode != BARE && times[k]);
        const double want = stored(kinds[t].out, mode == BARE || !of_y ? c->want[k] : 2.0 * c->want[k]);
        if (get(kinds[t].out, y, k) != want || (mode != BARE && times[k] != of_y)) {
            fprintf(stderr, "%s type %d mode %d: element %lld is %g, not %g (seen %d times)\n", s->name, t, mode, (long long)k, get(kinds[t].out, y, k), want, times[k]);
            report(&c->v);
            exit(1);
        }
    }
    if (mode == BARE)
        run_packed(c, s, t, &how, x, w, y);
    free(times);
    free(x);
    free(w);
    free(y);
    free(before);
}

static void forget(Case *c)
{
    free(c->x);
    free(c->w);
    free(c->want);
}

static void run(const Case *c, const KernelSet *s, GemmType t, int mode)
{
    if (kinds[t].in != U8) {
        run_values(c, s, t, mode);
        return;
    }
    Case u = *c;
    u.x = magnitudes(c->x, c->x_count);
    u.w = magnitudes(c->w, c->w_count);
    add_up(&u);
    run_values(&u, s, t, mode);
    forget(&u);
}

/* On every set, with some of the types. */
static void run_everywhere(const Case *c, uint32_t *state, uint32_t one_in)
{
    for (int s = 0; s < N_SETS; s++)
        for (int t = 0; t < GEMM_C64 && has(sets[s]); t++)
            if ((random_bits(state) >> 16) % one_in == 0)
                run(c, sets[s], (GemmType)t, (int)((random_bits(state) >> 16) % MODES));
}

/* ---- the tests ---- */

static int64_t below(uint32_t *state, uint32_t n)
{
    return (int64_t)((random_bits(state) >> 12) % n);
}

/* The size of the result that covers everything, some pixels more or less. */
static int64_t out_size(const hlort_conv *v, int64_t d, int64_t high)
{
    int64_t in = v->spatial[d].in, base = in > 0 ? (in - 1) * v->spatial[d].base_dilation + 1 : 0;
    int64_t window = v->spatial[d].window > 0 ? (v->spatial[d].window - 1) * v->spatial[d].window_dilation + 1 : 0;
    int64_t room = base + v->spatial[d].pad + high - window;
    return room < 0 ? 0 : room / v->spatial[d].stride + 1;
}

static void random_case(Case *c, uint32_t *state)
{
    static const uint32_t features[] = { 2, 5, 20, 40 };
    hlort_conv           *v = &c->v;
    *c = (Case){ .v = { .batch = below(state, 4), .groups = below(state, 3) ? 1 : below(state, 20), .n_spatial = below(state, MOST + 1) } };
    v->in = below(state, features[below(state, 4)]);
    v->out = below(state, features[below(state, 4)]);
    if (v->groups > 1 && below(state, 2)) {
        v->in = v->out = 1;
        v->groups = 1 + below(state, 2) * below(state, 150);
    }
    for (int64_t d = 0; d < v->n_spatial; d++) {
        v->spatial[d].in = below(state, v->n_spatial == 3 ? 6 : v->n_spatial == 2 ? 12 : 50);
        v->spatial[d].window = below(state, v->n_spatial == 3 ? 4 : 7);
        v->spatial[d].stride = below(state, 2) ? 1 : 1 + below(state, 3);
        v->spatial[d].pad = below(state, 3) ? below(state, 4) : below(state, 4) - 3;
        v->spatial[d].window_dilation = below(state, 3) ? 1 : 1 + below(state, 4);
        v->spatial[d].base_dilation = below(state, 3) ? 1 : 1 + below(state, 4);
        v->spatial[d].out = out_size(v, d, below(state, 6) - 2);
    }
    Order orders[3] = { (Order)below(state, ORDERS), (Order)below(state, ORDERS), (Order)below(state, ORDERS) };
    if (below(state, 2))
        orders[1] = orders[2] = orders[0];
    place(c, orders, (int)below(state, 3) ? 0 : (int)below(state, 8), below(state, 4) ? 0 : 3, state);
}

/* Windows of 3 along some dimensions, with fewer products: tiles at every border, more of them and of features than a block has. The values stay exact. */
static void pair_case(Case *c, uint32_t *state)
{
    static const uint32_t features[] = { 3, 20, 70, 130 };
    hlort_conv           *v = &c->v;
    *c = (Case){ .v = { .batch = 1 + below(state, 3), .groups = below(state, 4) ? 1 : 2, .fewer = 1, .n_spatial = 1 + below(state, MOST) } };
    v->in = 1 + below(state, features[below(state, 4)]);
    v->out = 1 + below(state, features[below(state, 4)]);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        const int pairs = d == v->n_spatial - 1 || below(state, 4);
        v->spatial[d].in = 1 + below(state, v->n_spatial == 3 ? 6 : v->n_spatial == 2 ? (below(state, 8) ? 12 : 70) : 150);
        v->spatial[d].window = pairs ? 3 : 1 + below(state, 3);
        v->spatial[d].stride = pairs ? 1 : 1 + below(state, 2);
        v->spatial[d].pad = below(state, 3) ? 1 : below(state, 9) - 4;
        v->spatial[d].window_dilation = pairs ? 1 : 1 + below(state, 2);
        v->spatial[d].base_dilation = 1;
        v->spatial[d].out = out_size(v, d, below(state, 3) ? 1 : below(state, 9) - 4);
    }
    Order orders[3] = { (Order)below(state, ORDERS), (Order)below(state, ORDERS), (Order)below(state, ORDERS) };
    if (below(state, 2))
        orders[1] = orders[2] = orders[0];
    place(c, orders, (int)below(state, 3) ? 0 : (int)below(state, 8), below(state, 4) ? 0 : 3, state);
}

/* Large windows that make few pixels, of a batch of features: lines longer than a block of terms, more rows and columns than a tile and a block have. */
static void gradient_case(Case *c, uint32_t *state)
{
    static const uint32_t features[] = { 6, 20, 40, 200 };
    hlort_conv           *v = &c->v;
    *c = (Case){ .v = { .batch = 4 + below(state, features[below(state, 3)]), .groups = below(state, 3) ? 1 : 1 + below(state, 5), .n_spatial = 1 + below(state, MOST) } };
    v->in = 1 + below(state, 4);
    v->out = 1 + below(state, features[below(state, 4)]);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        const int line = d == v->n_spatial - 1 || below(state, 2);
        v->spatial[d].window = !line ? 1 + below(state, 3) : v->n_spatial == 3 ? 4 + below(state, 3) : v->n_spatial == 2 ? 4 + below(state, 20) : 4 + below(state, 500);
        v->spatial[d].stride = 1 + below(state, 2);
        v->spatial[d].window_dilation = below(state, 3) ? 1 : 1 + below(state, 3);
        v->spatial[d].base_dilation = 1;
        v->spatial[d].in = (v->spatial[d].window - 1) * v->spatial[d].window_dilation + 1 + below(state, 4);
        v->spatial[d].pad = below(state, 6) - 2;
        v->spatial[d].out = out_size(v, d, below(state, 5) - 2);
    }
    Order orders[3] = { below(state, 2) ? BATCH_LAST : SHUFFLED, (Order)below(state, ORDERS), (Order)below(state, ORDERS) };
    place(c, orders, (int)below(state, 3) ? 0 : (int)below(state, 8), below(state, 4) ? 0 : 3, state);
}

/* Long windows along neighbours that pixels are not, which are the columns of the product: some beside the image in part, panels that end within a vector. */
static void apart_case(Case *c, uint32_t *state)
{
    hlort_conv *v = &c->v;
    *c = (Case){ .v = { .batch = 1 + below(state, 3), .groups = below(state, 4) ? 1 : 2, .n_spatial = 1 + below(state, 2) } };
    v->in = 1 + below(state, 4);
    v->out = 5 + below(state, 30);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        const int line = d == v->n_spatial - 1;
        v->spatial[d].window = line ? 4 + below(state, v->n_spatial == 2 ? 30 : 200) : 1 + below(state, 3);
        v->spatial[d].stride = line ? 1 + below(state, 70) : 1 + below(state, 2);
        v->spatial[d].window_dilation = line || below(state, 3) ? 1 : 2;
        v->spatial[d].base_dilation = 1;
        v->spatial[d].in = line ? v->spatial[d].window + below(state, 900) : 1 + below(state, 5);
        v->spatial[d].pad = below(state, 3) ? 0 : below(state, 60) - 10;
        v->spatial[d].out = out_size(v, d, below(state, 3) ? 0 : below(state, 60) - 10);
    }
    Order orders[3] = { below(state, 4) ? FEATURES_SECOND : FEATURES_LAST, (Order)below(state, ORDERS), FEATURES_SECOND };
    place(c, orders, below(state, 3) ? 0 : (int)below(state, 4), below(state, 4) ? 0 : 3, state);
}

/* Windows of few terms, of every type of floats: lines longer than a band, several bands, kernels of several panels, groups; phases of a dilated base. */
static void band_or_phase(Case *c, int dilated, uint32_t *state)
{
    static const uint32_t features[] = { 4, 9, 20, 60 };
    hlort_conv           *v = &c->v;
    *c = (Case){ .v = { .batch = 1 + below(state, 3), .groups = below(state, 2) ? 1 : 1 + below(state, 9), .n_spatial = 1 + below(state, MOST) } };
    v->in = 1 + below(state, features[below(state, 3)]);
    v->out = 4 + below(state, features[below(state, 4)]);
    for (int64_t d = 0; d < v->n_spatial; d++) {
        v->spatial[d].in = 4 + below(state, v->n_spatial == 3 ? 6 : v->n_spatial == 2 ? 30 : 2000);
        v->spatial[d].window = 1 + below(state, d == v->n_spatial - 1 ? 7 : 3);
        v->spatial[d].stride = 1 + below(state, 3);
        v->spatial[d].pad = below(state, 6) - 2;
        v->spatial[d].window_dilation = below(state, 3) ? 1 : 1 + below(state, 3);
        v->spatial[d].base_dilation = dilated ? 1 + below(state, 4) : 1;
        v->spatial[d].out = out_size(v, d, below(state, 5) - 2);
    }
    Order orders[3] = { below(state, 4) ? FEATURES_LAST : SHUFFLED, (Order)below(state, ORDERS), FEATURES_LAST };
    place(c, orders, (int)below(state, 3) ? 0 : (int)below(state, 8), below(state, 4) ? 0 : 3, state);
}

static void band_case(Case *c, uint32_t *state)
{
    band_or_phase(c, 0, state);
}

static void phase_case(Case *c, uint32_t *state)
{
    band_or_phase(c, 1, state);
}

static int is_gradient(const hlort_conv *v)
{
    return hlort_conv_gradient(v) >= 0;
}

static const struct {
    const char *name;
    int         count;
    uint32_t    seed;
    void      (*make)(Case *c, uint32_t *state);
    int       (*is_such)(const hlort_conv *v); /* holds for a third of them at least; or NULL */
    int         n_types;                       /* one of the first so many; 0: all, on one in eight of sets and types */
    int         doubled;                       /* the epilogue of one in eight */
} draws[] = {
    { "random", 4000, 1, random_case, NULL, 0, 0 },
    { "pairs", 800, 3, pair_case, NULL, GEMM_F64, 1 },
    { "gradients", 600, 17, gradient_case, is_gradient, GEMM_BF16, 1 },
    { "bands", 800, 19, band_case, hlort_conv_in_bands, GEMM_S32, 0 },
    { "phases", 400, 19, phase_case, NULL, GEMM_S32, 0 },
    { "apart", 500, 23, apart_case, NULL, GEMM_C64, 1 },
};

static void test_draws(void)
{
    for (size_t e = 0; e < sizeof draws / sizeof *draws; e++) {
        uint32_t state = draws[e].seed;
        int      found = 0;
        for (int k = 0; k < draws[e].count; k++) {
            Case c;
            draws[e].make(&c, &state);
            found += draws[e].is_such && draws[e].is_such(&c.v);
            expect(&c, &state);
            if (draws[e].n_types == 0)
                run_everywhere(&c, &state, 8);
            for (int s = 0; s < N_SETS && draws[e].n_types > 0; s++)
                if (has(sets[s]))
                    run(&c, sets[s], (GemmType)below(&state, (uint32_t)draws[e].n_types), draws[e].doubled && k % 8 == 0 ? DOUBLED : BARE);
            forget(&c);
        }
        CHECK(!draws[e].is_such || found > draws[e].count / 3);
        printf("ok %s\n", draws[e].name);
    }
}

/* More columns and rows than a block has, in each order of memory. */
static void test_blocks(void)
{
    static const int64_t sizes[][6] = { /* batch, in, out, size, window, stride */
        { 1, 30, 20, 12, 5, 1 }, { 2, 64, 33, 9, 3, 1 }, { 3, 3, 64, 23, 7, 2 }, { 1, 300, 17, 6, 2, 1 }, { 5, 16, 8, 11, 3, 2 }, { 40, 3, 10, 9, 8, 1 },
    };
    uint32_t state = 5;
    for (size_t e = 0; e < sizeof sizes / sizeof *sizes; e++)
        for (Order order = 0; order < SHUFFLED; order++)
            for (int same = 0; same < 2; same++) {
                Case c = { .v = { .batch = sizes[e][0], .groups = 1, .in = sizes[e][1], .out = sizes[e][2], .n_spatial = 2 } };
                for (int64_t d = 0; d < 2; d++) {
                    c.v.spatial[d].in = sizes[e][3];
                    c.v.spatial[d].window = sizes[e][4];
                    c.v.spatial[d].stride = sizes[e][5];
                    c.v.spatial[d].pad = 1;
                    c.v.spatial[d].window_dilation = c.v.spatial[d].base_dilation = 1;
                    c.v.spatial[d].out = out_size(&c.v, d, 1);
                }
                Order orders[3] = { order, same ? order : FEATURES_LAST, order };
                place(&c, orders, 0, 0, &state);
                expect(&c, &state);
                run_everywhere(&c, &state, 2);
                forget(&c);
            }
    puts("ok blocks");
}

/* The same bits for any number of threads. */
static void test_threads(void)
{
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    uint32_t    state = 9;
    for (int e = 0; e < 14; e++) {
        const int gradient = e == 12;
        Case      c = { .v = { .fewer = e >= 9, .batch = gradient ? 24 : e == 6 || e == 8 ? 1 : 2, .groups = e == 2 ? 4 : e == 5 ? 24 : e == 13 ? 9 : 1,
                              .in = e == 5 ? 1 : e == 13 ? 4 : 24, .n_spatial = 2 } };
        c.v.out = e == 13 ? 12 : e == 3 || e >= 9 ? 130 : e == 5 ? 1 : e >= 6 ? 2 : 20;
        for (int64_t d = 0; d < 2; d++) {
            c.v.spatial[d].in = e == 3 ? 7 : 20;
            c.v.spatial[d].window = gradient ? 20 : 3;
            c.v.spatial[d].pad = c.v.spatial[d].window_dilation = 1;
            c.v.spatial[d].stride = e == 13 ? 2 : 1;
            c.v.spatial[d].base_dilation = e == 1 || e == 6 || e == 7 ? 2 : 1;
            c.v.spatial[d].out = out_size(&c.v, d, 1);
        }
        const Order order = e == 4 || e == 10 ? FEATURES_SECOND : FEATURES_LAST;
        Order       orders[3] = { gradient ? BATCH_LAST : order, order, order };
        place(&c, orders, 0, 0, &state);
        expect(&c, &state);
        float *x = malloc((size_t)c.x_count * sizeof *x), *w = malloc((size_t)c.w_count * sizeof *w);
        size_t bytes = (size_t)c.y_count * sizeof(float);
        float *one = malloc(bytes), *many = malloc(bytes);
        for (int64_t k = 0; k < c.x_count; k++)
            x[k] = (float)c.x[k] / 3;
        for (int64_t k = 0; k < c.w_count; k++)
            w[k] = (float)c.w[k] / 7;
        if (e == 11) /* lines are made again */
            x[c.x_count / 2] = __builtin_inff();
        hlort_conv_f32(&c.v, &(hlort_how){ .work = work }, x, w, one);
        for (int threads = 2; threads < 9; threads += 3) {
            hlort_pool *p = hlort_pool_new(threads);
            memset(many, 0xff, bytes);
            hlort_conv_f32(&c.v, &(hlort_how){ .work = work, .pool = p }, x, w, many);
            CHECK(memcmp(one, many, bytes) == 0);
            hlort_pool_free(p);
        }
        free(x);
        free(w);
        free(one);
        free(many);
        forget(&c);
    }
    puts("ok threads");
}

/* NaN of the image arrive wherever a window meets them, and the same features' infinities of the kernel beside them; more features than are looked at at once. */
static void test_nan_image(void)
{
    enum { SIZE = 4, OUT = 70 };
    static float x[SIZE * SIZE], w[9 * OUT], y[SIZE * SIZE * OUT];
    static char  work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    hlort_conv   v = { .batch = 1, .groups = 1, .in = 1, .out = OUT, .n_spatial = 2, .x_batch = SIZE * SIZE, .x_in = 1, .w_in = OUT, .w_out = 1,
                       .y_batch = SIZE * SIZE * OUT, .y_out = 1 };
    for (int d = 0; d < 2; d++) {
        v.spatial[d].in = v.spatial[d].out = SIZE;
        v.spatial[d].window = 3;
        v.spatial[d].stride = v.spatial[d].window_dilation = v.spatial[d].base_dilation = v.spatial[d].pad = 1;
        v.spatial[d].x = d ? 1 : SIZE;
        v.spatial[d].w = d ? OUT : 3 * OUT;
        v.spatial[d].y = d ? OUT : SIZE * OUT;
    }
    for (int k = 0; k < SIZE * SIZE; k++)
        x[k] = k == 0 ? __builtin_nanf("") : 1;
    for (int k = 0; k < 9 * OUT; k++)
        w[k] = k == 68 ? __builtin_inff() : 1; /* of feature 68 the corner that looks up and to the left */
    for (int s = 0; s < 2 * N_SETS; s++) {
        const KernelSet *set = sets[s / 2];
        if (!has(set))
            continue;
        v.fewer = s % 2;
        hlort_convolve(set, GEMM_F32, &v, &(hlort_how){ .work = work }, x, w, y);
        for (int r = 0; r < SIZE; r++)
            for (int c = 0; c < SIZE; c++)
                for (int f = 0; f < OUT; f++) {
                    const float got = y[(r * SIZE + c) * OUT + f];
                    const int   taps = (2 + (r > 0 && r < SIZE - 1)) * (2 + (c > 0 && c < SIZE - 1));
                    if (r < 2 && c < 2)
                        CHECK(got != got);
                    else
                        CHECK(got == (f == 68 && r > 0 && c > 0 ? __builtin_inff() : (float)taps));
                }
    }
    puts("ok NaN of the image");
}

/* Infinities and NaN of the kernel arrive where an element of the image meets them: in padding and in the holes of dilation there is none. */
static void test_not_finite(void)
{
    enum { SIZE = 9, IN = 9, MOST_OUT = 5 };
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    uint32_t    state = 11;
    for (int round = 0; round < 120; round++) {
        const int             e = round % 60, nan = round / 60;
        static const GemmType types[] = { GEMM_F32, GEMM_F64, GEMM_BF16, GEMM_BF16_F32, GEMM_F16, GEMM_F16_F32 };
        static const uint16_t infinity[] = { [F32] = 0, [BF16] = 0x7f80, [F16] = 0x7c00 };
        const GemmType        type = types[e % 6];
        const Kind            in = kinds[type].in, out = kinds[type].out;
        const int             tap = (int)below(&state, 9), second = nan ? (int)below(&state, 9) : tap, out_features = e % 4 < 2 ? 3 : MOST_OUT;
        Case                  c = { .v = { .batch = 2, .groups = 1, .in = IN, .out = out_features, .n_spatial = 2 } };
        Order                 orders[3] = { (Order)(e / 6 % 2), FEATURES_LAST, (Order)(e / 6 % 2) };
        for (int64_t d = 0; d < 2; d++) {
            c.v.spatial[d].in = SIZE;
            c.v.spatial[d].window = 3;
            c.v.spatial[d].pad = 1;
            c.v.spatial[d].stride = 1 + e / 12 % 2;
            c.v.spatial[d].window_dilation = 1 + e / 24 % 2;
            c.v.spatial[d].base_dilation = e % 5 == 4 ? 2 : 1;
            c.v.spatial[d].out = out_size(&c.v, d, 1);
        }
        place(&c, orders, 0, 0, &state);
        expect(&c, &state);
        for (int64_t k = 0; k < c.x_count; k++)
            c.x[k] = 1;
        for (int64_t k = 0; k < c.w_count; k++)
            c.w[k] = k == tap * IN * out_features + 2 || k == second * IN * out_features + 2;
        for (int64_t n = 0, o[MOST]; n < 2; n++)
            for (int64_t f = 0; f < out_features; f++)
                pixels(&c, 0, o, n * c.v.x_batch, f * c.v.w_out, n * c.v.y_batch + f * c.v.y_out);
        void *x = operand(in, c.x, c.x_count), *w = operand(in, c.w, c.w_count), *y = operand(out, c.want, c.y_count);
        for (int k = 0; k < 2; k++) {
            const int64_t at = (k ? second : tap) * IN * out_features + 2;
            if (in == BF16 || in == F16)
                ((uint16_t *)w)[at] = (uint16_t)(infinity[in] + nan);
            else
                put(in, w, at, nan ? (double)__builtin_nanf("") : __builtin_inf());
        }
        for (int s = 0; s < N_SETS; s++) {
            if (!has(sets[s]))
                continue;
            int      *times = calloc((size_t)c.y_count + 1, sizeof *times);
            Seen      seen = { kinds[type].sums, out, y, times, 1 };
            hlort_how how = { .work = work, .epilogue = e % 2 ? see : NULL, .context = &seen };
            c.v.fewer = e / 6 % 2 == e / 12 % 2;
            hlort_convolve(sets[s], type, &c.v, &how, x, w, e % 2 ? NULL : y);
            free(times);
            for (int64_t k = 0; k < c.y_count; k++) {
                const int      narrow = out == BF16 || out == F16;
                const uint16_t bits = narrow ? ((uint16_t *)y)[k] : 0;
                const double   v = narrow ? 0 : get(out, y, k);
                const int      got = !nan ? (narrow ? bits == infinity[out] : v == __builtin_inf()) : narrow ? (bits & 0x7fff) > infinity[out] : v != v;
                CHECK(c.want[k] ? got : narrow ? bits == 0 : v == 0);
            }
        }
        free(x);
        free(w);
        free(y);
        forget(&c);
    }
    puts("ok not finite");
}

/* Of a gradient likewise: what would be multiplied beside the image is no term. */
static void test_gradient_not_finite(void)
{
    enum { SIZE = 9, BATCH = 5, OUT = 6, IN = 2 };
    static char work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    uint32_t    state = 23;
    for (int tap = 0; tap < SIZE * SIZE; tap += 4) {
        Case  c = { .v = { .batch = BATCH, .groups = 1, .in = IN, .out = OUT, .n_spatial = 2 } };
        Order orders[3] = { BATCH_LAST, FEATURES_LAST, FEATURES_LAST };
        for (int64_t d = 0; d < 2; d++) {
            c.v.spatial[d].in = c.v.spatial[d].window = SIZE;
            c.v.spatial[d].pad = c.v.spatial[d].stride = c.v.spatial[d].window_dilation = c.v.spatial[d].base_dilation = 1;
            c.v.spatial[d].out = out_size(&c.v, d, 1);
        }
        place(&c, orders, 0, 0, &state);
        CHECK(hlort_conv_gradient(&c.v) >= 0);
        expect(&c, &state);
        const int64_t at = tap / SIZE * c.v.spatial[0].w + tap % SIZE * c.v.spatial[1].w + c.v.w_in + 2 * c.v.w_out;
        for (int64_t k = 0; k < c.x_count; k++)
            c.x[k] = 1;
        for (int64_t k = 0; k < c.w_count; k++)
            c.w[k] = k == at;
        free(c.want);
        add_up(&c);
        float *x = operand(F32, c.x, c.x_count), *w = operand(F32, c.w, c.w_count), *y = operand(F32, c.want, c.y_count);
        w[at] = __builtin_inff();
        for (int s = 0; s < N_SETS; s++) {
            if (!has(sets[s]))
                continue;
            hlort_convolve(sets[s], GEMM_F32, &c.v, &(hlort_how){ .work = work }, x, w, y);
            for (int64_t k = 0; k < c.y_count; k++)
                CHECK(y[k] == (c.want[k] ? __builtin_inff() : 0));
        }
        free(x);
        free(w);
        free(y);
        forget(&c);
    }
    puts("ok gradient not finite");
}

/* What the definition makes of one element, and how large its terms are. */
static double sum_of(const hlort_conv *v, const float *x, const float *w, const int64_t *o, double *size)
{
    double sum = 0, most_x = 0, most_w = 0;
    for (int64_t t = 0; t < 9; t++) {
        const int64_t r = o[0] + t / 3 - v->spatial[0].pad, c = o[1] + t % 3 - v->spatial[1].pad;
        for (int64_t i = 0; i < v->in && r >= 0 && c >= 0 && r < v->spatial[0].in && c < v->spatial[1].in; i++) {
            const double a = (double)x[r * v->spatial[0].x + c * v->spatial[1].x + i * v->x_in], b = (double)w[t / 3 * v->spatial[0].w + t % 3 * v->spatial[1].w + i * v->w_in];
            sum += a * b;
            most_x = __builtin_fmax(most_x, __builtin_fabs(a));
            most_w = __builtin_fmax(most_w, __builtin_fabs(b));
        }
    }
    *size = most_x * most_w;
    return sum;
}

/* With fewer products: what is not finite, and what only becomes so in sums that the definition does not have, stays where it belongs. */
static void test_pairs_not_finite(void)
{
    enum { IN = 21, OUT = 37, MOST_SIZE = 11 };
    static float x[MOST_SIZE * MOST_SIZE * IN], w[9 * IN * OUT], y[MOST_SIZE * MOST_SIZE * OUT];
    static char  work[HLORT_WORK_BYTES] __attribute__((aligned(64)));
    const float  planted[] = { __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 1e38f, 3e38f, -3e38f };
    uint32_t     state = 13;
    for (int e = 0; e < 120; e++) {
        const int64_t rows = 1 + below(&state, MOST_SIZE), columns = 1 + below(&state, MOST_SIZE), first = e % 2;
        hlort_conv    v = { .batch = 1, .groups = 1, .in = IN, .out = OUT, .fewer = 1, .n_spatial = 2, .x_in = first ? rows * columns : 1, .y_out = first ? rows * columns : 1,
                            .w_in = first ? 9 : OUT, .w_out = first ? 9 * IN : 1 };
        for (int d = 0; d < 2; d++) {
            const int64_t pixels = d ? 1 : columns;
            v.spatial[d].in = v.spatial[d].out = d ? columns : rows;
            v.spatial[d].window = 3;
            v.spatial[d].stride = v.spatial[d].window_dilation = v.spatial[d].base_dilation = v.spatial[d].pad = 1;
            v.spatial[d].x = first ? pixels : pixels * IN;
            v.spatial[d].y = first ? pixels : pixels * OUT;
            v.spatial[d].w = (d ? 1 : 3) * (first ? 1 : IN * OUT);
        }
        for (int64_t k = 0; k < rows * columns * IN; k++)
            x[k] = (float)below(&state, 1000) / 500 - 1;
        for (int64_t k = 0; k < 9 * IN * OUT; k++)
            w[k] = (float)below(&state, 1000) / 4000 - 0.125f;
        for (int64_t k = below(&state, 4); k >= 0; k--)
            x[below(&state, (uint32_t)(rows * columns * IN))] = planted[below(&state, 6)];
        for (int64_t k = below(&state, 3); k > 0; k--)
            w[below(&state, 9 * IN * OUT)] = planted[below(&state, 3)];
        for (int s = 0; s < N_SETS; s++) {
            if (!has(sets[s]))
                continue;
            hlort_convolve(sets[s], GEMM_F32, &v, &(hlort_how){ .work = work }, x, w, y);
            for (int64_t f = 0; f < OUT; f++)
                for (int64_t p = 0; p < rows * columns; p++) {
                    const int64_t o[2] = { p / columns, p % columns };
                    double        size, want = sum_of(&v, x, w + f * v.w_out, o, &size);
                    const float   got = y[o[0] * v.spatial[0].y + o[1] * v.spatial[1].y + f * v.y_out];
                    if (want != want || want - want != 0)
                        CHECK(want != want ? got != got : (double)got == want);
                    else
                        CHECK(__builtin_fabs((double)got - want) <= 1e-6 * (9 * IN) * size);
                }
        }
    }
    puts("ok pairs not finite");
}

int main(void)
{
    test_pairs_not_finite();
    test_not_finite();
    test_nan_image();
    test_draws();
    test_gradient_not_finite();
    test_blocks();
    test_threads();
    return 0;
}
