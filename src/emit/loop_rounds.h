/* Loops in blocks (loop_blocks.h) that round to f16 between their operations. Processors have two instructions for that, of which compilers make no vectors; what they make vectors of is a dozen
 * operations of integers. So such a loop becomes several, one after the other, and what one has computed is rounded a block at a time.
 *
 *     for k < 32: out[k] = f(f16_round(g(in[k])))
 *     =>  for k < 32: kept[k] = g(in[k]);  f16_block_round(kept, 32);  for k < 32: out[k] = f(kept[k]) */
#ifndef EMIT_LOOP_ROUNDS_H
#define EMIT_LOOP_ROUNDS_H

#include "emit/loop_taken.h"

enum { ROUND_AGAIN = 1 /* so cheap that each loop that wants it computes it */, ROUND_KEPT = 2 /* the block has an array of it */, ROUND_BLOCK = 4 /* which is rounded */,
       ROUND_HALF = 8 /* computed as f16: loop_halves.h */, ROUND_AS_F16 = 16, ROUND_AS_F32 = 32 /* where anything is: as what loops want the array, if one of floats */ };

typedef struct LoopRounds {
    int32_t n_steps; /* loops; 1: nothing is rounded a block at a time */
    bool    halves;  /* something is computed as f16: a step has a loop for that, and one for what is not, which comes next */
    uint8_t step[MOST_STATEMENTS]; /* of each of the loop's statements: in which one it stands, */
    uint8_t role[MOST_STATEMENTS]; /* and bits */
} LoopRounds;

/* is_apart: what a statement stores, the block keeps until its end. */
void loop_rounds(const KStmt *loop, bool (*is_apart)(void *cookie, const KStmt *s), void *cookie, LoopRounds *r);

/* Which statements' values that step wants, from its own loop or from others; half: its loop of what is computed as f16. */
void round_wants(const KStmt *loop, const LoopRounds *r, int32_t step, bool half, bool *wanted);

/* A statement of that step, in that one of its loops; of what is cheap, one that it computes again. */
bool round_is_in(const LoopRounds *r, int32_t statement, int32_t step, bool half, bool wanted);

/* Calls meet for each temporary that the statement's value and index name. */
typedef void RoundMeet(void *cookie, const KTemp *temp);
void round_meet(const KStmt *s, RoundMeet *meet, void *cookie);

#endif
