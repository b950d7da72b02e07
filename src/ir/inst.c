/* Instructions: building, editing, attributes. The uses of an instruction are a doubly linked list through the operand slots of its
 * users; link_use and unlink_use are the only places that touch it. */
#include "ir/inst.h"

#include <ctype.h>
#include <string.h>

#include "ir/name_table.h"

const OpInfo op_info[OP_COUNT] = {
#define OP(id, text, n, family, shape, flags) [OP_##id] = {text, n, flags},
#include "ir/ops.def"
#undef OP
};

enum { OPT = 0, REQ = 1 };
static const OpAttr op_attr_rows[] = {
#define OPATTR(op, attr, given, print) {OP_##op, ATTR_##attr, given, PRINT_##print},
#include "ir/op_attrs.def"
#undef OPATTR
};
/* Of each opcode its last row, from 1 on; 0: it has none. All of its rows name it, and the last of them stays. */
enum {
#define OPATTR(op, attr, given, print) ROW_##op##_##attr,
#include "ir/op_attrs.def"
#undef OPATTR
    OP_ATTR_ROWS
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint8_t last_row[OP_COUNT] = {
#define OPATTR(op, attr, given, print) [OP_##op] = ROW_##op##_##attr + 1,
#include "ir/op_attrs.def"
#undef OPATTR
};
#pragma GCC diagnostic pop
_Static_assert(OP_ATTR_ROWS < 256, "row numbers have 8 bits");

const OpAttr *op_attrs(Op op, int *n)
{
    int end = last_row[op], first = end;
    while (first > 0 && op_attr_rows[first - 1].op == op)
        first--;
    *n = end - first;
    return &op_attr_rows[first];
}

static void link_use(Use *u, Inst *def)
{
    u->def = def;
    u->prev = NULL;
    u->next = def->uses;
    if (def->uses)
        def->uses->prev = u;
    def->uses = u;
    def->n_uses++;
}

static void unlink_use(Use *u)
{
    if (u->prev)
        u->prev->next = u->next;
    else
        u->def->uses = u->next;
    if (u->next)
        u->next->prev = u->prev;
    u->def->n_uses--;
}

static void list_insert(Comp *c, Inst *i, Inst *before)
{
    i->next = before;
    i->prev = before ? before->prev : c->last;
    if (i->prev)
        i->prev->next = i;
    else
        c->first = i;
    if (before)
        before->prev = i;
    else
        c->last = i;
}

static void list_remove(Comp *c, Inst *i)
{
    if (i->prev)
        i->prev->next = i->next;
    else
        c->first = i->next;
    if (i->next)
        i->next->prev = i->prev;
    else
        c->last = i->prev;
}

/* name: interned. */
static Inst *new_named(Comp *c, Inst *before, Op op, const Shape *shape, int32_t n, Inst *const *operands, const char *name)
{
    Module *m = c->module;
    Inst   *i = ARENA_NEW(m->arena, Inst);
    i->op = op;
    i->comp = c;
    i->shape = shape;
    i->loc = LOC_NONE;
    i->maker = m->maker;
    i->name = name;
    name_table_note_inst(m, i->name);
    list_insert(c, i, before);
    c->n_insts++;
    inst_set_operands(i, n, operands);
    return i;
}

Inst *inst_new(Comp *c, Inst *before, Op op, const Shape *shape, int32_t n, Inst *const *operands, const char *name)
{
    Module *m = c->module;
    Inst   *i = new_named(c, before, op, shape, n, operands, name ? intern_str(m->strings, name) : inst_unique_name(m, op_name(op)));
    i->auto_named = name == NULL;
    return i;
}

Inst *inst_parameter(Comp *c, Inst *before, int64_t number, const Shape *shape, const char *name)
{
    Inst *i = inst_new(c, before, OP_PARAMETER, shape, 0, NULL, name);
    i->param = number;
    if (number >= c->n_params) {
        Inst **params = ARENA_ARRAY(c->module->arena, Inst *, number + 1);
        if (c->n_params)
            memcpy(params, c->params, (size_t)c->n_params * sizeof *params);
        c->params = params;
        c->n_params = (int32_t)(number + 1);
    }
    c->params[number] = i;
    return i;
}

Inst *inst_constant(Comp *c, Inst *before, Literal *value, const char *name)
{
    Arena *a = c->module->arena;
    Inst  *i = inst_new(c, before, OP_CONSTANT, literal_shape(a, value), 0, NULL, name);
    i->literal = literal_keep(a, value);
    return i;
}

Inst *inst_clone_into(Comp *c, Inst *before, const Inst *i, int32_t n, Inst *const *operands)
{
    Arena *a = c->module->arena;
    bool   same_module = c->module == i->comp->module;
    Inst  *j = new_named(c, before, i->op, same_module ? i->shape : shape_copy(a, i->shape), n, operands, inst_unique_name(c->module, i->name));
    j->param = i->param;
    j->literal = i->literal ? literal_keep(a, literal_ref(i->literal)) : NULL;
    j->loc = i->loc;
    j->meta = same_module || !i->meta ? i->meta : metadata_copy(a, c->module->strings, i->meta);
    j->n_attrs = i->n_attrs;
    j->attrs = ARENA_ARRAY(a, Attr, i->n_attrs);
    for (int32_t k = 0; k < i->n_attrs; k++)
        j->attrs[k] = same_module ? i->attrs[k] : attr_copy(a, c->module->strings, &i->attrs[k]);
    if (same_module) {
        inst_set_callees(j, i->n_callees, i->callees);
        j->maker = i->maker;
    }
    if (i->op == OP_PARAMETER)
        die("parameters are made by inst_parameter: %s", i->name);
    return j;
}

void inst_set_operand(Inst *i, int32_t k, Inst *def)
{
    unlink_use(&i->operands[k]);
    link_use(&i->operands[k], def);
}

void inst_set_operands(Inst *i, int32_t n, Inst *const *operands)
{
    for (int32_t k = 0; k < i->n_operands; k++)
        unlink_use(&i->operands[k]);
    Use *slots = ARENA_ARRAY(i->comp->module->arena, Use, n);
    for (int32_t k = 0; k < n; k++) {
        slots[k].user = i;
        slots[k].index = k;
        link_use(&slots[k], operands[k]);
    }
    i->operands = slots;
    i->n_operands = n;
}

void inst_append_operand(Inst *i, Inst *def)
{
    int32_t n = i->n_operands;
    Inst  **all = mem_alloc(n + 1, sizeof *all);
    for (int32_t k = 0; k < n; k++)
        all[k] = inst_operand(i, k);
    all[n] = def;
    inst_set_operands(i, n + 1, all);
    mem_free(all);
}

static bool has_control_pred(const Inst *i, const Inst *pred)
{
    for (int32_t k = 0; k < i->n_control; k++)
        if (i->control_preds[k] == pred)
            return true;
    return false;
}

void inst_add_control(Inst *i, Inst *pred)
{
    if (has_control_pred(i, pred))
        return;
    Inst **preds = ARENA_ARRAY(i->comp->module->arena, Inst *, i->n_control + 1);
    if (i->n_control)
        memcpy(preds, i->control_preds, (size_t)i->n_control * sizeof *preds);
    preds[i->n_control++] = pred;
    i->control_preds = preds;
    pred->n_control_succs++;
}

static void remove_control_pred(Inst *i, Inst *pred)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_control; k++)
        if (i->control_preds[k] != pred)
            i->control_preds[n++] = i->control_preds[k];
    pred->n_control_succs -= i->n_control - n;
    i->n_control = n;
}

