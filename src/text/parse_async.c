/* Asynchronous steps: async-start, -update and -done in their plain form and as X-start, X-update and X-done, which wrap the
 * instruction X in a computation of its own. Source: reference text 5.5. */
#include "config.h"

#include <stdlib.h>

#include "text/parse_int.h"

/* Opcodes that have asynchronous forms of their own, or once had. */
static bool has_own_steps(Op op)
{
    return op == OP_ALL_GATHER || op == OP_ALL_REDUCE || op == OP_COLLECTIVE_PERMUTE || op == OP_COPY || op == OP_SEND || op == OP_RECV;
}

bool async_split(Parser *p, const char *opcode, AsyncSugar *sugar, Op *wrapped)
{
    static const char *const suffixes[] = {"-start", "-update", "-done"};
    size_t                   n = intern_len(opcode);
    for (int k = 0; k < 3; k++) {
        size_t m = strlen(suffixes[k]);
        if (n <= m || memcmp(opcode + n - m, suffixes[k], m) != 0)
            continue;
        const OpInfo *info = map_get(&p->ops, intern(p->strings, opcode, n - m));
        if (!info || has_own_steps((Op)(info - op_info)) || info == &op_info[OP_PARAMETER] || info == &op_info[OP_CONSTANT])
            return false;
        *wrapped = (Op)(info - op_info);
        *sugar = k == 0 ? SUGAR_START : k == 1 ? SUGAR_UPDATE : SUGAR_DONE;
        return true;
    }
    return false;
}

Inst *async_build(Parser *p, Rhs *r, const char *name, RawAttr *attrs, int32_t n)
{
    parse_error(p, r->opcode.loc, "not yet");
    (void)name;
    (void)attrs;
    (void)n;
    return NULL;
}

bool async_finish(Parser *p)
{
    (void)p;
    return true;
}
