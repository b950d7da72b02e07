/* transpose.c - arrays with their dimensions in another order.
 *
 * Where neighbours stay neighbours, runs are copied. Else one dimension's neighbours lie together in the result (`down`: rows of the source) and another's in the
 * source (`across`), and rectangles of the two are turned, which is in transpose_body.h; all other dimensions are outside. Where the two fill no
 * lines, rows and columns are of several dimensions each, by tables of where they begin. Results that are larger than caches are written past them. */
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/transpose.h"
#include "runtime/vec.h"

#include <string.h>

enum {
    LINE = HLORT_LINE, PIECE = HLORT_PIECE,
    DOWN = 8 * LINE, ACROSS = 32 * LINE, /* bytes of a rectangle's edges */
    NARROW = 4 * LINE,      /* rows so short are taken more at a time */
    STREAM = 8 << 20,       /* bytes of a result from which it is written past the caches; of runs, by several threads, which wait for memory together: */
    STREAM_RUNS = 22 << 20,
    LEAST_COLLECTED = 8 * LINE, /* bytes of rows of which most lines are whole, wherever they begin */
    GRID = 4 * LINE, MOST_GRID = 2 * GRID, /* bytes of a side of several dimensions; elements */
    FEW_RUNS = 16, MOST_RUNS = 128, /* along a dimension; of several together */
    PART_BYTES = 128 * 1024 /* what one part of the work should at least be */
};

/* A dimension in pieces of `size`; the last one has the rest, too. */
typedef struct Pieces {
    int64_t number, size;
} Pieces;

/* Dimensions that follow each other without gaps: rows of a grid in the result, columns in the source. */
typedef struct Side {
    int64_t    n, inside, inner; /* from the innermost one on; elements of all but the last, of which there are pieces, and of the first alone */
    hlort_axis axis[HLORT_MOST_AXES];
    int64_t    at[MOST_GRID];    /* of each element of a piece, where it is on the other side, in bytes */
} Side;

typedef struct Turn {
    const KernelSet  *set;
    const hlort_axes *d;
    const char       *from;
    char             *to;
    hlort_axis        down, across; /* in bytes; `down` of a copy of runs: what is looped over inside of a unit; of a grid the last ones of its sides */
    int64_t           run;          /* of a copy: bytes; 0: rectangles are turned */
    int64_t           n_outer, members;
    hlort_axis        outer[HLORT_MOST_AXES];
    Pieces            of_down, of_across;
    int64_t           parts;
    TurnStores        past;
    const Side       *rows, *columns; /* of a grid; of runs that come from all over, rows; else NULL */
} Turn;

/* ---- a unit of work: a piece of one member ---- */

static int64_t begin_of(const Pieces *p, int64_t number)
{
    return number * p->size;
}

static int64_t count_of(const Pieces *p, int64_t number, int64_t all)
{
    return number == p->number - 1 ? all - begin_of(p, number) : p->size;
}

/* `times`: with as many members of the innermost dimension outside. */
static void unit(const Turn *x, const char *from, char *to, int64_t r, int64_t c, int64_t times)
{
    const int64_t rows = count_of(&x->of_down, r, x->down.count), columns = count_of(&x->of_across, c, x->across.count), size = __builtin_ctzll((uint64_t)x->d->bytes);
    const int64_t from_next = times > 1 ? x->outer[x->n_outer - 1].from : 0, to_next = times > 1 ? x->outer[x->n_outer - 1].to : 0;
    from += begin_of(&x->of_down, r) * x->down.from + begin_of(&x->of_across, c) * x->across.from;
    to += begin_of(&x->of_down, r) * x->down.to + begin_of(&x->of_across, c) * x->across.to;
    if (x->run && x->rows)
        x->set->runs(&(RunsPart){ from, to, rows * x->rows->inside, x->run, 0, x->run, x->rows->at, columns, x->across.to, x->past });
    else if (x->run)
        x->set->runs(&(RunsPart){ from, to, rows, x->run, x->down.from, x->down.to, NULL, columns, x->across.to, x->past });
    else if (x->rows)
        x->set->grid[size](&(GridPart){ from, to, rows * x->rows->inside, columns * x->columns->inside, x->rows->n > 1 ? x->rows->inner : rows, x->columns->n > 1 ? x->columns->inner : columns,
                                        x->rows->at, x->columns->at, times, from_next, to_next });
    else
        x->set->turn[size](&(TurnPart){ from, to, rows, columns, x->down.from, x->across.to, x->past, times, from_next, to_next });
}

