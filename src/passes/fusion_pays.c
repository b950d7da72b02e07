/* Whether a kernel's instruction is computed where it is asked for or stored: times of the device (analysis/device.h), and rows that the code keeps. */
#include "config.h"

#include "analysis/columns.h"
#include "analysis/cost.h"
#include "passes/fusion.h"
#include "passes/util.h"

/* Bytes that computing i reads. A broadcast will be fused, so its operand counts. */
static double bytes_read(const Inst *i)
{
    double sum = 0;
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Inst *o = inst_operand(i, k);
        if (o->op == OP_BROADCAST)
            o = inst_operand(o, 0);
        sum += fusion_count(o) * type_bytes(o->shape->type);
    }
    return sum;
}

/* The largest of several values is subtracted before exp. When a value is computed twice, once contracted to a fused multiply-add
 * and once not, the difference could be positive; a maximum therefore reads what is stored. */
bool fusion_feeds_maximum(const Inst *i)
{
    for (const Use *u = i->uses; u; u = u->next) {
        const Inst *v = u->user;
        Op          op = v->op == OP_REDUCE ? comp_binary_op(inst_callee(v, 0)) : OP_ADD;
        if ((op != OP_ADD && op != OP_MULTIPLY) || (v->op != OP_REDUCE && node(v)->fused && node(v)->chosen))
            return true;
    }
    return false;
}

static bool one_row_at_a_time(const Inst *i)
{
    const Node *n = node(i);
    return i->n_operands == 2 && n->n_contexts == 1 && n->contexts[0]->nested && n->contexts[0]->count == fusion_count(i) &&
           fusion_reduces_rows(i, n->contexts[0]->group);
}

/* Rows that the loops of one group go through one by one, each all of its elements of i. 0: i is asked for in another way. */
static double rows_of(const Inst *i)
{
    const Node *n = node(i);
    double      rows = fusion_count(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Context *c = n->contexts[k];
        if (c->group != n->contexts[0]->group || !c->nested || c->count != fusion_count(i))
            return 0;
        rows = c->common < rows ? c->common : rows;
    }
    return rows;
}

/* Columns are kept some side by side; those of the root's type where its own will be, but for the first ones, and on a device all in shared memory. */
static bool columns_fit(const Fuser *f, const Group *g, const Inst *i, double bytes)
{
    if (f->cx->device->shared > 0)
        return bytes * (g->kept + 1) * COLUMNS_OF_BLOCK + COLUMN_PARTS + SHARED_BESIDE <= f->cx->device->shared;
    bool    there = i->shape->type == g->root->shape->type && fusion_count(i) == fusion_count(g->root) && g->kept == 0;
    int64_t together = columns_together(g->columns);
    double  side = there ? LEAST_COLUMNS : (double)(together < COLUMNS_WIDE ? together : COLUMNS_WIDE);
    return bytes * side * (there ? 1 : g->kept + 1) <= COLUMN_BYTES_LOCAL;
}

/* Rows that the loops of one group, be they several or one that asks again, go through one by one, and in which i may be kept: each of them needs all of its row's elements, in a loop
 * of a CPU in any order and often, as forces between bodies, pow(d[i][j]) in
 *
 *     for i: for c: for j: sum += pow(d[i][j]) * x[i][j][c]
 *
 * 0: i is asked for in another way. */
static double rows_to_keep(const Fuser *f, const Inst *i)
{
    enum { LEAST_AGAIN = 32 /* elements of a row: sums of fewer are not made in vectors, nor would be what they are made of */ };
    const Node *n = node(i);
    double      rows = fusion_count(i);
    for (int32_t k = 0; k < n->n_contexts; k++) {
        const Context *c = n->contexts[k];
        const bool     once = c->nested && c->count == fusion_count(i), again = f->cx->device->shared == 0 && !c->group->columns && c->leading > 1 && LEAST_AGAIN * c->leading <= fusion_count(i);
        if (c->group != n->contexts[0]->group || (!once && !again))
            return 0;
        const double own = once ? c->common : c->leading;
        rows = own < rows ? own : rows;
    }
    return fusion_asked(i) > fusion_count(i) ? rows : 0;
}

bool fusion_wanted_in_one_row(const Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    if (n->role != ROLE_ELEMENTWISE || n->contexts[0]->group->kept == MAX_KEPT)
        return false;
    const Device *v = f->cx->device;
    const double  rows = rows_to_keep(f, i);
    double        most = v->row < KEPT_ROW_BYTES ? v->row : KEPT_ROW_BYTES, bytes = fusion_count(i) / rows * type_bytes(i->shape->type);
    if (n->contexts[0]->group->columns)
        return rows >= 1 && columns_fit(f, n->contexts[0]->group, i, bytes);
    if (v->shared > 0 && bytes * (n->contexts[0]->group->kept + 1) > v->shared - SHARED_BESIDE)
        return false;
    return rows >= 1 && bytes <= most && bytes * (n->contexts[0]->group->kept + 1) <= KEPT_ROW_BYTES;
}

