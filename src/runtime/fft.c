/* fft.c - discrete Fourier transforms: which tables, which axis when, and what of it is a part for threads.
 *
 * A line of up to FFT_LINE_BYTES is a matrix [first][second] in a near cache (fft_body.h). A long one is the same in memory, columns and then rows in blocks that
 * the second cache holds. Columns along another axis than the last one are lanes. Parts depend on sizes alone, but for lines and columns, each of which is computed the same in any part. */
#include "runtime/fft.h"
#include "runtime/packed.h"

enum { ROW = 8, PART = 1 << 13, MOST_TOGETHER = 240 }; /* roots that are multiplied at once; points of a part, at least; of lines that are lanes where vectors do not fill rows */
enum { LEAST_TOGETHER = 12, FEW_PRIMES = 3 };          /* such lines; lines of a prime that become convolutions sooner */
enum { NEAR_LINE = 10 * 1024 };                        /* bytes of the real parts of a line that becomes a convolution whole, though it has small factors, too */

typedef struct Memory {
    char *next;
    int   filled; /* what is taken has its values from a call before */
} Memory;

static void *take(Memory *m, int64_t bytes)
{
    void *p = m->next;
    m->next += (bytes + 63) / 64 * 64;
    return p;
}

/* Sine and cosine, or the real parts of two roots. */
typedef double Two __attribute__((vector_size(16)));
typedef float  TwoF __attribute__((vector_size(8)));

/* w(n, k), 0 <= k < n, in that eighth of a turn: the angle is brought into the first one, where series of sine and cosine end soon. */
static void root(int64_t n, int64_t k, int64_t eighth, double *re, double *im)
{
    static const Two series[] = { { 1, 1 }, { -1.0 / 2, -1.0 / 6 }, { 1.0 / 24, 1.0 / 120 }, { -1.0 / 720, -1.0 / 5040 }, { 1.0 / 40320, 1.0 / 362880 }, { -1.0 / 3628800, -1.0 / 39916800 },
                                  { 1.0 / 479001600, 1.0 / 6227020800 }, { -1.0 / 87178291200, -1.0 / 1307674368000 }, { 1.0 / 20922789888000, 1.0 / 355687428096000 } };
    const int64_t rest = 8 * k - eighth * n;
    const double  x = 0.78539816339744830962 * ((double)(eighth % 2 ? n - rest : rest) / (double)n);
    const Two     x2 = { x * x, x * x };
    Two           sum = series[8];
    for (int i = 7; i >= 0; i--)
        sum = sum * x2 + series[i];
    const double c = sum[0], s = sum[1] * x;
    const int    turned = (int)((eighth + 1) / 2 % 2); /* sine and cosine change places */
    const double a = turned ? s : c, b = turned ? c : s;
    *re = eighth >= 2 && eighth < 6 ? -a : a;
    *im = eighth < 4 ? -b : b;
}

/* All roots of n as products of two of about sqrt(n) each. */
typedef struct Roots {
    int64_t n, coarse_n, fine_n;
    int     shift; /* fine_n is 1 << shift */
    double *coarse, *fine;
} Roots;

/* w(n, k step), k < count; count step is less than n + step. */
static void put_line(double *to, int64_t count, int64_t n, int64_t step)
{
    int64_t eighth = 0;
    for (int64_t k = 0; k < count; k++) {
        while (8 * k * step >= (eighth + 1) * n)
            eighth++;
        root(n, k * step, eighth, &to[k], &to[count + k]);
    }
}

static Roots roots_of(int64_t n, Memory *m)
{
    Roots r = { .n = n, .fine_n = 1 };
    while (r.fine_n * r.fine_n < n) {
        r.fine_n *= 2;
        r.shift++;
    }
    r.coarse_n = hlort_ceildiv(n, r.fine_n);
    r.coarse = take(m, 2 * r.coarse_n * (int64_t)sizeof(double));
    r.fine = take(m, 2 * r.fine_n * (int64_t)sizeof(double));
    if (m->filled)
        return r;
    put_line(r.coarse, r.coarse_n, n, r.fine_n);
    put_line(r.fine, r.fine_n, n, 1);
    return r;
}