/* Units are counted by hand: quotients of each one's number take as long as a small one. */
static void part(void *job, int64_t number, void *memory)
{
    const Turn   *x = job;
    const int64_t units = x->members * x->of_down.number * x->of_across.number, first = units * number / x->parts, end = units * (number + 1) / x->parts;
    int64_t       c = first % x->of_across.number, r = first / x->of_across.number % x->of_down.number, rest = first / (x->of_across.number * x->of_down.number);
    const int     together = !x->run && x->n_outer > 0 && x->of_down.number * x->of_across.number == 1;
    const hlort_axis *last = &x->outer[x->n_outer > 0 ? x->n_outer - 1 : 0];
    int64_t       at[HLORT_MOST_AXES];
    const char   *from = x->from;
    char         *to = x->to;
    (void)memory;
    for (int64_t k = x->n_outer - 1; k >= 0; k--) {
        at[k] = rest % x->outer[k].count;
        rest /= x->outer[k].count;
        from += at[k] * x->outer[k].from;
        to += at[k] * x->outer[k].to;
    }
    for (int64_t u = first, n; u < end; u += n) {
        n = together ? hlort_min(end - u, last->count - at[x->n_outer - 1]) : 1;
        unit(x, from, to, r, c, n);
        if (n > 1) {
            at[x->n_outer - 1] += n - 1;
            from += (n - 1) * last->from;
            to += (n - 1) * last->to;
        }
        if (++c < x->of_across.number)
            continue;
        c = 0;
        if (++r < x->of_down.number)
            continue;
        r = 0;
        for (int64_t k = x->n_outer - 1; k >= 0; k--) {
            from += x->outer[k].from;
            to += x->outer[k].to;
            if (++at[k] < x->outer[k].count)
                break;
            at[k] = 0;
            from -= x->outer[k].count * x->outer[k].from;
            to -= x->outer[k].count * x->outer[k].to;
        }
    }
#if defined(__x86_64__)
    if (x->past)
        __builtin_ia32_sfence();
#endif
}

/* ---- the whole ---- */

/* Past the caches from a size on, whole lines where every row of the result begins with one. */
static TurnStores stores(const hlort_axes *d, const void *to, int threads)
{
    int64_t all = d->bytes, row = 0, stream = STREAM;
    int     whole = (uintptr_t)to % LINE == 0;
    for (int64_t k = 0; k < d->n; k++) {
        all *= d->axis[k].count;
        if (d->axis[k].to == 1)
            row = d->axis[k].count * d->bytes;
        else
            whole &= d->axis[k].to * d->bytes % LINE == 0;
        if (d->axis[k].to == 1 && d->axis[k].from == 1 && threads > 1)
            stream = STREAM_RUNS;
    }
    return all < stream ? HLORT_STORED : whole ? HLORT_LINES : row >= LEAST_COLLECTED ? HLORT_ANYWHERE : HLORT_STORED;
}

/* Sorts the dimensions: runs or two that change places, the others outside. Around runs, what is next in the result is inside; where stores do not wait, what is next
 * in the source (f32[512,512,48] with its first two dimensions in the other order: 11.1 and 2.5 ms). */
