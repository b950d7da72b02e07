/* What dot, ragged-dot and scaled-dot share: operands brought into order so that products of matrices remain. */
#ifndef EVAL_DOT_H
#define EVAL_DOT_H

#include "eval/engine.h"

typedef struct DotOperand {
    Ints    batch, contracting;
    Ints    free; /* the other dimensions, ascending */
    int64_t free_count;
} DotOperand;

DotOperand dot_operand(Arena *a, const Literal *l, Ints batch, Ints contracting);
int64_t    dot_count(const Literal *l, Ints dims); /* the product of these sizes of l */

/* l with its dimensions in the order of three lists. Takes over the reference. */
Literal *dot_in_order(Eval *e, const Inst *i, Literal *l, Ints a, Ints b, Ints c);
/* Zeros of the computing type, [batch, rows, columns]. */
Literal *dot_zeros(Eval *e, const Inst *i, Type t, int64_t batch, int64_t rows, int64_t columns);
/* Of f32: a sum in f32 that starts at 0 is never -0, since what is negative and too small for f32 has been 0 in each step. Here it is in f64 until
 * the end. */
void dot_drop_signs_of_zeros(Literal *l);
/* i's result: its dimensions around the values of r, in its own type. Takes over the reference; NULL is allowed. */
Literal *dot_finish(Eval *e, const Inst *i, Literal *r);

#endif
