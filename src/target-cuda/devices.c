/* Several devices, or one and its host. Blocks go through the host's memory and env->devices->exchange, which is called when what they are made of is there:
 *
 *     if (hlo_exchanged(env, stream, "all-reduce %sum", "the devices did not exchange their blocks", &x_sum_gathered, args[0], v_sum_gathered))
 *         return 1;
 *
 * Who waits for the others is the host. With a communicator in env->devices blocks go from device to device in the order of the stream instead, by NCCL: all devices' are its all-gather and broadcast, everything
 * else sends and receives in a group. Who waits for the others is then the stream. Which device this one is a kernel of one thread writes where it is asked for. */
#include "target-cuda/devices.h"
#include "emit/c_text.h"

static bool any(const Program *p, StepKind kind)
{
    for (int32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k]->kind == kind)
            return true;
    return false;
}

static bool has_numbers(const Program *p)
{
    return any(p, STEP_REPLICA) || any(p, STEP_PARTITION);
}

bool cuda_has_collectives(const Program *p)
{
    for (int32_t k = 0; k < p->n_exchanges; k++)
        if (p->products && p->exchanges[k]->kind <= EXCHANGE_PERMUTE)
            return true;
    return false;
}

/* ---- beside kernels ---- */

static const char number_text[] =
    "\nstatic __global__ void hlo_number_kernel(uint32_t *to, uint32_t number)\n"
    "{\n"
    "    *to = number;\n"
    "}\n"
    "\n%s cudaError_t %s_number(cudaStream_t stream, void *to, int32_t number)\n"
    "{\n"
    "    return hlo_launch(stream, 1, 1, hlo_number_kernel, (uint32_t *)to, (uint32_t)number);\n"
    "}\n";

void cuda_devices_kernels(Buf *b, const Program *p, const char *linkage, const char *prefix)
{
    if (has_numbers(p))
        buf_printf(b, number_text, linkage, prefix);
}

void cuda_devices_prototypes(Buf *b, const Program *p, const char *prefix)
{
    if (has_numbers(p))
        buf_printf(b, "extern cudaError_t %s_number(cudaStream_t stream, void *to, int32_t number);\n", prefix);
}

/* ---- the host's ---- */

