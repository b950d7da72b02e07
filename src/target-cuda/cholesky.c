/* cholesky: a = l l^H for the lower triangle. For the upper one, a = u^H u, the same arithmetic finds u with rows and columns exchanged: the triangle that is read holds the conjugate of the lower one, and so
 * does the one that is written.
 *
 * Panels of 32 columns (16 of c128), from the left. The corner on the diagonal is factored in shared memory by a warp, a lane for each row; each row below is a thread's, which solves for its part of the panel;
 * then tiles of what is right of it lose the products of those rows:
 *
 *     l[r,j] = (a[r,j] - sum over p < j of l[r,p] conj l[j,p]) / l[j,j]          a[r,c] -= sum over p of l[r,p] conj l[c,p]
 *
 * A block does that for a matrix. Of few large ones the three steps are launches for each panel, so that all blocks work on each; of small ones a group of 8, 16 or 32 lanes does one. A pivot that is negative or
 * NaN makes the whole matrix NaN. From 2^18 multiplications on it is the library's, for which a pivot of 0 is none either. */
#include "analysis/device.h"
#include "support/diag.h"
#include "target-cuda/routine.h"
#include "target-cuda/solver_text.h"

enum { THREADS = 256, LEAST_ROWS = 92 /* n^3 / 3 of 2^18 */, ONE_BLOCK = 128 };

