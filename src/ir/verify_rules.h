/* What the files verify_*.c share. Each function reports what it finds and goes on; none relies on another but for the structure:
 * verify_structure comes first, and the others run only when it found nothing, so that operands precede their users in the same
 * computation, callees precede callers, parameters are numbered without gaps and every computation has a root. */
#ifndef IR_VERIFY_RULES_H
#define IR_VERIFY_RULES_H

#include "ir/verify.h"

typedef struct Verify {
    const Module *m;
    Diag         *d;
    Arena        *a; /* scratch, until the module or (where instructions are walked) the computation is done */
    Map           wrapped; /* computations of asynchronous steps, with one of these; filled by verify_async_callees */
} Verify;

/* "<opcode>: <text>" at the instruction. Returns false. */
bool verify_fail(const Verify *v, const Inst *i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static inline const char *verify_text(const Verify *v, const Shape *s) { return shape_brief(v->a, s); }

/* The part of s at an index such as {1,0}; NULL when there is none. */
const Shape *shape_at(const Shape *s, Ints index);
/* {1,0} */
const char  *index_text(const Verify *v, Ints index);
const char  *comp_thread(const Comp *c); /* "main" unless set */
const char  *frontend_attribute(const Inst *i, const char *key); /* NULL: not given */

void verify_structure(const Verify *v);
/* One instruction each. */
void verify_shape(const Verify *v, const Inst *i);      /* types are possible, written type against inferred */
void verify_invariants(const Verify *v, const Inst *i); /* fusion, composite calls, aliasing, buffers, threads */
void verify_pairs(const Verify *v, const Inst *i);      /* starts with their done, send and recv */
void verify_sharding(const Verify *v, const Inst *i);
void verify_async(const Verify *v, const Inst *i);
void verify_collective(const Verify *v, const Inst *i); /* groups, channels, source-target pairs */
void verify_groups(const Verify *v, const Inst *i);     /* part of verify_collective */
bool verify_possible(const Verify *v, const Inst *i, const Shape *s); /* sizes and orders of s; reports at i */
/* The module. */
void verify_entry_layout(const Verify *v);
void verify_aliases(const Verify *v);
void verify_constrain_layout(const Verify *v);
void verify_async_callees(Verify *v);

#endif
