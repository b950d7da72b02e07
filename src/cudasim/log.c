/* How the first warp of each launch reaches device memory, when CUDASIM_LOG names a file (- for stderr); a line is added for each place in the text:
 *
 *     copy_kernel: model.cu:41 reads 4 bytes: 8 requests, 4.0 sectors each, 4.0 at best
 *     rows_kernel: model.cu:50 reads 4 bytes: 8 requests, 5.0 sectors each, 4.0 at best, 5.0 of rows that begin there
 *
 * A request is what the lanes of the warp ask for at once, here: each lane's n-th access at a place. It takes a sector of 32 bytes for every one that is touched; at
 * best as many as the bytes fill, what several lanes ask for once. A row of at least 32 bytes that lie next to each other takes the sectors it lies in, wherever it begins. Lanes that do not all take part in a loop's trip are put together with others' next one, so that such places are told
 * roughly. */
#include "cudasim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, PACK = 16, MOST_SECTORS = 2 * WARP, MOST_PLACES = 256, MOST_REQUESTS = 256 };

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
} Place;

typedef struct Log {
    bool  on;
    int   n;
    Place places[MOST_PLACES];
} Log;

static Log sim_log;

void cudasim_log_begin(void)
{
    sim_log.on = getenv("CUDASIM_LOG") != NULL;
    sim_log.n = 0;
}

bool cudasim_log_is_on(void)
{
    return sim_log.on;
}

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

static void add_bytes(Request *r, uintptr_t at, size_t bytes)
{
    for (uintptr_t end = at + bytes; at < end;) {
        const uintptr_t from = at % SECTOR, n = end - at < SECTOR - from ? end - at : SECTOR - from;
        add_sector(r, (Sector){ at / SECTOR, UINT32_MAX >> (SECTOR - n) << from });
        at += n;
    }
}

void cudasim_log_access(const void *p, size_t bytes, bool writes, const void *pc)
{
    if (!sim_log.on || cudasim_now.thread >= WARP || cudasim_block.x + cudasim_block.y + cudasim_block.z > 0)
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

static int sectors_of(int bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}

/* Adds the sectors that the request takes, would at best, and would if only rows were anywhere. */
static void add_request(Request *r, int *taken, int *best, int *rows)
{
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
    *taken += r->n;
    *best += sectors_of(bytes);
    *rows += in_rows < r->n ? in_rows : r->n;
}

static long line_number(const char *line)
{
    const char *colon = strchr(line, ':');
    return colon ? strtol(colon + 1, NULL, 10) : 0;
}

/* An access of several elements at once, of which compilers make one for each: it is in a function in front of the kernel, on one line. */
static void join_places(Place *x, const Place *end, const char *line, long kernel_line)
{
    char other[CUDASIM_PLACE], place[CUDASIM_PLACE];
    if (line_number(line) >= kernel_line)
        return;
    for (Place *y = x + 1; y < end && x->bytes < PACK; y++) {
        if (y->bytes == 0 || y->writes != x->writes || y->n != x->n || !x->first || y->first != (const char *)x->first + x->bytes)
            continue;
        cudasim_find_line((const char *)y->pc - 1, other, place);
        if (strcmp(line, place) != 0)
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
    char name[CUDASIM_PLACE], line[CUDASIM_PLACE];
    cudasim_find_line((const char *)x->pc - 1, name, line);
    join_places(x, sim_log.places + sim_log.n, line, kernel_line);
    int taken = 0, best = 0, rows = 0;
    for (uint32_t k = 0; k < x->n; k++)
        add_request(&x->requests[k], &taken, &best, &rows);
    fprintf(f, "%s: %s %s %u bytes: %u request%s, %.1f sectors each, %.1f at best", kernel, line, x->writes ? "writes" : "reads", x->bytes, x->n, x->n == 1 ? "" : "s",
            (double)taken / x->n, (double)best / x->n);
    if (rows > best)
        fprintf(f, ", %.1f of rows that begin there", (double)rows / x->n);
    fputc('\n', f);
}

void cudasim_log_end(void)
{
    if (!sim_log.on)
        return;
    const char *path = getenv("CUDASIM_LOG");
    FILE       *f = strcmp(path, "-") == 0 ? stderr : fopen(path, "a");
    char        kernel[CUDASIM_PLACE], line[CUDASIM_PLACE];
    cudasim_find_line(cudasim_now.launch->kernel, kernel, line);
    for (int k = 0; k < sim_log.n; k++) {
        if (f && sim_log.places[k].bytes > 0)
            put_place(f, *kernel ? kernel : "?", line_number(line), &sim_log.places[k]);
        free(sim_log.places[k].requests);
    }
    if (f && f != stderr)
        fclose(f);
    sim_log.on = false;
}
