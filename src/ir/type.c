#include "ir/type.h"

#include <limits.h>
#include <string.h>

const TypeInfo type_info[TYPE_COUNT] = {
#define TYPE(id, text, bits, bytes, cls, exp, man, bias, specials)                                                              \
    [TYPE_##id] = {text, bits, bytes, CLASS_##cls, exp, man, bias, SPECIALS_##specials},
#include "ir/types.def"
#undef TYPE
};

Type type_component(Type t)
{
    return t == TYPE_C64 ? TYPE_F32 : t == TYPE_C128 ? TYPE_F64 : t;
}

bool type_same_kind(Type a, Type b)
{
    return a == b || (type_is_float(a) && type_is_float(b));
}

/* The exponent from which a finite value no longer fits; below every float's for other types. */
static int overflow_exponent(const TypeInfo *t)
{
    int top = (1 << t->exp) - 1 - t->bias;
    if (t->exp == 0)
        return INT_MIN;
    return t->specials == SPECIALS_IEEE || t->man == 0 ? top : top + 1;
}

/* What counts, the first difference decides: complex or not, range, precision, bits, sign. */
Type type_higher_precision(Type a, Type b)
{
    Type            parts[2] = {type_component(a), type_component(b)};
    const TypeInfo *x = &type_info[parts[0]], *y = &type_info[parts[1]];
    const int       ranks[][2] = {
        {type_is_complex(a), type_is_complex(b)},
        {overflow_exponent(x), overflow_exponent(y)},
        {x->man, y->man},
        {parts[0] == TYPE_PRED ? 1 : x->bits, parts[1] == TYPE_PRED ? 1 : y->bits},
        {type_is_signed_int(a), type_is_signed_int(b)},
    };
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++)
        if (ranks[k][0] != ranks[k][1])
            return ranks[k][0] > ranks[k][1] ? a : b;
    return a;
}

Type type_lookup(const char *name, size_t n)
{
    for (Type t = 0; t < TYPE_COUNT; t++) {
        const char *text = type_info[t].text;
        if (t != TYPE_TUPLE && text[0] == name[0] && strncmp(text, name, n) == 0 && text[n] == '\0')
            return t;
    }
    return TYPE_COUNT;
}
