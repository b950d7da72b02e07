/* gemm_words_end.h - forgets one kind of word. */
#undef K
#undef TW
#undef TC
#undef VW
#undef VC
#undef VWU
#undef VCU
#undef VL
#undef KC
#undef FUSED
#undef IN_PLACE
