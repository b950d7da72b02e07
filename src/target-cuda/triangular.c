/* triangular-solve: t x = b, where t is op(a), or its transpose where a stands on the right, and x and b are rows and columns exchanged then. What goes from the last row up goes down in arrays that are
 * counted from their ends. So there is one form:
 *
 *     x[r,c] = (b[r,c] - sum over s < r of t[r,s] x[s,c]) / t[r,r]
 *
 * A block does 32 columns of a matrix, panel by panel of 32 rows (16 of c128): in shared memory a warp solves for each column in turn, a lane for each row; then all threads take the products of those rows from the rows
 * below, tile by tile, or, of few columns, a row at a time. Of up to 32 rows a group of 8, 16 or 32 lanes does each column. From 2^18 multiplications on it is cuBLAS's trsm. */
#include "support/diag.h"
#include "target-cuda/routine.h"
#include "target-cuda/solver_text.h"

enum { THREADS = 256, COLUMNS = 32, LEAST = 1 << 18 };

static const char services[] =
    "\n/* t x = b: x begins as b and is in place then. conj: t is the conjugate of what is in memory; unit: nobody reads its diagonal. */\n"
    "struct hlo_system {\n"
    "    hlo_many     many;\n"
    "    hlo_matrices t, x, b;\n"
    "    int64_t      n, columns;\n"
    "    bool         unit, conj;\n"
    "};\n"
    "template <typename T> static __device__ inline T hlo_coefficient(const hlo_system &s, const T *t, int64_t r, int64_t c)\n"
    "{\n"
    "    const T v = t[r * s.t.row + c * s.t.col];\n"
    "    return s.conj ? hlo_conj(v) : v;\n"
    "}\n"
    "\n/* Up to N rows, a group of N lanes for each column. */\n"
    "template <typename T, int N> static __global__ void __launch_bounds__(256) hlo_solve_small_kernel(T *to, const T *a, const T *from, hlo_system s)\n"
    "{\n"
    "    __shared__ T found[256];\n"
    "    const int     lane = threadIdx.x % N, group = threadIdx.x / N;\n"
    "    const int64_t all = s.many.count * s.columns;\n"
    "    for (int64_t first = (int64_t)blockIdx.x * (256 / N); first < all; first += (int64_t)gridDim.x * (256 / N)) {\n"
    "        const bool     mine = first + group < all; // or else it is the last one again, which is not stored\n"
    "        const int64_t  which = mine ? first + group : all - 1, m = which / s.columns, c = which % s.columns;\n"
    "        const T *const t = a + hlo_place(s.many, s.t, m);\n"
    "        T              x = lane < s.n ? from[hlo_place(s.many, s.b, m) + lane * s.b.row + c * s.b.col] : T(0);\n"
    "        for (int k = 0; k < s.n; k++) {\n"
    "            if (lane == k) {\n"
    "                x = s.unit ? x : x / hlo_coefficient(s, t, k, k);\n"
    "                found[threadIdx.x] = x;\n"
    "            }\n"
    "            __syncwarp();\n"
    "            if (lane > k && lane < s.n)\n"
    "                x -= hlo_coefficient(s, t, lane, k) * found[group * N + k];\n"
    "        }\n"
    "        if (lane < s.n && mine)\n"
    "            to[hlo_place(s.many, s.x, m) + lane * s.x.row + c * s.x.col] = x;\n"
    "        __syncwarp();\n"
    "    }\n"
    "}\n"
    "\n/* Number e of rows by cols: neighbours of a warp are neighbours in memory. */\n"
    "[[maybe_unused]] static __device__ inline void hlo_deal(const hlo_matrices &x, int64_t e, int64_t rows, int64_t cols, int64_t *r, int64_t *c)\n"
    "{\n"
    "    const bool along = x.col * x.col <= x.row * x.row; // distances may be negative\n"
    "    *r = along ? e / cols : e % rows;\n"
    "    *c = along ? e % cols : e / rows;\n"
    "}\n"
    "\n/* A block for up to 32 columns. */\n"
    "template <typename T> static __global__ void __launch_bounds__(256) hlo_solve_kernel(T *to, const T *a, const T *from, hlo_system s)\n"
    "{\n"
    "    constexpr int P = sizeof(T) > 8 ? 16 : 32, C = 32, FEW = 8;\n"
    "    __shared__ T t[P][P + 1], x[P][C + 1];\n"
    "    const int     lane = threadIdx.x % 32;\n"
    "    const int64_t pieces = (s.columns + C - 1) / C;\n"
    "    for (int64_t block = blockIdx.x; block < s.many.count * pieces; block += gridDim.x) {\n"
    "        const int64_t  m = block / pieces, first = block % pieces * C;\n"
    "        const int      columns = s.columns - first < C ? (int)(s.columns - first) : C;\n"
    "        const T *const tm = a + hlo_place(s.many, s.t, m), *const b = from + hlo_place(s.many, s.b, m) + first * s.b.col;\n"
    "        T *const       y = to + hlo_place(s.many, s.x, m) + first * s.x.col;\n"
    "        int64_t        r, c;\n"
    "        for (int64_t e = threadIdx.x; e < s.n * columns; e += 256) {\n"
    "            hlo_deal(s.x, e, s.n, columns, &r, &c);\n"
    "            y[r * s.x.row + c * s.x.col] = b[r * s.b.row + c * s.b.col];\n"
    "        }\n"
    "        for (int64_t k = 0; k < s.n; k += P) {\n"
    "            const int w = s.n - k < P ? (int)(s.n - k) : P;\n"
    "            __syncthreads();\n"
    "            for (int e = threadIdx.x; e < P * P; e += 256) {\n"
    "                hlo_deal(s.t, e, P, P, &r, &c);\n"
    "                if (r < w && c <= r)\n"
    "                    t[r][c] = hlo_coefficient(s, tm, k + r, k + c);\n"
    "            }\n"
    "            for (int e = threadIdx.x; e < w * columns; e += 256) {\n"
    "                hlo_deal(s.x, e, w, columns, &r, &c);\n"
    "                x[r][c] = y[(k + r) * s.x.row + c * s.x.col];\n"
    "            }\n"
    "            __syncthreads();\n"
    "            for (int column = threadIdx.x / 32; column < columns; column += 8)\n"
    "                for (int p = 0; p < w; p++) {\n"
    "                    if (lane == p && !s.unit)\n"
    "                        x[p][column] = x[p][column] / t[p][p];\n"
    "                    __syncwarp();\n"
    "                    if (lane > p && lane < w)\n"
    "                        x[lane][column] -= t[lane][p] * x[p][column];\n"
    "                    __syncwarp();\n"
    "                }\n"
    "            __syncthreads();\n"
    "            for (int e = threadIdx.x; e < w * columns; e += 256) {\n"
    "                hlo_deal(s.x, e, w, columns, &r, &c);\n"
    "                y[(k + r) * s.x.row + c * s.x.col] = x[r][c];\n"
    "            }\n"
    "            if (columns <= FEW) // a row at a time\n"
    "                for (int64_t e = threadIdx.x; e < (s.n - k - w) * columns; e += 256) {\n"
    "                    r = k + w + e % (s.n - k - w);\n"
    "                    c = e / (s.n - k - w);\n"
    "                    T sum = y[r * s.x.row + c * s.x.col];\n"
    "                    for (int p = 0; p < P; p++)\n"
    "                        sum -= hlo_coefficient(s, tm, r, k + p) * x[p][c];\n"
    "                    y[r * s.x.row + c * s.x.col] = sum;\n"
    "                }\n"
    "            for (int64_t below = k + P; below < s.n && columns > FEW; below += P) {\n"
    "                const int rows = s.n - below < P ? (int)(s.n - below) : P;\n"
    "                __syncthreads();\n"
    "                for (int e = threadIdx.x; e < P * P; e += 256) {\n"
    "                    hlo_deal(s.t, e, P, P, &r, &c);\n"
    "                    if (r < rows)\n"
    "                        t[r][c] = hlo_coefficient(s, tm, below + r, k + c);\n"
    "                }\n"
    "                __syncthreads();\n"
    "                for (int e = threadIdx.x; e < rows * columns; e += 256) {\n"
    "                    hlo_deal(s.x, e, rows, columns, &r, &c);\n"
    "                    T *const at = y + (below + r) * s.x.row + c * s.x.col;\n"
    "                    T        sum = *at;\n"
    "                    #pragma unroll 4\n"
    "                    for (int p = 0; p < P; p++)\n"
    "                        sum -= t[r][p] * x[p][c];\n"
    "                    *at = sum;\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "}\n";