static inline void look_up(const Roots *r, int64_t k, double *re, double *im)
{
    const int64_t h = k >> r->shift, f = k & (r->fine_n - 1);
    const double  a = r->coarse[h], b = r->coarse[r->coarse_n + h], c = r->fine[f], d = r->fine[r->fine_n + f];
    *re = a * c - b * d;
    *im = a * d + b * c;
}

static void put(void *to, int64_t bytes, int64_t at, double x)
{
    if (bytes == 4)
        ((float *)to)[at] = (float)x;
    else
        ((double *)to)[at] = x;
}

static inline void put_two(void *to, int64_t bytes, int64_t at, Two x)
{
    const TwoF narrow = __builtin_convertvector(x, TwoF);
    if (bytes == 4)
        __builtin_memcpy((float *)to + at, &narrow, sizeof narrow);
    else
        __builtin_memcpy((double *)to + at, &x, sizeof x);
}

/* w(n, k step) for k < count, the real parts from `at`, the imaginary ones from `at` + im on. step is less than n. */
static inline void put_row_of(void *to, const int64_t bytes, int64_t at, int64_t im, int64_t count, const Roots *r, int64_t step)
{
    const int64_t jump = ROW * step % r->n;
    double        fine[2][ROW] = { { 0 } };
    for (int64_t k = 0, place = 0; k < ROW && k < count; k++) {
        look_up(r, place, &fine[0][k], &fine[1][k]);
        place += step;
        place -= place >= r->n ? r->n : 0;
    }
    for (int64_t k = 0, place = 0; k < count; k += ROW) {
        double a, b;
        look_up(r, place, &a, &b);
        place += jump;
        place -= place >= r->n ? r->n : 0;
        if (k + ROW <= count)
            for (int64_t i = 0; i < ROW; i += 2) {
                const Two c = { fine[0][i], fine[0][i + 1] }, d = { fine[1][i], fine[1][i + 1] };
                put_two(to, bytes, at + k + i, a * c - b * d);
                put_two(to, bytes, at + im + k + i, a * d + b * c);
            }
        else
            for (int64_t i = 0; k + i < count; i++) {
                put(to, bytes, at + k + i, a * fine[0][i] - b * fine[1][i]);
                put(to, bytes, at + im + k + i, a * fine[1][i] + b * fine[0][i]);
            }
    }
}

static void put_row(void *to, int64_t bytes, int64_t at, int64_t im, int64_t count, const Roots *r, int64_t step)
{
    if (bytes == 4)
        put_row_of(to, 4, at, im, count, r, step);
    else
        put_row_of(to, 8, at, im, count, r, step);
}

/* w(n, row column by), of rows from the first one on. */
static const void *table(int64_t rows, int64_t columns, int64_t first_row, int64_t by, const Roots *r, int64_t bytes, Memory *m)
{
    void *to = take(m, 2 * rows * columns * bytes);
    for (int64_t k = 0, step = first_row * by % r->n; k < rows && !m->filled; k++) {
        put_row(to, bytes, k * columns, rows * columns, columns, r, step);
        step += by;
        step -= step >= r->n ? r->n : 0;
    }
    return to;
}

static const void *roots_table(int64_t n, int64_t bytes, Memory *m)
{
    const Roots r = roots_of(n, m);
    return table(1, n, 1, 1, &r, bytes, m);
}

/* The divisor of n closest to its root from below that prime factors of `rest` make, times `done`. */
static int64_t near_root(int64_t n, int64_t rest, int64_t done)
{
    int64_t best = done, p = 2, others = rest;
    if (rest == 1)
        return done;
    while (rest % p != 0)
        p++;
    while (others % p == 0)
        others /= p;
    for (int64_t by = 1; rest % by == 0 && done * by <= n / (done * by); by *= p) {
        const int64_t x = near_root(n, others, done * by);
        best = x > best ? x : best;
    }
    return best;
}

