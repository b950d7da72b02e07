/* How the first warp of each launch reaches device memory, when CUDASIM_LOG names a file (- for stderr); a line is added for each place in the text:
 *
 *     copy_kernel: model.cu:41 reads 4 bytes: 8 requests, 4.0 sectors each, 4.0 at best
 *     rows_kernel: model.cu:50 reads 4 bytes: 8 requests, 5.0 sectors each, 4.0 at best, 5.0 of rows that begin there
 *     pool_kernel: model.cu:60 reads 4 bytes: 4 requests, 8.0 sectors each, 4.0 at best, 4.0 anew
 *     some_kernel: model.cu:70 reads 4 bytes: 1 request, 32.0 sectors each, 4.0 at best, 32.0 of which nobody asks for more
 *
 * A request is what the lanes of the warp ask for at once, here: each lane's n-th access at a place. It takes a sector of 32 bytes for every one that is touched; at
 * best as many as the bytes fill, what several lanes ask for once. A row of at least 32 bytes that lie next to each other takes the sectors it lies in, wherever it begins.
 * Anew are sectors that none of the four requests before of the line asked for, which leave them in the first cache: as long as a request reaches no more than 8 lines of 128 bytes for 128 bytes that it wants, since memory
 * takes no less time for these than the cache, which looks at a line a cycle, for 8 (3350 GB/s are 15 bytes a cycle for each of 132 multiprocessors at 1.7 GHz). A sector of which the launch asks for no other bytes has to be
 * moved, whatever the order of threads, as of a diagonal: that is told where accesses of all blocks are seen. Lanes that do not all take part in a loop's trip are put together with others' next one, so that such places are told
 * roughly. */
#include "cudasim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, PACK = 16, MOST_SECTORS = 2 * WARP, MOST_PLACES = 256, MOST_REQUESTS = 256 };
enum { LINE = 128, MOST_LINES = 8 /* for a line's bytes */, BEFORE = 4 /* requests, whose sectors are still there */, MOST_ASKED = 1 << 20 };

typedef struct Sector {
    uintptr_t number;
    uint32_t  bytes; /* a bit for each that is asked for */
} Sector;

typedef struct Request {
    int    n;
    Sector sectors[MOST_SECTORS];
} Request;

typedef struct Place {
    const void *pc;
    const void *first;      /* what the first lane that comes asks for */
    bool        writes;
    uint32_t    bytes;      /* 0: they are another place's */
    uint32_t    seen[WARP]; /* accesses of each lane */
    uint32_t    n;
    Request    *requests;   /* the first of them */
    char        line[CUDASIM_PLACE];
} Place;

typedef struct Log {
    bool  on;
    int   n;
    Place places[MOST_PLACES];
    Sector *asked;   /* what all threads ask for, by sector; NULL: that is not known */
    size_t  n_asked;
} Log;

static Log sim_log;

void cudasim_log_begin(bool whole)
{
    sim_log.on = getenv("CUDASIM_LOG") != NULL;
    sim_log.n = 0;
    sim_log.n_asked = 0;
    sim_log.asked = sim_log.on && whole ? calloc(MOST_ASKED, sizeof *sim_log.asked) : NULL;
}

bool cudasim_log_is_on(void)
{
    return sim_log.on;
}

/* ---- what the launch asks for ---- */

/* Where the sector is in the table, or would be. */
static Sector *asked_of(uintptr_t number)
{
    size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 44);
    while (sim_log.asked[at].bytes && sim_log.asked[at].number != number)
        at = (at + 1) % MOST_ASKED;
    return &sim_log.asked[at];
}

static void note_asked(Sector sector)
{
    Sector *x = asked_of(sector.number);
    sim_log.n_asked += x->bytes == 0;
    *x = (Sector){ sector.number, x->bytes | sector.bytes };
    if (sim_log.n_asked < MOST_ASKED / 2)
        return;
    free(sim_log.asked);
    sim_log.asked = NULL;
}

/* ---- what the first warp asks for ---- */

static Place *place_of(const void *pc, size_t bytes, bool writes)
{
    for (int k = 0; k < sim_log.n; k++)
        if (sim_log.places[k].pc == pc && sim_log.places[k].writes == writes)
            return &sim_log.places[k];
    Request *requests = sim_log.n < MOST_PLACES ? calloc(MOST_REQUESTS, sizeof *requests) : NULL;
    if (!requests)
        return NULL;
    Place *x = &sim_log.places[sim_log.n++];
    *x = (Place){ .pc = pc, .writes = writes, .bytes = (uint32_t)bytes, .requests = requests };
    return x;
}

