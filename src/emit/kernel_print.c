/* Kernel IR as text of C and its relatives. What is printed needs no include: fixed-width integers, what prelude.c puts in front, and GNU C's
 * _Complex parts. */
#include "emit/dialect.h"

#include "emit/beside.h"
#include "emit/c_text.h"
#include "emit/fetch_ahead.h"
#include "emit/loop_halves.h"
#include "emit/printer.h"
#include "emit/loop_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dialect_type(const Dialect *d, Type t)
{
    switch (t) {
    case TYPE_PRED: return d->boolean;
    case TYPE_S8: return "int8_t";
    case TYPE_S16: return "int16_t";
    case TYPE_S32: return "int32_t";
    case TYPE_S64: return "int64_t";
    case TYPE_U8: return "uint8_t";
    case TYPE_U16: return "uint16_t";
    case TYPE_U32: return "uint32_t";
    case TYPE_U64: return "uint64_t";
    case TYPE_F32: return "float";
    case TYPE_F64: return "double";
    case TYPE_C64: return d->complex_types[0];
    case TYPE_C128: return d->complex_types[1];
    default: die("%s is no machine type", type_name(t));
    }
}

const char *element_type(const Dialect *d, const KArray *x)
{
    return dialect_type(d, storage_type(x->type));
}

void indent(Printer *p, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_puts(p->b, "    ");
}

/* Shortest digits that read back to the same value. */
static void print_float(Buf *b, Type t, double v)
{
    bool single = t == TYPE_F32;
    if (isnan(v)) {
        buf_printf(b, "%s__builtin_nan%s(\"\")", signbit(v) ? "-" : "", single ? "f" : "");
        return;
    }
    if (isinf(v)) {
        buf_printf(b, "%s__builtin_inf%s()", v < 0 ? "-" : "", single ? "f" : "");
        return;
    }
    char text[40];
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
            break;
    }
    bool plain = true;
    for (const char *s = text; *s; s++)
        plain &= *s != '.' && *s != 'e';
    buf_printf(b, "%s%s%s", text, plain ? ".0" : "", single ? "f" : "");
}

/* C computes 64 bits wide only with what is 64 bits wide: ~18u is not ~18ull. */
static void print_int(Buf *b, Type t, int64_t v)
{
    if (t == TYPE_U64)
        buf_printf(b, "%lluull", (unsigned long long)v);
    else if (t == TYPE_U32)
        buf_printf(b, "%lluu", (unsigned long long)(uint32_t)v);
    else if (t == TYPE_S64 && v == INT64_MIN)
        buf_puts(b, "(-9223372036854775807 - 1)");
    else if (t == TYPE_S32 && v == INT32_MIN)
        buf_puts(b, "(-2147483647 - 1)");
    else
        buf_printf(b, "%lld", (long long)v);
}

/* Printed as an identifier, without operators. */
static bool is_one_name(const Printer *p, const Ix *x)
{
    return x->n == 1 && x->c == 0 && x->t[0].k == 1 && !x->t[0].atom->arg && x->t[0].atom != p->blocked;
}

static bool has_narrow_indices(const Printer *p)
{
    return strcmp(p->dialect->index, "int64_t") != 0;
}

/* A value of 32 bits stays within them, not what it is multiplied to. */
static void print_value_atom(Printer *p, const KTemp *t)
{
    buf_printf(p->b, "%s%s", t->type == TYPE_S32 && !has_narrow_indices(p) ? "(int64_t)" : "", t->name);
}

static void print_atom(Printer *p, const IxAtom *x)
{
    if (x == p->blocked) {
        buf_puts(p->b, p->place);
        return;
    }
    if (x->kind == IX_VALUE) {
        print_value_atom(p, x->owner);
        return;
    }
    if (!x->arg) {
        buf_puts(p->b, x->name);
        return;
    }
    int64_t lo, hi;
    ix_range(x->arg, &lo, &hi);
    if (lo < 0) { /* C's division truncates */
        buf_puts(p->b, x->kind == IX_DIV ? "floor_div(" : "floor_mod(");
        print_index(p, x->arg);
        buf_printf(p->b, ", %lld)", (long long)x->by);
        return;
    }
    bool one = is_one_name(p, x->arg);
    buf_puts(p->b, one ? "" : "(");
    print_index(p, x->arg);
    buf_printf(p->b, "%s %c %lld", one ? "" : ")", x->kind == IX_DIV ? '/' : '%', (long long)x->by);
}

