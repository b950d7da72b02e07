/* Attention of tiles of rows, whichever form it has (attention_lanes.c, attention_tensor.c): 16 lanes share the rows of a tile that are theirs, a lane has every 16th key of a step. Queries, keys and values lie
 * in shared memory as they are, rows an odd number of 16 bytes apart, so that lanes that read rows side by side reach different banks. Where each step of the softmax is rounded, all scores of the tile
 * lie there, too, then what becomes of them, and keys are gone through before, values behind. Keys that no row of the tile sees come last: they are left out as soon as the scores before are well
 * above, if their values are finite. */
#include "target-cuda/attention_tile.h"

/* ---- rows in shared memory ---- */

/* Rows of an array that go to shared memory. */
typedef struct Rows {
    const char *to, *from; /* there; "&q[..." of a row, without its column */
    const char *test;      /* what holds of elements that there are; may be empty */
    int64_t     count, filled, stride; /* of rows; of their elements, zeros behind; elements between rows there */
    int64_t     pack;                  /* neighbours that are one access */
    int64_t     row_by, col_by;
} Rows;

static void put_packed_rows(const AttentionText *t, const Rows *w, int in)
{
    const int64_t packs = w->filled / w->pack;
    const bool    halves = t->c->in != TYPE_F32 && t->form->widens;
    const char   *type = t->form->widens ? "float" : attention_type(t->c->in);
    const int     more = *w->test ? 4 : 0;
    buf_printf(t->b, "%*s#pragma unroll 4\n%*sfor (int at = threadIdx.x; at < %lld; at += %d) {\n", in, "", in, "", (long long)(w->count * packs), ATTENTION_THREADS);
    buf_printf(t->b, "%*sconst int at_row = at / %lld, c = at %% %lld * %lld;\n%*shlo_pack<%s, %lld> pack = {};\n", in + 4, "", (long long)packs, (long long)packs, (long long)w->pack, in + 4, "", type,
               (long long)w->pack);
    if (*w->test)
        buf_printf(t->b, halves ? "%*sif (%s) {\n" : "%*sif (%s)\n", in + 4, "", w->test);
    if (halves)
        buf_printf(t->b, "%*sconst hlo_pack<uint16_t, 4> halves = hlo_load<4>(&%s + c]);\n%*sfor (int e = 0; e < 4; e++)\n%*spack.at[e] = %s;\n", in + 4 + more, "", w->from, in + 4 + more, "",
                   in + 8 + more, "", attention_float(t, "halves.at[e]"));
    else
        buf_printf(t->b, "%*spack = hlo_load<%lld>(&%s + c]);\n", in + 4 + more, "", (long long)w->pack, w->from);
    if (*w->test && halves)
        buf_printf(t->b, "%*s}\n", in + 4, "");
    buf_printf(t->b, "%*shlo_store(&%s[at_row * %lld + c], pack);\n%*s}\n", in + 4, "", w->to, (long long)w->stride, in, "");
}

static void put_single_rows(const AttentionText *t, const Rows *w, bool down, int in)
{
    const char *element = arena_printf(t->arena, "%s + %s]", w->from, w->col_by == 1 ? "c" : attention_times(t, "c", w->col_by)), *read = t->form->widens ? attention_float(t, element) : element;
    buf_printf(t->b, "%*s#pragma unroll 4\n%*sfor (int at = threadIdx.x; at < %lld; at += %d) {\n", in, "", in, "", (long long)(w->count * w->filled), ATTENTION_THREADS);
    if (down) /* eight rows are a sector, and four columns of them 32 banks */
        buf_printf(t->b, "%*sconst int at_row = at %% 8 + at / %lld * 8, c = at / 8 %% %lld;\n", in + 4, "", (long long)(8 * w->filled), (long long)w->filled);
    else
        buf_printf(t->b, "%*sconst int at_row = at / %lld, c = at %% %lld;\n", in + 4, "", (long long)w->filled, (long long)w->filled);
    buf_printf(t->b, *w->test ? "%*s%s[at_row * %lld + c] = %s ? %s : 0;\n%*s}\n" : "%*s%s[at_row * %lld + c] = %s%s;\n%*s}\n", in + 4, "", w->to, (long long)w->stride, w->test, read, in, "");
}

