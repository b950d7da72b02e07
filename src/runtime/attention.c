/* attention.c - attention (hlort.h): members of a batch one after another, or as many at once as there are threads. Keys and values of each are packed once, then groups
 * of rows are computed (attention_body.h), in parts of whole groups. Of few rows, and where there are some members for each thread that are small enough, each member
 * is a part. */
#include "runtime/attention.h"
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <stddef.h>

enum {
    PARTS = 8,     /* for each thread: those of the last rows see the most keys where they are masked */
    MEMBERS = 4,   /* for each thread, from which on they are parts */
    NEAR = 4 << 20 /* bytes of keys and values that stay in a cache */
};

typedef struct Job {
    const AttentionKernels *kernels;
    AttentionMember        *members;
    int64_t                 groups, pieces; /* of a member */
    int64_t                 count, of_part; /* members, of which each thread takes some */
    const void             *q, *k, *v, *t;
    void                   *o;
    GemmType                type;
} Job;

static void pack(void *job, int64_t part, void *memory)
{
    const Job *x = job;
    (void)memory;
    x->kernels->pack(&x->members[part / 2], (int)(part % 2));
}

static void attend(void *job, int64_t part, void *memory)
{
    const Job    *x = job;
    const int64_t piece = part % x->pieces;
    x->kernels->rows(&x->members[part / x->pieces], x->groups * piece / x->pieces, x->groups * (piece + 1) / x->pieces, memory);
}

static void find_member(AttentionMember *m, const Job *x)
{
    const hlort_attention *d = m->d;
    const int8_t          *bytes = hlort_bytes[x->type];
    int64_t                rest = m->number, at[5] = { 0 };
    for (int64_t e = d->n_batch - 1; e >= 0; e--) {
        const int64_t digit = rest % d->batch[e].count;
        rest /= d->batch[e].count;
        at[0] += digit * d->batch[e].q;
        at[1] += digit * d->batch[e].k;
        at[2] += digit * d->batch[e].v;
        at[3] += digit * d->batch[e].o;
        at[4] += digit * d->batch[e].t;
    }
    m->q = (const char *)x->q + at[0] * bytes[0];
    m->k = (const char *)x->k + at[1] * bytes[0];
    m->v = (const char *)x->v + at[2] * bytes[0];
    m->o = (char *)x->o + at[3] * bytes[1];
    m->t = x->t ? (const char *)x->t + at[4] * (d->rounded ? bytes[0] : (int64_t)sizeof(float)) : NULL;
}

static void attend_members(void *job, int64_t part, void *memory)
{
    const Job *x = job;
    char      *packed = (char *)memory + HLORT_WORK_BYTES - ATTENTION_OWN;
    for (int64_t n = part * x->of_part; n < x->count && n < (part + 1) * x->of_part; n++) {
        AttentionMember m = x->members[0];
        m.number = n;
        find_member(&m, x);
        if (!m.few) {
            m.keys = packed;
            m.values = packed + hlort_attention_keys_bytes(m.d);
            x->kernels->pack(&m, 0);
            x->kernels->pack(&m, 1);
        }
        x->kernels->rows(&m, 0, x->groups, memory);
    }
}

void hlort_attend(const KernelSet *s, GemmType type, const hlort_attention *d, const hlort_how *how, const void *q, const void *k, const void *v, const void *t,
                  void *o)
{
    enum { MOST_TOGETHER = 16 };
    const int       threads = pool_threads(how->pool);
    const int64_t   keys = hlort_attention_keys_bytes(d), both = keys + hlort_attention_values_bytes(d), fit = hlort_attention_together(d);
    const int64_t   together = fit < threads ? fit : threads;
    AttentionMember members[MOST_TOGETHER];
    Job             job = { .kernels = s->attention[type] ? s->attention[type] : s->rest->attention[type], .members = members, .q = q, .k = k, .v = v, .t = t, .o = o,
                            .type = type };
    int64_t         count = 1;
    for (int64_t e = 0; e < d->n_batch; e++)
        count *= d->batch[e].count;
    job.groups = hlort_ceildiv(d->rows, job.kernels->group);
    const int few = hlort_attention_few(d), alone = both <= ATTENTION_OWN && count >= MEMBERS * threads;
    if ((few || alone) && count > 0 && job.groups > 0) {
        members[0] = (AttentionMember){ .d = d, .how = how, .few = few, .o_is_narrow = hlort_bytes[type][1] == 2 };
        members[0].far = count * d->keys * (d->head + d->wide) * hlort_bytes[type][0] > NEAR;
        job.count = count;
        job.of_part = hlort_ceildiv(count, POOL_MOST_PARTS);
        pool_run(how->pool, attend_members, &job, hlort_ceildiv(count, job.of_part), how->work);
        return;
    }
    for (int64_t first = 0, n; first < count && job.groups > 0; first += n) {
        n = hlort_min(hlort_min(together, MOST_TOGETHER), count - first);
        for (int64_t e = 0; e < n; e++) {
            char *packed = (char *)how->work + HLORT_WORK_BYTES + e * both;
            members[e] = (AttentionMember){ .d = d, .how = how, .number = first + e, .o_is_narrow = hlort_bytes[type][1] == 2, .keys = packed, .values = packed + keys };
            find_member(&members[e], &job);
        }
        job.pieces = threads < 2 ? 1 : hlort_min(job.groups, hlort_ceildiv(PARTS * threads, n));
        pool_run(how->pool, pack, &job, 2 * n, how->work);
        pool_run(how->pool, attend, &job, n * job.pieces, how->work);
    }
}

#define FUNCTION(name, type, in, out)                                                                                                              \
    void hlort_attention_##name(const hlort_attention *d, const hlort_how *how, const in *q, const in *k, const in *v, const void *t, out *o)     \
    {                                                                                                                                              \
        hlort_attend(hlort_kernels(), type, d, how, q, k, v, t, o);                                                                                \
    }
FUNCTION(f32, GEMM_F32, float, float)
FUNCTION(bf16, GEMM_BF16, uint16_t, uint16_t)
FUNCTION(bf16_f32, GEMM_BF16_F32, uint16_t, float)
FUNCTION(f16, GEMM_F16, uint16_t, uint16_t)
FUNCTION(f16_f32, GEMM_F16_F32, uint16_t, float)
#undef FUNCTION
