/* Shape inference: the result shape of an instruction from its operands, attributes and called computations.
 * One function per rule, named in the column "result shape" of ops.def: infer_<rule>. Source: reference operations 2 to 19. */
#ifndef IR_INFER_H
#define IR_INFER_H

#include "ir/inst.h"

/* The inferred shape, in arena a, or NULL after reporting to d what is wrong (operand shapes, attributes, called computations).
 * Opcodes whose shape is whatever is written (bitcast, custom-call, ...) give i->shape. Where the written element type may be
 * wider than inferred (dot, convolution, convert, iota, broadcast) the written shape decides and is checked against the rule.
 * i->shape may be NULL for opcodes with F_INFERS; layouts of the result are those of reference text 5.7. */
const Shape *infer_shape(Arena *a, const Inst *i, Diag *d);

/* Window arithmetic (reference operations 7.2): the output size of one dimension, -1 on overflow. */
int64_t window_output_size(const WindowDim *w, int64_t size);

#endif
