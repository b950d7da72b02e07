/* Dots, convolutions, fft, linear algebra. Whole numbers make products and sums exact. */
#include "driver/sweep.h"

typedef struct DotRow {
    const char *x, *y, *out, *attributes;
} DotRow;

static const DotRow dots[] = {
    {"[5,7]", "[7,3]", "[5,3]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[17,33]", "[19,33]", "[17,19]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
    {"[33,17]", "[33,19]", "[17,19]{0,1}", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"[33,17]{0,1}", "[19,33]{0,1}", "[17,19]", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
    {"[37]", "[37]", "[]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"[37]", "[37,5]", "[5]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"[5,37]{0,1}", "[37]", "[5]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[3]", "[4]", "[3,4]", ""},
    {"[]", "[4,3]", "[4,3]", ""},
    {"[]", "[]", "[]", ""},
    {"[3,5,7]", "[3,7,2]", "[3,5,2]",
     "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"},
    {"[5,3,7]", "[2,7,3]{0,2,1}", "[3,5,2]",
     "lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={1}"},
    {"[2,3,4,5]", "[3,2,6,5]", "[2,3,4,6]",
     "lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={1,0}, rhs_contracting_dims={3}"},
    {"[2,3,4,5]", "[4,2,3,7]", "[5,7]", "lhs_contracting_dims={0,1,2}, rhs_contracting_dims={1,2,0}"},
    {"[3,4]", "[3,4]", "[3,4]", "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}"},
    {"[3,4]", "[3,4]", "[3]", "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}"},
    {"[5,0]", "[0,3]", "[5,3]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[0,5]", "[5,3]", "[0,3]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[1,64]", "[64,128]", "[1,128]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[64,96]", "[96,80]", "[64,80]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"[2,3,7,4]{2,0,3,1}", "[7,5,2]", "[2,3,4,5]{0,1,3,2}",
     "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={0}"},
};

/* Operand and result types that meet. */
static const Type mixes[][3] = {
    {TYPE_S8, TYPE_S8, TYPE_S32},
    {TYPE_U8, TYPE_S8, TYPE_S32},
    {TYPE_U8, TYPE_U8, TYPE_S32},
    {TYPE_BF16, TYPE_BF16, TYPE_F32},
    {TYPE_F16, TYPE_F16, TYPE_F32},
    {TYPE_BF16, TYPE_F32, TYPE_F32},
    {TYPE_F8E4M3FN, TYPE_F8E5M2, TYPE_BF16},
    {TYPE_F8E4M3FN, TYPE_F8E4M3FN, TYPE_F32},
    {TYPE_S4, TYPE_S4, TYPE_S8},
    {TYPE_BF16, TYPE_S4, TYPE_BF16},
    {TYPE_F32, TYPE_S8, TYPE_F32},
    {TYPE_S8, TYPE_S16, TYPE_S32},
    {TYPE_S32, TYPE_S32, TYPE_S64},
    {TYPE_S32, TYPE_S32, TYPE_S8},
    {TYPE_F32, TYPE_F32, TYPE_F64},
    {TYPE_F64, TYPE_F64, TYPE_F32},
    {TYPE_U4, TYPE_U8, TYPE_U32},
    {TYPE_PRED, TYPE_PRED, TYPE_S32},
    {TYPE_S8, TYPE_S8, TYPE_F32},
    {TYPE_F32, TYPE_F32, TYPE_BF16},
    {TYPE_F4E2M1FN, TYPE_F4E2M1FN, TYPE_F32},
    {TYPE_F32, TYPE_C64, TYPE_C64},
    {TYPE_PRED, TYPE_F32, TYPE_F32},
    {TYPE_S32, TYPE_F32, TYPE_F32},
    {TYPE_F16, TYPE_BF16, TYPE_F32},
    {TYPE_F8E8M0FNU, TYPE_F8E4M3FN, TYPE_BF16},
    {TYPE_U32, TYPE_U32, TYPE_U64},
};
enum { N_MIXES = sizeof mixes / sizeof *mixes };

static void dot_case(Sweep *s, const DotRow *r, Type x, Type y, Type out)
{
    Case *c = sweep_case(s, OP_DOT);
    const char *a = case_param(c, VALUES_SMALL, "%s%s", type_name(x), r->x),
               *b = case_param(c, VALUES_SMALL, "%s%s", type_name(y), r->y);
    case_root(c, SAME_NUMBER, "%s%s dot(%s, %s)%s%s", type_name(out), r->out, a, b, *r->attributes ? ", " : "", r->attributes);
}

void sweep_dot(Sweep *s, Op op)
{
    static const Type types[] = {TYPE_F32, TYPE_BF16, TYPE_F16, TYPE_F64,  TYPE_S32,
                                 TYPE_C64, TYPE_S8,   TYPE_U64, TYPE_PRED, TYPE_C128};
    for (size_t k = 0; k < sizeof dots / sizeof *dots; k++)
        for (int j = 0; j < 10; j++)
            dot_case(s, &dots[k], types[j], types[j], types[j]);
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (type_is_array(t))
            dot_case(s, &dots[0], t, t, t);
    for (int k = 0; k < N_MIXES; k++)
        for (size_t j = 0; j < 12; j += 3)
            dot_case(s, &dots[j], mixes[k][0], mixes[k][1], mixes[k][2]);
    for (int k = 0; k < 3; k++) { /* NaN and infinities go their ways */
        static const char *const t[] = {"f32", "bf16", "f64"};
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SPECIAL, "%s[33,5]", t[k]), *y = case_param(c, VALUES_SMALL, "%s[5,37]", t[k]);
        case_root(c, SAME_NUMBER, "%s[33,37] dot(%s, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}", t[k], x, y);
    }
    static const char *const algorithms[] = {"dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6",
                                             "dot_tf32_tf32_f32", "dot_f32_f32_f32"};
    for (int k = 0; k < 5; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "f32[9,33]"), *y = case_param(c, VALUES_SMALL, "f32[33,7]");
        case_root(c, SAME_NUMBER,
                  "f32[9,7] dot(%s, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                  "operand_precision={highest,highest}, algorithm=%s",
                  x, y, algorithms[k]);
    }
}

