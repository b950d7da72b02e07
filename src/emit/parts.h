/* Reductions in parts: how an operand is cut, the reduction of its parts and that of their results. */
#ifndef EMIT_PARTS_H
#define EMIT_PARTS_H

#include "ir/inst.h"

enum { REDUCTION_LEAST_PARTS = 8 };

/* The dimension that becomes two, parts and what is in each, -1: none; the first one that is reduced later, the rank: there is none. */
typedef struct Cutting {
    int32_t dim, rows;
    int64_t parts;
} Cutting;

/* The dimension that is cut: the first one that r reduces and that has more than one element; -1: there is none, or there are rows enough around it. */
int32_t reduction_cut_dim(const Inst *r);

/* In front of r, a reduction as it is whose results are of the parts; starts: one for each of its arrays. */
Inst *reduction_of_parts(Inst *r, const Cutting *c, Inst *const *starts);

/* In front of i, with its origin, what reduces those results to r's; operands: they and what r starts with. */
Inst *reduction_of_all(Inst *i, const Inst *r, const Cutting *c, int32_t n, Inst *const *operands);

/* Of i, a fusion: a fusion of that body, which has i's parameters, in front of it. */
Inst *part_of_fusion(Inst *i, Comp *body);

/* What a reduction in i's body starts with, outside. */
Inst *start_outside(Inst *i, const Inst *start);

/* That element of a tuple, in front of i. */
Inst *element_before(Inst *i, Inst *tuple, int32_t k);

#endif