/* 16 bytes of each row, less, or one element. */
static int64_t pack_of(const AttentionText *t, char array)
{
    const int64_t most = t->form->widens ? ATTENTION_PACK : 2 * ATTENTION_PACK;
    return attention_is_packed(t, array, most) ? most : attention_is_packed(t, array, ATTENTION_PACK) ? ATTENTION_PACK : 1;
}

static void put_rows(const AttentionText *t, char array, const char *to, int64_t count, int64_t stride, int depth)
{
    const hlort_attention *d = t->d;
    const int64_t          n = array == 'v' ? d->wide : d->head;
    const bool             whole = array == 'q' ? d->rows % count == 0 : d->keys % t->l.by.step == 0;
    Rows w = { .to = to, .count = count, .stride = stride, .row_by = array == 'k' ? d->k_row : d->v_row, .col_by = array == 'q' ? d->q_col : array == 'k' ? d->k_col : d->v_col };
    w.filled = array == 'v' && t->form->widens ? stride : (n + t->form->whole - 1) / t->form->whole * t->form->whole;
    w.pack = pack_of(t, array);
    w.from = arena_printf(t->arena, "%c[%c_at + %s", array, array, array == 'q' ? attention_row(t, 'q', "(from_row + at_row)") : attention_times(t, "(from_key + at_row)", w.row_by));
    w.test = whole ? "" : array == 'q' ? "from_row + at_row < rows" : "from_key + at_row < keys";
    if (w.filled > n)
        w.test = arena_printf(t->arena, "%s%sc < %lld", w.test, *w.test ? " && " : "", (long long)n);
    if (w.pack > 1)
        put_packed_rows(t, &w, 4 * depth);
    else
        put_single_rows(t, &w, array != 'q' && w.row_by < w.col_by, 4 * depth);
}

/* ---- steps ---- */

static bool leaves_keys_out(const AttentionText *t)
{
    const hlort_attention *d = t->d;
    return d->masked && !d->beside_it && !t->score && d->n_rows == 1 && t->l.pieces == 1 && d->keys > t->l.by.step && (d->below < d->keys - t->l.by.step || d->above < d->rows);
}

/* Every row of the tile has had a score so large that e^(hidden - most) is 0: that is so from 104 on. */
static void put_far_scores(const AttentionText *t)
{
    const char     *hidden = attention_number(t, t->d->hidden);
    const TileForm *f = t->form;
    if (t->l.by.groups > 1)
        buf_printf(t->b, "                __syncthreads();\n"
                         "                #pragma unroll\n"
                         "                for (int r = 0; r < %d; r++)\n"
                         "                    if (lane == 0)\n"
                         "                        %s[group * %lld + %s] = most[r];\n"
                         "                __syncthreads();\n"
                         "                for (int r = threadIdx.x; r < %lld && from_row + r < rows; r += %d) {\n"
                         "                    float largest = -__builtin_inff();\n"
                         "                    for (int g = 0; g < %lld; g++)\n"
                         "                        largest = max_f32(largest, %s[g * %lld + r]);\n"
                         "                    far = far && largest > %s + 104;\n"
                         "                }\n",
                   f->rows, f->free, (long long)t->l.rows, f->row, (long long)t->l.rows, ATTENTION_THREADS, (long long)t->l.by.groups, f->free, (long long)t->l.rows, hidden);
    else
        buf_printf(t->b, "                #pragma unroll\n"
                         "                for (int r = 0; r < 4; r++)\n"
                         "                    far = far && (from_row + first + r >= rows || most[r] > %s + 104);\n",
                   hidden);
}

