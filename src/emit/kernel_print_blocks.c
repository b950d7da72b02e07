/* Loops in blocks, loop_blocks.h, as text. */
#include "emit/printer.h"

#include <stdlib.h>
#include <string.h>

bool is_wide(const LoopBlocks *b, int32_t taken)
{
    return b->taken.v[taken].half;
}

static bool has_steps(const LoopBlocks *b)
{
    return b->rounds.n_steps > 1 || b->rounds.halves;
}

/* float hlo_in0[16]; */
static void print_block_array(Printer *p, const char *type, const char *name, int32_t number, int64_t size, int depth)
{
    indent(p, depth);
    buf_printf(p->b, "%s %s%d[%d];\n", type, name, number, (int)size);
}

/* Of what one statement computes, as that is and as others want it. */
static void print_kept_array(Printer *p, const LoopRounds *r, const KTemp *temp, int32_t number, int64_t size, int depth)
{
    const uint8_t role = r->role[number];
    if (!(role & ROUND_KEPT))
        return;
    print_block_array(p, role & ROUND_HALF && temp->type == TYPE_F32 ? HALF : dialect_type(p->dialect, temp->type), BLOCK_KEPT, number, size, depth);
    if (!(role & ROUND_HALF) && role & ROUND_AS_F16)
        print_block_array(p, HALF, BLOCK_HALVES, number, size, depth);
    if (role & ROUND_AS_F32 && role & (ROUND_HALF | ROUND_AS_F16))
        print_block_array(p, "float", BLOCK_FLOATS, number, size, depth);
}

static void print_block_arrays(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    int32_t number = 0;
    for (int32_t k = 0; k < b->n_in; k++) {
        print_block_array(p, b->in[k].as_f16 ? HALF : "float", BLOCK_IN, k, b->size, depth);
        if (b->in[k].as_f16 && b->in[k].as_f32)
            print_block_array(p, "float", BLOCK_IN_FLOATS, k, b->size, depth);
    }
    for (int32_t k = 0; k < b->n_out; k++) {
        const Blocked *x = &b->out[k];
        if (!x->of)
            print_block_array(p, x->as_f16 ? HALF : x->half ? "float" : element_type(p->dialect, x->array), BLOCK_OUT, k, b->size, depth);
        if (x->half && (x->streamed || x->spread))
            print_block_array(p, element_type(p->dialect, x->array), BLOCK_NARROW, k, b->size, depth);
    }
    for (int32_t k = 0; k < b->taken.n_places && b->taken.n; k++)
        print_block_array(p, "uint32_t", BLOCK_PLACES, k, b->size, depth);
    for (int32_t k = 0; k < b->taken.n; k++) {
        if (!b->taken.v[k].to)
            print_block_array(p, element_type(p->dialect, b->taken.v[k].array), BLOCK_TAKEN, k, b->size, depth);
        if (is_wide(b, k))
            print_block_array(p, "float", BLOCK_WIDE, k, b->size, depth);
    }
    for (const KStmt *t = s->body->first; t && b->taken.n; t = t->next, number++)
        if (b->taken.role[number] & TAKEN_KEPT)
            print_block_array(p, dialect_type(p->dialect, t->temp->type), BLOCK_KEPT, number, b->size, depth);
    number = 0;
    for (const KStmt *t = s->body->first; t && has_steps(b); t = t->next)
        print_kept_array(p, &b->rounds, t->temp, number++, b->size, depth);
}

/* &x[i0 * 256 + hlo_from] */
static void print_block_place(Printer *p, const Blocked *x)
{
    buf_printf(p->b, "&%s[", x->array->name);
    print_index(p, x->index);
    buf_putc(p->b, ']');
}

/* const float *hlo_as_float3 = half_block_to_f32(hlo_floats3, hlo_kept3, 32); */
static void print_other(Printer *p, const char *type, const char *name, const char *room, const char *from, int32_t number, int64_t size, int depth)
{
    indent(p, depth);
    buf_printf(p->b, "const %s *%s%d = %s(%s%d, %s%d, %d);\n", type, name, number, strcmp(type, HALF) == 0 ? "half_block_of_f32" : "half_block_to_f32", room, number, from, number, (int)size);
}

static void print_block_in(Printer *p, const LoopBlocks *b, int depth)
{
    for (int32_t k = 0; k < b->n_in; k++) {
        indent(p, depth);
        buf_printf(p->b, "%s(" BLOCK_IN "%d, ", b->in[k].as_f16 ? "half_block_load" : block_as_f32(&b->in[k]), k);
        print_block_place(p, &b->in[k]);
        buf_printf(p->b, ", %d);\n", (int)b->size);
        if (b->in[k].as_f16 && b->in[k].as_f32)
            print_other(p, "float", BLOCK_IN_FLOAT, BLOCK_IN_FLOATS, BLOCK_IN, k, b->size, depth);
    }
}