static const char services[] =
    "\ntemplate <typename T> struct hlo_panel {\n"
    "    enum { width = sizeof(T) > 8 ? 16 : 32 };\n"
    "};\n"
    "\n/* The number e of a tile of `width` columns: neighbours of a warp are neighbours in memory. */\n"
    "[[maybe_unused]] static __device__ inline void hlo_spread(const hlo_matrices &x, int64_t e, int64_t rows, int64_t cols, int64_t *r, int64_t *c)\n"
    "{\n"
    "    const bool along = x.col <= x.row;\n"
    "    *r = along ? e / cols : e % rows;\n"
    "    *c = along ? e % cols : e / rows;\n"
    "}\n"
    "\n/* The lower triangle of n rows, a lane for each. True: it is not positive definite. */\n"
    "template <typename T, int W> static __device__ bool hlo_factor(T (*a)[W], int n, int lane)\n"
    "{\n"
    "    bool failed = false;\n"
    "    for (int j = 0; j < n; j++) {\n"
    "        const auto pivot = hlo_real_part(a[j][j]);\n"
    "        const auto root = sqrt(pivot);\n"
    "        failed |= !(pivot >= 0);\n"
    "        __syncwarp();\n"
    "        if (lane == j)\n"
    "            a[j][j] = T(root);\n"
    "        else if (lane > j && lane < n)\n"
    "            a[lane][j] = hlo_divided(a[lane][j], root);\n"
    "        __syncwarp();\n"
    "        if (lane > j && lane < n) {\n"
    "            const T f = a[lane][j];\n"
    "            for (int c = j + 1; c <= lane; c++)\n"
    "                a[lane][c] -= f * hlo_conj(a[c][j]);\n"
    "        }\n"
    "        __syncwarp();\n"
    "    }\n"
    "    return failed;\n"
    "}\n"
    "\n/* What a factor begins as: the lower triangle, zeros in the other one. */\n"
    "template <typename T> static __device__ void hlo_begin_factor(T *to, const T *from, const hlo_matrices &out, const hlo_matrices &in, int64_t n, int64_t who, int64_t of)\n"
    "{\n"
    "    for (int64_t e = who; e < n * n; e += of) {\n"
    "        int64_t r, c;\n"
    "        hlo_spread(out, e, n, n, &r, &c);\n"
    "        to[r * out.row + c * out.col] = c <= r ? from[r * in.row + c * in.col] : T(0);\n"
    "    }\n"
    "}\n"
    "\n/* And how it ends: all NaN, or zeros again. */\n"
    "template <typename T> static __device__ void hlo_end_factor(T *to, const hlo_matrices &out, int64_t n, bool failed, int64_t who, int64_t of)\n"
    "{\n"
    "    for (int64_t e = who; e < n * n; e += of) {\n"
    "        int64_t r, c;\n"
    "        hlo_spread(out, e, n, n, &r, &c);\n"
    "        if (failed || c > r)\n"
    "            to[r * out.row + c * out.col] = failed ? T(__builtin_nanf(\"\")) : T(0);\n"
    "    }\n"
    "}\n"
    "\n/* The corner of the panel from column k on; true, for the first warp: it is not positive definite. */\n"
    "template <typename T, int P> static __device__ bool hlo_factor_corner(T *a, const hlo_matrices &at, int64_t n, int64_t k, T (*corner)[P + 1])\n"
    "{\n"
    "    const int w = n - k < P ? (int)(n - k) : P;\n"
    "    bool      failed = false;\n"
    "    for (int e = threadIdx.x; e < P * P; e += blockDim.x) {\n"
    "        int64_t r, c;\n"
    "        hlo_spread(at, e, P, P, &r, &c);\n"
    "        if (r < w && c <= r)\n"
    "            corner[r][c] = a[(k + r) * at.row + (k + c) * at.col];\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x < 32)\n"
    "        failed = hlo_factor<T, P + 1>(corner, w, threadIdx.x);\n"
    "    __syncthreads();\n"
    "    for (int e = threadIdx.x; e < P * P; e += blockDim.x) {\n"
    "        int64_t r, c;\n"
    "        hlo_spread(at, e, P, P, &r, &c);\n"
    "        if (r < w && c <= r)\n"
    "            a[(k + r) * at.row + (k + c) * at.col] = corner[r][c];\n"
    "    }\n"
    "    return failed;\n"
    "}\n"
    "\n/* The rows below it, a thread for each. */\n"
    "template <typename T, int P>\n"
    "static __device__ void hlo_factor_rows(T *a, const hlo_matrices &at, int64_t n, int64_t k, const T (*corner)[P + 1], int64_t who, int64_t of)\n"
    "{\n"
    "    for (int64_t r = k + P + who; r < n; r += of) {\n"
    "        T *const row = a + r * at.row + k * at.col;\n"
    "        T        x[P];\n"
    "        asm volatile(\"\" ::: \"memory\"); // nobody keeps all of the corner from row to row\n"
    "        #pragma unroll\n"
    "        for (int j = 0; j < P; j++) {\n"
    "            T sum = row[j * at.col];\n"
    "            #pragma unroll\n"
    "            for (int p = 0; p < j; p++)\n"
    "                sum -= x[p] * hlo_conj(corner[j][p]);\n"
    "            x[j] = hlo_divided(sum, hlo_real_part(corner[j][j]));\n"
    "        }\n"
    "        #pragma unroll\n"
    "        for (int j = 0; j < P; j++)\n"
    "            row[j * at.col] = x[j];\n"
    "    }\n"
    "}\n"
    "\n/* The tiles right of it, of which a block does each of-th one. */\n"
    "template <typename T, int P>\n"
    "static __device__ void hlo_factor_rest(T *a, const hlo_matrices &at, int64_t n, int64_t k, T (*left)[P + 1], T (*right)[P + 1], int64_t who, int64_t of)\n"
    "{\n"
    "    const int64_t rows = (n - k - 1) / P; // of tiles\n"
    "    for (int64_t tile = who; tile < rows * rows; tile += of) {\n"
    "        const int64_t from_r = k + P + tile / rows * P, from_c = k + P + tile % rows * P;\n"
    "        if (from_c > from_r)\n"
    "            continue;\n"
    "        __syncthreads();\n"
    "        for (int e = threadIdx.x; e < P * P; e += blockDim.x) {\n"
    "            int64_t r, c;\n"
    "            hlo_spread(at, e, P, P, &r, &c);\n"
    "            if (from_r + r < n)\n"
    "                left[r][c] = a[(from_r + r) * at.row + (k + c) * at.col];\n"
    "            if (from_c + r < n)\n"
    "                right[r][c] = a[(from_c + r) * at.row + (k + c) * at.col];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        for (int e = threadIdx.x; e < P * P; e += blockDim.x) {\n"
    "            int64_t r, c;\n"
    "            hlo_spread(at, e, P, P, &r, &c);\n"
    "            if (from_r + r >= n || from_c + c > from_r + r)\n"
    "                continue;\n"
    "            T *const x = a + (from_r + r) * at.row + (from_c + c) * at.col;\n"
    "            T        sum = *x;\n"
    "            #pragma unroll 8\n"
    "            for (int p = 0; p < P; p++)\n"
    "                sum -= left[r][p] * hlo_conj(right[c][p]);\n"
    "            *x = sum;\n"
    "        }\n"
    "    }\n"
    "}\n";

