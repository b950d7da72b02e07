/* gemm_set_end.h - forgets one set of instructions. */
#undef MC
#undef NC
#undef MR
#undef ROWS
#undef NV
#undef SET
#undef HLORT_SET
#undef VECTOR_BYTES
#undef TILE_ROWS
#undef TILE_VECTORS
#undef BLOCK_K
#undef BLOCK_ROWS
#undef BLOCK_COLUMNS
#undef HALF_512
#undef HALF_F16C
#undef HALF_NEON
