/* Attention as one kernel (emit/attention_device.h), or two where pieces of the keys are joined.
 *
 *     S[i, j] = scale * sum over p of Q[i, p] * K[j, p]      W[i, j] = e^(S[i, j] - max S[i]) / sum over j of that      O[i, c] = sum over j of W[i, j] * V[j, c]
 *
 * A tile of rows: 16 lanes share four of them, a lane has every 16th key of a step and some columns of the result. Queries, keys and values lie in shared memory as they are, rows an odd number of 16 bytes
 * apart, so that lanes that read rows side by side reach different banks. Scores are a sum over p of 4 by `each` products, in registers; the weights go through rows of shared memory that only these lanes see.
 * Keys that no row of the tile sees come last: they are left out as soon as the scores before are well above, if their values are finite.
 *
 * Few rows: a group of lanes reads a key, as neighbours, and sums up what it is with each row; of all keys of the block, then the softmax, then values likewise.
 *
 * What the fusion makes of the scores, if it is more than a factor and a mask, is a function of one of them. */
#include "emit/attention_device.h"
#include "emit/c_text.h"
#include "target-cuda/part.h"
#include "target-cuda/routine.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { WARPS = ATTENTION_THREADS / WARP, LANES = 16, ROWS_OF_LANES = 4, PACK = 4, TILE_PARTS = 64, MOST_INDEX = INT32_MAX - (1 << 24) };

typedef struct Text {
    Buf                   *b;
    Arena                 *arena;
    const LibraryCall     *x;
    const AttentionCall   *c;
    const hlort_attention *d;
    AttentionLaunch        l;
    const char            *index; /* type of places in arrays */
    const char            *name;
    const char            *score; /* the function of one, or NULL */
} Text;

/* ---- places ---- */

static int64_t extent(int64_t n, int64_t by)
{
    return (n - 1) * (by < 0 ? -by : by);
}

static bool is_wide(const LibraryCall *x)
{
    const hlort_attention *d = &x->attention->d;
    int64_t q = extent(d->head, d->q_col), k = extent(d->keys, d->k_row) + extent(d->head, d->k_col), v = extent(d->keys, d->v_row) + extent(d->wide, d->v_col);
    int64_t o = extent(d->wide, d->o_col), t = 0;
    bool    wide = attention_members(d) > MOST_INDEX / d->rows / d->keys;
    for (int64_t r = 0; r < d->n_rows; r++) {
        q += extent(d->row[r].count, d->row[r].q);
        t += extent(d->row[r].count, d->row[r].t);
        o += extent(d->row[r].count, d->row[r].o);
    }
    for (int64_t n = 0; n < d->n_batch; n++) {
        q += extent(d->batch[n].count, d->batch[n].q);
        k += extent(d->batch[n].count, d->batch[n].k);
        v += extent(d->batch[n].count, d->batch[n].v);
        t += extent(d->batch[n].count, d->batch[n].t);
        o += extent(d->batch[n].count, d->batch[n].o);
    }
    for (int32_t p = 0; x->tile && p < x->tile->n_operands; p++)
        wide |= x->tile->params[p]->count > MOST_INDEX;
    for (int32_t n = 0; n < x->attention->n; n++)
        wide |= x->attention->start[n] > MOST_INDEX / 2;
    return wide || q > MOST_INDEX / 2 || k > MOST_INDEX / 2 || v > MOST_INDEX / 2 || o > MOST_INDEX / 2 || t > MOST_INDEX / 2;
}

/* "12 + row / 8 * 64 + row % 8 * 768": the digits of a number times distances. */
static const char *place(const Text *t, const char *number, int64_t start, int64_t n, const int64_t *counts, const int64_t *steps)
{
    Buf     to = { 0 };
    int64_t inner = 1;
    bool    any = start != 0;
    if (any)
        buf_printf(&to, "%lld", (long long)start);
    for (int64_t k = 0; k < n; k++)
        inner *= counts[k];
    for (int64_t k = 0; k < n; k++) {
        inner /= counts[k];
        if (steps[k] == 0 || counts[k] == 1)
            continue;
        buf_printf(&to, "%s%s", any ? " + " : "", number);
        if (inner > 1)
            buf_printf(&to, " / %lld", (long long)inner);
        if (k > 0 && counts[k] > 1)
            buf_printf(&to, " %% %lld", (long long)counts[k]);
        if (steps[k] != 1)
            buf_printf(&to, " * %s%lld", strcmp(t->index, "int") == 0 ? "" : "(int64_t)", (long long)steps[k]);
        any = true;
    }
    if (!any)
        buf_puts(&to, "0");
    const char *text = arena_printf(t->arena, "%s", to.p);
    buf_free(&to);
    return text;
}

static const char *place_of_member(const Text *t, char array)
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

static const char *place_of_row(const Text *t, char array, const char *row)
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
static const char *masked_row(const Text *t)
{
    const hlort_attention *d = t->d;
    int64_t inner = 1;
    for (int64_t k = d->mask_row + 1; k < d->n_rows; k++)
        inner *= d->row[k].count;
    const char *text = inner > 1 ? arena_printf(t->arena, "row / %lld", (long long)inner) : "row";
    return d->mask_row > 0 ? arena_printf(t->arena, "%s %% %lld", text, (long long)d->row[d->mask_row].count) : text;
}

/* Whether four neighbours are one access: distances between rows, and where the first one is. */
static bool is_packed(const Text *t, char array)
{
    const hlort_attention *d = t->d;
    const int64_t n = array == 'v' ? d->wide : d->head, col = array == 'q' ? d->q_col : array == 'k' ? d->k_col : d->v_col;
    bool packed = col == 1 && n % PACK == 0 && t->c->start[array == 'q' ? 0 : array == 'k' ? 1 : 2] % PACK == 0;
    packed &= array == 'q' || (array == 'k' ? d->k_row : d->v_row) % PACK == 0;
    for (int64_t k = 0; k < d->n_rows && array == 'q'; k++)
        packed &= d->row[k].q % PACK == 0;
    for (int64_t k = 0; k < d->n_batch; k++)
        packed &= (array == 'q' ? d->batch[k].q : array == 'k' ? d->batch[k].k : d->batch[k].v) % PACK == 0;
    return packed;
}

/* ---- numbers ---- */

static const char *number(const Text *t, float v)
{
    return isinf(v) ? (v < 0 ? "-__builtin_inff()" : "__builtin_inff()") : arena_printf(t->arena, "(float)%.9g", (double)v);
}

static const char *type_of(Type t)
{
    return t == TYPE_F32 ? "float" : "uint16_t";
}

static const char *as_float(const Text *t, const char *x)
{
    return t->c->in == TYPE_F32 ? x : arena_printf(t->arena, "%s(%s)", t->c->in == TYPE_F16 ? "f16_to_f32" : "bf16_to_f32", x);
}

