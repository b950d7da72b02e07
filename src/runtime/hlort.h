/* hlort.h - what libhlort.a offers to emitted code.
 *
 * Emitted text declares what it calls itself; this header is for people and for tests. It includes nothing but <stdint.h>, and the library needs libc alone.
 * Nothing is allocated and nothing is kept between calls, but in a pool of threads and in hlort_packed: memory comes from the caller. A function runs the best code that the
 * processor has: x86-64 v2 (SSE4.2), v3 (AVX2, FMA), v4 (AVX-512, with BF16 and VNNI where they are), else 128-bit vectors, which is NEON on aarch64.
 *
 *     C[b, i, j] = sum over p of A[b, i, p] * B[b, p, j]         A [b, m, k]   B [b, k, n]   C [b, m, n]
 *
 * Sums of one element run along k in an order that the sizes alone decide: the same bits in every run, for any number of threads.
 * No product is left out but some of zeros with finite numbers, so NaN and infinities arrive. Sums that are exact (integers, small whole numbers in floats) are so in any order.
 * Where the processor has AVX512_BF16 and is not Intel's, subnormal numbers count as zeros in large products of bf16 (kernels_v4n.c). */
#ifndef HLORT_H
#define HLORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From here to "end" emitted text has the same words. */
/* The runtime: libhlort.a, hlort.h */
enum {
    HLORT_MOST_BATCHES = 6,
    HLORT_MOST_SPATIAL = 3,
    HLORT_WORK_BYTES = 1536 * 1024 /* working memory of a call, aligned to 64; any contents */
};

/* Distances are in elements and may be anything, 0 and negative too. Those of A and B along which they are 1 are fast; C's columns are neighbours. */
typedef struct hlort_dot {
    int64_t m, n, k;
    int64_t a_row, a_col; /* from a row of A to the next, from one k to the next */
    int64_t b_row, b_col; /* from one k to the next, from a column of B to the next */
    int64_t c_row;
    int64_t n_batch;      /* dimensions of the batch, the outermost first */
    struct {
        int64_t count, a, b, c;
    } batch[HLORT_MOST_BATCHES];
} hlort_dot;

/* A convolution, of `groups` times `in` features to `groups` times `out`:
 *
 *     Y[b, g, o, f] = sum over taps t and features i of X[b, g, c, i] * W[g, t, i, f]      c = (o * stride + t * window_dilation - pad) / base_dilation
 *
 * for each spatial dimension. Taps for which the division leaves a rest or c lies beside X are no terms: there is no product with a zero, which would show where
 * W has infinities. Distances of X and Y are not negative, those of W may be: a reversed window begins with its last tap (w_first). */
typedef struct hlort_conv {
    int64_t batch, groups, in, out;
    int64_t x_batch, x_group, x_in;           /* distances in elements */
    int64_t w_first, w_group, w_in, w_out;
    int64_t y_batch, y_group, y_out;
    int64_t fewer;                            /* 1: windows of 3 taps may be made of fewer products, those of sums of pixels and of taps; of f32, without an epilogue */
    int64_t n_spatial;
    struct {
        int64_t in, out, window, stride, pad; /* sizes of X, Y, W; pad: before the first, may be negative */
        int64_t window_dilation, base_dilation;
        int64_t x, w, y;
    } spatial[HLORT_MOST_SPATIAL];
} hlort_conv;

/* A finished part of C, or of Y: element (i, j), 0 <= i < rows, 0 <= j < columns, is sums[i * stride + j] and belongs place + i * by + j elements behind the first
 * one of C. That is C[batch, row + i, column + j]; what of Y it is, only place and by say. */
typedef struct hlort_tile {
    void   *sums; /* f32 for f32, bf16 and f16, f64 for f64, 32-bit integers for integers, pairs for complex numbers */
    int64_t stride, batch, row, column, rows, columns, place, by;
} hlort_tile;

/* Gets every element of C in one tile, while that lies in the second cache; may change the sums, which then are C's, or write results of its own. Tiles come from all
 * threads. A tile begins in the same column for any number of them, or some multiple of 64 columns before or behind. */
typedef void hlort_epilogue(const void *context, const hlort_tile *tile);