static void print_term(Printer *p, const IxTerm *t, int64_t k)
{
    bool parens = (t->atom->arg && k != 1) || (t->atom == p->blocked && t->k != 1);
    buf_puts(p->b, parens ? "(" : "");
    print_atom(p, t->atom);
    buf_puts(p->b, parens ? ")" : "");
    if (k != 1)
        buf_printf(p->b, " * %lld", (long long)k);
}

/* The k-th term in order of size of its multiple, positive ones first: "i0 * 256 + i1", "7 - i0". */
static const IxTerm *term_in_order(const Ix *x, int32_t k)
{
    for (int32_t i = 0; i < x->n; i++) {
        int32_t before = 0;
        for (int32_t j = 0; j < x->n; j++)
            before += x->t[j].k > x->t[i].k || (x->t[j].k == x->t[i].k && j < i);
        if (before == k)
            return &x->t[i];
    }
    die("an index has no term %d", k);
}

/* Returns how strongly what was printed binds. */
int print_index(Printer *p, const Ix *x)
{
    bool first = true, constant_done = x->c == 0 && x->n > 0;
    for (int32_t i = 0; i < x->n; i++) {
        const IxTerm *t = term_in_order(x, i);
        if (t->k < 0 && first && !constant_done) {
            print_int(p->b, TYPE_S64, x->c);
            constant_done = true;
            first = false;
        }
        buf_puts(p->b, !first ? (t->k < 0 ? " - " : " + ") : t->k < 0 ? "-" : "");
        print_term(p, t, t->k < 0 ? -t->k : t->k);
        first = false;
    }
    if (!constant_done && first)
        print_int(p->b, TYPE_S64, x->c);
    else if (!constant_done)
        buf_printf(p->b, " %c %lld", x->c < 0 ? '-' : '+', (long long)(x->c < 0 ? -x->c : x->c));
    return is_one_name(p, x) ? P_PRIMARY : P_ADD;
}

static const struct { const char *text; int strength; } operators[] = {
    [KOP_MUL] = { "*", P_MUL }, [KOP_DIV] = { "/", P_MUL }, [KOP_REM] = { "%", P_MUL }, [KOP_ADD] = { "+", P_ADD }, [KOP_SUB] = { "-", P_ADD },
    [KOP_SHL] = { "<<", P_SHIFT }, [KOP_SHR] = { ">>", P_SHIFT }, [KOP_LT] = { "<", P_REL }, [KOP_LE] = { "<=", P_REL },
    [KOP_GT] = { ">", P_REL }, [KOP_GE] = { ">=", P_REL }, [KOP_EQ] = { "==", P_EQ }, [KOP_NE] = { "!=", P_EQ }, [KOP_AND] = { "&", P_AND },
    [KOP_XOR] = { "^", P_XOR }, [KOP_OR] = { "|", P_OR }, [KOP_LAND] = { "&&", P_LAND }, [KOP_LOR] = { "||", P_LOR },
};

static void print_load(Printer *p, const KExpr *x)
{
    int32_t taken = p->blocks ? taken_load(&p->blocks->taken, x) : -1;
    if (taken >= 0) {
        buf_printf(p->b, BLOCK_TAKEN "%d[" BLOCK_PLACE "]", taken);
        return;
    }
    buf_printf(p->b, "%s[", x->array->name);
    print_index(p, x->index);
    buf_putc(p->b, ']');
}

/* Where gcc and readers want parentheses although C does not: bits, shifts and comparisons beside other operators. */
static int operand_strength(KOp op, bool right)
{
    switch (op) {
    case KOP_MUL: return right ? P_UNARY : P_MUL;
    case KOP_DIV: case KOP_REM: return right ? P_UNARY : P_MUL;
    case KOP_ADD: return right ? P_MUL : P_ADD;
    case KOP_SUB: return right ? P_MUL : P_ADD;
    case KOP_LT: case KOP_LE: case KOP_GT: case KOP_GE: case KOP_EQ: case KOP_NE: return P_ADD;
    case KOP_LAND: return right ? P_EQ : P_LAND;
    case KOP_LOR: return P_EQ;
    default: return P_UNARY;
    }
}

static bool is_narrow(Type t) { return t == TYPE_S8 || t == TYPE_S16 || t == TYPE_U8 || t == TYPE_U16; }

/* Of floats that are no f16 in the text. */
static bool is_cast_to_half(const Printer *p, const KExpr *x)
{
    if (!p->halves || x->type != TYPE_F32)
        return false;
    const bool call = x->kind == KX_CALL && !half_function(x) && blocked_in(p->blocks, x) < 0;
    return call || x->kind == KX_FLOAT || half_is_around(p->halves, x);
}