/* Its producers are asked by the one loop that makes the row. */
void fusion_keep_row(Fuser *f, Inst *i)
{
    Node        *n = node(i);
    const double rows = rows_to_keep(f, i);
    Context     *c = ARENA_NEW(f->scratch, Context);
    *c = (Context){.group = n->contexts[0]->group, .count = fusion_count(i), .nested = true, .common = rows, .leading = rows};
    c->group->kept++;
    n->contexts[0] = c;
    n->n_contexts = 1;
}

double fusion_asked(const Inst *i)
{
    double sum = 0;
    for (int32_t k = 0; k < node(i)->n_contexts; k++)
        sum += node(i)->contexts[k]->count;
    return sum;
}

static bool is_in(const Inst *const *list, int32_t n, const Inst *i)
{
    for (int32_t k = 0; k < n; k++)
        if (list[k] == i)
            return true;
    return false;
}

static bool all_users_in(const Inst *const *list, int32_t n, const Inst *i)
{
    bool all = i != i->comp->root;
    for (const Use *u = i->uses; u && all; u = u->next)
        all = is_in(list, n, u->user);
    return all;
}

/* The contraction, NULL if there is none, of whose elements alone things are made of which i is the last: to store i costs no more than to store the contraction, and
 * half of what it costs to store two values on the way, as x and 1 / (1 + exp(-x)) of their product. */
static const Inst *ended_contraction(const Inst *i)
{
    enum { MOST = 24 };
    const Inst *chain[MOST] = {i};
    for (int32_t at = 0, n = 1; at < n; at++)
        for (int32_t k = 0; k < chain[at]->n_operands; k++) {
            const Inst *o = inst_operand(chain[at], k);
            Role        r = node(o)->role;
            if ((r != ROLE_ELEMENTWISE && r != ROLE_CONTRACT && !fusion_moves_whole(o)) || is_in(chain, n, o) || !all_users_in(chain, n, o))
                continue;
            if (r == ROLE_CONTRACT)
                return o;
            if (n < MOST)
                chain[n++] = o;
        }
    return NULL;
}

/* What no kernel computes, moved. */
static bool is_given(const Inst *i)
{
    while (i->n_operands == 1 && (node(i)->role == ROLE_MOVE || node(i)->role == ROLE_VIEW))
        i = inst_operand(i, 0);
    return node(i)->role == ROLE_NONE || node(i)->role == ROLE_LEAF;
}

/* The value is the same wherever it is computed from the same operands: nothing is rounded, or there is no product that a sum could be contracted with. */
static bool is_exact(const Inst *i)
{
    switch (i->op) {
    case OP_ADD: case OP_SUBTRACT:
        return !type_is_complex(i->shape->type) && is_given(inst_operand(i, 0)) && is_given(inst_operand(i, 1));
    case OP_ABS: case OP_AND: case OP_BITCAST_CONVERT: case OP_CLAMP: case OP_COMPARE: case OP_CONVERT: case OP_COPY: case OP_MAXIMUM: case OP_MINIMUM:
    case OP_NEGATE: case OP_NOT: case OP_OR: case OP_REDUCE_PRECISION: case OP_SELECT: case OP_SIGN: case OP_XOR:
        return !type_is_complex(i->shape->type);
    default:
        return node(i)->role == ROLE_MOVE || node(i)->role == ROLE_VIEW;
    }
}

/* What is computed with i each time, from it on to what is asked for once. */
static int32_t chain_of(const Inst *i)
{
    int32_t longest = 0;
    for (const Use *u = i->uses; u; u = u->next)
        longest = node(u->user)->chain > longest ? node(u->user)->chain : longest;
    return longest + 1;
}

int32_t fusion_chain(const Inst *i)
{
    return fusion_asked(i) > fusion_count(i) && node(i)->role == ROLE_ELEMENTWISE ? chain_of(i) : 0;
}

static double larger_bytes(const Inst *i)
{
    double own = fusion_count(i) * type_bytes(i->shape->type), read = bytes_read(i);
    return read > own ? read : own;
}

/* Units that work on i at once in each of the loops that ask for it: those of rows have a row each. */
static double units_at(const Device *v, const Inst *i)
{
    const Node *n = node(i);
    double      least = v->units;
    for (int32_t k = 0; k < n->n_contexts && v->units > 1; k++) {
        const Context *c = n->contexts[k];
        double         rows = c->nested ? c->common : 1;
        least = rows < least ? rows : least;
    }
    return least > 1 ? least : 1;
}

/* ns to compute i's elements `again` times more, where they are asked for, which goes on while operands are read. */
double fusion_again_ns(const Device *v, const Inst *i, double again)
{
    double each = inst_is_dear(i) ? v->dear : chain_of(i), rows = rows_of(i) > 1 ? rows_of(i) : 1; /* a row is read again soon */
    double reads = device_bytes_ns(v, again * bytes_read(i), larger_bytes(i) / rows), computes = device_unit_ns(v, again * fusion_count(i) * each) / units_at(v, i);
    return reads > computes ? reads : computes;
}

/* ns to store them instead and to read them as often, beside what a kernel more costs. */
double fusion_stored_ns(const Device *v, const Inst *i, double again)
{
    return device_bytes_ns(v, (2 + again) * fusion_count(i) * type_bytes(i->shape->type), larger_bytes(i));
}

