/* gemm.h - between dot.c, which takes a dot apart, and the kernels of each set of instructions. */
#ifndef HLORT_GEMM_H
#define HLORT_GEMM_H

#include "runtime/hlort.h"
#include "runtime/scan.h"
#include "runtime/transpose.h"

/* One product C = A B, or a part of its rows and columns. How it is computed is decided by the whole product, so that a part has the same bits. */
typedef enum GemmWay {
    GEMM_TILES,  /* in tiles, operands packed */
    GEMM_HELD,   /* small B: a few rows and columns at a time, operands as they lie */
    GEMM_ROWS,   /* few rows: those of A are packed, B is read as it lies */
    GEMM_COLUMNS, /* few columns: likewise, columns of B */
    GEMM_BOTH,    /* few rows and few columns, of long k: operands as they lie; where a word is an element */
    GEMM_PAIRS,   /* small B of a type whose words are two elements, and k along A's rows: those as they lie */
    GEMM_PACK     /* no product: B's panels are packed, as tiles of it want them */
} GemmWay;

enum {
    GEMM_MOST_FEW = 16,            /* rows or columns of C */
    GEMM_MOST_HELD = 16 * 1024     /* bytes of B, of several rows */
};

/* Of working memory: the products' own, and what callers of them have behind it. */
enum { HLORT_TILES_BYTES = 1280 * 1024, HLORT_SUMS_BYTES = HLORT_WORK_BYTES - HLORT_TILES_BYTES };

struct Image;

typedef struct Gemm {
    GemmWay     way;
    int64_t     m, n, k;
    const void *a;
    int64_t     a_row, a_col;
    const void *b;
    int64_t     b_row, b_col;
    void       *c; /* NULL: nothing but the tiles of the epilogue */
    int64_t     c_row;
    void       *work;
    hlort_epilogue *epilogue;
    const void *context;
    int         in_blocks;          /* the epilogue gets as many rows and columns as lie in the second cache, else what lies in the first */
    int64_t     place;              /* where in C the part begins */
    int64_t     batch, row, column; /* where the part begins, for the tiles */
    const struct Image *image;      /* not NULL: one operand is an image's windows, the other the kernel (image.h) */
    void       *packed;             /* B's panels, where they are packed before or are to be (GEMM_PACK); else NULL */
    int64_t     packed_columns;     /* of all of them */
} Gemm;

typedef void GemmFunction(const Gemm *g);

struct PixelRun;
typedef void PixelsFunction(const struct PixelRun *r); /* depthwise.h */

struct WinogradBlock;
typedef void WinogradFunction(const struct WinogradBlock *x); /* winograd.h */

struct WalkKernels; /* walk.h */

struct FftJob;
struct FftLength;
typedef void FftFunction(const struct FftJob *j, int step, int64_t part, void *memory); /* fft.h */

/* Of the operands, and of C where it is another one. */
typedef enum GemmType { GEMM_F32, GEMM_F64, GEMM_BF16, GEMM_BF16_F32, GEMM_F16, GEMM_F16_F32, GEMM_S32, GEMM_S8_S32, GEMM_U8_S32, GEMM_C64, GEMM_C128, GEMM_TYPES } GemmType;

/* The kernels of one set of instructions: none where the set was left out. */
typedef struct KernelSet {
    const char   *name;
    int8_t        together[GEMM_TYPES]; /* elements along k that an instruction multiplies in a lane, or 0 */
    const struct KernelSet *rest; /* the set that has the types which are not here, or NULL */
    GemmFunction *gemm[GEMM_TYPES];
    const struct AttentionKernels *attention[GEMM_TYPES]; /* likewise */
    PixelsFunction *depthwise[GEMM_TYPES]; /* some of them */
    WinogradFunction *winograd;            /* f32 */
    int64_t       winograd_features, winograd_panel; /* of a block, which is whole panels */
    int64_t       winograd_terms, winograd_point;    /* features read of a block at most; from one point to the next, in words */
    const struct WalkKernels *walk[2]; /* f32, f64; NULL: the rest has them */
    FftFunction  *fft[2];              /* likewise */
    void (*narrow[GEMM_TYPES])(uint16_t *to, const float *from, int64_t n); /* sums to C's type where that is a narrower one */
    void (*narrow_rows[GEMM_TYPES])(uint16_t *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t n); /* likewise, what such instructions summed */
    void (*widen[GEMM_TYPES])(float *to, const uint16_t *from, int64_t n); /* operands to sums, likewise */
    TurnFunction *turn[HLORT_TURN_SIZES];
    GridFunction *grid[HLORT_TURN_SIZES];
    RunsFunction *runs;
    const ScanKernels *scan[HLORT_SCAN_F16]; /* NULL: the rest has them */
    ScanLinesFunction *scan_narrow[HLORT_SCAN_TYPES - HLORT_SCAN_F16][HLORT_SCAN_KINDS]; /* likewise */
} KernelSet;

#if defined(__x86_64__)
extern const KernelSet hlort_v2, hlort_v3, hlort_v4, hlort_v4b, hlort_v4n;
#endif
extern const KernelSet hlort_base; /* whatever the compiler makes of 128-bit vectors */

/* Whether they are here and this processor runs them, and the best that it has. */
int              hlort_has(const KernelSet *s);
const KernelSet *hlort_kernels(void);

static inline GemmFunction *hlort_kernel(const KernelSet *s, GemmType t)
{
    return s->gemm[t] ? s->gemm[t] : s->rest->gemm[t];
}

static inline const KernelSet *hlort_fft_set(const KernelSet *s)
{
    return s->fft[0] ? s : s->rest;
}

/* Products for threads: some members of a batch a part, or pieces of each member, of some rows or columns. */
typedef struct Cut {
    int64_t count;   /* members of the batch */
    int64_t members; /* in a part */
    int64_t pieces;  /* of a member; more than 1: members is 1 */
    int64_t size;    /* columns of a piece, or rows */
    int     by_rows;
} Cut;

/* How to divide count members, of which each is like g. */
void    hlort_cut(Cut *x, const Gemm *g, int threads);
int64_t hlort_cut_parts(const Cut *x);

extern const int8_t hlort_bytes[GEMM_TYPES][2]; /* of an operand's element, of C's */

/* Of a sum, of types that are no pairs. */
static inline int64_t hlort_sum_bytes(GemmType t)
{
    return t == GEMM_F64 ? 8 : 4;
}

void hlort_gemm(const KernelSet *s, GemmType type, const hlort_dot *d, const hlort_how *how, const void *a, const void *b, void *c);
void hlort_attend(const KernelSet *s, GemmType type, const hlort_attention *d, const hlort_how *how, const void *q, const void *k, const void *v, const void *t,
                  void *o);
void hlort_scan_by(const KernelSet *s, const hlort_scan *d, const hlort_how *how, const void *x, const void *start, void *y);
void hlort_transpose_by(const KernelSet *s, const hlort_axes *d, const hlort_how *how, const void *from, void *to);
void hlort_convolve(const KernelSet *s, GemmType type, const hlort_conv *v, const hlort_how *how, const void *x, const void *w, void *y);

#endif
