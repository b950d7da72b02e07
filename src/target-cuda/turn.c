/* Transposes (emit/turn.h): a block reads a tile of 32 by 32 along what is read and writes it along what is written, through shared memory whose rows are
 * 33 long, so that both ways touch all banks:
 *
 *     __shared__ float turn_tile[32][33];
 *     for (int tile = blockIdx.x; tile < 480; tile += gridDim.x) {
 *         const int i0 = tile / 12, from_in = tile / 3 % 4 * 32, from_out = tile % 3 * 32;
 *         for (int at = threadIdx.x; at < 1024; at += 256) {
 *             const int i2 = from_in + at % 32, i1 = from_out + at / 32;
 *             if (i2 < 100 && i1 < 90)
 *                 turn_tile[at / 32][at % 32] = x[i0 * 9000 + i1 * 100 + i2];
 *         }
 *         __syncthreads();
 *         (the same the other way round, which computes and stores)
 *         __syncthreads();
 *     }
 *
 * A side that is shorter than 16 is whole, and the other one as much longer: 3 by 352. Rows of a few elements that stay together are elements of such a tile:
 *
 *             const int i2 = from_in + at / 3 % 16, i1 = from_out + at / 48, i3 = at % 3;
 *             turn_tile[at / 48][at % 48] = ...
 */
#include "support/buf.h"
#include "target-cuda/part.h"

enum { SIDE = 32, MOST = SIDE * (SIDE + 1) /* elements of shared memory */, LEAST = THREADS / 2 /* elements of a tile */ };

typedef struct Sides {
    int64_t in, out, each;
} Sides;

static int64_t trips(const IxAtom *loop)
{
    return loop->hi - loop->lo + 1;
}

/* So many times 32 of the loop at most, and no more than it has. */
static int64_t long_side(const IxAtom *loop, int64_t most)
{
    const int64_t n = (trips(loop) + SIDE - 1) / SIDE * SIDE, side = most < SIDE ? SIDE : most / SIDE * SIDE;
    return n < side ? n : side;
}

static Sides sides_of(const CudaPart *part)
{
    const TurnPart *t = &part->turn;
    const int64_t   each = t->each ? trips(t->each) : 1, most = part->threads.count < part->device->units * MOST ? MOST / 2 : MOST;
    int64_t         side = SIDE;
    while (side * side * each > SIDE * SIDE)
        side /= 2;
    if (trips(t->in) < side / 2)
        return (Sides){ trips(t->in), long_side(t->out, most / ((trips(t->in) * each) | 1)), each };
    if (trips(t->out) < side / 2)
        return (Sides){ long_side(t->in, (most / trips(t->out) - 1) / each), trips(t->out), each };
    return (Sides){ side, side, each };
}

static int64_t tiles_along(const IxAtom *loop, int64_t side)
{
    return (trips(loop) + side - 1) / side;
}

static bool is_of_tile(const TurnPart *t, const IxAtom *loop)
{
    return loop == t->in || loop == t->out || loop == t->each;
}

int64_t cuda_turn_tiles(const CudaPart *part)
{
    const Sides s = sides_of(part);
    int64_t     n = tiles_along(part->turn.in, s.in) * tiles_along(part->turn.out, s.out);
    for (int32_t j = 0; j < part->threads.n_loops; j++)
        if (!is_of_tile(&part->turn, part->threads.loops[j]))
            n *= trips(part->threads.loops[j]);
    return n;
}

/* Of an element's bytes and the row's padding. */
int64_t cuda_turn_shared(const CudaPart *part)
{
    const Sides s = sides_of(part);
    return s.out * ((s.in * s.each) | 1) * type_bytes(storage_type(part->turn.load->array->type));
}

bool cuda_choose_turn(Arena *a, const Kernel *k, CudaPart *part)
{
    if (!kernel_turn_part(a, k, &part->threads, &part->turn) || cuda_turn_tiles(part) >= INT32_MAX / SIDE)
        return false;
    const Sides   s = sides_of(part);
    const int64_t in = trips(part->turn.in), out = trips(part->turn.out);
    return (in < s.in ? in : s.in) * (out < s.out ? out : s.out) * s.each >= LEAST;
}

int64_t cuda_turn_blocks(const CudaPart *part)
{
    int64_t n = cuda_turn_tiles(part);
    return n < cuda_most_blocks(part) ? n : cuda_most_blocks(part);
}

/* ", from_in = tile / 3 % 4 * 32", the tile's first trip of a loop of which `inner` are inside; whole: of no other loop's around it. */
static void put_from(Buf *b, const char *name, const IxAtom *loop, int64_t side, int64_t inner, bool whole)
{
    const int64_t n = tiles_along(loop, side);
    buf_printf(b, "%s = ", name);
    if (n == 1) {
        buf_printf(b, "%lld", (long long)loop->lo);
        return;
    }
    buf_puts(b, "tile");
    if (inner > 1)
        buf_printf(b, " / %lld", (long long)inner);
    if (!whole)
        buf_printf(b, " %% %lld", (long long)n);
    buf_printf(b, " * %lld", (long long)side);
    if (loop->lo != 0)
        buf_printf(b, " + %lld", (long long)loop->lo);
}