/* 0 times a value is 0. */
static void put_finite_values(const AttentionText *t)
{
    const hlort_attention *d = t->d;
    const bool             packed = attention_is_packed(t, 'v', ATTENTION_PACK), down = !packed && d->v_row < d->v_col;
    const int64_t          packs = d->wide / (packed ? ATTENTION_PACK : 1), by = down ? t->l.by.step : packs;
    const char            *at = arena_printf(t->arena, "v[v_at + %s + c", attention_times(t, "(from_key + at_row)", d->v_row));
    buf_printf(t->b, "                #pragma unroll 4\n"
                     "                for (int at = threadIdx.x; at < %lld; at += %d) {\n"
                     "                    const int at_row = at %s %lld, c = at %s %lld%s;\n"
                     "                    if (from_key + at_row < keys) {\n",
               (long long)(t->l.by.step * packs), ATTENTION_THREADS, down ? "%" : "/", (long long)by, down ? "/" : "%", (long long)by, packed ? " * 4" : "");
    if (packed)
        buf_printf(t->b, "                        const hlo_pack<%s, 4> pack = hlo_load<4>(&%s]);\n"
                         "                        for (int e = 0; e < 4; e++)\n"
                         "                            far = far && fabsf(%s) < __builtin_inff();\n",
                   attention_type(t->c->in), at, attention_float(t, "pack.at[e]"));
    else
        buf_printf(t->b, "                        far = far && fabsf(%s) < __builtin_inff();\n",
                   attention_float(t, d->v_col == 1 ? arena_printf(t->arena, "%s]", at) : arena_printf(t->arena, "%s * %lld]", at, (long long)d->v_col)));
    buf_puts(t->b, "                    }\n                }\n");
}

/* A step whose keys no row of the tile sees. */
static void put_left_out(const AttentionText *t)
{
    const hlort_attention *d = t->d;
    Buf                    unseen = { 0 };
    if (d->below < d->keys)
        buf_printf(&unseen, "from_key > from_row + %lld", (long long)(t->l.rows - 1 + d->below));
    if (d->above < d->keys + d->rows)
        buf_printf(&unseen, "%sfrom_key + %lld < from_row", unseen.n ? " || " : "", (long long)(t->l.by.step - 1 + d->above));
    buf_printf(t->b, "            if (%s) {\n                bool far = true;\n", unseen.p);
    buf_free(&unseen);
    put_far_scores(t);
    put_finite_values(t);
    buf_puts(t->b, "                if (__syncthreads_and(far))\n                    continue;\n            }\n");
}

/* ---- scores and weights ---- */

/* x is what becomes of a score of row r, the j-th of this thread in the step. */
static void put_each_score(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const bool             test_key = d->keys % l->piece != 0 || l->piece % l->by.step != 0, test_row = t->score && d->rows % l->rows != 0;
    if (test_row || (t->score ? kernel_tile_uses_row(t->x->tile) : attention_masks(d)))
        buf_printf(t->b, "                const int row = from_row + %s;\n", t->form->row);
    buf_printf(t->b, "                #pragma unroll\n                for (int j = 0; j < %lld; j++) {\n", (long long)l->by.each);
    if (test_key || t->score || attention_masks(d))
        buf_printf(t->b, "                    const int key = from_key + group * %lld + j * 16 + lane;\n", (long long)(l->by.step / l->by.groups));
    const char *test = arena_printf(t->arena, "%s%s%s", test_key ? "key < keys" : "", test_key && test_row ? " && " : "", test_row ? "row < rows" : "");
    attention_put_score(t, test, "scores[r][j]", 5);
}

static void put_weights(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    buf_printf(t->b, "            #pragma unroll\n            for (int r = 0; r < %d; r++) {\n                float larger = most[r];\n", t->form->rows);
    put_each_score(t);
    buf_puts(t->b, "                    scores[r][j] = x;\n"
                   "                    larger = max_f32(larger, x);\n"
                   "                }\n"
                   "                #pragma unroll\n"
                   "                for (int by = 8; by > 0; by /= 2)\n"
                   "                    larger = max_f32(larger, __shfl_xor_sync(0xffffffffu, larger, by));\n"
                   "                const float from = larger == -__builtin_inff() ? 0 : larger, fades = expf(most[r] - from);\n"
                   "                most[r] = larger;\n"
                   "                sum[r] *= fades;\n");
    t->form->put_fade(t);
    buf_printf(t->b, "                #pragma unroll\n"
                     "                for (int j = 0; j < %lld; j++) {\n"
                     "                    const float weight = expf(scores[r][j] - from);\n"
                     "                    sum[r] += weight;\n"
                     "                    %s;\n"
                     "                }\n"
                     "            }\n"
                     "            __syncwarp();\n",
               (long long)l->by.each, t->form->weight(t));
}

