/* How the first warp of each launch reaches device memory, when CUDASIM_LOG names a file (- for stderr); a line is added for each place in the text:
 *
 *     copy_kernel: model.cu:41 reads 4 bytes: 8 requests, 4.0 sectors each, 4.0 at best
 *
 * A request is what the lanes of the warp ask for at once, here: each lane's n-th access at a place. It takes a sector of 32 bytes for every one that is touched; at
 * best as many as the bytes fill. Lanes that do not all take part in a loop's trip are put together with others' next one, so that such places are told
 * roughly. */
#include "cudasim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, MOST_SECTORS = 2 * WARP, MOST_PLACES = 256, MOST_REQUESTS = 256 };

typedef struct Request {
    uint16_t  n;
    uint32_t  bytes;
    uintptr_t sectors[MOST_SECTORS];
} Request;

typedef struct Place {
    const void *pc;
    bool        writes;
    uint32_t    bytes;
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

static void add_sector(Request *r, uintptr_t sector)
{
    for (int k = 0; k < r->n; k++)
        if (r->sectors[k] == sector)
            return;
    if (r->n < MOST_SECTORS)
        r->sectors[r->n++] = sector;
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
    r->bytes += (uint32_t)bytes;
    for (uintptr_t a = (uintptr_t)p / SECTOR; a <= ((uintptr_t)p + bytes - 1) / SECTOR; a++)
        add_sector(r, a);
}

static void put_place(FILE *f, const char *kernel, const Place *x)
{
    char     name[CUDASIM_PLACE], line[CUDASIM_PLACE];
    uint32_t sectors = 0, best = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        sectors += x->requests[k].n;
        best += (x->requests[k].bytes + SECTOR - 1) / SECTOR;
    }
    cudasim_find_line((const char *)x->pc - 1, name, line);
    fprintf(f, "%s: %s %s %u bytes: %u request%s, %.1f sectors each, %.1f at best\n", kernel, line, x->writes ? "writes" : "reads", x->bytes, x->n,
            x->n == 1 ? "" : "s", (double)sectors / x->n, (double)best / x->n);
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
        if (f)
            put_place(f, *kernel ? kernel : "?", &sim_log.places[k]);
        free(sim_log.places[k].requests);
    }
    if (f && f != stderr)
        fclose(f);
    sim_log.on = false;
}
