/* Right-hand sides, operands and instructions, in the order of the text. An instruction with an error is not made; its name stands
 * for p->poison from then on, and whatever uses that is not made either and says nothing. Source: reference text 5.1, 5.2. */
#include "config.h"

#include "text/parse_int.h"

#include "ir/infer.h"

/* Element types as other languages call them. */
static const char *type_elsewhere(const char *word)
{
    static const char *const names[][2] = {
        {"float", "f32"}, {"float32", "f32"}, {"double", "f64"}, {"float64", "f64"}, {"half", "f16"}, {"float16", "f16"}, {"bfloat16", "bf16"},
        {"bool", "pred"}, {"i1", "pred"}, {"int", "s32"}, {"i4", "s4"}, {"i8", "s8"}, {"i16", "s16"}, {"i32", "s32"}, {"i64", "s64"},
        {"int4", "s4"}, {"int8", "s8"}, {"int16", "s16"}, {"int32", "s32"}, {"int64", "s64"}, {"ui8", "u8"}, {"ui32", "u32"}, {"uint8", "u8"},
        {"uint16", "u16"}, {"uint32", "u32"}, {"uint64", "u64"}, {"complex64", "c64"}, {"complex128", "c128"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k][0], word) == 0)
            return names[k][1];
    return NULL;
}

static void unknown_opcode(Parser *p, const char *opcode, Loc loc)
{
    filter_release(p);
    int64_t     end = loc.off + loc.len;
    bool        as_type = end < (int64_t)p->len && p->text[end] == '['; /* "f33[4]" */
    const char *names[OP_COUNT + TYPE_COUNT];
    int         n = 0;
    for (Op op = 0; op < OP_COUNT && !as_type; op++)
        names[n++] = op_name(op);
    for (Type t = 0; t < TYPE_COUNT && as_type; t++)
        names[n++] = type_name(t);
    parse_error(p, loc, as_type ? "there is no element type '%s'" : "there is no opcode '%s'", opcode);
    const char *elsewhere = as_type ? type_elsewhere(opcode) : NULL;
    if (elsewhere)
        parse_note(p, loc, "did you mean '%s'?", elsewhere);
    else
        parse_suggest(p, loc, opcode, names, n);
    p->unknown_opcode = loc.off;
}

Inst *inst_add(Parser *p, Op op, const Shape *shape, int32_t n, Inst *const *operands, const char *name, Loc loc)
{
    Inst *i = inst_new(p->scope->comp, NULL, op, shape, n, operands, name);
    i->loc = loc;
    return i;
}

static bool outermost_single(const Parser *p)
{
    return p->single && p->scope && !p->scope->parent;
}

/* In single-instruction input an operand that is not known becomes a parameter. */
static Inst *single_parameter(Parser *p, const Shape *type, const char *name, Loc loc)
{
    Scope *s = p->scope;
    if (!name)
        name = intern_printf(p->strings, "_%lld", (long long)s->n_single_params);
    Inst *i = inst_add(p, OP_PARAMETER, type, 0, NULL, name, loc);
    i->param = s->n_single_params++;
    p->names_change = true;
    name_put(p, i->name, i);
    return i;
}

/* XLA reads "f32[2] negate(" among the operands of a single instruction as a parameter called negate first, and keeps that one. */
static void single_opcode(Parser *p, const Shape *type, const char *opcode, Loc loc)
{
    if (!outermost_single(p))
        return;
    if (p->single_head && type && !name_get(p, opcode))
        single_parameter(p, type, opcode, loc);
    p->single_head = true;
}

Rhs *rhs_begin(Parser *p, const Shape *shape, const char *opcode, Loc loc)
{
    single_opcode(p, shape, opcode, loc);
    Rhs *r = p->spare;
    if (r)
        p->spare = r->spare;
    else
        r = ARENA_NEW(p->tmp, Rhs);
    *r = (Rhs){.shape = shape,
               .opcode = {opcode, loc},
               .op = OP_COUNT,
               .wrapped = OP_COUNT,
               .base = p->operands.n,
               .lit_base = p->lits.n,
               .attrs_base = p->raw.n,
               .errors = p->d->errors};
    r->op = op_lookup(p, opcode);
    if (r->op == OP_COUNT && async_split(p, opcode, &r->sugar, &r->wrapped))
        r->op = r->sugar == SUGAR_START ? OP_ASYNC_START : r->sugar == SUGAR_UPDATE ? OP_ASYNC_UPDATE : OP_ASYNC_DONE;
    else if (r->op == OP_COUNT)
        unknown_opcode(p, opcode, loc);
    p->constant = r->op == OP_CONSTANT ? shape : NULL;
    if (!shape && r->op != OP_COUNT && !op_has(r->op, F_INFERS))
        parse_error(p, loc, "%s needs its result type: it cannot be inferred", opcode);
    return r;
}