static const char collective_text[] =
    "\n#ifdef HLO_NCCL\n"
    "#define HLO_NCCL_FUNCTIONS(F) \\\n"
    "    F(ncclCommInitAll) F(ncclCommDestroy) F(ncclCommAbort) F(ncclCommCount) F(ncclCommUserRank) F(ncclGroupStart) F(ncclGroupEnd) F(ncclSend) F(ncclRecv) \\\n"
    "    F(ncclAllGather) F(ncclBroadcast)\n"
    "\n#define HLO_NCCL_TYPE(name) typedef __typeof__(&name) hlo_##name;\n"
    "HLO_NCCL_FUNCTIONS(HLO_NCCL_TYPE)\n"
    "\ntypedef struct hlo_nccl {\n"
    "    int tried, good;\n"
    "#define HLO_NCCL_POINTER(name) hlo_##name name;\n"
    "    HLO_NCCL_FUNCTIONS(HLO_NCCL_POINTER)\n"
    "} hlo_nccl;\n"
    "\nstatic pthread_mutex_t hlo_nccl_lock = PTHREAD_MUTEX_INITIALIZER;\n"
    "static hlo_nccl        hlo_nccl_functions;\n"
    "\nstatic int hlo_load_nccl(hlo_nccl *x)\n"
    "{\n"
    "#ifdef HLO_NCCL_IS_LINKED\n"
    "#define HLO_NCCL_TAKE(name) x->name = name;\n"
    "    HLO_NCCL_FUNCTIONS(HLO_NCCL_TAKE)\n"
    "    return 1;\n"
    "#else\n"
    "#define HLO_NCCL_FILE_OF(version) \"libnccl.so.\" #version\n"
    "#define HLO_NCCL_FILE(version) HLO_NCCL_FILE_OF(version)\n"
    "    void *const file = dlopen(HLO_NCCL_FILE(NCCL_MAJOR), RTLD_NOW | RTLD_LOCAL);\n"
    "    int         all = file != NULL;\n"
    "#define HLO_NCCL_TAKE(name) all = all && (x->name = (hlo_##name)dlsym(file, #name)) != NULL;\n"
    "    HLO_NCCL_FUNCTIONS(HLO_NCCL_TAKE)\n"
    "    return all;\n"
    "#endif\n"
    "}\n"
    "\n/* NULL: it is not there. */\n"
    "static const hlo_nccl *hlo_nccl_library(void)\n"
    "{\n"
    "    hlo_nccl *const x = &hlo_nccl_functions;\n"
    "    pthread_mutex_lock(&hlo_nccl_lock);\n"
    "    if (!x->tried)\n"
    "        x->good = hlo_load_nccl(x);\n"
    "    x->tried = 1;\n"
    "    pthread_mutex_unlock(&hlo_nccl_lock);\n"
    "    return x->good ? x : NULL;\n"
    "}\n"
    "\nstatic ncclComm_t hlo_communicator(const hlo_devices *x)\n"
    "{\n"
    "    return x->size >= __builtin_offsetof(hlo_devices, communicator) + sizeof x->communicator ? (ncclComm_t)x->communicator : NULL;\n"
    "}\n"
    "\n/* Is the communicator, if there is one, that of these devices, and this one's? */\n"
    "static int hlo_is_member(const hlo_devices *devices)\n"
    "{\n"
    "    const ncclComm_t      comm = hlo_communicator(devices);\n"
    "    const hlo_nccl *const x = comm ? hlo_nccl_library() : NULL;\n"
    "    int                   n = 0, rank = 0;\n"
    "    return !comm || (x && !x->ncclCommCount(comm, &n) && !x->ncclCommUserRank(comm, &rank) && n == devices->replicas * devices->partitions &&\n"
    "                     rank == devices->replica * devices->partitions + devices->partition);\n"
    "}\n"
    "\n/* The group that a device is in, NULL: none. */\n"
    "static const int32_t *hlo_group_of(const hlo_exchange *x, int32_t device)\n"
    "{\n"
    "    const int32_t *group = x->groups;\n"
    "    for (int32_t k = 0; k < x->n_groups; k++, group += group[0] + 1)\n"
    "        for (int32_t j = 1; j <= group[0]; j++)\n"
    "            if (group[j] == device)\n"
    "                return group;\n"
    "    return NULL;\n"
    "}\n"
    "\nstatic int hlo_is_all(const int32_t *group, int32_t n)\n"
    "{\n"
    "    int is = group[0] == n;\n"
    "    for (int32_t k = 0; k < group[0]; k++)\n"
    "        is = is && group[1 + k] == k;\n"
    "    return is;\n"
    "}\n"
    "\n/* A block that this device has for `to`, and one that comes from `from`; -1: there is none. */\n"
    "static ncclResult_t hlo_pass(const hlo_nccl *nccl, ncclComm_t comm, cudaStream_t stream, int32_t me, size_t bytes, const void *in, int32_t to, void *out, int32_t from)\n"
    "{\n"
    "    ncclResult_t r = ncclSuccess;\n"
    "    if (to >= 0 && to == me && from == me)\n"
    "        return in == out || !cudaMemcpyAsync(out, in, bytes, cudaMemcpyDeviceToDevice, stream) ? ncclSuccess : ncclUnhandledCudaError;\n"
    "    if (to >= 0)\n"
    "        r = nccl->ncclSend(in, bytes, ncclUint8, to, comm, stream);\n"
    "    return r == ncclSuccess && from >= 0 ? nccl->ncclRecv(out, bytes, ncclUint8, from, comm, stream) : r;\n"
    "}\n"
    "\nstatic ncclResult_t hlo_collective(const hlo_nccl *nccl, ncclComm_t comm, const hlo_devices *devices, cudaStream_t stream, const hlo_exchange *x, const int32_t *group, const void *in, void *out)\n"
    "{\n"
    "    const int32_t all = devices->replicas * devices->partitions, me = devices->replica * devices->partitions + devices->partition;\n"
    "    const size_t  n = (size_t)x->bytes;\n"
    "    if (x->kind == HLO_GATHER && hlo_is_all(group, all))\n"
    "        return nccl->ncclAllGather(in, out, n, ncclUint8, comm, stream);\n"
    "    if (x->kind == HLO_BROADCAST && group[0] == all)\n"
    "        return nccl->ncclBroadcast(in, out, n, ncclUint8, group[1], comm, stream);\n"
    "    ncclResult_t r = nccl->ncclGroupStart();\n"
    "    for (int32_t k = 0; k < group[0] && r == ncclSuccess; k++) {\n"
    "        const int32_t other = group[1 + k];\n"
    "        const char   *from = (const char *)in + (x->kind == HLO_TRADE ? (size_t)k * n : 0);\n"
    "        if (x->kind == HLO_BROADCAST)\n"
    "            r = hlo_pass(nccl, comm, stream, me, n, in, me == group[1] ? other : -1, out, other == me ? group[1] : -1);\n"
    "        else if (x->kind != HLO_PERMUTE)\n"
    "            r = hlo_pass(nccl, comm, stream, me, n, from, other, (char *)out + (size_t)k * n, other);\n"
    "    }\n"
    "    for (int32_t k = 0; k < x->n_pairs && r == ncclSuccess; k++) {\n"
    "        const int32_t *const pair = x->pairs + 2 * k;\n"
    "        r = hlo_pass(nccl, comm, stream, me, n, in, pair[0] == me ? pair[1] : -1, out, pair[1] == me ? pair[0] : -1);\n"
    "    }\n"
    "    const ncclResult_t ended = nccl->ncclGroupEnd();\n"
    "    return r == ncclSuccess ? ended : r;\n"
    "}\n"
    "\n/* cudaErrorNotSupported: it is not for the library. */\n"
    "static cudaError_t hlo_collected(const hlo_devices *devices, cudaStream_t stream, const hlo_exchange *x, const void *in, void *out)\n"
    "{\n"
    "    const ncclComm_t      comm = hlo_communicator(devices);\n"
    "    const hlo_nccl *const nccl = comm && x->kind <= HLO_PERMUTE ? hlo_nccl_library() : NULL;\n"
    "    const int32_t         me = devices->replica * devices->partitions + devices->partition;\n"
    "    const int32_t *const  group = hlo_group_of(x, me);\n"
    "    int                   comes = group && x->kind != HLO_PERMUTE;\n"
    "    if (!nccl)\n"
    "        return cudaErrorNotSupported;\n"
    "    if (x->bytes == 0)\n"
    "        return cudaSuccess;\n"
    "    for (int32_t k = 0; k < x->n_pairs; k++)\n"
    "        comes = comes || x->pairs[2 * k + 1] == me;\n"
    "    const cudaError_t e = comes ? cudaSuccess : cudaMemsetAsync(out, 0, (size_t)x->bytes, stream);\n"
    "    return e || !group ? e : hlo_collective(nccl, comm, devices, stream, x, group, in, out) == ncclSuccess ? cudaSuccess : cudaErrorUnknown;\n"
    "}\n"
    "#endif\n";

