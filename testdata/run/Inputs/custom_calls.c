/* Functions for the custom calls of custom-call*.test. */
#include "hlo_custom_call.h"

#include <stdio.h>
#include <string.h>

static void show_list(const char *before, const int64_t *v, int32_t n, const char *after)
{
    fprintf(stderr, "%s", before);
    for (int32_t k = 0; k < n; k++)
        fprintf(stderr, "%s%lld", k ? "," : "", (long long)v[k]);
    fprintf(stderr, "%s", after);
}

static void show_buffer(const char *side, const hlo_buffer *b)
{
    fprintf(stderr, "%s %s", side, b->type);
    show_list("[", b->sizes, b->rank, "]");
    show_list("{", b->minor_to_major, b->rank, "}");
    fprintf(stderr, " %lld bytes", (long long)b->bytes);
    if (strcmp(b->type, "s32") == 0)
        for (int64_t k = 0; k < b->bytes / 4; k++)
            fprintf(stderr, " %d", ((const int32_t *)b->data)[k]);
    fprintf(stderr, "\n");
}

/* Says what it was given; its results are 0. */
int hlo_call_test_describe(const hlo_call *c)
{
    fprintf(stderr, "%s of %s, version %d, %d bytes: %s\n", c->target, c->name, c->api_version, (int)c->config_bytes, c->config);
    for (int32_t k = 0; k < c->n_attributes; k++) {
        const hlo_attribute *a = &c->attributes[k];
        fprintf(stderr, "attribute %s = %s : %s, kind %d, %lld, %g\n", a->name, a->text, a->type, a->kind, (long long)a->integer, a->real);
    }
    for (int32_t k = 0; k < c->n_operands; k++)
        show_buffer("operand", &c->operands[k]);
    for (int32_t k = 0; k < c->n_results; k++) {
        memset(c->results[k].data, 0, (size_t)c->results[k].bytes);
        show_buffer("result", &c->results[k]);
    }
    return c->size != sizeof *c;
}

/* Where element k, in row-major order, lies. */
static int64_t place(const hlo_buffer *b, int64_t k)
{
    int64_t index[8], at = 0, stride = 1;
    for (int32_t d = b->rank - 1; d >= 0; d--) {
        index[d] = k % b->sizes[d];
        k /= b->sizes[d];
    }
    for (int32_t m = 0; m < b->rank; m++) {
        at += index[b->minor_to_major[m]] * stride;
        stride *= b->sizes[b->minor_to_major[m]];
    }
    return at;
}

/* (x, y) of s32 -> (10 x + y, 10 y + x), in any order of memory. */
int hlo_call_test_mix(const hlo_call *c)
{
    const int32_t *x = c->operands[0].data, *y = c->operands[1].data;
    int32_t       *r = c->results[0].data, *s = c->results[1].data;
    for (int64_t k = 0; k < c->results[0].bytes / 4; k++) {
        r[place(&c->results[0], k)] = 10 * x[place(&c->operands[0], k)] + y[place(&c->operands[1], k)];
        s[place(&c->results[1], k)] = 10 * y[place(&c->operands[1], k)] + x[place(&c->operands[0], k)];
    }
    return 0;
}

/* Adds 1 in place, and gives the sum of all. */
int hlo_call_test_increment(const hlo_call *c)
{
    int32_t *x = c->results[0].data, *sum = c->results[1].data;
    if (x != c->operands[0].data) {
        snprintf(c->error, c->error_bytes, "it is not in place");
        return 1;
    }
    *sum = 0;
    for (int64_t k = 0; k < c->results[0].bytes / 4; k++)
        *sum += ++x[k];
    return 0;
}

/* Says that it ran, and gives its operand on. */
int hlo_call_test_ran(const hlo_call *c)
{
    fprintf(stderr, "ran %s %d\n", c->config, *(const int32_t *)c->operands[0].data);
    if (c->n_results)
        memcpy(c->results[0].data, c->operands[0].data, (size_t)c->results[0].bytes);
    return 0;
}

/* One less; fails at 0. */
int hlo_call_test_countdown(const hlo_call *c)
{
    int32_t n = *(const int32_t *)c->operands[0].data;
    *(int32_t *)c->results[0].data = n - 1;
    if (n == 0)
        snprintf(c->error, c->error_bytes, "it is 0");
    return n == 0;
}

/* Fails: with a text when it has a configuration, one that is too long when that says so. */
int hlo_call_test_fail(const hlo_call *c)
{
    if (strcmp(c->config, "long") == 0)
        memset(c->error, 'x', c->error_bytes);
    else if (c->config_bytes)
        snprintf(c->error, c->error_bytes, "no luck with %s", c->config);
    return 7;
}