void inst_drop_control(Inst *i)
{
    for (Inst *s = i->next; s && i->n_control_succs; s = s->next)
        if (has_control_pred(s, i)) {
            remove_control_pred(s, i);
            for (int32_t k = 0; k < i->n_control; k++)
                inst_add_control(s, i->control_preds[k]);
        }
    while (i->n_control)
        remove_control_pred(i, i->control_preds[i->n_control - 1]);
}

static void move_control(Inst *old, Inst *new_)
{
    for (int32_t k = 0; k < old->n_control; k++)
        if (old->control_preds[k] != new_)
            inst_add_control(new_, old->control_preds[k]);
    for (Inst *s = old->next; s && old->n_control_succs; s = s->next)
        if (has_control_pred(s, old)) {
            remove_control_pred(s, old);
            if (s != new_)
                inst_add_control(s, new_);
        }
    while (old->n_control)
        remove_control_pred(old, old->control_preds[old->n_control - 1]);
}

void inst_replace(Inst *old, Inst *new_)
{
    for (Use *u = old->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != new_) {
            unlink_use(u);
            link_use(u, new_);
        }
    }
    if (old->comp->root == old)
        old->comp->root = new_;
    move_control(old, new_);
    if (new_->auto_named && !old->auto_named) {
        const char *made = new_->name;
        new_->name = old->name;
        new_->auto_named = false;
        old->name = made;
        old->auto_named = true;
    }
    if (!new_->meta)
        new_->meta = old->meta;
    if (new_->loc.off < 0)
        new_->loc = old->loc;
}