static int strength_of(const Printer *p, const KExpr *x)
{
    if (is_cast_to_half(p, x))
        return P_UNARY;
    if (dialect_function(p->dialect, x))
        return P_PRIMARY;
    switch (x->kind) {
    case KX_INT: return x->i < 0 && x->type != TYPE_U64 && x->type != TYPE_U32 ? P_UNARY : P_PRIMARY;
    case KX_FLOAT: return signbit(x->f) ? P_UNARY : P_PRIMARY;
    case KX_TEMP: case KX_LOAD: case KX_CALL: return P_PRIMARY;
    case KX_INDEX: return is_one_name(p, x->index) ? P_PRIMARY : P_ADD;
    case KX_UNARY: return P_UNARY;
    case KX_DISTINCT: return P_EQ;
    case KX_CAST: return x->type == TYPE_PRED ? P_EQ : P_UNARY;
    case KX_BINARY: return is_narrow(x->type) && x->op == KOP_SHL ? P_UNARY : operators[x->op].strength;
    case KX_SELECT: return P_SELECT;
    }
    die("an unknown expression");
}

/* z.re of a class. */
static void print_member(Printer *p, const KExpr *x)
{
    print_expr(p, x->arg[0], P_PRIMARY);
    buf_puts(p->b, x->op == KOP_REAL ? ".re" : ".im");
}

static void print_unary(Printer *p, const KExpr *x)
{
    if (p->dialect->complex_function && (x->op == KOP_REAL || x->op == KOP_IMAG)) {
        print_member(p, x);
        return;
    }
    if (x->op == KOP_NOT && is_narrow(x->type))
        buf_printf(p->b, "(%s)", dialect_type(p->dialect, x->type));
    switch (x->op) {
    case KOP_NEG: buf_putc(p->b, '-'); break;
    case KOP_NOT: buf_putc(p->b, x->type == TYPE_PRED ? '!' : '~'); break;
    case KOP_REAL: buf_puts(p->b, "__real__ "); break;
    case KOP_IMAG: buf_puts(p->b, "__imag__ "); break;
    case KOP_PLACE: buf_putc(p->b, '&'); break;
    default: die("no unary operator");
    }
    bool twice = x->op == KOP_NEG && strength_of(p, x->arg[0]) == P_UNARY; /* not "--x" */
    print_expr(p, x->arg[0], twice ? P_PRIMARY : P_UNARY);
}

/* Arithmetic on 64 bits stays that where indices are narrower. */
static void print_operand(Printer *p, const KExpr *x, KOp op, bool right)
{
    bool widened = x->kind == KX_INDEX && operators[op].strength >= P_SHIFT && has_narrow_indices(p);
    buf_puts(p->b, widened ? "(int64_t)" : "");
    print_expr(p, x, widened ? P_UNARY : operand_strength(op, right));
}

static void print_binary(Printer *p, const KExpr *x)
{
    bool cast = is_narrow(x->type) && x->op == KOP_SHL;
    if (cast)
        buf_printf(p->b, "(%s)(", dialect_type(p->dialect, x->type));
    print_operand(p, x->arg[0], x->op, false);
    buf_printf(p->b, " %s ", operators[x->op].text);
    print_operand(p, x->arg[1], x->op, true);
    if (cast)
        buf_putc(p->b, ')');
}

static void print_call(Printer *p, const KExpr *x)
{
    int32_t in = p->blocks ? blocked_in(p->blocks, x) : -1;
    if (in >= 0) {
        const bool other = !p->halves && p->blocks->in[in].as_f16;
        buf_printf(p->b, "%s%d[" BLOCK_PLACE "]", other ? BLOCK_IN_FLOAT : BLOCK_IN, in);
        return;
    }
    int32_t taken = p->blocks && x->n == 1 ? taken_load(&p->blocks->taken, x->arg[0]) : -1;
    if (taken >= 0 && is_wide(p->blocks, taken)) {
        buf_printf(p->b, BLOCK_WIDE "%d[" BLOCK_PLACE "]", taken);
        return;
    }
    const char *fn = p->halves && half_function(x) ? half_function(x) : dialect_function(p->dialect, x);
    buf_printf(p->b, "%s(", p->alone ? function_alone(fn) : fn);
    for (int32_t i = 0; i < x->n; i++) {
        if (i)
            buf_puts(p->b, ", ");
        print_expr(p, x->arg[i], P_SELECT);
    }
    buf_putc(p->b, ')');
}

