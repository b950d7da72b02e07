/* Kernels that are hardly worth beginning, several as one. What an optimizer does to a net's many small parameters is of this kind:
 *
 *   %p = f32[17] fusion(%p.0, %g)                       %f = (f32[17], f32[3,8], f32[]) fusion(%p.0, %g, %q.0, %h, %b.0, %i)
 *   %q = f32[3,8] fusion(%q.0, %h)              =>      %p = f32[17] get-tuple-element(%f), index=0
 *   %b = f32[] fusion(%b.0, %i)                         ...
 *
 * Groups of a bundle need nothing of each other; their code is loop nests side by side. It saves beginning a kernel, and costs that all results are
 * there until the last one is done: so a group is bundled when its work takes less time than the device's table says. What one of them may write in place no other reads: the order of their loops is not theirs to say. */
#include "config.h"

#include "analysis/cost.h"
#include "analysis/loops.h"
#include "passes/fusion.h"

enum { MAX_BUNDLED = 16, MAX_ARRAYS = 120, MAX_BUNDLE_SIZE = 1024, MAX_OPEN = 8, MAX_INPUTS = 32 };

/* What a group needs from outside and makes. */
typedef struct Small {
    Group      *group;
    int32_t     n_inputs, n_members;
    const Inst *inputs[MAX_INPUTS];
    double      bytes, flops;
} Small;

typedef struct Bundle {
    int32_t n, arrays, size;
    Small  *parts[MAX_BUNDLED];
} Bundle;

static double bytes_of(const Inst *i)
{
    return fusion_count(i) * type_bytes(i->shape->type);
}

/* ---- which groups are small ---- */

/* Of a large operand a slice touches what it takes. */
static double bytes_touched(const Inst *u, int32_t k)
{
    double all = bytes_of(inst_operand(u, k)), taken = bytes_of(u);
    bool   takes = (u->op == OP_SLICE || u->op == OP_DYNAMIC_SLICE || u->op == OP_GATHER) && k == 0;
    return takes && taken < all ? taken : all;
}

static bool add_input(Small *s, const Inst *u, int32_t k)
{
    if (s->n_inputs == MAX_INPUTS)
        return false;
    s->inputs[s->n_inputs++] = inst_operand(u, k);
    s->bytes += bytes_touched(u, k);
    return true;
}

static Inst *result_of(const Group *g, int32_t r)
{
    return r == g->n_more ? g->root : g->more[g->n_more - 1 - r];
}

typedef VEC(const Inst *) Members;

static void add_member(Fuser *f, Small *s, Members *m, const Inst *i)
{
    node(i)->searched = f->searches;
    vec_push(f->scratch, m, i);
    s->n_members += node(i)->role != ROLE_LEAF;
    s->flops += fusion_count(i) * (inst_is_dear(i) ? f->cx->device->dear : 1);
}

/* What operand k of u makes the kernel do; false: that is too much to be small. */
static bool look_at(Fuser *f, Small *s, Members *m, const Inst *u, int32_t k)
{
    const Inst *o = inst_operand(u, k);
    if (node(o)->searched == f->searches)
        return true;
    if (fusion_goes_inside(o)) {
        add_member(f, s, m, o);
        return true;
    }
    node(o)->searched = f->searches;
    return add_input(s, u, k);
}

/* Counts what the group reads, computes and writes. */
static bool look_inside(Fuser *f, Small *s)
{
    const Group *g = s->group;
    Members      m = {0};
    f->searches++;
    for (int32_t r = 0; r <= g->n_more; r++) {
        add_member(f, s, &m, result_of(g, r));
        s->bytes += bytes_of(result_of(g, r));
    }
    for (int32_t at = 0; at < m.n; at++)
        for (int32_t k = 0; k < m.v[at]->n_operands; k++)
            if (!look_at(f, s, &m, m.v[at], k))
                return false;
    return true;
}

static bool is_plain(const Group *g)
{
    return g->root && !g->hero && !g->reduces && !g->attention && (node(g->root)->role == ROLE_ELEMENTWISE || node(g->root)->role == ROLE_MOVE);
}

/* What a loop counts, which becomes no kernel. */
static bool is_counted(const Inst *i)
{
    const Counter *c = i->comp->counter;
    return c && i->comp->root->op == OP_TUPLE && inst_operand(i->comp->root, (int32_t)c->index) == i && (uint64_t)c->hi - (uint64_t)c->lo < LOOPS_MOST_COUNTS;
}

/* NULL: its kernel stays one of its own. */
static Small *small_of(Fuser *f, Group *g)
{
    const Device *v = f->cx->device;
    if (v->bundle <= 0 || !is_plain(g) || is_counted(g->root))
        return NULL;
    Small *s = ARENA_NEW(f->scratch, Small);
    s->group = g;
    if (!look_inside(f, s) || (s->n_members == 1 && inst_names_buffer(g->root)))
        return NULL;
    return device_work_ns(v, s->bytes, s->flops) <= v->bundle ? s : NULL;
}