static void sort_axes(Turn *x)
{
    const hlort_axes *d = x->d;
    int64_t           down = -1, across = -1, inside = d->n - 2;
    for (int64_t k = 0; k < d->n; k++) {
        if (d->axis[k].to == 1)
            down = k;
        if (d->axis[k].from == 1)
            across = k;
        if (x->past == HLORT_LINES && k < d->n - 1 && d->axis[k].from < d->axis[inside].from)
            inside = k;
    }
    x->run = down == across ? d->axis[down].count * d->bytes : 0;
    x->down = x->across = (hlort_axis){ 1, 0, 0 };
    for (int64_t k = 0; k < d->n; k++) {
        hlort_axis a = { d->axis[k].count, d->axis[k].to * d->bytes, d->axis[k].from * d->bytes };
        if (x->run ? k == inside : k == down)
            x->down = a;
        else if (!x->run && k == across)
            x->across = a;
        else if (k != down)
            x->outer[x->n_outer++] = a;
    }
}

/* Pieces of n elements, of which so many are `bytes`; none is shorter, if not all together are. */
static Pieces in_pieces(int64_t n, int64_t bytes, int64_t element)
{
    int64_t size = bytes / element < 1 ? 1 : bytes / element, number = n / size;
    return (Pieces){ number < 1 ? 1 : number, size };
}

/* The next dimension of a side is the one that begins where those so far end. */
static int grow(Side *side, const hlort_axes *d, int64_t count, int in_result, char *taken)
{
    for (int64_t k = 0; k < d->n; k++)
        if (!taken[k] && (in_result ? d->axis[k].to : d->axis[k].from) == count) {
            side->axis[side->n++] = (hlort_axis){ d->axis[k].count, d->axis[k].to * d->bytes, d->axis[k].from * d->bytes };
            taken[k] = 1;
            return 1;
        }
    return 0;
}

static int64_t side_count(const Side *side)
{
    int64_t n = 1;
    for (int64_t k = 0; k < side->n; k++)
        n *= side->axis[k].count;
    return n;
}

/* A piece is so many elements, or about half of them, and there is room for a line's in the table. */
static Pieces cut_side(Side *side, int64_t most, int64_t line, int in_result)
{
    const hlort_axis *last = &side->axis[side->n - 1];
    side->inner = side->axis[0].count;
    side->inside = side_count(side) / last->count;
    const Pieces  p = in_pieces(last->count, most / 2, side->inside);
    const int64_t longest = last->count - (p.number - 1) * p.size;
    int64_t       n = 1;
    side->at[0] = 0;
    for (int64_t k = 0; k < side->n; k++) {
        const int64_t step = in_result ? side->axis[k].from : side->axis[k].to, count = k == side->n - 1 ? longest : side->axis[k].count;
        for (int64_t i = 1; i < count; i++)
            for (int64_t j = 0; j < n; j++)
                side->at[i * n + j] = side->at[j] + i * step;
        n *= count;
    }
    for (; n < line; n++)
        side->at[n] = side->at[n - 1];
    return p;
}

static void set_outer(Turn *x, const char *taken)
{
    const hlort_axes *d = x->d;
    x->n_outer = 0;
    for (int64_t k = 0; k < d->n; k++)
        if (!taken[k])
            x->outer[x->n_outer++] = (hlort_axis){ d->axis[k].count, d->axis[k].to * d->bytes, d->axis[k].from * d->bytes };
}

/* Rows and columns of several dimensions each, the shorter side grows first. */
static void make_grid(Turn *x, Side *rows, Side *columns)
{
    const hlort_axes *d = x->d;
    const int64_t     bytes = d->bytes;
    char              taken[HLORT_MOST_AXES] = { 0 };
    int               more_rows = grow(rows, d, 1, 1, taken), more_columns = grow(columns, d, 1, 0, taken);
    while (more_rows || more_columns) {
        const int64_t down = side_count(rows), across = side_count(columns);
        if (more_rows && (down <= across || !more_columns))
            more_rows = down * bytes < GRID && grow(rows, d, down, 1, taken);
        else
            more_columns = across * bytes < GRID && grow(columns, d, across, 0, taken);
    }
    if (rows->n == 1 && columns->n == 1 && hlort_min(side_count(rows), side_count(columns)) * bytes >= PIECE)
        return; /* evenly apart */
    x->of_down = cut_side(rows, 2 * GRID / bytes, LINE / bytes, 1);
    x->of_across = cut_side(columns, 2 * GRID / bytes, LINE / bytes, 0);
    x->down = rows->axis[rows->n - 1];
    x->across = columns->axis[columns->n - 1];
    x->rows = rows;
    x->columns = columns;
    set_outer(x, taken);
}

