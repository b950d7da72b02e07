/* Values of dots and convolutions that are kept from one evaluation to the next: of modules that are alike, as before and after a pass, nearly all
 * the work is in few instructions on the same operands. A value is found by what it depends on: the opcode, the types, the attributes, the elements of the
 * operands (by two hashes of 64 bits). So it does not matter which module an instruction is of, what it is called and where it stands. */
#ifndef EVAL_MEMO_H
#define EVAL_MEMO_H

#include "ir/inst.h"

typedef struct EvalMemo EvalMemo;

EvalMemo *memo_new(int64_t room); /* keeps values of up to so many bytes */
void      memo_free(EvalMemo *m); /* NULL is allowed */
void      memo_turn(EvalMemo *m); /* forgets what has not been asked for since the last turn */
int64_t   memo_found(const EvalMemo *m); /* how often a value was there */

/* Whether values of i are kept at all, and a value is worth it: to look at the operands takes much less time than to compute it. */
bool memo_takes(const Inst *i, Literal *const *x);

typedef struct MemoKey {
    uint64_t h[2];
} MemoKey;
MemoKey memo_key(EvalMemo *m, const Inst *i, Literal *const *x);

/* One reference, or NULL; *work: the element operations that it took. */
Literal *memo_get(EvalMemo *m, MemoKey key, int64_t *work);
/* Takes a reference of its own; false: there is no room. */
bool memo_put(EvalMemo *m, MemoKey key, Literal *value, int64_t work);

#endif
