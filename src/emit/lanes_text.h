/* Functions of the program's text that gcc calls for vectors by name: what is the same of all that are written for 512 bits, as text. Narrower forms ask that one; one number alone asks ALONE,
 * under the function's name; where there is no such form the function is OTHERWISE.
 *
 * P begins the names of their types (P_v16 ...), T is C's element, NAME the function, V "v" for each operand, OF is ONE or TWO operands, what comes last LANES_OF_F32 or LANES_OF_F64. */
#ifndef EMIT_LANES_TEXT_H
#define EMIT_LANES_TEXT_H

/* What shuffles vectors follows; the other way without them behind #else. */
#define LANES_ASKED "#if defined __has_builtin\n#if __has_builtin(__builtin_shufflevector)\n#define HLO_LANES\n#endif\n#endif\n"
#define LANES_IN_VECTORS LANES_ASKED "#if defined HLO_LANES\n"

/* Numbers of 512, 256 and 128 bits, and those of which the last two take their part. */
#define LANES_OF_F32 "16", "8", "4", "0, 1, 2, 3, 4, 5, 6, 7", "0, 1, 2, 3"
#define LANES_OF_F64 "8", "4", "2", "0, 1, 2, 3", "0, 1"

#define LANES_BEGIN(P, T, ...) LANES_BEGIN_(P, T, __VA_ARGS__)
#define LANES_BEGIN_(P, T, N, H, Q, HALF, QUARTER) \
    "#if defined __AVX512F__ && defined __GNUC__ && !defined __clang__ && defined __x86_64__ && defined __gnu_linux__ && !defined HLO_NO_LIBMVEC\n" \
    "#ifndef HLO_FORM\n#define HLO_FORM __attribute__((weak, visibility(\"hidden\")))\n#endif\n" \
    "typedef " T " " P "_v" Q " __attribute__((vector_size(16)));\n" \
    "typedef " T " " P "_v" H " __attribute__((vector_size(32)));\n" \
    "typedef " T " " P "_v" N " __attribute__((vector_size(64)));\n"

#define ONE_TYPED(T) T " x"
#define ONE_NAMED "x"
#define ONE_TWICE(I) "__builtin_shufflevector(x, x, " I ", " I ")"
#define ONE_TYPES(T) T
#define TWO_TYPED(T) T " x, " T " y"
#define TWO_NAMED "x, y"
#define TWO_TWICE(I) "__builtin_shufflevector(x, x, " I ", " I "), __builtin_shufflevector(y, y, " I ", " I ")"
#define TWO_TYPES(T) T ", " T

/* A form's head, declared first for compilers that warn else. */
#define LANES_HEAD(TYPE, FN, OF) "HLO_FORM " TYPE " " FN "(" OF##_TYPED(TYPE) ");\n" "HLO_FORM " TYPE " " FN "(" OF##_TYPED(TYPE) ")\n{\n"

#define LANES_END(P, T, NAME, V, OF, ALONE, OTHERWISE, ...) LANES_END_(P, T, NAME, V, OF, ALONE, OTHERWISE, __VA_ARGS__)
#define LANES_END_(P, T, NAME, V, OF, ALONE, OTHERWISE, N, H, Q, HALF, QUARTER) \
    "\n" LANES_HEAD(P "_v" H, "_ZGVdN" H V "_" NAME, OF) \
    "    " P "_v" N " r = _ZGVeN" N V "_" NAME "(" OF##_TWICE(HALF) ");\n" \
    "    return __builtin_shufflevector(r, r, " HALF ");\n" \
    "}\n" \
    "\n" LANES_HEAD(P "_v" H, "_ZGVcN" H V "_" NAME, OF) \
    "    return _ZGVdN" H V "_" NAME "(" OF##_NAMED ");\n" \
    "}\n" \
    "\n" LANES_HEAD(P "_v" Q, "_ZGVbN" Q V "_" NAME, OF) \
    "    " P "_v" H " r = _ZGVdN" H V "_" NAME "(" OF##_TWICE(QUARTER) ");\n" \
    "    return __builtin_shufflevector(r, r, " QUARTER ");\n" \
    "}\n" \
    "\n" \
    "HLO_FORM " T " " P "_of_one(" OF##_TYPED(T) ") __asm__(\"" NAME "\"); /* a definition by its own name would have vectors made of it */\n" \
    "HLO_FORM " T " " P "_of_one(" OF##_TYPED(T) ")\n" \
    "{\n" \
    "    return " ALONE ";\n" \
    "}\n" \
    "\n" \
    "HLO_VECTOR __attribute__((const)) " T " " NAME "(" OF##_TYPES(T) ");\n" \
    "#else\n" \
    "static inline " T " " NAME "(" OF##_TYPED(T) ")\n" \
    "{\n" \
    "    return " OTHERWISE ";\n" \
    "}\n" \
    "#endif\n"

#endif
