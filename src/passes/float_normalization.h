/* What float-normalization-bf16 and float-normalization-f8 share. */
#ifndef PASSES_FLOAT_NORMALIZATION_H
#define PASSES_FLOAT_NORMALIZATION_H

#include "passes/expand.h"

/* The elementwise instruction i computed in a wider type and converted back; NULL when it computes nothing, or mixes types. */
Inst *float_widen(PassCtx *cx, Inst *i, Type wide);

#endif
