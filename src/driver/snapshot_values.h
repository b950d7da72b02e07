/* The values of a snapshot from files: what hlo-dis writes with --args and --results. */
#ifndef DRIVER_SNAPSHOT_VALUES_H
#define DRIVER_SNAPSHOT_VALUES_H

#include "ir/inst.h"
#include "proto/proto.h"

typedef struct ValueFiles {
    const char *args, *results; /* .npz, .safetensors or one .npy; results may be NULL: none */
    int32_t     n_partitions;   /* above 1 each argument has an axis in front with one array for each partition */
} ValueFiles;

/* Fills s->args, s->n_args, s->n_partitions and s->result; d's arena keeps them. False after reporting what is missing, left over or of another type. */
bool snapshot_values(const Module *m, const ValueFiles *files, Snapshot *s, Diag *d);

#endif
