/* What a tool does that reads one module and writes one product: hlo-as, hlo-codegen, hlo-dis and hlo-stat. */
#ifndef PROTO_MODULE_JOB_H
#define PROTO_MODULE_JOB_H

#include "ir/inst.h"
#include "support/tool.h"

struct Snapshot;

typedef struct ModuleJob {
    const char        *tool;
    const MessageArgs *messages;
    struct Snapshot   *values; /* gets what a snapshot has besides its module; NULL: nobody asks */
    bool (*make)(void *args, Arena *a, Module *m, Buf *out, Diag *d); /* false after reporting; m has not been verified */
    const char        *output; /* where the product goes when no error was reported ("-", NULL: stdout), */
    bool (*write)(const void *args, const Buf *out); /* unless this writes it; false after a message. NULL: nothing else does */
} ModuleJob;

/* Reads path ("-": stdin), makes, prints the messages, writes. args go to make and write, a lives until both are done. Gives the exit status. */
int module_job(const ModuleJob *j, void *args, Arena *a, const char *path);

#endif
