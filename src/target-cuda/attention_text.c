/* What the kernels of attention have in common: where their arrays' elements are, what becomes of a score, what of a finished row. */
#include "target-cuda/attention_text.h"

#include "emit/c_text.h"

#include <math.h>
#include <string.h>

/* ---- places ---- */

/* Digits of which each step is all of the next one's are one; how many there are. */
static int64_t join_digits(int64_t n, const int64_t *counts, const int64_t *steps, int64_t *count, int64_t *step)
{
    int64_t m = 0;
    for (int64_t k = 0; k < n; k++) {
        if (counts[k] == 1)
            continue;
        const bool one = m > 0 && step[m - 1] == counts[k] * steps[k];
        m += !one;
        count[m - 1] = one ? count[m - 1] * counts[k] : counts[k];
        step[m - 1] = steps[k];
    }
    return m;
}

/* "12 + row / 8 * 64 + row % 8 * 768": the digits of a number times distances. */
static const char *place(const AttentionText *t, const char *number, int64_t start, int64_t n, const int64_t *counts, const int64_t *steps)
{
    Buf           to = { 0 };
    int64_t       count[HLORT_MOST_BATCHES], step[HLORT_MOST_BATCHES], inner = 1;
    const int64_t m = join_digits(n, counts, steps, count, step);
    bool          any = start != 0;
    if (any)
        buf_printf(&to, "%lld", (long long)start);
    for (int64_t k = 0; k < m; k++)
        inner *= count[k];
    for (int64_t k = 0; k < m; k++) {
        inner /= count[k];
        if (step[k] == 0)
            continue;
        buf_printf(&to, "%s%s", any ? " + " : "", number);
        if (inner > 1)
            buf_printf(&to, " / %lld", (long long)inner);
        if (k > 0)
            buf_printf(&to, " %% %lld", (long long)count[k]);
        if (step[k] != 1)
            buf_printf(&to, " * %s%lld", strcmp(t->index, "int") == 0 ? "" : "(int64_t)", (long long)step[k]);
        any = true;
    }
    if (!any)
        buf_puts(&to, "0");
    const char *text = arena_printf(t->arena, "%s", to.p);
    buf_free(&to);
    return text;
}

const char *attention_times(const AttentionText *t, const char *number, int64_t distance)
{
    return arena_printf(t->arena, "%s * %s%lld", number, strcmp(t->index, "int") == 0 ? "" : "(int64_t)", (long long)distance);
}

const char *attention_member(const AttentionText *t, char array)
{
    const hlort_attention *d = t->d;
    const AttentionCall   *c = t->c;
    int64_t counts[HLORT_MOST_BATCHES], steps[HLORT_MOST_BATCHES];
    for (int64_t k = 0; k < d->n_batch; k++) {
        counts[k] = d->batch[k].count;
        steps[k] = array == 'q' ? d->batch[k].q : array == 'k' ? d->batch[k].k : array == 'v' ? d->batch[k].v : array == 't' ? d->batch[k].t : d->batch[k].o;
    }
    return place(t, "member", array == 'q' ? c->start[0] : array == 'k' ? c->start[1] : array == 'v' ? c->start[2] : array == 't' ? c->start[3] : 0, d->n_batch, counts, steps);
}

const char *attention_row(const AttentionText *t, char array, const char *row)
{
    const hlort_attention *d = t->d;
    int64_t counts[HLORT_MOST_BATCHES], steps[HLORT_MOST_BATCHES];
    for (int64_t k = 0; k < d->n_rows; k++) {
        counts[k] = d->row[k].count;
        steps[k] = array == 'q' ? d->row[k].q : array == 't' ? d->row[k].t : d->row[k].o;
    }
    return place(t, row, 0, d->n_rows, counts, steps);
}

/* The row's place in the dimension that the mask is of. */
static const char *masked_row(const AttentionText *t)
{
    const hlort_attention *d = t->d;
    int64_t inner = 1;
    for (int64_t k = d->mask_row + 1; k < d->n_rows; k++)
        inner *= d->row[k].count;
    const char *text = inner > 1 ? arena_printf(t->arena, "row / %lld", (long long)inner) : "row";
    return d->mask_row > 0 ? arena_printf(t->arena, "%s %% %lld", text, (long long)d->row[d->mask_row].count) : text;
}

bool attention_is_packed(const AttentionText *t, char array, int64_t pack)
{
    const hlort_attention *d = t->d;
    const int64_t n = array == 'v' ? d->wide : d->head, col = array == 'q' ? d->q_col : array == 'k' ? d->k_col : d->v_col;
    bool packed = col == 1 && n % pack == 0 && t->c->start[array == 'q' ? 0 : array == 'k' ? 1 : 2] % pack == 0;
    packed &= array == 'q' || (array == 'k' ? d->k_row : d->v_row) % pack == 0;
    for (int64_t k = 0; k < d->n_rows && array == 'q'; k++)
        packed &= d->row[k].q % pack == 0;
    for (int64_t k = 0; k < d->n_batch; k++)
        packed &= (array == 'q' ? d->batch[k].q : array == 'k' ? d->batch[k].k : d->batch[k].v) % pack == 0;
    return packed;
}

/* ---- numbers ---- */

const char *attention_number(const AttentionText *t, float v)
{
    return isinf(v) ? (v < 0 ? "-__builtin_inff()" : "__builtin_inff()") : arena_printf(t->arena, "(float)%.9g", (double)v);
}

const char *attention_type(Type t)
{
    return t == TYPE_F32 ? "float" : "uint16_t";
}

const char *attention_float(const AttentionText *t, const char *x)
{
    return t->c->in == TYPE_F32 ? x : arena_printf(t->arena, "%s(%s)", t->c->in == TYPE_F16 ? "f16_to_f32" : "bf16_to_f32", x);
}