static void print_bare(Printer *p, const KExpr *x)
{
    if (is_cast_to_half(p, x))
        buf_puts(p->b, "(" HALF ")");
    if (dialect_function(p->dialect, x)) {
        print_call(p, x);
        return;
    }
    switch (x->kind) {
    case KX_INT: print_int(p->b, x->type, x->i); break;
    case KX_FLOAT: print_float(p->b, x->type, x->f); break;
    case KX_TEMP: buf_puts(p->b, x->temp->name); break;
    case KX_INDEX: print_index(p, x->index); break;
    case KX_LOAD: print_load(p, x); break;
    case KX_UNARY: print_unary(p, x); break;
    case KX_DISTINCT: buf_printf(p->b, "%s != %s", x->array->name, x->other->name); break;
    case KX_BINARY: print_binary(p, x); break;
    case KX_CALL: break;
    case KX_SELECT:
        print_expr(p, x->arg[0], P_LOR);
        buf_puts(p->b, " ? ");
        print_expr(p, x->arg[1], P_LOR);
        buf_puts(p->b, " : ");
        print_expr(p, x->arg[2], P_SELECT);
        break;
    case KX_CAST:
        if (x->type == TYPE_PRED) {
            print_expr(p, x->arg[0], P_REL);
            buf_puts(p->b, " != 0");
        } else {
            buf_printf(p->b, "(%s)", dialect_type(p->dialect, x->type));
            print_expr(p, x->arg[0], P_UNARY);
        }
        break;
    }
}

/* An index that has 32 bits anyway is not converted to as many. */
static const KExpr *without_cast(const Printer *p, const KExpr *x)
{
    return x->kind == KX_CAST && x->type == TYPE_S32 && x->arg[0]->kind == KX_INDEX && has_narrow_indices(p) ? x->arg[0] : x;
}

void print_expr(Printer *p, const KExpr *x, int least)
{
    x = without_cast(p, x);
    bool parens = strength_of(p, x) < least;
    if (parens)
        buf_putc(p->b, '(');
    print_bare(p, x);
    if (parens)
        buf_putc(p->b, ')');
}

/* One statement without braces needed around it? */
static bool is_single(const KBlock *b)
{
    return b->first && !b->first->next && b->first->kind != KS_DECLARE && b->first->kind != KS_ARRAY;
}

static bool wants_braces(const KBlock *b)
{
    return !is_single(b) || (b->first->kind == KS_IF && b->first->other);
}

/* Between an if and its else nothing may stand that could take the else for itself. */
static bool wants_braces_before_else(const KBlock *b)
{
    return !is_single(b) || b->first->body;
}

static void print_block(Printer *p, const KBlock *b, int depth);

void print_start(Printer *p, const KStmt *s)
{
    if (s->from)
        print_index(p, s->from);
    else
        buf_printf(p->b, "%lld", (long long)s->loop->lo);
}

void print_end(Printer *p, const KStmt *s)
{
    if (s->end)
        print_index(p, s->end);
    else
        buf_printf(p->b, "%lld", (long long)s->loop->hi + 1);
}

void print_hints(Printer *p, const KStmt *s, int depth)
{
    if (p->dialect->hints && kernel_loop_is_independent(s)) {
        indent(p, depth);
        buf_puts(p->b, "HLO_INDEPENDENT\n");
    }
    if (p->dialect->hints && s->rolled) {
        indent(p, depth);
        buf_puts(p->b, "HLO_ROLLED\n");
    }
    if (p->dialect->hints && s->unrolled) {
        indent(p, depth);
        buf_puts(p->b, "HLO_UNROLLED\n");
    }
}

/* rows_to_columns_32(x_2, &x[i0 * 640], 10, 10, 64); pieces_block_backwards(x_2, &x[i0 * 192], 12, 64); */
static void print_turning(Printer *p, const Turning *t, int depth)
{
    indent(p, depth);
    buf_printf(p->b, "%s(&%s[", turning_function(t), t->to->name);
    print_index(p, t->to_at);
    buf_printf(p->b, "], &%s[", t->from->name);
    print_index(p, t->from_at);
    if (t->backwards)
        buf_printf(p->b, "], %lld, %lld);\n", (long long)t->columns * type_bytes(t->to->type), (long long)t->rows);
    else
        buf_printf(p->b, "], %lld, %lld, %lld);\n", (long long)t->stride, (long long)t->columns, (long long)t->rows);
}

/* ---- short loops ---- */

