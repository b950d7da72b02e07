/* The Program as text: sizes first, then where things lie, then what is done. One line each, for people and for FileCheck.
 *
 *     scratch: 192 bytes for 3 buffers of 320 bytes; 192 at once at step 2
 *     v_a f32[16] 64 bytes at 128, live in steps 0-2: %a %b              %b is made in the place of %a
 *     steps
 *       0 a_k: v_a <- args[0]  %a
 */
#include "emit/program.h"

static void put_shape(Buf *b, const Shape *s)
{
    shape_print(b, s, !layout_is_row_major(s));
}

static void put_buffer(Buf *b, const Program *p, const Buffer *x)
{
    static const char *const sides[] = { "args", "results" };
    if (!x)
        buf_puts(b, "-");
    else if (x->kind == BUFFER_SCRATCH)
        buf_puts(b, x->name);
    else if (x->kind == BUFFER_CONST)
        buf_puts(b, p->constants[x->index].name);
    else if (x->kind == BUFFER_COUNT)
        buf_printf(b, x->ahead ? "%s[trip + %d]" : "%s[trip]", p->constants[x->index].name, x->ahead);
    else
        buf_printf(b, "%s[%d]", sides[x->kind == BUFFER_RESULT], x->index);
}

static void put_buffers(Buf *b, const Program *p, const Step *s, int32_t from, int32_t to)
{
    for (int32_t k = from; k < to; k++) {
        if (k > from)
            buf_puts(b, ", ");
        put_buffer(b, p, s->buffers[k]);
    }
}

static void put_head(Buf *b, const Program *p, const Step *s)
{
    switch (s->kind) {
    case STEP_KERNEL:
    case STEP_CALL:
        if (s->kind == STEP_CALL)
            buf_printf(b, s->call->tile ? "%s calls %s with %s: " : "%s calls %s: ", s->call->name, library_symbol(s->call),
                       s->call->tile ? p->functions[s->call->tile_function].name : "");
        else
            buf_printf(b, "%s: ", p->functions[s->function].name);
        put_buffers(b, p, s, s->n_operands, s->n_buffers);
        buf_puts(b, " <- ");
        put_buffers(b, p, s, 0, s->n_operands);
        break;
    case STEP_COPY:
        buf_puts(b, "copy: ");
        put_buffer(b, p, s->buffers[1]);
        buf_puts(b, " <- ");
        put_buffer(b, p, s->buffers[0]);
        buf_printf(b, ", %lld bytes", (long long)s->buffers[1]->bytes);
        break;
    case STEP_EXCHANGE:
        buf_printf(b, "exchange %s: ", s->exchange->id);
        put_buffers(b, p, s, s->n_operands, s->n_buffers);
        buf_puts(b, " <- ");
        put_buffers(b, p, s, 0, s->n_operands);
        break;
    case STEP_CHECK:
        buf_puts(b, "check ");
        put_buffer(b, p, s->buffers[0]);
        break;
    case STEP_REPLICA:
    case STEP_PARTITION:
    case STEP_RANDOM:
    case STEP_SEED:
        buf_printf(b, "%s: ", s->kind == STEP_RANDOM ? "random state" : s->kind == STEP_SEED ? "seed" : op_name(s->inst->op));
        put_buffer(b, p, s->buffers[0]);
        break;
    case STEP_VALUE:
        buf_puts(b, "value: ");
        put_buffers(b, p, s, 0, s->n_buffers);
        break;
    case STEP_WHILE:
    case STEP_IF:
        buf_puts(b, s->kind == STEP_WHILE ? "while " : "if ");
        if (s->n_buffers > 0)
            put_buffer(b, p, s->buffers[0]);
        else
            buf_printf(b, "counted, %lld times", (long long)s->trips);
        for (int32_t k = 0; k < s->n_turns; k++) {
            buf_puts(b, ", ");
            put_buffer(b, p, s->turns[k].now);
            buf_puts(b, " in turn with ");
            put_buffer(b, p, s->turns[k].next);
        }
        break;
    }
    buf_printf(b, "  %%%s\n", s->inst->name);
}

static void put_block(Buf *b, const Program *p, const Block *x, int depth)
{
    for (int32_t k = 0; k < x->n; k++) {
        const Step *s = x->v[k];
        buf_printf(b, "%*s%d ", 2 * depth, "", s->number);
        put_head(b, p, s);
        if (s->kind == STEP_WHILE && s->n_buffers > 0) {
            buf_printf(b, "%*scondition\n", 2 * depth, "");
            put_block(b, p, &s->condition, depth + 1);
        }
        for (int32_t e = 0; e < s->n_blocks; e++) {
            if (s->kind == STEP_WHILE)
                buf_printf(b, "%*sbody\n", 2 * depth, "");
            else
                buf_printf(b, "%*sbranch %d\n", 2 * depth, "", e);
            put_block(b, p, &s->blocks[e], depth + 1);
        }
    }
}

