/* Attention of tiles of rows has two forms with one frame (attention_tile.c): by lanes of any device, and by fragments of tensor cores. They differ in who has which rows, and in how sums are made. */
#ifndef TARGET_CUDA_ATTENTION_TILE_H
#define TARGET_CUDA_ATTENTION_TILE_H

#include "target-cuda/attention_text.h"

struct TileForm {
    int         rows;   /* of a thread; 16 lanes have the same */
    const char *row;    /* which one of the tile is number r of these */
    bool        widens; /* rows in shared memory are f32, whatever they are in memory */
    int64_t     whole;  /* elements of a row there are a multiple of this, those that are not in memory 0 */
    const char *free;   /* floats of shared memory that are free between two steps, one for each row of each group */
    void (*put_begin)(const AttentionText *t);    /* arrays in shared memory; lane, group, and where a thread's rows are */
    void (*put_sums)(const AttentionText *t);     /* declares a tile's sums of values, 0 */
    void (*put_scores)(const AttentionText *t);   /* scores[r][j], of row r and the thread's j-th key of the step */
    void (*put_fade)(const AttentionText *t);     /* sums of row r are to be multiplied by `fades` */
    const char *(*weight)(const AttentionText *t); /* "weights[...] = weight", of row r and key j */
    void (*put_values)(const AttentionText *t);   /* sums += weights * values of the step */
    int64_t (*stride)(const AttentionText *t);    /* floats from row to row of `own` */
    void (*put_sums_out)(const AttentionText *t); /* own[(group * rows + row) * stride + c] = sums */
};

extern const TileForm attention_lanes, attention_fragments;

#endif
