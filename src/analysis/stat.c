#include "analysis/stat.h"

#include "analysis/cost.h"
#include "analysis/peak.h"
#include "ir/custom_call.h"

static int64_t known_bytes(const Shape *s)
{
    int64_t n = shape_bytes(s);
    return n < 0 ? 0 : n;
}

static void count_text(Arena *a, const Module *m, Stat *out)
{
    Map seen = map_new(a);
    for (const Comp *c = m->first; c; c = c->next) {
        out->computations++;
        for (const Inst *i = c->first; i; i = i->next) {
            out->instructions++;
            out->of_op[i->op]++;
            if (i->op == OP_CONSTANT) {
                out->constants = cost_add(out->constants, known_bytes(i->shape));
                out->elided += literal_has_elided(i->literal);
            }
            const char *target = i->op == OP_CUSTOM_CALL ? inst_string(i, ATTR_CUSTOM_CALL_TARGET) : NULL;
            if (i->op == OP_CUSTOM_CALL && custom_call_kind(target) == CALL_UNKNOWN && target && !map_has(&seen, target)) {
                map_put(&seen, target, NULL);
                vec_push(a, &out->unknown_calls, target);
            }
        }
    }
}

static void count_kernels(Arena *a, const Module *m, Stat *out)
{
    Map runs = module_runs(a, m, &out->unknown_trips), flops = module_flops(a, m);
    for (const Comp *c = m->first; c; c = c->next) {
        if (!map_has(&runs, c))
            continue;
        int64_t n = (int64_t)(intptr_t)map_get(&runs, c);
        for (const Inst *i = c->first; i; i = i->next) {
            if (!inst_is_kernel(i))
                continue;
            KernelStat k = {i, n, inst_bytes(i), inst_flops(i, &flops), inst_is_library_call(i)};
            vec_push(a, &out->list, k);
            out->kernels++;
            out->fusions += i->op == OP_FUSION;
            out->library_calls += k.library;
            out->bytes = cost_add(out->bytes, cost_mul(n, k.bytes));
            out->flops = cost_add(out->flops, cost_mul(n, k.flops));
        }
    }
}

void module_stat(Arena *a, Module *m, Stat *out)
{
    *out = (Stat){0};
    count_text(a, m, out);
    count_kernels(a, m, out);
    out->temporaries = module_peak(m, &out->worst);
    for (int32_t k = 0; k < m->entry->n_params; k++)
        out->arguments = cost_add(out->arguments, known_bytes(m->entry->params[k]->shape));
    out->results = known_bytes(m->entry->root->shape);
}