void inst_delete(Inst *i)
{
    if (i->n_uses || i->comp->root == i)
        die("deleting %s, which is still used", i->name);
    inst_drop_control(i);
    for (int32_t k = 0; k < i->n_operands; k++)
        unlink_use(&i->operands[k]);
    i->n_operands = 0;
    list_remove(i->comp, i);
    i->comp->n_insts--;
    i->comp->n_calling -= i->n_callees > 0;
}

void inst_move_before(Inst *i, Inst *at)
{
    if (i == at)
        return;
    list_remove(i->comp, i);
    list_insert(i->comp, i, at);
}

static bool own_effect(const Inst *i)
{
    return op_has(i->op, F_EFFECT) || (i->op == OP_CUSTOM_CALL && inst_bool(i, ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT));
}

/* Sets what is known of c, unless it calls something of which nothing is. */
static bool settle_effect(Comp *c)
{
    bool found = false;
    for (const Inst *i = c->first; i && !found; i = i->next) {
        found = own_effect(i);
        for (int32_t k = 0; k < i->n_callees && !found; k++) {
            if (i->callees[k]->effect == EFFECT_UNKNOWN)
                return false;
            found = i->callees[k]->effect == EFFECT_SOME;
        }
    }
    c->effect = found ? EFFECT_SOME : EFFECT_NONE;
    return true;
}

/* Whether anything in c has an effect. Remembered: edits never add an effect to a computation that had none. Callees stand before
 * their callers in the module, so one sweep up to c answers without recursion. */
static bool comp_has_effect(Comp *c)
{
    if (c->effect == EFFECT_UNKNOWN && !settle_effect(c))
        for (Comp *d = c->module->first; c->effect == EFFECT_UNKNOWN; d = d->next)
            if (d->effect == EFFECT_UNKNOWN)
                settle_effect(d);
    return c->effect == EFFECT_SOME;
}

void module_forget_effects(Module *m)
{
    for (Comp *c = m->first; c; c = c->next)
        if (c->effect == EFFECT_SOME)
            c->effect = EFFECT_UNKNOWN;
}

bool inst_counts_along(const Inst *i, int64_t dim)
{
    while (i->op == OP_BROADCAST) {
        Ints    dims = inst_ints(i, ATTR_DIMENSIONS);
        int64_t inner = -1;
        for (int32_t k = 0; k < dims.n; k++)
            if (dims.v[k] == dim)
                inner = k;
        if (inner < 0)
            return false;
        dim = inner;
        i = inst_operand(i, 0);
    }
    return i->op == OP_IOTA && inst_int(i, ATTR_IOTA_DIMENSION, 0) == dim;
}

/* Not opcodes that have asynchronous forms of their own, or once had. Source: reference text 5.5. */
bool op_has_sugar(Op op)
{
    return op != OP_ALL_GATHER && op != OP_ALL_REDUCE && op != OP_COLLECTIVE_PERMUTE && op != OP_COPY && op != OP_SEND && op != OP_RECV &&
           op != OP_PARAMETER && op != OP_CONSTANT;
}

bool inst_has_effect(const Inst *i)
{
    if (own_effect(i))
        return true;
    for (int32_t k = 0; k < i->n_callees; k++)
        if (comp_has_effect(i->callees[k]))
            return true;
    return false;
}

Inst *inst_user(const Inst *i)
{
    Inst *user = i->uses ? i->uses->user : NULL;
    for (const Use *u = i->uses; u; u = u->next)
        if (u->user != user)
            return NULL;
    return user;
}

void inst_set_callees(Inst *i, int32_t n, Comp *const *callees)
{
    i->comp->n_calling += (n > 0) - (i->n_callees > 0);
    i->callees = arena_copy(i->comp->module->arena, callees, (size_t)n * sizeof *callees);
    i->n_callees = n;
}

const Attr *inst_attr(const Inst *i, AttrId id)
{
    for (int32_t k = 0; k < i->n_attrs; k++)
        if (i->attrs[k].id == id)
            return &i->attrs[k];
    return NULL;
}

