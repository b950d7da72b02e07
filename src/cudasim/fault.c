/* The first thing that went wrong, as text:
 *
 *     model.cu:41: kernel act_kernel, block 3, thread 17: a race: 4 bytes are written that thread 5 reads on line 40, with no barrier between
 *
 * Addresses of code become lines by binutils' addr2line; a line in cuda_runtime.h is its caller's. */
#include "cudasim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Fault {
    bool        is;
    const void *pc, *other;
    const void *kernel;
    int         line;
    char        what[400], place[160], text[3000];
} Fault;

static Fault fault;

/* Where in the launch. */
static void put_place(void)
{
    const uint3 *b = &cudasim_block, *g = &cudasim_grid_size;
    int          n;
    if (g->y * g->z > 1)
        n = snprintf(fault.place, sizeof fault.place, ", block (%u,%u,%u)", b->x, b->y, b->z);
    else
        n = snprintf(fault.place, sizeof fault.place, ", block %u", b->x);
    const unsigned x = cudasim_block_size.x, y = cudasim_block_size.y, t = cudasim_now.thread;
    if (cudasim_block_size.y * cudasim_block_size.z > 1)
        snprintf(fault.place + n, sizeof fault.place - (size_t)n, ", thread (%u,%u,%u)", t % x, t / x % y, t / x / y);
    else
        snprintf(fault.place + n, sizeof fault.place - (size_t)n, ", thread %u", t);
}

void cudasim_fault(const void *pc, int line, const char *fmt, ...)
{
    if (!fault.is) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(fault.what, sizeof fault.what, fmt, ap);
        va_end(ap);
        fault.is = true;
        fault.pc = pc;
        fault.line = line;
        fault.kernel = cudasim_now.launch ? cudasim_now.launch->kernel : NULL;
        fault.place[0] = 0;
        if (cudasim_now.launch)
            put_place();
    }
    if (cudasim_now.fiber)
        cudasim_fiber_leave(cudasim_now.fiber);
}

void cudasim_fault_other(const void *pc)
{
    fault.other = pc;
}

bool cudasim_has_fault(void)
{
    return fault.is;
}

void cudasim_fault_clear(void)
{
    fault = (Fault){ 0 };
}

/* A line, without what there is no room for; false: there is none. */
static bool read_line(FILE *f, char *text)
{
    if (!f || !fgets(text, CUDASIM_PLACE, f))
        return false;
    for (int c = strchr(text, '\n') ? '\n' : getc(f); c != '\n' && c != EOF;)
        c = getc(f);
    return true;
}

/* "name" and "file:line" of an address; of inlined code, the first place outside of our header. */
void cudasim_find_line(const void *pc, char *name, char *line)
{
    char  command[600], read[2][CUDASIM_PLACE];
    Image image;
    *name = *line = 0;
    if (!cudasim_image_of(pc, &image) || strchr(image.file, '\''))
        return;
    snprintf(command, sizeof command, "addr2line -i -f -C -s -e '%s' 0x%lx 2>/dev/null", image.file, (unsigned long)((uintptr_t)pc - image.base));
    FILE *f = popen(command, "r");
    while (read_line(f, read[0]) && read_line(f, read[1])) {
        read[0][strcspn(read[0], "(\n")] = 0;
        read[1][strcspn(read[1], " \n")] = 0;
        memcpy(name, read[0], CUDASIM_PLACE);
        memcpy(line, read[1], CUDASIM_PLACE);
        if (strncmp(line, "cuda_runtime.h:", 15) != 0)
            break;
    }
    if (f)
        pclose(f);
}

void cudasim_fault_locate(void)
{
    char kernel[CUDASIM_PLACE], place[CUDASIM_PLACE], name[CUDASIM_PLACE], line[CUDASIM_PLACE], other[CUDASIM_PLACE] = "";
    if (!fault.is || fault.text[0])
        return;
    cudasim_find_line(fault.kernel, kernel, place);
    if (fault.pc) {
        cudasim_find_line((const char *)fault.pc - 1, name, line);
    } else {
        place[strcspn(place, ":")] = 0;
        snprintf(line, sizeof line, "%.400s:%d", place, fault.line);
    }
    if (fault.other) {
        cudasim_find_line((const char *)fault.other - 1, name, place);
        snprintf(other, sizeof other, " on line %.400s", strchr(place, ':') ? strchr(place, ':') + 1 : "?");
    }
    const char *at = strchr(fault.what, '@');
    size_t      before = at ? (size_t)(at - fault.what) : strlen(fault.what);
    snprintf(fault.text, sizeof fault.text, "%s: kernel %s%s: %.*s%s%s", line, *kernel ? kernel : "?", fault.place, (int)before, fault.what, other,
             at ? at + 1 : "");
}

const char *cudasim_fault_text(void)
{
    return fault.text[0] ? fault.text : fault.what;
}
