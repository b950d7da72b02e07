/* What the parts of the simulator share. All devices of a process are in globals; one thread of the host at a time is inside. */
#ifndef CUDASIM_SIM_H
#define CUDASIM_SIM_H

#include <stdbool.h>

#include "cudasim/cudasim.h"
#include "cudasim/fiber.h"

enum { WARP = 32, MOST_THREADS = 1024, CUDASIM_PLACE = 512 /* bytes of a name or of a line's */ };

/* Time as accesses see it: it goes on by one at each launch, each block and each barrier of a block. */
typedef struct Now {
    const cudasim_launch *launch; /* that runs, NULL: none */
    Fiber   *fiber;               /* of the thread that runs; NULL: the host does */
    uintptr_t stack;              /* the fiber's, of a block whose accesses are checked; 0: none */
    unsigned thread;              /* in its block, the first index fastest */
    uint32_t time, launch_time, block_time;
    uint32_t warp_times[MOST_THREADS / WARP]; /* barriers of warps in this block */
} Now;
extern Now cudasim_now;

/* lock.c. Every function that the host calls begins with LOCKED, and is inside until its end. */
#define LOCKED const int depth_inside __attribute__((cleanup(cudasim_leave), unused)) = cudasim_enter()
bool cudasim_is_inside(void); /* this thread; kernels run on threads that are */
int  cudasim_enter(void);
void cudasim_leave(const int *depth);
void cudasim_wait(void); /* lets others in until one of them calls wake */
void cudasim_wake(void);

/* block.c. False after a fault. */
bool cudasim_run(const cudasim_launch *l);

/* fault.c. The first one counts. From a kernel's thread it does not return. */
void cudasim_fault(const void *pc, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void cudasim_fault_other(const void *pc); /* before it: the code of the other side, its line stands for an @ in the text */
bool cudasim_has_fault(void);
void cudasim_fault_locate(void); /* turns addresses into names and lines, outside of fibers */
const char *cudasim_fault_text(void);
void cudasim_find_line(const void *pc, char *name, char *line); /* "name" and "file:line" of an address, CUDASIM_PLACE bytes each */
void cudasim_fault_clear(void);

/* memory.c. Blocks of device memory: the block around p. */
typedef struct Range { uintptr_t lo, hi; } Range;
bool cudasim_memory_find(const void *p, Range *block);
bool cudasim_memory_before(const void *p, Range *block); /* the last that begins there or before */
/* The loaded file that p is in: its memory, and its variables that each host thread has for itself, which are shared memory here. */
typedef struct Image {
    Range       memory, shared;
    uintptr_t   base; /* what addresses in the file are relative to */
    const char *file;
} Image;
bool cudasim_image_of(const void *p, Image *out);
/* [p, p + n) is in device memory or in a variable of a loaded file. */
bool cudasim_memory_is_device(const void *p, size_t n);
bool cudasim_memory_give_back(void *p); /* false: no block begins there */
void cudasim_memory_reset(void);

/* product.c: elements of arrays; a complex one is two. */
size_t cudasim_bytes_of(cudasim_type t);
double cudasim_load(cudasim_type t, const void *p, int64_t i);
void   cudasim_store(cudasim_type t, void *p, int64_t i, double v);
/* out[i][j] += sum over l of lhs[i][l * step] * rhs[l * distance + j]; false: no memory */
bool   cudasim_add_products(double *const *out, const double *const *lhs, int64_t step, const double *rhs, int64_t distance, int64_t m, int64_t n, int64_t k);

/* log.c. Each launch is between the two, `whole` where accesses of all its blocks are seen; accesses of threads to device memory. */
void cudasim_log_begin(bool whole);
bool cudasim_log_is_on(void);
void cudasim_log_end(void);
void cudasim_log_access(const void *p, size_t bytes, bool writes, const void *pc);

/* check.c */
void cudasim_check_launch(const cudasim_launch *l, const Image *image); /* begins */
void cudasim_check_reset(void);

#endif