void inst_set_attr(Inst *i, Attr x)
{
    for (int32_t k = 0; k < i->n_attrs; k++)
        if (i->attrs[k].id == x.id) {
            i->attrs[k] = x;
            return;
        }
    Attr *attrs = ARENA_ARRAY(i->comp->module->arena, Attr, i->n_attrs + 1);
    if (i->n_attrs)
        memcpy(attrs, i->attrs, (size_t)i->n_attrs * sizeof *attrs);
    attrs[i->n_attrs++] = x;
    i->attrs = attrs;
}

void inst_drop_attr(Inst *i, AttrId id)
{
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_attrs; k++)
        if (i->attrs[k].id != id)
            i->attrs[n++] = i->attrs[k];
    i->n_attrs = n;
}

int64_t inst_int(const Inst *i, AttrId id, int64_t otherwise)
{
    const Attr *x = inst_attr(i, id);
    return x ? x->value.i : otherwise;
}

bool inst_bool(const Inst *i, AttrId id)
{
    return inst_int(i, id, 0) != 0;
}

Word inst_word(const Inst *i, AttrId id)
{
    const Attr *x = inst_attr(i, id);
    return x ? (Word)x->value.i : attr_word_default(id);
}

const char *inst_string(const Inst *i, AttrId id)
{
    const Attr *x = inst_attr(i, id);
    return x ? x->value.s : NULL;
}

Ints inst_ints(const Inst *i, AttrId id)
{
    const Attr *x = inst_attr(i, id);
    return x && !x->nested ? x->value.ints : (Ints){NULL, 0};
}

int64_t inst_shift(const Inst *i, int32_t k)
{
    int64_t size = i->shape->dims[inst_ints(i, ATTR_DIMENSIONS).v[k]];
    int64_t shift = size > 0 ? inst_ints(i, ATTR_SHIFTS).v[k] % size : 0;
    return shift < 0 ? shift + size : shift;
}

const Window *inst_window(const Inst *i)
{
    static const Window none = {0, NULL};
    const Attr         *x = inst_attr(i, ATTR_WINDOW);
    return x ? x->value.window : &none;
}

void inst_set_int(Inst *i, AttrId id, int64_t v)
{
    inst_set_attr(i, (Attr){.id = id, .value.i = v});
}

void inst_set_word(Inst *i, AttrId id, Word w)
{
    inst_set_int(i, id, w);
}

void inst_set_ints(Inst *i, AttrId id, Ints v)
{
    inst_set_attr(i, (Attr){.id = id, .value.ints = ints_copy(i->comp->module->arena, v)});
}

bool compare_is_total(const Inst *i)
{
    const Attr *x = inst_attr(i, ATTR_ORDER);
    if (x)
        return x->value.i == ORDER_TOTAL;
    x = inst_attr(i, ATTR_TYPE);
    if (x)
        return x->value.i != CMP_TYPE_FLOAT;
    Type t = inst_operand(i, 0)->shape->type;
    return !type_is_float(t) && !type_is_complex(t);
}

static bool is_everywhere(const Inst *i, int64_t v)
{
    while (i->op == OP_BROADCAST || (i->op == OP_CONVERT && type_is_int(inst_operand(i, 0)->shape->type)))
        i = inst_operand(i, 0);
    return i->op == OP_CONSTANT && shape_is_scalar(i->shape) && type_is_int(i->shape->type) && !i->literal->elided && literal_get_s64(i->literal, 0) == v;
}

/* Of the elements in their places: a bitcast to another layout moves them. */
static bool is_bits(const Inst *i)
{
    const Shape *s = i->shape;
    return i->op == OP_BITCAST_CONVERT || (i->op == OP_BITCAST && layout_equal(s->layout, inst_operand(i, 0)->shape->layout, s->rank));
}

/* bits ^ magnitude, or magnitude - bits, which is the same of negative ones: of integers that may be unsigned. */
static bool turns_around(const Inst *i, const Inst *bits, int64_t magnitude)
{
    const Inst *x = inst_operand(bits, 0);
    if (is_bits(i))
        i = inst_operand(i, 0);
    if ((i->op != OP_XOR && i->op != OP_SUBTRACT) || !type_is_int(i->shape->type) || !shape_same_dims(i->shape, bits->shape))
        return false;
    for (int32_t k = i->op == OP_XOR ? 0 : 1; k < 2; k++) {
        const Inst *y = inst_operand(i, k);
        if (is_everywhere(inst_operand(i, 1 - k), magnitude) && (y == bits || (is_bits(y) && (inst_operand(y, 0) == x || inst_operand(y, 0) == bits))))
            return true;
    }
    return false;
}

