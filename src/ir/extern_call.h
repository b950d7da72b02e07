/* Custom calls of functions from outside: an instruction as the call of hlo_custom_call.h. The evaluator makes the call, emitted text says it. */
#ifndef IR_EXTERN_CALL_H
#define IR_EXTERN_CALL_H

#include "ir/hlo_custom_call.h"
#include "ir/inst.h"

/* Who has functions for targets that are not known here. */
typedef struct ExternCalls {
    void *cookie;
    hlo_custom_call *(*find)(void *cookie, const char *symbol); /* NULL: there is none */
} ExternCalls;

/* Operands and results are leaves: tuples flattened depth first, tokens left out. */
typedef struct ExternCall {
    const char   *symbol, *target, *name, *config;
    int64_t       config_bytes;
    int32_t       api_version;
    int32_t       n_operands, n_results, n_attributes;
    const Shape **operands, **results;  /* with the order of memory in which the function wants them */
    int32_t      *alias;                /* of each result: the operand whose memory it is, -1: none */
    const hlo_attribute *attributes;
    const char   *who;                  /* what a message about it begins with, of at most 200 bytes */
} ExternCall;

const char *extern_symbol(Arena *a, const char *target);
/* The call that i, a custom-call, stands for; everything lives in a. NULL, or why there can be none. */
const char *extern_call(Arena *a, const Inst *i, ExternCall *out);

#endif
