/* Rules of algsimp. A rule looks at one instruction and gives what replaces it, of the same shape with layout (another layout only
 * where all users see elements by index): an older instruction, or new ones made through these functions; NULL leaves it. The driver
 * calls a rule only for instructions that may be replaced (no effect, control edge or dynamic size) and does the replacing. */
#ifndef PASSES_ALGSIMP_H
#define PASSES_ALGSIMP_H

#include "passes/util.h"
#include "support/vec.h"

typedef struct Simp {
    Arena *arena;   /* the module's */
    Arena *scratch; /* of the pass */
    Inst  *at;      /* what is being replaced; new instructions go before it and have its origin */
    bool   rounds;  /* rules that ROUND run too */
    VEC(Inst *) made;
} Simp;

/* New instructions. The shape's layout is kept as given. */
Inst *simp_new(Simp *s, Op op, const Shape *shape, int32_t n, Inst *const *operands);
Inst *simp_like(Simp *s, const Inst *i, const Shape *shape, Inst *const *operands); /* opcode, attributes and callees of i */
Inst *simp_reshape(Simp *s, const Shape *shape, Inst *x);
Inst *simp_broadcast(Simp *s, const Shape *shape, Inst *x, Ints dims);
Inst *simp_constant(Simp *s, const Shape *shape, Literal *v); /* takes over the reference */
Inst *simp_splat(Simp *s, const Shape *shape, int64_t v); /* a broadcast scalar, or the scalar */
Inst *simp_splat_literal(Simp *s, const Shape *shape, Literal *one); /* likewise; takes over the reference */
Inst *simp_same(const Simp *s, Inst *x);                  /* x when it has the shape of s->at, else NULL */
const Shape *simp_shape(Simp *s, Type t, int32_t rank, const int64_t *dims); /* with the default layout */

Literal *simp_scalar(const Literal *l);                   /* a new one of element 0, of a real type */

/* The value of all elements, as a number of a real type; false for others. */
bool splat_is(const Inst *i, int64_t v);
bool splat_is_minus_zero(const Inst *i);

/* Nobody asks where in memory its elements are. */
bool simp_seen_by_index(const Inst *i);

/* The transpose t of dot d is that of d with its sides exchanged. */
bool simp_exchanges_sides(const Inst *t, const Inst *d);

/* No element is negative or -0; NaN may be. */
bool simp_non_negative(const Inst *i);

static inline Ints scratch_ints(Simp *s, int32_t n)
{
    return ints_make(s->scratch, n);
}

static inline Ints dimensions(const Inst *i)
{
    return inst_ints(i, ATTR_DIMENSIONS);
}

static inline const SliceRange *simp_ranges(const Inst *slice)
{
    return inst_attr(slice, ATTR_SLICE)->value.slices->v;
}

static inline const PadDim *simp_padding(const Inst *pad)
{
    return inst_attr(pad, ATTR_PADDING)->value.padding->v;
}
Inst *simp_slice(Simp *s, const Shape *shape, Inst *x, const SliceRange *v);
/* Of the shape's sizes, at a start for each dimension of x. */
Inst *simp_dynamic_slice(Simp *s, const Shape *shape, Inst *x, Inst *const *starts);
Inst *simp_pad(Simp *s, const Shape *shape, Inst *x, Inst *value, const PadDim *v);

/* Both are one and the same known value. */
bool simp_same_splat(const Inst *a, const Inst *b);

/* A broadcast that does not also widen the element type, as XLA allows. */
static inline bool is_broadcast(const Inst *i)
{
    return i->op == OP_BROADCAST && inst_operand(i, 0)->shape->type == i->shape->type;
}

/* One number everywhere, known or not. */
static inline bool is_scalar_broadcast(const Inst *i)
{
    return is_broadcast(i) && inst_operand(i, 0)->shape->rank == 0;
}

#define RULE(id, op, name, keeps, summary) Inst *rule_##id(Simp *s, Inst *i);
#include "passes/algsimp_rules.def"
#undef RULE

#endif
