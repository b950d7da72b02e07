/* Loops of known trips that do the same for each element of arrays, whatever other elements are:
 *
 *     h = h0;  for t < 1000: { h = a * h + x[t];  y[t] = h }        h, a: f32[4096];  x, y: f32[1000,4096]
 *
 * An element goes through all of its trips before the next one begins, and stays in registers: the loop becomes a fusion of one while, which is a kernel. */
#ifndef EMIT_ELEMENT_LOOP_H
#define EMIT_ELEMENT_LOOP_H

#include "ir/inst.h"
#include "support/vec.h"

typedef enum {
    LEAF_SAME,     /* no trip changes it */
    LEAF_COUNT,    /* init + step * t */
    LEAF_ALIKE,    /* a scalar that no element has a part in */
    LEAF_ELEMENTS, /* of the loop's shape */
    LEAF_ROWS      /* each trip writes a row of it, all of them are written, and nothing reads it */
} LeafKind;

typedef struct LoopLeaf {
    LeafKind    kind;
    int64_t     init, step; /* LEAF_COUNT */
    const Inst *read;       /* as a trip finds it; NULL: the body does not look */
    const Inst *value;      /* after a trip; LEAF_ROWS: the dynamic-update-slice */
} LoopLeaf;

/* A scalar of the body that is init + step * t in trip t, though it is computed otherwise. */
typedef struct LoopNumber {
    const Inst *x;
    int64_t     init, step;
} LoopNumber;

typedef struct ElementLoop {
    const Shape *shape; /* of the elements; default layout */
    int64_t      trips;
    bool         flat;  /* an element's place in memory is all that matters: not where it is along the dimensions */
    bool         rows;  /* trips read or write rows of their own */
    bool         dear;  /* a trip computes what takes tens of cycles */
    LoopLeaf    *leaf;  /* one for each element of the state */
    VEC(LoopNumber) numbers; /* where rows begin */
} ElementLoop;

/* Whether w, whose body has no fusions and calls, is such a loop. In a. */
bool element_loop_find(Arena *a, const Inst *w, ElementLoop *out);

/* The dimension of s in which neighbours lie beside each other, sizes of 1 left out; -1: s has one element. */
int32_t element_loop_line(const Shape *s);

/* A while that may be one, seen from outside; puts the fusion in its place if it is one. */
bool loop_expands(const Inst *i);
void expand_loop(Inst *i);

#endif
