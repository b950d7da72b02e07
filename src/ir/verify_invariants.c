/* Rules of single opcodes beyond their types: fusion bodies, composite calls, aliasing of results with operands, buffers, threads, origins.
 * Source: reference operations 2.3, 14, 19. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/attr_rare.h"
#include "ir/verify_rules.h"

const char *frontend_attribute(const Inst *i, const char *key)
{
    const Attr *a = inst_attr(i, ATTR_FRONTEND_ATTRIBUTES);
    for (int32_t k = 0; a && k < a->value.key_values->n; k++)
        if (!strcmp(a->value.key_values->v[k].key, key))
            return a->value.key_values->v[k].value;
    return NULL;
}

/* A fusion is one kernel: every instruction in it serves the root or has an effect. */
static void check_fusion(const Verify *v, const Inst *i)
{
    const Comp *c = inst_callee(i, 0);
    for (const Inst *k = c->first; k; k = k->next)
        if (k != c->root && k->n_uses == 0 && !inst_has_effect(k)) {
            verify_fail(v, i, "%%%s in the fused computation %%%s has no user", k->name, c->name);
            diag_note(v->d, k->loc, "%%%s is declared here", k->name);
            return;
        }
}

/* As XLA reads numbers from strings: white space around them, a sign, no more than 64 bits. */
static bool is_version(const char *s)
{
    char *end;
    errno = 0;
    return strtoll(s, &end, 10) >= 0 && end != s && errno == 0 && end[strspn(end, " \t\n\v\f\r")] == '\0';
}

static void check_composite(const Verify *v, const Inst *i)
{
    const char *name = frontend_attribute(i, "composite.name"), *attributes = frontend_attribute(i, "composite.attributes");
    const char *version = frontend_attribute(i, "composite.version");
    if (!inst_bool(i, ATTR_IS_COMPOSITE))
        return;
    if (!name || !*name)
        verify_fail(v, i, "a composite call needs composite.name in its frontend_attributes");
    if (attributes && !*attributes)
        verify_fail(v, i, "composite.attributes must not be empty");
    if (version && !is_version(version))
        verify_fail(v, i, "composite.version must be an integer of 0 or more, got \"%s\"", version);
}

/* The two places of one entry; the shapes there must be equal, b(...) aside. */
static void check_alias(const Verify *v, const Inst *i, const OperandAlias *a, bool same_shape)
{
    const Shape *out = shape_at(i->shape, a->output);
    if (!out) {
        verify_fail(v, i, "output_to_operand_aliasing: %s has no index %s", verify_text(v, i->shape), index_text(v, a->output));
        return;
    }
    if (a->operand < 0 || a->operand >= i->n_operands) {
        verify_fail(v, i, "output_to_operand_aliasing: there is no operand %lld", (long long)a->operand);
        return;
    }
    const Inst  *o = inst_operand(i, (int32_t)a->operand);
    const Shape *in = shape_at(o->shape, a->index);
    if (!in) {
        verify_fail(v, i, "output_to_operand_aliasing: operand %lld, %s, has no index %s", (long long)a->operand,
                    verify_text(v, o->shape), index_text(v, a->index));
        return;
    }
    bool equal = shape_compatible(in, out) || (in->buffer != out->buffer && in->type == out->type && shape_same_dims(in, out));
    if (same_shape && !equal)
        verify_fail(v, i, "output_to_operand_aliasing: output %s is %s, but operand %lld at %s is %s", index_text(v, a->output),
                    verify_text(v, out), (long long)a->operand, index_text(v, a->index), verify_text(v, in));
}

