/* solve_body.h - triangular systems of one type, for solve.c: R the type, N(x) names of its own, PRODUCT the products' type. */

typedef R N(v) __attribute__((vector_size(16), aligned(sizeof(R)), may_alias));
enum { N(VL) = 16 / sizeof(R) };

/* What subtracts the tiles of a product from X. */
static void N(subtract_tile)(const void *context, const hlort_tile *t)
{
    const Place *p = context;
    for (int64_t i = 0; i < t->rows; i++) {
        R       *x = (R *)p->x + (t->row + i) * p->row + t->column;
        const R *s = (const R *)t->sums + i * t->stride;
        int64_t  j = 0;
        for (; j + N(VL) <= t->columns; j += N(VL))
            *(N(v) *)(x + j) -= *(const N(v) *)(s + j);
        for (; j < t->columns; j++)
            x[j] -= s[j];
    }
}

/* Unknowns from .. from + n - 1 lose their products with s .. s + k - 1, which are known. */
static void N(subtract)(const Matrix *m, int64_t from, int64_t n, int64_t s, int64_t k)
{
    const hlort_solve *d = m->d;
    const int64_t      row = d->right ? d->rows : d->others, one = d->right ? 1 : row;
    R                 *x = m->x;
    const R           *t = (const R *)m->t + (d->right ? s * d->t_row + from * d->t_col : from * d->t_row + s * d->t_col);
    const Place        place = { x + from * one, row };
    hlort_dot          p = { .m = n, .n = d->others, .k = k, .a_row = d->t_row, .a_col = d->t_col, .b_row = row, .b_col = 1 };
    if (d->right)
        p = (hlort_dot){ .m = d->others, .n = n, .k = k, .a_row = row, .a_col = 1, .b_row = d->t_row, .b_col = d->t_col };
    const hlort_how how = { .work = m->work, .pool = m->pool, .epilogue = N(subtract_tile), .context = &place };
    const R        *known = x + s * one;
    hlort_gemm(hlort_kernels(), PRODUCT, &p, &how, d->right ? known : t, d->right ? t : known, NULL);
}

/* Unknown r, a row of X, by the n known ones s .. s + n - 1: at most LEAF. */
static void N(row)(const Matrix *m, int64_t r, int64_t s, int64_t n)
{
    const hlort_solve *d = m->d;
    const R           *t = (const R *)m->t + r * d->t_row;
    const R            by = d->unit ? 1 : t[r * d->t_col];
    R                 *x = m->x, *to = x + r * d->others, f[LEAF];
    int64_t            j = 0;
    for (int64_t k = 0; k < n; k++)
        f[k] = t[(s + k) * d->t_col];
    x += s * d->others;
    for (; j + N(VL) <= d->others; j += N(VL)) {
        N(v) v = *(N(v) *)(to + j);
        for (int64_t k = 0; k < n; k++)
            v -= f[k] * *(const N(v) *)(x + k * d->others + j);
        *(N(v) *)(to + j) = v / by;
    }
    for (; j < d->others; j++) {
        R v = to[j];
        for (int64_t k = 0; k < n; k++)
            v -= f[k] * x[k * d->others + j];
        to[j] = v / by;
    }
}

/* The same of a column. */
static void N(column)(const Matrix *m, int64_t r, int64_t s, int64_t n)
{
    const hlort_solve *d = m->d;
    const R           *t = (const R *)m->t + r * d->t_col;
    const R            by = d->unit ? 1 : t[r * d->t_row];
    for (int64_t i = 0; i < d->others; i++) {
        R *x = (R *)m->x + i * d->rows, v = x[r];
        for (int64_t k = 0; k < n; k++)
            v -= t[(s + k) * d->t_row] * x[s + k];
        x[r] = v / by;
    }
}

/* Unknowns from .. from + n - 1, which depend on each other alone by now. */
static void N(block)(const Matrix *m, int64_t from, int64_t n)
{
    const int64_t size = n > BLOCK ? BLOCK : n > LEAF ? LEAF : 1;
    for (int64_t done = 0; done < n; done += size) {
        const int64_t now = hlort_min(size, n - done), known = m->d->backward ? from + n - done : from;
        const int64_t at = m->d->backward ? from + n - done - now : from + done;
        if (size == 1) {
            (m->d->right ? N(column) : N(row))(m, at, known, done);
            continue;
        }
        if (done > 0)
            N(subtract)(m, at, now, known, done);
        N(block)(m, at, now);
    }
}

#undef R
#undef N
#undef PRODUCT
