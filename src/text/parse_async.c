/* Asynchronous steps: async-start, -update and -done in their plain form and as X-start, X-update and X-done, which wrap the
 * instruction X in a computation of its own. Only an async-start has its computation among its callees; the later steps find it along
 * their first operand. Source: reference text 5.5. */
#include "config.h"

#include "text/parse_int.h"

bool async_split(Parser *p, const char *opcode, AsyncSugar *sugar, Op *wrapped)
{
    static const char *const suffixes[] = {"-start", "-update", "-done"};
    size_t                   n = intern_len(opcode);
    for (int k = 0; k < 3; k++) {
        size_t m = strlen(suffixes[k]);
        if (n <= m || memcmp(opcode + n - m, suffixes[k], m) != 0)
            continue;
        Op op = op_lookup(p, intern(p->strings, opcode, n - m));
        if (op == OP_COUNT || !op_has_sugar(op))
            return false;
        *wrapped = op;
        *sugar = k == 0 ? SUGAR_START : k == 1 ? SUGAR_UPDATE : SUGAR_DONE;
        return true;
    }
    return false;
}

static bool is_async(Op op)
{
    return op == OP_ASYNC_START || op == OP_ASYNC_UPDATE || op == OP_ASYNC_DONE;
}

bool async_typed(const Shape *s)
{
    return s && shape_is_tuple(s) && s->n_elems >= 2 && shape_is_tuple(s->elems[0]);
}

static bool check_shape(Parser *p, const Rhs *r)
{
    if (r->op == OP_ASYNC_DONE || async_typed(r->shape))
        return true;
    parse_error(p, r->opcode.loc, "the type of %s is ((operands...), result, context...), found %s", r->opcode.s,
                shape_text(p->tmp, r->shape));
    return false;
}

static bool check_operands(Parser *p, const Rhs *r)
{
    if (r->op == OP_ASYNC_START)
        return true;
    if (r->n < 1) {
        parse_error(p, r->open, "%s takes the step before it%s, found no operand", r->opcode.s,
                    r->op == OP_ASYNC_DONE ? "" : " and more arguments");
        return false;
    }
    if (p->operands.v[r->base]->op != OP_ASYNC_DONE)
        return true;
    parse_error(p, p->operand_locs.v[r->base], "'%s' is done: nothing can go on with it", p->operands.v[r->base]->name);
    return false;
}

/* The async-start of the chain that i belongs to, through tuples, barriers and copies. NULL when it cannot be found. */
static Inst *start_of(const Parser *p, const Inst *i)
{
    enum { MAX_STEPS = 1000, MAX_PATH = 64 };
    int64_t path[MAX_PATH];
    int     n = 0;
    for (int steps = 0; steps < MAX_STEPS; steps++) {
        switch ((int)i->op) {
        case OP_ASYNC_START:
        case OP_ASYNC_UPDATE:
        case OP_ASYNC_DONE: return n ? NULL : map_get(&p->starts, i);
        case OP_OPT_BARRIER:
        case OP_COPY: i = inst_operand(i, 0); break;
        case OP_GET_TUPLE_ELEMENT:
            if (n == MAX_PATH)
                return NULL;
            path[n++] = inst_int(i, ATTR_INDEX, 0);
            i = inst_operand(i, 0);
            break;
        case OP_TUPLE:
            if (n == 0 || path[n - 1] < 0 || path[n - 1] >= i->n_operands)
                return NULL;
            i = inst_operand(i, (int32_t)path[--n]);
            break;
        default: return NULL;
        }
    }
    return NULL;
}

/* ---- the wrapper ---- */

/* Whether an attribute of X-start is also, or only, the wrapped instruction's. */
static bool goes_inside(const Rhs *r, const RawAttr *x)
{
    switch (x->id) {
    case ATTR_ASYNC_EXECUTION_THREAD:
    case ATTR_SHARDING:
    case ATTR_CONTROL_PREDECESSORS: return false;
    case ATTR_OUTPUT_TO_OPERAND_ALIASING: return r->wrapped == OP_FUSION || r->wrapped == OP_CUSTOM_CALL;
    default: return true;
    }
}

static bool goes_outside(const Rhs *r, const RawAttr *x)
{
    if (r->sugar != SUGAR_START)
        return true;
    switch (x->id) {
    case ATTR_METADATA:
    case ATTR_ORIGIN:
    case ATTR_BACKEND_CONFIG:
    case ATTR_FRONTEND_ATTRIBUTES:
    case ATTR_STATISTICS: return true;
    default: return !goes_inside(r, x);
    }
}

static RawAttr *select_attrs(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n,
                             bool (*wanted)(const Rhs *, const RawAttr *), int32_t *m)
{
    RawAttr *out = ARENA_ARRAY(p->tmp, RawAttr, n);
    *m = 0;
    for (int32_t k = 0; k < n; k++)
        if (wanted(r, &attrs[k]))
            out[(*m)++] = attrs[k];
    return out;
}