/* 60 elements as 48, 8 and 4. */
static void print_in_parts(Printer *p, const KStmt *s, const LoopParts *l, int depth)
{
    KStmt part = *s;
    indent(p, depth);
    buf_puts(p->b, "{\n");
    for (int64_t from = s->loop->lo, n, back; from <= s->loop->hi; from += n) {
        char start[24], stop[24];
        n = loop_next_part(l, s->loop->hi + 1 - from, &back);
        part.rolled = s->rolled || n + back <= LOOP_UNROLLED;
        snprintf(start, sizeof start, "%lld", (long long)(from - back));
        snprintf(stop, sizeof stop, "%lld", (long long)(from + n));
        print_plain_for(p, &part, start, stop, depth + 1);
    }
    indent(p, depth);
    buf_puts(p->b, "}\n");
}

static void print_for(Printer *p, const KStmt *s, int depth)
{
    LoopBlocks b;
    LoopParts  l;
    if (p->dialect->blocks && s->turning)
        print_turning(p, s->turning, depth);
    else if (p->dialect->blocks && loop_blocks(s, &b))
        print_in_blocks(p, s, &b, depth);
    else if (p->dialect->hints && loop_in_parts(s, &l))
        print_in_parts(p, s, &l, depth);
    else
        print_plain_for(p, s, NULL, NULL, depth);
}

/* fetch_ahead(&x[i0 * 2048 + i1 * 64 + 2048], 256); */
static void print_fetches(Printer *p, const KStmt *s, int depth)
{
    for (int32_t k = 0; k < s->n_fetched; k++) {
        const KFetch *x = &s->fetched[k];
        indent(p, depth);
        buf_printf(p->b, "%s(&%s[", kernel_fetching_function(x), x->array->name);
        print_index(p, x->index);
        buf_printf(p->b, "], %lld);\n", (long long)x->bytes);
    }
}

void print_plain_for(Printer *p, const KStmt *s, const char *start, const char *end, int depth)
{
    const char *i = s->loop->name;
    print_hints(p, s, depth);
    indent(p, depth);
    buf_printf(p->b, "for (%s %s = ", p->dialect->index, i);
    if (start)
        buf_puts(p->b, start);
    else
        print_start(p, s);
    buf_printf(p->b, "; %s < ", i);
    if (end)
        buf_puts(p->b, end);
    else
        print_end(p, s);
    buf_printf(p->b, "; %s++)", i);
    const bool in_turn = p->dialect->hints && s->in_turn, fetches = p->dialect->hints && s->n_fetched > 0, braces = in_turn || fetches || wants_braces(s->body);
    buf_puts(p->b, braces ? " {\n" : "\n");
    if (in_turn) {
        indent(p, depth + 1);
        buf_puts(p->b, "HLO_IN_TURN;\n");
    }
    if (fetches)
        print_fetches(p, s, depth + 1);
    print_block(p, s->body, depth + 1);
    if (braces) {
        indent(p, depth);
        buf_puts(p->b, "}\n");
    }
}

static void print_if(Printer *p, const KStmt *s, int depth)
{
    bool braces = s->other ? wants_braces_before_else(s->body) || wants_braces(s->other) : wants_braces(s->body);
    buf_puts(p->b, "if (");
    print_expr(p, s->value, P_SELECT);
    buf_puts(p->b, braces ? ") {\n" : ")\n");
    print_block(p, s->body, depth + 1);
    if (s->other) {
        indent(p, depth);
        bool chain = is_single(s->other) && s->other->first->kind == KS_IF;
        buf_puts(p->b, braces ? "} else" : "else");
        if (chain) {
            buf_putc(p->b, ' ');
            print_if(p, s->other->first, depth);
            return;
        }
        buf_puts(p->b, braces ? " {\n" : "\n");
        print_block(p, s->other, depth + 1);
    }
    if (braces) {
        indent(p, depth);
        buf_puts(p->b, "}\n");
    }
}

/* A loop that begins with the question whether it goes on asks it in its head. */
static void print_braced(Printer *p, const KStmt *s, int depth)
{
    KBlock       body = *s->body;
    const KStmt *first = s->kind == KS_LOOP ? body.first : NULL;
    if (first && first->kind == KS_BREAK) {
        body.first = first->next;
        buf_puts(p->b, "while (");
        print_expr(p, first->value, P_SELECT);
        buf_puts(p->b, ") {\n");
    } else
        buf_puts(p->b, s->kind == KS_LOOP ? "while (1) {\n" : "{\n");
    print_block(p, &body, depth + 1);
    indent(p, depth);
    buf_puts(p->b, "}\n");
}

static void print_break(Printer *p, const KStmt *s, int depth)
{
    buf_puts(p->b, "if (!");
    print_expr(p, s->value, P_UNARY);
    buf_puts(p->b, ")\n");
    indent(p, depth + 1);
    buf_puts(p->b, "break;\n");
}

