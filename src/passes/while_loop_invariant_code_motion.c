/* while-loop-invariant-code-motion - what each trip computes again is computed once, before the loop.
 *
 *   %w = while(tuple(0, a, x)):  (i, a, x) = (i + 1, a, x * exp(a))
 *         =>
 *   %e = exponential(a)
 *   %w = while(tuple(0, a, x, %e)):  (i, a, x, e) = (i + 1, a, x * e, e)
 *
 * Each value that is moved is kept in memory for the whole loop and read in each trip. That pays for what is dear (reductions, contractions,
 * sorts, transcendental functions, divisions), for elementwise operations whose result is smaller than what they alone read, and for those
 * that a contraction, a scatter or a sort reads, which cannot take them in; on a CPU also for columns, of which loops could read no vectors. Broadcasts, slices, reshapes and other cheap instructions are
 * moved only for the sake of these, and stay where others read them. Not moved: effects, loops and branches, which need not end or run, and
 * anything out of a loop of at most one trip. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/loops.h"
#include "passes/pass.h"
#include "passes/util.h"
#include "passes/while.h"

enum Mark { VARIES, STATE, SAME, MOVED }; /* of instructions of a body: STATE is an element that no trip changes */

typedef VEC(Inst *) Insts;

/* ---- what may be moved ---- */

static bool may_move(const Inst *i)
{
    switch (i->op) {
    case OP_WHILE: case OP_CONDITIONAL: case OP_CALL: case OP_FUSION: case OP_CUSTOM_CALL: case OP_TUPLE: case OP_GET_TUPLE_ELEMENT:
    case OP_PARAMETER:
        return false;
    default:
        return inst_is_value(i) && inst_is_free(i) && shape_is_array(i->shape);
    }
}

static enum Mark mark_of(const Inst *w, const Inst *i)
{
    if (i->op == OP_GET_TUPLE_ELEMENT && inst_operand(i, 0)->op == OP_PARAMETER) {
        int64_t     k = inst_int(i, ATTR_INDEX, 0);
        const Inst *init = while_init(w, k);
        return while_keeps(w, k) && init && shape_equal(init->shape, i->shape) ? STATE : VARIES;
    }
    if (!may_move(i))
        return VARIES;
    for (int32_t o = 0; o < i->n_operands; o++)
        if (inst_operand(i, o)->mark == VARIES)
            return VARIES;
    return SAME;
}

/* ---- what pays ---- */

/* Whether a trip reads less when it reads the result, and no longer the state that only i needs. */
static bool reads_less(const Inst *i)
{
    int64_t saved = 0;
    for (int32_t o = 0; o < i->n_operands; o++) {
        const Inst *x = inst_operand(i, o);
        if (x->op == OP_GET_TUPLE_ELEMENT && inst_user(x) == i)
            saved = cost_add(saved, shape_bytes(x->shape));
    }
    return shape_count(i->shape) > 1 && saved > shape_bytes(i->shape);
}

/* Reads its operands from memory, whatever makes them. */
static bool takes_nothing_in(Op op)
{
    switch (op) {
    case OP_DOT: case OP_CONVOLUTION: case OP_SCATTER: case OP_SORT: case OP_FFT: case OP_CHOLESKY: case OP_TRIANGULAR_SOLVE: return true;
    default: return false;
    }
}

static bool must_be_in_memory(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next) {
        const Inst *user = u->user->op == OP_RESHAPE ? inst_user(u->user) : u->user;
        if (user && takes_nothing_in(user->op))
            return true;
    }
    return false;
}

/* Columns, or a few columns side by side: loops over them read a few bytes of each row, and are no vectors. */
static bool is_columns(const Inst *i)
{
    enum { TOGETHER = 32, FEWEST = 32 }; /* bytes, elements */
    const Shape *x = i->op == OP_SLICE ? inst_operand(i, 0)->shape : NULL;
    if (!x || x->layout || i->shape->layout || shape_count(i->shape) < FEWEST)
        return false;
    int64_t bytes = type_bytes(x->type);
    int32_t d = x->rank - 1;
    for (; d > 0 && i->shape->dims[d] == x->dims[d]; d--)
        bytes *= x->dims[d];
    return d > 0 && bytes * i->shape->dims[d] < TOGETHER && shape_count(i->shape) > i->shape->dims[d];
}