/* Runs in the order of the result. */
static void make_rows(Turn *x, Side *rows)
{
    const hlort_axes *d = x->d;
    int64_t           run = 1;
    char              taken[HLORT_MOST_AXES] = { 0 };
    for (int64_t k = 0; k < d->n; k++)
        if (d->axis[k].to == 1) {
            taken[k] = 1;
            run = d->axis[k].count;
        }
    while (side_count(rows) < MOST_RUNS / 2 && grow(rows, d, run * side_count(rows), 1, taken))
        ;
    x->of_down = cut_side(rows, MOST_RUNS, 1, 1);
    x->down = rows->axis[rows->n - 1];
    x->rows = rows;
    set_outer(x, taken);
}

/* Short runs that are neighbours in the source are copied together, so that a line is read once: the dimension, of those outside, that they lie along. */
static void make_beside(Turn *x)
{
    for (int64_t k = 0; k < x->n_outer; k++)
        if (x->outer[k].from == x->run) {
            x->across = x->outer[k];
            x->of_across = in_pieces(x->across.count, LINE, x->run);
            x->n_outer--;
            for (int64_t i = k; i < x->n_outer; i++)
                x->outer[i] = x->outer[i + 1];
        }
}

/* Lines do not fit a dimension: a grid may have more of them. */
static int is_short(const hlort_axis *a, const hlort_axes *d)
{
    const int64_t row = a->count * d->bytes;
    return row < LINE || (row < GRID && row % LINE != 0 && d->n > 2);
}

void hlort_transpose_by(const KernelSet *s, const hlort_axes *d, const hlort_how *how, const void *from, void *to)
{
    Turn x = { .set = s->runs ? s : s->rest, .d = d, .from = from, .to = to, .members = 1, .past = stores(d, to, pool_threads(how->pool)) };
    Side rows, columns;
    rows.n = columns.n = 0;
    sort_axes(&x);
    x.of_across = in_pieces(x.across.count, x.run ? d->bytes : ACROSS, d->bytes);
    x.of_down = x.run ? in_pieces(x.down.count, PART_BYTES, x.run) : in_pieces(x.down.count, x.past == HLORT_ANYWHERE ? HLORT_COLLECTED : x.across.count * d->bytes <= NARROW ? 4 * DOWN : DOWN, d->bytes);
    if (!x.run && (is_short(&x.down, d) || is_short(&x.across, d)))
        make_grid(&x, &rows, &columns);
    else if (x.run && x.past == HLORT_STORED && x.down.count < FEW_RUNS && d->n > 2)
        make_rows(&x, &rows);
    if (x.run && x.run < LINE && x.past == HLORT_STORED)
        make_beside(&x);
    for (int64_t k = 0; k < x.n_outer; k++)
        x.members *= x.outer[k].count;
    int64_t all = d->bytes;
    for (int64_t k = 0; k < d->n; k++)
        all *= d->axis[k].count;
    if (all == 0)
        return;
    x.parts = hlort_min(hlort_min(x.members * x.of_down.number * x.of_across.number, hlort_ceildiv(all, PART_BYTES)), 8 * (int64_t)pool_threads(how->pool));
    pool_run(how->pool, part, &x, x.parts, how->work);
}

void hlort_transpose(const hlort_axes *d, const hlort_how *how, const void *from, void *to)
{
    hlort_transpose_by(hlort_kernels(), d, how, from, to);
}