void triangular_services(Buf *b)
{
    buf_puts(b, services);
}

typedef struct System {
    int64_t  n, columns;
    Many     many;
    Matrices t, x, b;        /* as the one form has them */
    int64_t  t_at, x_at, b_at;
    bool     unit, conj, left;
    Matrices a_as, x_as;     /* as they lie */
} System;

static void exchange(Matrices *x)
{
    const int64_t row = x->row;
    x->row = x->col;
    x->col = row;
}

static System system_of(const Inst *i)
{
    const Shape *shapes[] = { inst_operand(i, 0)->shape, i->shape, inst_operand(i, 1)->shape };
    const int32_t rank = i->shape->rank;
    const Word    op = inst_word(i, ATTR_TRANSPOSE_A);
    const bool    left = inst_bool(i, ATTR_LEFT_SIDE), turned = (op != TRANSPOSE_NO) != !left; /* x op(a) = b is op(a)^T x^T = b^T */
    Matrices      x[3];
    System        s = { .n = shapes[0]->dims[rank - 1], .columns = i->shape->dims[rank - (left ? 1 : 2)], .unit = inst_bool(i, ATTR_UNIT_DIAGONAL), .left = left };
    s.conj = op == TRANSPOSE_ADJOINT && type_is_complex(i->shape->type);
    matrices_of(3, shapes, &s.many, x);
    s.a_as = x[0];
    s.x_as = x[1];
    if (turned)
        exchange(&x[0]);
    if (!left) {
        exchange(&x[1]);
        exchange(&x[2]);
    }
    if (inst_bool(i, ATTR_LOWER) == turned) { /* from the last row up */
        s.t_at = (s.n - 1) * (x[0].row + x[0].col);
        s.x_at = (s.n - 1) * x[1].row;
        s.b_at = (s.n - 1) * x[2].row;
        x[0].row = -x[0].row;
        x[0].col = -x[0].col;
        x[1].row = -x[1].row;
        x[2].row = -x[2].row;
    }
    s.t = x[0];
    s.x = x[1];
    s.b = x[2];
    return s;
}