static const char *as_result(const Text *t, const char *x)
{
    return t->c->out == TYPE_F32 ? x : arena_printf(t->arena, "%s(%s)", t->c->out == TYPE_F16 ? "f32_to_f16" : "f32_to_bf16", x);
}

/* ---- a score ---- */

/* What becomes of x, that of `row` and `key`, both of which there are. */
static void put_score(const Text *t, int depth)
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
    if (!d->masked)
        return;
    Buf seen = { 0 };
    if (d->below < d->keys)
        buf_printf(&seen, "key <= %s + %lld", masked_row(t), (long long)d->below);
    if (d->above < d->keys + d->rows)
        buf_printf(&seen, "%skey >= %s - %lld", seen.n ? " && " : "", masked_row(t), (long long)d->above);
    if (seen.n > 0)
        buf_printf(t->b, d->beside_it ? "%*sx += %s ? 0 : %s;\n" : "%*sx = %s ? x : %s;\n", 4 * depth, "", seen.p, number(t, d->hidden));
    buf_free(&seen);
}

/* The function of one, printed as its parameters are used. */
static void put_score_function(const Text *t)
{
    const Kernel *k = t->x->tile;
    KernelPart    part = kernel_part(t->arena, k, k->body);
    Dialect       dialect = cuda_dialect;
    bool          first = true;
    dialect.index = t->index;
    buf_printf(t->b, "static __device__ inline void %s(", t->score);
    for (int32_t p = -1; p < k->n_operands - 1; p++) {
        const int32_t at = p < 0 ? k->n_operands - 1 : p;
        if (!kernel_uses_param(k, at))
            continue;
        buf_puts(t->b, first ? "" : ", ");
        dialect_param(t->b, &dialect, k, at);
        first = false;
    }
    buf_printf(t->b, "%s%s%s, %s %s)\n{\n", kernel_tile_uses_row(k) ? ", " : "", kernel_tile_uses_row(k) ? t->index : "", kernel_tile_uses_row(k) ? " " KERNEL_ROW : "", t->index, RANGE_FROM);
    dialect_arrays(t->b, &dialect, &part);
    dialect_block(t->b, &dialect, part.body, 1);
    buf_puts(t->b, "}\n\n");
}

/* ---- a finished row ---- */

/* x, total and largest of a row are its result, or that of a piece. */
static void put_result(const Text *t, bool piece, int depth)
{
    const hlort_attention *d = t->d;
    const int              in = 4 * depth;
    if (piece) {
        buf_printf(t->b, "%*sconst int64_t part = ((int64_t)member * rows + row) * %lld + piece;\n", in, "", (long long)t->l.pieces);
        buf_printf(t->b, "%*sparts[part * wide + c] = x;\n%*sif (c == 0) {\n%*sparts[%lld + 2 * part] = largest;\n%*sparts[%lld + 2 * part] = total;\n%*s}\n", in, "", in, "", in + 4, "",
                   (long long)t->l.stats, in + 4, "", (long long)t->l.stats + 1, in, "");
        return;
    }
    const char *over = "total";
    if (d->term & HLORT_TERM) {
        const char *term = t->c->of[3] ? arena_printf(t->arena, "t[%s + %s]", place_of_member(t, 't'), place_of_row(t, 't', "row")) : number(t, d->term_value);
        if (t->c->of[3] && t->c->of[3]->shape->type != TYPE_F32)
            term = as_float(t, term);
        if (d->term & HLORT_TERM_BESIDE)
            buf_printf(t->b, "%*stotal += expf(%s - largest);\n", in, "", term);
        else
            buf_printf(t->b, "%*sconst float term = %s, above = max_f32(largest, term), by = expf(largest - above);\n%*sx *= by;\n%*stotal = total * by + expf(term - above);\n", in, "", term, in, "",
                       in, "");
    }
    const char *c = d->o_col == 1 ? "c" : arena_printf(t->arena, "c * %lld", (long long)d->o_col);
    buf_printf(t->b, "%*so[%s + %s + %s] = %s;\n", in, "", place_of_member(t, 'o'), place_of_row(t, 'o', "row"), c, as_result(t, arena_printf(t->arena, "x / %s", over)));
}

/* "row" and "c" of element number `at` of the result, so that neighbours are stored side by side. */
static void put_element(const Text *t, int64_t rows, int depth)
{
    const hlort_attention *d = t->d;
    const bool             down = d->o_col != 1 && d->n_rows > 0 && d->row[d->n_rows - 1].o == 1 && t->l.pieces == 1;
    if (down)
        buf_printf(t->b, "%*sconst int c = at / %lld, at_row = at %% %lld;\n", 4 * depth, "", (long long)rows, (long long)rows);
    else
        buf_printf(t->b, "%*sconst int at_row = at / wide, c = at %% wide;\n", 4 * depth, "");
}

/* ---- parameters ---- */

static bool uses_term(const Text *t)
{
    return t->c->of[3] != NULL;
}

/* What the function of a score reads: as parameters, or as a launch's arguments. */
static void put_others(const Text *t, bool values)
{
    const Kernel *k = t->x->tile;
    for (int32_t p = 0; k && p < k->n_operands - 1; p++) {
        if (!kernel_uses_param(k, p))
            continue;
        buf_puts(t->b, values ? ", (" : ", ");
        dialect_param_type(t->b, &cuda_dialect, k, p);
        buf_printf(t->b, "%sp%d", values ? ")" : "__restrict__ ", p);
    }
}

static void put_params(const Text *t)
{
    const char *in = type_of(t->c->in);
    buf_printf(t->b, "(%s *__restrict__ o, const %s *__restrict__ q, const %s *__restrict__ k, const %s *__restrict__ v", type_of(t->c->out), in, in, in);
    if (uses_term(t))
        buf_printf(t->b, ", const %s *__restrict__ t", type_of(t->c->of[3]->shape->type));
    put_others(t, false);
    buf_puts(t->b, t->l.pieces > 1 ? ", float *__restrict__ parts)\n{\n" : ")\n{\n");
}

/* Is `word` a name in it? */
static bool has_name(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = text; (s = strstr(s, word)); s += n)
        if (!isalnum((unsigned char)s[-1]) && s[-1] != '_' && !isalnum((unsigned char)s[n]) && s[n] != '_')
            return true;
    return false;
}

/* Leaves the line out that says what `word` is, where nothing else has the name. */
static void drop_unused(Buf *body, const char *declared, const char *word)
{
    char *at = strstr(body->p, declared);
    if (!at || has_name(at + strlen(declared), word))
        return;
    while (at[-1] != '\n')
        at--;
    char *end = strchr(at, '\n') + 1;
    memmove(at, end, body->n - (size_t)(end - body->p) + 1);
    body->n -= (size_t)(end - at);
}

