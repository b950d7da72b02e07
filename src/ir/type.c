#include "ir/type.h"

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

/* The exponent from which a finite value no longer fits. */
static int overflow_exponent(const TypeInfo *t)
{
    int top = (1 << t->exp) - 1 - t->bias;
    return t->specials == SPECIALS_IEEE ? top : top + 1;
}

Type type_higher_precision(Type a, Type b)
{
    const TypeInfo *x = &type_info[a], *y = &type_info[b];
    if (!type_is_float(a) || !type_is_float(b))
        return a;
    if (overflow_exponent(x) != overflow_exponent(y))
        return overflow_exponent(x) > overflow_exponent(y) ? a : b;
    if (x->man != y->man)
        return x->man > y->man ? a : b;
    return y->bits > x->bits ? b : a;
}

Type type_lookup(const char *name, size_t n)
{
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (t != TYPE_TUPLE && strlen(type_info[t].text) == n && memcmp(type_info[t].text, name, n) == 0)
            return t;
    return TYPE_COUNT;
}