/* " = x", or " += x" where the value is the place itself plus x. */
static void print_assignment(Printer *p, const KStmt *s)
{
    const KExpr *v = s->value, *x = v->kind == KX_BINARY ? v->arg[0] : NULL;
    bool compound = x && !dialect_function(p->dialect, v) && operators[v->op].strength >= P_AND && operators[v->op].strength != P_EQ && operators[v->op].strength != P_REL &&
                    (s->kind == KS_ASSIGN ? x->kind == KX_TEMP && x->temp == s->temp
                                          : x->kind == KX_LOAD && x->array == s->array && ix_equal(x->index, s->index));
    if (compound)
        buf_printf(p->b, " %s= ", operators[v->op].text);
    else
        buf_puts(p->b, " = ");
    print_expr(p, compound ? v->arg[1] : v, P_SELECT);
}

/* f(&sums[i], x, y) */
static void print_filling(Printer *p, const KStmt *s)
{
    buf_printf(p->b, "%s(&%s[", s->value->fn, s->array->name);
    print_index(p, s->index);
    buf_putc(p->b, ']');
    for (int32_t k = 0; k < s->value->n; k++) {
        buf_puts(p->b, ", ");
        print_expr(p, s->value->arg[k], P_SELECT);
    }
    buf_putc(p->b, ')');
}

static bool is_extreme(const KStmt *s)
{
    return strcmp(s->atomic, "Min") == 0 || strcmp(s->atomic, "Max") == 0;
}

bool dialect_is_update(const KStmt *s)
{
    return s->atomic && (strcmp(s->atomic, "Mul") == 0 || (is_extreme(s) && type_is_float(s->array->type)) || type_bits(s->array->type) <= 16);
}

const char *dialect_update_function(const KStmt *s)
{
    static const char *const names[][2] = { { "min_f32", "max_f32" }, { "min_f64", "max_f64" } };
    const Type t = machine_type(s->array->type);
    if (is_extreme(s) && type_is_float(t))
        return names[t == TYPE_F64][strcmp(s->atomic, "Max") == 0];
    if (strcmp(s->atomic, "Add") == 0)
        return t == TYPE_S8 ? "add_s8" : t == TYPE_S16 ? "add_s16" : NULL;
    if (strcmp(s->atomic, "Mul") != 0)
        return NULL;
    return t == TYPE_S8 ? "mul_s8" : t == TYPE_S16 ? "mul_s16" : t == TYPE_S32 ? "mul_s32" : t == TYPE_S64 ? "mul_s64" : NULL;
}

const char *dialect_update_code(Arena *a, const KStmt *s, bool decode)
{
    const Type t = s->array->type;
    if (type_is_float(t) && type_bits(t) <= 16)
        return decode ? arena_printf(a, "%s_to_f32", type_name(t)) : arena_printf(a, "f32_to_%s", type_name(t));
    return type_is_int(t) && type_bits(t) < 8 && !decode && !is_extreme(s) ? arena_printf(a, "wrap_%s", type_name(t)) : NULL;
}

/* a op b, of what is there and what comes. */
static void print_update_value(Printer *p, const KStmt *s, const char *decode)
{
    const char *fn = dialect_update_function(s);
    const bool  narrow = !decode && type_bits(s->array->type) <= 16;
    const char *sign = strcmp(s->atomic, "Add") == 0 ? "+" : strcmp(s->atomic, "Mul") == 0 ? "*" : strcmp(s->atomic, "And") == 0 ? "&" : strcmp(s->atomic, "Or") == 0 ? "|" : "^";
    if (fn && decode)
        buf_printf(p->b, "%s(%s(a), b)", fn, decode);
    else if (fn)
        buf_printf(p->b, "%s(a, b)", fn);
    else if (is_extreme(s))
        buf_printf(p->b, "a %s b ? a : b", strcmp(s->atomic, "Min") == 0 ? "<" : ">");
    else if (decode)
        buf_printf(p->b, "%s(a) %s b", decode, sign);
    else if (narrow)
        buf_printf(p->b, "(%s)(a %s b)", dialect_type(p->dialect, storage_type(s->array->type)), sign);
    else
        buf_printf(p->b, "a %s b", sign);
}

