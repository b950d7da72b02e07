/* As much of the toolkit's mma.h as emitted text uses: products of 16 by 16 by 16 halves that a warp does together, summed in f32. The lanes hold what the documentation of
 * mma.m16n8k16 says (PTX ISA, "Matrix Fragments for mma.m16n8k16"), a fragment of B or of sums being two of those beside each other. Programs may count on no such thing:
 * they may do the same to all elements of a fragment. All lanes of a warp must call; that orders no memory, as on a device. */
#ifndef CUDASIM_MMA_H
#define CUDASIM_MMA_H

#include <cuda_runtime.h>

struct __half {
    unsigned short bits;
    operator float() const { return cudasim_half_value(bits); }
};
struct __nv_bfloat16 {
    unsigned short bits;
    operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

/* Where element e of a lane lies. */
struct cudasim_place {
    int row, col;
};
template <typename Use> static inline cudasim_place cudasim_place_of(int lane, int e);
template <> inline cudasim_place cudasim_place_of<matrix_a>(int lane, int e)
{
    return { lane / 4 + e / 2 % 2 * 8, lane % 4 * 2 + e % 2 + e / 4 * 8 };
}
template <> inline cudasim_place cudasim_place_of<matrix_b>(int lane, int e)
{
    return { lane % 4 * 2 + e % 2 + e / 2 % 2 * 8, lane / 4 + e / 4 * 8 };
}
template <> inline cudasim_place cudasim_place_of<accumulator>(int lane, int e)
{
    return { lane / 4 + e / 2 % 2 * 8, lane % 4 * 2 + e % 2 + e / 4 * 8 };
}

template <typename Use, int m, int n, int k, typename T, typename Layout = void> struct fragment {
    static_assert(m == 16 && n == 16 && k == 16, "fragments are of 16 by 16 by 16");
    static constexpr int num_elements = 8;
    T                    x[num_elements];
};

/* What is asked of an address: 32 bytes, and 16 from row to row or from column to column. */
template <typename T> static inline void cudasim_fragment_access(const T *p, unsigned ld, int line)
{
    __ballot_sync(0xffffffffu, 1, line);
    cudasim_aligned((uintptr_t)p, 32);
    cudasim_aligned(ld * sizeof(T), 16);
}

template <typename Use, typename T, typename Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &a, const T *p, unsigned ld, int line = __builtin_LINE())
{
    static_assert(!std::is_void<Layout>::value, "sums are loaded in an order that the call says");
    cudasim_fragment_access(p, ld, line);
    for (int e = 0; e < 8; e++) {
        const cudasim_place at = cudasim_place_of<Use>((int)cudasim_lane(), e);
        a.x[e] = p[std::is_same<Layout, row_major>::value ? at.row * ld + at.col : at.col * ld + at.row];
    }
}

static inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float> &a, const float *p, unsigned ld, layout_t layout, int line = __builtin_LINE())
{
    cudasim_fragment_access(p, ld, line);
    for (int e = 0; e < 8; e++) {
        const cudasim_place at = cudasim_place_of<accumulator>((int)cudasim_lane(), e);
        a.x[e] = p[layout == mem_row_major ? at.row * ld + at.col : at.col * ld + at.row];
    }
}

static inline void store_matrix_sync(float *p, const fragment<accumulator, 16, 16, 16, float> &a, unsigned ld, layout_t layout, int line = __builtin_LINE())
{
    cudasim_fragment_access(p, ld, line);
    for (int e = 0; e < 8; e++) {
        const cudasim_place at = cudasim_place_of<accumulator>((int)cudasim_lane(), e);
        p[layout == mem_row_major ? at.row * ld + at.col : at.col * ld + at.row] = a.x[e];
    }
}

template <typename Use, typename T, typename Layout> static inline void fill_fragment(fragment<Use, 16, 16, 16, T, Layout> &a, const T &v)
{
    for (T &x : a.x)
        x = v;
}

/* Four elements of another lane, from e on. */
template <typename F> static inline void cudasim_fragment_of(float *to, const F &a, int e, unsigned lane, int line)
{
    uint64_t four;
    memcpy(&four, &a.x[e], sizeof four);
    four = cudasim_shuffle(0xffffffffu, four, lane, line);
    F other;
    memcpy(&other.x[0], &four, sizeof four);
    for (int k = 0; k < 4; k++)
        to[k] = other.x[k];
}

/* A lane has rows g and g + 8 of A from the four lanes that hold them, and the columns of B of its own sums likewise. */
template <typename T, typename LayoutA, typename LayoutB>
static inline void mma_sync(fragment<accumulator, 16, 16, 16, float> &d, const fragment<matrix_a, 16, 16, 16, T, LayoutA> &a,
                            const fragment<matrix_b, 16, 16, 16, T, LayoutB> &b, const fragment<accumulator, 16, 16, 16, float> &c, int line = __builtin_LINE())
{
    const unsigned lane = cudasim_lane();
    float          rows[2][16], cols[16][16];
    for (unsigned t = 0; t < 4; t++)
        for (int e = 0; e < 8; e += 4) {
            float v[4];
            cudasim_fragment_of(v, a, e, lane / 4 * 4 + t, line);
            for (int k = 0; k < 4; k++) {
                const cudasim_place at = cudasim_place_of<matrix_a>((int)(lane / 4 * 4 + t), e + k);
                rows[at.row / 8][at.col] = v[k];
            }
        }
    for (unsigned g = lane % 4 * 2; g < lane % 4 * 2 + 2; g++)
        for (unsigned t = 0; t < 4; t++)
            for (int e = 0; e < 8; e += 4) {
                float v[4];
                cudasim_fragment_of(v, b, e, g * 4 + t, line);
                for (int k = 0; k < 4; k++) {
                    const cudasim_place at = cudasim_place_of<matrix_b>((int)(g * 4 + t), e + k);
                    cols[at.row][at.col] = v[k];
                }
            }
    for (int e = 0; e < 8; e++) {
        const cudasim_place at = cudasim_place_of<accumulator>((int)lane, e);
        double              sum = c.x[e];
        for (int k = 0; k < 16; k++)
            sum += (double)rows[at.row / 8][k] * cols[k][at.col];
        d.x[e] = (float)sum;
    }
}

} // namespace wmma
} // namespace nvcuda

#endif
