/* custom-call by target. Source: reference operations 19. */
#include "eval/engine.h"
#include "ir/call_meaning.h"
#include "ir/custom_call.h"

EvalFn eval_custom_call, eval_extern, eval_lapack, eval_region, eval_tuple;

/* The computation that a call stands for is built when it first runs. */
static const Comp *meaning(Eval *e, const Inst *i)
{
    const Comp *c = map_get(&e->meanings, i);
    const char *why = NULL;
    if (c)
        return c;
    c = call_meaning(e->arena, i, &why);
    if (c)
        map_put(&e->meanings, i, (void *)(uintptr_t)c);
    else
        eval_fail(e, i, "custom-call \"%s\" %%%s: %s", inst_string(i, ATTR_CUSTOM_CALL_TARGET), i->name, why);
    return c;
}

static Literal *eval_meaning(Eval *e, const Inst *i, Literal **x)
{
    const Comp *c = meaning(e, i);
    return c ? eval_comp(e, i, c, x) : NULL;
}

static Literal *seed(Eval *e, const Inst *i)
{
    Literal *r = eval_new_for(e, i, i->shape);
    if (r)
        literal_set_s64(r, 0, (int64_t)e->options->seed);
    return r;
}

Literal *eval_custom_call(Eval *e, const Inst *i, Literal **x)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    switch (custom_call_kind(target)) {
    case CALL_CUT:
    case CALL_JOIN:
        if (e->on.partitions > 1)
            return eval_region(e, i, x);
        /* fallthrough */
    case CALL_MARKER:
        return shape_is_tuple(i->shape) && !shape_is_tuple(inst_operand(i, 0)->shape) ? eval_tuple(e, i, x) : eval_move(x, 0);
    case CALL_UNDEFINED:
        return eval_zeros(e, i, i->shape);
    case CALL_LAPACK:
        return eval_lapack(e, i, x);
    case CALL_MEANING:
        return eval_meaning(e, i, x);
    case CALL_SEED:
        return seed(e, i);
    case CALL_UNKNOWN:
        return eval_extern(e, i, x);
    }
    die("%s: a kind of custom call without a meaning", target);
}