static const char exchange_text[] =
    "\n/* How many blocks there are on the side that has one for each participant. */\n"
    "static size_t hlo_blocks(const hlo_exchange *x)\n"
    "{\n"
    "    const int32_t *group = x->groups;\n"
    "    int32_t        most = 0;\n"
    "    for (int32_t k = 0; k < x->n_groups; k++, group += group[0] + 1)\n"
    "        most = group[0] > most ? group[0] : most;\n"
    "    return (size_t)most;\n"
    "}\n"
    "\n/* in, out: the device's; NULL where there is none. It waits for all work on the stream. */\n"
    "static int hlo_exchanged(const hlo_env *env, cudaStream_t stream, const char *what, const char *failure, const hlo_exchange *x, const void *in, void *out)\n"
    "{\n"
    "    const hlo_devices *const devices = env->devices;\n"
    "#ifdef HLO_NCCL\n"
    "    const cudaError_t collected = hlo_collected(devices, stream, x, in, out);\n"
    "    if (collected != cudaErrorNotSupported)\n"
    "        return hlo_failed(env, what, collected);\n"
    "#endif\n"
    "    const size_t             block = (size_t)x->bytes, all = block * hlo_blocks(x);\n"
    "    const size_t             in_bytes = !in ? 0 : x->kind == HLO_TRADE ? all : block, out_at = (in_bytes + 63) / 64 * 64;\n"
    "    const size_t             out_bytes = !out ? 0 : x->kind == HLO_GATHER || x->kind == HLO_TRADE ? all : block;\n"
    "    char *const              host = (char *)calloc(out_at + out_bytes + 1, 1);\n"
    "    cudaError_t              e = host ? cudaSuccess : cudaErrorMemoryAllocation;\n"
    "    if (!e && in_bytes > 0)\n"
    "        e = cudaMemcpyAsync(host, in, in_bytes, cudaMemcpyDeviceToHost, stream);\n"
    "    e = e ? e : cudaStreamSynchronize(stream);\n"
    "    int failed = hlo_failed(env, what, e);\n"
    "    if (!failed && (!devices->exchange || devices->exchange(devices->context, x, in ? host : NULL, out ? host + out_at : NULL)))\n"
    "        failed = hlo_fails(env, what, failure);\n"
    "    if (!failed && out_bytes > 0) {\n"
    "        e = cudaMemcpyAsync(out, host + out_at, out_bytes, cudaMemcpyHostToDevice, stream);\n"
    "        e = e ? e : cudaStreamSynchronize(stream);\n"
    "        failed = hlo_failed(env, what, e);\n"
    "    }\n"
    "    free(host);\n"
    "    return failed;\n"
    "}\n";

