/* The header of src/cudasim as one text, generated: cudasim_text.c. */
#ifndef DRIVER_CUDASIM_TEXT_H
#define DRIVER_CUDASIM_TEXT_H

extern const char cudasim_header[];

#endif
