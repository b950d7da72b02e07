/* Kernel IR: loop nests with static extents over typed scalars. It knows nothing of C or CUDA; a target prints it.
 *
 * One kernel computes one instruction (a fusion or a single opcode) from pointers to its operand leaves into pointers to its result
 * leaves. Everything about shapes, layouts, broadcast and slices has become index arithmetic by the time a kernel exists. */
#ifndef EMIT_KERNEL_H
#define EMIT_KERNEL_H

#include "analysis/device.h"
#include "ir/inst.h"

typedef struct Kernel Kernel; /* emit/kernel_ir.h */

/* What kernels are for. device: for targets that deal loops out to many threads, the one in question; a reduction is one loop nest with one accumulator for each result,
 * without lanes or blocks of columns, and kept rows fit in the memory that a block's threads share. NULL: for a CPU. */
typedef struct KernelOptions {
    const Device *device;
    bool          any_order; /* threads of a device may add floats to an element in any order */
    bool          ranges;    /* a few of the CPU's threads share its loops */
} KernelOptions;

/* Lowers i. Parameters of the kernel: the array leaves of the operands in order, then the array leaves of the result. NULL after
 * reporting by opcode and instruction what cannot be lowered. */
Kernel *kernel_lower(Arena *a, const Inst *i, KernelOptions o, Diag *d);

/* What i, a fusion, makes of each element of hero, a dot or a convolution of its body that a routine computes: a function of some neighbours among them. Parameters:
 * the operands, the hero's sums, the results, all of them arrays; then the number of a row of `row` elements in the hero's memory, and from which to before which of
 * them (KERNEL_ROW, RANGE_FROM, RANGE_END). The sums are those elements, the first one first. NULL, without a report, when that cannot be one loop over neighbours. */
Kernel *kernel_lower_tile(Arena *a, const Inst *i, const Inst *hero, int64_t row);
#define KERNEL_ROW "range_row"
/* The same of one element, that of number RANGE_FROM in the row, for a device's text: the sums are one. */
Kernel *kernel_lower_element(Arena *a, const Inst *i, const Inst *hero, int64_t row);
/* The length of its rows, which divides the one that was asked for; the result that it writes over the sums, of their type and in their order, or -1; -1, too, where
 * a result is the hero. 0: it is another kernel. */
int64_t kernel_tile_row(const Kernel *k);
int32_t kernel_tile_in_place(const Kernel *k);
bool    kernel_tile_uses_row(const Kernel *k); /* or else KERNEL_ROW is left out */

/* True when kernel_lower would succeed, without doing the work; else reports. */
bool kernel_supported(const Inst *i, Diag *d);

/* Result leaf r may be written in place over operand leaf o (same bytes, each element read before it is overwritten). */
bool kernel_may_alias(const Kernel *k, int32_t result_leaf, int32_t operand_leaf);

/* Parameters of the emitted function, numbered: the operand leaves, the result leaves, and last (when kernel_temp_bytes is not 0)
 * working memory. Those that the kernel does not touch (a scalar constant that it has inlined) are left out of its signature. */
bool kernel_uses_param(const Kernel *k, int32_t param);

/* Working memory that the kernel wants as its last parameter, 64-byte aligned, contents undefined before and after. 0: none. */
int64_t kernel_temp_bytes(const Kernel *k);

/* Structural equality: kernels that differ only in names print the same body and are emitted once. */
bool     kernel_equal(const Kernel *a, const Kernel *b);
uint64_t kernel_hash(const Kernel *k);

#endif
