/* Sums that are cut into pieces (emit/split.h), as two kernels:
 *
 *     double *const s_pieces = (double *)memory;
 *     const int piece = blockIdx.x;
 *     (sums as ever, i0 from piece * 4099 + threadIdx.x to the piece's end)
 *     if (threadIdx.x == 0)
 *         s_pieces[piece] = s;
 *
 *     for (int at_piece = threadIdx.x; at_piece < 244; at_piece += 256)
 *         s = s + s_pieces[at_piece];
 *     s = hlo_block_reduce(s, s_parts, [](double a, double b) { return a + b; });
 */
#include "support/buf.h"
#include "target-cuda/part.h"

/* ---- what a stage needs ---- */

typedef struct Uses {
    const KTemp *temp;
    bool         found;
} Uses;

static void use_index(Uses *u, const Ix *x)
{
    for (int32_t i = 0; x && i < x->n; i++) {
        u->found |= x->t[i].atom->kind == IX_VALUE && x->t[i].atom->owner == u->temp;
        use_index(u, x->t[i].atom->arg);
    }
}

static void use_expr(void *cookie, const KExpr *x)
{
    Uses *u = cookie;
    u->found |= x->temp == u->temp;
    use_index(u, x->index);
}

static void use_stmt(void *cookie, const KStmt *s)
{
    Uses *u = cookie;
    u->found |= s->kind == KS_ASSIGN && s->temp == u->temp;
    use_index(u, s->index);
    use_index(u, s->from);
    use_index(u, s->end);
}

static bool uses_temp(const KStmt *s, const KTemp *t)
{
    Uses     u = { .temp = t };
    KVisitor v = { use_expr, use_stmt, &u };
    kernel_visit_stmt(s, &v);
    return u.found;
}

static bool is_combined(const RowStep *loop, const KTemp *t)
{
    for (int32_t k = 0; k < loop->n_combined; k++)
        if (loop->combined[k]->temp == t)
            return true;
    return false;
}

/* Leaves out the values that only the other stage needs. The loop stays, as what is combined. */
static void keep_needed(Arena *a, CudaPart *x, bool first)
{
    RowPart       *r = &x->row;
    RowStep       *steps = ARENA_ARRAY(a, RowStep, r->n_steps);
    const RowStep *loop = &r->steps[r->tail - 1];
    int32_t        n = 0, tail = r->tail;
    bool          *kept = ARENA_ARRAY(a, bool, r->n_steps);
    for (int32_t j = r->n_steps; j-- > 0;) {
        const KStmt *s = r->steps[j].stmt;
        kept[j] = s->kind != KS_DECLARE || is_combined(loop, s->temp);
        for (int32_t i = j + 1; i < r->n_steps && !kept[j]; i++)
            kept[j] = kept[i] && (first ? i < r->tail : &r->steps[i] != loop) && uses_temp(r->steps[i].stmt, s->temp);
        tail -= j < r->tail && !kept[j];
    }
    for (int32_t j = 0; j < r->n_steps; j++)
        if (kept[j])
            steps[n++] = r->steps[j];
    r->steps = steps;
    r->n_steps = n;
    r->tail = tail;
}

static bool any_uses(const KBlock *b, const KTemp *t)
{
    bool found = false;
    for (const KStmt *s = b->first; s && !found; s = s->next)
        found = uses_temp(s, t);
    return found;
}

/* Of the values that are the same for all threads those that a stage's steps need, or others of them that it needs. */
static const KBlock *needed_before(Arena *a, const KStmt *s, const KBlock *steps)
{
    KBlock *b = ARENA_NEW(a, KBlock);
    if (!s)
        return b;
    const KBlock *later = needed_before(a, s->next, steps);
    if (s->kind != KS_DECLARE || any_uses(steps, s->temp) || any_uses(later, s->temp))
        kblock_append_copy(a, b, s);
    for (s = later->first; s; s = s->next)
        kblock_append_copy(a, b, s);
    return b;
}