/* Threads that work for a caller. NULL as a pool: the caller's alone. One call at a time has their help, others at that time run alone. */
typedef struct hlort_pool hlort_pool;

/* The second operand of a dot, or the kernel of a convolution, of a caller who always gives the same one: the first call that wants it in another order leaves it
 * so in memory, for all later ones. Memory is aligned to 64; hlort_dot_packed, hlort_conv_packed say how much there has to be, else it is left alone. The bits
 * of results are the same with and without, and a call that comes while another fills it does without. */
typedef struct hlort_packed {
    int64_t bytes;
    void   *memory;
    int32_t state; /* 0; set by calls */
} hlort_packed;

typedef struct hlort_how {
    void           *work;
    hlort_pool     *pool;
    hlort_epilogue *epilogue; /* NULL: none */
    const void     *context;
    hlort_packed   *packed;   /* NULL: the operand may be another one in each call */
} hlort_how;

/* C may be NULL when there is an epilogue: then its tiles are all that is made. With an epilogue and a C narrower than the sums it must be. */
void hlort_dot_f32(const hlort_dot *d, const hlort_how *how, const float *a, const float *b, float *c);
void hlort_dot_f64(const hlort_dot *d, const hlort_how *how, const double *a, const double *b, double *c);
void hlort_dot_bf16(const hlort_dot *d, const hlort_how *how, const uint16_t *a, const uint16_t *b, uint16_t *c); /* summed in f32 */
void hlort_dot_bf16_f32(const hlort_dot *d, const hlort_how *how, const uint16_t *a, const uint16_t *b, float *c);
void hlort_dot_f16(const hlort_dot *d, const hlort_how *how, const uint16_t *a, const uint16_t *b, uint16_t *c); /* summed in f32 */
void hlort_dot_f16_f32(const hlort_dot *d, const hlort_how *how, const uint16_t *a, const uint16_t *b, float *c);
void hlort_dot_s32(const hlort_dot *d, const hlort_how *how, const uint32_t *a, const uint32_t *b, uint32_t *c); /* modulo 2^32: u32, too */
void hlort_dot_s8_s32(const hlort_dot *d, const hlort_how *how, const int8_t *a, const int8_t *b, uint32_t *c);
void hlort_dot_u8_s32(const hlort_dot *d, const hlort_how *how, const uint8_t *a, const uint8_t *b, uint32_t *c);
/* Elements are pairs (real, imaginary), distances count pairs; C must not be NULL. */
void hlort_dot_c64(const hlort_dot *d, const hlort_how *how, const float *a, const float *b, float *c);
void hlort_dot_c128(const hlort_dot *d, const hlort_how *how, const double *a, const double *b, double *c);

/* Attention: for each member of a batch, rows of weights out of rows of scores, and their sums of values.
 *
 *     S[i, j] = scale * sum over p of Q[i, p] * K[j, p]      W[i, j] = e^(S[i, j] - max S[i]) / sum over j of that      O[i, c] = sum over j of W[i, j] * V[j, c]
 *
 * Of several dimensions of rows the outermost comes first; those of the batch likewise. An epilogue gets blocks of S before anything is made of them, and changes
 * them: element (i, j) is number (batch * rows + i) * keys + j of all. Where it is masked, row i, by its place in dimension mask_row, sees keys from i - above to
 * i + below, one at least. Scores of others are `hidden`, or that and what they would be, which is at most bound * |sum over p of Q K|, where it is beside them; an
 * epilogue writes those, too. Keys that nobody of a group of rows sees are left out where their weights are 0: as long as scores that are seen are well above, and
 * values are finite. Scores and sums are f32; weights have the type of V, or are f32. Where it is rounded, so is every step behind the scores, to the type of V.
 * Where there is a term T, the sum that row i is divided by has e^(T[i] - max) as one more, and T[i] is among what the maximum is of; T is f32, or where it is
 * rounded of the type of V, and NULL where all of it is `term_value`. */
