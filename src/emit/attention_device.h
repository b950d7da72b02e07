/* Attention as kernels of a device, which has many threads: what attention_call.h takes, where that beats products of a library with a softmax between them.
 *
 * Of up to 8 rows for each member, as of decoding, a block has some of the keys: groups of lanes go through a key each, then through its value. Of more a block has a
 * tile of 16, 32 or 64 rows and goes through the keys in steps, with the largest score and the sum so far; of 16 and 32 rows groups of its threads share the keys.
 * Where that leaves multiprocessors idle the keys are cut into pieces, which a second kernel joins.
 * Where the operands have 16 bits and the device has tensor cores, tiles have a second form, by fragments: half as many rows for each group of threads.
 * Where each step of the softmax is rounded, the largest score of all keys is known before the first weight: a tile's scores are kept, as many as shared memory has room for. */
#ifndef EMIT_ATTENTION_DEVICE_H
#define EMIT_ATTENTION_DEVICE_H

#include "analysis/attention.h"
#include "emit/attention_call.h"

enum { ATTENTION_THREADS = 256, ATTENTION_FADES = 20 /* floats from row to row of a fragment that says how much sums fade */ };

/* How a block goes through the keys of a tile. */
typedef struct AttentionSteps {
    int64_t each;         /* keys of a thread in each step, for each of its rows */
    int64_t groups, step; /* of threads that share keys; keys of a step of all */
    int64_t head, wide;   /* of a row in shared memory: of queries and keys, of values; in floats, or on tensor cores in elements of 16 bits */
    int64_t kept;         /* of a row's scores there, elements of 16 bits, where each step of the softmax is rounded; 0: there are none */
    int64_t shared;       /* bytes, of a block */
} AttentionSteps;

typedef struct AttentionLaunch {
    bool    few;
    int64_t rows;          /* of a tile; of a member, where they are few */
    AttentionSteps by;
    AttentionSteps tensor; /* of the form for tensor cores; step 0: there is none */
    int64_t pieces, piece; /* of the keys; keys of one, a multiple of either form's steps */
    int64_t tiles;         /* blocks of work: of all members, rows and pieces */
    int64_t stats, bytes;  /* of working memory: where the pieces' largest scores and sums begin; all of it */
} AttentionLaunch;

int64_t attention_sums(const AttentionSteps *s); /* of a row of sums that fragments leave: 16 bytes more than it has columns */
int64_t attention_shared(const AttentionLaunch *l); /* bytes that a launch asks for, whichever form it is */
void attention_launch(const AttentionCall *c, const Device *v, AttentionLaunch *out);
int64_t attention_memory(const AttentionCall *c, const Device *v); /* working memory, in bytes */
int64_t attention_members(const hlort_attention *d);

/* Whether fusion i is such kernels on v. */
bool attention_on_device(const Inst *i, const Shape *const *lie, const Device *v, AttentionCall *out);

#endif