/* A kernel's body in front of which sizes are named, those that it uses; body is emptied. */
static void put_body(const Text *t, Buf *body)
{
    const hlort_attention *d = t->d;
    const struct {
        const char *name;
        int64_t     value;
    } sizes[] = { { "rows", d->rows }, { "keys", d->keys }, { "head", d->head }, { "wide", d->wide } };
    bool first = true;
    drop_unused(body, " member = ", "member");
    drop_unused(body, " row = thread", "row");
    drop_unused(body, " largest = stats", "largest");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (has_name(body->p, sizes[k].name)) {
            buf_printf(t->b, "%s%s = %lld", first ? "    constexpr int " : ", ", sizes[k].name, (long long)sizes[k].value);
            first = false;
        }
    buf_puts(t->b, first ? "" : "; // of each member of the batch\n");
    buf_puts(t->b, body->p);
    buf_puts(t->b, "}\n");
    buf_free(body);
}

static void put_begin(const Text *t)
{
    const char *index = t->index;
    buf_printf(t->b, "        const %s q_at = %s, k_at = %s, v_at = %s;\n", index, place_of_member(t, 'q'), place_of_member(t, 'k'), place_of_member(t, 'v'));
}

/* ---- tiles ---- */

/* Rows of the queries, of keys or of values into shared memory; zeros behind them. */
static void put_rows(const Text *t, char array, const char *to, int64_t count, int64_t stride, int depth)
{
    const hlort_attention *d = t->d;
    const int              in = 4 * depth;
    const int64_t          n = array == 'v' ? d->wide : d->head, row_by = array == 'k' ? d->k_row : d->v_row, col_by = array == 'q' ? d->q_col : array == 'k' ? d->k_col : d->v_col;
    const int64_t          filled = array == 'v' ? stride : (n + PACK - 1) / PACK * PACK;
    const char            *at_row = array == 'q' ? place_of_row(t, 'q', "(from_row + at_row)") : arena_printf(t->arena, "(from_key + at_row) * %s%lld", strcmp(t->index, "int") ? "(int64_t)" : "", (long long)row_by);
    const char            *from = arena_printf(t->arena, "%c[%c_at + %s", array, array, at_row), *rows = array == 'q' ? "rows" : "keys", *first = array == 'q' ? "from_row" : "from_key";
    const bool             whole = array == 'q' ? d->rows % count == 0 : d->keys % t->l.step == 0;
    const char            *test = whole ? "" : arena_printf(t->arena, "%s + at_row < %s", first, rows);
    if (is_packed(t, array)) {
        const char *both = arena_printf(t->arena, "%s%s%s", test, *test && filled > n ? " && " : "", filled > n ? arena_printf(t->arena, "c < %lld", (long long)n) : "");
        buf_printf(t->b, "%*s#pragma unroll 4\n%*sfor (int at = threadIdx.x; at < %lld; at += %d) {\n", in, "", in, "", (long long)(count * filled / PACK), ATTENTION_THREADS);
        buf_printf(t->b, "%*sconst int at_row = at / %lld, c = at %% %lld * 4;\n%*shlo_pack<float, 4> pack = {};\n", in + 4, "", (long long)(filled / PACK), (long long)(filled / PACK), in + 4, "");
        const int more = *both ? 4 : 0;
        if (*both)
            buf_printf(t->b, t->c->in == TYPE_F32 ? "%*sif (%s)\n" : "%*sif (%s) {\n", in + 4, "", both);
        if (t->c->in == TYPE_F32)
            buf_printf(t->b, "%*spack = hlo_load<4>(&%s + c]);\n", in + 4 + more, "", from);
        else
            buf_printf(t->b, "%*sconst hlo_pack<uint16_t, 4> halves = hlo_load<4>(&%s + c]);\n%*sfor (int e = 0; e < 4; e++)\n%*spack.at[e] = %s;\n", in + 4 + more, "", from, in + 4 + more, "",
                       in + 8 + more, "", as_float(t, "halves.at[e]"));
        if (*both && t->c->in != TYPE_F32)
            buf_printf(t->b, "%*s}\n", in + 4, "");
        buf_printf(t->b, "%*shlo_store(&%s[at_row * %lld + c], pack);\n%*s}\n", in + 4, "", to, (long long)stride, in, "");
        return;
    }
    const bool down = array != 'q' && row_by < col_by;
    const char *column = col_by == 1 ? "c" : arena_printf(t->arena, "c * %s%lld", strcmp(t->index, "int") ? "(int64_t)" : "", (long long)col_by);
    const char *both = arena_printf(t->arena, "%s%s%s", test, *test && filled > n ? " && " : "", filled > n ? arena_printf(t->arena, "c < %lld", (long long)n) : "");
    buf_printf(t->b, "%*s#pragma unroll 4\n%*sfor (int at = threadIdx.x; at < %lld; at += %d) {\n", in, "", in, "", (long long)(count * filled), ATTENTION_THREADS);
    if (down) /* eight rows are a sector, and four columns of them 32 banks */
        buf_printf(t->b, "%*sconst int at_row = at %% 8 + at / %lld * 8, c = at / 8 %% %lld;\n", in + 4, "", (long long)(8 * filled), (long long)filled);
    else
        buf_printf(t->b, "%*sconst int at_row = at / %lld, c = at %% %lld;\n", in + 4, "", (long long)filled, (long long)filled);
    const char *read = as_float(t, arena_printf(t->arena, "%s + %s]", from, column));
    buf_printf(t->b, *both ? "%*s%s[at_row * %lld + c] = %s ? %s : 0;\n%*s}\n" : "%*s%s[at_row * %lld + c] = %s%s;\n%*s}\n", in + 4, "", to, (long long)stride, both, read, in, "");
}

static bool leaves_keys_out(const Text *t)
{
    const hlort_attention *d = t->d;
    return d->masked && !d->beside_it && !t->score && d->n_rows == 1 && t->l.pieces == 1 && d->keys > t->l.step && (d->below < d->keys - t->l.step || d->above < d->rows);
}