static void add_sector(Request *r, Sector sector)
{
    for (int k = 0; k < r->n; k++)
        if (r->sectors[k].number == sector.number) {
            r->sectors[k].bytes |= sector.bytes;
            return;
        }
    if (r->n < MOST_SECTORS)
        r->sectors[r->n++] = sector;
}

/* The sectors of an access: of r, or of the launch where that is NULL. */
static void add_bytes(Request *r, uintptr_t at, size_t bytes)
{
    for (uintptr_t end = at + bytes; at < end;) {
        const uintptr_t from = at % SECTOR, n = end - at < SECTOR - from ? end - at : SECTOR - from;
        const Sector    sector = { at / SECTOR, UINT32_MAX >> (SECTOR - n) << from };
        if (r)
            add_sector(r, sector);
        else if (sim_log.asked)
            note_asked(sector);
        at += n;
    }
}

void cudasim_log_access(const void *p, size_t bytes, bool writes, const void *pc)
{
    if (!sim_log.on)
        return;
    add_bytes(NULL, (uintptr_t)p, bytes);
    if (cudasim_now.thread >= WARP || cudasim_block.x + cudasim_block.y + cudasim_block.z > 0)
        return;
    Place *x = place_of(pc, bytes, writes);
    if (!x || x->seen[cudasim_now.thread] == MOST_REQUESTS)
        return;
    Request *r = &x->requests[x->seen[cudasim_now.thread]++];
    x->n = x->seen[cudasim_now.thread] > x->n ? x->seen[cudasim_now.thread] : x->n;
    x->first = x->first ? x->first : p;
    add_bytes(r, (uintptr_t)p, bytes);
}

/* ---- what a request takes ---- */

