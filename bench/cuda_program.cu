/* One module (MODULE, its header HEADER, --name=net) as a program that checks itself and tells its time; compiled by nvcc, or by a C++ compiler against the simulator.
 *
 *     PROGRAM FOLDER [RUNS]     FOLDER has arg0.npy, ..., out0.npy, ..., what the evaluator makes of them; - for floats from 0 to 1, and no comparison
 *
 * Exit: 0 the results agree, 1 they do not, 2 trouble, 3 there is no GPU. */
#include MODULE
#include HEADER

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef COPY_BYTES
#define COPY_BYTES (256 << 20)
#endif

static int must(const char *what, cudaError_t e)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(e));
        exit(2);
    }
    return 0;
}

/* Where element k of memory stands in the .npy files, whose last dimension is the fastest: from a shape's text, as f16[64,80]{0,1}. */
static int64_t place_of(const char *shape, int64_t k)
{
    int64_t     dims[32], at[32] = { 0 }, place = 0;
    int         rank = 0;
    const char *s = strchr(shape, '['), *layout = strchr(shape, '{');
    for (char *end; s && s[1] && *s != ']' && rank < 32; s = end) {
        dims[rank] = strtoll(s + 1, &end, 10);
        if (end == s + 1)
            break;
        rank++;
    }
    if (!layout)
        return k;
    for (char *end; *layout && *layout != '}'; layout = end) {
        const int64_t d = strtoll(layout + 1, &end, 10);
        if (end == layout + 1 || d < 0 || d >= rank)
            break;
        at[d] = k % dims[d];
        k /= dims[d];
    }
    for (int d = 0; d < rank; d++)
        place = place * dims[d] + at[d];
    return place;
}

/* From the order of .npy files to that of memory. Elements of less than a byte are left alone. */
static char *in_memory_order(const hlo_leaf *x, char *from)
{
    int64_t     n = 1;
    const char *s = strchr(x->shape, '[');
    for (char *end; s && *s != ']' && s[1] != ']'; s = end)
        n *= strtoll(s + 1, &end, 10);
    const int64_t each = n ? x->bytes / n : 0;
    char         *to = each * n == x->bytes ? (char *)malloc((size_t)x->bytes + 1) : NULL;
    if (!to)
        return from;
    for (int64_t k = 0; k < n; k++)
        memcpy(to + k * each, from + place_of(x->shape, k) * each, (size_t)each);
    free(from);
    return to;
}

/* The array of FOLDER/WHAT<k>.npy. */
static char *read_array(const char *folder, const char *what, int k, const hlo_leaf *x)
{
    const int64_t bytes = x->bytes;
    char          path[4096];
    unsigned char head[10];
    snprintf(path, sizeof path, "%s/%s%d.npy", folder, what, k);
    FILE *f = fopen(path, "rb");
    char *p = (char *)malloc((size_t)bytes + 1);
    if (!f || !p || fread(head, 1, 10, f) != 10 || fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET) || fread(p, 1, (size_t)bytes, f) != (size_t)bytes) {
        fprintf(stderr, "error: %s cannot be read\n", path);
        exit(2);
    }
    fclose(f);
    return in_memory_order(x, p);
}

/* Floats of 32 bits from 0 to 1; 0 for all else. */
static char *made_array(const hlo_leaf *x)
{
    char *p = (char *)calloc(1, (size_t)x->bytes + 1);
    for (int64_t k = 0; p && strncmp(x->shape, "f32", 3) == 0 && k < x->bytes / 4; k++)
        ((float *)p)[k] = (float)(k * 2654435761u % 65536) / 65536;
    return p;
}

static double bits16(const char *p, int64_t k, int exponent)
{
    uint16_t h;
    memcpy(&h, p + 2 * k, 2);
    const int    mantissa = 15 - exponent, bias = (1 << (exponent - 1)) - 1, e = (h & 0x7fff) >> mantissa;
    const double m = h & ((1 << mantissa) - 1), one = 1 << mantissa;
    if (e == 2 * bias + 1)
        return m ? NAN : h >> 15 ? -INFINITY : INFINITY;
    const double v = ldexp(e ? one + m : m, (e ? e : 1) - bias - mantissa);
    return h >> 15 ? -v : v;
}

/* Element k of an array whose shape's text begins with its type; numbers that are no floats are compared as bytes. */
static double element(const char *type, const char *p, int64_t k)
{
    if (strncmp(type, "f64", 3) == 0 || strncmp(type, "c128", 4) == 0)
        return ((const double *)p)[k];
    if (strncmp(type, "f32", 3) == 0 || strncmp(type, "c64", 3) == 0)
        return ((const float *)p)[k];
    return bits16(p, k, type[0] == 'b' ? 8 : 5);
}