/* The step's keys are seen by no row of the tile: e^(hidden - most) is 0 from 104 on. */
static void put_left_out(const Text *t)
{
    const hlort_attention *d = t->d;
    Buf                    unseen = { 0 };
    if (d->below < d->keys)
        buf_printf(&unseen, "from_key > from_row + %lld", (long long)(t->l.rows - 1 + d->below));
    if (d->above < d->keys + d->rows)
        buf_printf(&unseen, "%sfrom_key + %lld < from_row", unseen.n ? " || " : "", (long long)(t->l.step - 1 + d->above));
    buf_printf(t->b, "            if (%s) {\n                bool far = true;\n", unseen.p);
    buf_free(&unseen);
    if (t->l.groups > 1)
        buf_printf(t->b, "                __syncthreads();\n"
                         "                #pragma unroll\n"
                         "                for (int r = 0; r < 4; r++)\n"
                         "                    if (lane == 0)\n"
                         "                        weights[group * %lld + first + r] = most[r];\n"
                         "                __syncthreads();\n"
                         "                for (int r = threadIdx.x; r < %lld && from_row + r < rows; r += %d) {\n"
                         "                    float largest = -__builtin_inff();\n"
                         "                    for (int g = 0; g < %lld; g++)\n"
                         "                        largest = max_f32(largest, weights[g * %lld + r]);\n"
                         "                    far = far && largest > %s + 104;\n"
                         "                }\n",
                   (long long)t->l.rows, (long long)t->l.rows, ATTENTION_THREADS, (long long)t->l.groups, (long long)t->l.rows, number(t, d->hidden));
    else
        buf_printf(t->b, "                #pragma unroll\n"
                         "                for (int r = 0; r < 4; r++)\n"
                         "                    far = far && (from_row + first + r >= rows || most[r] > %s + 104);\n",
                   number(t, d->hidden));
    const bool packed = is_packed(t, 'v');
    buf_printf(t->b, "                #pragma unroll 4\n                for (int at = threadIdx.x; at < %lld; at += %d) {\n", (long long)(t->l.step * d->wide / (packed ? PACK : 1)), ATTENTION_THREADS);
    const bool down = !packed && d->v_row < d->v_col;
    buf_printf(t->b, "                    const int at_row = at %s %lld, c = at %s %lld%s;\n                    if (from_key + at_row < keys) {\n", down ? "%" : "/",
               (long long)(down ? t->l.step : d->wide / (packed ? PACK : 1)), down ? "/" : "%", (long long)(down ? t->l.step : d->wide / (packed ? PACK : 1)), packed ? " * 4" : "");
    const char *at = arena_printf(t->arena, "v[v_at + (from_key + at_row) * %s%lld + c", strcmp(t->index, "int") ? "(int64_t)" : "", (long long)d->v_row);
    if (packed)
        buf_printf(t->b, "                        const hlo_pack<%s, 4> pack = hlo_load<4>(&%s]);\n"
                         "                        for (int e = 0; e < 4; e++)\n"
                         "                            far = far && fabsf(%s) < __builtin_inff();\n",
                   type_of(t->c->in), at, as_float(t, "pack.at[e]"));
    else
        buf_printf(t->b, "                        far = far && fabsf(%s) < __builtin_inff();\n", as_float(t, d->v_col == 1 ? arena_printf(t->arena, "%s]", at) : arena_printf(t->arena, "%s * %lld]", at, (long long)d->v_col)));
    buf_puts(t->b, "                    }\n                }\n                if (__syncthreads_and(far))\n                    continue;\n            }\n");
}

static void put_scores(const Text *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          own = l->step / l->groups;
    buf_printf(t->b, "            float scores[4][%lld] = {};\n"
                     "            #pragma unroll 4\n"
                     "            for (int c = 0; c < head; c += 4) {\n"
                     "                hlo_pack<float, 4> row[4];\n"
                     "                #pragma unroll\n"
                     "                for (int r = 0; r < 4; r++)\n"
                     "                    row[r] = hlo_load<4>(&queries[(first + r) * %lld + c]);\n"
                     "                #pragma unroll\n"
                     "                for (int j = 0; j < %lld; j++) {\n"
                     "                    const hlo_pack<float, 4> key = hlo_load<4>(&key_rows[(group * %lld + j * 16 + lane) * %lld + c]);\n"
                     "                    #pragma unroll\n"
                     "                    for (int r = 0; r < 4; r++)\n"
                     "                        #pragma unroll\n"
                     "                        for (int e = 0; e < 4; e++)\n"
                     "                            scores[r][j] += row[r].at[e] * key.at[e];\n"
                     "                }\n"
                     "            }\n",
               (long long)l->each, (long long)l->head, (long long)l->each, (long long)own, (long long)l->head);
}

static void put_weights(const Text *t, int64_t columns)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const int64_t          own = l->step / l->groups;
    const bool             test_key = d->keys % l->piece != 0 || l->piece % l->step != 0, test_row = t->score && d->rows % l->rows != 0;
    const char            *scaled = d->scale == 1 ? "" : arena_printf(t->arena, " * %s", number(t, d->scale));
    buf_puts(t->b, "            #pragma unroll\n            for (int r = 0; r < 4; r++) {\n                float larger = most[r];\n");
    if (t->score || d->masked)
        buf_puts(t->b, "                const int row = from_row + first + r;\n");
    buf_printf(t->b, "                #pragma unroll\n                for (int j = 0; j < %lld; j++) {\n", (long long)l->each);
    if (t->score || d->masked || test_key)
        buf_printf(t->b, "                    const int key = from_key + group * %lld + j * 16 + lane;\n", (long long)own);
    if (test_key || test_row) {
        buf_printf(t->b, "                    float x = -__builtin_inff();\n                    if (%s%s%s) {\n                        x = scores[r][j]%s;\n", test_key ? "key < keys" : "",
                   test_key && test_row ? " && " : "", test_row ? "row < rows" : "", scaled);
        put_score(t, 6);
        buf_puts(t->b, "                    }\n");
    } else {
        buf_printf(t->b, "                    float x = scores[r][j]%s;\n", scaled);
        put_score(t, 5);
    }
    buf_printf(t->b, "                    scores[r][j] = x;\n"
                     "                    larger = max_f32(larger, x);\n"
                     "                }\n"
                     "                #pragma unroll\n"
                     "                for (int by = 8; by > 0; by /= 2)\n"
                     "                    larger = max_f32(larger, __shfl_xor_sync(0xffffffffu, larger, by));\n"
                     "                const float from = larger == -__builtin_inff() ? 0 : larger, fades = expf(most[r] - from);\n"
                     "                most[r] = larger;\n"
                     "                sum[r] *= fades;\n"
                     "                #pragma unroll\n"
                     "                for (int c = 0; c < %lld; c++)\n"
                     "                    out[r][c] *= fades;\n"
                     "                #pragma unroll\n"
                     "                for (int j = 0; j < %lld; j++) {\n"
                     "                    const float weight = expf(scores[r][j] - from);\n"
                     "                    sum[r] += weight;\n"
                     "                    weights[(group * %lld + first + r) * %lld + j * 16 + lane] = weight;\n"
                     "                }\n"
                     "            }\n"
                     "            __syncwarp();\n",
               (long long)columns, (long long)l->each, (long long)l->rows, (long long)own + 4);
}

static void put_values(const Text *t, int64_t vector, int64_t chunks)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          own = l->step / l->groups;
    buf_printf(t->b, "            #pragma unroll 2\n"
                     "            for (int j = 0; j < %lld; j += 4) {\n"
                     "                hlo_pack<float, 4> weight[4];\n"
                     "                #pragma unroll\n"
                     "                for (int r = 0; r < 4; r++)\n"
                     "                    weight[r] = hlo_load<4>(&weights[(group * %lld + first + r) * %lld + j]);\n"
                     "                #pragma unroll\n"
                     "                for (int e = 0; e < 4; e++)\n"
                     "                    #pragma unroll\n"
                     "                    for (int by = 0; by < %lld; by++) {\n"
                     "                        const hlo_pack<float, %lld> value = hlo_load<%lld>(&values[(group * %lld + j + e) * %lld + by * %lld + lane * %lld]);\n"
                     "                        #pragma unroll\n"
                     "                        for (int r = 0; r < 4; r++)\n"
                     "                            #pragma unroll\n"
                     "                            for (int c = 0; c < %lld; c++)\n"
                     "                                out[r][by * %lld + c] += weight[r].at[e] * value.at[c];\n"
                     "                    }\n"
                     "            }\n",
               (long long)own, (long long)l->rows, (long long)own + 4, (long long)chunks, (long long)vector, (long long)vector, (long long)own, (long long)l->wide, (long long)(LANES * vector), (long long)vector,
               (long long)vector, (long long)vector);
}

