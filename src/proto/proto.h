/* Modules as protocol buffers: XLA's HloModuleProto and the messages that hold one.
 *
 *   HloModuleProto                                 the module
 *   HloProto          { hlo_module, ... }          what --xla_dump_hlo_as_proto writes
 *   HloSnapshot       { hlo, arguments, result }   a module as it was run
 *   HloUnoptimizedSnapshot                         a module as it came, with the arguments of each partition: in the message, or
 *                                                  behind it as XLA writes them
 *
 * hlo.proto has XLA's field numbers. The header's replica_count and its like belong to XLA's configuration and not to its module: they are
 * kept in a field of our own, which XLA passes over. */
#ifndef PROTO_PROTO_H
#define PROTO_PROTO_H

#include "ir/inst.h"

typedef enum ProtoKind { PROTO_MODULE, PROTO_HLO, PROTO_SNAPSHOT, PROTO_UNOPTIMIZED_SNAPSHOT } ProtoKind;

/* The values that came with a snapshot; the arena they were read with holds them. */
typedef struct Snapshot {
    ProtoKind             kind;
    int32_t               n_partitions; /* with arguments; 1 unless it is an unoptimized one */
    int32_t               n_args;       /* of each partition; tuples as they are */
    const Literal *const *args;         /* those of the first partition first */
    const Literal        *result;   /* NULL: none */
    const char           *platform; /* NULL: none */
} Snapshot;

/* Could these bytes be one of the messages? Text never is: its first byte would have to be a control character. */
bool proto_is(const void *p, size_t n);

/* The module in the message p[0..n), of whatever kind it is; not verified. The message becomes HLO text and that is parsed, so that every rule of the
 * language holds; the values of constants do not take this detour. d's source becomes that text, since its places are what messages
 * can name. What the text has no place for is said in a warning. s may be NULL. NULL after reporting. Everything but the module is in d's arena. */
Module *proto_read(const void *p, size_t n, Snapshot *s, Diag *d);

/* The module as a message of kind PROTO_MODULE or PROTO_HLO, appended to b. False after reporting: a constant without values. */
bool proto_write(Buf *b, const Module *m, ProtoKind kind, Diag *d);

/* The same with values, of kind PROTO_SNAPSHOT (one partition) or PROTO_UNOPTIMIZED_SNAPSHOT, the latter with the arguments behind the message. The values
 * have the types that entry_computation_layout says. False after reporting also for a type that has no form behind a message. */
bool snapshot_write(Buf *b, const Module *m, const Snapshot *s, Diag *d);

#endif