static void rhs_end(Parser *p, Rhs *r)
{
    r->spare = p->spare;
    p->spare = r;
}

Rhs *rhs_operands(Parser *p, Rhs *r, Loc open)
{
    r->args = ARGS_OPERANDS;
    r->open = open;
    r->depth = p->depth;
    r->n = p->operands.n - r->base;
    return r;
}

Rhs *rhs_literal(Parser *p, Rhs *r, Loc open, Loc loc)
{
    r->args = ARGS_LITERAL;
    r->depth = p->depth;
    r->open = open;
    r->number_loc = loc;
    return r;
}

Rhs *rhs_number(Parser *p, Rhs *r, int64_t v, Loc loc)
{
    r->args = ARGS_NUMBER;
    r->depth = p->depth;
    r->number = v;
    r->number_loc = loc;
    if (v < 0)
        parse_error(p, loc, "a parameter number is 0 or more, found %lld", (long long)v);
    return r;
}

/* ---- operands ---- */

static void push_operand(Parser *p, Inst *i, Loc loc)
{
    vec_push(p->tmp, &p->operands, i);
    vec_push(p->tmp, &p->operand_locs, loc);
}

/* Names of the computation that could be meant: the nearest among the last few thousand. */
static void suggest_inst(Parser *p, const char *name, Loc loc)
{
    enum { LOOK_AT = 5000 };
    NameVec names = {0};
    for (const Inst *i = p->scope->comp->last; i && names.n < LOOK_AT; i = i->prev)
        vec_push(p->tmp, &names, i->name);
    parse_suggest(p, loc, name, names.v, names.n);
}

static const Inst *defined_elsewhere(const Parser *p, const char *name)
{
    for (const Comp *c = p->m->first; c; c = c->next)
        for (const Inst *i = c->first; i && c != p->scope->comp; i = i->next)
            if (i->name == name)
                return i;
    return NULL;
}

Inst *inst_find(Parser *p, const char *name, Loc loc)
{
    Inst *i = name_get(p, name);
    if (i)
        return i;
    parse_error(p, loc, "there is no instruction '%s' before this in the computation", name);
    enum { EXPLAINED = 100 }; /* a text with more errors has another problem */
    bool        few = p->d->errors <= EXPLAINED;
    const Inst *other = few ? defined_elsewhere(p, name) : NULL;
    Loc         later = few ? defined_later(p, loc.off, name, false) : LOC_NONE;
    if (p->scope->pending.s == name)
        parse_note(p, loc, "an instruction cannot use itself");
    else if (later.off >= 0)
        parse_note(p, later, "'%s' is defined here, after this use", name);
    else if (other)
        parse_note(p, other->loc, "'%s' of the computation '%s' is another one", name, other->comp->name);
    else
        suggest_inst(p, name, loc);
    return p->poison;
}

void operand_type_only(Parser *p, const Shape *type, Loc loc)
{
    if (outermost_single(p))
        push_operand(p, single_parameter(p, type, NULL, loc), loc);
}

/* The instruction that takes element index out of i; one for all uses, remembered in i->aux, a map by index. */
static Inst *element_of(Parser *p, Inst *i, int64_t index, Loc loc)
{
    if (!i->aux) {
        i->aux = ARENA_NEW(p->tmp, Map);
        *(Map *)i->aux = map_new(p->tmp);
    }
    Inst *known = map_get_u64(i->aux, (uint64_t)index);
    if (known)
        return known;
    const char *name = intern_printf(p->strings, "%s_%lld", i->name, (long long)index);
    Inst       *gte = inst_add(p, OP_GET_TUPLE_ELEMENT, i->shape->elems[index], 1, &i, name, loc);
    inst_set_int(gte, ATTR_INDEX, index);
    p->names_change = true;
    map_put_u64(i->aux, (uint64_t)index, gte);
    return gte;
}

static Inst *follow_indices(Parser *p, Inst *i, const IntVec *indices, Loc loc)
{
    for (int32_t k = 0; k < indices->n && i != p->poison; k++) {
        int64_t index = indices->v[k];
        if (!shape_is_tuple(i->shape)) {
            parse_error(p, loc, "'#%lld' takes an element out of %s, which is no tuple", (long long)index,
                        shape_text(p->tmp, i->shape));
            parse_note(p, i->loc, "'%s' is defined here", i->name);
            return p->poison;
        }
        if (index < 0 || index >= i->shape->n_elems) {
            parse_error(p, loc, "'#%lld' of a tuple with %d elements", (long long)index, i->shape->n_elems);
            return p->poison;
        }
        i = element_of(p, i, index, loc);
    }
    return i;
}