/* Of any prime factors. */
static int64_t nearest_divisor(int64_t n)
{
    int64_t x = 1;
    while (x * x <= n / 4)
        x *= 2;
    while ((x + 1) * (x + 1) <= n)
        x++;
    while (n % x != 0)
        x--;
    return x;
}

/* For lines: of lanes, or alone. */
static void split(FftLength *l)
{
    l->first = nearest_divisor(l->n);
    l->second = l->n / l->first;
    if (l->first == 1) {
        l->first = l->n;
        l->second = 1;
    }
}

/* r: the roots of l->n, or of a multiple of it. */
static void line_tables(FftLength *l, int64_t columns, const Roots *r, int64_t bytes, Memory *m)
{
    l->first_roots = table(1, l->first, 1, r->n / l->first % r->n, r, bytes, m);
    l->second_roots = l->second == l->first ? l->first_roots : table(1, l->second, 1, r->n / l->second % r->n, r, bytes, m);
    l->twist = table(l->first, columns, 0, r->n / l->n % r->n, r, bytes, m);
}

/* ---- axes ---- */

typedef struct Plan {
    const hlort_fft *d;
    const hlort_how *how;
    FftFunction     *run;
    int64_t          bytes; /* of an element */
    Memory           tables, memory;
} Plan;

typedef struct Run {
    const Plan   *plan;
    const FftJob *job;
    FftStep       step;
} Run;

static void run_part(void *job, int64_t part, void *memory)
{
    const Run *r = job;
    r->plan->run(r->job, r->step, part, memory);
}

/* j->count things of so many points each, some a part: `unit` of them, or several times as many. Threads get as much each where no part shows in what another one computes. */
static void run(const Plan *p, FftJob *j, FftStep step, int64_t points, int64_t unit)
{
    Run           r = { p, j, step };
    const int64_t threads = step == FFT_LINES || step == FFT_COLUMNS ? pool_threads(p->how->pool) : 1, worth = hlort_ceildiv(j->count, hlort_ceildiv(PART, points));
    const int64_t parts = hlort_min(worth < 2 ? 1 : hlort_ceildiv(worth, threads) * threads, POOL_MOST_PARTS);
    j->of_part = hlort_ceildiv(hlort_ceildiv(j->count, unit), parts) * unit;
    pool_run(p->how->pool, run_part, &r, hlort_ceildiv(j->count, j->of_part), p->how->work);
}

static int is_together(const Plan *p, int64_t n, int64_t lines)
{
    return lines >= FFT_LANES / 2 && 2 * hlort_fft_around(n) * FFT_LANES * p->bytes <= FFT_AROUND_BLOCK;
}

/* A length with large prime factors: its chirp, and conj of it around 0 transformed. Lines by lines, of which there are so many, are lanes if they fit a near cache: whether they are. */
static int go_around(Plan *p, FftLength *l, int64_t lines)
{
    const int64_t n = l->n, m = hlort_fft_around(n), bytes = p->bytes;
    FftLength    *a = take(&p->memory, sizeof *a);
    *a = (FftLength){ .n = m };
    split(a);
    const Roots of_double = roots_of(2 * n, &p->tables), r = roots_of(m, &p->tables);
    line_tables(a, a->second, &r, bytes, &p->tables);
    const int together = is_together(p, n, lines);
    if (together)
        a->roots = table(1, m, 1, 1, &r, bytes, &p->tables);
    char *chirp = take(&p->tables, 2 * n * bytes), *filter = take(&p->tables, 2 * m * bytes);
    l->around = a;
    l->chirp = chirp;
    l->filter = filter;
    if (p->tables.filled)
        return together;
    __builtin_memset(filter, 0, (size_t)(2 * m * bytes));
    const double by = 1 / (double)m;
    for (int64_t k = 0, square = 0; k < n; k++) {
        double        re, im;
        const int64_t back = k > 0 ? m - k : 0;
        look_up(&of_double, square, &re, &im);
        square += 2 * k + 1;
        square -= square >= 2 * n ? 2 * n : 0;
        put(chirp, bytes, k, re);
        put(chirp, bytes, n + k, im);
        put(filter, bytes, k, re * by);
        put(filter, bytes, m + k, -im * by);
        put(filter, bytes, back, re * by);
        put(filter, bytes, m + back, -im * by);
    }
    p->run(&(FftJob){ .length = a, .y = filter }, FFT_FILTER, 0, take(&(Memory){ p->memory.next, 0 }, 2 * m * bytes));
    return together;
}