/* ---- all of it ---- */

/* The loop over tiles begins, with where one is. */
static void put_where(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          down = (t->d->rows + l->rows - 1) / l->rows;
    buf_printf(t->b, "    for (%s tile = blockIdx.x; tile < %lld; tile += gridDim.x) {\n", t->index, (long long)l->tiles);
    const char *of_pieces = l->pieces > 1 ? arena_printf(t->arena, " / %lld", (long long)l->pieces) : "";
    const char *of_member = l->pieces * down > 1 ? arena_printf(t->arena, " / %lld", (long long)(l->pieces * down)) : "";
    if (l->pieces > 1)
        buf_printf(t->b, "        const int piece = tile %% %lld, first_key = piece * %lld;\n", (long long)l->pieces, (long long)l->piece);
    if (down > 1)
        buf_printf(t->b, "        const int from_row = tile%s %% %lld * %lld;\n", of_pieces, (long long)down, (long long)l->rows);
    else
        buf_puts(t->b, "        constexpr int from_row = 0;\n");
    buf_printf(t->b, "        const %s member = tile%s;\n", t->index, of_member);
}

/* The loop over steps of keys begins. */
static void put_steps(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const hlort_attention *d = t->d;
    const bool             out = leaves_keys_out(t);
    const int64_t          steps = (d->keys + l->by.step - 1) / l->by.step;
    if (out && d->above < d->rows)
        buf_printf(t->b, "        const int seen = from_row > %lld ? (from_row - %lld) / %lld %% %lld : 0; // the first step with a key that a row sees\n", (long long)d->above, (long long)d->above, (long long)l->by.step,
                   (long long)steps);
    if (out)
        buf_printf(t->b, "        for (int by = 0; by < %lld; by++) {\n            const int from_key = %s * %lld;\n", (long long)steps,
                   d->above < d->rows ? arena_printf(t->arena, "(seen + by) %% %lld", (long long)steps) : "by", (long long)l->by.step);
    else if (l->pieces > 1)
        buf_printf(t->b, "        for (int from_key = first_key; from_key < first_key + %lld && from_key < keys; from_key += %lld) {\n", (long long)l->piece, (long long)l->by.step);
    else
        buf_printf(t->b, "        for (int from_key = 0; from_key < keys; from_key += %lld) {\n", (long long)l->by.step);
}

/* ---- steps that are rounded ---- */

/* What all lanes and groups have of the numbers `of` of each row: `joined` of that and `other`. */
static void put_joined(const AttentionText *t, const char *of, const char *joined)
{
    const AttentionLaunch *l = &t->l;
    const TileForm        *f = t->form;
    buf_printf(t->b, "        #pragma unroll\n"
                     "        for (int r = 0; r < %d; r++)\n"
                     "            #pragma unroll\n"
                     "            for (int by = 8; by > 0; by /= 2) {\n"
                     "                const float other = __shfl_xor_sync(0xffffffffu, %s[r], by);\n"
                     "                %s[r] = %s;\n"
                     "            }\n",
               f->rows, of, of, joined);
    if (l->by.groups == 1)
        return;
    buf_printf(t->b, "        __syncthreads();\n"
                     "        #pragma unroll\n"
                     "        for (int r = 0; r < %d; r++)\n"
                     "            if (lane == 0)\n"
                     "                of_groups[group * %lld + %s] = %s[r];\n"
                     "        __syncthreads();\n"
                     "        #pragma unroll\n"
                     "        for (int r = 0; r < %d; r++) {\n"
                     "            %s[r] = of_groups[%s];\n"
                     "            for (int g = 1; g < %lld; g++) {\n"
                     "                const float other = of_groups[g * %lld + %s];\n"
                     "                %s[r] = %s;\n"
                     "            }\n"
                     "        }\n",
               f->rows, (long long)l->rows, f->row, of, f->rows, of, f->row, (long long)l->by.groups, (long long)l->rows, f->row, of, joined);
}

