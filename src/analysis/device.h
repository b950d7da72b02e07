/* Devices as numbers: what a kernel costs on one, for passes that have to choose. The figures say which of two forms is faster, not how long a run takes. */
#ifndef ANALYSIS_DEVICE_H
#define ANALYSIS_DEVICE_H

#include "support/arena.h"
#include "support/diag.h"
#include "support/tool.h"

enum { SHARED_BESIDE = 4096 /* bytes of a block's shared memory that kernels want beside the rows that they keep there */ };

/* device.def says what the columns mean. */
typedef struct Device {
    const char *name, *target;
    double launch, bundle, units, warps, shared, tensor, flops, dear, row, l1, l1_rate, l2, l2_rate, l3, l3_rate, memory_rate;
} Device;

const Device *device_named(const char *name);         /* NULL: there is no row of that name */
const Device *device_of_target(const char *target);   /* "cpu", "cuda" */
const char   *device_names(Arena *a);                 /* "cpu, sm_90, ..." */

/* A device as text: lines of `column = number`, the others being those of the row that a line `like = NAME` names, first of all. # begins a comment.
 * NULL after reporting to d, whose source the text is. */
const Device *device_read(Arena *a, const char *name, const char *text, size_t n, Diag *d);

/* What --device=GIVEN of a tool is: a row's name, or a file of such lines; NULL: the target's first. Of any target where that is NULL. NULL after messages. */
const Device *device_option(Arena *a, const char *tool, const char *given, const char *target, const MessageArgs *m);
const char   *device_text(Arena *a, const Device *v); /* all that it says but for its name: "cuda launch=2000 ..." */

/* ns that moving so many bytes takes, when nothing else does; of memory that is gone through again after so many as `within`. */
double device_bytes_ns(const Device *v, double bytes, double within);
/* ns that a kernel works: operations of all units beside its bytes. */
double device_work_ns(const Device *v, double bytes, double flops);
/* ns for operations that one unit does. */
double device_unit_ns(const Device *v, double flops);

#endif
