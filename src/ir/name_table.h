/* The names in use in a module, made when a pass first asks for a new one. Private to src/ir. */
#ifndef IR_NAME_TABLE_H
#define IR_NAME_TABLE_H

#include "ir/inst.h"

/* name is now taken by an instruction; does nothing while no table exists. */
void name_table_note_inst(Module *m, const char *name);

#endif
