/* Device memory: blocks of the host's that are remembered, sorted by address; and the files whose variables kernels use. */
#define _GNU_SOURCE
#include "cudasim/sim.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 256 };

typedef struct Memory {
    Range *blocks;
    size_t used;
    size_t n, room;
    Range  last; /* block that was found */
} Memory;

static Memory memory;

/* The number of blocks that begin at or before a. */
static size_t blocks_up_to(uintptr_t a)
{
    size_t lo = 0, hi = memory.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (memory.blocks[mid].lo <= a)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool cudasim_memory_find(const void *p, Range *found)
{
    uintptr_t a = (uintptr_t)p;
    if (a < memory.last.lo || a >= memory.last.hi) {
        size_t k = blocks_up_to(a);
        if (k == 0 || a >= memory.blocks[k - 1].hi)
            return false;
        memory.last = memory.blocks[k - 1];
    }
    *found = memory.last;
    return true;
}

bool cudasim_memory_before(const void *p, Range *block)
{
    size_t k = blocks_up_to((uintptr_t)p);
    if (k > 0)
        *block = memory.blocks[k - 1];
    return k > 0;
}

static bool room_for_one(void)
{
    if (memory.n < memory.room)
        return true;
    size_t room = memory.room ? memory.room * 2 : 64;
    Range *more = realloc(memory.blocks, room * sizeof *more);
    if (more) {
        memory.blocks = more;
        memory.room = room;
    }
    return more != NULL;
}

/* What a device of CUDASIM_MEMORY bytes has left. */
static size_t bytes_left(void)
{
    const char  *most = getenv("CUDASIM_MEMORY");
    const size_t all = most ? strtoull(most, NULL, 10) : SIZE_MAX;
    return all > memory.used ? all - memory.used : 0;
}

cudaError_t cudasim_malloc(void **p, size_t bytes)
{
    LOCKED;
    *p = NULL;
    if (bytes == 0)
        return cudaSuccess;
    char *block = bytes <= SIZE_MAX - ALIGN && bytes <= bytes_left() && room_for_one() ? aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN) : NULL;
    if (!block)
        return cudaErrorMemoryAllocation;
    memset(block, 0xff, bytes);
    size_t k = blocks_up_to((uintptr_t)block);
    memmove(&memory.blocks[k + 1], &memory.blocks[k], (memory.n++ - k) * sizeof *memory.blocks);
    memory.blocks[k] = (Range){ (uintptr_t)block, (uintptr_t)block + bytes };
    memory.used += bytes;
    *p = block;
    return cudaSuccess;
}

bool cudasim_memory_give_back(void *p)
{
    size_t k = blocks_up_to((uintptr_t)p);
    if (k == 0 || memory.blocks[k - 1].lo != (uintptr_t)p)
        return false;
    memory.used -= (size_t)(memory.blocks[k - 1].hi - memory.blocks[k - 1].lo);
    memmove(&memory.blocks[k - 1], &memory.blocks[k], (memory.n-- - k) * sizeof *memory.blocks);
    memory.last = (Range){ 0, 0 };
    free(p);
    return true;
}

cudaError_t cudasim_free(void *p)
{
    LOCKED;
    if (!p)
        return cudaSuccess;
    cudaError_t e = cudasim_device_synchronize();
    return cudasim_memory_give_back(p) ? e : cudaErrorInvalidValue;
}

void cudasim_memory_reset(void)
{
    for (size_t k = 0; k < memory.n; k++)
        free((void *)memory.blocks[k].lo);
    free(memory.blocks);
    memory = (Memory){ 0 };
}

/* ---- loaded files ---- */

typedef struct Search {
    uintptr_t at;
    Image    *out;
} Search;

/* The program's own path; "" in the list of loaded files. */
static const char *program_path(void)
{
    static char path[4096];
    ssize_t     n = path[0] ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        path[0] = 0;
    return path;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *cookie)
{
    Search *s = cookie;
    Image   image = { .memory = { UINTPTR_MAX, 0 }, .base = info->dlpi_addr, .file = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : program_path() };
    (void)size;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[k];
        uintptr_t lo = info->dlpi_addr + h->p_vaddr, tls = (uintptr_t)info->dlpi_tls_data;
        if (h->p_type == PT_LOAD) {
            image.memory.lo = lo < image.memory.lo ? lo : image.memory.lo;
            image.memory.hi = lo + h->p_memsz > image.memory.hi ? lo + h->p_memsz : image.memory.hi;
        }
        if (h->p_type == PT_TLS && tls)
            image.shared = (Range){ tls, tls + h->p_memsz };
    }
    if (s->at < image.memory.lo || s->at >= image.memory.hi)
        return 0;
    *s->out = image;
    return 1;
}

bool cudasim_image_of(const void *p, Image *out)
{
    Search s = { (uintptr_t)p, out };
    return dl_iterate_phdr(look_at, &s) != 0;
}

bool cudasim_memory_is_device(const void *p, size_t n)
{
    Range block;
    Image image;
    if (cudasim_memory_find(p, &block))
        return n <= block.hi - (uintptr_t)p;
    return cudasim_image_of(p, &image) && n <= image.memory.hi - (uintptr_t)p;
}
