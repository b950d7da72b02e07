/* The attributes an opcode has of its own, called computations included: op_attrs.def gives their order and when each is
 * printed, the attribute's class how. Source: reference text 5.3, 5.4, 5.6. */
#include <string.h>

#include "ir/numeric.h"
#include "text/print_rare.h"
#include "text/print_value.h"

static void print_words(Buf *b, Ints x)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < x.n; k++) {
        buf_puts(b, k > 0 ? "," : "");
        buf_puts(b, attr_words[x.v[k]].text);
    }
    buf_putc(b, '}');
}

static void print_lists(Buf *b, const IntsList *x)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < x->n; k++) {
        buf_puts(b, k > 0 ? "," : "");
        print_ints(b, x->v[k]);
    }
    buf_putc(b, '}');
}

static void print_shapes(Buf *b, const ShapeList *x)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < x->n; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        shape_print(b, x->v[k], true);
    }
    buf_putc(b, '}');
}

/* Strides are written for all dimensions or for none. */
static void print_slices(Buf *b, const Slices *x)
{
    bool strides = false;
    for (int32_t k = 0; k < x->n; k++)
        strides |= x->v[k].stride != 1;
    buf_putc(b, '{');
    for (int32_t k = 0; k < x->n; k++) {
        const SliceRange *r = &x->v[k];
        buf_puts(b, k > 0 ? ", [" : "["), buf_int(b, r->start);
        buf_putc(b, ':'), buf_int(b, r->limit);
        if (strides)
            buf_putc(b, ':'), buf_int(b, r->stride);
        buf_putc(b, ']');
    }
    buf_putc(b, '}');
}

/* So is interior padding. */
static void print_padding(Buf *b, const Padding *x)
{
    bool interior = false;
    for (int32_t k = 0; k < x->n; k++)
        interior |= x->v[k].interior != 0;
    for (int32_t k = 0; k < x->n; k++) {
        const PadDim *d = &x->v[k];
        buf_puts(b, k > 0 ? "x" : ""), buf_int(b, d->lo);
        buf_putc(b, '_'), buf_int(b, d->hi);
        if (interior)
            buf_putc(b, '_'), buf_int(b, d->interior);
    }
}

/* A name, or on the next line the body. */
static void print_callee(Printer *p, const Comp *c)
{
    if (p->o->callees == CALLEES_NAMED) {
        print_name(p, c->name);
    } else {
        buf_putc(p->b, '\n');
        print_callee_body(p, c);
    }
}

static void print_callees(Printer *p, const Inst *i)
{
    bool named = p->o->callees == CALLEES_NAMED;
    buf_putc(p->b, '{');
    for (int32_t k = 0; k < i->n_callees; k++) {
        buf_puts(p->b, k == 0 ? "" : named ? ", " : ",");
        print_callee(p, i->callees[k]);
    }
    buf_puts(p->b, named ? "}" : "\n}");
}

/* Which of the callees an attribute names; -1: none of them. */
static int32_t callee_index(const Inst *i, AttrId id)
{
    bool    second = id == ATTR_CONDITION || id == ATTR_SCATTER || id == ATTR_FALSE_COMPUTATION;
    int32_t k = second ? 1 : 0;
    return k < i->n_callees ? k : -1;
}

static bool branches_on_pred(const Inst *i)
{
    return i->n_operands > 0 && inst_operand(i, 0)->shape->type == TYPE_PRED;
}

static bool has_own_precision(Ints words)
{
    for (int32_t k = 0; k < words.n; k++)
        if (words.v[k] != PRECISION_DEFAULT)
            return true;
    return false;
}

static bool is_nonempty(const Inst *i, const Attr *x)
{
    switch (attr_info[x->id].cls) {
    case ATTR_CLASS_INTS:
    case ATTR_CLASS_BOOLS: return x->value.ints.n > 0;
    case ATTR_CLASS_LISTS: return x->value.lists->n > 0;
    case ATTR_CLASS_INTS_OR_LISTS: return (x->nested ? x->value.lists->n : x->value.ints.n) > 0;
    case ATTR_CLASS_WINDOW: return x->value.window->n > 0;
    case ATTR_CLASS_ALIASING: return x->value.aliasing->n > 0;
    default: die("%s: attribute %s is no list", i->name, attr_info[x->id].text);
    }
}

static bool default_order_is_total(const Inst *compare)
{
    Type t = inst_operand(compare, 0)->shape->type;
    return !type_is_float(t) && !type_is_complex(t);
}

