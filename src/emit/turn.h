/* Parts (threads.h) that read an array across and write along: transposes, and what a fusion makes of one. Threads that share a tile read it the one way and
 * write it the other.
 *
 *     for b, c, r, ...:                       neighbours in r are neighbours in what is read
 *         out[b, c, r'] = f(in[b, r', c])     neighbours in the last loop are neighbours in what is written
 *
 * or rows of a few neighbours that stay together:
 *
 *         out[b, c, r', e] = f(in[b, r', c, e])
 */
#ifndef EMIT_TURN_H
#define EMIT_TURN_H

#include "emit/threads.h"

typedef struct TurnPart {
    const IxAtom *in, *out; /* loops: along what is read, along what is written */
    const IxAtom *around;   /* NULL, or the loop around a short `out`, with which that is as one: around * trips of out + out */
    const IxAtom *each;     /* NULL, or the last loop: along both, less than two sectors of 32 bytes */
    const KExpr  *load;
    const KTemp  *value;    /* stands for load in body */
    const KBlock *body;
} TurnPart;

/* False: the part has another form, or its loops are both short. */
bool kernel_turn_part(Arena *a, const Kernel *k, const ThreadPart *part, TurnPart *out);

#endif
