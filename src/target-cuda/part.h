/* One __global__ function: a part of a kernel, and what a thread, a warp or a block does of it. */
#ifndef TARGET_CUDA_PART_H
#define TARGET_CUDA_PART_H

#include "emit/dialect.h"
#include "emit/rows.h"
#include "emit/split.h"
#include "emit/tiles.h"
#include "emit/turn.h"
#include "target-cuda/target_cuda.h"

typedef enum Share {
    BY_ONE,    /* one thread does all of it */
    BY_THREAD, /* a thread for each value of the part's loops */
    BY_WARP,   /* a warp for each, or a group of 8 or 16 of its lanes */
    BY_BLOCK,  /* a block for each */
    BY_COLUMN, /* a block for 32 neighbours, eight threads for each, or 32 */
    BY_TILE,   /* a block for a tile of products */
    BY_TURN    /* a block for a tile that is transposed */
} Share;

enum { WAVES = 8 /* blocks of a launch at most: so many times as many as a device keeps at once */ };
enum { STATIC_SHARED = 40 * 1024 /* bytes of arrays that are declared; more are asked for when a kernel is launched */ };
enum { WARP = 32, THREADS = 256, LONG_ROW_THREADS = 1024 };

enum { PACK_BYTES = 16 /* that a thread reads or stores at once, at most */ };

/* pack.c: what a thread reads or stores of an array for neighbours in a loop. */
typedef struct Pack {
    KArray     *array, *here; /* in memory; "x_pack.at" */
    const char *name;
    const Ix   *from, *index; /* of the element as it was, and of the first one */
    const KExpr *guard;       /* where it is read; NULL: always */
    bool        stored;
} Pack;

typedef struct Packs {
    const KStmt  *at;         /* of a thread's inner loops: the one that is cut */
    const IxAtom *loop;
    int           width;
    int32_t       n;          /* 0: the loop is as it was */
    Pack         *v;
    const KBlock *before;     /* for the whole pack */
    const KBlock *body;       /* for each of it */
    bool          uses_index; /* the loop's own value */
} Packs;

/* alone.c: a row of each thread of a block in shared memory. */
typedef struct AloneRow {
    KArray     *array, *here; /* in memory; "x_rows[threadIdx.x]" */
    const char *name;
    const Ix   *base;         /* where it begins, without lo */
    int64_t     lo;           /* its first element from there */
    int32_t     length;
    bool        stored;
} AloneRow;

/* gathered.c: a row in shared memory, of which data says what is read. */
typedef struct GatheredRow {
    KArray   *array, *here; /* in memory; "x_row" */
    const Ix *base;         /* where it begins */
    int64_t   length;
} GatheredRow;

typedef struct CudaPart {
    ThreadPart threads;
    RowPart    row;  /* BY_WARP, BY_BLOCK, BY_COLUMN */
    int        lanes; /* BY_WARP: of each row */
    RowSplit   split; /* BY_BLOCK, BY_COLUMN: how the loop is cut, */
    int        stage; /* 0: it is not; 1: this part sums the pieces up; 2: it sums their sums, and does what comes after */
    int64_t    pieces_at; /* where these are in working memory */
    TilePart   tile; /* BY_TILE */
    TurnPart   turn; /* BY_TURN */
    int        each; /* BY_TILE: rows and columns of a thread */
    Share      share;
    const KStmt *copy; /* NULL, or the store of all that a result begins with: a copy, unless it is there already */
    int        width; /* BY_THREAD, BY_WARP, BY_BLOCK: neighbours that a thread does at once, */
    Packs     *packs; /* if more than one: of BY_THREAD one, else for each step of the row */
    int32_t    n_inner; /* BY_THREAD, width 1: of each of the body's statements, */
    Packs     *inner; /* which may be or end in a loop that goes along packs */
    int32_t    n_alone; /* BY_THREAD, width 1: rows in shared memory */
    AloneRow  *alone;
    int        alone_threads; /* of a block, if there are any */
    int        between; /* BY_BLOCK: neighbours among rows that share a block's threads; more than 1: */
    int64_t    piece; /* elements of each lie together by turns */
    int32_t    n_gathered; /* BY_WARP, BY_BLOCK: rows in shared memory */
    GatheredRow *gathered;
    const Dialect *dialect; /* with indices that are wide enough */
    const Device  *device;
    int32_t    abreast;     /* of the first part of a launch: so many parts from it on, */
    bool       passes;      /* which follow each other: passes.c */
    const bool *uses;       /* the parameters of all of them, as in threads.whole */
    int64_t    first_block, blocks; /* of a launch of several: the blocks that do it; blocks 0: all */
} CudaPart;