/* Groups' rows through shared memory, then as one. */
static void put_tile_end(const Text *t, int64_t vector, int64_t chunks)
{
    const AttentionLaunch *l = &t->l;
    buf_printf(t->b, "        __syncthreads();\n"
                     "        float *const own = (float *)hlo_smem, *const stats = own + %lld; // of each group\n"
                     "        #pragma unroll\n"
                     "        for (int r = 0; r < 4; r++) {\n"
                     "            #pragma unroll\n"
                     "            for (int by = 8; by > 0; by /= 2)\n"
                     "                sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], by);\n"
                     "            if (lane == 0) {\n"
                     "                stats[(group * %lld + first + r) * 2] = most[r];\n"
                     "                stats[(group * %lld + first + r) * 2 + 1] = sum[r];\n"
                     "            }\n"
                     "            #pragma unroll\n"
                     "            for (int by = 0; by < %lld; by++)\n"
                     "                #pragma unroll\n"
                     "                for (int c = 0; c < %lld; c++)\n"
                     "                    own[(group * %lld + first + r) * %lld + by * %lld + lane * %lld + c] = out[r][by * %lld + c];\n"
                     "        }\n"
                     "        __syncthreads();\n"
                     "        for (int at = threadIdx.x; at < %lld; at += %d) {\n",
               (long long)(TILE_PARTS * l->wide), (long long)l->rows, (long long)l->rows, (long long)chunks, (long long)vector, (long long)l->rows, (long long)l->wide, (long long)(LANES * vector), (long long)vector,
               (long long)vector, (long long)(l->rows * t->d->wide), ATTENTION_THREADS);
    put_element(t, l->rows, 3);
    buf_puts(t->b, "            const int row = from_row + at_row;\n");
    if (t->d->rows % l->rows != 0)
        buf_puts(t->b, "            if (row >= rows)\n                continue;\n");
    if (l->groups == 1)
        buf_printf(t->b, "            %sfloat largest = stats[at_row * 2];\n            float total = stats[at_row * 2 + 1], x = own[at_row * %lld + c];\n", "const ", (long long)l->wide);
    else
        buf_printf(t->b, "            float largest = -__builtin_inff(), total = 0, x = 0;\n"
                         "            #pragma unroll\n"
                         "            for (int g = 0; g < %lld; g++)\n"
                         "                largest = max_f32(largest, stats[(g * %lld + at_row) * 2]);\n"
                         "            const float from = largest == -__builtin_inff() ? 0 : largest;\n"
                         "            #pragma unroll\n"
                         "            for (int g = 0; g < %lld; g++) {\n"
                         "                const float fades = expf(stats[(g * %lld + at_row) * 2] - from);\n"
                         "                total += fades * stats[(g * %lld + at_row) * 2 + 1];\n"
                         "                x += fades * own[(g * %lld + at_row) * %lld + c];\n"
                         "            }\n",
                   (long long)l->groups, (long long)l->rows, (long long)l->groups, (long long)l->rows, (long long)l->rows, (long long)l->rows, (long long)l->wide);
    put_result(t, l->pieces > 1, 3);
    buf_puts(t->b, "        }\n");
}

static void put_tile_kernel(const Text *t)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const int64_t vector = d->wide >= 64 ? 4 : d->wide >= 32 ? 2 : 1, chunks = l->wide / (LANES * vector), of_group = ATTENTION_THREADS / l->groups, down = (d->rows + l->rows - 1) / l->rows;
    buf_printf(t->b, "    float *const queries = (float *)hlo_smem, *const key_rows = queries + %lld, *const values = key_rows + %lld, *const weights = values + %lld;\n", (long long)(l->rows * l->head),
               (long long)(l->step * l->head), (long long)(l->step * l->wide));
    if (l->groups > 1)
        buf_printf(t->b, "    const int lane = threadIdx.x %% 16, group = threadIdx.x / %lld, first = threadIdx.x %% %lld / 16 * 4;\n", (long long)of_group, (long long)of_group);
    else
        buf_puts(t->b, "    constexpr int group = 0;\n    const int lane = threadIdx.x % 16, first = threadIdx.x / 16 * 4;\n");
    buf_printf(t->b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", t->index, (long long)l->tiles);
    if (l->pieces > 1)
        buf_printf(t->b, "        const int piece = tile %% %lld, from_row = tile / %lld %% %lld * %lld, first_key = piece * %lld;\n        const %s member = tile / %lld;\n", (long long)l->pieces, (long long)l->pieces,
                   (long long)down, (long long)l->rows, (long long)l->piece, t->index, (long long)(l->pieces * down));
    else
        buf_printf(t->b, "        const int from_row = tile %% %lld * %lld;\n        const %s member = tile / %lld;\n", (long long)down, (long long)l->rows, t->index, (long long)down);
    put_begin(t);
    buf_printf(t->b, "        float most[4], sum[4] = {}, out[4][%lld] = {};\n        for (int r = 0; r < 4; r++)\n            most[r] = -__builtin_inff();\n"
                     "        __syncthreads(); // what lies in shared memory may still be read, of the tile before\n",
               (long long)(vector * chunks));
    put_rows(t, 'q', "queries", l->rows, l->head, 2);
    const bool    out = leaves_keys_out(t);
    const int64_t steps = (d->keys + l->step - 1) / l->step;
    if (out && d->above < d->rows)
        buf_printf(t->b, "        const int seen = from_row > %lld ? (from_row - %lld) / %lld %% %lld : 0; // the first step with a key that a row sees\n", (long long)d->above, (long long)d->above, (long long)l->step,
                   (long long)steps);
    if (out)
        buf_printf(t->b, "        for (int by = 0; by < %lld; by++) {\n            const int from_key = %s * %lld;\n", (long long)steps,
                   d->above < d->rows ? arena_printf(t->arena, "(seen + by) %% %lld", (long long)steps) : "by", (long long)l->step);
    else if (l->pieces > 1)
        buf_printf(t->b, "        for (int from_key = first_key; from_key < first_key + %lld && from_key < keys; from_key += %lld) {\n", (long long)l->piece, (long long)l->step);
    else
        buf_printf(t->b, "        for (int from_key = 0; from_key < keys; from_key += %lld) {\n", (long long)l->step);
    if (out)
        put_left_out(t);
    buf_puts(t->b, "            __syncthreads();\n");
    put_rows(t, 'k', "key_rows", l->step, l->head, 3);
    put_rows(t, 'v', "values", l->step, l->wide, 3);
    buf_puts(t->b, "            __syncthreads();\n");
    put_scores(t);
    put_weights(t, vector * chunks);
    put_values(t, vector, chunks);
    buf_puts(t->b, "        }\n");
    put_tile_end(t, vector, chunks);
    buf_puts(t->b, "    }\n");
}

