/* The machine's limits and a fast content hash. Nothing here fails: an answer that cannot be had is the larger one. */
#include "config.h"

#include "support/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a control group's limit file, or INT64_MAX ("max", no such file). */
static int64_t limit_in_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return INT64_MAX;
    long long v = 0;
    int got = fscanf(f, "%lld", &v);
    fclose(f);
    return got == 1 && v > 0 ? (int64_t)v : INT64_MAX;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t host_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t bytes = pages > 0 && page > 0 ? (int64_t)pages * page : INT64_MAX;
    bytes = smaller(bytes, limit_in_file("/sys/fs/cgroup/memory.max"));
    bytes = smaller(bytes, limit_in_file("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    struct rlimit r;
    if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= INT64_MAX)
        bytes = smaller(bytes, (int64_t)r.rlim_cur);
    return bytes;
}

int64_t host_unpacked_limit(int64_t packed)
{
    enum { USUAL_RATIO = 32 };
    const int64_t always = (int64_t)1 << 28;
    int64_t most = packed < INT64_MAX / USUAL_RATIO ? packed * USUAL_RATIO : INT64_MAX;
    return smaller(most > always ? most : always, host_memory() / 2);
}

int host_processors(void)
{
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

enum { LANES = 4 };

/* Independent lanes of 8 bytes; returns how many bytes they have taken. */
static size_t mix_lanes(uint64_t *lane, const unsigned char *s, size_t n)
{
    size_t i = 0;
    for (; i + 8 * LANES <= n; i += 8 * LANES)
        for (int k = 0; k < LANES; k++) {
            uint64_t x;
            memcpy(&x, s + i + 8 * k, 8);
            lane[k] = mix(lane[k], x);
        }
    return i;
}

/* The lanes and the rest, bytewise, into one word. */
static uint64_t mix_rest(uint64_t seed, const uint64_t *lane, const unsigned char *s, size_t i, size_t n)
{
    uint64_t h = mix(seed, n);
    for (int k = 0; k < LANES; k++)
        h = mix(h, lane[k]);
    for (; i < n; i++)
        h = mix(h, s[i]);
    return mix(h, n);
}

uint64_t host_hash(uint64_t seed, const void *p, size_t n)
{
    uint64_t lane[LANES] = { seed, seed + 1, seed + 2, seed + 3 };
    size_t   i = mix_lanes(lane, p, n);
    return mix_rest(seed, lane, p, i, n);
}

void host_hash_two(uint64_t h[2], const void *p, size_t n)
{
    uint64_t lane[LANES] = { h[0], h[1], h[0] + 1, h[1] + 1 };
    size_t   i = mix_lanes(lane, p, n);
    for (int k = 0; k < 2; k++)
        h[k] = mix_rest(h[k], lane, p, i, n);
}

bool host_flush_subnormals(bool on)
{
#if defined(__x86_64__)
    enum { FLUSH = 1 << 15, ZEROS = 1 << 6 }; /* results, operands: bits of MXCSR, Intel's manual 1, 10.2.3 */
    unsigned word = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? word | FLUSH | ZEROS : word & ~(unsigned)(FLUSH | ZEROS));
    return true;
#elif defined(__aarch64__)
    const uint64_t flush = (uint64_t)1 << 24; /* FPCR.FZ, both */
    uint64_t       word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    __asm__ volatile("msr fpcr, %0" : : "r"(on ? word | flush : word & ~flush));
    return true;
#else
    (void)on;
    return false;
#endif
}