enum { HLORT_MOST_KEYS = 16384, HLORT_MOST_HEAD = 256, HLORT_MOST_WIDE = 512 };
typedef struct hlort_attention {
    int64_t rows, keys, head, wide; /* all rows of a member, j, p, c */
    int64_t q_col, k_row, k_col, v_row, v_col, o_col;
    int64_t n_rows, n_batch;
    struct {
        int64_t count, q, o, t;
    } row[HLORT_MOST_BATCHES];
    struct {
        int64_t count, q, k, v, o, t;
    } batch[HLORT_MOST_BATCHES];
    float   scale; /* above 0; 1 where there is an epilogue */
    int     masked, beside_it, rounded;
    int64_t mask_row, above, below;
    float   hidden, bound;
    int     term;
    float   term_value;
} hlort_attention;
enum { /* of term */
    HLORT_TERM = 1,        /* there is one */
    HLORT_TERM_LAST = 2,   /* the sum of the others is rounded before it is added */
    HLORT_TERM_BESIDE = 4, /* the maximum is not of it: rows of -infinity are NaN, as they are without it; it is `term_value`, and finite */
};

/* how->work has hlort_attention_bytes. keys, head and wide are at least 1 and at most those above. */
void hlort_attention_f32(const hlort_attention *d, const hlort_how *how, const float *q, const float *k, const float *v, const void *t, float *o);
void hlort_attention_bf16(const hlort_attention *d, const hlort_how *how, const uint16_t *q, const uint16_t *k, const uint16_t *v, const void *t, uint16_t *o);
void hlort_attention_bf16_f32(const hlort_attention *d, const hlort_how *how, const uint16_t *q, const uint16_t *k, const uint16_t *v, const void *t, float *o);
void hlort_attention_f16(const hlort_attention *d, const hlort_how *how, const uint16_t *q, const uint16_t *k, const uint16_t *v, const void *t, uint16_t *o);
void hlort_attention_f16_f32(const hlort_attention *d, const hlort_how *how, const uint16_t *q, const uint16_t *k, const uint16_t *v, const void *t, float *o);

/* work(job, part, memory) for each part in 0 .. parts - 1, at most 65535, by whoever has time: memory is the thread's own, or NULL. */
void hlort_run(hlort_pool *pool, void (*work)(void *job, int64_t part, void *memory), void *job, int64_t parts);

/* An array whose dimensions change their order. The result's are given from the outermost to the innermost one, without those of one element; distances are in
 * elements. One has a distance of 1 in the result, one in the source: the same one where neighbours stay neighbours. */
enum { HLORT_MOST_AXES = 16 };
typedef struct hlort_axis {
    int64_t count, to, from;
} hlort_axis;
typedef struct hlort_axes {
    int64_t    bytes; /* of an element: 1, 2, 4, 8, 16 */
    int64_t    n;
    hlort_axis axis[HLORT_MOST_AXES];
} hlort_axes;

/* The two are different memory. No working memory is needed. */
void hlort_transpose(const hlort_axes *d, const hlort_how *how, const void *from, void *to);

/* Y whole, in any order; NULL, or the epilogue, as above. A Y without neighbours is handed over element by element. */
void hlort_conv_f32(const hlort_conv *v, const hlort_how *how, const float *x, const float *w, float *y);
void hlort_conv_f64(const hlort_conv *v, const hlort_how *how, const double *x, const double *w, double *y);
void hlort_conv_bf16(const hlort_conv *v, const hlort_how *how, const uint16_t *x, const uint16_t *w, uint16_t *y); /* summed in f32 */
void hlort_conv_bf16_f32(const hlort_conv *v, const hlort_how *how, const uint16_t *x, const uint16_t *w, float *y);
void hlort_conv_f16(const hlort_conv *v, const hlort_how *how, const uint16_t *x, const uint16_t *w, uint16_t *y); /* summed in f32 */
void hlort_conv_f16_f32(const hlort_conv *v, const hlort_how *how, const uint16_t *x, const uint16_t *w, float *y);
void hlort_conv_s32(const hlort_conv *v, const hlort_how *how, const uint32_t *x, const uint32_t *w, uint32_t *y); /* modulo 2^32: u32, too */
void hlort_conv_s8_s32(const hlort_conv *v, const hlort_how *how, const int8_t *x, const int8_t *w, uint32_t *y);
void hlort_conv_u8_s32(const hlort_conv *v, const hlort_how *how, const uint8_t *x, const uint8_t *w, uint32_t *y);