void operand_name(Parser *p, const Shape *type, const char *name, Loc loc, const IntVec *indices)
{
    Inst *i = name_get(p, name);
    if (!i && type && !indices && outermost_single(p))
        i = single_parameter(p, type, name, loc);
    else if (!i)
        i = inst_find(p, name, loc);
    if (indices)
        i = follow_indices(p, i, indices, loc);
    if (type && i != p->poison && !shape_compatible(type, i->shape)) {
        parse_error(p, loc, "the type written here is %s, '%s' has the type %s", shape_text(p->tmp, type), i->name,
                    shape_text(p->tmp, i->shape));
        parse_note(p, i->loc, "it is defined here");
    }
    push_operand(p, i, loc);
}

/* An opcode that names nothing is dropped, as in XLA, which reads it as an instruction without operands and then forgets the error. */
void operand_word(Parser *p, const Shape *type, const char *word, Loc loc)
{
    AsyncSugar sugar;
    Op         wrapped;
    bool       opcode = op_lookup(p, word) != OP_COUNT || async_split(p, word, &sugar, &wrapped);
    if (opcode && !name_get(p, word) && !(type && outermost_single(p)))
        return;
    operand_name(p, type, word, loc, NULL);
}

/* Where a nested instruction is complete but for what is checked last, XLA's parser goes on without it and forgets the error. */
void operand_nested(Parser *p, Rhs *r, Loc loc)
{
    const char *base = r->op == OP_COUNT ? r->opcode.s : r->sugar ? r->opcode.s : op_name(r->op);
    const char *name = intern_printf(p->strings, "%s.anon", base);
    DiagMessage *before = p->d->last;
    int          errors = p->d->errors;
    bool         forgotten = r->errors == errors && r->args == ARGS_OPERANDS && !(r->sugar == SUGAR_START && async_typed(r->shape))
                     && r->op != OP_CONSTANT && r->op != OP_PARAMETER && !(r->op == OP_TUPLE && r->shape && !shape_is_tuple(r->shape));
    Inst *i = inst_build(p, r, name, NULL, 0);
    rhs_end(p, r);
    if (!i && forgotten && p->d->errors > errors) {
        diag_soften(p->d, before);
        if (p->d->errors == errors) {
            diag_note(p->d, loc, "an operand that is no instruction counts for nothing, as in XLA");
            return;
        }
    }
    p->scope->failed |= !i;
    if (i)
        i->name = uniquer_name(p->uniquer, name);
    push_operand(p, i ? i : p->poison, loc);
}

/* ---- instructions ---- */

void inst_pending(Parser *p, const char *name, Loc loc)
{
    p->scope->pending = (Name){name, loc};
    p->current = NULL;
}

static void define(Parser *p, const char *name, Loc loc, Inst *i)
{
    const char *better;
    const Inst *before = name_get(p, name);
    if (before) {
        parse_error(p, loc, "the instruction '%s' is defined twice", name);
        if (before != p->poison)
            parse_note(p, before->loc, "the first definition is here");
        return;
    }
    if (!name_is_sanitary(p->strings, name, &better)) {
        parse_error(p, loc, "'%s' cannot name an instruction", name);
        parse_note(p, loc, "'%s' could", better);
    }
    name_put(p, name, i ? i : p->poison);
}

/* The attributes from base on have been stored. */
static void attrs_done(Parser *p, int32_t base)
{
    for (int32_t k = base; k < p->raw.n; k++)
        if (p->raw.v[k].comps) {
            p->spare_comps = p->raw.v[k].comps;
            p->spare_comps->n = 0;
        }
    p->raw.n = base;
}

void inst_end(Parser *p, Loc root_loc, Rhs *r)
{
    Scope      *s = p->scope;
    const char *name = s->pending.s;
    Inst       *i = inst_build(p, r, name, p->raw.n ? &p->raw.v[r->attrs_base] : NULL, p->raw.n - r->attrs_base);
    attrs_done(p, r->attrs_base);
    rhs_end(p, r);
    s->failed |= !i;
    define(p, name, s->pending.loc, i);
    p->names_change |= uniquer_name(p->uniquer, name) != name;
    if (root_loc.off >= 0 && s->root_loc.off >= 0) {
        parse_error(p, root_loc, "a computation has one ROOT");
        parse_note(p, s->root_loc, "the first one is here");
    } else if (root_loc.off >= 0) {
        s->root_loc = root_loc;
        s->comp->root = i;
    }
    s->pending = (Name){NULL, LOC_NONE};
    p->current = NULL;
}

/* Module, computation and, when it has no name of its own, the instruction are called "_". */
void single_begin(Parser *p)
{
    const char *name = intern_str(p->strings, "_");
    p->m->name = name;
    p->m->is_scheduled = true;
    scope_push(p, comp_new(p->m, name), (Loc){0, 0});
    p->scope->written = name;
    p->scope->pending = (Name){name, LOC_NONE};
}

void single_end(Parser *p, Rhs *r, Loc loc)
{
    if (p->scope->pending.loc.off < 0)
        p->scope->pending.loc = loc;
    inst_end(p, loc, r);
    p->entry = comp_end(p);
}