/* What a call or fusion calls decides about parameters and result. */
static const Comp *called_by(const Rhs *r, const RawAttr *attrs, int32_t n)
{
    if (r->wrapped != OP_CALL && r->wrapped != OP_FUSION)
        return NULL;
    return raw_attr(attrs, n, r->wrapped == OP_CALL ? ATTR_TO_APPLY : ATTR_CALLS)->comps->v[0];
}

/* The types of the wrapper's parameters: those bound at the start, f32[1] for what an update brings later. */
static ShapeVec *wrapper_params(Parser *p, const Rhs *r, const Comp *callee)
{
    const Shape *given = r->shape->elems[0];
    ShapeVec    *v = ARENA_NEW(p->tmp, ShapeVec);
    for (int32_t k = 0; callee && k < callee->n_params; k++)
        vec_push(p->tmp, v, callee->params[k]->shape);
    for (int32_t k = v->n; k < given->n_elems; k++)
        vec_push(p->tmp, v, given->elems[k]);
    const int64_t one = 1;
    for (int fixed = op_info[r->wrapped].operands; v->n < fixed;) /* MANY is negative */
        vec_push(p->tmp, v, shape_array(p->a, TYPE_F32, 1, &one));
    return v;
}

/* %async_wrapped (async_param...) -> ... { ROOT X(async_param...) }; NULL after reporting. */
static Comp *wrap(Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    const Comp *callee = called_by(r, attrs, n);
    ShapeVec   *types = wrapper_params(p, r, callee);
    Comp       *c = comp_new(p->m, "async_wrapped");
    c->async_wrapped = true;
    scope_push(p, c, r->opcode.loc);
    Rhs x = *r;
    x.op = r->wrapped;
    x.sugar = SUGAR_NONE;
    x.wrapped = OP_COUNT;
    x.in_wrapper = true;
    x.shape = callee ? callee->root->shape : r->shape->elems[1];
    x.base = p->operands.n;
    x.n = op_info[x.op].operands == MANY ? types->n : op_info[x.op].operands; /* more parameters than the operation takes are not used */
    c->n_params = types->n;
    c->params = ARENA_ARRAY(p->a, Inst *, types->n);
    p->names_change = true;
    for (int32_t k = 0; k < types->n; k++) {
        Inst *param = inst_add(p, OP_PARAMETER, types->v[k], 0, NULL, "async_param", r->opcode.loc);
        param->param = k;
        c->params[k] = param;
        vec_push(p->tmp, &p->operands, param);
        vec_push(p->tmp, &p->operand_locs, r->opcode.loc);
    }
    int32_t  m;
    RawAttr *inside = select_attrs(p, r, attrs, n, goes_inside, &m);
    if (op_check(p, &x, inside, m))
        c->root = inst_make(p, &x, op_name(x.op), inside, m);
    p->operands.n = p->operand_locs.n = x.base;
    comp_place(p, c);
    scope_pop(p);
    return c->root ? c : NULL;
}

/* X-update and X-done know more about the types than the start did. */
static void adapt(const Rhs *r, const Inst *start)
{
    const Comp *c = start->callees[0];
    if (!c->async_wrapped || r->wrapped == OP_CALL || r->wrapped == OP_FUSION)
        return;
    for (int32_t k = 0; r->op == OP_ASYNC_UPDATE && k < r->shape->elems[0]->n_elems && k < c->n_params; k++)
        c->params[k]->shape = r->shape->elems[0]->elems[k];
    c->root->shape = r->op == OP_ASYNC_UPDATE ? r->shape->elems[1] : r->shape;
}

/* ---- the step ---- */

/* An update or done repeats nothing that the start said otherwise. */
static bool check_against_start(Parser *p, const Rhs *r, const Inst *start, const RawAttr *attrs, int32_t n)
{
    const RawAttr *calls = raw_attr(attrs, n, ATTR_CALLS), *thread = raw_attr(attrs, n, ATTR_ASYNC_EXECUTION_THREAD);
    const char    *given = inst_string(start, ATTR_ASYNC_EXECUTION_THREAD);
    if (r->sugar && start->callees[0]->root->op != r->wrapped)
        parse_error(p, r->opcode.loc, "'%s' goes on with '%s', which wraps %s", r->opcode.s, start->name,
                    op_name(start->callees[0]->root->op));
    else if (calls && calls->comps->v[0] != start->callees[0])
        parse_error(p, calls->value_loc, "'%s' calls '%s', not '%s'", start->name, start->callees[0]->name, calls->comps->v[0]->name);
    else if (thread && strcmp(thread->value.s, given ? given : "main") != 0)
        parse_error(p, thread->value_loc, "'%s' runs on the thread \"%s\"", start->name, given ? given : "main");
    else
        return true;
    parse_note(p, start->loc, "it starts here");
    return false;
}