bool cuda_split(Arena *a, const Kernel *k, CudaPart *part, CudaPart *second, int64_t *at)
{
    int32_t memory = k->n_operands + k->n_results;
    if (part->share != BY_BLOCK && part->share != BY_COLUMN)
        return false;
    part->split = kernel_row_split(k, &part->threads, &part->row);
    if (part->split.pieces == 1 || part->split.bytes > k->temp_bytes - *at)
        return false;
    part->pieces_at = *at;
    *at += part->split.bytes;
    *second = *part;
    part->stage = 1;
    second->stage = 2;
    for (CudaPart *x = part;; x = second) {
        keep_needed(a, x, x == part);
        KBlock *steps = ARENA_NEW(a, KBlock), *body = ARENA_NEW(a, KBlock);
        for (int32_t j = 0; j < x->row.n_steps; j++)
            if (x == part ? j < x->row.tail : x->row.steps[j].kind != ROW_LOOP)
                kblock_append_copy(a, steps, x->row.steps[j].stmt);
        x->threads.before = needed_before(a, x->threads.before->first, steps);
        for (const KStmt *s = x->threads.before->first; s; s = s->next)
            kblock_append_copy(a, body, s);
        for (const KStmt *s = steps->first; s; s = s->next)
            kblock_append_copy(a, body, s);
        x->threads.whole = kernel_part(a, k, body);
        x->threads.whole.uses[memory] = true;
        if (x == second)
            return true;
    }
}

static void put_array(Buf *b, const CudaPart *part, const RowStep *step, int32_t k, int depth)
{
    const KTemp *acc = step->combined[k]->temp;
    const char  *type = dialect_type(part->dialect, acc->type);
    buf_printf(b, "%*s%s *const %s_pieces = ", 4 * depth, "", type, acc->name);
    dialect_memory(b, type, part->pieces_at + kernel_split_offset(&part->threads, &part->row, &part->split, k));
    buf_puts(b, ";\n");
}

/* acc_pieces[...], the sum of a piece. */
static const char *place(Arena *a, const CudaPart *part, const KTemp *acc, const char *piece)
{
    const char *number = cuda_row_number(&part->threads);
    if (part->share == BY_COLUMN)
        return arena_printf(a, "%s_pieces[%s * %lld + %s]", acc->name, piece, (long long)part->threads.count, number);
    if (part->threads.n_loops > 0)
        return arena_printf(a, "%s_pieces[%s * %lld + %s]", acc->name, number, (long long)part->split.pieces, piece);
    return arena_printf(a, "%s_pieces[%s]", acc->name, piece);
}

void cuda_put_piece(Buf *b, const CudaPart *part, const RowStep *step, const char *limit, int depth)
{
    Arena *a = arena_new();
    for (int32_t k = 0; k < step->n_combined; k++)
        put_array(b, part, step, k, depth);
    buf_printf(b, "%*sif (%s == 0%s%s)%s\n", 4 * depth, "", part->share == BY_COLUMN ? "share" : "threadIdx.x", limit ? " && " : "", limit ? limit : "",
               step->n_combined > 1 ? " {" : "");
    for (int32_t k = 0; k < step->n_combined; k++)
        buf_printf(b, "%*s%s = %s;\n", 4 * depth + 4, "", place(a, part, step->combined[k]->temp, "piece"), step->combined[k]->temp->name);
    if (step->n_combined > 1)
        buf_printf(b, "%*s}\n", 4 * depth, "");
    arena_free(a);
}

void cuda_put_pieces(Buf *b, const CudaPart *part, const RowStep *step, int depth)
{
    Arena *a = arena_new();
    for (int32_t k = 0; k < step->n_combined; k++)
        put_array(b, part, step, k, depth);
    buf_printf(b, "%*sfor (int at_piece = %s; at_piece < %lld; at_piece += %d)%s\n", 4 * depth, "", part->share == BY_COLUMN ? "share" : "threadIdx.x",
               (long long)part->split.pieces, part->share == BY_COLUMN ? THREADS / WARP : THREADS, step->n_combined > 1 ? " {" : "");
    for (int32_t k = 0; k < step->n_combined; k++) {
        const KTemp *acc = step->combined[k]->temp;
        buf_printf(b, "%*s%s = ", 4 * depth + 4, "", acc->name);
        cuda_put_combination(b, step->combined[k]->value, acc->name, place(a, part, acc, "at_piece"));
        buf_puts(b, ";\n");
    }
    if (step->n_combined > 1)
        buf_printf(b, "%*s}\n", 4 * depth, "");
    arena_free(a);
}