/* Rows marked SPECIAL. x may be NULL. */
static bool special_is_printed(const Inst *i, AttrId id, const Attr *x)
{
    switch (id) {
    case ATTR_DIMENSIONS: return i->op == OP_MAP;
    case ATTR_ORDER: return compare_is_total(i) != default_order_is_total(i);
    case ATTR_INFERRED_DIMENSION: return x != NULL && x->value.i != -1;
    case ATTR_OPERAND_PRECISION: return x != NULL && has_own_precision(x->value.ints);
    case ATTR_SPARSITY_CONFIG: return x != NULL && (x->value.sparsity->lhs.given || x->value.sparsity->rhs.given);
    case ATTR_BLOCK_SCALING_CONFIG: return x != NULL && (x->value.scaling->lhs.given || x->value.scaling->rhs.given);
    case ATTR_ASYNC_EXECUTION_THREAD: {
        const char *thread = x != NULL ? x->value.s : NULL;
        return thread != NULL && !(intern_len(thread) == 4 && memcmp(thread, "main", 4) == 0);
    }
    default: die("attribute %s has no rule of its own", attr_info[id].text);
    }
}

static bool is_printed(const Inst *i, const OpAttr *row, const Attr *x)
{
    switch (attr_info[row->attr].cls) {
    case ATTR_CLASS_COMP:
        if (i->op == OP_CONDITIONAL && !branches_on_pred(i))
            return false;
        return row->print != PRINT_NEVER && callee_index(i, row->attr) >= 0;
    case ATTR_CLASS_COMPS: return i->n_callees > 0 && (i->op != OP_CONDITIONAL || !branches_on_pred(i));
    default: break;
    }
    switch (row->print) {
    case PRINT_ALWAYS: return row->attr != ATTR_DOMAIN || x != NULL;
    case PRINT_GIVEN: return x != NULL;
    case PRINT_TRUE: return x != NULL && x->value.i != 0;
    case PRINT_NONEMPTY: return x != NULL && is_nonempty(i, x);
    case PRINT_NOT_ONE: return x != NULL && x->value.i != 1;
    case PRINT_NOT_FIRST: return x != NULL && x->value.i != (int64_t)attr_word_default(row->attr);
    case PRINT_NONZERO:
        return x != NULL && (attr_info[row->attr].cls == ATTR_CLASS_STRING ? intern_len(x->value.s) > 0 : x->value.i != 0);
    case PRINT_NEVER: return false;
    case PRINT_SPECIAL: return special_is_printed(i, row->attr, x);
    }
    die("%s: no rule prints %s", op_name(i->op), attr_info[row->attr].text);
}

/* What is written for an attribute that was not given, or whose value follows from the instruction. */
static Attr stand_in(Arena *a, const Inst *i, AttrId id)
{
    Attr x = {.id = id};
    switch (id) {
    case ATTR_DIMENSIONS: x.value.ints = i->op == OP_MAP ? ints_iota(a, i->shape->rank) : (Ints){NULL, 0}; break;
    case ATTR_ORDER: x.value.i = compare_is_total(i) ? ORDER_TOTAL : ORDER_PARTIAL; break;
    case ATTR_LARGEST: x.value.i = true; break;
    case ATTR_IS_STABLE: x.value.i = i->op == OP_TOPK; break;
    case ATTR_OUTFEED_SHAPE: x.value.shape = inst_operand(i, 0)->shape; break;
    default: break; /* zero, false, the empty list */
    }
    return x;
}

/* As lists when that is asked for and they are not too many. */
static void print_groups(Printer *p, const ReplicaGroups *g)
{
    bool          listed = p->o->listed_groups && g->version != GROUPS_LISTS;
    ReplicaGroups lists = {.version = GROUPS_LISTS};
    if (listed)
        lists.lists = replica_groups_lists(p->arena, g, &listed);
    print_replica_groups(p->b, listed ? &lists : g);
}

