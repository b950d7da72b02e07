/* The forms of printing, and whether one of them can be had of a module at all. Source: reference text 8.1. */
#include "ir/inst.h"
#include "text/print.h"

PrintOptions print_options_default(void)
{
    return (PrintOptions){
#define PART(field, name, l, s, c, f, help) .field = l,
#include "text/print_parts.def"
#undef PART
        .callees = CALLEES_NAMED};
}

PrintOptions print_options_short(void)
{
    return (PrintOptions){
#define PART(field, name, l, s, c, f, help) .field = s,
#include "text/print_parts.def"
#undef PART
        .callees = CALLEES_NAMED};
}

PrintOptions print_options_canonical(void)
{
    return (PrintOptions){
#define PART(field, name, l, s, c, f, help) .field = c,
#include "text/print_parts.def"
#undef PART
        .callees = CALLEES_WHOLE};
}

PrintOptions print_options_fingerprint(void)
{
    return (PrintOptions){
#define PART(field, name, l, s, c, f, help) .field = f,
#include "text/print_parts.def"
#undef PART
        .callees = CALLEES_WHOLE};
}

/* What one computation comes to with the bodies of its callees in it. */
typedef struct Extent {
    int64_t insts, depth;
} Extent;

/* The greatest extent a computation may have: XLA knows no limit, and prints until memory ends. */
enum { MAX_INSTS = 1 << 24, MAX_DEPTH = 500 };

static int64_t add_up_to(int64_t a, int64_t b, int64_t limit)
{
    return a > limit - b ? limit : a + b;
}

/* Callees come before callers in the order, so theirs are known. */
static Extent extent_of(const Map *known, const Comp *c)
{
    Extent e = {c->n_insts, 1};
    for (const Inst *i = c->first; i != NULL; i = i->next)
        for (int32_t k = 0; k < i->n_callees; k++) {
            const Extent *callee = map_get(known, i->callees[k]);
            if (callee == NULL)
                continue;
            e.insts = add_up_to(e.insts, callee->insts, MAX_INSTS + 1);
            if (callee->depth >= e.depth)
                e.depth = callee->depth + 1;
        }
    return e;
}

bool print_is_feasible(const Module *m, const PrintOptions *o, Diag *d)
{
    if (o->callees != CALLEES_WHOLE && o->callees != CALLEES_PARALLEL)
        return true;
    Arena *a = arena_new();
    Map    known = map_new(a);
    bool   good = true;
    Comp  *failed = NULL;
    int32_t n;
    Comp  **order = module_comp_order(a, m, &n);
    for (int32_t k = 0; k < n && good; k++) {
        Extent *e = ARENA_NEW(a, Extent);
        *e = extent_of(&known, order[k]);
        map_put(&known, order[k], e);
        good = e->insts <= MAX_INSTS && e->depth <= MAX_DEPTH;
        failed = order[k];
    }
    if (!good)
        diag_error(d, failed->loc, "computation %s cannot be printed with the bodies of what it calls: more than %d instructions or %d levels",
                   failed->name, (int)MAX_INSTS, (int)MAX_DEPTH);
    arena_free(a);
    return good;
}