/* complex.c: the class, if kernels have complex numbers, and the functions of it that they call; its name of a function of C's. */
void        cuda_complex_prelude(Buf *b, const Program *p);
const char *cuda_complex_function(const char *fn);

/* library.c: headers of the libraries that p's launchers or its entry call, where they are, and what launchers have in front of them all. */
void cuda_library_includes(Buf *b, const Program *p, bool kernels, bool host);
void cuda_library_services(Buf *b, const Program *p);

/* product.c: is the function for cuBLASLt; what is in front of kernels when any is; what its launcher does first. */
bool cuda_is_product(const Program *p, int32_t function);
void cuda_product_services(Buf *b);
void cuda_put_product(Buf *b, const Program *p, int32_t function);

/* convolution.c: the same of convolutions by cuDNN. */
bool cuda_is_convolution(const Program *p, int32_t function);
void cuda_convolution_services(Buf *b);
void cuda_put_convolution(Buf *b, const Program *p, int32_t function);

/* fourier.c: the same of transforms by cuFFT. */
bool cuda_is_transform(const Program *p, int32_t function);
void cuda_transform_services(Buf *b);
void cuda_put_transform(Buf *b, const Program *p, int32_t function);

/* How part's work is shared; threads is set. */
void    cuda_choose_share(Arena *a, const Kernel *k, CudaPart *part);
int     cuda_part_threads(const CudaPart *part); /* of a block of the launch that it is or begins */
int64_t cuda_part_blocks(const CudaPart *part);
int64_t cuda_part_shared(const CudaPart *part); /* bytes of shared memory that its launch asks for */
int64_t cuda_most_blocks(const CudaPart *part);

/* abreast.c: which parts are one launch. */
void cuda_set_abreast(Arena *a, const Kernel *k, int32_t n, CudaPart *parts);

/* passes.c: how many parts from the first on follow each other in one launch; of the first of them, if there are more: its threads, blocks, and text. */
int32_t cuda_count_passes(const Kernel *k, int32_t n, const CudaPart *parts);
int     cuda_passes_threads(const CudaPart *part);
int64_t cuda_passes_blocks(const CudaPart *part);
void    cuda_passes_body(Buf *b, const CudaPart *parts);

/* pack.c: sets width and packs; share is set. A pack's accesses and what is done with them; what kernels with packs call. */
void cuda_choose_packs(Arena *a, const Kernel *k, CudaPart *part);
void cuda_put_packs(Buf *b, const CudaPart *part, const Packs *packs, int depth);
/* Its three parts: loads, which are made where `inside` holds (NULL: always); what is done with each; stores. */
void cuda_put_pack_loads(Buf *b, const CudaPart *part, const Packs *packs, const char *inside, int depth);
void cuda_put_each(Buf *b, const CudaPart *part, const Packs *packs, const KBlock *body, int depth);
void cuda_put_pack_stores(Buf *b, const CudaPart *part, const Packs *packs, int depth);
void cuda_put_inner(Buf *b, const CudaPart *part, int depth); /* the body's statements, n_inner of them */
void cuda_pack_services(Buf *b);
bool cuda_is_one_pack(const Packs *packs); /* of the loop of one thread */

/* alone.c: sets the rows that are brought to a thread, and the body with them; share and packs are set. Whether there would be any; bytes of shared memory; the body of a function that has them. */
void    cuda_choose_alone(Arena *a, CudaPart *part);
bool    cuda_can_be_alone(Arena *a, const CudaPart *part);
int64_t cuda_alone_shared(const CudaPart *part);
void    cuda_alone_body(Buf *b, const CudaPart *part);

/* columns.c: sets share to BY_COLUMN where the block has room for what 32 columns keep; how many threads that are. */
void    cuda_choose_columns(Arena *a, const Kernel *k, CudaPart *part);
int     cuda_column_threads(const CudaPart *part);

/* between.c: sets between; packs are set. What kernels with more than one call. */
void    cuda_choose_between(CudaPart *part);
void    cuda_between_services(Buf *b);

/* gathered.c: part with rows that are brought before they are gathered from, as a row part; false: it is as it was. Bytes of shared memory for a row; their arrays; what brings them, between two
 * barriers of what works on a row. */
bool    cuda_find_gathered(Arena *a, const Kernel *k, CudaPart *part);
int64_t cuda_gathered_shared(const CudaPart *part);
void    cuda_put_gathered_arrays(Buf *b, const CudaPart *part);
void    cuda_put_gathered(Buf *b, const CudaPart *part, const char *sync, int depth);