/* i0 * 1024 + hlo_from * 16 */
static void print_fetched_place(Printer *p, const Fetched *x)
{
    const char *sum = "";
    if (!x->taken) {
        print_index(p, x->index);
        return;
    }
    for (int32_t k = 0; k < x->index->n; k++)
        if (is_term_around(&x->index->t[k], p->blocked)) {
            buf_printf(p->b, "%s%s * %lld", sum, x->index->t[k].atom->name, (long long)x->index->t[k].k);
            sum = " + ";
        }
    if (x->by)
        buf_printf(p->b, " + " BLOCK_FROM " * %lld", (long long)x->by);
}

/* fetch_ahead(&x[i0 * 256 + hlo_from * 2] + 512, 256); */
static void print_fetched(Printer *p, const LoopBlocks *b, int depth)
{
    for (int32_t k = 0; k < b->n_fetched; k++) {
        const Fetched *x = &b->fetched[k];
        indent(p, depth);
        buf_printf(p->b, "%s(&%s[", fetching_function(x), x->array->name);
        print_fetched_place(p, x);
        buf_printf(p->b, "] %c %lld, %lld);\n", x->ahead < 0 ? '-' : '+', llabs(x->ahead), (long long)x->bytes);
    }
}

static void print_block_out(Printer *p, const LoopBlocks *b, int depth)
{
    for (int32_t k = 0; k < b->n_out; k++) {
        const Blocked *x = &b->out[k];
        bool           streamed = x->streamed;
        if (loop_joins(b, x)) {
            indent(p, depth);
            buf_printf(p->b, "float_block_join(" BLOCK_OUT "%d, %d);\n", k, (int)b->size);
        }
        if (x->half) {
            indent(p, depth);
            buf_puts(p->b, x->array->type == TYPE_BF16 ? "f32_block_to_bf16(" : x->as_f16 ? "half_block_store(" : "f32_block_to_f16(");
            if (streamed || x->spread)
                buf_printf(p->b, BLOCK_NARROW "%d", k);
            else
                print_block_place(p, x);
            if (x->of) {
                buf_puts(p->b, ", ");
                print_block_place(p, &(Blocked){ .array = x->of->array, .index = x->of->index });
                buf_printf(p->b, ", %d);\n", (int)b->size);
            } else {
                buf_printf(p->b, ", " BLOCK_OUT "%d, %d);\n", k, (int)b->size);
            }
        }
        if (streamed) {
            indent(p, depth);
            buf_puts(p->b, "store_past_caches(");
            print_block_place(p, x);
            buf_printf(p->b, ", %s%d, %d);\n", x->half ? BLOCK_NARROW : BLOCK_OUT, k, (int)(b->size * type_bytes(x->array->type)));
        }
    }
}

/* for (int64_t hlo_k = 0; hlo_k < 32; hlo_k++) { */
static void open_block_loop(Printer *p, int64_t from, int64_t end, int depth)
{
    indent(p, depth);
    buf_printf(p->b, "for (%s " BLOCK_PLACE " = %d; " BLOCK_PLACE " < %d; " BLOCK_PLACE "++) {\n", p->dialect->index, (int)from, (int)end);
}

/* The next piece of a block's loop, where that has one. */
static bool open_piece(Printer *p, const KStmt *s, const LoopBlocks *b, int64_t *from, int depth)
{
    bool rolled;
    if (*from == b->size)
        return false;
    const int64_t end = *from + loop_piece(b, *from, &rolled);
    print_hints(p, s, depth);
    if (rolled && p->dialect->hints && !s->rolled && !s->unrolled) {
        indent(p, depth);
        buf_puts(p->b, "HLO_ROLLED\n");
    }
    open_block_loop(p, *from, end, depth);
    *from = end;
    return true;
}

static void close_block_loop(Printer *p, int depth)
{
    indent(p, depth);
    buf_puts(p->b, "}\n");
}

