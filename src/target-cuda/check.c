/* Refusals. They come after planning, so that what no target can do has been reported, and before a byte is printed. */
#include "emit/kernel_ir.h"
#include "target-cuda/solver.h"
#include "target-cuda/target_cuda.h"

/* Pointers that a kernel can take: its parameters have 4 KiB on every device. Bytes of a thread's own arrays: the hardware has 512 KiB for
 * everything that a thread keeps in memory. Source: CUDA C++ programming guide, "Technical Specifications per Compute Capability". */
enum { MOST_PARAMS = 500, MOST_LOCAL = 256 * 1024 };

/* Bytes of arrays that threads have for themselves. */
static void add_local(void *cookie, const KStmt *s)
{
    if (s->kind == KS_ARRAY && (s->array->read || s->array->written))
        *(int64_t *)cookie += s->array->count * type_bytes(s->array->type);
}

static void check_kernel(const Function *f, Diag *d)
{
    int64_t  local = 0;
    KVisitor v = { NULL, add_local, &local };
    int32_t  params = 0;
    kernel_visit(f->kernel->body, &v);
    for (int32_t p = 0; p <= f->kernel->n_operands + f->kernel->n_results; p++)
        params += kernel_uses_param(f->kernel, p);
    if (params > MOST_PARAMS)
        inst_error(d, f->inst, "%s with %d arrays cannot be compiled for CUDA: %d is the most", op_name(f->inst->op), params, MOST_PARAMS);
    if (local > MOST_LOCAL)
        inst_error(d, f->inst, "%s with %lld bytes of arrays in each thread cannot be compiled for CUDA: %d is the most", op_name(f->inst->op),
                   (long long)local, MOST_LOCAL);
}

static void check_step(const Program *p, const Step *s, Diag *d)
{
    switch (s->kind) {
    case STEP_CALL:
        if (cuda_solver_refuses(s->call))
            inst_error(d, s->inst, "the call of %s%s cannot be compiled for CUDA", library_symbol(s->call), cuda_solver_refuses(s->call));
        else if (!p->products && cuda_needs_solver(s->call))
            inst_error(d, s->inst, "the call of %s needs cuSOLVER, which --libraries=none leaves out", library_symbol(s->call));
        break;
    case STEP_KERNEL:
    case STEP_COPY:
    case STEP_EXCHANGE:
    case STEP_CHECK:
    case STEP_REPLICA:
    case STEP_PARTITION:
    case STEP_RANDOM:
    case STEP_SEED:
    case STEP_VALUE:
    case STEP_WHILE:
    case STEP_IF:
        break;
    }
}

bool target_cuda_supported(const Program *p, Diag *d)
{
    int32_t before = d->errors;
    for (int32_t k = 0; k < p->n_steps; k++)
        check_step(p, p->steps[k], d);
    for (int32_t k = 0; k < p->n_functions; k++)
        check_kernel(&p->functions[k], d);
    return d->errors == before;
}