bool fusion_pays_beside(const Fuser *f, const Inst *i, int32_t loops)
{
    const Device *v = f->cx->device;
    if (inst_is_dear(i) || (node(i)->chosen && !is_exact(i)) || ended_contraction(i))
        return false;
    return fusion_again_ns(v, i, loops) <= v->launch + fusion_stored_ns(v, i, loops - 1);
}

/* Rows, or blocks of columns, that are fewer than units, and long: their sums are better made in pieces by all units, and read by another kernel. */
bool fusion_starves(const Fuser *f, const Inst *i)
{
    enum { SHARES = 3 /* of the memory's rate that one unit alone can have */ };
    const Device *v = f->cx->device;
    const Inst   *x = inst_operand(i, 0);
    double        bytes = fusion_count(x) * type_bytes(x->shape->type), rows = fusion_count(i), waits = v->units / (SHARES * rows);
    if (node(i)->n_contexts > 0 && node(i)->contexts[0]->group->columns)
        return columns_starve(i, v);
    return node(i)->role == ROLE_REDUCE && rows >= 1 && device_bytes_ns(v, bytes, bytes) * (waits - 2) > 2 * v->launch;
}

/* Indices compared with values of rows, which are fewer bytes than the answers: which class is a row's, how many of its elements count. Each loop asks for each answer once. */
static bool compares_indices(const Inst *i)
{
    bool few = i->op == OP_COMPARE && fusion_asked(i) <= node(i)->n_contexts * fusion_count(i);
    for (int32_t k = 0; k < i->n_operands && few; k++) {
        const Inst *o = inst_operand(i, k), *x = o->op == OP_BROADCAST && node(o)->role == ROLE_MOVE ? inst_operand(o, 0) : NULL;
        few = node(o)->role == ROLE_LEAF || fusion_made_of_indices(o) || (x && 2 * fusion_count(x) * type_bytes(x->shape->type) <= fusion_count(i));
    }
    return few;
}

/* Truth values of what all kernels that ask for them have anyway, each once, or of a single step: bytes beside floats keep compilers from vectors of either in short loops, and take as long to store
 * as to make (10 x 10 logistic losses of 8 samples with their gradients, one thread of an Emerald Rapids, 32 and 9 us, XLA 27). */
static bool is_truth_of_known(const Inst *i)
{
    const Node *n = node(i);
    const bool  step = i->op == OP_COMPARE || i->op == OP_IS_FINITE;
    bool        known = i->shape->type == TYPE_PRED && n->role == ROLE_ELEMENTWISE && (step || fusion_asked(i) <= n->n_contexts * fusion_count(i));
    for (int32_t k = 0; k < i->n_operands && known; k++) {
        const Node *o = node(inst_operand(i, k));
        for (int32_t c = 0; c < n->n_contexts && known && o->role != ROLE_LEAF; c++)
            known = fusion_is_wanted(o, n->contexts[c]->group);
    }
    return known;
}

/* Kernels that take a part each of what a product becomes, which is made where its sums are finished. */
static bool is_shared_product(const Fuser *f, const Inst *i)
{
    const Node *n = node(i);
    bool        several = false;
    for (int32_t k = 1; k < n->n_contexts; k++)
        several |= n->contexts[k]->group != n->contexts[0]->group;
    const Inst *x = several && n->role == ROLE_ELEMENTWISE && f->cx->device->shared == 0 ? ended_contraction(i) : NULL;
    return x && x->op == OP_DOT;
}

/* Exponentials of rows that are too long to be kept, for loops of one kernel. */
static bool is_long_exponential(const Inst *i)
{
    return i->op == OP_EXPONENTIAL && rows_of(i) >= 1;
}

bool fusion_pays(const Fuser *f, const Inst *i)
{
    enum { DEAR_AGAIN = 2 };
    const Node   *n = node(i);
    const Device *v = f->cx->device;
    double        own = fusion_count(i), asked = fusion_asked(i), again = asked / own - 1;
    if (n->role == ROLE_REDUCE)
        return one_row_at_a_time(i) && !fusion_starves(f, i);
    if (asked <= own)
        return asked < own || !is_shared_product(f, i);
    if (n->role == ROLE_ELEMENTWISE && ended_contraction(i))
        return false;
    if (!inst_is_dear(i) && (n->role == ROLE_MOVE || n->role == ROLE_VIEW || own == 1 || fusion_made_of_indices(i) || compares_indices(i) || is_truth_of_known(i)))
        return true; /* scalars are computed before the loop */
    if (n->chosen && !is_exact(i))
        return false;
    double ns = fusion_again_ns(v, i, again);
    if (again > 2 && n->contexts[0]->windows)
        return ns <= v->launch;
    if (inst_is_dear(i)) /* what units do while others wait for memory costs little, but who knows how dear it is */
        return ns <= v->launch || ((v->units > 1 || is_long_exponential(i)) && DEAR_AGAIN * ns <= fusion_stored_ns(v, i, again));
    return ns <= v->launch + fusion_stored_ns(v, i, again);
}