static bool is_read_by_elements(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next) {
        const Inst *user = u->user->op == OP_RESHAPE ? inst_user(u->user) : u->user;
        if (user && op_has(user->op, F_ELEMENTWISE))
            return true;
    }
    return false;
}

static bool is_worth_it(const Flow *f, const Inst *i)
{
    if (f->device->shared == 0 && is_columns(i) && is_read_by_elements(i))
        return true;
    if (i->op == OP_CONSTANT || i->op == OP_IOTA || i->op == OP_BROADCAST)
        return false;
    if (inst_is_dear(i))
        return true;
    if (op_has(i->op, F_ELEMENTWISE))
        return reads_less(i) || (shape_count(i->shape) > 1 && must_be_in_memory(i));
    return takes_nothing_in(i->op) || op_has(i->op, F_CALLS);
}

/* ---- moving ---- */

static void mark_moved(const Flow *f, const Comp *body)
{
    for (Inst *i = body->last; i; i = i->prev) {
        if (i->mark == SAME && i->n_uses && is_worth_it(f, i))
            i->mark = MOVED;
        for (int32_t o = 0; i->mark == MOVED && o < i->n_operands; o++)
            if (inst_operand(i, o)->mark == SAME)
                inst_operand(i, o)->mark = MOVED;
    }
}

/* Those moved ones that are still read in the loop. A cheap one among them is not: it is computed in the loop, too; aux says so. */
static void find_read(const Flow *f, const Comp *body, Insts *read)
{
    for (Inst *i = body->last; i; i = i->prev) {
        bool stays = body->root == i;
        for (const Use *u = i->uses; u && !stays; u = u->next)
            stays = u->user->aux != NULL;
        i->aux = i->mark != MOVED || (stays && !is_worth_it(f, i)) ? i : NULL;
        if (i->mark == MOVED && stays && is_worth_it(f, i))
            vec_push(f->scratch, read, i);
    }
}

static Insts find_moved(Flow *f, const Inst *w)
{
    Insts read = {0};
    for (Inst *i = while_body(w)->first; i; i = i->next)
        i->mark = mark_of(w, i);
    mark_moved(f, while_body(w));
    find_read(f, while_body(w), &read);
    return read;
}

/* The value of i before the loop: aux of what has been copied. */
static Inst *before_loop(const Inst *w, const Inst *i)
{
    return i->mark == STATE ? while_init(w, inst_int(i, ATTR_INDEX, 0)) : i->aux;
}

static void copy_moved(Flow *f, Inst *w)
{
    for (Inst *i = while_body(w)->first; i; i = i->next) {
        if (i->mark != MOVED)
            continue;
        Inst **operands = ARENA_ARRAY(f->scratch, Inst *, i->n_operands);
        for (int32_t o = 0; o < i->n_operands; o++)
            operands[o] = before_loop(w, inst_operand(i, o));
        i->aux = inst_clone_into(w->comp, w, i, i->n_operands, operands);
    }
}

static void read_state_instead(Inst *i, Inst *element)
{
    for (Use *u = i->uses, *next; u; u = next) {
        next = u->next;
        inst_set_operand(u->user, u->index, element);
    }
}

static int64_t move_out(Flow *f, Inst *w)
{
    if (!while_could_be_edited(f, w) || (uint64_t)while_trip_count(w) <= 1)
        return 0;
    Insts moved = find_moved(f, w);
    if (!moved.n || !while_editable(f, w))
        return 0;
    moved = find_moved(f, w); /* the body may be a copy now */
    copy_moved(f, w);
    Inst **init = ARENA_ARRAY(f->scratch, Inst *, moved.n);
    for (int32_t k = 0; k < moved.n; k++)
        init[k] = moved.v[k]->aux;
    int32_t first = while_append(f, w, moved.n, init);
    for (int32_t k = 0; k < moved.n; k++)
        read_state_instead(moved.v[k], inst_operand(while_body(w)->root, first + k));
    comp_sweep_dead(while_body(w), INT64_MAX);
    return moved.n;
}

bool pass_while_loop_invariant_code_motion(Module *m, PassCtx *cx)
{
    return while_pass_moves_out(m, cx, move_out, "values that no trip changes");
}
