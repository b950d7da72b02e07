/* attention.h - between attention.c, which goes through the members of a batch, and the kernels of each set of instructions. */
#ifndef HLORT_ATTENTION_H
#define HLORT_ATTENTION_H

#include "runtime/hlort.h"

/* One member of a batch whose keys and values are packed, as panels of B: keys [panel of keys][head][NR], values [panel of the result][keys][NR]. */
typedef struct AttentionMember {
    const hlort_attention *d;
    const hlort_how       *how;
    int64_t     number;
    const void *q, *k, *v, *t;
    void       *o;
    int         o_is_narrow; /* of the type of the operands where that is no f32 */
    int         few; /* nothing is packed (hlort_attention_few) */
    int         far; /* few: keys and values of all members do not stay in a cache that is near */
    void       *keys, *values;
    float       most_key, most_value; /* of their sizes; NaN or infinite where there is one */
} AttentionMember;

/* Packs keys, or values, and finds the largest. */
typedef void AttentionPack(AttentionMember *m, int values);
/* Groups of rows from one to before another. memory: HLORT_WORK_BYTES. */
typedef void AttentionRows(const AttentionMember *m, int64_t from, int64_t end, void *memory);

/* A thread that does a member alone packs it into the end of its own memory. So many keys fit there at most, and groups of rows of as many before it. */
enum { ATTENTION_OWN = HLORT_WORK_BYTES / 2, ATTENTION_OWN_KEYS = ATTENTION_OWN / (35 * 4) };

typedef struct AttentionKernels {
    AttentionPack *pack;
    AttentionRows *rows;
    int64_t        group; /* rows, at most */
} AttentionKernels;

#endif
