/* Texts of src/runtime, generated: runtime_text.c. */
#ifndef TARGET_C_RUNTIME_TEXT_H
#define TARGET_C_RUNTIME_TEXT_H

extern const char runtime_declarations[]; /* the types and functions of hlort.h */

#endif