static void put_leaves(Buf *b, const char *what, const char *partner, int32_t n, const ProgramLeaf *v)
{
    for (int32_t k = 0; k < n; k++) {
        buf_printf(b, "%s[%d] ", what, k);
        put_shape(b, v[k].shape);
        buf_printf(b, " %lld bytes %s", (long long)v[k].bytes, v[k].name);
        if (v[k].alias >= 0)
            buf_printf(b, " (may be %s[%d])", partner, v[k].alias);
        buf_putc(b, '\n');
    }
}

int64_t program_peak(const Program *p, int32_t *at)
{
    Arena   *a = arena_new();
    int64_t *change = ARENA_ARRAY(a, int64_t, (int64_t)p->n_steps + 1), live = 0, most = 0;
    *at = -1;
    for (int32_t k = 0; k < p->n_buffers; k++) {
        const Buffer *x = p->buffers[k];
        for (int32_t j = 0; j < x->n_lives; j++)
            if (j == 0 || x->lives[j].from > x->lives[j - 1].to) { /* two in one step count once */
                change[x->lives[j].from] += x->bytes;
                change[x->lives[j].to + 1] -= x->bytes;
            } else if (x->lives[j].to > x->lives[j - 1].to) {
                change[x->lives[j - 1].to + 1] += x->bytes;
                change[x->lives[j].to + 1] -= x->bytes;
            }
    }
    for (int32_t s = 0; s < p->n_steps; s++) {
        live += change[s];
        if (live > most) {
            most = live;
            *at = s;
        }
    }
    arena_free(a);
    return most;
}

/* Each name once, however often its computation is called. */
static void put_values(Buf *b, const Buffer *x)
{
    for (int32_t k = 0; k < x->n_values; k++)
        if (k == 0 || x->values[k] != x->values[k - 1])
            buf_printf(b, " %%%s", x->values[k]->name);
}

static void put_lives(Buf *b, const Buffer *x)
{
    for (int32_t k = 0; k < x->n_lives; k++) {
        if (x->lives[k].from < x->lives[k].to)
            buf_printf(b, "%s%d-%d", k ? ", " : "", x->lives[k].from, x->lives[k].to);
        else
            buf_printf(b, "%s%d", k ? ", " : "", x->lives[k].from);
    }
}

static void put_scratch(Buf *b, const Buffer *x)
{
    buf_printf(b, "%s ", x->name);
    put_shape(b, x->shape);
    buf_printf(b, " %lld bytes at %lld, live in steps ", (long long)x->bytes, (long long)x->offset);
    put_lives(b, x);
    buf_putc(b, ':');
    put_values(b, x);
    buf_putc(b, '\n');
}

int32_t program_kernel_functions(const Program *p)
{
    int32_t n = 0;
    for (int32_t k = 0; k < p->n_functions; k++)
        n += kernel_tile_row(p->functions[k].kernel) == 0;
    return n;
}

void program_report(Buf *b, const Program *p)
{
    buf_printf(b, "program %s: %d kernels in %d functions, %d copies", p->name, p->n_kernels, program_kernel_functions(p), p->n_copies);
    if (p->n_library > 0)
        buf_printf(b, ", %d library calls in %d functions", p->n_library, p->n_calls);
    buf_putc(b, '\n');
    buf_printf(b, "scratch: %lld bytes for %d buffers of %lld bytes", (long long)p->scratch_bytes, p->n_buffers, (long long)p->buffer_bytes);
    int32_t at;
    int64_t peak = program_peak(p, &at);
    if (at >= 0)
        buf_printf(b, "; %lld at once at step %d", (long long)peak, at);
    buf_putc(b, '\n');
    put_leaves(b, "args", "results", p->n_args, p->args);
    put_leaves(b, "results", "args", p->n_results, p->results);
    for (int32_t k = 0; k < p->n_constants; k++) {
        buf_printf(b, "%s ", p->constants[k].name);
        put_shape(b, p->constants[k].shape);
        buf_printf(b, " %lld bytes\n", (long long)p->constants[k].bytes);
    }
    for (int32_t k = 0; k < p->n_buffers; k++)
        put_scratch(b, p->buffers[k]);
    buf_puts(b, "steps\n");
    put_block(b, p, &p->body, 1);
}
