/* Work is what ranges.h counts: operations of about 0.1 ns each. What all of it is must not be guessed too high, what a kernel does not too low: where the trips of a loop
 * are not known it runs once for the one and without end for the other. */
#include "emit/effort.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/cost.h"
#include "emit/ranges.h"

enum {
    FEW = 4,        /* functions: these are compiled in no time */
    SHARE = 20,     /* the minor ones may do a twentieth of the work together */
    LEAST = 1 << 20 /* of all: where that is little, a gather from here and there is more than it seems */
};
static const double flop = 0.1; /* of the runtime */

typedef struct Work {
    Program *program;
    Map      flops;      /* of the module's computations */
    double  *by_function;
    double   all;
} Work;

static void add_block(Work *w, const Block *x, double least, double most);

static void add_step(Work *w, const Step *s, double least, double most)
{
    if (s->kind == STEP_KERNEL) {
        const double work = 1 + kernel_work(s->kernel);
        w->by_function[s->function] += most * work;
        w->all += isfinite(work) ? least * work : 0;
    } else if (s->kind == STEP_CALL)
        w->all += least * flop * (double)inst_flops(s->inst, &w->flops);
    const bool loop = s->kind == STEP_WHILE, known = loop && s->trips >= 0;
    add_block(w, &s->condition, least, HUGE_VAL);
    for (int32_t k = 0; k < s->n_blocks; k++)
        add_block(w, &s->blocks[k], known ? least * (double)s->trips : s->kind == STEP_IF ? 0 : least, known ? most * (double)(s->trips + 1) : loop ? HUGE_VAL : most);
}

static void add_block(Work *w, const Block *x, double least, double most)
{
    for (int32_t k = 0; k < x->n; k++)
        add_step(w, x->v[k], least, most);
}

typedef struct Share {
    double  work;
    int32_t function;
} Share;

static int by_work(const void *a, const void *b)
{
    const Share *x = a, *y = b;
    return x->work != y->work ? x->work < y->work ? -1 : 1 : x->function - y->function;
}

void program_note_minor(Program *p)
{
    if (p->n_functions < FEW || p->watched)
        return;
    Arena *a = arena_new();
    Work   w = { .program = p, .flops = module_flops(a, p->module), .by_function = ARENA_ARRAY(a, double, p->n_functions) };
    Share *shares = ARENA_ARRAY(a, Share, p->n_functions);
    double sum = 0;
    add_block(&w, &p->body, 1, 1);
    const double most = w.all < LEAST ? -1 : w.all / SHARE;
    for (int32_t k = 0; k < p->n_functions; k++)
        shares[k] = (Share){ w.by_function[k], k };
    qsort(shares, (size_t)p->n_functions, sizeof *shares, by_work);
    for (int32_t k = 0; k < p->n_functions && (sum += shares[k].work) <= most; k++)
        p->functions[shares[k].function].minor = !kernel_tile_row(p->functions[shares[k].function].kernel);
    arena_free(a);
}
