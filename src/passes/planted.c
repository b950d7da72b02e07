/* planted - wrong passes for the tests of what finds wrong passes.
 *
 * All of them do the same right thing to begin with, so that the wrong rewrite is one of many:
 *
 *   %a = f32[4] add(%x, %y)        =>        %a = f32[4] add(%y, %x)
 *
 * and each does one thing more, which planted.def names. One sweep, in stored order. */
#include "config.h"

#include <signal.h>
#include <unistd.h>

#include "ir/shape.h"
#include "passes/pass.h"
#include "passes/util.h"

/* What replaces i, or NULL. */
typedef Inst *WrongFn(Inst *i);

static bool swap_operands(Inst *i)
{
    if (i->op != OP_ADD || inst_operand(i, 0) == inst_operand(i, 1))
        return false;
    Inst *swapped[] = {inst_operand(i, 1), inst_operand(i, 0)};
    inst_set_operands(i, 2, swapped);
    return true;
}

static bool rewrite(Inst *i, WrongFn *wrong, PassCtx *cx)
{
    Inst *other = wrong(i);
    if (!other && !swap_operands(i))
        return false;
    cx->did = other ? "wrong" : "swap";
    cx->did_at = i->name;
    cx->rewrites++;
    if (other && other != i) {
        inst_replace(i, other);
        inst_delete_dead(i, cx->scratch);
    }
    return true;
}

static bool sweep(Module *m, WrongFn *wrong, PassCtx *cx)
{
    for (Comp *c = m->first; c; c = c->next)
        for (Inst *i = c->first, *next; i && cx->rewrites < cx->limit; i = next) {
            next = i->next;
            rewrite(i, wrong, cx);
        }
    return cx->rewrites > 0;
}

static Inst *binary(Inst *at, Op op, Inst *x, Inst *y)
{
    Inst *operands[] = {x, y};
    return inst_new(at->comp, at, op, at->shape, 2, operands, NULL);
}

static Inst *wrong_value(Inst *i)
{
    return i->op == OP_SUBTRACT ? binary(i, OP_SUBTRACT, inst_operand(i, 1), inst_operand(i, 0)) : NULL;
}

static Inst *wrong_nan(Inst *i)
{
    Inst *x = i->op == OP_NOT ? inst_operand(i, 0) : i;
    if (x->op != OP_COMPARE || x == i || inst_word(x, ATTR_DIRECTION) != CMP_LT)
        return NULL;
    Inst *at_least = binary(i, OP_COMPARE, inst_operand(x, 0), inst_operand(x, 1));
    inst_set_word(at_least, ATTR_DIRECTION, CMP_GE);
    return at_least;
}

static Inst *wrong_zero(Inst *i)
{
    const Literal *l = i->op == OP_ADD ? splat_value(inst_operand(i, 1)) : NULL;
    return l && type_is_float(l->type) && literal_get_f64(l, 0) == 0 ? inst_operand(i, 0) : NULL;
}

static Inst *wrong_type(Inst *i)
{
    bool hit = i->op == OP_MAXIMUM && i->shape->type == TYPE_BF16;
    return hit ? binary(i, OP_MINIMUM, inst_operand(i, 0), inst_operand(i, 1)) : NULL;
}

static Inst *wrong_coarse(Inst *i)
{
    if (i->op != OP_DIVIDE || i->shape->type != TYPE_F32)
        return NULL;
    Inst *x = binary(i, OP_DIVIDE, inst_operand(i, 0), inst_operand(i, 1));
    Inst *coarse = inst_new(i->comp, i, OP_REDUCE_PRECISION, i->shape, 1, &x, NULL);
    inst_set_int(coarse, ATTR_EXPONENT_BITS, 8);
    inst_set_int(coarse, ATTR_MANTISSA_BITS, 18);
    return coarse;
}

/* In a loop's body that counts in element 0 of its state from 0 up: select(counter == 2, x, multiply(x, y)). */
static Inst *wrong_trip(Inst *i)
{
    Comp *c = i->comp;
    Inst *state = c->n_params == 1 ? comp_param(c, 0) : NULL;
    if (i->op != OP_MULTIPLY || i->shape->rank != 0 || !state || !shape_is_tuple(state->shape) || state->shape->elems[0]->type != TYPE_S32)
        return NULL;
    Arena *a = c->module->arena;
    Inst  *counter = inst_new(c, i, OP_GET_TUPLE_ELEMENT, state->shape->elems[0], 1, &state, NULL);
    inst_set_int(counter, ATTR_INDEX, 0);
    Inst *two = inst_constant(c, i, literal_from_s64(TYPE_S32, 2), NULL);
    Inst *both[] = {counter, two};
    Inst *third = inst_new(c, i, OP_COMPARE, shape_array(a, TYPE_PRED, 0, NULL), 2, both, NULL);
    inst_set_word(third, ATTR_DIRECTION, CMP_EQ);
    Inst *right = binary(i, OP_MULTIPLY, inst_operand(i, 0), inst_operand(i, 1));
    Inst *choice[] = {third, inst_operand(i, 0), right};
    return inst_new(c, i, OP_SELECT, i->shape, 3, choice, NULL);
}

