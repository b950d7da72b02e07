/* Text of the attributes of ir/attr_rare.h. Source: reference text 5.4, 5.8, 6.1, 6.3, 6.4, 8.2. */
#ifndef TEXT_PRINT_RARE_H
#define TEXT_PRINT_RARE_H

#include "ir/attr_rare.h"
#include "support/buf.h"
#include "text/print.h"

/* Every function writes the value alone, without the attribute's name. */
void print_sharding(Buf *b, const Sharding *s, bool metadata);
void print_replica_groups(Buf *b, const ReplicaGroups *g);
void print_statistics(Buf *b, const Statistics *s); /* nothing is to be printed when s->n is 0 */
void print_accuracy(Buf *b, const Accuracy *x);     /* nothing is to be printed when accuracy_is_default */
bool accuracy_is_default(const Accuracy *x);
void print_origin(Buf *b, const Origin *o);
void print_sparsity(Buf *b, const Sparsity *x);
void print_scaling(Buf *b, const Scaling *x);
void print_domain(Buf *b, const Domain *x);
void print_origin_table(Buf *b, const OriginTable *t, const PrintOptions *o);
void print_debug_table(Buf *b, const DebugTable *t, int32_t indent);

#endif
