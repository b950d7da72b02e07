/* What the files of attention share: attention.c, attention_text.c, attention_tile.c and its forms, attention_few.c. In their text `member` is a number in the batch, `row` and `key` those of a score x, `c` a column of
 * the result; q, k, v, o and t are the arrays, the last one with terms of rows' sums, and q_at, k_at and v_at where a member's part of them begins. */
#ifndef TARGET_CUDA_ATTENTION_TEXT_H
#define TARGET_CUDA_ATTENTION_TEXT_H

#include "emit/attention_device.h"
#include "emit/program.h"
#include "support/buf.h"

enum { ATTENTION_PACK = 4 };

typedef struct TileForm TileForm;

typedef struct AttentionText {
    Buf                   *b;
    Arena                 *arena;
    const LibraryCall     *x;
    const AttentionCall   *c;
    const hlort_attention *d;
    AttentionLaunch        l;    /* l.by is that of the form */
    const TileForm        *form; /* of tiles (attention_tile.h) */
    const char            *index; /* type of places in arrays */
    const char            *name;
    const char            *score; /* the function of one, or NULL */
} AttentionText;

/* Places: of a member in an array, of one of its rows; whether so many neighbours of each row are one access. */
const char *attention_member(const AttentionText *t, char array);
const char *attention_row(const AttentionText *t, char array, const char *row);
bool        attention_is_packed(const AttentionText *t, char array, int64_t pack);
const char *attention_times(const AttentionText *t, const char *number, int64_t distance); /* "number * 64" */

const char *attention_type(Type t); /* of an array's elements */
const char *attention_number(const AttentionText *t, float v);
const char *attention_float(const AttentionText *t, const char *x); /* an element of q, k or v */
const char *attention_narrow(const AttentionText *t, const char *x); /* x as such an element, of 16 bits */

void attention_put_begin(const AttentionText *t); /* q_at, k_at, v_at */
bool attention_masks(const hlort_attention *d); /* some places are hidden, by the row and the key */
/* x is what becomes of a score, `of`; where `test` does not hold, if it is not empty, it weighs nothing. */
void attention_put_score(const AttentionText *t, const char *test, const char *of, int depth);
const char *attention_term(const AttentionText *t); /* that of `row` */
/* at_row and c of element number `at` of the result, so that neighbours are stored side by side. */
void attention_put_element(const AttentionText *t, int64_t rows, int depth);
/* x, total and largest of a row are its result, or that of a piece. */
void attention_put_result(const AttentionText *t, bool piece, int depth);

void attention_put_tiles(const AttentionText *t); /* attention_tile.c: the body of a kernel that has tiles of rows, in the form t->form */
void attention_put_few(const AttentionText *t);   /* attention_few.c: of one of few rows */

#endif
