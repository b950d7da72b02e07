/* Functions for custom calls that hlo-tools do not know: what a library for hlo-run --custom-call=LIBRARY provides, and what the text of
 * hlo-codegen --extern-calls is linked with. C and C++.
 *
 *     %y = f32[8] custom-call(%x), custom_call_target="my.scale", backend_config="{by = 3 : i64}"
 *
 *     #include <hlo_custom_call.h>
 *     int hlo_call_my_scale(const hlo_call *c)
 *     {
 *         const float *x = c->operands[0].data;
 *         float       *y = c->results[0].data;
 *         for (int64_t i = 0; i < c->results[0].bytes / 4; i++)
 *             y[i] = x[i] * (float)c->attributes[0].integer;
 *         return 0;
 *     }
 *
 *     cc -shared -fPIC -o my.so my.c && hlo-run --custom-call=./my.so --inputs=x.npy m.hlo
 *
 * The symbol of a target is hlo_call_ and the target, in which everything but letters and digits of ASCII is an underscore: my.scale and
 * my_scale share a function, which sees the difference in `target`. A call may run on several threads at once. Its results depend on nothing but
 * what it is given unless the module says custom_call_has_side_effect=true: calls without it may be left out, moved, or made once for two. */
#ifndef HLO_CUSTOM_CALL_H
#define HLO_CUSTOM_CALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array. Types are HLO's words. pred, s4, f8 and other types of up to 8 bits have a byte a value (pred 0 or 1, signed ones sign-extended, the upper
 * bits of others 0); bf16 and f16 are their bits; complex is real part, imaginary part. */
typedef struct hlo_buffer {
    const char    *type;           /* "f32", "s32", "pred", ... */
    int32_t        rank;
    const int64_t *sizes;          /* of the dimensions, [0, rank) */
    const int64_t *minor_to_major; /* dimensions in the order of memory, the one that changes fastest first: {rank-1, ..., 0} is row-major */
    void          *data;           /* dense; an operand's is only read */
    int64_t        bytes;
} hlo_buffer;

enum { HLO_OTHER, HLO_STRING, HLO_INTEGER, HLO_REAL };

/* An entry of the dictionary that the configuration is, {a = 1 : i64, b = "x"} or {"a": 1, "b": "x"}. */
typedef struct hlo_attribute {
    const char *name;
    const char *text;    /* the value as it is written; a string without its quotes and escapes */
    const char *type;    /* what is written behind its colon, "i64"; else "" */
    int32_t     kind;
    int64_t     integer; /* HLO_INTEGER; true is 1, false is 0, unsigned ones above INT64_MAX by their bits */
    double      real;    /* HLO_REAL, HLO_INTEGER */
} hlo_attribute;

typedef struct hlo_call {
    uint32_t             size;         /* sizeof(hlo_call) where the caller was compiled: later versions add fields at the end */
    int32_t              api_version;  /* XLA's number: 1 original, 2 status returning, 3 status returning unified, 4 typed FFI */
    const char          *target;       /* custom_call_target */
    const char          *name;         /* of the instruction, without % */
    const char          *config;       /* backend_config (opaque) as it is written, "" when there is none; ends in NUL, may have others */
    uint64_t             config_bytes;
    int32_t              n_operands, n_results, n_attributes; /* no attributes when the configuration is no dictionary */
    const hlo_buffer    *operands;     /* tuples flattened depth first, tokens left out; as the next */
    const hlo_buffer    *results;      /* not set before the call, but for one that output_to_operand_aliasing pairs with an operand: the two
                                          have the same data, which holds the operand's values. No other result overlaps an operand */
    const hlo_attribute *attributes;
    char                *error;        /* room for the text of a failure; what does not fit is cut */
    uint64_t             error_bytes;
} hlo_call;

/* 0, or anything else when it failed: the run ends there, with the text in error when one was written. */
typedef int hlo_custom_call(const hlo_call *call);

#ifdef __cplusplus
}
#endif

#endif
