/* The table of targets. */
#include "ir/custom_call.h"

#include <string.h>

#include "ir/call_meaning.h"
#include "ir/lapack.h"

typedef struct Target {
    const char *name;
    CallKind    kind;
} Target;

static const Target targets[] = {
#define TARGET(name, kind) { name, CALL_##kind },
#include "ir/custom_calls.def"
#undef TARGET
};

static bool is_named(const char *pattern, const char *target)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, target, n - 1) == 0 : strcmp(pattern, target) == 0;
}

CallKind custom_call_kind(const char *target)
{
    for (size_t k = 0; target && k < sizeof targets / sizeof *targets; k++)
        if (is_named(targets[k].name, target))
            return targets[k].kind;
    return lapack_known(target) ? CALL_LAPACK : call_has_meaning(target) ? CALL_MEANING : CALL_UNKNOWN;
}

bool custom_call_is_marker(const char *target)
{
    CallKind kind = custom_call_kind(target);
    return kind == CALL_MARKER || kind == CALL_CUT || kind == CALL_JOIN;
}

/* The same values: pinning makes an array a buffer, unpinning a buffer an array. */
static bool same_values(const Shape *a, const Shape *b)
{
    Shape x = *a, y = *b;
    x.buffer = y.buffer = false;
    return shape_compatible(&x, &y);
}

/* A marker's result is its operand, or the tuple of its operands; more than one device would change the shapes. */
static const char *marker_refused(Arena *a, const Inst *i)
{
    if (i->n_operands == 0)
        return "it has no operand";
    const Shape *first = inst_operand(i, 0)->shape;
    bool         same = same_values(i->shape, first);
    if (shape_is_tuple(i->shape) && !shape_is_tuple(first)) {
        same = i->shape->n_elems == i->n_operands;
        for (int32_t k = 0; k < i->n_operands && same; k++)
            same = shape_compatible(i->shape->elems[k], inst_operand(i, k)->shape);
    }
    return same ? NULL : arena_printf(a, "its result %s is not its operand, which it is on one device (--partitions)", shape_brief(a, i->shape));
}

const char *custom_call_refused(Arena *a, const Inst *i)
{
    LapackCall  call;
    const char *why = NULL;
    switch (custom_call_kind(inst_string(i, ATTR_CUSTOM_CALL_TARGET))) {
    case CALL_MARKER:
    case CALL_CUT:
    case CALL_JOIN: return marker_refused(a, i);
    case CALL_LAPACK: return lapack_call(a, i, &call);
    case CALL_MEANING:
        call_meaning(a, i, &why);
        return why;
    case CALL_SEED: /* its shapes are the verifier's business */
    case CALL_UNDEFINED:
    case CALL_UNKNOWN:
        return NULL;
    }
    die("custom_call_refused: a kind without a rule");
}