/* Three modes, by what the ragged dimension is. */
void sweep_ragged_dot(Sweep *s, Op op)
{
    static const struct {
        const char *x, *y, *sizes, *out, *attributes;
    } r[] = {
        {"[11,5]", "[3,5,4]", "[3]", "[11,4]",
         "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"},
        {"[2,11,5]", "[3,2,5,4]", "[2,3]", "[2,11,4]",
         "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, "
         "rhs_group_dims={0}"},
        {"[11,5]", "[5,4]", "[3]", "[3,11,4]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}"},
        {"[5,3,4]", "[5,4,2]", "[3]", "[5,3,2]",
         "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"},
    };
    static const Type types[] = {TYPE_F32, TYPE_BF16, TYPE_S32, TYPE_F64, TYPE_S8};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 5; j++) {
            const char *t = type_name(types[j]);
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_SMALL, "%s%s", t, r[k].x), *y = case_param(c, VALUES_SMALL, "%s%s", t, r[k].y),
                       *g = case_param(c, VALUES_INDEX, "s32%s", r[k].sizes);
            case_refusable(c, true);
            case_root(c, SAME_NUMBER, "%s%s ragged-dot(%s, %s, %s), %s", t, r[k].out, x, y, g, r[k].attributes);
        }
}

void sweep_scaled_dot(Sweep *s, Op op)
{
    static const char *const types[][3] = {{"f8e4m3fn", "f8e8m0fnu", "f32"},
                                           {"f4e2m1fn", "f8e8m0fnu", "bf16"},
                                           {"f8e5m2", "f8e4m3fn", "bf16"},
                                           {"f32", "f32", "f32"}};
    for (int k = 0; k < 4; k++) {
        Case *c = sweep_case(s, op);
        const char *x = case_param(c, VALUES_SMALL, "%s[3,64]", types[k][0]),
                   *y = case_param(c, VALUES_SMALL, "%s[64,5]", types[k][0]);
        const char *u = case_param(c, VALUES_ABOVE, "%s[3,2]", types[k][1]),
                   *v = case_param(c, VALUES_ABOVE, "%s[2,5]", types[k][1]);
        case_refusable(c, true);
        case_units(c, 16);
        case_root(c, SAME_NORM, "%s[3,5] scaled-dot(%s, %s, %s, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                  types[k][2], x, y, u, v);
    }
}

typedef struct ConvolutionRow {
    const char *x, *y, *attributes;
} ConvolutionRow;

static const ConvolutionRow convolutions[] = {
    {"[1,4,1]", "[2,1,1]", "window={size=2 pad=1_0}, dim_labels=b0f_0io->b0f"},
    {"[2,9,3]", "[3,3,5]", "window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f"},
    {"[2,9,3]", "[3,3,5]", "window={size=3 pad=2_1 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f"},
    {"[2,9,3]", "[3,3,5]", "window={size=3 pad=-1_-2}, dim_labels=b0f_0io->b0f"},
    {"[2,8,9,4]", "[3,2,4,6]", "window={size=3x2 stride=1x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f"},
    {"[2,4,8,9]", "[6,4,3,2]", "window={size=3x2 stride=2x1 pad=1_1x0_1 rhs_dilate=2x3}, dim_labels=bf01_oi01->bf01"},
    {"[8,4,9,2]", "[4,3,6,2]", "window={size=3x2 pad=1_0x0_1 rhs_reversal=0x1}, dim_labels=0f1b_i0o1->f1b0"},
    {"[2,8,9,4]", "[3,3,1,4]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"},
    {"[2,8,9,4]", "[3,3,1,8]", "window={size=3x3 pad=1_1x1_1 stride=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=4"},
    {"[2,7,7,6]", "[3,3,3,4]", "window={size=3x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2"},
    {"[4,7,7,3]", "[3,3,3,6]", "window={size=3x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f, batch_group_count=2"},
    {"[6,5,5,1]", "[2,2,1,6]", "window={size=2x2}, dim_labels=b01f_01io->b01f, batch_group_count=6"},
    {"[5,7]", "[7,3]", "dim_labels=bf_io->bf"},
    {"[2,3,4,5,2]", "[2,2,2,2,3]", "window={size=2x2x2 pad=1_0x0_1x1_1 lhs_dilate=1x2x1}, dim_labels=b012f_012io->b012f"},
    {"[0,5,2]", "[2,2,3]", "window={size=2}, dim_labels=b0f_0io->b0f"},
    {"[2,5,0]", "[2,0,3]", "window={size=2}, dim_labels=b0f_0io->b0f"},
    {"[2,3,2]", "[7,2,3]", "window={size=7}, dim_labels=b0f_0io->b0f"},
    {"[1,1,1,33]{0,1,2,3}", "[1,1,33,17]{2,3,0,1}", "window={size=1x1}, dim_labels=b01f_01io->b01f"},
    {"[2,16,16,3]", "[7,7,3,8]", "window={size=7x7 stride=2x2 pad=3_3x3_3}, dim_labels=b01f_01io->b01f"},
    {"[3,9,2]", "[5,2,4]", "window={size=5 pad=4_4 lhs_dilate=3}, dim_labels=b0f_0io->b0f"},
};

static void convolution_case(Sweep *s, const ConvolutionRow *r, Type t)
{
    Case *c = sweep_case(s, OP_CONVOLUTION);
    const char *a = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r->x),
               *b = case_param(c, VALUES_SMALL, "%s%s", type_name(t), r->y);
    case_root(c, SAME_NUMBER, "convolution(%s, %s), %s", a, b, r->attributes);
}

