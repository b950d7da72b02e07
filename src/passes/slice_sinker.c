/* slice-sinker - the same arithmetic on all parts of arrays is arithmetic on the arrays.
 *
 *   %a = f32[4] slice(%x), slice={[0:4]}        %b = f32[4] slice(%y), slice={[0:4]}        %s = f32[4] add(%a, %b)
 *   %c = f32[4] slice(%x), slice={[4:8]}        %d = f32[4] slice(%y), slice={[4:8]}        %t = f32[4] add(%c, %d)
 *     =>
 *   %w = f32[8] add(%x, %y)                     %s = f32[4] slice(%w), slice={[0:4]}        %t = f32[4] slice(%w), slice={[4:8]}
 *
 * When the parts together have at least as many elements as the whole, so that no more is computed than before. All operands are slices with one
 * and the same range, of arrays with the same sizes. */
#include "config.h"

#include "passes/pass.h"
#include "passes/util.h"
#include "support/vec.h"

enum { MAX_LOOKED_AT = 1024 }; /* parts of an array that are compared with one of them */

typedef VEC(Inst *) Insts;

static const Slices *range_of(const Inst *slice)
{
    return inst_attr(slice, ATTR_SLICE)->value.slices;
}

static bool same_range(const Inst *a, const Inst *b)
{
    const Slices *x = range_of(a), *y = range_of(b);
    for (int32_t k = 0; k < x->n; k++)
        if (x->v[k].start != y->v[k].start || x->v[k].limit != y->v[k].limit || x->v[k].stride != y->v[k].stride)
            return false;
    return x->n == y->n;
}

/* Operands are slices of one range, and there is more than that range. */
static bool is_on_parts(const Inst *i)
{
    if (!op_has(i->op, F_ELEMENTWISE) || i->n_operands == 0 || i->n_callees || !inst_is_free(i) || i->shape->layout)
        return false;
    const Inst *first = inst_operand(i, 0);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *x = inst_operand(i, k);
        if (x->op != OP_SLICE || x->shape->layout || !inst_is_free(x) || !same_range(x, first) ||
            !shape_same_dims(inst_operand(x, 0)->shape, inst_operand(first, 0)->shape) || inst_operand(x, 0)->shape->layout)
            return false;
    }
    return shape_count(i->shape) > 0 && shape_count(i->shape) < shape_count(inst_operand(first, 0)->shape);
}

static Inst *source(const Inst *i, int32_t k)
{
    return inst_operand(inst_operand(i, k), 0);
}

static bool same_work(const Inst *a, const Inst *b)
{
    if (a->op != b->op || a->n_operands != b->n_operands || a->shape->type != b->shape->type || !inst_attrs_equal(a, b))
        return false;
    for (int32_t k = 0; k < a->n_operands; k++)
        if (source(a, k) != source(b, k))
            return false;
    return true;
}

/* What does the same work as i on parts of the same arrays, i too; none is there twice, none was taken before (aux). */
static Insts siblings(const Inst *i, Arena *scratch, int64_t *elements)
{
    Insts all = {0};
    int   left = MAX_LOOKED_AT;
    *elements = 0;
    for (const Use *u = source(i, 0)->uses; u; u = u->next)
        for (const Use *v = u->user->op == OP_SLICE && u->user->comp == i->comp ? u->user->uses : NULL; v && left-- > 0; v = v->next) {
            if (v->index != 0 || v->user->aux || !is_on_parts(v->user) || !same_work(i, v->user))
                continue;
            vec_push(scratch, &all, v->user);
            v->user->aux = v->user;
            *elements += shape_count(v->user->shape);
        }
    return all;
}

/* The last of the sources in the computation, by mark. */
static Inst *last_source(const Inst *i)
{
    Inst *last = source(i, 0);
    for (int32_t k = 1; k < i->n_operands; k++)
        last = source(i, k)->mark > last->mark ? source(i, k) : last;
    return last;
}

static void join(const Insts *parts, Arena *scratch)
{
    const Inst *first = parts->v[0];
    Arena      *a = first->comp->module->arena;
    Inst      **operands = ARENA_ARRAY(scratch, Inst *, first->n_operands);
    for (int32_t k = 0; k < first->n_operands; k++)
        operands[k] = source(first, k);
    const Shape *whole = shape_with_type(a, operands[0]->shape, first->shape->type);
    Inst        *joined = inst_new(first->comp, last_source(first)->next, first->op, whole, first->n_operands, operands, NULL);
    inst_take_attrs(joined, first);
    joined->meta = first->meta;
    joined->loc = first->loc;
    joined->mark = last_source(first)->mark;
    for (int32_t k = 0; k < parts->n; k++) {
        Inst *part = parts->v[k], *slice = inst_new(part->comp, part, OP_SLICE, part->shape, 1, &joined, NULL);
        inst_set_attr(slice, *inst_attr(inst_operand(part, 0), ATTR_SLICE));
        slice->meta = part->meta;
        slice->loc = part->loc;
        slice->mark = part->mark;
        inst_replace(part, slice);
        inst_delete_dead(part, scratch);
    }
}

static void sink_in(Comp *c, PassCtx *cx)
{
    VEC(Insts) groups = {0};
    int64_t place = 0;
    for (Inst *i = c->first; i; i = i->next) {
        i->mark = place++;
        i->aux = NULL;
    }
    for (Inst *i = c->first; i; i = i->next) {
        int64_t elements;
        if (i->aux || !is_on_parts(i))
            continue;
        Insts parts = siblings(i, cx->scratch, &elements);
        if (parts.n > 1 && elements >= shape_count(source(i, 0)->shape))
            vec_push(cx->scratch, &groups, parts);
    }
    for (int32_t k = 0; k < groups.n && cx->rewrites < cx->limit; k++) {
        cx->did_at = groups.v[k].v[0]->name;
        join(&groups.v[k], cx->scratch);
        cx->rewrites++;
    }
}

bool pass_slice_sinker(Module *m, PassCtx *cx)
{
    comps_mark_uses(m);
    for (Comp *c = m->first; c; c = c->next)
        if (!(c->mark & (COMP_FUSED | COMP_OPAQUE)))
            sink_in(c, cx);
    return cx->rewrites > 0;
}
