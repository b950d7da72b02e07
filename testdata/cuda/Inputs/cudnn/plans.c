/* The real library between emitted text and a device that is only described: plans are made as for that, and told in place of being executed.
 *
 *     plans LIBRARY DEVICE.json ARGUMENTS RESULTS      runs net_run of that many arrays, on the simulator */
#include <cudnn_graph.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, SCRATCH = 256 << 20, MOST = 64 };

int net_run(const void *env, const void *const *args, void *const *results, void *scratch);
int cudasim_malloc(void **p, size_t bytes);

static void                    *library;
static cudnnBackendDescriptor_t device;

#define REAL(name) ((__typeof__(&name))dlsym(library, #name))

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = (cudnnHandle_t)&device;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    return handle == (cudnnHandle_t)&device && !stream ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *to)
{
    return REAL(cudnnBackendCreateDescriptor)(type, to);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    return REAL(cudnnBackendDestroyDescriptor)(d);
}

static cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
    const cudnnStatus_t e = REAL(cudnnBackendSetAttribute)(d, name, type, n, from);
    char                why[256] = "";
    if (e) {
        REAL(cudnnGetLastErrorString)(why, sizeof why);
        printf("attribute %d: %s\n", (int)name, why);
    }
    return e;
}

/* A described device stands in the place of a handle. */
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
    switch ((int)name) {
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE: return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE: return set(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    case CUDNN_ATTR_ENGINEHEUR_MODE: {
        const cudnnStatus_t e = set(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
        return e ? e : set(d, name, type, n, from);
    }
    default: return set(d, name, type, n, from);
    }
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *to)
{
    return REAL(cudnnBackendGetAttribute)(d, name, type, room, n, to);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    return REAL(cudnnBackendFinalize)(d);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t run)
{
    int64_t bytes = -1, n = 0;
    if (handle != (cudnnHandle_t)&device || !run || cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes))
        return CUDNN_STATUS_BAD_PARAM;
    printf("a plan that wants %lld bytes\n", (long long)bytes);
    return CUDNN_STATUS_SUCCESS;
}

static int describe(const char *path)
{
    char    text[4096];
    FILE   *f = fopen(path, "r");
    int64_t n = f ? (int64_t)fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    return !n || cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) || set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, text) ||
           cudnnBackendFinalize(device);
}

int main(int argc, char **argv)
{
    void *arrays[2][MOST] = { { NULL } }, *scratch = NULL;
    if (argc != 5 || !(library = dlopen(argv[1], RTLD_NOW)) || describe(argv[2]))
        return printf("no library, or no device: %s\n", argc == 5 && !library ? dlerror() : ""), 2;
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < atoi(argv[3 + side]) && k < MOST; k++)
            cudasim_malloc(&arrays[side][k], BYTES);
    cudasim_malloc(&scratch, SCRATCH);
    return net_run(NULL, (const void *const *)arrays[0], arrays[1], scratch);
}