static int is_real(const hlort_fft *d)
{
    return d->kind >= HLORT_RFFT;
}

static int is_inverse(const hlort_fft *d)
{
    return d->kind == HLORT_IFFT || d->kind == HLORT_IRFFT;
}

/* Lines that are blocks in memory: x to y, with one of n points between if they are real. */
static void long_lines(Plan *p, FftJob *j, FftLength *l)
{
    const int64_t bytes = p->bytes, n = l->n;
    const Roots   r = roots_of(n, &p->tables);
    char         *between = take(&p->memory, 2 * n * bytes), *line = j->side == FFT_COMPLEX ? NULL : take(&p->memory, 2 * n * bytes);
    const int64_t longest = l->second;
    int64_t       lanes = FFT_LANES * 4;
    while (lanes > 1 && (2 * longest * lanes * bytes > FFT_MOST_BLOCK || (l->rows && (longest * lanes + l->rows->around->n) * 4 * bytes > HLORT_WORK_BYTES)))
        lanes /= 2;
    line_tables(l, lanes, &r, bytes, &p->tables);
    j->lanes = lanes;
    j->coarse = r.coarse, j->coarse_n = r.coarse_n;
    j->fine = r.fine, j->fine_n = r.fine_n;
    j->between = (FftPoints){ between, between + n * bytes, 1 };
    for (int64_t k = 0, count = j->count; k < count; k++) {
        const int64_t points = j->side == FFT_COMPLEX ? n : n + 1;
        FftJob        one = *j;
        const char   *x = (const char *)j->x + k * 2 * bytes * (j->side == FFT_FROM_HALF ? points : n);
        char         *y = (char *)j->y + k * 2 * bytes * (j->side == FFT_TO_HALF ? points : n);
        const FftPoints apart = { line, line + n * bytes, 1 };
        one.x = x, one.y = y;
        one.from = (FftPoints){ (void *)x, (void *)(x + bytes), 2 };
        one.to = (FftPoints){ y, y + bytes, 2 };
        if (j->side == FFT_FROM_HALF) {
            one.to = apart;
            one.count = n / 2 + 1;
            run(p, &one, FFT_TANGLE, 1, 1);
            one.from = apart;
            one.to = (FftPoints){ y, y + bytes, 2 };
        }
        if (j->side == FFT_TO_HALF) {
            one.to = apart;
            one.scale = 1;
        }
        one.count = hlort_ceildiv(l->second, lanes);
        Run step = { p, &one, FFT_LONG_FIRST };
        pool_run(p->how->pool, run_part, &step, one.count, p->how->work);
        one.count = hlort_ceildiv(l->first, lanes);
        step.step = FFT_LONG_SECOND;
        pool_run(p->how->pool, run_part, &step, one.count, p->how->work);
        if (j->side == FFT_TO_HALF) {
            one.from = apart;
            one.scale = j->scale;
            one.count = n / 2 + 1;
            run(p, &one, FFT_UNTANGLE, 1, 1);
        }
    }
}

/* first and second of a long length so that no large prime factor is in the first, and the second is no long one; false where there are none such. */
static int cut(FftLength *l)
{
    int64_t rest = l->n, p;
    while ((p = hlort_fft_factor(rest)) > 1)
        rest /= p;
    const int64_t first = near_root(l->n, l->n / rest, 1);
    if (l->n / first > HLORT_FFT_SHORT)
        return 0;
    l->first = first;
    l->second = l->n / first;
    return 1;
}