static Inst *wrong_shape(Inst *i)
{
    if (i->op != OP_ABS)
        return NULL;
    int64_t one = 1;
    Inst   *x = inst_operand(i, 0);
    return inst_new(i->comp, i, OP_ABS, shape_array(i->comp->module->arena, i->shape->type, i->shape->rank ? 0 : 1, &one), 1, &x, NULL);
}

static Inst *wrong_die(Inst *i)
{
    if (i->op == OP_TANH)
        die("tanh %s was met", i->name);
    return NULL;
}

static Inst *wrong_crash(Inst *i)
{
    if (i->op == OP_TANH)
        raise(SIGSEGV); /* as a pointer to nowhere does; sanitizers would report that one themselves and end the program in their own way */
    return NULL;
}

static Inst *wrong_endless(Inst *i)
{
    const Inst *loop = i->comp->n_params == 1 && i == i->comp->root && i->op == OP_COMPARE && i->shape->rank == 0 ? i : NULL;
    if (!loop || inst_word(i, ATTR_DIRECTION) != CMP_LT || !type_is_int(inst_operand(i, 0)->shape->type))
        return NULL;
    Inst *always = binary(i, OP_COMPARE, inst_operand(i, 0), inst_operand(i, 0));
    inst_set_word(always, ATTR_DIRECTION, CMP_EQ);
    return always;
}

static Inst *wrong_hang(Inst *i)
{
    while (i->op == OP_TANH)
        pause(); /* does no work, so that a test of it takes none */
    return NULL;
}

/* The chain of frames cannot become a loop: each has its own block, which the next one reads. */
static int64_t fill_stack(volatile int64_t *above)
{
    volatile int64_t block[512];
    block[0] = above ? *above + 1 : 0;
    return block[0] < 0 ? 0 : fill_stack(block) + block[0];
}

static Inst *wrong_nothing(Inst *i)
{
    (void)i;
    return NULL;
}

static Inst *wrong_deep(Inst *i)
{
    return i->op == OP_TANH && fill_stack(NULL) == 0 ? i : NULL;
}

bool pass_planted_value(Module *m, PassCtx *cx) { return sweep(m, wrong_value, cx); }
bool pass_planted_nan(Module *m, PassCtx *cx) { return sweep(m, wrong_nan, cx); }
bool pass_planted_zero(Module *m, PassCtx *cx) { return sweep(m, wrong_zero, cx); }
bool pass_planted_type(Module *m, PassCtx *cx) { return sweep(m, wrong_type, cx); }
bool pass_planted_coarse(Module *m, PassCtx *cx) { return sweep(m, wrong_coarse, cx); }
bool pass_planted_trip(Module *m, PassCtx *cx) { return sweep(m, wrong_trip, cx); }
bool pass_planted_shape(Module *m, PassCtx *cx) { return sweep(m, wrong_shape, cx); }
bool pass_planted_die(Module *m, PassCtx *cx) { return sweep(m, wrong_die, cx); }
bool pass_planted_crash(Module *m, PassCtx *cx) { return sweep(m, wrong_crash, cx); }
bool pass_planted_endless(Module *m, PassCtx *cx) { return sweep(m, wrong_endless, cx); }
bool pass_planted_hang(Module *m, PassCtx *cx) { return sweep(m, wrong_hang, cx); }
bool pass_planted_deep(Module *m, PassCtx *cx) { return sweep(m, wrong_deep, cx); }
bool pass_planted_restless(Module *m, PassCtx *cx) { return sweep(m, wrong_nothing, cx); }

/* Nothing is wrong but the answer. */
bool pass_planted_lie(Module *m, PassCtx *cx)
{
    sweep(m, wrong_nothing, cx);
    cx->rewrites = 0;
    return false;
}

bool pass_planted_boast(Module *m, PassCtx *cx)
{
    (void)m;
    cx->rewrites = 1;
    return true;
}
