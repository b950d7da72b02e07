/* From a right-hand side with its attributes to an instruction: which attributes the opcode takes, words of enumerations, the
 * result type, called computations. Checks in the order of reference text 11.5. */
#include "config.h"

#include <math.h>

#include "text/parse_int.h"

#include "ir/infer.h"

const RawAttr *raw_attr(const RawAttr *attrs, int32_t n, AttrId id)
{
    for (int32_t k = 0; k < n; k++)
        if (attrs[k].id == id)
            return &attrs[k];
    return NULL;
}

static AttrId own_attr(const Parser *p, Op op, const char *name)
{
    int           n;
    const OpAttr *rows = op_attrs(op, &n);
    for (int k = 0; k < n; k++)
        if (p->attr_names[rows[k].attr] == name)
            return rows[k].attr;
    return ATTR_COUNT;
}

static AttrId common_attr(const Parser *p, Op op, const char *name)
{
    for (AttrId id = ATTR_PARAMETER_REPLICATION; id < ATTR_COUNT; id++)
        if (p->attr_names[id] == name)
            return id == ATTR_RESULT_ACCURACY && !op_has(op, F_ACCURACY) ? ATTR_COUNT : id;
    return ATTR_COUNT;
}

/* conditional takes the attributes of the form that its first operand selects. */
static bool wrong_conditional_form(const Parser *p, const Rhs *r, AttrId id)
{
    if (r->op != OP_CONDITIONAL || r->n < 1 || p->operands.v[r->base] == p->poison)
        return false;
    Type t = p->operands.v[r->base]->shape->type;
    return t == TYPE_PRED ? id == ATTR_BRANCH_COMPUTATIONS : id == ATTR_TRUE_COMPUTATION || id == ATTR_FALSE_COMPUTATION;
}

/* X-start takes the attributes of X and of async-start but for the computation; X-update and X-done those of their step alone. */
static AttrId find_attr(const Parser *p, const Rhs *r, const char *name)
{
    AttrId id = ATTR_COUNT;
    if (r->sugar == SUGAR_START)
        id = own_attr(p, r->wrapped, name);
    if (id == ATTR_COUNT)
        id = own_attr(p, r->op, name);
    if (r->sugar && id == ATTR_CALLS && (r->sugar != SUGAR_START || own_attr(p, r->wrapped, name) == ATTR_COUNT))
        id = ATTR_COUNT;
    if (id == ATTR_COUNT)
        id = common_attr(p, r->sugar == SUGAR_START ? r->wrapped : r->op, name);
    return id != ATTR_COUNT && wrong_conditional_form(p, r, id) ? ATTR_COUNT : id;
}

void attr_unknown(Parser *p, const Rhs *r, const char *name, Loc loc)
{
    AttrId given = r->op == OP_COUNT ? ATTR_COUNT : own_attr(p, r->op, intern(p->strings, name, strlen(name)));
    if (given != ATTR_COUNT && wrong_conditional_form(p, r, given)) {
        const Shape *over = p->operands.v[r->base]->shape;
        bool         pred = over->type == TYPE_PRED;
        parse_error(p, loc, "conditional over %s has no attribute '%s'", shape_text(p->tmp, over), name);
        parse_note(p, loc, "it has %s", pred ? "true_computation and false_computation" : "branch_computations");
        return;
    }
    parse_error(p, loc, "%s has no attribute '%s'", r->opcode.s, name);
    NameVec names = {0};
    Op      op = r->sugar == SUGAR_START ? r->wrapped : r->op;
    int           n = 0;
    const OpAttr *rows = op == OP_COUNT ? NULL : op_attrs(op, &n);
    for (int k = 0; k < n; k++)
        vec_push(p->tmp, &names, p->attr_names[rows[k].attr]);
    int own = names.n;
    for (AttrId id = ATTR_PARAMETER_REPLICATION; id < ATTR_COUNT; id++)
        vec_push(p->tmp, &names, p->attr_names[id]);
    if (parse_suggest(p, loc, name, names.v, names.n))
        return;
    if (own)
        parse_note(p, loc, "it has %s", names_listed(p, &names, 0, own));
    parse_note(p, loc, "every instruction has %s", names_listed(p, &names, own, names.n));
}