/* By a group of N lanes each; by a block each. */
static const char small_kernel[] =
    "\n/* Matrices of up to N rows, a group of N lanes for each. */\n"
    "template <typename T, int N, int THREADS>\n"
    "static __global__ void __launch_bounds__(THREADS) hlo_factor_small_kernel(T *to, const T *from, hlo_many many, hlo_matrices out, hlo_matrices in, int n)\n"
    "{\n"
    "    __shared__ T tiles[THREADS / N][N][N + 1];\n"
    "    const int lane = threadIdx.x % N, group = threadIdx.x / N;\n"
    "    T (*const a)[N + 1] = tiles[group];\n"
    "    for (int64_t first = (int64_t)blockIdx.x * (THREADS / N); first < many.count; first += (int64_t)gridDim.x * (THREADS / N)) {\n"
    "        const bool     mine = first + group < many.count; // or else it is the last one again, which is not stored\n"
    "        const int64_t  m = mine ? first + group : many.count - 1;\n"
    "        const T *const x = from + hlo_place(many, in, m);\n"
    "        T *const       y = to + hlo_place(many, out, m);\n"
    "        for (int c = 0; c < n && lane < n; c++)\n"
    "            a[lane][c] = c <= lane ? x[lane * in.row + c * in.col] : T(0);\n"
    "        __syncwarp();\n"
    "        const bool failed = hlo_factor<T, N + 1>(a, n, lane);\n"
    "        for (int c = 0; c < n && lane < n && mine; c++)\n"
    "            y[lane * out.row + c * out.col] = failed ? T(__builtin_nanf(\"\")) : a[lane][c];\n"
    "        __syncwarp();\n"
    "    }\n"
    "}\n";

static const char block_kernel[] =
    "\n/* A block for each matrix. */\n"
    "template <typename T>\n"
    "static __global__ void __launch_bounds__(256) hlo_factor_kernel(T *to, const T *from, hlo_many many, hlo_matrices out, hlo_matrices in, int64_t n)\n"
    "{\n"
    "    constexpr int P = hlo_panel<T>::width;\n"
    "    __shared__ T left[P][P + 1], right[P][P + 1];\n"
    "    for (int64_t m = blockIdx.x; m < many.count; m += gridDim.x) {\n"
    "        T *const a = to + hlo_place(many, out, m);\n"
    "        bool     failed = false;\n"
    "        hlo_begin_factor(a, from + hlo_place(many, in, m), out, in, n, threadIdx.x, 256);\n"
    "        for (int64_t k = 0; k < n; k += P) {\n"
    "            __syncthreads();\n"
    "            failed |= hlo_factor_corner<T, P>(a, out, n, k, left);\n"
    "            hlo_factor_rows<T, P>(a, out, n, k, left, threadIdx.x, 256);\n"
    "            __syncthreads();\n"
    "            hlo_factor_rest<T, P>(a, out, n, k, left, right, 0, 1);\n"
    "        }\n"
    "        failed = __syncthreads_or(failed);\n"
    "        hlo_end_factor(a, out, n, failed, threadIdx.x, 256);\n"
    "        __syncthreads();\n"
    "    }\n"
    "}\n";

