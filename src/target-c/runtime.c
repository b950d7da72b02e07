/* Calls of the runtime (src/runtime) as C functions. What is called is declared with the words of hlort.h.
 *
 *     static __attribute__((noinline)) void dot_3(const hlo_env *env, float *c, const float *a, const float *b, void *work)
 *     {
 *         static const hlort_dot dot = { .m = 128, .n = 3072, .k = 768, .a_row = 768, .a_col = 1, .b_row = 3072, .b_col = 1, .c_row = 3072 };
 *         hlort_dot_f32(&dot, &(hlort_how){ .work = work, .pool = hlo_pool(env) }, a, b, c);
 *     } */
#include "target-c/runtime_text.h"
#include "emit/c_text.h"
#include "emit/kernel_ir.h"
#include "target-c/target_c.h"

static const char *c_type(Type t)
{
    switch (t) {
    case TYPE_C64:
    case TYPE_F32: return "float";
    case TYPE_C128:
    case TYPE_F64: return "double";
    case TYPE_BF16:
    case TYPE_F16: return "uint16_t";
    case TYPE_S8: return "int8_t";
    case TYPE_U8: return "uint8_t";
    case TYPE_S32:
    case TYPE_U32: return "uint32_t";
    default: die("%s is no type of the runtime's", type_name(t));
    }
}

void target_c_runtime_prelude(Buf *b, const Program *p)
{
    if (p->runtime)
        buf_printf(b, "\n%s"
                      "\nstatic inline hlort_pool *hlo_pool(const hlo_env *env)\n"
                      "{\n"
                      "    return env && env->size >= __builtin_offsetof(hlo_env, pool) + sizeof env->pool ? env->pool : 0;\n"
                      "}\n",
                   runtime_declarations);
}

static void put_head(Buf *b, const LibraryCall *x, Type in, Type out)
{
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, %s%s%s *c, const %s *a, const %s *b, void *work)\n{\n", x->name,
               x->packed_bytes > 0 ? "hlort_packed *packed, " : "", x->tile ? "void *const *context, " : "", c_type(out), c_type(in), c_type(in));
}

/* The last line of a product. */
static void put_product(Buf *b, const Program *p, const LibraryCall *x, const char *symbol, const char *of)
{
    Arena *a = arena_new();
    buf_printf(b, "    %s(&%s, &(hlort_how){ .work = work, .pool = hlo_pool(env)", symbol, of);
    if (x->tile)
        buf_printf(b, ", .epilogue = %s, .context = context", target_c_tile_name(a, p->functions[x->tile_function].name));
    if (x->packed_bytes > 0)
        buf_puts(b, ", .packed = packed");
    buf_puts(b, " }, a, b, c);\n}\n");
    arena_free(a);
}