static void bad_word(Parser *p, AttrId id, const char *word, Loc loc)
{
    NameVec     names = {0};
    const char *all = "";
    for (Word w = 0; w < WORD_COUNT; w++)
        if (attr_words[w].attr == id) {
            vec_push(p->tmp, &names, attr_words[w].text);
            all = arena_printf(p->tmp, "%s%s%s", all, *all ? ", " : "", attr_words[w].text);
        }
    parse_error(p, loc, "'%s' is no value of '%s'", word, attr_info[id].text);
    const char *near = nearest_word(word, names.v, names.n);
    if (near)
        parse_note(p, loc, "did you mean '%s'?", near);
    else
        parse_note(p, loc, "it is one of %s", all);
}

static int64_t word_value(Parser *p, AttrId id, const char *word, Loc loc)
{
    Word w = attr_word_lookup(id, word, intern_len(word));
    if (w == WORD_COUNT)
        bad_word(p, id, word, loc);
    return w;
}

static void int32_value(Parser *p, const RawAttr *x)
{
    if (x->value.i < INT32_MIN || x->value.i > INT32_MAX)
        parse_error(p, x->value_loc, "this number does not fit 32 bits");
}

/* epsilon and the like are floats. */
static double float_attr(Parser *p, const RawAttr *x)
{
    double v = number_value(x->number);
    if (x->number.kind == NUM_INF || (v == v && (v > 3.4028234663852886e38 || v < -3.4028234663852886e38)))
        parse_error(p, x->value_loc, "this number does not fit a float");
    return v == v ? (float)v : NAN; /* XLA keeps no sign of a NaN here */
}

static void resolve_value(Parser *p, const Rhs *r, RawAttr *x)
{
    switch (attr_info[x->id].cls) {
    case ATTR_CLASS_WORD: x->value.i = word_value(p, x->id, x->value.s, x->value_loc); break;
    case ATTR_CLASS_NUMBER: x->value.f = float_attr(p, x); break;
    case ATTR_CLASS_INT:
        if (x->id == ATTR_CROSS_PROGRAM_PREFETCH_INDEX)
            int32_value(p, x);
        break;
    case ATTR_CLASS_PRECISION: {
        Ints v = ints_make(p->a, x->words ? x->words->n : 0);
        for (int32_t k = 0; k < v.n; k++)
            *ints_at(v, k) = word_value(p, x->id, x->words->v[k].s, x->words->v[k].loc);
        x->value.ints = v;
        break;
    }
    case ATTR_CLASS_INTS_OR_LISTS: {
        bool gather = (r->sugar ? r->wrapped : r->op) == OP_GATHER;
        if (gather && x->nested)
            parse_error(p, x->value_loc, "%s of %s is a list of integers", x->name, r->opcode.s);
        else if (!gather && !x->nested && x->value.ints.n)
            parse_error(p, x->value_loc, "%s of %s is a list of lists", x->name, r->opcode.s);
        else if (!gather && !x->nested) {
            x->value.lists = ARENA_NEW(p->a, IntsList);
            x->nested = true;
        }
        break;
    }
    default: break;
    }
}

static void missing_attrs(Parser *p, const Rhs *r, Op op, const RawAttr *attrs, int32_t n)
{
    int           n_rows;
    const OpAttr *rows = op_attrs(op, &n_rows);
    for (const OpAttr *row = rows; row < rows + n_rows; row++) {
        bool wanted = row->required && !(r->sugar && row->attr == ATTR_CALLS && op == r->op);
        if (op == OP_BROADCAST && row->attr == ATTR_DIMENSIONS && r->n == 1 && p->operands.v[r->base] != p->poison)
            wanted = !shape_is_scalar(p->operands.v[r->base]->shape);
        if (wanted && !raw_attr(attrs, n, row->attr))
            parse_error(p, r->opcode.loc, "%s needs the attribute '%s'", r->opcode.s, p->attr_names[row->attr]);
    }
}