/* Triangular systems, T X = B or X T = B, one behind the other. X and B are [rows, others], on the right [others, rows], their elements neighbours; they may be the
 * same memory. Of T the half that the order of the unknowns needs is read: the first one depends on none, and that is the last row or column when backward. */
typedef struct hlort_solve {
    int64_t count, rows, others; /* systems; unknowns of each column of X, of each row on the right */
    int     right, backward, unit; /* unit: T's diagonal is 1 and is not read */
    int64_t t_row, t_col, t_batch; /* distances in elements, to the next system's */
} hlort_solve;
void hlort_solve_f32(const hlort_solve *d, const hlort_how *how, const float *t, const float *b, float *x);
void hlort_solve_f64(const hlort_solve *d, const hlort_how *how, const double *t, const double *b, double *x);

/* Lines of arrays in the order of a key, stable. A line is [outer, :, inner] of arrays [outer, count, inner]; all arrays of one sort move together. */
typedef enum hlort_key {
    HLORT_KEY_UNSIGNED,
    HLORT_KEY_SIGNED,
    HLORT_KEY_TOTAL,     /* floats, -NaN < -inf < -0 < +0 < inf < NaN; 16, 32, 64 bits */
    HLORT_KEY_CANONICAL, /* floats, both zeros equal, every NaN the same and the largest */
    HLORT_KEY_PARTIAL    /* floats by <, by which a NaN is neither before nor behind anything */
} hlort_key;
enum { HLORT_MOST_SORTED = 8 };
typedef struct hlort_sort {
    hlort_key kind;
    int       descending;
    int64_t   key, key_bytes;  /* number of its array; 1, 2, 4, 8 */
    int64_t   infinity;        /* its bits; of floats */
    int64_t   outer, count, inner; /* count: less than 2^31 */
    int64_t   kept, to_count;  /* so many are written, the first ones; lines of results have room for so many; not PARTIAL when fewer than count */
    int64_t   n, bytes[HLORT_MOST_SORTED]; /* arrays; of an element: 1, 2, 4, 8, 16 */
} hlort_sort;

/* from[k] NULL: positions in the line, of bytes[k], 4 or 8. Arrays from and to are different memory. how->work has hlort_sort_bytes, and HLORT_WORK_BYTES at least. */
void hlort_sort_lines(const hlort_sort *d, const hlort_how *how, const void *const *from, void *const *to);

/* Running sums and the like along `lines` lines of count neighbours, one behind the other: y[0] = start op x[0], y[k] = y[k - 1] op x[k], or, backward, from each line's end.
 * What is joined with what first only count says, but of f16 and bf16, which are rounded at every step in this order. Integers wrap; extremes are NaN from the first NaN on. x and y are different memory; how->work has hlort_scan_bytes. */
typedef enum hlort_scan_kind { HLORT_SCAN_ADD, HLORT_SCAN_MULTIPLY, HLORT_SCAN_MINIMUM, HLORT_SCAN_MAXIMUM, HLORT_SCAN_KINDS } hlort_scan_kind;
typedef enum hlort_scan_type { HLORT_SCAN_F32, HLORT_SCAN_F64, HLORT_SCAN_S32, HLORT_SCAN_S64, HLORT_SCAN_F16, HLORT_SCAN_BF16, HLORT_SCAN_TYPES } hlort_scan_type;
typedef struct hlort_scan {
    hlort_scan_kind kind;
    hlort_scan_type type;
    int             backward;
    int64_t         lines, count;
} hlort_scan;
void hlort_scan_lines(const hlort_scan *d, const hlort_how *how, const void *x, const void *start, void *y);

/* Discrete Fourier transforms over the last axes of `batch` arrays, row-major: x[batch][size[0]]...[size[axes - 1]], complex numbers as pairs.
 *
 *     FFT     y[k] = sum over j of x[j] e^(-2 pi i j k / n)                        IFFT    y[k] = (sum over j of x[j] e^(2 pi i j k / n)) / n
 *     RFFT    of real x, the first size / 2 + 1 elements of the last axis           IRFFT   real y from them; imaginary parts that reach none are not asked for
 *
 * x and y are different memory. how->work has hlort_fft_bytes, how->packed, where it is not NULL, keeps hlort_fft_tables. Sizes are positive, and hlort_fft_takes says which. */