static int compare(const hlo_leaf *x, const char *expected, const char *got)
{
    const char *type = x->shape;
    const int   wide = strncmp(type, "f64", 3) == 0 || strncmp(type, "c128", 4) == 0, half = strncmp(type, "bf16", 4) == 0 || strncmp(type, "f16", 3) == 0;
    const int   single = strncmp(type, "f32", 3) == 0 || strncmp(type, "c64", 3) == 0;
    const double rate = wide ? 1e-10 : single ? 1e-4 : 2e-2;
    double      most = 0;
    int64_t     n = x->bytes / (wide ? 8 : single ? 4 : 2), bad = 0;
    if (!wide && !single && !half)
        return memcmp(expected, got, (size_t)x->bytes) != 0;
    for (int64_t k = 0; k < n; k++) {
        const double e = fabs(element(type, expected, k));
        most = isfinite(e) && e > most ? e : most;
    }
    for (int64_t k = 0; k < n; k++) {
        const double e = element(type, expected, k), g = element(type, got, k);
        bad += !(e == g || (isnan(e) && isnan(g)) || fabs(e - g) <= rate * (fabs(e) + most / 10));
    }
    return bad != 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double copy_rate(void)
{
    void *from, *to;
    must("copy", cudaMalloc(&from, COPY_BYTES));
    must("copy", cudaMalloc(&to, COPY_BYTES));
    for (int turn = 0; turn < 2; turn++)
        must("copy", cudaMemcpyAsync(to, from, COPY_BYTES, cudaMemcpyDeviceToDevice, 0));
    must("copy", cudaDeviceSynchronize());
    const double t = now();
    for (int turn = 0; turn < 8; turn++)
        must("copy", cudaMemcpyAsync(to, from, COPY_BYTES, cudaMemcpyDeviceToDevice, 0));
    must("copy", cudaDeviceSynchronize());
    const double rate = 2.0 * 8 * COPY_BYTES / (now() - t);
    cudaFree(from);
    cudaFree(to);
    return rate;
}

int main(int argc, char **argv)
{
    void       *in[net_N_ARGS + 1], *out[net_N_RESULTS + 1], *scratch;
    char        text[256] = "";
    const char *folder = argc > 1 ? argv[1] : ".";
    const int   runs = argc > 2 ? atoi(argv[2]) : 0;
    const int   made = strcmp(folder, "-") == 0;
    int         devices, bad = 0;
    hlo_env     env;
    memset(&env, 0, sizeof env);
    env.size = sizeof env;
    env.error = text;
    env.error_bytes = sizeof text;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess) {
        fprintf(stderr, "error: no GPU: %s\n", cudaGetErrorString(found));
        return 3;
    }
    must("scratch", cudaMalloc(&scratch, net_SCRATCH_BYTES + 1));
    for (int k = 0; k < net_N_ARGS; k++) {
        char *p = made ? made_array(&net_args[k]) : read_array(folder, "arg", k, &net_args[k]);
        must(net_args[k].name, cudaMalloc(&in[k], (size_t)net_args[k].bytes + 1));
        must(net_args[k].name, cudaMemcpy(in[k], p, (size_t)net_args[k].bytes, cudaMemcpyHostToDevice));
        free(p);
    }
    for (int k = 0; k < net_N_RESULTS; k++)
        must(net_results[k].name, cudaMalloc(&out[k], (size_t)net_results[k].bytes + 1));
    if (net_run(&env, in, out, scratch)) {
        fprintf(stderr, "error: %s\n", text);
        return 2;
    }
    for (int k = 0; k < net_N_RESULTS && !made; k++) {
        char *expected = read_array(folder, "out", k, &net_results[k]), *got = (char *)malloc((size_t)net_results[k].bytes + 1);
        must(net_results[k].name, cudaMemcpy(got, out[k], (size_t)net_results[k].bytes, cudaMemcpyDeviceToHost));
        bad += compare(&net_results[k], expected, got);
        free(expected);
        free(got);
    }
    printf("%-9s", made ? "unchecked" : bad ? "differs" : "agrees");
    if (runs > 0) {
        for (int turn = 0; turn < 3; turn++)
            net_run(&env, in, out, scratch);
        const double t = now();
        for (int turn = 0; turn < runs; turn++)
            net_enqueue(&env, in, out, scratch);
        must("run", cudaDeviceSynchronize());
        const double each = (now() - t) / runs;
        printf(" %10.2f us %8.1f GB/s %6.1f%% of a copy %9.1f GFLOP/s", 1e6 * each, BYTES / each * 1e-9, 100 * BYTES / each / copy_rate(), FLOPS / each * 1e-9);
    }
    printf("\n");
    return bad != 0;
}