static bool attrs_resolve(Parser *p, const Rhs *r, RawAttr *attrs, int32_t n)
{
    int errors = p->d->errors;
    for (int32_t k = 0; k < n; k++) {
        RawAttr *x = &attrs[k];
        x->id = find_attr(p, r, x->name);
        if (x->id == ATTR_COUNT) {
            attr_unknown(p, r, x->name, x->loc);
            continue;
        }
        const RawAttr *before = raw_attr(attrs, k, x->id);
        if (before) {
            parse_error(p, x->loc, "the attribute '%s' is given twice", x->name);
            parse_note(p, before->loc, "the first one is here");
        }
        resolve_value(p, r, x);
    }
    missing_attrs(p, r, r->op, attrs, n);
    if (r->sugar == SUGAR_START)
        missing_attrs(p, r, r->wrapped, attrs, n);
    return p->d->errors == errors;
}

/* ---- storing ---- */

/* On a tuple, one sharding stands for every leaf. */
static const Sharding *spread_sharding(Parser *p, const Sharding *s, const Shape *shape)
{
    if (s->kind == SHARDING_TUPLE || !shape || !shape_is_tuple(shape))
        return s;
    int32_t n = shape_leaf_count(shape, true);
    if (n < 1)
        n = 1;
    const Sharding **all = ARENA_ARRAY(p->tmp, const Sharding *, n);
    for (int32_t k = 0; k < n; k++)
        all[k] = s;
    return sharding_tuple(p->a, n, all);
}

/* Each predecessor once, in the order written. */
static bool store_control(Parser *p, Inst *i, const LocNames *names)
{
    Inst  **preds = ARENA_ARRAY(p->a, Inst *, names->n);
    int32_t n = 0;
    bool    ok = true;
    for (int32_t k = 0; k < names->n; k++) {
        Inst *pred = inst_find(p, names->v[k].s, names->v[k].loc);
        ok = ok && pred != p->poison;
        if (pred->visit)
            continue;
        pred->visit = 1;
        preds[n++] = pred;
    }
    for (int32_t k = 0; k < n; k++) {
        preds[k]->visit = 0;
        preds[k]->n_control_succs++;
    }
    i->control_preds = preds;
    i->n_control = n;
    return ok;
}

/* Old spellings and values without effect are stored in one form. */
static bool normal_form(const Inst *i, const RawAttr *x, Attr *out)
{
    *out = (Attr){.id = x->id, .nested = x->nested, .value = x->value};
    switch (x->id) {
    case ATTR_TYPE:
        out->id = ATTR_ORDER;
        out->value.i = x->value.i == CMP_TYPE_FLOAT ? ORDER_PARTIAL : ORDER_TOTAL;
        return true;
    case ATTR_FRONTEND_ATTRIBUTES: return x->value.key_values->n > 0;
    case ATTR_BACKEND_CONFIG: return intern_len(x->value.s) > 0;
    case ATTR_SPARSITY_CONFIG: return x->value.sparsity->lhs.given || x->value.sparsity->rhs.given;
    case ATTR_BLOCK_SCALING_CONFIG: return x->value.scaling->lhs.given || x->value.scaling->rhs.given;
    case ATTR_DIMENSIONS: return i->op != OP_RAGGED_ALL_TO_ALL;
    default: return true;
    }
}

bool attrs_store(Parser *p, Inst *i, const RawAttr *attrs, int32_t n)
{
    bool    ok = true;
    int32_t kept = 0;
    for (int32_t k = 0; k < n; k++)
        kept += attrs[k].cls != ATTR_CLASS_METADATA && attrs[k].cls != ATTR_CLASS_COMP;
    i->attrs = kept ? ARENA_ARRAY(p->a, Attr, kept) : NULL;
    for (int32_t k = 0; k < n; k++) {
        const RawAttr *x = &attrs[k];
        switch (x->cls) {
        case ATTR_CLASS_METADATA: i->meta = x->meta; continue;
        case ATTR_CLASS_INSTS: ok &= store_control(p, i, x->words); continue;
        case ATTR_CLASS_COMP:
        case ATTR_CLASS_COMPS: continue;
        default: break;
        }
        Attr y;
        if (!normal_form(i, x, &y))
            continue;
        if (x->cls == ATTR_CLASS_SHARDING)
            y.value.sharding = spread_sharding(p, x->value.sharding, i->shape);
        int32_t at = i->n_attrs++;
        for (; at > 0 && i->attrs[at - 1].id > y.id; at--)
            i->attrs[at] = i->attrs[at - 1];
        i->attrs[at] = y;
    }
    return ok;
}