static void put_dot(Buf *b, const Program *p, const LibraryCall *x)
{
    const DotCall *d = x->dot;
    put_head(b, x, d->in, d->out);
    buf_printf(b,
               "    static const hlort_dot dot = {\n"
               "        .m = %lld, .n = %lld, .k = %lld, .a_row = %lld, .a_col = %lld, .b_row = %lld, .b_col = %lld, .c_row = %lld,\n",
               (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->a_row, (long long)d->a_col, (long long)d->b_row, (long long)d->b_col,
               (long long)d->c_row);
    if (d->n_batch > 0)
        buf_printf(b, "        .n_batch = %d, .batch = { ", d->n_batch);
    for (int32_t k = 0; k < d->n_batch; k++)
        buf_printf(b, "%s{ %lld, %lld, %lld, %lld }", k > 0 ? ", " : "", (long long)d->batch[k].count, (long long)d->batch[k].a,
                   (long long)d->batch[k].b, (long long)d->batch[k].c);
    buf_puts(b, d->n_batch > 0 ? " },\n    };\n" : "    };\n");
    put_product(b, p, x, d->symbol, "dot");
}

static void put_conv(Buf *b, const Program *p, const LibraryCall *x)
{
    const hlort_conv *v = &x->conv->v;
    put_head(b, x, x->conv->in, x->conv->out);
    buf_printf(b,
               "    static const hlort_conv conv = {\n%s"
               "        .batch = %lld, .groups = %lld, .in = %lld, .out = %lld,\n"
               "        .x_batch = %lld, .x_group = %lld, .x_in = %lld,\n"
               "        .w_first = %lld, .w_group = %lld, .w_in = %lld, .w_out = %lld,\n"
               "        .y_batch = %lld, .y_group = %lld, .y_out = %lld,\n"
               "        .n_spatial = %lld, .spatial = {\n",
               v->fewer ? "        .fewer = 1,\n" : "", (long long)v->batch, (long long)v->groups, (long long)v->in, (long long)v->out, (long long)v->x_batch, (long long)v->x_group, (long long)v->x_in,
               (long long)v->w_first, (long long)v->w_group, (long long)v->w_in, (long long)v->w_out, (long long)v->y_batch, (long long)v->y_group,
               (long long)v->y_out, (long long)v->n_spatial);
    for (int64_t d = 0; d < v->n_spatial; d++)
        buf_printf(b,
                   "            { .in = %lld, .out = %lld, .window = %lld, .stride = %lld, .pad = %lld, .window_dilation = %lld, .base_dilation = %lld,"
                   " .x = %lld, .w = %lld, .y = %lld },\n",
                   (long long)v->spatial[d].in, (long long)v->spatial[d].out, (long long)v->spatial[d].window, (long long)v->spatial[d].stride,
                   (long long)v->spatial[d].pad, (long long)v->spatial[d].window_dilation, (long long)v->spatial[d].base_dilation, (long long)v->spatial[d].x,
                   (long long)v->spatial[d].w, (long long)v->spatial[d].y);
    buf_puts(b, "        },\n    };\n");
    put_product(b, p, x, x->conv->symbol, "conv");
}

static void put_solve(Buf *b, const LibraryCall *x)
{
    const hlort_solve *d = &x->solve->d;
    put_head(b, x, x->solve->type, x->solve->type);
    buf_printf(b,
               "    static const hlort_solve solve = {\n"
               "        .count = %lld, .rows = %lld, .others = %lld, .right = %d, .backward = %d, .unit = %d, .t_row = %lld, .t_col = %lld, .t_batch = %lld,\n"
               "    };\n    %s(&solve, &(hlort_how){ .work = work, .pool = hlo_pool(env) }, a, b, c);\n}\n",
               (long long)d->count, (long long)d->rows, (long long)d->others, d->right, d->backward, d->unit, (long long)d->t_row, (long long)d->t_col,
               (long long)d->t_batch, x->solve->symbol);
}

static void put_fft(Buf *b, const LibraryCall *x)
{
    static const char *const kinds[] = { "FFT", "IFFT", "RFFT", "IRFFT" };
    const hlort_fft         *d = &x->fft->d;
    const char              *type = c_type(x->fft->type);
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, %s *y, const %s *x, void *work)\n{\n", x->name, type, type);
    buf_printf(b, "    static const hlort_fft fft = { .kind = HLORT_%s, .batch = %lld, .axes = %lld, .size = { ", kinds[d->kind], (long long)d->batch, (long long)d->axes);
    for (int64_t k = 0; k < d->axes; k++)
        buf_printf(b, "%s%lld", k > 0 ? ", " : "", (long long)d->size[k]);
    buf_puts(b, " } };\n");
    if (x->tables_bytes > 0)
        buf_printf(b, "    static char memory[%lld] __attribute__((aligned(%d)));\n"
                      "    static hlort_packed tables = { .bytes = sizeof memory, .memory = memory };\n",
                   (long long)x->tables_bytes, PROGRAM_ALIGN);
    buf_printf(b, "    %s(&fft, &(hlort_how){ .work = work, .pool = hlo_pool(env)%s }, x, y);\n}\n", x->fft->symbol, x->tables_bytes > 0 ? ", .packed = &tables" : "");
}

/* A number that is read as the same float. */
static void put_float(Buf *b, const char *field, float v)
{
    if (__builtin_isinf(v))
        buf_printf(b, ", .%s = -__builtin_inff()", field);
    else
        buf_printf(b, ", .%s = (float)%.9g", field, (double)v);
}

static void put_attention(Buf *b, const Program *p, const LibraryCall *x)
{
    const hlort_attention *d = &x->attention->d;
    const char            *in = c_type(x->attention->in);
    const Inst            *term = x->attention->of[3];
    Arena                 *a = arena_new();
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, %s%s *o, const %s *q, const %s *k, const %s *v%s%s%s, void *work)\n{\n", x->name,
               x->tile ? "void *const *context, " : "", c_type(x->attention->out), in, in, in, term ? ", const " : "", term ? c_type(term->shape->type) : "", term ? " *t" : "");
    buf_printf(b,
               "    static const hlort_attention attention = {\n"
               "        .rows = %lld, .keys = %lld, .head = %lld, .wide = %lld,\n"
               "        .q_col = %lld, .k_row = %lld, .k_col = %lld, .v_row = %lld, .v_col = %lld, .o_col = %lld,\n"
               "        .n_rows = %lld, .row = { ",
               (long long)d->rows, (long long)d->keys, (long long)d->head, (long long)d->wide, (long long)d->q_col, (long long)d->k_row, (long long)d->k_col,
               (long long)d->v_row, (long long)d->v_col, (long long)d->o_col, (long long)d->n_rows);
    for (int64_t k = 0; k < d->n_rows; k++)
        buf_printf(b, term ? "%s{ %lld, %lld, %lld, %lld }" : "%s{ %lld, %lld, %lld }", k > 0 ? ", " : "", (long long)d->row[k].count, (long long)d->row[k].q,
                   (long long)d->row[k].o, (long long)d->row[k].t);
    buf_puts(b, " },\n");
    for (int64_t k = 0; k < d->n_batch; k++)
        buf_printf(b, term ? "%s{ %lld, %lld, %lld, %lld, %lld, %lld }" : "%s{ %lld, %lld, %lld, %lld, %lld }", k > 0 ? ", " : "        .batch = { ", (long long)d->batch[k].count, (long long)d->batch[k].q,
                   (long long)d->batch[k].k, (long long)d->batch[k].v, (long long)d->batch[k].o, (long long)d->batch[k].t);
    if (d->n_batch > 0)
        buf_printf(b, " }, .n_batch = %lld,\n", (long long)d->n_batch);
    buf_printf(b, "        .masked = %d%s", d->masked, d->rounded ? ", .rounded = 1" : "");
    put_float(b, "scale", d->scale);
    if (d->masked) {
        buf_printf(b, ", .mask_row = %lld, .above = %lld, .below = %lld, .beside_it = %d", (long long)d->mask_row, (long long)d->above, (long long)d->below, d->beside_it);
        put_float(b, "hidden", d->hidden);
        put_float(b, "bound", d->bound);
    }
    if (d->term) {
        buf_printf(b, ", .term = %d", d->term);
        put_float(b, "term_value", d->term_value);
    }
    buf_printf(b, ",\n    };\n    %s(&attention, &(hlort_how){ .work = work, .pool = hlo_pool(env)", x->attention->symbol);
    if (x->tile)
        buf_printf(b, ", .epilogue = %s, .context = context", target_c_tile_name(a, p->functions[x->tile_function].name));
    buf_puts(b, " }");
    for (int k = 0; k < x->attention->n; k++)
        if (x->attention->start[k] > 0)
            buf_printf(b, ", %c + %lld", "qkvt"[k], (long long)x->attention->start[k]);
        else
            buf_printf(b, ", %c", "qkvt"[k]);
    buf_puts(b, term ? ", o);\n}\n" : ", 0, o);\n}\n");
    arena_free(a);
}

