/* What every tool reads: HLO text or one of the messages of proto.h, told apart by content, gzipped or not. */
#ifndef PROTO_READ_H
#define PROTO_READ_H

#include "ir/inst.h"

struct Snapshot;

/* Replaces gzipped contents of in by what they are of. False after reporting. */
bool module_input(Buf *in, Diag *d);

/* The module in the contents of a file, which d's messages are about and which must outlive them; not verified. s (may be NULL) gets what a snapshot
 * has besides. NULL after reporting. */
Module *module_read(const Buf *in, struct Snapshot *s, Diag *d);
/* The same without a copy of a text: its bytes change while they are read and are what they were when this returns. */
Module *module_read_in_place(Buf *in, struct Snapshot *s, Diag *d);

#endif