/* The library's words: what a is called where x lies by columns; false: it has no word for the conjugate alone. */
typedef struct Words {
    bool        left, lower;
    const char *operation;
} Words;

static bool words_of(const Inst *i, const System *s, Words *w)
{
    const Word op = inst_word(i, ATTR_TRANSPOSE_A);
    const bool x_turned = s->x_as.row != 1, a_turned = s->a_as.row != 1; /* memory by columns is the transpose */
    const bool turned = ((op != TRANSPOSE_NO) != x_turned) != a_turned;
    *w = (Words){ s->left != x_turned, inst_bool(i, ATTR_LOWER) != a_turned, s->conj ? "CUBLAS_OP_C" : turned ? "CUBLAS_OP_T" : "CUBLAS_OP_N" };
    return turned || !s->conj;
}

bool triangular_is_for_library(const Program *p, const Inst *i)
{
    const System s = system_of(i);
    Words        w;
    return p->products && (double)s.n * (double)s.n * (double)s.columns >= LEAST && s.n <= INT32_MAX && s.columns <= INT32_MAX && s.many.count <= INT32_MAX &&
           matrices_are_dense(&s.a_as, s.n, s.n) && matrices_are_dense(&s.x_as, s.left ? s.n : s.columns, s.left ? s.columns : s.n) && words_of(i, &s, &w);
}

static void put_system(Buf *b, const System *s)
{
    buf_puts(b, "    const hlo_system system = { ");
    routine_many(b, &s->many);
    buf_puts(b, ",\n        ");
    routine_matrices(b, &s->t, s->many.rank, s->t_at);
    buf_puts(b, ", ");
    routine_matrices(b, &s->x, s->many.rank, s->x_at);
    buf_puts(b, ", ");
    routine_matrices(b, &s->b, s->many.rank, s->b_at);
    buf_printf(b, ", %lld, %lld, %s, %s };\n", (long long)s->n, (long long)s->columns, s->unit ? "true" : "false", s->conj ? "true" : "false");
}

void triangular_body(Buf *b, const Program *p, const LibraryCall *x)
{
    const char *const type = routine_type(x->inst->shape->type);
    const System      s = system_of(x->inst);
    (void)p;
    put_system(b, &s);
    if (s.n <= ROUTINE_SMALL) {
        const int64_t lanes = s.n <= 8 ? 8 : s.n <= 16 ? 16 : 32, each = THREADS / lanes;
        buf_printf(b, "    return hlo_launch(stream, %lld, %d, hlo_solve_small_kernel<%s, %lld>", (long long)routine_blocks((s.many.count * s.columns + each - 1) / each), THREADS, type,
                   (long long)lanes);
    } else {
        buf_printf(b, "    return hlo_launch(stream, %lld, %d, hlo_solve_kernel<%s>", (long long)routine_blocks(s.many.count * ((s.columns + COLUMNS - 1) / COLUMNS)), THREADS, type);
    }
    buf_printf(b, ", (%s *)r0, (const %s *)p0, (const %s *)p1, system);\n", type, type, type);
}