const char *attention_narrow(const AttentionText *t, const char *x)
{
    return arena_printf(t->arena, "%s(%s)", t->c->in == TYPE_F16 ? "f32_to_f16" : "f32_to_bf16", x);
}

static const char *as_result(const AttentionText *t, const char *x)
{
    return t->c->out == TYPE_F32 ? x : arena_printf(t->arena, "%s(%s)", t->c->out == TYPE_F16 ? "f32_to_f16" : "f32_to_bf16", x);
}

/* ---- a score ---- */

bool attention_masks(const hlort_attention *d)
{
    return d->masked && (d->below < d->keys || d->above < d->keys + d->rows);
}

/* What becomes of x, that of `row` and `key`, both of which there are. */
static void put_made(const AttentionText *t, int depth)
{
    const hlort_attention *d = t->d;
    if (t->score) {
        buf_printf(t->b, "%*s%s(&x", 4 * depth, "", t->score);
        for (int32_t p = 0; p < t->x->tile->n_operands - 1; p++)
            if (kernel_uses_param(t->x->tile, p))
                buf_printf(t->b, ", p%d", p);
        if (kernel_tile_uses_row(t->x->tile))
            buf_puts(t->b, ", member * rows + row");
        buf_puts(t->b, ", key);\n");
        return;
    }
    if (!attention_masks(d))
        return;
    Buf seen = { 0 };
    if (d->below < d->keys)
        buf_printf(&seen, "key <= %s + %lld", masked_row(t), (long long)d->below);
    if (d->above < d->keys + d->rows)
        buf_printf(&seen, "%skey >= %s - %lld", seen.n ? " && " : "", masked_row(t), (long long)d->above);
    buf_printf(t->b, d->beside_it ? "%*sx += %s ? 0 : %s;\n" : "%*sx = %s ? x : %s;\n", 4 * depth, "", seen.p, attention_number(t, d->hidden));
    buf_free(&seen);
}

void attention_put_score(const AttentionText *t, const char *test, const char *of, int depth)
{
    const int   in = 4 * depth;
    const char *scaled = t->d->scale == 1 ? of : arena_printf(t->arena, "%s * %s", of, attention_number(t, t->d->scale));
    if (!*test) {
        buf_printf(t->b, "%*sfloat x = %s;\n", in, "", scaled);
        put_made(t, depth);
        return;
    }
    buf_printf(t->b, "%*sfloat x = -__builtin_inff();\n%*sif (%s) {\n%*sx = %s;\n", in, "", in, "", test, in + 4, "", scaled);
    put_made(t, depth + 1);
    buf_printf(t->b, "%*s}\n", in, "");
}

/* ---- a finished row ---- */

const char *attention_term(const AttentionText *t)
{
    if (!t->c->of[3])
        return attention_number(t, t->d->term_value);
    const char *term = arena_printf(t->arena, "t[%s + %s]", attention_member(t, 't'), attention_row(t, 't', "row"));
    return t->c->of[3]->shape->type == TYPE_F32 ? term : attention_float(t, term);
}

/* What a row's sum has beside the keys', unless that was rounded with the others' (attention_tile.c). */
static void put_term(const AttentionText *t, int in)
{
    const hlort_attention *d = t->d;
    if (!(d->term & HLORT_TERM) || d->rounded)
        return;
    const char *term = attention_term(t);
    if (d->term & HLORT_TERM_BESIDE)
        buf_printf(t->b, "%*stotal += expf(%s - largest);\n", in, "", term);
    else
        buf_printf(t->b, "%*sconst float term = %s, above = max_f32(largest, term), by = expf(largest - above);\n%*sx *= by;\n%*stotal = total * by + expf(term - above);\n", in, "", term, in, "",
                   in, "");
}

void attention_put_result(const AttentionText *t, bool piece, int depth)
{
    const hlort_attention *d = t->d;
    const int              in = 4 * depth;
    if (piece) {
        buf_printf(t->b, "%*sconst int64_t part = ((int64_t)member * rows + row) * %lld + piece;\n", in, "", (long long)t->l.pieces);
        buf_printf(t->b, "%*sparts[part * wide + c] = x;\n%*sif (c == 0) {\n%*sparts[%lld + 2 * part] = largest;\n%*sparts[%lld + 2 * part] = total;\n%*s}\n", in, "", in, "", in + 4, "",
                   (long long)t->l.stats, in + 4, "", (long long)t->l.stats + 1, in, "");
        return;
    }
    put_term(t, in);
    const char *c = d->o_col == 1 ? "c" : arena_printf(t->arena, "c * %lld", (long long)d->o_col);
    buf_printf(t->b, "%*so[%s + %s + %s] = %s;\n", in, "", attention_member(t, 'o'), attention_row(t, 'o', "row"), c, as_result(t, "x / total"));
}

void attention_put_element(const AttentionText *t, int64_t rows, int depth)
{
    const hlort_attention *d = t->d;
    const bool             down = d->o_col != 1 && d->n_rows > 0 && d->row[d->n_rows - 1].o == 1 && t->l.pieces == 1;
    if (down)
        buf_printf(t->b, "%*sconst int c = at / %lld, at_row = at %% %lld;\n", 4 * depth, "", (long long)rows, (long long)rows);
    else
        buf_printf(t->b, "%*sconst int at_row = at / wide, c = at %% wide;\n", 4 * depth, "");
}

void attention_put_begin(const AttentionText *t)
{
    const char *index = t->index;
    buf_printf(t->b, "        const %s q_at = %s, k_at = %s, v_at = %s;\n", index, attention_member(t, 'q'), attention_member(t, 'k'), attention_member(t, 'v'));
}
