/* Lists that the grammar builds from left to right. They live in p->tmp; NULL stands for a list that has not begun. */
#include "config.h"

#include "text/parse_int.h"

#define APPEND(T, v, x)                                                                                                         \
    do {                                                                                                                        \
        if (!(v))                                                                                                               \
            (v) = ARENA_NEW(p->tmp, T);                                                                                         \
        vec_push(p->tmp, (v), (x));                                                                                             \
        return (v);                                                                                                             \
    } while (0)

IntVec *int_list(Parser *p, IntVec *v, int64_t x)
{
    APPEND(IntVec, v, x);
}

IntVec *int_list_empty(Parser *p)
{
    return ARENA_NEW(p->tmp, IntVec);
}

Ints list_ints(Parser *p, const IntVec *v)
{
    return v ? ints_copy(p->a, (Ints){v->v, v->n}) : (Ints){NULL, 0};
}

IntsVec *lists_add(Parser *p, IntsVec *v, Ints x)
{
    APPEND(IntsVec, v, x);
}

IntsList list_lists(Parser *p, const IntsVec *v)
{
    return v ? (IntsList){arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v), v->n} : (IntsList){NULL, 0};
}

LocNames *loc_names(Parser *p, LocNames *v, const char *s, Loc loc)
{
    APPEND(LocNames, v, ((Name){s, loc}));
}

CompVec *comp_list(Parser *p, CompVec *v, Comp *c)
{
    if (!v) {
        v = p->spare_comps;
        p->spare_comps = NULL;
    }
    APPEND(CompVec, v, c);
}

ShapeVec *shape_list(Parser *p, ShapeVec *v, const Shape *s)
{
    APPEND(ShapeVec, v, s);
}

const ShapeList *list_shapes(Parser *p, const ShapeVec *v)
{
    ShapeList *l = ARENA_NEW(p->a, ShapeList);
    if (v)
        *l = (ShapeList){v->n, arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v)};
    return l;
}

MetaVec *meta_list(Parser *p, MetaVec *v, const Metadata *x)
{
    APPEND(MetaVec, v, x);
}

StatVec *stat_add(Parser *p, StatVec *v, Stat x)
{
    APPEND(StatVec, v, x);
}

PairVec *pair_add(Parser *p, PairVec *v, const char *key, Loc loc, const IntVec *value)
{
    APPEND(PairVec, v, ((Pair){{key, loc}, value}));
}

SideVec *side_add(Parser *p, SideVec *v, const char *name, Loc loc, const PairVec *items)
{
    APPEND(SideVec, v, ((Side){{name, loc}, items}));
}

AxisVec *axis_push(Parser *p, AxisVec *v, AxisDraft x)
{
    APPEND(AxisVec, v, x);
}

ShardVec *shard_list(Parser *p, ShardVec *v, const Sharding *s)
{
    APPEND(ShardVec, v, s);
}

OriginVec *origin_push(Parser *p, OriginVec *v)
{
    APPEND(OriginVec, v, p->origin_item);
}

NamedDimVec *named_dim_push(Parser *p, NamedDimVec *v)
{
    APPEND(NamedDimVec, v, p->named_dim);
}

DebugVec *debug_add(Parser *p, DebugVec *v, const DebugAttr *x)
{
    APPEND(DebugVec, v, *x);
}

TypedVec *typed_push(Parser *p, TypedVec *v, AttrLiteral x)
{
    APPEND(TypedVec, v, x);
}

AliasVec *operand_alias(Parser *p, AliasVec *v, Ints output, int64_t operand, Ints index)
{
    APPEND(AliasVec, v, ((OperandAlias){output, operand, index}));
}
