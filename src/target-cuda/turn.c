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
 *
 * and a short loop that is written along is one with the loop around it: at_out = from_out + at / 32, i2 = at_out / 8, i3 = at_out % 8.
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

/* What is written along. */
static int64_t out_trips(const TurnPart *t)
{
    return trips(t->out) * (t->around ? trips(t->around) : 1);
}

/* So many times 32 of the trips at most, and no more than there are. */
static int64_t long_side(int64_t count, int64_t most)
{
    const int64_t n = (count + SIDE - 1) / SIDE * SIDE, side = most < SIDE ? SIDE : most / SIDE * SIDE;
    return n < side ? n : side;
}

static Sides sides_of(const CudaPart *part)
{
    const TurnPart *t = &part->turn;
    const int64_t   each = t->each ? trips(t->each) : 1, most = (double)part->threads.count < part->device->units * MOST ? MOST / 2 : MOST;
    int64_t         side = SIDE;
    while (side * side * each > SIDE * SIDE)
        side /= 2;
    if (trips(t->in) < side / 2)
        return (Sides){ trips(t->in), long_side(out_trips(t), most / ((trips(t->in) * each) | 1)), each };
    if (out_trips(t) < side / 2)
        return (Sides){ long_side(trips(t->in), (most / out_trips(t) - 1) / each), out_trips(t), each };
    return (Sides){ side, side, each };
}

static int64_t tiles_along(int64_t count, int64_t side)
{
    return (count + side - 1) / side;
}

static bool is_of_tile(const TurnPart *t, const IxAtom *loop)
{
    return loop == t->in || loop == t->out || loop == t->around || loop == t->each;
}

int64_t cuda_turn_tiles(const CudaPart *part)
{
    const Sides s = sides_of(part);
    int64_t     n = tiles_along(trips(part->turn.in), s.in) * tiles_along(out_trips(&part->turn), s.out);
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
    const int64_t in = trips(part->turn.in), out = out_trips(&part->turn);
    return (in < s.in ? in : s.in) * (out < s.out ? out : s.out) * s.each >= LEAST;
}

int64_t cuda_turn_blocks(const CudaPart *part)
{
    int64_t n = cuda_turn_tiles(part);
    return n < cuda_most_blocks(part) ? n : cuda_most_blocks(part);
}

/* "from_in = tile / 3 % 4 * 32", the tile's first one of n sides from lo on, of which `inner` are inside; whole: of no other loop's around it. */
static void put_from(Buf *b, const char *name, int64_t n, int64_t lo, int64_t side, int64_t inner, bool whole)
{
    buf_printf(b, "%s = ", name);
    if (n == 1) {
        buf_printf(b, "%lld", (long long)lo);
        return;
    }
    buf_puts(b, "tile");
    if (inner > 1)
        buf_printf(b, " / %lld", (long long)inner);
    if (!whole)
        buf_printf(b, " %% %lld", (long long)n);
    buf_printf(b, " * %lld", (long long)side);
    if (lo != 0)
        buf_printf(b, " + %lld", (long long)lo);
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
    const int64_t in = tiles_along(trips(t->in), s->in), out = tiles_along(out_trips(t), s->out);
    put_from(b, "from_in", in, t->in->lo, s->in, out, first);
    buf_puts(b, ", ");
    put_from(b, "from_out", out, t->around ? 0 : t->out->lo, s->out, 1, first && in == 1);
    buf_puts(b, ";\n");
}

/* "at / 3 % 16": of the tile's elements, dealt out in rows of `side` that are `each` elements apart. */
static const char *place(Arena *a, int64_t each, int64_t side)
{
    return each > 1 ? arena_printf(a, "at / %lld %% %lld", (long long)each, (long long)side) : arena_printf(a, "at %% %lld", (long long)side);
}

/* ", i2 = at % 3" */
static void put_value(Buf *b, const IxAtom *loop, const char *of, int64_t by)
{
    buf_printf(b, ", %s = %s %lld", loop->name, of, (long long)by);
    if (loop->lo != 0)
        buf_printf(b, " + %lld", (long long)loop->lo);
}

/* The loop over the tile. Neighbours are such in what is read, or in what is written. Returns how deep what it does is. */
static int put_way(Buf *b, Arena *a, const CudaPart *part, const Sides *s, bool reads)
{
    const TurnPart *t = &part->turn;
    const char     *out = t->around ? "at_out" : t->out->name, *lanes = reads ? t->in->name : out, *steps = reads ? out : t->in->name;
    const int64_t   side = reads ? s->in : s->out;
    buf_printf(b, "        #pragma unroll\n        for (int at = threadIdx.x; at < %lld; at += %d) {\n", (long long)(s->in * s->out * s->each), THREADS);
    buf_printf(b, "            const %s %s = from_%s + %s, %s = from_%s + at / %lld", part->dialect->index, lanes, reads ? "in" : "out", place(a, s->each, side), steps,
               reads ? "out" : "in", (long long)(side * s->each));
    const long long n = trips(t->out);
    if (t->around) {
        put_value(b, t->around, "at_out /", n);
        put_value(b, t->out, "at_out %", n);
    }
    if (t->each)
        put_value(b, t->each, "at %", s->each);
    buf_puts(b, ";\n");
    const long long ends[2] = { t->in->hi + 1, t->around ? out_trips(t) : t->out->hi + 1 };
    const bool      cut[2] = { trips(t->in) % s->in != 0, out_trips(t) % s->out != 0 };
    if (!cut[0] && !cut[1])
        return 3;
    buf_puts(b, "            if (");
    if (cut[!reads])
        buf_printf(b, "%s < %lld%s", lanes, ends[!reads], cut[reads] ? " && " : "");
    if (cut[reads])
        buf_printf(b, "%s < %lld", steps, ends[reads]);
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