static void check_aliasing(const Verify *v, const Inst *i)
{
    const Attr *a = inst_attr(i, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    bool        same_shape = i->op != OP_CUSTOM_CALL || !frontend_attribute(i, "xla_skip_custom_call_alias_shape_check");
    for (int32_t k = 0; a && k < a->value.aliasing->n; k++)
        check_alias(v, i, &a->value.aliasing->v[k], same_shape);
}

/* Buffers */

static bool takes_buffers(Op op)
{
    switch (op) {
    case OP_DYNAMIC_UPDATE_SLICE:
    case OP_WHILE:
    case OP_TUPLE:
    case OP_GET_TUPLE_ELEMENT:
    case OP_PARAMETER:
    case OP_ASYNC_START:
    case OP_ASYNC_UPDATE:
    case OP_ASYNC_DONE:
    case OP_CUSTOM_CALL:
        return true;
    default:
        return false;
    }
}

/* Entries of the table for part index of an operand, or of the result (operand -1). */
static int32_t count_alias(const Aliasing *a, int64_t operand, Ints index)
{
    int32_t n = 0;
    for (int32_t k = 0; a && k < a->n; k++)
        n += operand < 0 ? ints_equal(a->v[k].output, index) : a->v[k].operand == operand && ints_equal(a->v[k].index, index);
    return n;
}

enum { MAX_PATH = 64 }; /* tuples in tuples that are looked into */

/* The buffers in part path of an operand, or of the result (operand -1), stand in the table once each; s is the type of that part. */
static bool check_buffer_parts(const Verify *v, const Inst *i, const Aliasing *a, int64_t operand, const Shape *s, int64_t *path, int32_t n)
{
    const Ints index = {path, n};
    if (s->buffer && count_alias(a, operand, index) != 1) {
        const char *part = n ? arena_printf(v->a, " at %s", index_text(v, index)) : "";
        return operand < 0 ? verify_fail(v, i, "the buffer of the result%s needs one entry in output_to_operand_aliasing", part)
                           : verify_fail(v, i, "the buffer operand %lld%s needs one entry in output_to_operand_aliasing", (long long)operand, part);
    }
    bool ok = true;
    for (int32_t k = 0; ok && shape_is_tuple(s) && n < MAX_PATH && k < s->n_elems; k++) {
        path[n] = k;
        ok = check_buffer_parts(v, i, a, operand, s->elems[k], path, n + 1);
    }
    return ok;
}

/* Every buffer operand and every buffer result of a custom call has its partner in the aliasing table. */
static void check_buffer_call(const Verify *v, const Inst *i)
{
    const char     *target = inst_string(i, ATTR_CUSTOM_CALL_TARGET);
    const Attr     *attr = inst_attr(i, ATTR_OUTPUT_TO_OPERAND_ALIASING);
    const Aliasing *a = attr ? attr->value.aliasing : NULL;
    int32_t         n = a ? a->n : 0;
    if (!strcmp(target, "CreateBuffer"))
        return;
    if (!strcmp(target, "Pin") || !strcmp(target, "Unpin")) {
        if (n != 1)
            verify_fail(v, i, "%s needs one entry in output_to_operand_aliasing, has %d", target, n);
        return;
    }
    int64_t path[MAX_PATH];
    bool    ok = true;
    for (int32_t k = 0; ok && k < i->n_operands; k++)
        ok = check_buffer_parts(v, i, a, k, inst_operand(i, k)->shape, path, 0);
    if (ok)
        check_buffer_parts(v, i, a, -1, i->shape, path, 0);
}

/* Users that change the buffer in part path of i in place, also as an element of tuples. *left bounds the uses that are followed. */
static int32_t count_writers(const Inst *i, const int64_t *path, int32_t n, int32_t *left)
{
    int32_t writers = 0;
    for (const Use *u = i->uses; u && --*left > 0; u = u->next) {
        int64_t whole[MAX_PATH + 1] = {u->index};
        switch ((int)u->user->op) {
        case OP_GET_TUPLE_ELEMENT:
            if (n > 0 && path[0] == inst_int(u->user, ATTR_INDEX, 0))
                writers += count_writers(u->user, path + 1, n - 1, left);
            break;
        case OP_TUPLE:
            memcpy(whole + 1, path, (size_t)n * sizeof *path);
            if (n < MAX_PATH)
                writers += count_writers(u->user, whole, n + 1, left);
            break;
        case OP_DYNAMIC_UPDATE_SLICE: writers += u->index == 0; break;
        case OP_CUSTOM_CALL: case OP_WHILE: writers++; break;
        default: break;
        }
    }
    return writers;
}

/* Each buffer that i makes is changed by one user. */
static void check_writers(const Verify *v, const Inst *i, const Shape *s, int64_t *path, int32_t n)
{
    int32_t left = 10000, writers = s->buffer ? count_writers(i, path, n, &left) : 0;
    if (writers > 1)
        verify_fail(v, i, "the buffer%s is written by %d users", n ? arena_printf(v->a, " at %s", index_text(v, (Ints){path, n})) : "", writers);
    for (int32_t k = 0; shape_is_tuple(s) && n < MAX_PATH && k < s->n_elems; k++) {
        path[n] = k;
        check_writers(v, i, s->elems[k], path, n + 1);
    }
}

static void check_buffers(const Verify *v, const Inst *i)
{
    bool    any = shape_has_buffer(i->shape);
    int64_t path[MAX_PATH];
    if (any && i->op != OP_TUPLE && i->op != OP_GET_TUPLE_ELEMENT)
        check_writers(v, i, i->shape, path, 0);
    for (int32_t k = 0; k < i->n_operands; k++) {
        const Shape *s = inst_operand(i, k)->shape;
        if (!shape_has_buffer(s))
            continue;
        any = true;
        if (!takes_buffers(i->op) || (i->op == OP_DYNAMIC_UPDATE_SLICE && k != 0)) {
            verify_fail(v, i, "operand %d cannot be the buffer %s", k, verify_text(v, s));
            return;
        }
    }
    if (any && i->op == OP_PARAMETER && i->comp == v->m->entry)
        verify_fail(v, i, "an argument of the module cannot hold a buffer: %s", verify_text(v, i->shape));
    else if (any && !takes_buffers(i->op))
        verify_fail(v, i, "does not make buffers: %s", verify_text(v, i->shape));
    else if (any && i->op == OP_CUSTOM_CALL)
        check_buffer_call(v, i);
}

/* Threads: a call stays on its thread, only an asynchronous one may go to another. */
static void check_threads(const Verify *v, const Inst *i)
{
    bool async = i->op == OP_ASYNC_START || i->op == OP_ASYNC_UPDATE || i->op == OP_ASYNC_DONE;
    for (int32_t k = 0; k < i->n_callees; k++) {
        const char *caller = comp_thread(i->comp), *callee = comp_thread(inst_callee(i, k));
        const char *asked = inst_string(i, ATTR_ASYNC_EXECUTION_THREAD);
        if (!async && strcmp(caller, callee))
            verify_fail(v, i, "%%%s runs on thread \"%s\", its caller on \"%s\"", inst_callee(i, k)->name, callee, caller);
        if (async && strcmp(asked ? asked : i->op == OP_ASYNC_START ? "main" : callee, callee))
            verify_fail(v, i, "async_execution_thread is \"%s\", but %%%s runs on \"%s\"", asked ? asked : "main",
                        inst_callee(i, k)->name, callee);
    }
}

static bool has_leaf(const OriginNode *o)
{
    bool any = o->leaf;
    for (int32_t k = 0; k < o->n; k++)
        any = any || has_leaf(&o->elems[k]);
    return any;
}

/* Whether the leaves of o stand where the arrays and tokens of s do. */
static bool same_leaves(const OriginNode *o, const Shape *s)
{
    if (o->leaf || !shape_is_tuple(s))
        return o->leaf && !shape_is_tuple(s);
    bool same = true;
    for (int32_t k = 0; k < o->n || k < s->n_elems; k++)
        same = same && (k >= o->n ? shape_leaf_count(s->elems[k], true) == 0
                        : k >= s->n_elems ? !has_leaf(&o->elems[k]) : same_leaves(&o->elems[k], s->elems[k]));
    return same;
}

/* A synthetic call has no tree; an asynchronous step and what it wraps share one, though their types differ. */
static void check_origin(const Verify *v, const Inst *i)
{
    const Attr *x = inst_attr(i, ATTR_ORIGIN);
    bool        async = i->op == OP_ASYNC_START || i->op == OP_ASYNC_UPDATE || i->op == OP_ASYNC_DONE || i->comp->async_wrapped;
    if (!x || async || (x->value.origin->call && !*x->value.origin->call))
        return;
    if (!same_leaves(&x->value.origin->tree, i->shape))
        verify_fail(v, i, "origin does not have the leaves of the type %s", verify_text(v, i->shape));
}

void verify_invariants(const Verify *v, const Inst *i)
{
    check_origin(v, i);
    if (inst_attr(i, ATTR_RESULT_ACCURACY) && !op_has(i->op, F_ACCURACY))
        verify_fail(v, i, "does not take result_accuracy");
    if (i->op == OP_FUSION)
        check_fusion(v, i);
    if (i->op == OP_CALL)
        check_composite(v, i);
    check_aliasing(v, i);
    check_buffers(v, i);
    check_threads(v, i);
}
