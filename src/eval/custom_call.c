/* custom-call by target. Source: reference operations 19. */
#include "eval/engine.h"
#include "ir/custom_call.h"

EvalFn eval_custom_call, eval_lapack, eval_tuple;

Literal *eval_custom_call(Eval *e, const Inst *i, Literal **x)
{
    const char *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    const char *why = custom_call_refused(e->arena, i);
    if (why)
        return eval_fail(e, i, "custom-call \"%s\" %%%s: %s", target, i->name, why);
    switch (custom_call_kind(target)) {
    case CALL_MARKER:
        return shape_is_tuple(i->shape) && !shape_is_tuple(inst_operand(i, 0)->shape) ? eval_tuple(e, i, x) : eval_move(x, 0);
    case CALL_UNDEFINED:
        return eval_zeros(e, i, i->shape);
    case CALL_LAPACK:
        return eval_lapack(e, i, x);
    case CALL_UNKNOWN:
        break;
    }
    return eval_fail(e, i, "no implementation for custom-call target \"%s\" (%%%s)", target, i->name);
}