/* dialect.c: for all that is no part; for part. */
extern const Dialect cuda_dialect;
const Dialect *cuda_dialect_for(const ThreadPart *part);

/* "for (int i = blockIdx.x * 256 + threadIdx.x; i < 9000; i += gridDim.x * 256)": i goes through what one of `each` does in a block of them. who: its number in the block; NULL: none. */
void cuda_grid_loop(Buf *b, const CudaPart *part, const char *i, int each, const char *who);
/* The loops' values from the number of the iteration, the last loop fastest: "const int i0 = thread / 8, i1 = thread % 8;" of: NULL, or those that it has alone. */
void cuda_loop_values(Buf *b, const CudaPart *part, const char *number, const Ix *of, int depth);
/* The body of a function for BY_WARP, BY_BLOCK or BY_COLUMN. */
void cuda_row_body(Buf *b, const CudaPart *part);
/* What the number of a row or column is called: the only loop's own name, when that is its value. */
const char *cuda_row_number(const ThreadPart *t);

/* scan.c: a loop of a row in which what is summed up so far is used; what such loops call, of lanes and of blocks. */
void cuda_put_scan(Buf *b, const CudaPart *part, const RowStep *step, int depth);
void cuda_scan_services(Buf *b, bool lanes, bool block);
/* rows.c: of a part BY_WARP, which has groups of fewer lanes. */
bool        cuda_in_groups(const CudaPart *part);
const char *cuda_dealt_to(const CudaPart *part);
/* How many neighbours of threads take neighbours of the loop beside the one that is dealt out: as many as divide it, or a few more than it has. 1: there is no such loop. */
int64_t     cuda_threads_beside(const CudaPart *part, const RowStep *step);

/* split.c: a part that is cut becomes two, whose pieces' sums lie from *at on in working memory. */
bool cuda_split(Arena *a, const Kernel *k, CudaPart *part, CudaPart *second, int64_t *at);
/* The first stage's end, which stores the sums of a piece; the second's loop over pieces, in place of the part's. */
void cuda_put_piece(Buf *b, const CudaPart *part, const RowStep *step, const char *limit, int depth);
void cuda_put_pieces(Buf *b, const CudaPart *part, const RowStep *step, int depth);
/* "x op y", of a combination's value. */
void cuda_put_combination(Buf *b, const KExpr *v, const char *x, const char *y);

/* tile.c: the same for BY_TILE; how many blocks; whether the part has that form and is large enough, which fills part->tile and part->each. */
void    cuda_tile_body(Buf *b, const CudaPart *part);
int64_t cuda_tile_blocks(const CudaPart *part);
bool    cuda_choose_tiles(Arena *a, CudaPart *part);
void    cuda_tile_services(Buf *b);
enum { TILE_SIDE = 16 /* a tile's width for each of part->each */, TILE_PIECE = 128 /* terms of a sum's pieces */ };
bool    cuda_tile_in_pieces(const CudaPart *part); /* sums are made of pieces */
void    cuda_tile_loop(Buf *b, const CudaPart *part); /* the loop's head, and where the tile begins */
/* "const int i0 = m / 14, i1 = m % 14;" */
void    cuda_tile_loop_values(Buf *b, const CudaPart *part, const TileLoops *loops, const char *number, int depth);
/* One side's piece, `deep` terms of it, into shared memory, so that neighbours of a warp read neighbours. name: "lhs" or "rhs". It lies there with neighbours in the
 * result beside each other; as_read: with those that are read beside each other. */
void    cuda_tile_side(Buf *b, const CudaPart *part, const TileSide *side, const char *name, int deep, bool as_read);
/* tensor.c: whether tensor cores can do the sums; a body where they do. */
bool    cuda_tile_on_tensor_cores(const CudaPart *part);
void    cuda_tensor_body(Buf *b, const CudaPart *part);
/* order.c: the loop along which most is read or stored becomes the last one. */
void    cuda_order_loops(Arena *a, CudaPart *part);
/* turn.c: likewise for BY_TURN. */
void    cuda_turn_body(Buf *b, const CudaPart *part);
int64_t cuda_turn_tiles(const CudaPart *part);
int64_t cuda_turn_blocks(const CudaPart *part);
int64_t cuda_turn_shared(const CudaPart *part); /* bytes */
bool    cuda_choose_turn(Arena *a, const Kernel *k, CudaPart *part);
/* What bodies call. */
void cuda_row_services(Buf *b, bool group, bool warp, bool block, bool column, bool asked);

#endif