/* for (int64_t hlo_k = 0; hlo_k < 32; hlo_k++) { y[(hlo_from + hlo_k) * 2] = hlo_narrow0[hlo_k];  y[(hlo_from + hlo_k) * 2 + 1] = hlo_narrow1[hlo_k]; } */
static void print_spread(Printer *p, const LoopBlocks *b, int depth)
{
    Printer inner = *p;
    bool    spread = false;
    inner.place = BLOCK_FROM " + " BLOCK_PLACE;
    for (int32_t k = 0; k < b->n_out; k++)
        spread |= b->out[k].spread;
    if (!spread)
        return;
    open_block_loop(p, 0, b->size, depth);
    for (int32_t k = 0; k < b->n_out; k++)
        if (b->out[k].spread) {
            indent(p, depth + 1);
            buf_printf(p->b, "%s[", b->out[k].array->name);
            print_index(&inner, b->out[k].index);
            buf_printf(p->b, "] = " BLOCK_NARROW "%d[" BLOCK_PLACE "];\n", k);
        }
    close_block_loop(p, depth);
}

static void print_kept(Printer *p, const char *type, const KTemp *temp, const char *from, int32_t number, int depth)
{
    indent(p, depth);
    buf_printf(p->b, "%s %s = %s%d[" BLOCK_PLACE "];\n", type, temp->name, from, number);
}

static void print_keeping(Printer *p, int32_t number, const KExpr *x, int depth)
{
    indent(p, depth);
    buf_printf(p->b, BLOCK_KEPT "%d[" BLOCK_PLACE "] = ", number);
    print_expr(p, x, P_SELECT);
    buf_puts(p->b, ";\n");
}

static void print_places(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    Printer inner = *p;
    int32_t k = 0;
    inner.place = BLOCK_FROM " + " BLOCK_PLACE;
    if (loop_rolls_places(b) && p->dialect->hints) {
        indent(p, depth);
        buf_puts(p->b, "HLO_ROLLED\n");
    }
    open_block_loop(p, 0, b->size, depth);
    for (const KStmt *t = s->body->first; t; t = t->next, k++)
        if (b->taken.role[k] & TAKEN_PLACING) {
            print_stmt(&inner, t, depth + 1);
            if (b->taken.role[k] & TAKEN_KEPT)
                print_keeping(&inner, k, &(KExpr){ .kind = KX_TEMP, .type = t->temp->type, .temp = t->temp }, depth + 1);
        }
    for (k = 0; k < b->taken.n_places; k++) {
        indent(p, depth + 1);
        buf_printf(p->b, BLOCK_PLACES "%d[" BLOCK_PLACE "] = (uint32_t)", k);
        print_expr(&inner, &(KExpr){ .kind = KX_INDEX, .type = TYPE_S64, .index = b->taken.places[k] }, P_UNARY);
        buf_puts(p->b, ";\n");
    }
    close_block_loop(p, depth);
}

/* hlo_take_f32(hlo_taken0, t, hlo_place0, 256);  or hlo_step_f32(hlo_taken0, x + hlo_from * 16 + i0, 16, 256); */
static void print_take(Printer *p, const LoopBlocks *b, int32_t k, int depth)
{
    const Taken *x = &b->taken.v[k];
    int32_t      out = x->to ? blocked_out(b, x->to) : -1;
    indent(p, depth);
    buf_printf(p->b, x->by ? "hlo_step_%s(" : "hlo_take_%s(", type_name(storage_type(x->array->type)));
    if (out >= 0)
        buf_printf(p->b, BLOCK_OUT "%d", out);
    else if (x->to)
        print_block_place(p, &(Blocked){ .array = x->to->array, .index = x->to->index });
    else
        buf_printf(p->b, BLOCK_TAKEN "%d", k);
    if (x->by) {
        buf_puts(p->b, ", ");
        print_block_place(p, &(Blocked){ .array = x->array, .index = x->index });
        buf_printf(p->b, ", %lld, %d);\n", (long long)x->by, (int)b->size);
    } else {
        buf_printf(p->b, ", %s, " BLOCK_PLACES "%d, %d);\n", x->array->name, x->place, (int)b->size);
    }
    if (is_wide(b, k)) {
        indent(p, depth);
        buf_printf(p->b, "f16_block_to_f32(" BLOCK_WIDE "%d, " BLOCK_TAKEN "%d, %d);\n", k, k, (int)b->size);
    }
}

/* Those that are stored as they are, or those that are not. */
static void print_taken(Printer *p, const LoopBlocks *b, bool stored, int depth)
{
    for (int32_t k = 0; k < b->taken.n; k++)
        if (!b->taken.v[k].to == !stored)
            print_take(p, b, k, depth);
}

static bool is_stored_taken(const LoopBlocks *b, const KStmt *s)
{
    for (int32_t k = 0; k < b->taken.n; k++)
        if (b->taken.v[k].to == s)
            return true;
    return false;
}