/* Long ones one after the other: threads have no memory for them. */
static void run_lines(Plan *p, FftJob *j)
{
    const FftLength *l = j->length;
    const int64_t    rows = l->rows ? 2 * l->rows->around->n + l->rows->n : 0, lanes = l->rows && l->rows->around->roots ? FFT_LANES : 1;
    const int64_t    points = l->rows ? 2 * l->n + rows * lanes : l->around ? 2 * l->around->n + (j->lanes > 1 ? 2 : 1) * l->n : 2 * l->n, memory = 2 * points * j->lanes * p->bytes;
    if (memory <= HLORT_WORK_BYTES) {
        run(p, j, FFT_LINES, l->around ? 4 * l->n : l->n, j->lanes);
        return;
    }
    j->of_part = j->count;
    p->run(j, FFT_LINES, 0, take(&p->memory, memory));
}

/* The last axis. */
static void transform_lines(Plan *p, const void *x, void *y, double scale)
{
    const hlort_fft *d = p->d;
    const int64_t    axis = d->axes - 1, bytes = p->bytes;
    FftLength        l = { .n = hlort_fft_points(d, axis) };
    FftJob j = { .length = &l, .x = x, .y = y, .inverse = is_inverse(d), .scale = scale, .size = d->size[axis], .lanes = 1, .count = d->batch };
    j.side = !is_real(d) ? FFT_COMPLEX : d->kind == HLORT_RFFT ? FFT_TO_HALF : FFT_FROM_HALF;
    for (int64_t k = 0; k < axis; k++)
        j.count *= d->size[k];
    Roots r = { .n = 0 };
    if (is_real(d) && l.n < j.size) {
        r = roots_of(j.size, &p->tables);
        j.half = table(1, l.n / 2 + 1, 1, 1, &r, bytes, &p->tables);
    }
    const int odd_line = is_real(d) && l.n == j.size, smooth = j.count <= FEW_PRIMES ? !hlort_fft_may_go_around(l.n) : hlort_fft_is_smooth(l.n);
    int       is_long = smooth && !odd_line && 2 * l.n * bytes > FFT_LINE_BYTES;
    FftLength rows;
    if (smooth)
        split(&l);
    else if (l.n > HLORT_FFT_SHORT && !odd_line && cut(&l)) {
        rows = (FftLength){ .n = l.second };
        go_around(p, &rows, 1);
        l.rows = &rows;
        is_long = 1;
    } else if (!is_together(p, l.n, j.count) && hlort_fft_around(l.n) * bytes > NEAR_LINE && cut(&l) && l.first > 1) {
        rows = (FftLength){ .n = l.second };
        go_around(p, &rows, l.first < FFT_LANES ? 1 : l.first);
        l.rows = &rows;
    } else if (go_around(p, &l, j.count))
        j.lanes = FFT_LANES;
    if (is_long) {
        long_lines(p, &j, &l);
        return;
    }
    const int64_t least = l.second < l.first ? l.second : l.first;
    const int     fills = l.first % FFT_LANES == 0 && l.second % FFT_LANES == 0;
    if (smooth && ((j.count >= FFT_LANES / 2 && least < 12) || (j.count >= LEAST_TOGETHER && !fills && l.n <= MOST_TOGETHER) || (j.count > 1 && l.second == 1 && l.n > FFT_MOST_FACTOR)))
        j.lanes = FFT_LANES;
    if ((smooth || l.rows) && r.n == 0)
        r = roots_of(l.n, &p->tables);
    if (smooth && (j.lanes > 1 || l.second == 1)) {
        l.second = 1;
        l.roots = table(1, l.n, 1, r.n / l.n % r.n, &r, bytes, &p->tables);
    } else if (smooth || l.rows) {
        line_tables(&l, l.second, &r, bytes, &p->tables);
    }
    run_lines(p, &j);
}

/* Whether so many columns are two transforms each, of what the first cache holds, rather than stages through the second one: they are as many operations in shorter loops,
 * which pays where results of a stage, an eighth of the points apart, get into each other's way in the first cache (two dimensions, one thread of a Zen 5: 512 x 512 of f32 510 and
 * 404 us, 256 x 256 of f64 194 and 146; but 768 x 200 of f32 240 and 277, 2048 x 64 241 and 267, 1000 x 1000 of f64 3515 and 3750). */
