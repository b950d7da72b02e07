/* A part is cut when its rows are too few for a device, and long enough that a second launch is nothing beside them: into pieces for eight blocks of each
 * multiprocessor. */
#include "emit/split.h"

enum { BLOCKS_EACH = 8, LONG_ROW = 16384, LEAST_PIECE = 4096, MOST_COLUMNS = 16384, LONG_COLUMN = 1024, LEAST_COLUMN_PIECE = 128, LANES = 32, LINE = 64 };

/* The only loop, which is dealt out by its outermost; NULL: there are others. */
static const RowStep *only_loop(const RowPart *row)
{
    const RowStep *loop = NULL;
    for (int32_t j = 0; j < row->n_steps; j++) {
        if (row->steps[j].kind == ROW_LOOP && loop)
            return NULL;
        if (row->steps[j].kind == ROW_LOOP)
            loop = &row->steps[j];
        if (row->steps[j].kind == ROW_STORE && j < row->tail)
            return NULL;
    }
    return loop && !loop->scan && loop->stmt == loop->dealt && row->tail == loop - row->steps + 1 ? loop : NULL;
}

static int64_t pieces_of(const Kernel *k, const ThreadPart *part, const RowPart *row)
{
    int64_t units = (int64_t)k->device->units, most = BLOCKS_EACH * units;
    int64_t groups = row->column ? (part->count + LANES - 1) / LANES : part->count, least = row->column ? LEAST_COLUMN_PIECE : LEAST_PIECE;
    if (row->column ? part->count > MOST_COLUMNS || row->longest < LONG_COLUMN : part->count >= units || row->longest < LONG_ROW)
        return 1;
    int64_t pieces = row->longest / least;
    return pieces < most / groups ? pieces : most / groups;
}

int64_t kernel_split_offset(const ThreadPart *part, const RowPart *row, const RowSplit *split, int32_t k)
{
    const RowStep *loop = only_loop(row);
    int64_t        at = 0;
    for (int32_t j = 0; j < k; j++)
        at += (part->count * split->pieces * type_bytes(loop->combined[j]->temp->type) + 63) / 64 * 64;
    return at;
}

RowSplit kernel_row_split(const Kernel *k, const ThreadPart *part, const RowPart *row)
{
    const RowStep *loop = only_loop(row);
    RowSplit       s = { .pieces = 1 };
    int64_t        pieces = loop && loop->n_combined > 0 && row->array_bytes == 0 && part->count > 0 ? pieces_of(k, part, row) : 1;
    if (pieces < 2)
        return s;
    s.length = (row->longest + pieces - 1) / pieces;
    if (!row->column) /* pieces begin where lines of memory do */
        s.length = (s.length + LINE - 1) / LINE * LINE;
    s.pieces = (row->longest + s.length - 1) / s.length;
    s.bytes = kernel_split_offset(part, row, &s, loop->n_combined);
    return s;
}

void kernel_reserve_split(Kernel *k)
{
    Arena      *a = arena_new();
    ThreadPart *parts;
    int32_t     n = kernel_threads(a, k, &parts);
    int64_t     bytes = 0;
    for (int32_t j = 0; j < n; j++) {
        RowPart row;
        if (kernel_row_part(a, k, &parts[j], &row))
            bytes += kernel_row_split(k, &parts[j], &row).bytes;
    }
    k->split_offset = k->temp_bytes;
    k->temp_bytes += bytes;
    arena_free(a);
}
