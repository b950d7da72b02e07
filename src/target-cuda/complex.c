/* Complex numbers. CUDA's C++ has none that kernels can use without further headers, so the text brings a class, and of the functions those that are called.
 *
 * A quotient that came out as NaNs is looked at again for infinities, as in C (annex G); a product is plain but inside of functions.
 * Those compute in double for either precision, which makes single ones right to the last bit or the one before it; names are hlo_ and C's name without c and f
 * (csqrtf is hlo_sqrt). Formulas: W. Kahan, "Branch cuts for complex elementary functions", 1987. */
#include "target-cuda/part.h"
#include "target-cuda/solver.h"

#include <string.h>

static const char class_text[] =
    "\n/* Complex numbers, with C's operators. */\n"
    "template <typename R> struct __align__(2 * sizeof(R)) hlo_complex {\n"
    "    R re, im;\n"
    "    hlo_complex() = default;\n"
    "    __device__ constexpr hlo_complex(R re, R im = 0) : re(re), im(im) {}\n"
    "    template <typename S> __device__ explicit hlo_complex(const hlo_complex<S> &z) : re((R)z.re), im((R)z.im) {}\n"
    "    __device__ hlo_complex operator-() const { return hlo_complex(-re, -im); }\n"
    "    friend __device__ hlo_complex operator+(hlo_complex a, hlo_complex b) { return hlo_complex(a.re + b.re, a.im + b.im); }\n"
    "    friend __device__ hlo_complex operator-(hlo_complex a, hlo_complex b) { return hlo_complex(a.re - b.re, a.im - b.im); }\n"
    "    friend __device__ bool operator==(hlo_complex a, hlo_complex b) { return a.re == b.re && a.im == b.im; }\n"
    "    friend __device__ bool operator!=(hlo_complex a, hlo_complex b) { return a.re != b.re || a.im != b.im; }\n"
    "    friend __device__ hlo_complex operator*(hlo_complex a, hlo_complex b)\n"
    "    {\n"
    "        return hlo_complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);\n"
    "    }\n"
    "    friend __device__ hlo_complex operator/(hlo_complex a, hlo_complex b)\n"
    "    {\n"
    "        // by the larger part of b, so that nothing overflows on the way\n"
    "        const bool wide = fabs(b.re) >= fabs(b.im);\n"
    "        const R q = wide ? b.im / b.re : b.re / b.im, d = wide ? b.re + b.im * q : b.re * q + b.im;\n"
    "        const hlo_complex z((wide ? a.re + a.im * q : a.re * q + a.im) / d, (wide ? a.im - a.re * q : a.im * q - a.re) / d);\n"
    "        return z.re == z.re || z.im == z.im ? z : special_quotient(a, b, z);\n"
    "    }\n"
    "    __device__ hlo_complex &operator+=(hlo_complex b) { return *this = *this + b; }\n"
    "    __device__ hlo_complex &operator-=(hlo_complex b) { return *this = *this - b; }\n"
    "    __device__ hlo_complex &operator*=(hlo_complex b) { return *this = *this * b; }\n"
    "    __device__ hlo_complex &operator/=(hlo_complex b) { return *this = *this / b; }\n"
    "\n"
    "    static __device__ bool infinite(R x) { return x - x != 0 && x == x; }\n"
    "    // 1 for an infinity, 0 for the rest, with the sign\n"
    "    static __device__ R boxed(R x) { return copysign(infinite(x) ? (R)1 : (R)0, x); }\n"
    "    // C's, which functions want\n"
    "    static __device__ hlo_complex repaired_product(hlo_complex a, hlo_complex b)\n"
    "    {\n"
    "        const hlo_complex z = a * b;\n"
    "        const bool left = infinite(a.re) || infinite(a.im), right = infinite(b.re) || infinite(b.im);\n"
    "        const bool over = infinite(a.re * b.re) || infinite(a.im * b.im) || infinite(a.re * b.im) || infinite(a.im * b.re);\n"
    "        if (z.re == z.re || z.im == z.im || (!left && !right && !over))\n"
    "            return z;\n"
    "        if (left)\n"
    "            a = hlo_complex(boxed(a.re), boxed(a.im));\n"
    "        if (right)\n"
    "            b = hlo_complex(boxed(b.re), boxed(b.im));\n"
    "        a = hlo_complex(a.re == a.re ? a.re : copysign((R)0, a.re), a.im == a.im ? a.im : copysign((R)0, a.im));\n"
    "        b = hlo_complex(b.re == b.re ? b.re : copysign((R)0, b.re), b.im == b.im ? b.im : copysign((R)0, b.im));\n"
    "        const R inf = __builtin_inff();\n"
    "        return hlo_complex(inf * (a.re * b.re - a.im * b.im), inf * (a.re * b.im + a.im * b.re));\n"
    "    }\n"
    "    static __device__ hlo_complex special_quotient(hlo_complex a, hlo_complex b, hlo_complex z)\n"
    "    {\n"
    "        const R inf = __builtin_inff();\n"
    "        if (b.re == 0 && b.im == 0 && (a.re == a.re || a.im == a.im))\n"
    "            return hlo_complex(copysign(inf, b.re) * a.re, copysign(inf, b.re) * a.im);\n"
    "        if ((infinite(a.re) || infinite(a.im)) && b.re - b.re == 0 && b.im - b.im == 0) {\n"
    "            a = hlo_complex(boxed(a.re), boxed(a.im));\n"
    "            return hlo_complex(inf * (a.re * b.re + a.im * b.im), inf * (a.im * b.re - a.re * b.im));\n"
    "        }\n"
    "        if ((infinite(b.re) || infinite(b.im)) && a.re - a.re == 0 && a.im - a.im == 0) {\n"
    "            b = hlo_complex(boxed(b.re), boxed(b.im));\n"
    "            return hlo_complex(0 * (a.re * b.re + a.im * b.im), 0 * (a.im * b.re - a.re * b.im));\n"
    "        }\n"
    "        return z;\n"
    "    }\n"
    "};\n"
    "typedef hlo_complex<float>  hlo_c64;\n"
    "typedef hlo_complex<double> hlo_c128;\n"
    "\n"
    "template <typename R> static __device__ constexpr hlo_complex<R> hlo_make(R re, R im)\n"
    "{\n"
    "    return hlo_complex<R>(re, im);\n"
    "}\n"
    "\n"
    "template <typename R> static __device__ inline hlo_complex<R> __shfl_xor_sync(unsigned mask, hlo_complex<R> z, int by)\n"
    "{\n"
    "    return hlo_complex<R>(__shfl_xor_sync(mask, z.re, by), __shfl_xor_sync(mask, z.im, by));\n"
    "}\n"
    "template <typename R> static __device__ inline hlo_complex<R> __shfl_up_sync(unsigned mask, hlo_complex<R> z, unsigned by, int width = 32)\n"
    "{\n"
    "    return hlo_complex<R>(__shfl_up_sync(mask, z.re, by, width), __shfl_up_sync(mask, z.im, by, width));\n"
    "}\n"
    "template <typename R> static __device__ inline hlo_complex<R> __shfl_sync(unsigned mask, hlo_complex<R> z, int from, int width = 32)\n"
    "{\n"
    "    return hlo_complex<R>(__shfl_sync(mask, z.re, from, width), __shfl_sync(mask, z.im, from, width));\n"
    "}\n";