/* ---- which go together ---- */

static bool may_be_written(const Inst *x, const Group *g)
{
    for (int32_t r = 0; r <= g->n_more; r++)
        if (bytes_of(result_of(g, r)) == bytes_of(x) && fusion_count(x) > 0)
            return true;
    return false;
}

static bool is_donated(const Inst *x)
{
    const Module *m = x->comp->module;
    for (int32_t k = 0; k < m->n_aliases; k++)
        if (m->aliases[k].param == x->param)
            return true;
    for (int32_t k = 0; k < m->n_donors; k++)
        if (m->donors[k].param == x->param)
            return true;
    return false;
}

/* What results may be put into: an argument that is donated, the state of a loop. */
static bool is_state(const Inst *x)
{
    const Inst *of = x->op == OP_GET_TUPLE_ELEMENT ? inst_operand(x, 0) : x;
    return of->op == OP_PARAMETER && (x->comp != x->comp->module->entry || is_donated(of));
}

static bool share_state(const Small *a, const Small *b)
{
    for (int32_t i = 0; i < a->n_inputs; i++)
        for (int32_t j = 0; j < b->n_inputs; j++)
            if (a->inputs[i] == b->inputs[j] && is_state(a->inputs[i]) &&
                (may_be_written(a->inputs[i], a->group) || may_be_written(a->inputs[i], b->group)))
                return true;
    return false;
}

static int32_t arrays_of(const Small *s)
{
    return s->n_inputs + s->group->n_more + 1;
}

static bool fits(Fuser *f, const Bundle *b, const Small *s)
{
    if (b->n == MAX_BUNDLED || b->arrays + arrays_of(s) > MAX_ARRAYS || b->size + s->n_members > MAX_BUNDLE_SIZE)
        return false;
    for (int32_t k = 0; k < b->n; k++)
        if (share_state(b->parts[k], s))
            return false;
    return !fusion_waits(f, b->parts[0]->group, s->group) && !fusion_waits(f, s->group, b->parts[0]->group);
}

static void put_into(Bundle *b, Small *s)
{
    if (b->n > 0) {
        s->group->head = b->parts[0]->group;
        b->parts[b->n - 1]->group->bundled = s->group;
    }
    b->parts[b->n++] = s;
    b->arrays += arrays_of(s);
    b->size += s->n_members;
}

/* The first bundle that s may join, or a new one in the place of the oldest. */
static void find_bundle(Fuser *f, Bundle **open, int32_t *n, Small *s)
{
    int32_t k = 0;
    while (k < *n && !fits(f, open[k], s))
        k++;
    if (k == *n && *n == MAX_OPEN) {
        for (k = 0; k + 1 < MAX_OPEN; k++)
            open[k] = open[k + 1];
        --*n;
    }
    if (k == *n)
        open[(*n)++] = ARENA_NEW(f->scratch, Bundle);
    put_into(open[k], s);
}

/* ---- one kernel ---- */

/* The results of one part stay together: they are made in one loop nest. */
static void unite(Fuser *f, Group *head)
{
    VEC(Inst *) results = {0};
    for (Group *g = head; g; g = g->bundled)
        for (int32_t r = 0; r <= g->n_more; r++)
            vec_push(f->scratch, &results, result_of(g, r));
    for (Group *g = head->bundled; g; g = g->bundled) {
        head->size += g->size;
        head->operands += g->operands;
        g->root = NULL;
    }
    head->bundled = NULL;
    head->n_more = results.n - 1;
    head->more = ARENA_ARRAY(f->scratch, Inst *, results.n);
    head->root = results.v[results.n - 1];
    for (int32_t r = 0; r < head->n_more; r++)
        head->more[head->n_more - 1 - r] = results.v[r];
}

static void tell(Fuser *f, const Small *s)
{
    const Device *v = f->cx->device;
    pass_remark(f->cx, s->group->root, "%%%s is bundled with the kernel of %%%s: its work is %.0f ns (%.0f bytes, %.0f operations), to begin a kernel %.0f ns on %s",
                s->group->root->name, s->group->head->root->name, device_work_ns(v, s->bytes, s->flops), s->bytes, s->flops, v->launch, v->name);
}

void fusion_bundle(Fuser *f)
{
    Bundle *open[MAX_OPEN];
    int32_t n = 0;
    for (int32_t k = f->groups.n; k-- > 0;) {
        Small *s = small_of(f, f->groups.v[k]);
        if (!s)
            continue;
        find_bundle(f, open, &n, s);
        if (s->group->head)
            tell(f, s);
    }
    for (int32_t k = 0; k < f->groups.n; k++)
        if (f->groups.v[k]->bundled && !f->groups.v[k]->head)
            unite(f, f->groups.v[k]);
}
