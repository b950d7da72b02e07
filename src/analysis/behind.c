/* An instruction stands after its operands, so that one walk backwards meets all. */
#include "analysis/behind.h"

Behind behind_of(Arena *a, const Inst *x, const Map *given)
{
    Behind b = { map_new(a), given, x };
    map_put(&b.wanted, x, (void *)(uintptr_t)x);
    return b;
}

const Inst *behind_next(Behind *b)
{
    const Inst *i = b->at;
    while (i && (!map_has(&b->wanted, i) || (b->given && map_has(b->given, i))))
        i = i->prev;
    b->at = i ? i->prev : NULL;
    for (int32_t k = 0; i && k < i->n_operands; k++)
        map_put(&b->wanted, inst_operand(i, k), inst_operand(i, k));
    return i;
}