static void put_scan(Buf *b, const LibraryCall *x)
{
    static const char *const kinds[] = { "ADD", "MULTIPLY", "MINIMUM", "MAXIMUM" }, *const types[] = { "F32", "F64", "S32", "S64", "F16", "BF16" };
    const hlort_scan        *d = &x->scan->d;
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, void *y, const void *x, const void *start, void *work)\n{\n", x->name);
    buf_printf(b, "    static const hlort_scan scan = { .kind = HLORT_SCAN_%s, .type = HLORT_SCAN_%s, .backward = %d, .lines = %lld, .count = %lld };\n", kinds[d->kind], types[d->type],
               d->backward, (long long)d->lines, (long long)d->count);
    buf_printf(b, "    %s(&scan, &(hlort_how){ .work = work, .pool = hlo_pool(env) }, x, start, y);\n}\n", x->scan->symbol);
}

static void put_transpose(Buf *b, const LibraryCall *x)
{
    const hlort_axes *d = &x->order->axes;
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, void *to, const void *from)\n{\n", x->name);
    buf_printf(b, "    static const hlort_axes axes = {\n        .bytes = %lld, .n = %lld, .axis = { ", (long long)d->bytes, (long long)d->n);
    for (int64_t k = 0; k < d->n; k++)
        buf_printf(b, "%s{ %lld, %lld, %lld }", k > 0 ? ", " : "", (long long)d->axis[k].count, (long long)d->axis[k].to, (long long)d->axis[k].from);
    buf_puts(b, " },\n    };\n    hlort_transpose(&axes, &(hlort_how){ .pool = hlo_pool(env) }, from, to);\n}\n");
}