typedef enum hlort_fft_kind { HLORT_FFT, HLORT_IFFT, HLORT_RFFT, HLORT_IRFFT } hlort_fft_kind;
enum { HLORT_MOST_FFT_AXES = 3 };
typedef struct hlort_fft {
    hlort_fft_kind kind;
    int64_t        batch, axes, size[HLORT_MOST_FFT_AXES]; /* of the real array, where there is one */
} hlort_fft;
void hlort_fft_f32(const hlort_fft *d, const hlort_how *how, const float *x, float *y);
void hlort_fft_f64(const hlort_fft *d, const hlort_how *how, const double *x, double *y);
/* end */

/* Of more rows, or pixels, packing is too small a part of the work; rows of B that lie in memory as they are packed cost less. */
enum { HLORT_PACKED_ROWS = 1024, HLORT_PACKED_FEW_ROWS = 64 };

/* Bytes of hlort_packed that a B [k, n] takes, of elements of so many bytes, for any set of instructions. */
enum { HLORT_PACKED_COLUMNS = 64, HLORT_PACKED_TERMS = 64 };
static inline int64_t hlort_panels_bytes(int64_t bytes, int64_t k, int64_t n)
{
    const int64_t columns = (n + HLORT_PACKED_COLUMNS - 1) / HLORT_PACKED_COLUMNS * HLORT_PACKED_COLUMNS, word = bytes == 8 ? 8 : 4;
    return columns * (k * word + 4 * (k / HLORT_PACKED_TERMS + 1)); /* and what sums of bytes begin at, for each block of k */
}

/* Of a dot's second operand, of a convolution's kernel; 0: it is read as it lies, or packed in parts that hardly cost anything. */
static inline int64_t hlort_dot_packed(const hlort_dot *d, int64_t bytes)
{
    enum { FEW = 16, SMALL = 16 * 1024 };
    for (int64_t k = 0; k < d->n_batch; k++)
        if (d->batch[k].count > 1 && d->batch[k].b != 0)
            return 0;
    return d->m <= FEW || d->m > (d->b_col == 1 ? HLORT_PACKED_FEW_ROWS : HLORT_PACKED_ROWS) || d->n <= FEW || d->k * d->n * bytes <= SMALL ? 0 : hlort_panels_bytes(bytes, d->k, d->n);
}

/* Whether a convolution is a sum for each of many features, which are neighbours in X and Y: those that hlort_conv_* sum in the lanes of vectors. */
enum { HLORT_LEAST_CHANNELS = 16, HLORT_MOST_CHANNELS = 8192, HLORT_MOST_OUTER = 256, HLORT_MOST_MOVED = 128 * 1024 };
static inline int hlort_conv_by_channel(const hlort_conv *v)
{
    int64_t outer = 1, taps = v->groups;
    if (v->in != 1 || v->out != 1 || v->groups < HLORT_LEAST_CHANNELS || v->groups > HLORT_MOST_CHANNELS || v->x_group != 1 || v->y_group != 1 || v->n_spatial == 0)
        return 0;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation != 1 || v->spatial[d].window > HLORT_MOST_OUTER)
            return 0;
        outer *= d < v->n_spatial - 1 ? v->spatial[d].window : 1;
        taps *= v->spatial[d].window;
    }
    return outer <= HLORT_MOST_OUTER && (v->w_group == 1 || taps <= HLORT_MOST_MOVED);
}

/* Whether a convolution makes features that are neighbours in Y by few products for each: of f32, f64, f16 and bf16 then bands of the image lie in the caches. */
enum { HLORT_MOST_BAND = 32 * 1024, HLORT_MOST_BAND_KERNEL = 64 * 1024, HLORT_MOST_BAND_RUNS = 256, HLORT_LEAST_BAND_PIXELS = 4, HLORT_LEAST_BAND_MADE = 4,
       HLORT_SHORT_BAND_TERMS = 128, HLORT_LONG_BAND = 28, HLORT_FEW_BAND_MADE = 16 };
