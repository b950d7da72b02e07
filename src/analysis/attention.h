/* Attention: two dots with a softmax, or whatever else makes rows of weights out of rows of scores, between them.
 *
 *   scores = dot(q, k);  weights = f(scores);  out = dot(weights, v)
 *
 * f is made of elementwise operations, reductions over all keys of a row, broadcasts of their results and transposes; what else it needs (a mask, a bias) may
 * be anything that is no part of it. Then a block of rows of the scores gives a block of the result, and the scores need not exist all at once. Operands may
 * stand on either side, with batch and free dimensions in any number: grouped queries are one more free dimension. */
#ifndef ANALYSIS_ATTENTION_H
#define ANALYSIS_ATTENTION_H

#include "analysis/device.h"
#include "ir/inst.h"

enum { ATTENTION_MOST_DIMS = 16, ATTENTION_MOST = 256 };

/* An instruction made of the scores, and which of their dimensions each of its own is; -1: none, it has size 1. */
typedef struct AttentionPart {
    const Inst *x;
    int32_t     dim[ATTENTION_MOST_DIMS];
} AttentionPart;

typedef struct Attention {
    const Inst   *scores, *out; /* the dots */
    int32_t       side;         /* operand of out that is the weights */
    int32_t       n_batch;      /* the first dimensions of the scores; then the rest of lhs, then the rest of rhs */
    int32_t       lhs[ATTENTION_MOST_DIMS], rhs[ATTENTION_MOST_DIMS]; /* dimension of each operand of scores, -1: none or one of size 1 */
    int32_t       v[ATTENTION_MOST_DIMS], result[ATTENTION_MOST_DIMS]; /* of out's other operand, of out */
    bool          key[ATTENTION_MOST_DIMS];
    int32_t       n;
    AttentionPart parts[ATTENTION_MOST]; /* the scores, then operands before their users, the weights last */
} Attention;

/* Whether an instruction may be a part. */
typedef bool AttentionInside(void *cookie, const Inst *i);

/* What out, a dot, is: the scores are the one dot behind its operand that is made of parts. */
bool attention_find(const Inst *out, AttentionInside *inside, void *cookie, Attention *a);
const AttentionPart *attention_part(const Attention *a, const Inst *x); /* NULL: it is none */

/* How much work it is: of each member of the batch scores [rows, keys] of `head` terms each, a result [rows, wide]. */
typedef struct AttentionSize {
    Type    type;  /* of the operands */
    bool    half;  /* of the scores about half are left out */
    int64_t members, rows, keys, head, wide;
} AttentionSize;
AttentionSize attention_size(const Attention *a);
enum { ATTENTION_FEW = 8 /* rows of a member, which are no tile */ };

/* Operations that a kernel of it does each ns, of operands of that type: on tensor cores where they have 16 bits. */
double attention_rate(Type type, const Device *v);
/* Whether one kernel does all of it sooner than a library's products with a softmax between. */
bool attention_pays(const AttentionSize *s, const Device *v);

#endif