/* XLA's order of called computations: as the table of attributes has them, but for while. A custom-call takes one of its two
 * spellings, and none with operand_layout_constraints. */
static void attrs_callees(Parser *p, Inst *i, const RawAttr *attrs, int32_t n)
{
    CompVec *all = &p->callees;
    all->n = 0;
    int           n_rows;
    const OpAttr *rows = op_attrs(i->op, &n_rows);
    for (int k = 0; k < n_rows; k++) {
        const RawAttr *x = raw_attr(attrs, n, rows[k].attr);
        if (!x || !x->comps || (i->op == OP_CUSTOM_CALL && all->n))
            continue;
        for (int32_t j = 0; j < x->comps->n; j++)
            vec_push(p->tmp, all, x->comps->v[j]);
    }
    if (i->op == OP_WHILE && all->n == 2) {
        Comp *condition = all->v[0];
        all->v[0] = all->v[1];
        all->v[1] = condition;
    }
    if (i->op == OP_CUSTOM_CALL && raw_attr(attrs, n, ATTR_OPERAND_LAYOUT_CONSTRAINTS))
        all->n = 0;
    if (all->n)
        inst_set_callees(i, all->n, all->v);
}

/* ---- building ---- */

static bool is_tainted(const Parser *p, const Rhs *r, const RawAttr *attrs, int32_t n)
{
    for (int32_t k = 0; k < r->n; k++)
        if (p->operands.v[r->base + k] == p->poison)
            return true;
    for (int32_t k = 0; k < n; k++)
        for (int32_t j = 0; attrs[k].comps && j < attrs[k].comps->n; j++)
            if (attrs[k].comps->v[j] == p->poison_comp)
                return true;
    return false;
}

Inst *inst_make(Parser *p, const Rhs *r, const char *name, const RawAttr *attrs, int32_t n)
{
    const Literal *literal = NULL;
    const Shape   *shape = op_stored_type(p, r);
    if (r->args == ARGS_LITERAL) {
        literal = literal_parse(p, &shape, r->lit_base);
        if (!literal)
            return NULL;
    }
    Inst *i = inst_add(p, r->op, shape, r->n, r->n ? &p->operands.v[r->base] : NULL, name, r->opcode.loc);
    i->param = r->args == ARGS_NUMBER ? r->number : 0;
    i->literal = literal;
    attrs_callees(p, i, attrs, n);
    if (!shape) {
        bool stored = attrs_store(p, i, attrs, n);
        i->shape = stored ? infer_shape(p->a, i, p->d) : NULL;
        if (!i->shape) {
            if (stored)
                inst_note_operands(p->d, i);
            inst_delete(i);
            return NULL;
        }
        i->n_attrs = i->n_control = 0; /* once more, now that the type is known */
    }
    return attrs_store(p, i, attrs, n) ? i : NULL;
}

Inst *inst_build(Parser *p, Rhs *r, const char *name, RawAttr *attrs, int32_t n)
{
    Inst *i = NULL;
    if (r->op != OP_COUNT && op_check_arity(p, r) && attrs_resolve(p, r, attrs, n) && p->d->errors == r->errors
        && !is_tainted(p, r, attrs, n)) {
        if (r->op == OP_ASYNC_START || r->op == OP_ASYNC_UPDATE || r->op == OP_ASYNC_DONE)
            i = async_build(p, r, name, attrs, n);
        else if (op_check(p, r, attrs, n))
            i = inst_make(p, r, name, attrs, n);
    }
    p->operands.n = p->operand_locs.n = r->base;
    p->lits.n = r->lit_base;
    return i;
}