/* Of 16 bits CUDA has an exchange alone, bytes are exchanged with those beside them; what is narrower than the numbers that kernels compute with is rounded or wrapped each time. */
static void print_update(Printer *p, const KStmt *s)
{
    Arena      *a = arena_new();
    const Type  t = storage_type(s->array->type);
    const char *decode = dialect_update_code(a, s, true), *encode = dialect_update_code(a, s, false), *type = dialect_type(p->dialect, t);
    buf_printf(p->b, "%s(&%s[", type_bytes(t) == 1 ? "hlo_update_byte" : "hlo_update", s->array->name);
    print_index(p, s->index);
    buf_puts(p->b, "], ");
    print_expr(p, s->value, P_SELECT);
    buf_printf(p->b, ", [](%s a, %s b) { return ", type, decode ? "float" : type);
    if (encode)
        buf_printf(p->b, "%s(", encode);
    print_update_value(p, s, decode);
    buf_puts(p->b, encode ? "); })" : "; })");
    arena_free(a);
}

/* atomicAdd(&out[i], x): CUDA's. Of 64 bits it takes one type, which has the bits of the others; order depends on the sign. */
static void print_atomic(Printer *p, const KStmt *s)
{
    Type        t = s->array->type;
    const char *wide = type_bytes(t) < 8 || !type_is_int(t) ? NULL : is_extreme(s) && t == TYPE_S64 ? "long long" : "unsigned long long";
    buf_printf(p->b, type_is_complex(t) ? "hlo_atomic%s(" : "atomic%s(", s->atomic);
    if (wide)
        buf_printf(p->b, "(%s *)", wide);
    buf_printf(p->b, "&%s[", s->array->name);
    print_index(p, s->index);
    buf_puts(p->b, "], ");
    if (wide)
        buf_printf(p->b, "(%s)", wide);
    print_expr(p, s->value, wide ? P_UNARY : P_SELECT);
    buf_putc(p->b, ')');
}

/* From s on, statements beside each other load from the array and store to it: something is added up there. */
static bool adds_up(const KStmt *s, const KArray *array)
{
    bool loads = false, stores = false;
    for (; s; s = s->next) {
        loads |= s->value && kx_loads_from(s->value, array, NULL);
        stores |= s->kind == KS_STORE && s->array == array;
        if ((s->body && adds_up(s->body->first, array)) || (s->other && adds_up(s->other->first, array)))
            return true;
    }
    return loads && stores;
}

/* float e[16]; of many elements float hlo_room_e[1000], *restrict e = hlo_room_e: gcc, where it goes through them with a pointer of its own making, takes that for one into any array, and then keeps what a
 * loop adds up in memory (softmax of 100 rows of 50257 of f16 1526 and 992 us). What is added up there has no such name. */
static void print_array(Printer *p, const KStmt *s)
{
    enum { LONG = 512 };
    const KArray *x = s->array;
    const char   *type = element_type(p->dialect, x);
    if (p->dialect->hints && x->count > LONG && !adds_up(s->next, x))
        buf_printf(p->b, "%s hlo_room_%s[%lld], *%s %s = hlo_room_%s", type, x->name, (long long)x->count, p->dialect->restricted, x->name, x->name);
    else
        buf_printf(p->b, "%s %s[%lld]", type, x->name, (long long)x->count);
}

void print_stmt(Printer *p, const KStmt *s, int depth)
{
    if (s->kind == KS_FOR) {
        print_for(p, s, depth);
        return;
    }
    indent(p, depth);
    switch (s->kind) {
    case KS_DECLARE:
        buf_printf(p->b, "%s %s", p->halves && s->temp->type == TYPE_F32 ? HALF : dialect_type(p->dialect, s->temp->type), s->temp->name);
        if (s->value) {
            buf_puts(p->b, " = ");
            print_expr(p, s->value, P_SELECT);
        }
        break;
    case KS_ASSIGN:
        buf_puts(p->b, s->temp->name);
        print_assignment(p, s);
        break;
    case KS_STORE:
        if (s->atomic) {
            (dialect_is_update(s) ? print_update : print_atomic)(p, s);
            break;
        }
        if (s->fill_work > 0) {
            print_filling(p, s);
            break;
        }
        if (p->blocks && blocked_out(p->blocks, s) >= 0) {
            int32_t out = blocked_out(p->blocks, s);
            buf_printf(p->b, BLOCK_OUT "%d[" BLOCK_PLACE "] = ", out);
            print_expr(p, p->blocks->out[out].half ? s->value->arg[0] : s->value, P_SELECT);
            break;
        }
        buf_printf(p->b, "%s[", s->array->name);
        print_index(p, s->index);
        buf_putc(p->b, ']');
        print_assignment(p, s);
        break;
    case KS_ARRAY: print_array(p, s); break;
    case KS_IF: print_if(p, s, depth); return;
    case KS_LOOP: case KS_BLOCK: print_braced(p, s, depth); return;
    case KS_BREAK: print_break(p, s, depth); return;
    case KS_FOR: break;
    }
    buf_puts(p->b, ";\n");
}