static void put_sort(Buf *b, const LibraryCall *x)
{
    static const char *const kinds[] = { "UNSIGNED", "SIGNED", "TOTAL", "CANONICAL", "PARTIAL" };
    const hlort_sort        *d = &x->order->sort;
    c_origin(b, x->inst);
    buf_printf(b, "static __attribute__((noinline)) void %s(const hlo_env *env, void *const *to, const void *const *from, void *work)\n{\n", x->name);
    buf_printf(b, "    static const hlort_sort sort = {\n        .kind = HLORT_KEY_%s, .descending = %d, .key = %lld, .key_bytes = %lld, .infinity = 0x%llx,\n",
               kinds[d->kind], d->descending, (long long)d->key, (long long)d->key_bytes, (unsigned long long)d->infinity);
    buf_printf(b, "        .outer = %lld, .count = %lld, .inner = %lld, .kept = %lld, .to_count = %lld, .n = %lld, .bytes = { ", (long long)d->outer,
               (long long)d->count, (long long)d->inner, (long long)d->kept, (long long)d->to_count, (long long)d->n);
    for (int64_t k = 0; k < d->n; k++)
        buf_printf(b, "%s%lld", k > 0 ? ", " : "", (long long)d->bytes[k]);
    buf_puts(b, " },\n    };\n    hlort_sort_lines(&sort, &(hlort_how){ .work = work, .pool = hlo_pool(env) }, from, to);\n}\n");
}

static bool is_sort(const LibraryCall *x)
{
    return x->order && x->order->sort.n > 0;
}

void target_c_runtime(Buf *b, const Program *p, const LibraryCall *x)
{
    if (x->dot || x->conv || x->attention)
        (x->dot ? put_dot : x->conv ? put_conv : put_attention)(b, p, x);
    else
        (x->solve ? put_solve : x->fft ? put_fft : x->scan ? put_scan : is_sort(x) ? put_sort : put_transpose)(b, x);
}

