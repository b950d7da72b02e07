/* scan_types.h - what scans, of one set of instructions, for each type. */
#include "runtime/scan.h"

#if VECTOR_BYTES == 64
#define SCAN_LANES 16
#elif VECTOR_BYTES == 32
#define SCAN_LANES 8
#else
#define SCAN_LANES 4
#endif
#define S(x)    SET(hlort_scan_f32_##x)
#define SCAN_FLOAT 1
#define TE      float
#define TU      float
#define TM      int32_t
#define LEAST   -__builtin_inff()
#define MOST    __builtin_inff()
#define NOTHING -0.0f
#include "runtime/scan_body.h"
#define S(x)    SET(hlort_scan_s32_##x)
#define SCAN_FLOAT 0
#define TE      int32_t
#define TU      uint32_t
#define TM      int32_t
#define LEAST   INT32_MIN
#define MOST    INT32_MAX
#define NOTHING 0
#include "runtime/scan_body.h"
#define SCAN_ABREAST 4
#define SCAN_PIECE   32 /* a line of a cache */
#include "runtime/scan_narrow.h"
#undef SCAN_ABREAST
#undef SCAN_PIECE
#undef SCAN_LANES

#if VECTOR_BYTES == 64
#define SCAN_LANES 8
#elif VECTOR_BYTES == 32
#define SCAN_LANES 4
#else
#define SCAN_LANES 2
#endif
#define S(x)    SET(hlort_scan_f64_##x)
#define SCAN_FLOAT 1
#define TE      double
#define TU      double
#define TM      int64_t
#define LEAST   -__builtin_inf()
#define MOST    __builtin_inf()
#define NOTHING -0.0
#include "runtime/scan_body.h"
#define S(x)    SET(hlort_scan_s64_##x)
#define SCAN_FLOAT 0
#define TE      int64_t
#define TU      uint64_t
#define TM      int64_t
#define LEAST   INT64_MIN
#define MOST    INT64_MAX
#define NOTHING 0
#include "runtime/scan_body.h"
#undef SCAN_LANES