/* ---- few rows ---- */

static int64_t lanes_for(int64_t n)
{
    int64_t lanes = 1;
    while (lanes < n && lanes < WARP)
        lanes *= 2;
    return lanes;
}

/* "pack", four neighbours or one, of what a lane reads. */
static void put_pack(const Text *t, int64_t pack, const char *type, const char *from, int depth)
{
    buf_printf(t->b, "%*sconst hlo_pack<%s, %lld> pack = hlo_load<%lld>(&%s);\n", 4 * depth, "", type, (long long)pack, (long long)pack, from);
}

static void put_few_scores(const Text *t, int64_t lanes, int64_t pack, int64_t chunks)
{
    const hlort_attention *d = t->d;
    const AttentionLaunch *l = &t->l;
    const char            *far = strcmp(t->index, "int") ? "(int64_t)" : "", *in = type_of(t->c->in);
    const bool             cut = d->head % (lanes * pack) != 0, test = d->keys % l->piece != 0;
    const char            *c = arena_printf(t->arena, "by * %lld + lane * %lld", (long long)(lanes * pack), (long long)pack);
    buf_printf(t->b, "        float row_of[%lld][%lld] = {};\n        #pragma unroll\n        for (int row = 0; row < rows; row++)\n            #pragma unroll\n            for (int by = 0; by < %lld; by++)%s\n",
               (long long)d->rows, (long long)(chunks * pack), (long long)chunks, cut ? "" : " {");
    if (cut)
        buf_printf(t->b, "                if (%s < head) {\n", c);
    const int inner = cut ? 5 : 4;
    if (is_packed(t, 'q') && pack == PACK) {
        put_pack(t, pack, in, arena_printf(t->arena, "q[q_at + %s + %s]", place_of_row(t, 'q', "row"), c), inner);
        buf_printf(t->b, "%*sfor (int e = 0; e < %lld; e++)\n%*srow_of[row][by * %lld + e] = %s;\n", 4 * inner, "", (long long)pack, 4 * inner + 4, "", (long long)pack, as_float(t, "pack.at[e]"));
    } else
        buf_printf(t->b, "%*sfor (int e = 0; e < %lld; e++)\n%*srow_of[row][by * %lld + e] = %s;\n", 4 * inner, "", (long long)pack, 4 * inner + 4, "", (long long)pack,
                   as_float(t, arena_printf(t->arena, "q[q_at + %s + (%s + e) * %lld]", place_of_row(t, 'q', "row"), c, (long long)d->q_col)));
    buf_printf(t->b, "%*s}\n", 4 * inner - 4, "");
    buf_printf(t->b, "        #pragma unroll 4\n"
                     "        for (int at = threadIdx.x / %lld; at < %lld; at += %lld) {\n"
                     "            const int key = from_key + at;\n"
                     "            float scores[%lld] = {};\n",
               (long long)lanes, (long long)l->piece, (long long)(ATTENTION_THREADS / lanes), (long long)d->rows);
    if (test)
        buf_puts(t->b, "            if (key < keys) {\n");
    const int depth = test ? 4 : 3;
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int by = 0; by < %lld; by++)%s\n", 4 * depth, "", 4 * depth, "", (long long)chunks, cut ? "" : " {");
    if (cut)
        buf_printf(t->b, "%*sif (%s < head) {\n", 4 * depth + 4, "", c);
    const int in_loop = depth + 1 + cut;
    put_pack(t, pack, in, arena_printf(t->arena, "k[k_at + key * %s%lld + %s]", far, (long long)d->k_row, c), in_loop);
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int e = 0; e < %lld; e++)\n%*s#pragma unroll\n%*sfor (int row = 0; row < rows; row++)\n%*sscores[row] += row_of[row][by * %lld + e] * %s;\n", 4 * in_loop, "", 4 * in_loop,
               "", (long long)pack, 4 * in_loop + 4, "", 4 * in_loop + 4, "", 4 * in_loop + 8, "", (long long)pack, as_float(t, "pack.at[e]"));
    buf_printf(t->b, "%*s}\n", 4 * in_loop - 4, "");
    if (test)
        buf_puts(t->b, "            }\n");
    buf_puts(t->b, "            #pragma unroll\n            for (int row = 0; row < rows; row++) {\n");
    if (lanes > 1)
        buf_printf(t->b, "                #pragma unroll\n                for (int by = %lld; by > 0; by /= 2)\n                    scores[row] += __shfl_xor_sync(0xffffffffu, scores[row], by);\n", (long long)(lanes / 2));
    buf_printf(t->b, "                if (lane == row %% %lld) {\n", (long long)lanes);
    const char *scaled = d->scale == 1 ? "" : arena_printf(t->arena, " * %s", number(t, d->scale));
    if (test) {
        buf_printf(t->b, "                    float x = -__builtin_inff();\n                    if (key < keys) {\n                        x = scores[row]%s;\n", scaled);
        put_score(t, 6);
        buf_puts(t->b, "                    }\n");
    } else {
        buf_printf(t->b, "                    float x = scores[row]%s;\n", scaled);
        put_score(t, 5);
    }
    buf_puts(t->b, "                    weights[row][at] = x;\n                }\n            }\n        }\n        __syncthreads();\n");
}

static void put_few_softmax(const Text *t)
{
    buf_printf(t->b, "        for (int row = threadIdx.x / 32; row < rows; row += 8) {\n"
                     "            float largest = -__builtin_inff(), total = 0;\n"
                     "            #pragma unroll 4\n"
                     "            for (int at = threadIdx.x %% 32; at < %lld; at += 32)\n"
                     "                largest = max_f32(largest, weights[row][at]);\n"
                     "            #pragma unroll\n"
                     "            for (int by = 16; by > 0; by /= 2)\n"
                     "                largest = max_f32(largest, __shfl_xor_sync(0xffffffffu, largest, by));\n"
                     "            const float from = largest == -__builtin_inff() ? 0 : largest;\n"
                     "            #pragma unroll 4\n"
                     "            for (int at = threadIdx.x %% 32; at < %lld; at += 32) {\n"
                     "                const float weight = expf(weights[row][at] - from);\n"
                     "                total += weight;\n"
                     "                weights[row][at] = weight;\n"
                     "            }\n"
                     "            #pragma unroll\n"
                     "            for (int by = 16; by > 0; by /= 2)\n"
                     "                total += __shfl_xor_sync(0xffffffffu, total, by);\n"
                     "            if (threadIdx.x %% 32 == 0) {\n"
                     "                stats[row][0] = largest;\n"
                     "                stats[row][1] = total;\n"
                     "            }\n"
                     "        }\n"
                     "        __syncthreads();\n",
               (long long)t->l.piece, (long long)t->l.piece);
}

