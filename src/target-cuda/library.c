/* The libraries that launchers call. Each is one of the toolkit's: its header is included when the compiler finds it, unless -DHLO_NO_NAME leaves it out, and HLO_NAME is defined then; its functions
 * are loaded when they are first due, or linked with -DHLO_NAME_IS_LINKED. */
#include "target-cuda/devices.h"
#include "target-cuda/part.h"
#include "target-cuda/solver.h"

typedef struct Library {
    const char *name;
    const char *headers[2];
    bool      (*has)(const Program *p, int32_t function); /* a kernel that the library does; */
    bool      (*is_called)(const Program *p);             /* or what it is for when there is no kernel in its place */
    void      (*services)(Buf *b);                        /* in front of launchers; NULL: they are the library's own */
    bool        host;                                     /* the entry calls it, no launcher */
} Library;

static const Library libraries[] = {
    { "CUBLASLT", { "cublasLt.h" }, cuda_is_product, NULL, cuda_product_services, false },
    { "CUDNN", { "cudnn_graph.h" }, cuda_is_convolution, NULL, cuda_convolution_services, false },
    { "CUFFT", { "cufft.h" }, cuda_is_transform, NULL, cuda_transform_services, false },
    { "CUSOLVER", { "cublas_v2.h", "cusolverDn.h" }, NULL, cuda_has_solves, NULL, false },
    { "NCCL", { "nccl.h" }, NULL, cuda_has_collectives, NULL, true },
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static bool is_called(const Program *p, const Library *x)
{
    bool is = x->is_called && x->is_called(p);
    for (int32_t f = 0; x->has && !is && f < p->n_functions; f++)
        is = x->has(p, f);
    return is;
}

static void put_includes(Buf *b, const Library *x)
{
    buf_printf(b, "#if !defined(HLO_NO_%s) && defined(__has_include)\n#if __has_include(<%s>)", x->name, x->headers[0]);
    if (x->headers[1])
        buf_printf(b, " && __has_include(<%s>)", x->headers[1]);
    buf_printf(b, "\n#define HLO_%s 1\n", x->name);
    for (int k = 0; k < 2 && x->headers[k]; k++)
        buf_printf(b, "#include <%s>\n", x->headers[k]);
    buf_puts(b, "#include <dlfcn.h>\n#include <pthread.h>\n#include <stdlib.h>\n#endif\n#endif\n");
}

void cuda_library_includes(Buf *b, const Program *p, bool kernels, bool host)
{
    for (int k = 0; k < LIBRARIES; k++)
        if ((libraries[k].host ? host : kernels) && is_called(p, &libraries[k]))
            put_includes(b, &libraries[k]);
}

void cuda_library_services(Buf *b, const Program *p)
{
    for (int k = 0; k < LIBRARIES; k++)
        if (libraries[k].services && is_called(p, &libraries[k]))
            libraries[k].services(b);
}
