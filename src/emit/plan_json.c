/* The Program as one JSON object: what plan_report.c tells people. Buffers are named "args[0]", "results[0]", "v_x" (scratch), "c_x" (constants), "c_x[trip]" (an element of one in each trip of a loop), as there. */
#include "emit/program.h"

static void put_name(Buf *b, const Program *p, const Buffer *x)
{
    if (!x)
        buf_puts(b, "null");
    else if (x->kind == BUFFER_SCRATCH || x->kind == BUFFER_CONST)
        buf_json(b, x->kind == BUFFER_CONST ? p->constants[x->index].name : x->name);
    else if (x->kind == BUFFER_COUNT)
        buf_printf(b, x->ahead ? "\"%s[trip + %d]\"" : "\"%s[trip]\"", p->constants[x->index].name, x->ahead);
    else
        buf_printf(b, "\"%s[%d]\"", x->kind == BUFFER_ARG ? "args" : "results", x->index);
}

static void put_shape(Buf *b, const Shape *s)
{
    Buf text = {0};
    shape_print(&text, s, !layout_is_row_major(s));
    buf_puts(b, ", \"shape\": ");
    buf_json(b, text.p ? text.p : "");
    buf_free(&text);
}

static void put_leaves(Buf *b, const char *what, int32_t n, const ProgramLeaf *v)
{
    buf_printf(b, ",\n \"%s\": [", what);
    for (int32_t k = 0; k < n; k++) {
        buf_puts(b, k ? ",\n  {\"name\": " : "\n  {\"name\": ");
        buf_json(b, v[k].name);
        put_shape(b, v[k].shape);
        buf_printf(b, ", \"bytes\": %lld", (long long)v[k].bytes);
        if (v[k].alias >= 0)
            buf_printf(b, ", \"may_be\": %d", v[k].alias);
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
}

static void put_constants(Buf *b, const Program *p)
{
    buf_puts(b, ",\n \"constants\": [");
    for (int32_t k = 0; k < p->n_constants; k++) {
        buf_puts(b, k ? ",\n  {\"name\": " : "\n  {\"name\": ");
        buf_json(b, p->constants[k].name);
        put_shape(b, p->constants[k].shape);
        buf_printf(b, ", \"bytes\": %lld}", (long long)p->constants[k].bytes);
    }
    buf_putc(b, ']');
}

static void put_scratch(Buf *b, const Buffer *x)
{
    buf_puts(b, "{\"name\": ");
    buf_json(b, x->name);
    put_shape(b, x->shape);
    buf_printf(b, ", \"bytes\": %lld, \"offset\": %lld, \"live\": [", (long long)x->bytes, (long long)x->offset);
    for (int32_t k = 0; k < x->n_lives; k++)
        buf_printf(b, "%s[%d, %d]", k ? ", " : "", x->lives[k].from, x->lives[k].to);
    buf_puts(b, "], \"values\": [");
    for (int32_t k = 0, n = 0; k < x->n_values; k++)
        if (k == 0 || x->values[k] != x->values[k - 1]) {
            buf_puts(b, n++ ? ", " : "");
            buf_json(b, x->values[k]->name);
        }
    buf_puts(b, "]}");
}

static const char *kind_of(const Step *s)
{
    static const char *const names[] = {
        [STEP_KERNEL] = "kernel", [STEP_CALL] = "call", [STEP_COPY] = "copy", [STEP_EXCHANGE] = "exchange", [STEP_CHECK] = "check",
        [STEP_REPLICA] = "replica", [STEP_PARTITION] = "partition", [STEP_RANDOM] = "random", [STEP_SEED] = "seed", [STEP_VALUE] = "value",
        [STEP_WHILE] = "while", [STEP_IF] = "if",
    };
    return names[s->kind];
}

static void put_buffers(Buf *b, const Program *p, const Step *s, int32_t from, int32_t to)
{
    buf_putc(b, '[');
    for (int32_t k = from; k < to; k++) {
        buf_puts(b, k > from ? ", " : "");
        put_name(b, p, s->buffers[k]);
    }
    buf_putc(b, ']');
}

static void put_block(Buf *b, const Program *p, const Block *x);

/* What a step reads and writes. A while's and an if's one buffer is what it tests. */
static void put_step(Buf *b, const Program *p, const Step *s)
{
    bool    tests = s->kind == STEP_WHILE || s->kind == STEP_IF || s->kind == STEP_CHECK || s->kind == STEP_VALUE;
    int32_t reads = tests ? s->n_buffers : s->kind == STEP_COPY ? 1 : s->n_operands;
    buf_printf(b, "{\"step\": %d, \"kind\": \"%s\", \"instruction\": ", s->number, kind_of(s));
    buf_json(b, s->inst->name);
    if (s->kind == STEP_KERNEL) {
        buf_puts(b, ", \"function\": ");
        buf_json(b, p->functions[s->function].name);
    } else if (s->kind == STEP_CALL) {
        buf_puts(b, ", \"function\": ");
        buf_json(b, library_symbol(s->call));
    }
    buf_puts(b, ", \"reads\": ");
    put_buffers(b, p, s, 0, reads);
    buf_puts(b, ", \"writes\": ");
    put_buffers(b, p, s, reads, s->n_buffers);
    if (s->kind == STEP_WHILE && s->n_buffers == 0)
        buf_printf(b, ", \"trips\": %lld", (long long)s->trips);
    for (int32_t e = 0; e < s->n_turns; e++) {
        buf_puts(b, e ? ", [" : ", \"turns\": [[");
        put_name(b, p, s->turns[e].now);
        buf_puts(b, ", ");
        put_name(b, p, s->turns[e].next);
        buf_puts(b, e == s->n_turns - 1 ? "]]" : "]");
    }
    if (s->kind == STEP_WHILE) {
        buf_puts(b, ", \"condition\": ");
        put_block(b, p, &s->condition);
    }
    buf_puts(b, s->n_blocks ? ", \"blocks\": [" : "");
    for (int32_t e = 0; e < s->n_blocks; e++) {
        buf_puts(b, e ? ", " : "");
        put_block(b, p, &s->blocks[e]);
    }
    buf_puts(b, s->n_blocks ? "]}" : "}");
}

static void put_block(Buf *b, const Program *p, const Block *x)
{
    buf_putc(b, '[');
    for (int32_t k = 0; k < x->n; k++) {
        buf_puts(b, k ? ",\n  " : "\n  ");
        put_step(b, p, x->v[k]);
    }
    buf_putc(b, ']');
}

void program_report_json(Buf *b, const Program *p)
{
    int32_t at;
    int64_t peak = program_peak(p, &at);
    buf_puts(b, "{\"program\": ");
    buf_json(b, p->name);
    buf_printf(b, ",\n \"kernels\": %d, \"functions\": %d, \"copies\": %d, \"library_calls\": %d,\n", p->n_kernels, program_kernel_functions(p), p->n_copies, p->n_library);
    buf_printf(b, " \"scratch_bytes\": %lld, \"buffer_bytes\": %lld, \"peak_bytes\": %lld, \"peak_step\": %d", (long long)p->scratch_bytes,
               (long long)p->buffer_bytes, (long long)peak, at);
    put_leaves(b, "args", p->n_args, p->args);
    put_leaves(b, "results", p->n_results, p->results);
    put_constants(b, p);
    buf_puts(b, ",\n \"buffers\": [");
    for (int32_t k = 0; k < p->n_buffers; k++) {
        buf_puts(b, k ? ",\n  " : "\n  ");
        put_scratch(b, p->buffers[k]);
    }
    buf_puts(b, "],\n \"steps\": ");
    put_block(b, p, &p->body);
    buf_puts(b, "}\n");
}