/* The right-hand sides as x lies; then the library works in place. */
static const char copying[] =
    "    status = status ? status : hlo_launch(stream, %lld, 256, hlo_gather_kernel<%s>, to, from, ";

void triangular_by_library(Buf *b, const LibraryCall *x)
{
    const Inst       *i = x->inst;
    const Type        t = i->shape->type;
    const System      s = system_of(i);
    const char *const type = routine_type(t), *const name = solver_type(t);
    const long long   rows = (long long)(s.left ? s.n : s.columns), cols = (long long)(s.left ? s.columns : s.n), count = (long long)s.many.count;
    Words             w;
    words_of(i, &s, &w);
    Matrices to_as = s.x_as, from_as;
    const Shape *shapes[] = { inst_operand(i, 0)->shape, i->shape, inst_operand(i, 1)->shape };
    Matrices all[3];
    Many     many;
    matrices_of(3, shapes, &many, all);
    from_as = all[2];
    buf_printf(b, "static cudaError_t %s_by_library(cudaStream_t stream, %s *to, const %s *a, const %s *from)\n{\n    const hlo_many     many = ", x->name, type, type, type);
    routine_many(b, &many);
    buf_puts(b, ";\n    const hlo_matrices x = ");
    routine_matrices(b, &to_as, many.rank, 0);
    buf_puts(b, ", b = ");
    routine_matrices(b, &from_as, many.rank, 0);
    if (count > 1) {
        buf_puts(b, ", t = ");
        routine_matrices(b, &s.a_as, many.rank, 0);
    }
    buf_printf(b, ";\n    const %s one = %s;\n"
                  "    cudaError_t        status = cudaSuccess;\n"
                  "    char              *memory = NULL;\n"
                  "    hlo_solver *const  solver = hlo_begin_solving(stream, &status);\n"
                  "    status = status ? status : hlo_is_captured(stream) ? cudaErrorNotSupported : cudaSuccess;\n",
               name, type_is_complex(t) ? "{ 1, 0 }" : "1");
    if (count > 1)
        buf_printf(b, "    status = status ? status : cudaMallocAsync((void **)&memory, %lld, stream);\n", 16 * count);
    buf_printf(b, copying, (long long)routine_blocks((count * rows * cols + 255) / 256), type);
    buf_printf(b, "many, x, b, (int64_t)%lld, (int64_t)%lld);\n", rows, cols);
    const char *const diag = s.unit ? "CUBLAS_DIAG_UNIT" : "CUBLAS_DIAG_NON_UNIT";
    const bool        turned = s.x_as.row != 1;
    if (count > 1) {
        const long long blocks = (long long)routine_blocks((count + 255) / 256);
        buf_printf(b, "    status = status ? status : hlo_launch(stream, %lld, 256, hlo_pointers_kernel<const %s>, (const %s **)memory, a, many, t);\n"
                      "    status = status ? status : hlo_launch(stream, %lld, 256, hlo_pointers_kernel<%s>, (%s **)(memory + %lld), to, many, x);\n",
                   blocks, type, type, blocks, type, type, 8 * count);
    }
    buf_printf(b, "    status = status ? status : hlo_solved(solver->cublas%ctrsm%s(solver->blas, CUBLAS_SIDE_%s, CUBLAS_FILL_MODE_%s, %s, %s, %lld, %lld, &one, ", routine_letter(t),
               count > 1 ? "Batched" : "_v2", w.left ? "LEFT" : "RIGHT", w.lower ? "LOWER" : "UPPER", w.operation, diag, turned ? cols : rows, turned ? rows : cols);
    if (count > 1)
        buf_printf(b, "(const %s *const *)memory, %lld, (%s *const *)(memory + %lld), %lld, %lld));\n", name, (long long)s.n, name, 8 * count, turned ? cols : rows, count);
    else
        buf_printf(b, "(const %s *)a, %lld, (%s *)to, %lld));\n", name, (long long)s.n, name, turned ? cols : rows);
    buf_puts(b, "    return hlo_end_solving(stream, memory, status);\n}\n");
}