static void put_few_values(const Text *t, int64_t lanes, int64_t pack, int64_t chunks)
{
    const hlort_attention *d = t->d;
    const AttentionLaunch *l = &t->l;
    const char            *far = strcmp(t->index, "int") ? "(int64_t)" : "";
    const bool             cut = d->wide % (lanes * pack) != 0, test = d->keys % l->piece != 0;
    const char            *c = arena_printf(t->arena, "by * %lld + column", (long long)(lanes * pack));
    buf_printf(t->b, "        const int column = threadIdx.x %% %lld * %lld;\n"
                     "        float out[%lld][%lld] = {};\n"
                     "        #pragma unroll 4\n"
                     "        for (int at = threadIdx.x / %lld; at < %lld; at += %lld)%s\n",
               (long long)lanes, (long long)pack, (long long)d->rows, (long long)(chunks * pack), (long long)lanes, (long long)l->piece, (long long)(ATTENTION_THREADS / lanes), test ? "" : " {");
    if (test)
        buf_puts(t->b, "            if (from_key + at < keys) {\n");
    const int depth = test ? 4 : 3;
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int by = 0; by < %lld; by++)%s\n", 4 * depth, "", 4 * depth, "", (long long)chunks, cut ? "" : " {");
    if (cut)
        buf_printf(t->b, "%*sif (%s < wide) {\n", 4 * depth + 4, "", c);
    const int in_loop = depth + 1 + cut;
    put_pack(t, pack, type_of(t->c->in), arena_printf(t->arena, "v[v_at + (from_key + at) * %s%lld + %s]", far, (long long)d->v_row, c), in_loop);
    buf_printf(t->b, "%*s#pragma unroll\n%*sfor (int e = 0; e < %lld; e++)\n%*s#pragma unroll\n%*sfor (int row = 0; row < rows; row++)\n%*sout[row][by * %lld + e] += weights[row][at] * %s;\n", 4 * in_loop, "",
               4 * in_loop, "", (long long)pack, 4 * in_loop + 4, "", 4 * in_loop + 4, "", 4 * in_loop + 8, "", (long long)pack, as_float(t, "pack.at[e]"));
    buf_printf(t->b, "%*s}\n%*s}\n", 4 * in_loop - 4, "", 4 * depth - 4, "");
    buf_printf(t->b, "        #pragma unroll\n        for (int row = 0; row < rows; row++)\n            #pragma unroll\n            for (int e = 0; e < %lld; e++) {\n", (long long)(chunks * pack));
    if (lanes < WARP)
        buf_printf(t->b, "                #pragma unroll\n                for (int by = %lld; by < 32; by *= 2)\n                    out[row][e] += __shfl_xor_sync(0xffffffffu, out[row][e], by);\n", (long long)lanes);
    buf_printf(t->b, "                if (threadIdx.x %% 32 < %lld%s)\n                    of_warp[threadIdx.x / 32][row][e / %lld * %lld + column + e %% %lld] = out[row][e];\n            }\n        __syncthreads();\n", (long long)lanes,
               cut ? arena_printf(t->arena, " && e / %lld * %lld + column + e %% %lld < wide", (long long)pack, (long long)(lanes * pack), (long long)pack) : "", (long long)pack, (long long)(lanes * pack), (long long)pack);
}

static void put_few_kernel(const Text *t)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const int64_t k_pack = is_packed(t, 'k') ? PACK : 1, v_pack = is_packed(t, 'v') ? PACK : 1;
    const int64_t k_lanes = lanes_for(d->head / k_pack), v_lanes = lanes_for(d->wide / v_pack);
    buf_printf(t->b, "    __shared__ float weights[%lld][%lld];\n    __shared__ float of_warp[%d][%lld][%lld];\n    __shared__ float stats[%lld][2];\n    const int lane = threadIdx.x %% %lld;\n", (long long)d->rows,
               (long long)l->piece, WARPS, (long long)d->rows, (long long)d->wide, (long long)d->rows, (long long)k_lanes);
    buf_printf(t->b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", t->index, (long long)l->tiles);
    if (l->pieces > 1)
        buf_printf(t->b, "        const int piece = tile %% %lld, from_key = piece * %lld;\n        const %s member = tile / %lld;\n", (long long)l->pieces, (long long)l->piece, t->index, (long long)l->pieces);
    else
        buf_printf(t->b, "        constexpr int from_key = 0;\n        const %s member = tile;\n", t->index);
    put_begin(t);
    put_few_scores(t, k_lanes, k_pack, (d->head + k_lanes * k_pack - 1) / (k_lanes * k_pack));
    put_few_softmax(t);
    put_few_values(t, v_lanes, v_pack, (d->wide + v_lanes * v_pack - 1) / (v_lanes * v_pack));
    buf_printf(t->b, "        for (int at = threadIdx.x; at < rows * wide; at += %d) {\n", ATTENTION_THREADS);
    put_element(t, d->rows, 3);
    buf_printf(t->b, "            const int row = at_row;\n            const float largest = stats[row][0];\n            float total = stats[row][1], x = 0;\n            #pragma unroll\n            for (int w = 0; w < %d; w++)\n"
                     "                x += of_warp[w][row][c];\n",
               WARPS);
    put_result(t, l->pieces > 1, 3);
    buf_puts(t->b, "        }\n    }\n");
}

/* ---- pieces ---- */

/* The same for text that goes elsewhere. */
static Text with_body(const Text *t, Buf *body)
{
    Text in = *t;
    in.b = body;
    return in;
}

static void put_join(const Text *t)
{
    const hlort_attention *d = t->d;
    const AttentionLaunch *l = &t->l;
    buf_printf(t->b, "\nstatic __global__ void __launch_bounds__(%d) %s_join(%s *__restrict__ o", ATTENTION_THREADS, t->name, type_of(t->c->out));
    if (uses_term(t))
        buf_printf(t->b, ", const %s *__restrict__ t", type_of(t->c->of[3]->shape->type));
    buf_puts(t->b, ", const float *__restrict__ parts)\n{\n");
    Buf        body = { 0 };
    const Text in = with_body(t, &body);
    buf_printf(&body, "    for (int64_t thread = (int64_t)blockIdx.x * %d + threadIdx.x; thread < %lld; thread += (int64_t)gridDim.x * %d) {\n"
                     "        const int64_t part = thread / wide * %lld;\n"
                     "        const int c = thread %% wide;\n"
                     "        const int row = thread / wide %% rows;\n"
                     "        const %s member = thread / (rows * wide);\n"
                     "        const float *const stats = parts + %lld + 2 * part;\n"
                     "        float largest = -__builtin_inff(), total = 0, x = 0;\n"
                     "        #pragma unroll 8\n"
                     "        for (int piece = 0; piece < %lld; piece++)\n"
                     "            largest = max_f32(largest, stats[2 * piece]);\n"
                     "        const float from = largest == -__builtin_inff() ? 0 : largest;\n"
                     "        #pragma unroll 8\n"
                     "        for (int piece = 0; piece < %lld; piece++) {\n"
                     "            const float fades = expf(stats[2 * piece] - from);\n"
                     "            total += fades * stats[2 * piece + 1];\n"
                     "            x += fades * parts[(part + piece) * wide + c];\n"
                     "        }\n",
               ATTENTION_THREADS, (long long)(attention_members(d) * d->rows * d->wide), ATTENTION_THREADS, (long long)l->pieces, t->index, (long long)l->stats, (long long)l->pieces, (long long)l->pieces);
    put_result(&in, false, 2);
    buf_puts(&body, "    }\n");
    put_body(t, &body);
}