static const char edge_kernels[] =
    "\ntemplate <typename T> static __global__ void __launch_bounds__(256) hlo_begin_factor_kernel(T *to, const T *from, hlo_many many, hlo_matrices out, hlo_matrices in, int64_t n, int64_t of)\n"
    "{\n"
    "    for (int64_t block = blockIdx.x; block < many.count * of; block += gridDim.x) {\n"
    "        const int64_t m = block / of;\n"
    "        hlo_begin_factor(to + hlo_place(many, out, m), from + hlo_place(many, in, m), out, in, n, block % of * 256 + threadIdx.x, of * 256);\n"
    "    }\n"
    "}\n"
    "\ntemplate <typename T> static __global__ void __launch_bounds__(256) hlo_end_factor_kernel(T *to, hlo_many many, hlo_matrices out, int64_t n, int64_t of, const int *failed)\n"
    "{\n"
    "    for (int64_t block = blockIdx.x; block < many.count * of; block += gridDim.x)\n"
    "        hlo_end_factor(to + hlo_place(many, out, block / of), out, n, failed[block / of] != 0, block % of * 256 + threadIdx.x, of * 256);\n"
    "}\n";

static const char large_kernels[] =
    "\n/* Of large matrices each step is a launch, with `of` blocks for each matrix. */\n"
    "template <typename T> static __global__ void __launch_bounds__(256) hlo_factor_corner_kernel(T *to, hlo_many many, hlo_matrices out, int64_t n, int64_t k, int *failed)\n"
    "{\n"
    "    constexpr int P = hlo_panel<T>::width;\n"
    "    __shared__ T corner[P][P + 1];\n"
    "    for (int64_t m = blockIdx.x; m < many.count; m += gridDim.x) {\n"
    "        const bool is = hlo_factor_corner<T, P>(to + hlo_place(many, out, m), out, n, k, corner);\n"
    "        if (threadIdx.x == 0)\n"
    "            failed[m] = is || (k > 0 && failed[m]);\n"
    "        __syncthreads();\n"
    "    }\n"
    "}\n"
    "template <typename T> static __global__ void __launch_bounds__(256) hlo_factor_rows_kernel(T *to, hlo_many many, hlo_matrices out, int64_t n, int64_t k, int64_t of)\n"
    "{\n"
    "    constexpr int P = hlo_panel<T>::width;\n"
    "    __shared__ T corner[P][P + 1];\n"
    "    for (int64_t block = blockIdx.x; block < many.count * of; block += gridDim.x) {\n"
    "        T *const a = to + hlo_place(many, out, block / of);\n"
    "        for (int e = threadIdx.x; e < P * P; e += 256)\n"
    "            corner[e / P][e % P] = a[(k + e / P) * out.row + (k + e % P) * out.col];\n"
    "        __syncthreads();\n"
    "        hlo_factor_rows<T, P>(a, out, n, k, corner, block % of * 256 + threadIdx.x, of * 256);\n"
    "        __syncthreads();\n"
    "    }\n"
    "}\n"
    "template <typename T> static __global__ void __launch_bounds__(256) hlo_factor_rest_kernel(T *to, hlo_many many, hlo_matrices out, int64_t n, int64_t k, int64_t of)\n"
    "{\n"
    "    constexpr int P = hlo_panel<T>::width;\n"
    "    __shared__ T left[P][P + 1], right[P][P + 1];\n"
    "    for (int64_t block = blockIdx.x; block < many.count * of; block += gridDim.x)\n"
    "        hlo_factor_rest<T, P>(to + hlo_place(many, out, block / of), out, n, k, left, right, block % of, of);\n"
    "}\n"
    "\n/* failed: an int for each matrix. */\n"
    "template <typename T>\n"
    "static cudaError_t hlo_factor_large(cudaStream_t stream, T *to, const T *from, const hlo_many &many, const hlo_matrices &out, const hlo_matrices &in, int64_t n, int64_t most, int *failed)\n"
    "{\n"
    "    const int64_t P = hlo_panel<T>::width, count = many.count < 1 << 20 ? many.count : 1 << 20, share = (most + count - 1) / count;\n"
    "    const int64_t parts = (n * n + 2047) / 2048, all = parts < share ? parts : share;\n"
    "    cudaError_t   e = hlo_launch(stream, (unsigned)(count * all), 256, hlo_begin_factor_kernel<T>, to, from, many, out, in, n, all);\n"
    "    for (int64_t k = 0; k < n && !e; k += P) {\n"
    "        const int64_t tiles = (n - k - 1) / P, rows = (n - k - 1) / 256 + 1, row_blocks = rows < share ? rows : share;\n"
    "        const int64_t most_tiles = tiles * tiles, tile_blocks = most_tiles < share ? most_tiles : share;\n"
    "        e = hlo_launch(stream, (unsigned)count, 256, hlo_factor_corner_kernel<T>, to, many, out, n, k, failed);\n"
    "        if (tiles > 0) {\n"
    "            e = e ? e : hlo_launch(stream, (unsigned)(count * row_blocks), 256, hlo_factor_rows_kernel<T>, to, many, out, n, k, row_blocks);\n"
    "            e = e ? e : hlo_launch(stream, (unsigned)(count * tile_blocks), 256, hlo_factor_rest_kernel<T>, to, many, out, n, k, tile_blocks);\n"
    "        }\n"
    "    }\n"
    "    return e ? e : hlo_launch(stream, (unsigned)(count * all), 256, hlo_end_factor_kernel<T>, to, many, out, n, all, failed);\n"
    "}\n";

