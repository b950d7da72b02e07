/* Text of loops and branches that the device decides. prefix: of functions that the file with kernels has, "hlo" or the program's name. */
#ifndef TARGET_CUDA_FLOW_H
#define TARGET_CUDA_FLOW_H

#include "emit/program.h"
#include "support/buf.h"

bool    cuda_has_choices(const Program *p);         /* if there are none, nothing of this is needed */
const char *cuda_choice_hindrance(const Step *s);   /* what is in it that cannot be part of a graph, NULL: nothing */
int32_t cuda_branches(const Step *s);               /* how many of its branches have steps; they come first */
bool    cuda_replays(const Program *p);             /* NAME_enqueue makes a graph of its own */

void cuda_flow_guard(Buf *b, const Program *p);     /* #define HLO_CONDITIONS where the toolkit has conditional nodes */
void cuda_flow_kernels(Buf *b, const char *linkage, const char *prefix);
void cuda_flow_prototype(Buf *b, const char *prefix);
void cuda_flow_services(Buf *b, const Program *p, const char *prefix);
void cuda_flow_replay(Buf *b, const Program *p);    /* behind NAME_steps */
void cuda_flow_enqueue(Buf *b, const Program *p);   /* the body of NAME_enqueue */

#endif
