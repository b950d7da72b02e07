/* Compiles what hlo-codegen --target=cuda --emit=kernels prints, by NVRTC, to the code of one device or several; what the compiler says is told, and is a failure.
 * NVRTC knows no host: launchers are functions of the device here, with a header of their own, so that each kernel and what it is made from stays.
 *
 *     cc nvrtc.c -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lnvrtc -o nvrtc
 *     nvrtc [--include=/usr/local/cuda/include] --arch=sm_80,sm_90 FILE.cu...
 *
 * Exit: 0 all is compiled, 1 not all, 2 trouble. */
#include <nvrtc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What launchers call, beside the functions of the device's runtime, which NVRTC declares. A launch keeps its kernel: its address is stored. */
static const char runtime[] =
    "#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000)\n"
    "#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000)\n"
    "#define __builtin_inf() __builtin_bit_cast(double, 0x7ff0000000000000)\n"
    "#define __builtin_nan(text) __builtin_bit_cast(double, 0x7ff8000000000000)\n"
    "#define __builtin_clzll __clzll\n"
    "#define __builtin_offsetof(type, field) ((unsigned long)&((type *)0)->field)\n"
    "static __device__ const volatile void *launched;\n"
    "template <typename... P, typename... A> __device__ cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *, void (*kernel)(P...), A &&...)\n"
    "{ launched = (const volatile void *)kernel; return cudaSuccess; }\n"
    "__device__ cudaError_t cudaMallocAsync(void **, unsigned long, cudaStream_t);\n"
    "__device__ cudaError_t cudaFreeAsync(void *, cudaStream_t);\n"
    "__device__ cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *);\n"
    "template <typename F> __device__ cudaError_t cudaFuncSetAttribute(F *f, cudaFuncAttribute, int) { launched = (const volatile void *)f; return cudaSuccess; }\n"
    "template <typename T> __device__ cudaError_t cudaGetSymbolAddress(void **at, const T &x) { *at = (void *)&x; return cudaSuccess; }\n";

static char *text_of(const char *name)
{
    FILE *f = fopen(name, "rb");
    char *text = NULL;
    long  n = 0;
    if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) && (text = malloc((size_t)n + 1)))
        text[fread(text, 1, (size_t)n, f)] = 0;
    if (f)
        fclose(f);
    if (!text) {
        fprintf(stderr, "nvrtc: %s cannot be read\n", name);
        exit(2);
    }
    return text;
}

static bool compiles(const char *name, const char *text, const char *arch, const char *include)
{
    char              device[64], folder[4096];
    const char *const headers[] = { runtime, "", "" }, *const names[] = { "cuda_runtime.h", "pthread.h", "stdlib.h" };
    const char *const options[] = { device, folder, "--std=c++17", "--device-as-default-execution-space", "--relocatable-device-code=true", "-DHLO_NO_CUBLASLT", "-DHLO_NO_CUDNN",
        "-DHLO_NO_CUSOLVER", "-DHLO_NO_CUFFT", "-DHLO_NO_NCCL", "-DHLO_NO_CONDITIONS",
        "-D__INT8_TYPE__=signed char", "-D__INT16_TYPE__=short", "-D__INT32_TYPE__=int", "-D__INT64_TYPE__=long",
        "-D__UINT8_TYPE__=unsigned char", "-D__UINT16_TYPE__=unsigned short", "-D__UINT32_TYPE__=unsigned", "-D__UINT64_TYPE__=unsigned long", "-D__UINTPTR_TYPE__=unsigned long" };
    nvrtcProgram      program;
    size_t            n = 0;
    snprintf(device, sizeof device, "--gpu-architecture=%s", arch);
    snprintf(folder, sizeof folder, "--include-path=%s", include);
    if (nvrtcCreateProgram(&program, text, name, 3, headers, names) != NVRTC_SUCCESS) {
        fprintf(stderr, "nvrtc: no program can be made\n");
        exit(2);
    }
    bool  ok = nvrtcCompileProgram(program, sizeof options / sizeof *options, options) == NVRTC_SUCCESS;
    char *log = nvrtcGetProgramLogSize(program, &n) == NVRTC_SUCCESS && n > 1 ? malloc(n) : NULL;
    if (log && nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS && strspn(log, " \n") < strlen(log)) {
        fputs(log, stderr);
        ok = false;
    }
    if (ok && (nvrtcGetCUBINSize(program, &n) != NVRTC_SUCCESS || !n)) {
        fprintf(stderr, "%s: error: no code for %s\n", name, arch);
        ok = false;
    }
    free(log);
    nvrtcDestroyProgram(&program);
    return ok;
}

int main(int n, char **arg)
{
    const char *archs = "sm_90", *include = "/usr/local/cuda/include";
    bool        ok = true;
    for (int i = 1; i < n; i++) {
        if (!strncmp(arg[i], "--arch=", 7)) {
            archs = arg[i] + 7;
        } else if (!strncmp(arg[i], "--include=", 10)) {
            include = arg[i] + 10;
        } else {
            char *text = text_of(arg[i]);
            for (const char *a = archs; *a;) {
                char         arch[32];
                const size_t length = strcspn(a, ",");
                snprintf(arch, sizeof arch, "%.*s", (int)length, a);
                ok = compiles(arg[i], text, arch, include) && ok;
                a += length + (a[length] == ',');
            }
            free(text);
        }
    }
    return ok ? 0 : 1;
}