static inline int hlort_conv_fits_bands(const hlort_conv *v)
{
    const int64_t last = v->n_spatial - 1;
    int64_t       taps = 1, runs = 1, reach = v->in;
    if (last < 0 || v->y_out != 1 || v->in < 1 || v->in > HLORT_MOST_BAND_KERNEL || v->out < HLORT_LEAST_BAND_MADE || v->out > HLORT_MOST_BAND_KERNEL || v->spatial[last].out < HLORT_LEAST_BAND_PIXELS)
        return 0;
    for (int64_t d = 0; d <= last; d++) {
        const int64_t window = v->spatial[d].window, dilation = v->spatial[d].window_dilation, stride = v->spatial[d].stride;
        if (v->spatial[d].base_dilation != 1 || window < 1 || window > HLORT_MOST_BAND || dilation > HLORT_MOST_BAND || stride > HLORT_MOST_BAND)
            return 0;
        taps *= window;
        runs *= d == last && dilation == 1 ? 1 : window;
        reach *= (window - 1) * dilation + 1 + (d == last ? 16 * stride : 0);
        if (taps > HLORT_MOST_BAND_KERNEL || runs > HLORT_MOST_BAND_RUNS || reach > HLORT_MOST_BAND)
            return 0;
    }
    if (v->groups == 1 && taps * v->in > HLORT_SHORT_BAND_TERMS && v->spatial[last].out < HLORT_LONG_BAND && v->out > HLORT_FEW_BAND_MADE)
        return 0; /* few pixels share what is read of a long kernel; few features leave most of a tile empty */
    return taps * v->in <= HLORT_MOST_BAND_KERNEL && taps * v->in * v->out <= HLORT_MOST_BAND_KERNEL;
}
static inline int hlort_conv_in_bands(const hlort_conv *v) /* of one tap it is a dot */
{
    int some = 0;
    for (int64_t d = 0; d < v->n_spatial; d++)
        some |= v->spatial[d].window > 1;
    return some && hlort_conv_fits_bands(v);
}

/* Whether it makes few pixels by large windows, of whose taps some follow each other: of f32 and f64, a filter's gradient. The dimension of those, or -1. */
enum { HLORT_LEAST_GRADIENT_ROWS = 4, HLORT_LEAST_GRADIENT_LINE = 4 };
static inline int64_t hlort_conv_gradient(const hlort_conv *v)
{
    int64_t last = -1;
    double  taps = 1, pixels = 1;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation != 1 || v->spatial[d].in == 0 || v->spatial[d].window == 0)
            return -1;
        taps *= (double)v->spatial[d].window;
        pixels *= (double)v->spatial[d].out;
        if (v->spatial[d].window >= HLORT_LEAST_GRADIENT_LINE && (last < 0 || v->spatial[d].x < v->spatial[last].x))
            last = d;
    }
    return v->in > 0 && taps > pixels && v->batch >= HLORT_LEAST_GRADIENT_ROWS && (v->in == 1 || v->x_batch < v->x_in) ? last : -1;
}

/* Whether tiles of two pixels may extend along dimension d; along how many dimensions of a convolution they do, at most 2. */
static inline int hlort_conv_in_pairs(const hlort_conv *v, int64_t d)
{
    return v->spatial[d].window == 3 && v->spatial[d].stride == 1 && v->spatial[d].window_dilation == 1 && v->spatial[d].base_dilation == 1;
}
static inline int hlort_conv_fewer(const hlort_conv *v)
{
    int n = 0;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation != 1)
            return 0;
        n += n < 2 && hlort_conv_in_pairs(v, d);
    }
    return n;
}

/* As hlort_dot_packed: of a convolution's kernel, of elements of so many bytes. */
enum { HLORT_PACKED_POINT = 96 * 64 + 16 }; /* words at most of 64 features made and as many read */
static inline int64_t hlort_conv_packed(const hlort_conv *v, int64_t bytes)
{
    const int64_t pairs = v->fewer ? hlort_conv_fewer(v) : 0, made = (v->out + HLORT_PACKED_COLUMNS - 1) / HLORT_PACKED_COLUMNS, read = (v->in + HLORT_PACKED_TERMS - 1) / HLORT_PACKED_TERMS;
    int64_t       taps = 1, pixels = v->batch;
    for (int64_t d = 0; d < v->n_spatial; d++) {
        if (v->spatial[d].base_dilation != 1)
            return 0;
        taps *= v->spatial[d].window;
        pixels *= v->spatial[d].out;
    }
    if (pairs > 0)
        return v->groups * made * read * (taps / (pairs == 2 ? 9 : 3)) * (pairs == 2 ? 16 : 4) * HLORT_PACKED_POINT * 4;
    if (v->y_out != 1 || pixels > (v->w_out == 1 ? HLORT_PACKED_FEW_ROWS : HLORT_PACKED_ROWS) || hlort_conv_by_channel(v) || hlort_conv_in_bands(v) || hlort_conv_gradient(v) >= 0)
        return 0;
    return v->groups * hlort_panels_bytes(bytes, taps * v->in, v->out);
}