/* Everything that is called from c runs on its thread, asynchronous starts in it included. */
static void set_thread(Parser *p, Comp *c, const char *thread)
{
    CompVec work = {0};
    Map     seen = map_new(p->tmp);
    vec_push(p->tmp, &work, c);
    map_put(&seen, c, c);
    while (work.n) {
        c = work.v[--work.n];
        c->execution_thread = thread && strcmp(thread, "main") != 0 ? thread : NULL;
        for (Inst *i = c->first; i; i = i->next) {
            if (i->op == OP_ASYNC_START && thread)
                inst_set_attr(i, (Attr){.id = ATTR_ASYNC_EXECUTION_THREAD, .value.s = thread});
            else if (i->op == OP_ASYNC_START)
                inst_drop_attr(i, ATTR_ASYNC_EXECUTION_THREAD);
            for (int32_t k = 0; k < i->n_callees; k++)
                if (!map_has(&seen, i->callees[k])) {
                    map_put(&seen, i->callees[k], c);
                    vec_push(p->tmp, &work, i->callees[k]);
                }
        }
    }
}

/* What is said about a step in general is also said about the wrapped instruction. */
static void share_provenance(const Inst *i, Inst *root)
{
    static const AttrId shared[] = {ATTR_FRONTEND_ATTRIBUTES, ATTR_STATISTICS, ATTR_ORIGIN, ATTR_BACKEND_CONFIG};
    if (i->meta)
        root->meta = i->meta;
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
        const Attr *x = inst_attr(i, shared[k]);
        if (x)
            inst_set_attr(root, *x);
    }
}

/* XLA gives these to the wrapped instruction, too, and aborts where there is none. */
static bool check_wrapped(Parser *p, const Rhs *r, const Inst *start, const RawAttr *attrs, int32_t n)
{
    static const AttrId shared[] = {ATTR_METADATA, ATTR_STATISTICS, ATTR_ORIGIN, ATTR_BACKEND_CONFIG};
    for (size_t k = 0; r->op != OP_ASYNC_START && !start && !raw_attr(attrs, n, ATTR_CALLS) && k < sizeof shared / sizeof *shared; k++) {
        const RawAttr *x = raw_attr(attrs, n, shared[k]);
        if (!x)
            continue;
        parse_error(p, x->loc, "%s describes a wrapped instruction, but '%s' belongs to no async-start", attr_info[x->id].text,
                    p->operands.v[r->base]->name);
        return false;
    }
    return true;
}

Inst *async_build(Parser *p, Rhs *r, const char *name, RawAttr *attrs, int32_t n)
{
    if (!check_shape(p, r) || !check_operands(p, r))
        return NULL;
    Inst *start = r->op == OP_ASYNC_START ? NULL : start_of(p, p->operands.v[r->base]);
    if (start && start->op == OP_ASYNC_START && !check_against_start(p, r, start, attrs, n))
        return NULL;
    if (!check_wrapped(p, r, start, attrs, n) || !op_check_replication(p, r, attrs, n))
        return NULL;
    Comp *callee = NULL;
    if (r->op == OP_ASYNC_START) {
        callee = r->sugar ? wrap(p, r, attrs, n) : raw_attr(attrs, n, ATTR_CALLS)->comps->v[0];
        if (!callee)
            return NULL;
    } else if (!start && raw_attr(attrs, n, ATTR_CALLS)) /* a chain that begins here */
        callee = raw_attr(attrs, n, ATTR_CALLS)->comps->v[0];
    else if (start && r->sugar)
        adapt(r, start);
    int32_t  n_operands = r->op == OP_ASYNC_DONE ? 1 : r->n;
    Inst    *i = inst_add(p, r->op, r->shape, n_operands, p->operands.v + r->base, name, r->opcode.loc);
    int32_t  m;
    RawAttr *outside = select_attrs(p, r, attrs, n, goes_outside, &m);
    if (!attrs_store(p, i, outside, m))
        return NULL;
    if (callee) {
        inst_set_callees(i, 1, &callee);
        if (i->op == OP_ASYNC_START || inst_string(i, ATTR_ASYNC_EXECUTION_THREAD))
            set_thread(p, callee, inst_string(i, ATTR_ASYNC_EXECUTION_THREAD));
        start = i;
    }
    if (start) {
        map_put(&p->starts, i, start);
        share_provenance(i, start->callees[0]->root);
    }
    return i;
}

bool async_finish(Parser *p)
{
    Map  wrapped = map_new(p->tmp);
    bool ok = true;
    for (const Comp *c = p->m->first; c; c = c->next)
        for (Inst *i = c->first; i; i = i->next)
            if (is_async(i->op) && i->n_callees)
                map_put(&wrapped, i->callees[0], i);
    for (const Comp *c = p->m->first; wrapped.n && c; c = c->next)
        for (const Inst *i = c->first; i; i = i->next)
            for (int32_t k = 0; !is_async(i->op) && k < i->n_callees; k++) {
                const Inst *start = map_get(&wrapped, i->callees[k]);
                if (!start)
                    continue;
                parse_error(p, i->loc, "'%s' is called asynchronously and cannot be called here too", i->callees[k]->name);
                parse_note(p, start->loc, "the asynchronous call is here");
                ok = false;
            }
    return ok;
}