bool cholesky_is_for_library(const Program *p, const Inst *i)
{
    const Shape *s = i->shape;
    const int64_t n = s->dims[s->rank - 1];
    Many          many;
    Matrices      to;
    matrices_of(1, &s, &many, &to);
    return p->products && n >= LEAST_ROWS && n <= INT32_MAX && many.count <= INT32_MAX && matrices_are_dense(&to, n, n);
}

void cholesky_services(Buf *b, bool library)
{
    buf_puts(b, services);
    buf_puts(b, small_kernel);
    buf_puts(b, block_kernel);
    buf_puts(b, edge_kernels);
    buf_puts(b, large_kernels);
    if (library)
        buf_puts(b, "\n#ifdef HLO_CUSOLVER\n"
                    "/* Blocks for each matrix, when a launch does all of it. */\n"
                    "static int64_t hlo_factor_parts(const hlo_many &many, int64_t n)\n"
                    "{\n"
                    "    const int64_t parts = (n * n + 2047) / 2048, share = ((1 << 20) + many.count - 1) / many.count;\n"
                    "    return parts < share ? parts : share;\n"
                    "}\n"
                    "#endif\n");
}

typedef struct Factor {
    int64_t  n;
    Many     many;
    Matrices out, in;
} Factor;

/* Of an upper triangle rows are columns. */
static Factor factor_of(const Inst *i)
{
    Factor       f = { .n = i->shape->dims[i->shape->rank - 1] };
    Matrices     x[2];
    const Shape *shapes[] = { i->shape, inst_operand(i, 0)->shape };
    matrices_of(2, shapes, &f.many, x);
    for (int k = 0; k < 2 && !inst_bool(i, ATTR_LOWER); k++) {
        const int64_t row = x[k].row;
        x[k].row = x[k].col;
        x[k].col = row;
    }
    f.out = x[0];
    f.in = x[1];
    return f;
}

static void put_places(Buf *b, const Factor *f, const char *linkage)
{
    buf_printf(b, "    %sconst hlo_many     many = ", linkage);
    routine_many(b, &f->many);
    buf_printf(b, ";\n    %sconst hlo_matrices out = ", linkage);
    routine_matrices(b, &f->out, f->many.rank, 0);
    buf_puts(b, ", in = ");
    routine_matrices(b, &f->in, f->many.rank, 0);
    buf_puts(b, ";\n");
}

void cholesky_body(Buf *b, const Program *p, const LibraryCall *x)
{
    const Inst    *i = x->inst;
    const Type     t = i->shape->type;
    const Factor   f = factor_of(i);
    const int64_t  bytes = type_bytes(t);
    const char    *type = routine_type(t);
    put_places(b, &f, "");
    if (f.n <= ROUTINE_SMALL) {
        const int64_t lanes = f.n <= 8 ? 8 : f.n <= 16 ? 16 : 32, threads = lanes * lanes * bytes > 32 * 32 * 8 ? 64 : lanes * lanes * bytes > 32 * 32 * 4 || lanes * bytes > 128 ? 128 : THREADS;
        const int64_t each = threads / lanes;
        buf_printf(b, "    (void)memory;\n    return hlo_launch(stream, %lld, %lld, hlo_factor_small_kernel<%s, %lld, %lld>, (%s *)r0, (const %s *)p0, many, out, in, %lld);\n",
                   (long long)routine_blocks((f.many.count + each - 1) / each), (long long)threads, type, (long long)lanes, (long long)threads, type, type, (long long)f.n);
    } else if (f.n <= ONE_BLOCK || (double)f.many.count >= 2 * p->device->units) {
        buf_printf(b, "    (void)memory;\n    return hlo_launch(stream, %lld, %d, hlo_factor_kernel<%s>, (%s *)r0, (const %s *)p0, many, out, in, (int64_t)%lld);\n",
                   (long long)routine_blocks(f.many.count), THREADS, type, type, type, (long long)f.n);
    } else {
        buf_printf(b, "    return hlo_factor_large<%s>(stream, (%s *)r0, (const %s *)p0, many, out, in, %lld, %lld, (int *)memory);\n", type, type, type, (long long)f.n,
                   (long long)(8 * p->device->units));
    }
}