/* Whether keys and values are read as they lie, for a few rows: they would be read twice to be packed. What the second cache does not hold is read so for more of them. */
enum { HLORT_FEW_ROWS = 8, HLORT_FEW_FAR_ROWS = 16, HLORT_LEAST_ALONG = 16, HLORT_NEAR_VALUES = 256 * 1024 /* elements */ };
static inline int hlort_attention_few(const hlort_attention *d)
{
    const int64_t most = d->keys * (d->head + d->wide) <= HLORT_NEAR_VALUES ? HLORT_FEW_ROWS : HLORT_FEW_FAR_ROWS;
    return d->rows <= most && d->k_col == 1 && d->v_col == 1 && d->head >= HLORT_LEAST_ALONG && d->wide >= HLORT_LEAST_ALONG;
}

/* Bytes that the packed keys of a member take, and its values, for any set of instructions; members that are packed together. */
static inline int64_t hlort_attention_keys_bytes(const hlort_attention *d)
{
    return ((d->keys + 32) * (d->head + 1) * 4 + 63) / 64 * 64;
}
static inline int64_t hlort_attention_values_bytes(const hlort_attention *d)
{
    return ((d->keys + 1) * (d->wide + 32) * 4 + 63) / 64 * 64;
}
static inline int64_t hlort_attention_together(const hlort_attention *d)
{
    const int64_t one = hlort_attention_keys_bytes(d) + hlort_attention_values_bytes(d), fit = (4 << 20) / one;
    int64_t       count = 1;
    for (int64_t k = 0; k < d->n_batch; k++)
        count *= d->batch[k].count;
    return fit < 1 || count < 1 ? 1 : fit > 16 ? (count < 16 ? count : 16) : fit < count ? fit : count;
}
static inline int64_t hlort_attention_bytes(const hlort_attention *d)
{
    return hlort_attention_few(d) ? HLORT_WORK_BYTES : HLORT_WORK_BYTES + hlort_attention_together(d) * (hlort_attention_keys_bytes(d) + hlort_attention_values_bytes(d));
}

/* How many entries are sorted at once. */
static inline int64_t hlort_sort_entries(const hlort_sort *d)
{
    return d->kept == d->count || d->kept > d->count / 4 ? d->count : 2 * d->kept + 1024;
}

/* Working memory of a line: twice its entries. */
static inline int64_t hlort_sort_bytes(const hlort_sort *d)
{
    const int64_t keys = d->kind <= HLORT_KEY_TOTAL && d->n == 1 && d->kept == d->count;
    const int64_t entry = keys ? (d->key_bytes <= 4 ? 4 : 8) : d->key_bytes <= 4 && d->kind != HLORT_KEY_PARTIAL ? 8 : 16;
    return 2 * ((hlort_sort_entries(d) * entry + 63) / 64 * 64);
}

/* Working memory: an element for each piece of a line. */
enum { HLORT_SCAN_CHUNK = 16384 };
static inline int64_t hlort_scan_bytes(const hlort_scan *d)
{
    return d->lines * ((d->count + HLORT_SCAN_CHUNK - 1) / HLORT_SCAN_CHUNK) * 8;
}