/* What is not only for places. */
static bool is_rest(const LoopBlocks *b, const KStmt *s, int32_t number)
{
    return !b->taken.n || (b->taken.role[number] != TAKEN_PLACING && !is_stored_taken(b, s));
}

/* As the loop that is printed has it. */
static void print_wanted(Printer *p, const KTemp *temp, const LoopRounds *r, int32_t k, int depth)
{
    const uint8_t role = r->role[k];
    const bool    number = temp->type == TYPE_F32, home = !number || !(role & ROUND_HALF) == !p->halves, alone = !(role & ROUND_HALF) && !(role & ROUND_AS_F16);
    const char   *from = p->halves ? (home ? BLOCK_KEPT : BLOCK_HALF) : (home && (alone || !number)) ? BLOCK_KEPT : BLOCK_FLOAT;
    print_kept(p, number && p->halves ? HALF : dialect_type(p->dialect, temp->type), temp, from, k, depth);
}

/* Statement number k as that loop of a step has it: one of its own, a value of another one's, or nothing. */
static void print_in_step(Printer *p, const KStmt *s, const LoopRounds *r, int32_t k, int32_t step, bool wanted, int depth)
{
    const uint8_t role = r->role[k];
    const bool    own = round_is_in(r, k, step, p->halves, wanted);
    if (own && role & ROUND_BLOCK) {
        print_keeping(p, k, s->value->arg[0], depth);
    } else if (own) {
        print_stmt(p, s, depth);
        if (role & ROUND_KEPT)
            print_keeping(p, k, &(KExpr){ .kind = KX_TEMP, .type = s->temp->type, .temp = s->temp }, depth);
    } else if (wanted) {
        print_wanted(p, s->temp, r, k, depth);
    }
}

/* What is rounded after a loop, and made the other type. */
static void print_after_loop(Printer *p, const LoopRounds *r, int32_t k, int64_t size, int depth)
{
    const uint8_t role = r->role[k];
    const bool    half = role & ROUND_HALF, other = !half && role & ROUND_AS_F16;
    if (other) {
        print_other(p, HALF, BLOCK_HALF, BLOCK_HALVES, BLOCK_KEPT, k, size, depth);
    } else if (role & ROUND_BLOCK) {
        indent(p, depth);
        buf_printf(p->b, "%s(" BLOCK_KEPT "%d, %d);\n", half ? "half_block_round" : "f16_block_round", k, (int)size);
    }
    if (role & ROUND_AS_F32 && (half || other))
        print_other(p, "float", BLOCK_FLOAT, BLOCK_FLOATS, half ? BLOCK_KEPT : BLOCK_HALF, k, size, depth);
}

static bool is_own(const LoopRounds *r, int32_t k, int32_t step, bool half)
{
    return round_is_in(r, k, step, half, false);
}

/* One loop of a step, if there is anything in it. */
static void print_step(Printer *p, const KStmt *s, const LoopBlocks *b, int32_t step, bool half, int depth)
{
    const LoopRounds *r = &b->rounds;
    Printer           inner = *p;
    bool              wanted[MOST_STATEMENTS], any = false;
    int32_t           k = 0;
    for (const KStmt *t = s->body->first; t; t = t->next)
        any |= is_own(r, k++, step, half);
    if (!any)
        return;
    inner.halves = half ? s : NULL;
    round_wants(s, r, step, half, wanted);
    for (int64_t from = 0; open_piece(p, s, b, &from, depth);) {
        k = 0;
        for (const KStmt *t = s->body->first; t; t = t->next, k++)
            print_in_step(&inner, t, r, k, step, wanted[k], depth + 1);
        close_block_loop(p, depth);
    }
    k = 0;
    for (const KStmt *t = s->body->first; t; t = t->next, k++)
        if (is_own(r, k, step, half))
            print_after_loop(p, r, k, b->size, depth);
}

/* Loops for each step, and what is rounded after them. */
static void print_steps(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    for (int32_t step = 0; step < b->rounds.n_steps; step++) {
        print_step(p, s, b, step, true, depth);
        print_step(p, s, b, step, false, depth);
    }
}

static void print_rest_of_block(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    Printer inner = *p;
    int32_t k = 0, n = 0;
    for (const KStmt *t = s->body->first; t && !(b->n_out > 0 && b->out[0].of); t = t->next)
        n += is_rest(b, t, k++);
    if (!n)
        return;
    inner.blocks = b;
    inner.place = BLOCK_FROM " + " BLOCK_PLACE;
    if (has_steps(b)) {
        print_steps(&inner, s, b, depth);
        return;
    }
    for (int64_t from = 0; open_piece(p, s, b, &from, depth);) {
        k = 0;
        for (const KStmt *t = s->body->first; t; t = t->next, k++)
            if (b->taken.n && b->taken.role[k] & TAKEN_KEPT)
                print_kept(p, dialect_type(p->dialect, t->temp->type), t->temp, BLOCK_KEPT, k, depth + 1);
            else if (is_rest(b, t, k))
                print_stmt(&inner, t, depth + 1);
        close_block_loop(p, depth);
    }
}