static const char check_text[] =
    "\n/* Waits for a pred, which must be true. */\n"
    "static int hlo_checked(const hlo_env *env, cudaStream_t stream, const char *what, const char *failure, const void *pred)\n"
    "{\n"
    "    uint8_t     good = 0;\n"
    "    cudaError_t e = cudaMemcpyAsync(&good, pred, 1, cudaMemcpyDeviceToHost, stream);\n"
    "    e = e ? e : cudaStreamSynchronize(stream);\n"
    "    return hlo_failed(env, what, e) || (!good && hlo_fails(env, what, failure));\n"
    "}\n";

void cuda_devices_services(Buf *b, const Program *p)
{
    c_exchanges(b, p);
    if (cuda_has_collectives(p))
        buf_puts(b, collective_text);
    if (p->n_exchanges > 0)
        buf_puts(b, exchange_text);
    if (any(p, STEP_CHECK))
        buf_puts(b, check_text);
}

void cuda_devices_check(Buf *b, const Program *p)
{
    if (!p->on_devices)
        return;
    buf_printf(b, "    if (!env || env->size < __builtin_offsetof(hlo_env, devices) + sizeof env->devices || !env->devices ||\n"
                  "        env->devices->replicas != %lld || env->devices->partitions != %lld)\n"
                  "        return hlo_fails(env, \"%s_run\", \"env->devices must say which of %lld * %lld devices this is\");\n",
               (long long)p->on.replicas, (long long)p->on.partitions, p->name, (long long)p->on.replicas, (long long)p->on.partitions);
    if (cuda_has_collectives(p))
        buf_printf(b, "#ifdef HLO_NCCL\n"
                      "    if (!hlo_is_member(env->devices))\n"
                      "        return hlo_fails(env, \"%s_run\", \"env->devices->communicator is not one of %lld devices, or another one's\");\n"
                      "#endif\n",
                   p->name, (long long)devices_n(p->on));
}

/* ---- steps ---- */

/* (env, stream, "all-reduce %sum", "the devices did not exchange their blocks" */
static void put_call(Buf *b, const char *function, const Exchange *x, const char *failure)
{
    Buf what = { 0 };
    buf_printf(&what, "%s %%%s", x->op, x->name);
    buf_printf(b, "%s(env, stream, ", function);
    c_string(b, what.p);
    buf_puts(b, ", ");
    c_string(b, failure);
    buf_free(&what);
}

void cuda_exchange_call(Buf *b, const Exchange *x, const char *in, const char *out)
{
    put_call(b, "hlo_exchanged", x, c_exchange_failure(x));
    buf_printf(b, ", &%s, %s, %s)", x->id, in ? in : "NULL", out ? out : "NULL");
}

void cuda_check_call(Buf *b, const Exchange *x, const char *pred)
{
    put_call(b, "hlo_checked", x, x->failure);
    buf_printf(b, ", %s)", pred);
}

void cuda_number_call(Buf *b, const char *prefix, const char *to, bool replica)
{
    buf_printf(b, "%s_number(stream, %s, env->devices->%s)", prefix, to, replica ? "replica" : "partition");
}
