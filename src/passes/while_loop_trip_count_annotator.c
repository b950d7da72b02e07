/* while-loop-trip-count-annotator - writes down how often loops run.
 *
 *   %w = while(%init), condition=%c, body=%b
 *         =>
 *   %w = while(%init), condition=%c, body=%b, backend_config={"dynamic_variables":[],"known_induction_variable":{"tuple_index":"0"},
 *        "known_init_step":{"init":"0","step":"1"},"known_trip_count":{"n":"12"}}
 *
 * As XLA writes it, where a comparison with a constant ends the loop. A backend_config that is there stays. */
#include "config.h"

#include "analysis/loops.h"
#include "passes/pass.h"

static bool annotate(Inst *w)
{
    LoopCount   c;
    const char *config = inst_string(w, ATTR_BACKEND_CONFIG);
    if ((config && *config) || !shape_is_tuple(w->shape) || !while_counted(w, &c))
        return false;
    Module *m = w->comp->module;
    char   *text = arena_printf(m->arena,
                                "{\"dynamic_variables\":[],\"known_induction_variable\":{\"tuple_index\":\"%lld\"},"
                                "\"known_init_step\":{\"init\":\"%lld\",\"step\":\"%lld\"},\"known_trip_count\":{\"n\":\"%lld\"}}",
                                (long long)c.index, (long long)c.init, (long long)c.step, (long long)c.trips);
    inst_set_attr(w, (Attr){.id = ATTR_BACKEND_CONFIG, .value.s = intern_str(m->strings, text)});
    return true;
}

bool pass_while_loop_trip_count_annotator(Module *m, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = comp_calling(c); i && cx->rewrites < cx->limit; i = i->next)
            if (i->op == OP_WHILE && annotate(i)) {
                cx->did_at = i->name;
                cx->rewrites++;
            }
    return cx->rewrites > 0;
}