Inst *compare_key_float(const Inst *i)
{
    if (i->op != OP_SELECT || !type_is_signed_int(i->shape->type))
        return NULL;
    const Inst   *negative = inst_operand(i, 0), *bits = inst_operand(i, 2);
    const int64_t magnitude = (int64_t)(UINT64_MAX >> (65 - type_bits(i->shape->type)));
    if (!is_bits(bits) || negative->op != OP_COMPARE || inst_word(negative, ATTR_DIRECTION) != CMP_LT || inst_operand(negative, 0) != bits ||
        !is_everywhere(inst_operand(negative, 1), 0) || !turns_around(inst_operand(i, 1), bits, magnitude))
        return NULL;
    Inst      *x = inst_operand(bits, 0);
    const Type t = x->shape->type;
    return shape_same_dims(x->shape, i->shape) && (t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F32 || t == TYPE_F64) ? x : NULL;
}

/* The place that metadata names: its own file and line, else the innermost frame of the stack tables. */
const char *inst_source_line(Arena *a, const Inst *i)
{
    const Metadata *md = i->meta;
    if (!md)
        return NULL;
    if (md->source_file && *md->source_file)
        return md->source_line ? arena_printf(a, "%s:%d", md->source_file, md->source_line) : arena_printf(a, "%s", md->source_file);
    const StackTables *t = &i->comp->module->stack;
    if (md->stack_frame_id < 1 || md->stack_frame_id > t->n_frames)
        return NULL;
    int32_t where = t->frames[md->stack_frame_id - 1].location;
    if (where < 1 || where > t->n_locations)
        return NULL;
    const FileLocation *l = &t->locations[where - 1];
    if (l->file < 1 || l->file > t->n_files)
        return NULL;
    return arena_printf(a, "%s:%d", t->files[l->file - 1], l->line);
}

static void inst_note_origin(Diag *d, const Inst *i)
{
    const char *at = inst_source_line(d->arena, i);
    const char *op = i->meta && i->meta->op_name && *i->meta->op_name ? i->meta->op_name : NULL;
    if (op && at)
        diag_note(d, i->loc, "op_name=\"%s\" from %s", op, at);
    else if (op)
        diag_note(d, i->loc, "op_name=\"%s\"", op);
    else if (at)
        diag_note(d, i->loc, "from %s", at);
}

void inst_error(Diag *d, const Inst *i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_vreport(d, DIAG_ERROR, i->loc, fmt, ap);
    va_end(ap);
    inst_note_origin(d, i);
}

static const char *last_error(const Diag *d)
{
    const char *text = "";
    for (const DiagMessage *m = d->first; m; m = m->next)
        text = m->kind == DIAG_NOTE ? text : m->text;
    return text;
}

/* Whether a message speaks of %name. */
static bool is_named(const char *text, const char *name)
{
    size_t n = intern_len(name);
    for (const char *at = text; (at = strchr(at, '%')) != NULL; at++)
        if (strncmp(at + 1, name, n) == 0 && !isalnum((unsigned char)at[n + 1]) && !strchr("_.-", at[n + 1] ? at[n + 1] : ' '))
            return true;
    return false;
}

void inst_note_operands(Diag *d, const Inst *i)
{
    enum { FEW = 3 };
    for (int32_t k = 0; k < i->n_operands && k < FEW; k++) {
        const Inst *o = inst_operand(i, k);
        bool        said = false;
        for (int32_t j = 0; j < k; j++)
            said |= inst_operand(i, j) == o;
        if (!said)
            diag_note(d, o->loc, "%%%s is declared here: %s", o->name, shape_brief(d->arena, o->shape));
    }
    const char *error = i->n_callees > 0 ? last_error(d) : "";
    for (int32_t k = 0; k < i->n_callees; k++) {
        const Comp *c = i->callees[k];
        if (c->root && is_named(error, c->name))
            diag_note(d, c->loc, "%%%s is declared here, its root is %s", c->name, shape_brief(d->arena, c->root->shape));
    }
}

bool inst_same_loops(const Inst *x, const Inst *y)
{
    const Shape *a = inst_operand(x, 0)->shape, *b = inst_operand(y, 0)->shape;
    Ints         over = inst_ints(x, ATTR_DIMENSIONS), also = inst_ints(y, ATTR_DIMENSIONS);
    if (!shape_same_dims(a, b) || !layout_equal(a->layout, b->layout, a->rank) || over.n != also.n)
        return false;
    for (int32_t k = 0; k < over.n; k++)
        if (!ints_has(also, over.v[k]))
            return false;
    return true;
}