static int crowds(int64_t n, int64_t lanes, int64_t bytes)
{
    enum { NEAR = 32 * 1024, IN_THE_WAY = 4096, LONG = 2048 };
    return 2 * n * lanes * bytes > NEAR && n / 8 * lanes * bytes % IN_THE_WAY == 0 && (bytes == 8 || n < LONG);
}

/* Another one, of complex numbers: matrices [n][inner]. */
static void transform_columns(Plan *p, int64_t axis, const void *x, void *y, double scale)
{
    const hlort_fft *d = p->d;
    FftLength        l = { .n = d->size[axis], .second = 1 };
    FftJob           j = { .length = &l, .x = x, .y = y, .inverse = is_inverse(d), .scale = scale, .inner = 1, .lanes = 1, .count = d->batch };
    for (int64_t k = 0; k < axis; k++)
        j.count *= d->size[k];
    for (int64_t k = axis + 1; k < d->axes; k++)
        j.inner *= k == d->axes - 1 && is_real(d) ? d->size[k] / 2 + 1 : d->size[k];
    j.lanes = FFT_LANES;
    const int smooth = hlort_fft_is_smooth(l.n);
    if (smooth && crowds(l.n, hlort_min(j.lanes, j.inner), p->bytes))
        split(&l);
    if (smooth && l.second > 1) {
        const Roots r = roots_of(l.n, &p->tables);
        line_tables(&l, l.second, &r, p->bytes, &p->tables);
    } else if (smooth)
        l.roots = roots_table(l.n, p->bytes, &p->tables);
    const int together = !smooth && go_around(p, &l, j.inner);
    while (!together && j.lanes > 1 && (2 * l.n * j.lanes * p->bytes > FFT_MOST_BLOCK || (l.around && (l.n * j.lanes + l.around->n) * 4 * p->bytes > HLORT_WORK_BYTES)))
        j.lanes /= 2;
    j.count *= hlort_ceildiv(j.inner, j.lanes);
    run(p, &j, FFT_COLUMNS, l.n * j.lanes, 1);
}

static void transform(const hlort_fft *d, const hlort_how *how, int64_t bytes, const void *x, void *y)
{
    const KernelSet *s = hlort_fft_set(hlort_kernels());
    char            *memory = (char *)how->work + HLORT_WORK_BYTES;
    const int64_t    tables = hlort_fft_tables(d, bytes);
    const PackedUse  use = how->packed ? packed_use(how->packed, tables) : PACKED_NOT;
    Plan             p = { .d = d, .how = how, .run = s->fft[bytes == 8], .bytes = bytes, .tables = { use == PACKED_NOT ? memory : how->packed->memory, use == PACKED_READ }, .memory = { memory + tables, 0 } };
    double           scale = 1;
    int64_t          points = d->batch;
    for (int64_t k = 0; k < d->axes; k++) {
        scale /= is_inverse(d) ? (double)hlort_fft_points(d, k) : 1;
        points *= k == d->axes - 1 ? d->size[k] / 2 + 1 : d->size[k];
    }
    if (d->kind != HLORT_IRFFT) {
        transform_lines(&p, x, y, d->axes > 1 ? 1 : scale);
        for (int64_t k = d->axes - 2; k >= 0; k--)
            transform_columns(&p, k, y, y, k > 0 ? 1 : scale);
        if (use == PACKED_FILL)
            packed_done(how->packed);
        return;
    }
    char *half = d->axes > 1 ? take(&p.memory, 2 * points * bytes) : NULL;
    for (int64_t k = d->axes - 2; k >= 0; k--)
        transform_columns(&p, k, k == d->axes - 2 ? x : half, half, 1);
    transform_lines(&p, half ? half : x, y, scale);
    if (use == PACKED_FILL)
        packed_done(how->packed);
}

void hlort_fft_f32(const hlort_fft *d, const hlort_how *how, const float *x, float *y)
{
    transform(d, how, 4, x, y);
}

void hlort_fft_f64(const hlort_fft *d, const hlort_how *how, const double *x, double *y)
{
    transform(d, how, 8, x, y);
}