/* The loop over a thread's own weights, of which `made` is the text for the one at `at`. */
static void put_own_weights(const AttentionText *t, const char *made)
{
    const AttentionLaunch *l = &t->l;
    buf_printf(t->b, "        for (int from_key = 0; from_key < keys; from_key += %lld)\n"
                     "            #pragma unroll\n"
                     "            for (int r = 0; r < %d; r++)\n"
                     "                #pragma unroll\n"
                     "                for (int j = 0; j < %lld; j++) {\n"
                     "                    uint16_t *const at = &weights[(%s) * %lld + from_key + group * %lld + j * 16 + lane];\n"
                     "%s"
                     "                }\n",
               (long long)l->by.step, t->form->rows, (long long)l->by.each, t->form->row, (long long)l->by.kept, (long long)(l->by.step / l->by.groups), made);
}

/* x, rounded as each step is. */
static const char *rounded(const AttentionText *t, const char *x)
{
    return attention_float(t, attention_narrow(t, x));
}

/* The term of each row, which the largest score gives way to if it is among what that is of. */
static void put_terms(const AttentionText *t)
{
    const bool array = t->c->of[3] != NULL;
    buf_printf(t->b, "        float terms[%d];\n        #pragma unroll\n        for (int r = 0; r < %d; r++) {\n", t->form->rows, t->form->rows);
    if (array)
        buf_printf(t->b, "            const int row = from_row + %s;\n", t->form->row);
    buf_printf(t->b, array && t->d->rows % t->l.rows != 0 ? "            terms[r] = row < rows ? %s : 0;\n" : "            terms[r] = %s;\n", attention_term(t));
    buf_puts(t->b, t->d->term & HLORT_TERM_BESIDE ? "        }\n" : "            most[r] = max_f32(most[r], terms[r]);\n        }\n");
}

/* Weights as they are rounded: the difference, its exponential, the quotient. */
static void put_rounded_softmax(const AttentionText *t)
{
    Arena      *a = t->arena;
    const char *off = rounded(t, arena_printf(a, "%s - most[r]", attention_float(t, "*at"))), *all = "sum[r]";
    put_joined(t, "most", "max_f32(most[r], other)");
    if (t->d->term)
        put_terms(t);
    put_own_weights(t, arena_printf(a, "                    *at = %s;\n                    sum[r] += %s;\n", attention_narrow(t, arena_printf(a, "expf(%s)", off)), attention_float(t, "*at")));
    put_joined(t, "sum", "sum[r] + other");
    if (t->d->term)
        all = arena_printf(a, "%s + %s", t->d->term & HLORT_TERM_LAST ? rounded(t, all) : all, rounded(t, arena_printf(a, "expf(%s)", rounded(t, "terms[r] - most[r]"))));
    buf_printf(t->b, "        #pragma unroll\n        for (int r = 0; r < %d; r++)\n            sum[r] = %s;\n", t->form->rows, rounded(t, all));
    put_own_weights(t, arena_printf(a, "                    *at = %s;\n", attention_narrow(t, arena_printf(a, "%s / sum[r]", attention_float(t, "*at")))));
}

static void put_kept_scores(const AttentionText *t)
{
    buf_printf(t->b, "            #pragma unroll\n            for (int r = 0; r < %d; r++) {\n", t->form->rows);
    put_each_score(t);
    buf_printf(t->b, "                    most[r] = max_f32(most[r], x);\n"
                     "                    weights[(%s) * %lld + key] = %s;\n"
                     "                }\n"
                     "            }\n",
               t->form->row, (long long)t->l.by.kept, attention_narrow(t, "x"));
}

/* All keys, the softmax, all values; what groups have of the result is added up as it is. */
static void put_rounded_steps(const AttentionText *t)
{
    buf_puts(t->b, "        // all scores of the tile\n");
    put_steps(t);
    buf_puts(t->b, "            __syncthreads();\n");
    put_rows(t, 'k', "key_rows", t->l.by.step, t->l.by.head, 3);
    buf_puts(t->b, "            __syncthreads();\n");
    t->form->put_scores(t);
    put_kept_scores(t);
    buf_puts(t->b, "        }\n");
    buf_puts(t->b, "        // weights in their place, each step rounded\n");
    put_rounded_softmax(t);
    buf_puts(t->b, "        // sums of weights times values\n");
    put_steps(t);
    buf_puts(t->b, "            __syncthreads();\n");
    put_rows(t, 'v', "values", t->l.by.step, t->l.by.wide, 3);
    buf_puts(t->b, "            __syncthreads();\n");
    t->form->put_values(t);
    buf_printf(t->b, "        }\n"
                     "        #pragma unroll\n"
                     "        for (int r = 0; r < %d; r++) {\n"
                     "            most[r] = 0;\n"
                     "            sum[r] = group == 0 && lane == 0;\n"
                     "        }\n",
               t->form->rows);
}