/* The other loops' values, and where the tile begins. */
static void put_tile(Buf *b, const CudaPart *part, const Sides *s)
{
    const TurnPart *t = &part->turn;
    int64_t         inner = cuda_turn_tiles(part);
    bool            first = true;
    buf_printf(b, "        const %s ", part->dialect->index);
    for (int32_t j = 0; j < part->threads.n_loops; j++) {
        const IxAtom *loop = part->threads.loops[j];
        int64_t       n = trips(loop);
        if (is_of_tile(t, loop))
            continue;
        inner /= n;
        buf_printf(b, "%s = tile / %lld", loop->name, (long long)inner);
        if (!first)
            buf_printf(b, " %% %lld", (long long)n);
        if (loop->lo != 0)
            buf_printf(b, " + %lld", (long long)loop->lo);
        buf_puts(b, ", ");
        first = false;
    }
    const int64_t out = tiles_along(t->out, s->out);
    put_from(b, "from_in", t->in, s->in, out, first);
    buf_puts(b, ", ");
    put_from(b, "from_out", t->out, s->out, 1, first && tiles_along(t->in, s->in) == 1);
    buf_puts(b, ";\n");
}

/* "at / 3 % 16": of the tile's elements, dealt out in rows of `side` that are `each` elements apart. */
static const char *place(Arena *a, int64_t each, int64_t side)
{
    return each > 1 ? arena_printf(a, "at / %lld %% %lld", (long long)each, (long long)side) : arena_printf(a, "at %% %lld", (long long)side);
}

/* The loop over the tile. Neighbours are such in what is read, or in what is written. Returns how deep what it does is. */
static int put_way(Buf *b, Arena *a, const CudaPart *part, const Sides *s, bool reads)
{
    const TurnPart *t = &part->turn;
    const IxAtom   *lanes = reads ? t->in : t->out, *steps = reads ? t->out : t->in;
    const int64_t   side = reads ? s->in : s->out, others = reads ? s->out : s->in;
    buf_printf(b, "        #pragma unroll\n        for (int at = threadIdx.x; at < %lld; at += %d) {\n", (long long)(s->in * s->out * s->each), THREADS);
    buf_printf(b, "            const %s %s = from_%s + %s, %s = from_%s + at / %lld", part->dialect->index, lanes->name, reads ? "in" : "out", place(a, s->each, side), steps->name,
               reads ? "out" : "in", (long long)(side * s->each));
    if (t->each) {
        buf_printf(b, ", %s = at %% %lld", t->each->name, (long long)s->each);
        if (t->each->lo != 0)
            buf_printf(b, " + %lld", (long long)t->each->lo);
    }
    buf_puts(b, ";\n");
    const bool cut_lanes = trips(lanes) % side != 0, cut_steps = trips(steps) % others != 0;
    if (!cut_lanes && !cut_steps)
        return 3;
    buf_puts(b, "            if (");
    if (cut_lanes)
        buf_printf(b, "%s < %lld%s", lanes->name, (long long)lanes->hi + 1, cut_steps ? " && " : "");
    if (cut_steps)
        buf_printf(b, "%s < %lld", steps->name, (long long)steps->hi + 1);
    buf_puts(b, reads ? ")\n" : ") {\n");
    return 4;
}

void cuda_turn_body(Buf *b, const CudaPart *part)
{
    Arena          *a = arena_new();
    const TurnPart *t = &part->turn;
    const char     *type = dialect_type(part->dialect, t->load->type);
    const Sides     s = sides_of(part);
    const int64_t   row = s.in * s.each;
    buf_printf(b, "    __shared__ %s turn_tile[%lld][%lld];\n", type, (long long)s.out, (long long)(row | 1));
    dialect_block(b, part->dialect, part->threads.before, 1);
    cuda_grid_loop(b, part, "tile", 1, NULL);
    buf_puts(b, " {\n");
    put_tile(b, part, &s);
    buf_printf(b, "%*sturn_tile[at / %lld][at %% %lld] = ", 4 * put_way(b, a, part, &s, true), "", (long long)row, (long long)row);
    dialect_expr(b, part->dialect, t->load);
    buf_puts(b, ";\n        }\n        __syncthreads();\n");
    const int depth = put_way(b, a, part, &s, false);
    buf_printf(b, "%*s%s %s = turn_tile[%s][at / %lld", 4 * depth, "", type, t->value->name, place(a, s.each, s.out), (long long)(s.out * s.each));
    if (t->each)
        buf_printf(b, " * %lld + at %% %lld", (long long)s.each, (long long)s.each);
    buf_puts(b, "];\n");
    dialect_block(b, part->dialect, t->body, depth);
    buf_printf(b, "%s        }\n        __syncthreads();\n    }\n", depth > 3 ? "            }\n" : "");
    arena_free(a);
}