void sweep_convolution(Sweep *s, Op op)
{
    static const Type types[] = {TYPE_F32, TYPE_BF16, TYPE_F16, TYPE_F64, TYPE_S32, TYPE_C64, TYPE_S8, TYPE_F8E4M3FN};
    for (size_t k = 0; k < sizeof convolutions / sizeof *convolutions; k++)
        for (int j = 0; j < 8; j++)
            convolution_case(s, &convolutions[k], types[j]);
    for (Type t = 0; t < TYPE_COUNT; t++)
        if (type_is_array(t))
            convolution_case(s, &convolutions[1], t);
    for (int k = 0; k < N_MIXES; k++) {
        Case *c = sweep_case(s, op);
        const char *a = case_param(c, VALUES_SMALL, "%s[2,9,3]", type_name(mixes[k][0])),
                   *b = case_param(c, VALUES_SMALL, "%s[3,3,5]", type_name(mixes[k][1]));
        case_root(c, SAME_NUMBER, "%s[2,5,5] convolution(%s, %s), %s", type_name(mixes[k][2]), a, b, convolutions[1].attributes);
    }
    for (int k = 0; k < 4; k++) { /* integers that leave their range saturate */
        static const char *const t[] = {"s8", "u8", "s16", "s32"};
        Case *c = sweep_case(s, op);
        const char *a = case_param(c, VALUES_SHUFFLE, "%s[3,9,1]", t[k]), *b = case_param(c, VALUES_SHUFFLE, "%s[1,1,5]", t[k]);
        case_root(c, SAME_NUMBER, "%s[3,9,5] convolution(%s, %s), window={size=1}, dim_labels=b0f_0io->b0f", t[k], a, b);
    }
}

void sweep_fft(Sweep *s, Op op)
{
    static const struct {
        const char *real, *half, *length;
    } r[] = {
        {"[3,8]", "[3,5]", "8"},
        {"[2,13]", "[2,7]", "13"},
        {"[1]", "[1]", "1"},
        {"[2]", "[2]", "2"},
        {"[5,30]{0,1}", "[5,16]", "30"},
        {"[2,4,6]", "[2,4,4]", "4,6"},
        {"[7,5]{0,1}", "[7,3]", "7,5"},
        {"[2,3,4,5]", "[2,3,4,3]", "3,4,5"},
        {"[64]", "[33]", "64"},
        {"[101]", "[51]", "101"},
        {"[0,4]", "[0,3]", "4"},
    };
    static const char *const kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
        for (int j = 0; j < 8; j++) {
            const char *complex = j % 2 ? "c128" : "c64", *real = j % 2 ? "f64" : "f32", *kind = kinds[j / 2];
            const char *from = j / 2 == 2 ? real : complex, *to = j / 2 == 3 ? real : complex;
            Case *c = sweep_case(s, op);
            const char *x = case_param(c, VALUES_REAL, "%s%s", from, j / 2 == 3 ? r[k].half : r[k].real);
            case_units(c, 32);
            case_root(c, SAME_NORM, "%s%s fft(%s), fft_type=%s, fft_length={%s}", to,
                      j / 2 == 2             ? r[k].half
                      : j / 2 == 3 && k == 4 ? "[5,30]"
                                             : r[k].real,
                      x, kind, r[k].length);
        }
}

