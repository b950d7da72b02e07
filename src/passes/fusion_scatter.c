/* Scatters: sums of segments, histograms, gradients of gathers. The kernel of one into nothing writes the one value everywhere, then goes over the places and makes each
 * update where it puts it:
 *
 *   z = broadcast(0);  g = gather(x, i);  s = scatter(z, j, g)       =>       s = fusion(x, i, j)
 *
 * On a CPU these are loops, of scatters into nothing alone: one into what others made works in place, without a kernel of its own. They are vectors where each place takes
 * a row, of a few elements at least: then the kernel computes what is put there. No threads share them, so what is dear to compute is stored before, likewise movement
 * that would cost divisions or choices.
 *
 * Where many threads work, each makes an element of an update and finds its place: indices are asked for by all elements of their window, updates once. That is only so where the
 * order of updates does not matter (target-cuda reads the same of the code); of others, which few threads make one after the other, everything is stored before. Nor are
 * transposes part of it, which go through tiles where they are stored. What is there already stays outside and is written in place. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/scatter.h"
#include "passes/fusion.h"
#include "passes/util.h"

enum { SMALL = 1 << 16, LARGE = 1 << 20 /* bytes */ };

static bool is_splat(const Inst *i)
{
    return i->op == OP_BROADCAST && inst_operand(i, 0)->op == OP_CONSTANT && shape_is_scalar(inst_operand(i, 0)->shape) && !inst_operand(i, 0)->literal->elided;
}

/* Most of a large result is nothing but the one value: to write that is work for threads. */
static bool is_sparse(const Inst *i)
{
    return fusion_count(i) > 2 * fusion_count(inst_operand(i, 2)) && fusion_count(i) * type_bytes(i->shape->type) > LARGE;
}

bool fusion_scatter_gains(const Inst *scatter, bool loops)
{
    bool gains = loops ? fusion_count(scatter) * type_bytes(scatter->shape->type) <= SMALL : is_splat(inst_operand(scatter, 0));
    for (int32_t k = scatter->n_operands / 2; k < scatter->n_operands; k++) {
        const Inst *o = inst_operand(scatter, k);
        while (node(o)->role == ROLE_VIEW)
            o = inst_operand(o, 0);
        gains |= node(o)->fused;
    }
    return gains;
}

double fusion_scatter_asks(const Inst *scatter, int32_t k, bool loops)
{
    const int32_t n = scatter->n_operands / 2;
    const Shape  *updates = inst_operand(scatter, n + 1)->shape;
    Ints          window = inst_ints(scatter, ATTR_UPDATE_WINDOW_DIMS);
    double        count = fusion_count(inst_operand(scatter, k));
    for (int32_t d = 0; d < window.n && k == n && !loops; d++)
        count *= (double)updates->dims[window.v[d]];
    return count;
}

Role fusion_role_scatter(const Inst *i, bool loops)
{
    if (!loops)
        return scatter_goes_at_once(i, true) ? ROLE_SCATTER : ROLE_NONE;
    if (i->n_operands != 3 || !fusion_is_static(i) || i->shape->layout || !is_splat(inst_operand(i, 0)) || is_sparse(i))
        return ROLE_NONE;
    return ROLE_SCATTER;
}

/* Elements that lie together in the updates and in the result. */
static bool has_rows(const Inst *scatter)
{
    const Shape *updates = inst_operand(scatter, 2)->shape;
    Ints         window = inst_ints(scatter, ATTR_UPDATE_WINDOW_DIMS);
    int64_t      together = 1;
    for (int32_t d = updates->rank; d-- > 0 && ints_has(window, d);)
        together *= updates->dims[d];
    return together > 1;
}

/* Numbers side by side as the indices of a place: which one it is, the code knows. */
static bool is_index(const Inst *i)
{
    const Shape *o = inst_operand(i, 0)->shape;
    return i->op == OP_CONCATENATE && inst_ints(i, ATTR_DIMENSIONS).v[0] == o->rank - 1 && o->dims[o->rank - 1] == 1;
}

static bool moves_simply(const Inst *i)
{
    return i->op == OP_BROADCAST || i->op == OP_SLICE || i->op == OP_GATHER || is_index(i);
}

bool fusion_stays_unscattered(const Inst *i, bool loops)
{
    const Node *n = node(i);
    bool        out = false;
    for (int32_t k = 0; k < n->n_contexts && !out; k++)
        if (n->contexts[k]->scattered)
            out = !loops ? i->op == OP_TRANSPOSE : !has_rows(n->contexts[k]->group->root) || (n->role == ROLE_ELEMENTWISE && inst_is_dear(i)) || (n->role == ROLE_MOVE && !moves_simply(i));
    return out;
}