static void print_value(Printer *p, const Inst *i, const Attr *x)
{
    static const IntsList none = {0};
    Buf                  *b = p->b;
    const AttrValue      *v = &x->value;
    switch (attr_info[x->id].cls) {
    case ATTR_CLASS_INT: buf_int(b, v->i); break;
    case ATTR_CLASS_NUMBER: number_print_g(b, 6, (double)(float)v->f); break;
    case ATTR_CLASS_BOOL: buf_puts(b, v->i != 0 ? "true" : "false"); break;
    case ATTR_CLASS_WORD: buf_puts(b, attr_words[v->i].text); break;
    case ATTR_CLASS_STRING:
        if (x->id == ATTR_ASYNC_EXECUTION_THREAD)
            print_thread(b, v->s);
        else
            print_quoted(b, v->s);
        break;
    case ATTR_CLASS_RAW: print_raw_or_quoted(b, v->s); break;
    case ATTR_CLASS_INTS: print_ints(b, v->ints); break;
    case ATTR_CLASS_LISTS: print_lists(b, v->lists != NULL ? v->lists : &none); break;
    case ATTR_CLASS_INTS_OR_LISTS:
        if (x->nested)
            print_lists(b, v->lists);
        else
            print_ints(b, v->ints);
        break;
    case ATTR_CLASS_BOOLS: print_bools(b, v->ints); break;
    case ATTR_CLASS_SLICES: print_slices(b, v->slices); break;
    case ATTR_CLASS_PADDING: print_padding(b, v->padding); break;
    case ATTR_CLASS_WINDOW: print_window(b, v->window); break;
    case ATTR_CLASS_DIM_LABELS: print_dim_labels(b, v->dim_labels); break;
    case ATTR_CLASS_PRECISION: print_words(b, v->ints); break;
    case ATTR_CLASS_SHAPE: shape_print(b, v->shape, true); break;
    case ATTR_CLASS_SHAPES: print_shapes(b, v->shapes); break;
    case ATTR_CLASS_LITERAL: literal_print_typed(b, v->literal->shape, v->literal->value, i->comp->module->changed); break;
    case ATTR_CLASS_ALIASING: print_aliasing(b, v->aliasing); break;
    case ATTR_CLASS_GROUPS:
        if (v->groups != NULL)
            print_groups(p, v->groups);
        else
            buf_puts(b, "{}");
        break;
    case ATTR_CLASS_SPARSITY: print_sparsity(b, v->sparsity); break;
    case ATTR_CLASS_SCALING: print_scaling(b, v->scaling); break;
    case ATTR_CLASS_DOMAIN: print_domain(b, v->domain); break;
    case ATTR_CLASS_COMP: print_callee(p, i->callees[callee_index(i, x->id)]); break;
    case ATTR_CLASS_COMPS: print_callees(p, i); break;
    case ATTR_CLASS_SHARDING:
    case ATTR_CLASS_KEY_VALUES:
    case ATTR_CLASS_STATISTICS:
    case ATTR_CLASS_ACCURACY:
    case ATTR_CLASS_ORIGIN:
    case ATTR_CLASS_METADATA:
    case ATTR_CLASS_INSTS: die("attribute %s belongs to no opcode", attr_info[x->id].text);
    }
}

static bool calls_in_turn(Op op)
{
    return op == OP_CALL || op == OP_CONDITIONAL || op == OP_WHILE;
}

/* Called computations and everything else have options of their own. */
static bool is_wanted(const Printer *p, const Inst *i, AttrId id)
{
    AttrClass cls = attr_info[id].cls;
    if (cls == ATTR_CLASS_COMP || cls == ATTR_CLASS_COMPS || id == ATTR_IS_COMPOSITE)
        return p->o->callees != CALLEES_LEFT_OUT && (p->o->callees != CALLEES_PARALLEL || !calls_in_turn(i->op));
    if (id == ATTR_INFEED_CONFIG || id == ATTR_OUTFEED_CONFIG)
        return p->o->extra_attributes && p->o->feed_config;
    return p->o->extra_attributes;
}

/* XLA's printer of bodies does not know that these two have to_apply. */
static const char *key_of(const Printer *p, const Inst *i, AttrId id)
{
    bool forgotten = id == ATTR_TO_APPLY && (i->op == OP_REDUCE_SCATTER || i->op == OP_SCAN);
    return attr_info[forgotten && p->o->callees != CALLEES_NAMED ? ATTR_CALLS : id].text;
}

static void print_row(Printer *p, const Inst *i, const OpAttr *row)
{
    const Attr *x = inst_attr(i, row->attr);
    if (!is_wanted(p, i, row->attr) || !is_printed(i, row, x))
        return;
    buf_puts(p->b, ", ");
    buf_puts(p->b, key_of(p, i, row->attr));
    buf_putc(p->b, '=');
    bool follows = x == NULL || (i->op == OP_MAP && row->attr == ATTR_DIMENSIONS);
    Attr own = follows ? stand_in(p->arena, i, row->attr) : *x;
    print_value(p, i, &own);
}

void print_own_attrs(Printer *p, const Inst *i)
{
    int           n;
    const OpAttr *rows = op_attrs(i->op, &n);
    for (int k = 0; k < n; k++)
        print_row(p, i, &rows[k]);
}

void print_own_attr(Printer *p, const Inst *i, AttrId id)
{
    int           n;
    const OpAttr *rows = op_attrs(i->op, &n);
    for (int k = 0; k < n; k++)
        if (rows[k].attr == id)
            print_row(p, i, &rows[k]);
}