/* Keys and values of a step together. */
static void put_exact_steps(const AttentionText *t)
{
    put_steps(t);
    if (leaves_keys_out(t))
        put_left_out(t);
    buf_puts(t->b, "            __syncthreads();\n");
    put_rows(t, 'k', "key_rows", t->l.by.step, t->l.by.head, 3);
    put_rows(t, 'v', "values", t->l.by.step, t->l.by.wide, 3);
    buf_puts(t->b, "            __syncthreads();\n");
    buf_puts(t->b, "            // scores\n");
    t->form->put_scores(t);
    buf_puts(t->b, "            // weights; sums so far fade by e^(what was the largest score - what is)\n");
    put_weights(t);
    buf_puts(t->b, "            // sums of weights times values\n");
    t->form->put_values(t);
    buf_puts(t->b, "        }\n");
}

/* ---- the result ---- */

/* Groups' rows through shared memory, then as one. */
static void put_tile_end(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    const int64_t          stride = t->form->stride(t);
    buf_printf(t->b, "        // what groups have of each row, and then the row\n"
                     "        __syncthreads();\n"
                     "        float *const own = (float *)hlo_smem, *const stats = own + %lld; // of each group\n"
                     "        #pragma unroll\n"
                     "        for (int r = 0; r < %d; r++) {\n"
                     "            #pragma unroll\n"
                     "            for (int by = 8; by > 0; by /= 2)\n"
                     "                sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], by);\n"
                     "            if (lane == 0) {\n"
                     "                stats[(group * %lld + %s) * 2] = most[r];\n"
                     "                stats[(group * %lld + %s) * 2 + 1] = sum[r];\n"
                     "            }\n"
                     "        }\n",
               (long long)(l->by.groups * l->rows * stride), t->form->rows, (long long)l->rows, t->form->row, (long long)l->rows, t->form->row);
    t->form->put_sums_out(t);
    buf_printf(t->b, "        __syncthreads();\n        for (int at = threadIdx.x; at < %lld; at += %d) {\n", (long long)(l->rows * t->d->wide), ATTENTION_THREADS);
    attention_put_element(t, l->rows, 3);
    buf_puts(t->b, "            const int row = from_row + at_row;\n");
    if (t->d->rows % l->rows != 0)
        buf_puts(t->b, "            if (row >= rows)\n                continue;\n");
    if (l->by.groups == 1)
        buf_printf(t->b, "            %sfloat largest = stats[at_row * 2];\n            float total = stats[at_row * 2 + 1], x = own[at_row * %lld + c];\n", "const ", (long long)stride);
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
                   (long long)l->by.groups, (long long)l->rows, (long long)l->by.groups, (long long)l->rows, (long long)l->rows, (long long)l->rows, (long long)stride);
    attention_put_result(t, l->pieces > 1, 3);
    buf_puts(t->b, "        }\n");
}

void attention_put_tiles(const AttentionText *t)
{
    const AttentionLaunch *l = &t->l;
    t->form->put_begin(t);
    put_where(t);
    attention_put_begin(t);
    buf_printf(t->b, "        float most[%d], sum[%d] = {};\n", t->form->rows, t->form->rows);
    t->form->put_sums(t);
    buf_printf(t->b, "        for (int r = 0; r < %d; r++)\n            most[r] = -__builtin_inff();\n"
                     "        __syncthreads(); // what lies in shared memory may still be read, of the tile before\n",
               t->form->rows);
    put_rows(t, 'q', "queries", l->rows, l->by.head, 2);
    (l->by.kept ? put_rounded_steps : put_exact_steps)(t);
    put_tile_end(t);
    buf_puts(t->b, "    }\n");
}
