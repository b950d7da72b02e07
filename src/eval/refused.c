/* Families that are not evaluated. Each handler refuses by opcode and instruction; eval_supported tells before anything runs. */
#include "eval/engine.h"

#define REFUSED(F) F(transfer)

#define HANDLER(family)                                                                                                         \
    EvalFn   eval_##family;                                                                                                     \
    Literal *eval_##family(Eval *e, const Inst *i, Literal **x)                                                                 \
    {                                                                                                                           \
        return eval_fail(e, i, "the evaluator does not support %s (%%%s)", op_name(i->op), i->name);                            \
    }
REFUSED(HANDLER)

bool eval_refuses(EvalFn *f)
{
#define ENTRY(family) eval_##family,
    static EvalFn *const refused[] = {REFUSED(ENTRY)};
    for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++)
        if (refused[k] == f)
            return true;
    return false;
}