/* What a transform of n points takes out of them next: 13, 11, 7, 5, 9, 3 or, with a single 2, 6 or 10, then 8, 4 or 2, then larger primes up to this one; 0 where n has larger prime factors alone. */
enum { HLORT_FFT_PRIME = 127 };
static inline int64_t hlort_fft_factor(int64_t n)
{
    for (int64_t p = 13; p >= 3; p -= p == 13 || p == 7 || p == 5 ? 2 : 4)
        if (n % p == 0)
            return p == 5 && n % 4 == 2 && n % 3 != 0 ? 10 : p > 3 ? p : n % 9 == 0 ? 9 : n % 4 == 2 ? 6 : 3;
    const int twos = n > 0 ? __builtin_ctzll((uint64_t)n) : 0;
    if (twos == 0)
        for (int64_t p = 17; n > 1 && p <= HLORT_FFT_PRIME; p += 2)
            if (n % p == 0)
                return p;
    return twos == 0 ? 0 : twos <= 2 ? 1 << twos : twos % 3 == 0 ? 8 : 4;
}

static inline int hlort_fft_is_smooth(int64_t n)
{
    for (int64_t p; n > 1; n /= p)
        if ((p = hlort_fft_factor(n)) == 0)
            return 0;
    return 1;
}

/* Whether a transform of n points may become a convolution: with large prime factors, or a few lines of such a prime alone. */
enum { HLORT_FFT_ALONE = 61 };
static inline int hlort_fft_may_go_around(int64_t n)
{
    return !hlort_fft_is_smooth(n) || (n > HLORT_FFT_ALONE && hlort_fft_factor(n) == n);
}

/* Points of the complex lines along an axis: half as many as an even real line has elements. */
static inline int64_t hlort_fft_points(const hlort_fft *d, int64_t axis)
{
    const int64_t n = d->size[axis];
    return axis == d->axes - 1 && d->kind >= HLORT_RFFT && n % 2 == 0 ? n / 2 : n;
}

/* Lengths of up to HLORT_FFT_SHORT points, and along the last axis of up to 2^27. */
enum { HLORT_FFT_SHORT = 16384 };
static inline int hlort_fft_takes(const hlort_fft *d)
{
    for (int64_t k = 0; k < d->axes; k++)
        if (d->size[k] < 1 || hlort_fft_points(d, k) > (k < d->axes - 1 ? HLORT_FFT_SHORT : INT64_C(1) << 27))
            return 0;
    return d->batch > 0;
}

/* Points of the transforms that one of n is made of which has a prime factor above HLORT_FFT_PRIME: 16, 48, 80, 144 or 240 times a power of two, 2 n - 1 or more. */
static inline int64_t hlort_fft_around(int64_t n)
{
    int64_t least = 0;
    for (int64_t odd = 1; odd <= 15; odd += odd == 5 ? 4 : odd == 9 ? 6 : 2) {
        int64_t p = 16 * odd;
        while (p < 2 * n - 1)
            p *= 2;
        least = least == 0 || p < least ? p : least;
    }
    return least;
}

/* Bytes of a transform's tables, of elements of so many bytes each: they depend on sizes alone, and hlort_packed may keep them. */
static inline int64_t hlort_fft_tables(const hlort_fft *d, int64_t bytes)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < d->axes; k++) {
        const int64_t n = hlort_fft_points(d, k);
        sum += (hlort_fft_may_go_around(n) ? 8192 + 8 * (n + hlort_fft_around(n)) * bytes : 4096 + 6 * n * bytes) / 64 * 64;
    }
    return sum;
}

/* Working memory: tables, long lines, what of IRFFT is transformed along other axes first; and what every thread has. */
static inline int64_t hlort_fft_bytes(const hlort_fft *d, int64_t bytes)
{
    int64_t sum = HLORT_WORK_BYTES + hlort_fft_tables(d, bytes), points = d->batch;
    for (int64_t k = 0; k < d->axes; k++) {
        const int64_t n = hlort_fft_points(d, k);
        points *= k == d->axes - 1 ? d->size[k] / 2 + 1 : d->size[k];
        sum += 1024 + 4 * (n + (hlort_fft_may_go_around(n) ? hlort_fft_around(n) : 0)) * bytes;
    }
    return sum + (d->kind == HLORT_IRFFT && d->axes > 1 ? 2 * points * bytes : 0);
}

/* So many threads with the caller's, at least 1; memory of their own is in the pool. NULL: there is no memory. */
hlort_pool *hlort_pool_new(int threads);
void        hlort_pool_free(hlort_pool *p);

#ifdef __cplusplus
}
#endif

#endif