static int compare_sectors(const void *a, const void *b)
{
    const Sector *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sectors of requests: what they take, would at best, would if only rows were anywhere, do not find in the first cache, and must where nobody asks for the rest. */
typedef struct Sums {
    int taken, best, rows, anew, alone;
} Sums;

static int sectors_of(int bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}

static bool has_sector(const Request *r, uintptr_t number)
{
    for (int k = 0; k < r->n; k++)
        if (r->sectors[k].number == number)
            return true;
    return false;
}

/* Did a request before, of the same line, ask for it? Compilers make several places of a line in a loop. */
static bool was_asked(const Place *x, uint32_t request, uintptr_t number)
{
    for (const Place *y = sim_log.places; y < sim_log.places + sim_log.n; y++) {
        const uint32_t end = request + (y < x);
        if (y->writes != x->writes || strcmp(y->line, x->line) != 0)
            continue;
        for (uint32_t k = request < BEFORE ? 0 : request - BEFORE; k < end && k < y->n; k++)
            if (has_sector(&y->requests[k], number))
                return true;
    }
    return false;
}

/* Those that no request before has left in the first cache. */
static int sectors_anew(const Place *x, uint32_t request, int bytes)
{
    const Request *r = &x->requests[request];
    int            lines = 0, anew = 0;
    for (int k = 0; k < r->n; k++) {
        anew += !was_asked(x, request, r->sectors[k].number);
        lines += k == 0 || r->sectors[k].number * SECTOR / LINE != r->sectors[k - 1].number * SECTOR / LINE;
    }
    return lines * LINE <= MOST_LINES * bytes ? anew : r->n;
}

/* Those of which the launch asks for no more, and what would hold the others' bytes. */
static int sectors_alone(const Request *r)
{
    int alone = 0, bytes = 0;
    for (int k = 0; k < r->n; k++) {
        const bool is_alone = sim_log.asked && asked_of(r->sectors[k].number)->bytes == r->sectors[k].bytes;
        alone += is_alone;
        bytes += is_alone ? 0 : __builtin_popcount(r->sectors[k].bytes);
    }
    return alone + sectors_of(bytes);
}

static void add_request(Place *x, uint32_t request, Sums *sums)
{
    Request  *r = &x->requests[request];
    int       bytes = 0, scattered = 0, in_rows = 0, run = 0;
    uintptr_t begin = 0, end = 0;
    qsort(r->sectors, (size_t)r->n, sizeof r->sectors[0], compare_sectors);
    for (int k = 0; k <= r->n; k++)
        for (uintptr_t bit = 0; bit < (k < r->n ? SECTOR : 1); bit++) {
            const bool      is_end = k == r->n;
            const uintptr_t at = is_end ? 0 : r->sectors[k].number * SECTOR + bit;
            if (!is_end && !(r->sectors[k].bytes >> bit & 1))
                continue;
            bytes += !is_end;
            if (run > 0 && !is_end && at == end) {
                run++;
                end++;
                continue;
            }
            if (run >= SECTOR)
                in_rows += (int)((end - 1) / SECTOR - begin / SECTOR + 1);
            else
                scattered += run;
            run = 1;
            begin = at;
            end = at + 1;
        }
    in_rows += sectors_of(scattered);
    sums->taken += r->n;
    sums->best += sectors_of(bytes);
    sums->rows += in_rows < r->n ? in_rows : r->n;
    sums->anew += sectors_anew(x, request, bytes);
    sums->alone += sectors_alone(r);
}

static long line_number(const char *line)
{
    const char *colon = strchr(line, ':');
    return colon ? strtol(colon + 1, NULL, 10) : 0;
}

/* An access of several elements at once, of which compilers make one for each: it is in a function in front of the kernel, on one line. Within the kernel it is the two halves of what a line stores, a complex number. */
static void join_places(Place *x, const Place *end, long kernel_line)
{
    const bool     within = line_number(x->line) >= kernel_line;
    const uint32_t most = !within ? PACK : x->writes && (uintptr_t)x->first % (2 * x->bytes) == 0 ? 2 * x->bytes : 0;
    for (Place *y = x + 1; y < end && x->bytes < most; y++) {
        if (y->bytes == 0 || y->writes != x->writes || y->n != x->n || !x->first || y->first != (const char *)x->first + x->bytes || strcmp(x->line, y->line) != 0)
            continue;
        for (uint32_t k = 0; k < x->n; k++) {
            for (int j = 0; j < y->requests[k].n; j++)
                add_sector(&x->requests[k], y->requests[k].sectors[j]);
        }
        x->bytes += y->bytes;
        y->bytes = 0;
    }
}

static void put_place(FILE *f, const char *kernel, long kernel_line, Place *x)
{
    join_places(x, sim_log.places + sim_log.n, kernel_line);
    Sums sums = { 0 };
    for (uint32_t k = 0; k < x->n; k++)
        add_request(x, k, &sums);
    fprintf(f, "%s: %s %s %u bytes: %u request%s, %.1f sectors each, %.1f at best", kernel, x->line, x->writes ? "writes" : "reads", x->bytes, x->n, x->n == 1 ? "" : "s",
            (double)sums.taken / x->n, (double)sums.best / x->n);
    if (sums.rows > sums.best)
        fprintf(f, ", %.1f of rows that begin there", (double)sums.rows / x->n);
    if (sums.anew < sums.taken)
        fprintf(f, ", %.1f anew", (double)sums.anew / x->n);
    if (sums.alone > sums.best)
        fprintf(f, ", %.1f of which nobody asks for more", (double)sums.alone / x->n);
    fputc('\n', f);
}

void cudasim_log_end(void)
{
    if (!sim_log.on)
        return;
    const char *path = getenv("CUDASIM_LOG");
    FILE       *f = strcmp(path, "-") == 0 ? stderr : fopen(path, "a");
    char        kernel[CUDASIM_PLACE], line[CUDASIM_PLACE], name[CUDASIM_PLACE];
    cudasim_find_line(cudasim_now.launch->kernel, kernel, line);
    for (int k = 0; k < sim_log.n; k++)
        cudasim_find_line((const char *)sim_log.places[k].pc - 1, name, sim_log.places[k].line);
    for (int k = 0; k < sim_log.n; k++)
        if (f && sim_log.places[k].bytes > 0)
            put_place(f, *kernel ? kernel : "?", line_number(line), &sim_log.places[k]);
    for (int k = 0; k < sim_log.n; k++)
        free(sim_log.places[k].requests);
    if (f && f != stderr)
        fclose(f);
    free(sim_log.asked);
    sim_log.on = false;
}