/* a = m mH + 4 n is positive definite. */
static const char *definite(Case *c, const char *t, int n, int batch)
{
    const char *m = case_param(c, VALUES_REAL, "%s[%d,%d,%d]", t, batch, n, n);
    const char *re = t[0] == 'c' ? case_let(c, "real(%s)", m) : m, *im = t[0] == 'c' ? case_let(c, "imag(%s)", m) : NULL;
    const char *minus = im ? case_let(c, "negate(%s)", im) : NULL, *conj = im ? case_let(c, "complex(%s, %s)", re, minus) : m;
    const char *p = case_let(
        c, "%s[%d,%d,%d] dot(%s, %s), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}",
        t, batch, n, n, m, conj);
    const char *i = case_let(c, "s32[%d,%d,%d] iota(), iota_dimension=1", batch, n, n),
               *j = case_let(c, "s32[%d,%d,%d] iota(), iota_dimension=2", batch, n, n);
    const char *eq = case_let(c, "compare(%s, %s), direction=EQ", i, j),
               *four = case_let(c, "%s[] constant(%s)", t, t[0] == 'c' ? "(4, 0)" : "4");
    const char *fours = case_let(c, "%s[%d,%d,%d] broadcast(%s), dimensions={}", t, batch, n, n, four),
               *zeros = case_let(c, "subtract(%s, %s)", fours, fours);
    const char *diagonal = case_let(c, "select(%s, %s, %s)", eq, fours, zeros);
    return case_let(c, "add(%s, %s)", p, diagonal);
}

static const char *const solvable[] = {"f32", "f64", "c64", "c128", "bf16", "f16"};
enum { N_SOLVABLE = sizeof solvable / sizeof *solvable };

void sweep_cholesky(Sweep *s, Op op)
{
    static const int sizes[] = {1, 2, 5, 17, 33, 0};
    for (int k = 0; k < 6 * N_SOLVABLE * 2; k++) {
        Case *c = sweep_case(s, op);
        const char *a = definite(c, solvable[k / 2 % N_SOLVABLE], sizes[k / 2 / N_SOLVABLE], 1 + k % 3);
        case_units(c, 64);
        case_root(c, SAME_NORM, "cholesky(%s)%s", a, k % 2 ? ", lower=true" : "");
    }
    Case *c = sweep_case(s, op); /* not definite: all NaN */
    const char *a = case_param(c, VALUES_REAL, "f32[3,4,4]"), *b = case_let(c, "negate(%s)", a), *d = case_let(c, "abs(%s)", b),
               *e = case_let(c, "negate(%s)", d);
    case_root(c, SAME_NUMBER, "cholesky(%s), lower=true", e);
}

void sweep_triangular_solve(Sweep *s, Op op)
{
    static const int sizes[] = {1, 2, 5, 19, 0};
    static const char *const turns[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    for (int k = 0; k < 5 * N_SOLVABLE * 24; k++) {
        const char *t = solvable[k / 24 % N_SOLVABLE];
        int n = sizes[k / 24 / N_SOLVABLE], left = k & 1;
        Case *c = sweep_case(s, op);
        const char *a = definite(c, t, n, 2),
                   *b = left ? case_param(c, VALUES_REAL, "%s[2,%d,3]", t, n) : case_param(c, VALUES_REAL, "%s[2,3,%d]", t, n);
        bool unit = k & 4;
        if (unit) { /* small numbers off the diagonal, or the solution grows */
            const char *tenth = case_let(c, "%s[] constant(%s)", t, t[0] == 'c' ? "(0.03, 0)" : "0.03"),
                       *all = case_let(c, "%s[2,%d,%d] broadcast(%s), dimensions={}", t, n, n, tenth);
            a = case_let(c, "multiply(%s, %s)", a, all);
        }
        case_units(c, 256);
        case_root(c, SAME_NORM, "triangular-solve(%s, %s), left_side=%s, lower=%s, unit_diagonal=%s, transpose_a=%s", a, b,
                  left ? "true" : "false", k & 2 ? "true" : "false", unit ? "true" : "false", turns[k / 8 % 3]);
    }
}
