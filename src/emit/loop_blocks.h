/* Innermost loops in blocks of vectors, for what compilers make no vectors of by themselves: conversions between f16 and f32, rounding to f16 (loop_rounds.h, loop_halves.h) and bf16, elements at places that the loop
 * computes (loop_taken.h), and stores past the caches, which save reading what is overwritten where results are larger than the caches anyway; such loops also fetch what their next row reads. Rows that come from
 * places of their own, and results of several operands, go in blocks likewise, which fetch what is stored soon.
 *
 *     for i < n: r[i] = f32_to_f16(f16_to_f32(x[i + 3]) * y[i])
 *     =>  for from < n, by 32: { in[32] = x[from + 3 ...];  for k < 32: out[k] = in[k] * y[from + k];  r[from ...] = out }, and what is left as before */
#ifndef EMIT_LOOP_BLOCKS_H
#define EMIT_LOOP_BLOCKS_H

#include "emit/loop_rounds.h"

enum { MOST_BLOCKED = 16, MOST_FETCHED = 2 };

/* What the loop reads or writes one element after the other. */
typedef struct Blocked {
    const KArray *array;
    const Ix     *index;
    bool          half; /* f16 or bf16, whose block is of f32 */
    bool          streamed; /* stored past the caches */
    const KExpr  *of;   /* written, of narrow floats: NULL, or the f32 in memory that it is made of, of which the block needs no copy */
    bool          as_f16, as_f32; /* read: as what steps want it (loop_halves.h); written: how it is computed */
    bool          spread; /* written, of f16 or bf16: its elements lie a few from each other, where others of the block lie between them */
} Blocked;

/* What the loop around reads in its next iteration, where that is not what lies behind this one's: no processor sees it come. Lines of it are fetched with each block.
 * What is taken from most lines of a row that only the loop around names is fetched a row earlier, in the order of memory. Lines of a result that is stored through the caches
 * are fetched to be written, where processors are late with that (row_is_written). */
typedef struct Fetched {
    const KArray *array;
    const Ix     *index; /* of this iteration */
    int64_t       ahead; /* elements from there to the first one of the block that is fetched */
    int64_t       bytes;
    bool          taken; /* from the terms of loops around on, and for each of this loop's elements so many: */
    int64_t       by;
    bool          written;
} Fetched;

typedef struct LoopBlocks {
    int32_t n_in, n_out, n_fetched;
    Blocked in[MOST_BLOCKED], out[MOST_BLOCKED];
    Fetched fetched[MOST_FETCHED];
    LoopTaken taken;
    LoopRounds rounds;
    int64_t size; /* of a block */
    bool    in_parts; /* compilers store it in parts of vectors, beside bytes of which there are no 64 */
    bool    rest; /* the loop may have elements that fill no block */
    int32_t line; /* the one of out whose first block begins with a line of memory, what is before that is left as it was; -1: none */
} LoopBlocks;

/* The term, of an index in a loop without loops in it, is of one around. */
bool is_term_around(const IxTerm *t, const IxAtom *loop);

/* False: the loop wants no blocks, or cannot have them. */
bool loop_blocks(const KStmt *loop, LoopBlocks *b);
/* Blocks of half as many elements or fewer for what those leave. False: there are none. */
bool loop_small_blocks(const KStmt *loop, const LoopBlocks *b, LoopBlocks *small);

/* A block of that size that ends with the loop and makes some elements once more. False: something would be read as it is then, or nothing is left. */
bool loop_last_block(const KStmt *loop, const LoopBlocks *b, LoopBlocks *last);

/* What blocks of f16 leave of a loop whose ends are known is so little that it is no vector. */
bool loop_rest_is_alone(const KStmt *loop, const LoopBlocks *b);
/* Likewise where its range is shared and f16 are taken, of which compilers make no vectors. */
bool loop_shared_is_alone(const LoopBlocks *b);

/* Of a block's loop the elements from that one on that are a loop by themselves: gcc leaves what is beside whole vectors to scalars, whose results in memory a vector then waits for, and
 * unrolls short loops before it makes vectors. `rolled`: it is to be kept from that (the larger of 1471 rows of 40 of f16 13.1 and 2.8 us). */
int64_t loop_piece(const LoopBlocks *b, int64_t from, bool *rolled);

/* The loop of a block's places is so short that it is to be kept from being unrolled, likewise. */
bool loop_rolls_places(const LoopBlocks *b);

/* The one of the prelude's. */
const char *fetching_function(const Fetched *x);

/* What is written so is put together to whole vectors before one of them is read: it would wait for parts that were just stored. */
bool loop_joins(const LoopBlocks *b, const Blocked *x);

/* What makes f32 of a block of f16 or bf16 that is read. */
const char *block_as_f32(const Blocked *x);

/* The number of what x loads, of what s stores; -1: none of them. */
int32_t blocked_in(const LoopBlocks *b, const KExpr *x);
int32_t blocked_out(const LoopBlocks *b, const KStmt *s);

/* Which results are stored past the caches (KArray.streamed). ranges: of several threads. */
void kernel_stream(Kernel *k, bool ranges);

/* Whether some loop of x has such results. */
bool block_streams(const KBlock *x);

#endif