static void print_one_block(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    Printer inner = *p;
    inner.blocked = s->loop;
    inner.place = BLOCK_FROM;
    print_block_arrays(p, s, b, depth);
    print_fetched(&inner, b, depth);
    print_block_in(&inner, b, depth);
    if (b->taken.n && b->taken.n_places)
        print_places(&inner, s, b, depth);
    print_taken(&inner, b, false, depth);
    print_rest_of_block(&inner, s, b, depth);
    print_taken(&inner, b, true, depth);
    print_block_out(&inner, b, depth);
    print_spread(&inner, b, depth);
}

/* What is before the first line of memory that the row has whole. */
static void print_before_line(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    enum { LINE = 64 };
    const Blocked *x = &b->out[b->line];
    Printer        inner = *p;
    inner.blocked = s->loop;
    inner.place = BLOCK_FROM;
    indent(p, depth);
    buf_printf(p->b, "%s " BLOCK_LINE " = " BLOCK_FROM " + (-(", p->dialect->index);
    print_index(&inner, x->index);
    buf_printf(p->b, ") & %d);\n", (int)(LINE / type_bytes(x->array->type) - 1));
    print_plain_for(p, s, BLOCK_FROM, BLOCK_LINE, depth);
}

/* Smaller blocks of what the others leave; whether they leave something. */
static bool print_small_blocks(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    LoopBlocks small;
    if (!loop_small_blocks(s, b, &small))
        return true;
    indent(p, depth);
    buf_printf(p->b, "for (; " BLOCK_FROM " + %d <= ", (int)small.size);
    print_end(p, s);
    buf_printf(p->b, "; " BLOCK_FROM " += %d) {\n", (int)small.size);
    print_one_block(p, s, &small, depth + 1);
    indent(p, depth);
    buf_puts(p->b, "}\n");
    return s->from || s->end || b->line >= 0 || (s->loop->hi - s->loop->lo + 1) % small.size != 0;
}

/* What blocks leave: one more that ends with the loop, else the loop itself. */
static void print_last(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    LoopBlocks last;
    if (!loop_last_block(s, b, &last)) {
        Printer inner = *p;
        inner.alone = loop_rest_is_alone(s, b);
        print_plain_for(&inner, s, BLOCK_FROM, NULL, depth);
        return;
    }
    indent(p, depth);
    buf_printf(p->b, BLOCK_FROM " = %lld;\n", (long long)(s->loop->hi + 1 - last.size));
    indent(p, depth);
    buf_puts(p->b, "{\n");
    print_one_block(p, s, &last, depth + 1);
    indent(p, depth);
    buf_puts(p->b, "}\n");
}

/* The blocks, smaller ones, and where they end the loop itself. */
void print_in_blocks(Printer *p, const KStmt *s, const LoopBlocks *b, int depth)
{
    int inside = depth + b->rest;
    if (b->rest) {
        indent(p, depth);
        buf_puts(p->b, "{\n");
        indent(p, inside);
        buf_printf(p->b, "%s " BLOCK_FROM " = ", p->dialect->index);
        print_start(p, s);
        buf_puts(p->b, ";\n");
        if (b->line >= 0)
            print_before_line(p, s, b, inside);
        indent(p, inside);
        buf_printf(p->b, "for (%s; " BLOCK_FROM " + %d <= ", b->line >= 0 ? BLOCK_FROM " = " BLOCK_LINE : "", (int)b->size);
    } else {
        indent(p, inside);
        buf_printf(p->b, "for (%s " BLOCK_FROM " = ", p->dialect->index);
        print_start(p, s);
        buf_puts(p->b, "; " BLOCK_FROM " < ");
    }
    print_end(p, s);
    buf_printf(p->b, "; " BLOCK_FROM " += %d) {\n", (int)b->size);
    print_one_block(p, s, b, inside + 1);
    indent(p, inside);
    buf_puts(p->b, "}\n");
    if (!b->rest)
        return;
    if (print_small_blocks(p, s, b, inside))
        print_last(p, s, b, inside);
    indent(p, depth);
    buf_puts(p->b, "}\n");
}
