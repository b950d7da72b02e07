/* What the files infer_*.c share: one rule per row of ops.def, and the checks that many rules begin with.
 *
 * A rule gets an instruction whose operand count, called computations (number of them) and required attributes are as
 * its opcode wants them; everything else may be wrong: operands of any shape, attributes out of range. It returns the result
 * shape, or NULL after one report. Rules never look at users and never change anything. */
#ifndef IR_INFER_RULES_H
#define IR_INFER_RULES_H

#include "ir/infer.h"

typedef struct Infer {
    Arena      *a;
    const Inst *i;
    Diag       *d;
} Infer;

#define OP(id, text, n, family, rule, flags) const Shape *infer_##rule(const Infer *x);
#include "ir/ops.def"
#undef OP

/* Reports "<opcode>: <text>" at the instruction; NULL and false, so that a rule can return it. */
const Shape *infer_fail(const Infer *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool         infer_bad(const Infer *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline const Shape *operand_shape(const Infer *x, int32_t k) { return inst_operand(x->i, k)->shape; }
static inline bool         shape_is_token(const Shape *s) { return s->type == TYPE_TOKEN && !s->buffer; }
const char                *infer_text(const Infer *x, const Shape *s);

/* Operands: an array without '?', but for elementwise operations of which the type is left out; a scalar; a scalar integer. */
bool infer_is_array(const Infer *x, int32_t k);
bool infer_are_arrays(const Infer *x); /* all of them */
bool infer_is_scalar(const Infer *x, int32_t k);
bool infer_same_dims(const Infer *x, int32_t a, int32_t b);
bool infer_same_kind(const Infer *x, int32_t a, int32_t b);
/* The same element type; of two floats any, where the result type was left out and XLA's parser takes the wider. */
bool infer_same_type(const Infer *x, int32_t a, int32_t b);

/* Dimension lists: every entry in [0, rank), none twice; what names the list in messages. */
bool infer_dim_list(const Infer *x, const char *what, Ints dims, int32_t rank);
bool infer_dim_list_ascending(const Infer *x, const char *what, Ints dims, int32_t rank);
/* The one entry of the attribute dimensions={k}; -1 after a report. */
int32_t infer_one_dimension(const Infer *x, int32_t rank);

/* An array with default layout. dynamic may be NULL, and is dropped when no dimension is. */
const Shape *infer_array(const Infer *x, Type t, int32_t rank, const int64_t *dims, const bool *dynamic);
/* s with each dimension dynamic that is so in s or in other (same rank). */
const Shape *infer_merge_dynamic(const Infer *x, const Shape *s, const Shape *other);
static inline bool dim_is_dynamic(const Shape *s, int32_t k) { return s->dynamic && s->dynamic[k]; }
/* elems[0] when there is one, else the tuple of all. */
const Shape *infer_one_or_tuple(const Infer *x, int32_t n, const Shape *const *elems);
/* Shapes of operands [first, first + n). */
const Shape **infer_operand_shapes(const Infer *x, int32_t first, int32_t n);

/* Called computations. */
const Shape *callee_result(const Infer *x, int32_t k);
const Shape *callee_param(const Infer *x, int32_t k, int32_t p);
/* callee k has n parameters */
bool infer_callee_arity(const Infer *x, int32_t k, int64_t n);

/* The reducer rule (reference operations 2.4) for n arrays with the given initial values: 2n parameters, n scalar results.
 * inits[j] is the shape of the initial value; types[j] the element type of input j. */
bool infer_check_reducer(const Infer *x, int32_t callee, int32_t n, const Shape *const *inits, const Type *types);

/* Sizes after sliding w over dims (w->n of them), in out; reports bad windows. */
bool infer_window_dims(const Infer *x, const Window *w, const int64_t *dims, int64_t *out);

/* Element type of dot and convolution: what is written, else the operands' higher precision. */
Type infer_preferred_type(const Infer *x, const Shape *lhs, const Shape *rhs);

#endif