void cholesky_by_library(Buf *b, const LibraryCall *x)
{
    const Inst       *i = x->inst;
    const Type        t = i->shape->type;
    const Factor      f = factor_of(i);
    const char *const type = routine_type(t), *const name = solver_type(t), *const uplo = f.out.row == 1 ? "CUBLAS_FILL_MODE_LOWER" : "CUBLAS_FILL_MODE_UPPER";
    const char        letter = routine_letter(t);
    const long long   n = (long long)f.n, count = (long long)f.many.count, info = (count * 4 + 255) / 256 * 256;
    const bool        many = count > 1;
    buf_printf(b, "static cudaError_t %s_by_library(cudaStream_t stream, %s *to, const %s *from)\n{\n", x->name, type, type);
    put_places(b, &f, "");
    buf_puts(b, "    cudaError_t       status = cudaSuccess;\n"
                "    char             *memory = NULL;\n");
    if (!many)
        buf_puts(b, "    int               room = 0;\n");
    buf_puts(b, "    hlo_solver *const solver = hlo_begin_solving(stream, &status);\n"
                "    status = status ? status : hlo_is_captured(stream) ? cudaErrorNotSupported : cudaSuccess;\n");
    if (many)
        buf_printf(b, "    status = status ? status : cudaMallocAsync((void **)&memory, %lld, stream);\n", info + 8 * count);
    else
        buf_printf(b, "    status = status ? status : hlo_solved(solver->cusolverDn%cpotrf_bufferSize(solver->handle, %s, %lld, (%s *)to, %lld, &room));\n"
                      "    status = status ? status : cudaMallocAsync((void **)&memory, %lld + (size_t)room * sizeof(%s), stream);\n",
                   letter, uplo, n, name, n, info, name);
    buf_puts(b, "    const int64_t     parts = hlo_factor_parts(many, ");
    buf_printf(b, "%lld);\n"
                  "    status = status ? status : hlo_launch(stream, (unsigned)(many.count * parts), 256, hlo_begin_factor_kernel<%s>, to, from, many, out, in, (int64_t)%lld, parts);\n",
               n, type, n);
    if (many)
        buf_printf(b, "    status = status ? status : hlo_launch(stream, %lld, 256, hlo_pointers_kernel<%s>, (%s **)(memory + %lld), to, many, out);\n"
                      "    status = status ? status : hlo_solved(solver->cusolverDn%cpotrfBatched(solver->handle, %s, %lld, (%s **)(memory + %lld), %lld, (int *)memory, %lld));\n",
                   (long long)routine_blocks((count + 255) / 256), type, type, info, letter, uplo, n, name, info, n, count);
    else
        buf_printf(b, "    status = status ? status : hlo_solved(solver->cusolverDn%cpotrf(solver->handle, %s, %lld, (%s *)to, %lld, (%s *)(memory + %lld), room, (int *)memory));\n", letter, uplo,
                   n, name, n, name, info);
    buf_printf(b, "    status = status ? status : hlo_launch(stream, (unsigned)(many.count * parts), 256, hlo_end_factor_kernel<%s>, to, many, out, (int64_t)%lld, parts, (const int *)memory);\n"
                  "    return hlo_end_solving(stream, memory, status);\n}\n",
               type, n);
}