static void print_block(Printer *p, const KBlock *b, int depth)
{
    for (const KStmt *s = b->first; s; s = s->next)
        if (s->kind != KS_ARRAY || s->array->read || s->array->written)
            print_stmt(p, s, depth);
}

static void print_table(Printer *p, const KArray *x)
{
    const Literal *l = x->literal;
    Type           t = storage_type(x->type), m = machine_type(x->type);
    buf_printf(p->b, "    static %s %s %s[%lld] = {", p->dialect->hints ? c_table(l->data, x->count * type_bytes(x->type), type_bytes(x->type)) : "const", element_type(p->dialect, x), x->name, (long long)x->count);
    for (int64_t i = 0; i < x->count; i++) {
        buf_puts(p->b, i % 8 == 0 ? "\n        " : " ");
        if (type_is_complex(m)) {
            buf_printf(p->b, "%s(", p->dialect->complex_function ? p->dialect->complex_function("__builtin_complex") : "__builtin_complex");
            print_float(p->b, type_component(m), literal_get_f64(l, i));
            buf_puts(p->b, ", ");
            print_float(p->b, type_component(m), literal_get_imag(l, i));
            buf_putc(p->b, ')');
        } else if (type_is_float(t))
            print_float(p->b, t, literal_get_f64(l, i));
        else if (type_is_float(x->type)) /* a pattern */
            buf_printf(p->b, "0x%x", type_bytes(x->type) == 2 ? ((const uint16_t *)l->data)[i] : ((const uint8_t *)l->data)[i]);
        else
            print_int(p->b, t, literal_get_s64(l, i));
        buf_puts(p->b, i + 1 < x->count ? "," : "");
    }
    buf_puts(p->b, "\n    };\n");
}

void dialect_param_type(Buf *b, const Dialect *d, const Kernel *k, int32_t p)
{
    if (p == k->n_operands + k->n_results) {
        buf_puts(b, "char *");
        return;
    }
    const KArray *x = k->params[p];
    buf_printf(b, "%s%s *", p >= k->n_operands || x->written ? "" : "const ", element_type(d, x));
}

void dialect_param(Buf *b, const Dialect *d, const Kernel *k, int32_t p)
{
    bool memory = p == k->n_operands + k->n_results;
    dialect_param_type(b, d, k, p);
    if (memory || k->params[p]->restricted)
        buf_printf(b, "%s ", d->restricted);
    buf_puts(b, memory ? "memory" : k->params[p]->name);
}

int32_t dialect_param_number(const Kernel *k, int32_t r)
{
    int32_t n = k->n_operands + k->n_results;
    return r < k->n_results ? k->n_operands + r : r < n ? r - k->n_results : n;
}

void dialect_memory(Buf *b, const char *type, int64_t offset)
{
    buf_printf(b, offset ? "(%s *)(memory + %lld)" : "(%s *)memory", type, (long long)offset);
}

void dialect_arrays(Buf *b, const Dialect *d, const KernelPart *part)
{
    Printer p = { .b = b, .dialect = d };
    for (int32_t j = 0; j < part->n_arrays; j++) {
        const KArray *x = part->arrays[j];
        if (x->kind == KARRAY_CONST)
            print_table(&p, x);
        else if (x->kind == KARRAY_TEMP) {
            buf_printf(b, "    %s *%s %s = ", element_type(d, x), d->restricted, x->name);
            dialect_memory(b, element_type(d, x), x->offset);
            buf_puts(b, ";\n");
        }
    }
}

bool dialect_wants_braces(const KBlock *x)
{
    return wants_braces(x);
}

void dialect_expr(Buf *b, const Dialect *d, const KExpr *x)
{
    Printer p = { .b = b, .dialect = d };
    print_expr(&p, x, P_SELECT);
}

void dialect_index(Buf *b, const Dialect *d, const Ix *x)
{
    Printer p = { .b = b, .dialect = d };
    print_index(&p, x);
}

void dialect_stmt(Buf *b, const Dialect *d, const KStmt *s, int depth)
{
    Printer p = { .b = b, .dialect = d };
    print_stmt(&p, s, depth);
}

void dialect_block(Buf *b, const Dialect *d, const KBlock *x, int depth)
{
    Printer p = { .b = b, .dialect = d };
    print_block(&p, x, depth);
}
