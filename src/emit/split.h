/* Few long sums (rows.h): each is cut into pieces that blocks of their own sum up, and the pieces' sums are summed after. In between they lie in the kernel's
 * working memory, for each accumulator an array [rows][pieces], of columns [pieces][columns]. How many pieces there are depends on sizes and the device alone. */
#ifndef EMIT_SPLIT_H
#define EMIT_SPLIT_H

#include "emit/rows.h"

typedef struct RowSplit {
    int64_t pieces, length; /* of the loop that is dealt out; 1 piece: it is not cut */
    int64_t bytes;          /* of the pieces' sums */
} RowSplit;

RowSplit kernel_row_split(const Kernel *k, const ThreadPart *part, const RowPart *row);
/* The pieces' sums of accumulator k begin so many bytes behind those of the first. */
int64_t  kernel_split_offset(const ThreadPart *part, const RowPart *row, const RowSplit *split, int32_t k);

/* Gives the kernel the working memory that its parts want for this, if any. */
void kernel_reserve_split(Kernel *k);

#endif