/* Buffers: the two operands, those of the epilogue, the results, working memory. C is the result that is written over the sums. */
static void put_tile_call(Buf *b, const LibraryCall *x, const char *const *args, const char *packed)
{
    const Kernel *k = x->tile;
    const int32_t others = k->n_operands - 1, c = kernel_tile_in_place(k);
    buf_printf(b, "%s(env, %s", x->name, packed);
    target_c_tile_context(b, k, args + 2);
    buf_printf(b, ", %s, %s, %s, %s);", c >= 0 ? args[2 + others + c] : "0", args[0], args[1], args[2 + others + k->n_results]);
}

static void put_attention_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    const int32_t own = x->attention->n, others = x->tile ? x->tile->n_operands - 1 : 0;
    buf_printf(b, "%s(env, ", x->name);
    if (x->tile) {
        target_c_tile_context(b, x->tile, args + own);
        buf_puts(b, ", ");
    }
    buf_printf(b, "%s", args[own + others]);
    for (int32_t k = 0; k < own; k++)
        buf_printf(b, ", %s", args[k]);
    buf_printf(b, ", %s);", args[own + others + 1]);
}

/* The arrays as lists. */
static void put_sort_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    const int64_t      n = x->order->sort.n, operands = x->order->n_operands;
    const char *const *from = args;
    buf_printf(b, "%s(env, (void *const[]){ ", x->name);
    for (int64_t k = 0; k < n; k++)
        buf_printf(b, "%s%s", k > 0 ? ", " : "", args[operands + k]);
    buf_puts(b, " }, (const void *const[]){ ");
    for (int64_t k = 0; k < n; k++)
        buf_printf(b, "%s%s", k > 0 ? ", " : "", x->order->positions >> k & 1 ? "0" : *from++);
    buf_printf(b, " }, %s);", args[operands + n]);
}

/* The name of what holds constant number k as call number c wants it. */
static const char *packed_name(Arena *a, int32_t c, int32_t k)
{
    return arena_printf(a, "packed_%d_%d", c, k);
}

void target_c_packed(Buf *b, const Program *p)
{
    Arena *a = arena_new();
    Map    seen = map_new(a);
    for (int32_t k = 0; k < p->n_steps; k++) {
        const Step *s = p->steps[k];
        if (s->kind != STEP_CALL || s->call->packed_bytes == 0)
            continue;
        const int32_t  constant = s->buffers[1]->index;
        const uint64_t key = (uint64_t)s->function << 32 | (uint64_t)constant;
        const char    *name = packed_name(a, s->function, constant);
        if (map_get_u64(&seen, key))
            continue;
        map_put_u64(&seen, key, (void *)s);
        buf_printf(b, "static char %s_memory[%lld] __attribute__((aligned(%d)));\n"
                      "static hlort_packed %s = { .bytes = sizeof %s_memory, .memory = %s_memory };\n",
                   name, (long long)s->call->packed_bytes, PROGRAM_ALIGN, name, name, name);
    }
    arena_free(a);
}

void target_c_runtime_call(Buf *b, const Step *s, const char *const *args)
{
    const LibraryCall *x = s->call;
    Arena             *a = arena_new();
    const char        *packed = x->packed_bytes > 0 ? arena_printf(a, "&%s, ", packed_name(a, s->function, s->buffers[1]->index)) : "";
    if (x->attention)
        put_attention_call(b, x, args);
    else if (x->tile)
        put_tile_call(b, x, args, packed);
    else if (x->fft)
        buf_printf(b, "%s(env, %s, %s, %s);", x->name, args[1], args[0], args[2]);
    else if (!x->order)
        buf_printf(b, "%s(env, %s%s, %s, %s, %s);", x->name, packed, args[2], args[0], args[1], args[3]);
    else if (is_sort(x))
        put_sort_call(b, x, args);
    else
        buf_printf(b, "%s(env, %s, %s);", x->name, args[1], args[0]);
    arena_free(a);
}