/* ---- the launcher ---- */

void cuda_put_attention_head(Buf *b, const LibraryCall *x, const char *linkage, const char *prefix)
{
    buf_printf(b, "%s cudaError_t %s%s%s_launch(cudaStream_t stream, void *r0, const void *q, const void *k, const void *v", linkage, prefix ? prefix : "", prefix ? "_" : "", x->name);
    if (x->attention->of[3])
        buf_puts(b, ", const void *t");
    for (int32_t p = 0; x->tile && p < x->tile->n_operands - 1; p++)
        if (kernel_uses_param(x->tile, p))
            buf_printf(b, ", const void *p%d", p);
    buf_puts(b, x->temp_bytes > 0 ? ", void *memory)" : ")");
}

static int64_t most_blocks(const Device *v)
{
    return (int64_t)(WAVES * v->units * v->warps / WARPS);
}

static void put_launcher(const Text *t, const Program *p, const char *linkage, const char *prefix)
{
    const char   *in = type_of(t->c->in), *out = type_of(t->c->out);
    const int64_t most = most_blocks(p->device), blocks = t->l.tiles < most ? t->l.tiles : most;
    const bool    joins = t->l.pieces > 1;
    buf_putc(t->b, '\n');
    cuda_put_attention_head(t->b, t->x, linkage, prefix);
    buf_printf(t->b, "\n{\n    %s hlo_launch%s(stream, %lld, %d, ", joins ? "const cudaError_t e =" : "return", t->l.few ? "" : "_shared", (long long)blocks, ATTENTION_THREADS);
    if (!t->l.few)
        buf_printf(t->b, "%lld, ", (long long)t->l.shared);
    buf_printf(t->b, "%s_kernel, (%s *)r0, (const %s *)q, (const %s *)k, (const %s *)v", t->name, out, in, in, in);
    if (uses_term(t))
        buf_printf(t->b, ", (const %s *)t", type_of(t->c->of[3]->shape->type));
    put_others(t, true);
    buf_puts(t->b, joins ? ", (float *)memory);\n" : ");\n");
    if (joins) {
        const int64_t elements = attention_members(t->d) * t->d->rows * t->d->wide, wanted = (elements + ATTENTION_THREADS - 1) / ATTENTION_THREADS;
        buf_printf(t->b, "    return e ? e : hlo_launch(stream, %lld, %d, %s_join, (%s *)r0", (long long)(wanted < most ? wanted : most), ATTENTION_THREADS, t->name, out);
        if (uses_term(t))
            buf_printf(t->b, ", (const %s *)t", type_of(t->c->of[3]->shape->type));
        buf_puts(t->b, ", (const float *)memory);\n");
    }
    buf_puts(t->b, "}\n");
}

/* Whether a call before has the same function of a score, for places of the same type. */
static bool is_score_there(const Program *p, const LibraryCall *x)
{
    for (int32_t k = 0; p->calls[k] != x; k++)
        if (p->calls[k]->attention && p->calls[k]->tile && p->calls[k]->tile_function == x->tile_function && is_wide(p->calls[k]) == is_wide(x))
            return true;
    return false;
}

void cuda_put_attention(Buf *b, const Program *p, const LibraryCall *x, const char *linkage, const char *prefix)
{
    Arena *a = arena_new();
    Text   t = { .b = b, .arena = a, .x = x, .c = x->attention, .d = &x->attention->d, .index = is_wide(x) ? "int64_t" : "int", .name = x->name };
    attention_launch(x->attention, p->device, &t.l);
    t.score = x->tile ? p->functions[x->tile_function].name : NULL;
    buf_putc(b, '\n');
    c_origin(b, x->inst);
    if (t.score && !is_score_there(p, x))
        put_score_function(&t);
    buf_printf(b, "static __global__ void __launch_bounds__(%d) %s_kernel", ATTENTION_THREADS, x->name);
    put_params(&t);
    Buf        body = { 0 };
    const Text in = with_body(&t, &body);
    (t.l.few ? put_few_kernel : put_tile_kernel)(&in);
    put_body(&t, &body);
    if (t.l.pieces > 1)
        put_join(&t);
    put_launcher(&t, p, linkage, prefix);
    arena_free(a);
}

void cuda_attention_call(Buf *b, const LibraryCall *x, const char *const *args)
{
    const int32_t own = x->attention->n, others = x->tile ? x->tile->n_operands - 1 : 0;
    buf_printf(b, "stream, %s", args[own + others]);
    for (int32_t k = 0; k < own; k++)
        buf_printf(b, ", %s", args[k]);
    for (int32_t k = 0; k < others; k++)
        if (kernel_uses_param(x->tile, k))
            buf_printf(b, ", %s", args[own + k]);
    if (x->temp_bytes > 0)
        buf_printf(b, ", %s", args[own + others + 1]);
    buf_putc(b, ')');
}

/* ---- a program's ---- */

bool cuda_has_attention(const Program *p, bool shared)
{
    for (int32_t k = 0; k < p->n_calls; k++) {
        AttentionLaunch l;
        if (!p->calls[k]->attention)
            continue;
        attention_launch(p->calls[k]->attention, p->device, &l);
        if (!shared || !l.few)
            return true;
    }
    return false;
}

const char *cuda_attention_function(const Program *p, int32_t *at)
{
    static const struct {
        Type        type;
        bool        in;
        const char *name;
    } functions[] = {
        { TYPE_F32, true, "max_f32" }, { TYPE_F16, true, "max_f32" }, { TYPE_BF16, true, "max_f32" }, { TYPE_F16, true, "f16_to_f32" }, { TYPE_BF16, true, "bf16_to_f32" },
        { TYPE_F16, false, "f32_to_f16" }, { TYPE_BF16, false, "f32_to_bf16" },
    };
    for (; *at < (int32_t)(sizeof functions / sizeof *functions); ++*at)
        for (int32_t k = 0; k < p->n_calls; k++) {
            const AttentionCall *c = p->calls[k]->attention;
            if (c && (functions[*at].in ? c->in : c->out) == functions[*at].type)
                return functions[(*at)++].name;
        }
    return NULL;
}