/* a and b are the parts of z as doubles; OF(re, im) is a number of z's type. */
#define OF(re, im) "hlo_complex<R>((R)(" re "), (R)(" im "))"
#define NAME(x) x, "hlo_" x
static const struct ComplexFunction {
    const char *name;  /* C's, without c and f */
    const char *called;
    const char *needs[2];
    const char *text;  /* of the function; NULL: body is that of a function of one number */
    const char *body;
} functions[] = {
    { NAME("abs"), { NULL }, "template <typename R> static __device__ R hlo_abs(hlo_complex<R> z)\n{\n    return (R)hypot((double)z.re, (double)z.im);\n}\n", NULL },
    { NAME("sqrt"), { NULL }, NULL,
      "    const double inf = __builtin_inf(), zero = copysign(0.0, b);\n"
      "    if (a == 0 && b == 0)\n        return " OF("0", "b") ";\n"
      "    if (b == inf || b == -inf)\n        return " OF("inf", "b") ";\n"
      "    if (a == inf)\n        return " OF("a", "b == b ? zero : b") ";\n"
      "    if (a == -inf)\n        return " OF("b == b ? 0 : b", "copysign(inf, b)") ";\n"
      "    const bool   large = fabs(a) > 1e300 || fabs(b) > 1e300, small = fabs(a) < 1e-290 && fabs(b) < 1e-290;\n"
      "    const double by = large ? 0x1p-4 : small ? 0x1p+200 : 1, back = large ? 4 : small ? 0x1p-100 : 1;\n"
      "    const double x = a * by, y = b * by, t = sqrt(0.5 * (fabs(x) + hypot(x, y))), u = fabs(y) / (2 * t) * back;\n"
      "    return a >= 0 ? " OF("t * back", "copysign(u, b)") " : " OF("u", "copysign(t * back, b)") ";\n" },
    { NAME("exp"), { NULL }, NULL,
      "    const double inf = __builtin_inf();\n"
      "    if (b == 0)\n        return " OF("exp(a)", "b") ";\n"
      "    if (a == -inf)\n        return b - b == 0 ? " OF("0 * cos(b)", "0 * sin(b)") " : " OF("0", "copysign(0.0, b)") ";\n"
      "    if (a == inf && b - b != 0)\n        return " OF("a", "b - b") ";\n"
      "    const double half = exp(a / 2); // twice, since e^a may be too large for what the result is not\n"
      "    return " OF("half * cos(b) * half", "half * sin(b) * half") ";\n" },
    { NAME("log"), { NULL }, NULL,
      "    const double x = fmax(fabs(a), fabs(b)), y = fmin(fabs(a), fabs(b)), at = atan2(b, a);\n"
      "    if (!(x > 0.5 && x < 2) || a != a || b != b) {\n"
      "        if (x - x == 0 && (x > 1e300 || x < 1e-300) && x > 0) // the modulus could overflow or lose digits\n"
      "            return " OF("log(x) + 0.5 * log1p(y / x * (y / x))", "at") ";\n"
      "        return " OF("log(hypot(a, b))", "at") ";\n"
      "    }\n"
      "    const double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y); // |z|^2 - 1 without cancellation: the rounded squares, then their errors\n"
      "    const double d = xx - 1 + yy + (fma(x, x, -xx) + fma(y, y, -yy));\n"
      "    return " OF("0.5 * log1p(d)", "at") ";\n" },
    { NAME("sinh"), { NULL }, NULL,
      "    if (b == 0)\n        return " OF("sinh(a)", "b") ";\n"
      "    if (a == 0)\n        return " OF("b - b == 0 ? a * cos(b) : a", "sin(b)") ";\n"
      "    if (a - a != 0 && a == a && b - b != 0)\n        return " OF("fabs(a)", "b - b") ";\n"
      "    if (fabs(a) > 700) {\n"
      "        const double half = exp(fabs(a) / 2) / 2;\n"
      "        return " OF("copysign(half, a) * cos(b) * half * 2", "half * sin(b) * half * 2") ";\n"
      "    }\n"
      "    return " OF("sinh(a) * cos(b)", "cosh(a) * sin(b)") ";\n" },
    { NAME("cosh"), { NULL }, NULL,
      "    if (b == 0)\n        return " OF("cosh(a)", "a == a ? copysign(0.0, a) * b : b") ";\n"
      "    if (a == 0)\n        return " OF("cos(b)", "b - b == 0 ? a * sin(b) : a") ";\n"
      "    if (a - a != 0 && a == a && b - b != 0)\n        return " OF("fabs(a)", "b - b") ";\n"
      "    if (fabs(a) > 700) {\n"
      "        const double half = exp(fabs(a) / 2) / 2;\n"
      "        return " OF("half * cos(b) * half * 2", "copysign(half, a) * sin(b) * half * 2") ";\n"
      "    }\n"
      "    return " OF("cosh(a) * cos(b)", "sinh(a) * sin(b)") ";\n" },
    { NAME("tanh"), { NULL }, NULL,
      "    if (a - a != 0 || b - b != 0) {\n"
      "        if (a - a != 0 && a == a)\n            return " OF("copysign(1.0, a)", "b - b == 0 ? copysign(0.0, sin(b) * cos(b)) : copysign(0.0, b)") ";\n"
      "        return b == 0 ? " OF("a", "b") " : " OF("a == 0 ? a : a - a + (b - b)", "a - a + (b - b)") ";\n"
      "    }\n"
      "    if (fabs(a) > 22)\n        return " OF("copysign(1.0, a)", "4 * sin(b) * cos(b) * exp(-2 * fabs(a))") ";\n"
      "    const double s = sinh(a), c = cosh(a), cb = cos(b), d = s * s + cb * cb;\n"
      "    return " OF("s * c / d", "sin(b) * cb / d") ";\n" },
    { NAME("sin"), { "sinh" }, NULL,
      "    const hlo_c128 w = hlo_sinh(hlo_c128(-b, a)); // sinh(iz) = i sin z\n    return " OF("w.im", "a - a == 0 ? -w.re : fabs(w.re)") ";\n" },
    { NAME("cos"), { "cosh" }, NULL, "    return hlo_complex<R>(hlo_cosh(hlo_c128(-b, a)));\n" },
    { NAME("tan"), { "tanh" }, NULL, "    const hlo_c128 w = hlo_tanh(hlo_c128(-b, a));\n    return " OF("w.im", "-w.re") ";\n" },
    { NAME("asin"), { "sqrt", "log" }, NULL,
      "    const double large = 1e150;\n"
      "    if (fabs(a) > large || fabs(b) > large) { // there asin z = (atan(a / |b|), log |2z|)\n"
      "        const hlo_c128 w = hlo_log(hlo_c128(fabs(a), fabs(b)));\n"
      "        return " OF("atan2(a, fabs(b))", "copysign(w.re + 0.69314718055994530942, b)") ";\n"
      "    }\n"
      "    const hlo_c128 p = hlo_sqrt(hlo_c128(1 - a, -b)), q = hlo_sqrt(hlo_c128(1 + a, b));\n"
      "    return " OF("a == 0 ? a : atan2(a, p.re * q.re - p.im * q.im)", "asinh(p.re * q.im - p.im * q.re)") ";\n" },
    { NAME("acos"), { "sqrt", "log" }, NULL,
      "    const double large = 1e150;\n"
      "    if (fabs(a) > large || fabs(b) > large) {\n"
      "        const hlo_c128 w = hlo_log(hlo_c128(fabs(a), fabs(b)));\n"
      "        return " OF("atan2(fabs(b), a)", "copysign(w.re + 0.69314718055994530942, -b)") ";\n"
      "    }\n"
      "    const hlo_c128 p = hlo_sqrt(hlo_c128(1 - a, -b)), q = hlo_sqrt(hlo_c128(1 + a, b));\n"
      "    return " OF("a == 0 ? 1.57079632679489661923 : 2 * atan2(p.re, q.re)", "asinh(q.re * p.im - q.im * p.re)") ";\n" },
    { NAME("asinh"), { "asin" }, NULL, "    const hlo_c128 w = hlo_asin(hlo_c128(-b, a)); // asin(iz) = i asinh z\n    return " OF("w.im", "-w.re") ";\n" },
    { NAME("acosh"), { "acos" }, NULL, // +-i acos z, whichever has a real part that is no less than 0
      "    const hlo_c128 w = hlo_acos(hlo_c128(a, b));\n    return " OF("fabs(w.im)", "copysign(w.re, b)") ";\n" },
    { NAME("atanh"), { NULL }, NULL,
      "    const double large = 1e150, half_pi = 1.57079632679489661923;\n"
      "    if (fabs(a) > large || fabs(b) > large) {\n"
      "        const double m = fmax(fabs(a), fabs(b)), x = a / m, y = b / m;\n"
      "        return " OF("a - a != 0 && a == a ? copysign(0.0, a) : b - b != 0 && b == b ? copysign(0.0, a) : x / (x * x + y * y) / m",
                           "b == b && (a == a || b - b != 0) ? copysign(half_pi, b) : a + b") ";\n"
      "    }\n"
      "    const double d = 1 - fabs(a);\n"
      "    if (d == 0 && fabs(b) < 1e-150) // b^2 would be 0\n"
      "        return " OF("copysign(0.5 * (0.69314718055994530942 - log(fabs(b))), a)", "b == 0 ? b : copysign(half_pi / 2, b)") ";\n"
      "    return " OF("a == 0 ? a : copysign(log1p(4 * fabs(a) / (d * d + b * b)) / 4, a)",
                       "atan2(2 * b, (1 - a) * (1 + a) - b * b) / 2") ";\n" },
    { NAME("sign"), { "abs" }, NULL, "    const R m = hlo_abs(z);\n    (void)a, (void)b;\n    return m == 0 ? z : hlo_complex<R>(z.re / m, z.im / m);\n" },
    { NAME("exp2"), { "exp" }, NULL, "    (void)a, (void)b;\n    return hlo_exp(hlo_complex<R>(z.re * (R)0.6931471805599453094, z.im * (R)0.6931471805599453094));\n" },
    { NAME("log2"), { "log" }, NULL, "    const hlo_c128 w = hlo_log(hlo_c128(a, b));\n    return " OF("w.re / 0.6931471805599453094", "w.im / 0.6931471805599453094") ";\n" },
    { NAME("expm1"), { NULL }, NULL,
      "    const double s = sin(b / 2);\n    return " OF("expm1(a) * cos(b) - 2 * s * s", "b == 0 ? b : exp(a) * sin(b)") ";\n" },
    { NAME("log1p"), { NULL }, NULL,
      "    if (a != a || b != b)\n        return " OF("a + b", "a + b") ";\n"
      "    const double x = fabs(a + 1), y = fabs(b), m = x >= y ? x : y, n = x >= y ? y : x, t = x >= y && a + 1 > 0 ? a : m - 1, q = m == 0 ? 0 : n / m;\n"
      "    return " OF("log1p(t) + log1p(q * q) / 2", "atan2(b, a + 1)") ";\n" },
    { NAME("pow"), { "exp", "log" },
      "template <typename R> static __device__ hlo_complex<R> hlo_pow(hlo_complex<R> x, hlo_complex<R> y)\n{\n    const R inf = __builtin_inf();\n"
      "    if (x == hlo_complex<R>(1) || y == hlo_complex<R>(0))\n        return hlo_complex<R>(1);\n"
      "    if (x == hlo_complex<R>(0) && y.im == 0 && y.re > 0)\n        return hlo_complex<R>(0);\n"
      "    if (y.im == 0 && (x.re == inf || x.re == -inf || x.im == inf || x.im == -inf))\n        return hlo_complex<R>(y.re > 0 ? inf : 0);\n"
      "    return hlo_complex<R>(hlo_exp(hlo_c128::repaired_product(hlo_c128(y), hlo_log(hlo_c128(x)))));\n}\n",
      NULL },
    { NAME("atan2"), { "log", "sqrt" },
      "template <typename R> static __device__ hlo_complex<R> hlo_atan2(hlo_complex<R> y, hlo_complex<R> x)\n{\n"
      "    const hlo_c128 u(y), v(x), w = hlo_log(hlo_c128(v.re - u.im, v.im + u.re) / hlo_sqrt(hlo_c128::repaired_product(v, v) + hlo_c128::repaired_product(u, u))); // atan2 = -i w\n"
      "    return " OF("w.im", "-w.re") ";\n}\n",
      NULL },
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

/* The row that fn is: csqrtf, csqrt, sqrt_c64; -1: none. */
static int function_of(const char *fn)
{
    size_t n = strlen(fn);
    bool   single = n > 4 && strcmp(fn + n - 4, "_c64") == 0, helper = single || (n > 5 && strcmp(fn + n - 5, "_c128") == 0);
    size_t from = helper ? 0 : 1, m = helper ? n - (single ? 4 : 5) : n - 1; /* where the row's name should be */
    for (int k = 0; k < N_FUNCTIONS; k++) {
        size_t own = strlen(functions[k].name);
        bool   f = !helper && m == own + 1 && fn[n - 1] == 'f';
        if ((own == m || f) && strncmp(fn + from, functions[k].name, own) == 0)
            return k;
    }
    return -1;
}

const char *cuda_complex_function(const char *fn)
{
    int k = strcmp(fn, "__builtin_complex") == 0 ? -1 : function_of(fn);
    return k < 0 ? "hlo_make" : functions[k].called;
}

/* ---- what is used ---- */

typedef struct Uses {
    bool any, called[N_FUNCTIONS];
} Uses;

static void see_expr(void *cookie, const KExpr *x)
{
    Uses *u = cookie;
    u->any |= type_is_complex(x->type) || (x->array && type_is_complex(x->array->type));
    if (x->kind != KX_CALL || !(type_is_complex(x->type) || (x->n > 0 && type_is_complex(x->arg[0]->type))))
        return;
    int k = function_of(x->fn);
    if (k >= 0)
        u->called[k] = true;
}

static void see_stmt(void *cookie, const KStmt *s)
{
    if (s->array && type_is_complex(s->array->type))
        ((Uses *)cookie)->any = true;
}

static void put_function(Buf *b, bool *done, int k)
{
    const struct ComplexFunction *f = &functions[k];
    if (done[k])
        return;
    done[k] = true;
    for (int j = 0; j < N_FUNCTIONS; j++)
        if ((f->needs[0] && strcmp(f->needs[0], functions[j].name) == 0) || (f->needs[1] && strcmp(f->needs[1], functions[j].name) == 0))
            put_function(b, done, j);
    buf_putc(b, '\n');
    if (f->text)
        buf_puts(b, f->text);
    else
        buf_printf(b, "template <typename R> static __device__ hlo_complex<R> %s(hlo_complex<R> z)\n{\n    const double a = z.re, b = z.im;\n%s}\n", f->called, f->body);
}

void cuda_complex_prelude(Buf *b, const Program *p)
{
    Uses     u = { 0 };
    KVisitor v = { see_expr, see_stmt, &u };
    bool     done[N_FUNCTIONS] = { false };
    for (int32_t f = 0; f < p->n_functions; f++)
        kernel_visit(p->functions[f].kernel->body, &v);
    for (int32_t k = 0; k < p->n_calls; k++)
        u.any |= p->calls[k]->routine ? type_is_complex(p->calls[k]->inst->shape->type) : !cuda_needs_solver(p->calls[k]) && type_is_complex(p->calls[k]->lapack.type);
    for (int32_t k = 0; k < p->n_calls; k++)
        if (library_is_lapack(p->calls[k]) && p->calls[k]->lapack.id == LAPACK_GEES && type_is_complex(p->calls[k]->lapack.type))
            u.called[function_of("csqrt")] = true;
    if (u.any)
        buf_puts(b, class_text);
    for (int k = 0; k < N_FUNCTIONS; k++)
        if (u.called[k])
            put_function(b, done, k);
}
