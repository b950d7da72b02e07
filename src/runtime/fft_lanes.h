/* fft_lanes.h - a butterfly for each lane of T: p points that are a_step apart become p that are b_step apart. Included with L(x) for the names, TU for T in memory; L(part) and
 * L(join) read and write pairs.
 *
 *     y[r] = sum over t of x[t] w(p, t r)        p: 2, 4, 6, 8, 9, 10, or a prime and at most FFT_MOST_FACTOR */

INLINE void L(fours)(const T *xr, const T *xi, T *yr, T *yi)
{
    const T sr = xr[0] + xr[2], si = xi[0] + xi[2], dr = xr[0] - xr[2], di = xi[0] - xi[2];
    const T ur = xr[1] + xr[3], ui = xi[1] + xi[3], vr = xi[1] - xi[3], vi = xr[3] - xr[1]; /* v: -i times the difference */
    yr[0] = sr + ur, yi[0] = si + ui;
    yr[1] = dr + vr, yi[1] = di + vi;
    yr[2] = sr - ur, yi[2] = si - ui;
    yr[3] = dr - vr, yi[3] = di - vi;
}

INLINE void L(eights)(const T *xr, const T *xi, T *yr, T *yi)
{
    const TW root = (TW)0.70710678118654752440;
    T        er[4], ei[4], or[4], oi[4], r;
    L(fours)((const T[]){ xr[0], xr[2], xr[4], xr[6] }, (const T[]){ xi[0], xi[2], xi[4], xi[6] }, er, ei);
    L(fours)((const T[]){ xr[1], xr[3], xr[5], xr[7] }, (const T[]){ xi[1], xi[3], xi[5], xi[7] }, or, oi);
    r = (or[1] + oi[1]) * root;
    oi[1] = (oi[1] - or[1]) * root;
    or[1] = r;
    r = oi[2];
    oi[2] = -or[2];
    or[2] = r;
    r = (oi[3] - or[3]) * root;
    oi[3] = (or[3] + oi[3]) * -root;
    or[3] = r;
    UNROLL
    for (int k = 0; k < 4; k++) {
        yr[k] = er[k] + or[k], yi[k] = ei[k] + oi[k];
        yr[k + 4] = er[k] - or[k], yi[k + 4] = ei[k] - oi[k];
    }
}

INLINE void L(threes)(const T *xr, const T *xi, int64_t step, T *yr, T *yi)
{
    const TW root = (TW)0.86602540378443864676;
    const T  sr = xr[step] + xr[2 * step], si = xi[step] + xi[2 * step], dr = (xr[step] - xr[2 * step]) * root, di = (xi[step] - xi[2 * step]) * root;
    const T  ar = xr[0] - sr * (TW)0.5, ai = xi[0] - si * (TW)0.5;
    yr[0] = xr[0] + sr, yi[0] = xi[0] + si;
    yr[1] = ar + di, yi[1] = ai - dr;
    yr[2] = ar - di, yi[2] = ai + dr;
}

INLINE void L(nines)(const T *xr, const T *xi, T *yr, T *yi)
{
    static const TW c[] = { 1, (TW)0.76604444311897803520, (TW)0.17364817766693034885, 0, (TW)-0.93969262078590838405 };
    static const TW s[] = { 0, (TW)0.64278760968653932632, (TW)0.98480775301220805937, 0, (TW)0.34202014332566873304 };
    T               ar[9], ai[9];
    UNROLL
    for (int t = 0; t < 3; t++) {
        L(threes)(xr + t, xi + t, 3, ar + 3 * t, ai + 3 * t);
        UNROLL
        for (int r = 1; r < 3 && t > 0; r++) {
            const T re = ar[3 * t + r], im = ai[3 * t + r];
            ar[3 * t + r] = re * c[t * r] + im * s[t * r];
            ai[3 * t + r] = im * c[t * r] - re * s[t * r];
        }
    }
    UNROLL
    for (int r = 0; r < 3; r++) {
        T br[3], bi[3];
        L(threes)(ar + r, ai + r, 3, br, bi);
        UNROLL
        for (int q = 0; q < 3; q++)
            yr[r + 3 * q] = br[q], yi[r + 3 * q] = bi[q];
    }
}

/* Points t and p - t share their products. */
INLINE void L(odds)(const int p, const T *xr, const T *xi, T *yr, T *yi)
{
    T er[FFT_MOST_FACTOR / 2 + 1], ei[FFT_MOST_FACTOR / 2 + 1], or[FFT_MOST_FACTOR / 2 + 1], oi[FFT_MOST_FACTOR / 2 + 1];
    yr[0] = xr[0], yi[0] = xi[0];
    UNROLL
    for (int t = 1; t <= p / 2; t++) {
        er[t] = xr[t] + xr[p - t], ei[t] = xi[t] + xi[p - t];
        or[t] = xr[t] - xr[p - t], oi[t] = xi[t] - xi[p - t];
        yr[0] += er[t], yi[0] += ei[t];
    }
    UNROLL
    for (int r = 1; r <= p / 2; r++) {
        T ar = xr[0], ai = xi[0], br = { 0 }, bi = { 0 };
        UNROLL
        for (int t = 1; t <= p / 2; t++) {
            const int at = t * r % p, near = at > p / 2 ? p - at : at; /* the sine of the other half is negative */
            const TW  c = (TW)fft_cosines[p / 2][near], s = (TW)(at > p / 2 ? -fft_sines[p / 2][near] : fft_sines[p / 2][near]);
            ar += er[t] * c, ai += ei[t] * c;
            br += or[t] * s, bi += oi[t] * s;
        }
        yr[r] = ar + bi, yi[r] = ai - br; /* a - i b */
        yr[p - r] = ar - bi, yi[p - r] = ai + br;
    }
}

/* Twice an odd number: y[r] = e[r mod q] + (-1)^r o[r mod q], e of the points 2 t, o of those q + 2 t. */
INLINE void L(doubles)(const int q, const T *xr, const T *xi, T *yr, T *yi)
{
    T er[FFT_MOST_FACTOR / 2], ei[FFT_MOST_FACTOR / 2], or[FFT_MOST_FACTOR / 2], oi[FFT_MOST_FACTOR / 2], fr[2][FFT_MOST_FACTOR / 2], fi[2][FFT_MOST_FACTOR / 2];
    UNROLL
    for (int t = 0; t < q; t++) {
        fr[0][t] = xr[2 * t], fi[0][t] = xi[2 * t];
        fr[1][t] = xr[(q + 2 * t) % (2 * q)], fi[1][t] = xi[(q + 2 * t) % (2 * q)];
    }
    if (q == 3) {
        L(threes)(fr[0], fi[0], 1, er, ei);
        L(threes)(fr[1], fi[1], 1, or, oi);
    } else {
        L(odds)(q, fr[0], fi[0], er, ei);
        L(odds)(q, fr[1], fi[1], or, oi);
    }
    UNROLL
    for (int r = 0; r < 2 * q; r++)
        if (r % 2 == 0)
            yr[r] = er[r % q] + or[r % q], yi[r] = ei[r % q] + oi[r % q];
        else
            yr[r] = er[r % q] - or[r % q], yi[r] = ei[r % q] - oi[r % q];
}

/* w: what points 1 and on are multiplied by first, pairs; NULL: 1. Where `in`, real and imaginary parts alternate from ar on, where `out` from br on; swap: they change places there. */
INLINE void L(butterfly)(const int p, const int in, const int out, const TW *ar, const TW *ai, int64_t a_step, TW *br, TW *bi, int64_t b_step, const TW *w, int swap, TW scale)
{
    T xr[FFT_MOST_FACTOR], xi[FFT_MOST_FACTOR], yr[FFT_MOST_FACTOR], yi[FFT_MOST_FACTOR];
    UNROLL
    for (int t = 0; t < p; t++) {
        T re, im;
        if (in) {
            L(part)(ar + 2 * t * a_step, &xr[t], &xi[t]);
            re = swap ? xi[t] : xr[t];
            im = swap ? xr[t] : xi[t];
        } else {
            re = *(const TU *)(ar + t * a_step);
            im = *(const TU *)(ai + t * a_step);
        }
        xr[t] = w && t > 0 ? re * w[2 * t] - im * w[2 * t + 1] : re;
        xi[t] = w && t > 0 ? re * w[2 * t + 1] + im * w[2 * t] : im;
    }
    if (p == 2) {
        yr[0] = xr[0] + xr[1], yi[0] = xi[0] + xi[1];
        yr[1] = xr[0] - xr[1], yi[1] = xi[0] - xi[1];
    } else if (p == 4)
        L(fours)(xr, xi, yr, yi);
    else if (p == 6 || p == 10)
        L(doubles)(p / 2, xr, xi, yr, yi);
    else if (p == 9)
        L(nines)(xr, xi, yr, yi);
    else if (p == 8)
        L(eights)(xr, xi, yr, yi);
    else
        L(odds)(p, xr, xi, yr, yi);
    UNROLL
    for (int r = 0; r < p; r++)
        if (out)
            L(join)(br + 2 * r * b_step, (swap ? yi[r] : yr[r]) * scale, (swap ? yr[r] : yi[r]) * scale);
        else {
            *(TU *)(br + r * b_step) = yr[r];
            *(TU *)(bi + r * b_step) = yi[r];
        }
}
/* A butterfly of any odd p as loops. c: w(p, t), the real parts and, behind p of them, the imaginary ones; w as above, not NULL. */
INLINE void L(prime_rows)(const int rows, int64_t p, int64_t r, const TW *c, const T *kept, T xr, T xi, TW *br, TW *bi, int64_t b_step)
{
    T       ar[2], ai[2], dr[2], di[2];
    int64_t at[2] = { 0 };
    UNROLL
    for (int k = 0; k < rows; k++) {
        ar[k] = xr, ai[k] = xi;
        dr[k] = di[k] = (T){ 0 };
    }
    ROLLED
    for (int64_t t = 1; t <= p / 2; t++, kept += 4)
        UNROLL
        for (int k = 0; k < rows; k++) {
            at[k] += r + k;
            at[k] -= at[k] >= p ? p : 0;
            ar[k] += kept[0] * c[at[k]], ai[k] += kept[1] * c[at[k]];
            dr[k] += kept[2] * c[p + at[k]], di[k] += kept[3] * c[p + at[k]];
        }
    UNROLL
    for (int k = 0; k < rows; k++) {
        *(TU *)(br + (r + k) * b_step) = ar[k] - di[k], *(TU *)(bi + (r + k) * b_step) = ai[k] + dr[k];
        *(TU *)(br + (p - r - k) * b_step) = ar[k] + di[k], *(TU *)(bi + (p - r - k) * b_step) = ai[k] - dr[k];
    }
}

INLINE void L(prime)(int64_t p, const TW *ar, const TW *ai, int64_t a_step, TW *br, TW *bi, int64_t b_step, const TW *w, const TW *c)
{
    T       kept[4 * (HLORT_FFT_PRIME / 2)]; /* sums and differences of points t and p - t */
    const T xr = *(const TU *)ar, xi = *(const TU *)ai;
    T       yr = xr, yi = xi;
    for (int64_t t = 1; t <= p / 2; t++) {
        const int64_t u = p - t;
        const T       sr = *(const TU *)(ar + t * a_step), si = *(const TU *)(ai + t * a_step), er = *(const TU *)(ar + u * a_step), ei = *(const TU *)(ai + u * a_step);
        const T       fr = sr * w[2 * t] - si * w[2 * t + 1], fi = sr * w[2 * t + 1] + si * w[2 * t];
        const T       gr = er * w[2 * u] - ei * w[2 * u + 1], gi = er * w[2 * u + 1] + ei * w[2 * u];
        T            *k = kept + 4 * (t - 1);
        k[0] = fr + gr, k[1] = fi + gi, k[2] = fr - gr, k[3] = fi - gi;
        yr += k[0], yi += k[1];
    }
    *(TU *)br = yr, *(TU *)bi = yi;
    int64_t r = 1;
    for (; r + 1 <= p / 2; r += 2)
        L(prime_rows)(2, p, r, c, kept, xr, xi, br, bi, b_step);
    if (r <= p / 2)
        L(prime_rows)(1, p, r, c, kept, xr, xi, br, bi, b_step);
}
/* Points k and on of a spectrum, and h minus those, from those of pairs, fft_body.h; by: half of the scale. */
INLINE void L(untangled)(int64_t h, int64_t k, const TW *zr, const TW *zi, const TW *half, TW *x, TW by)
{
    const int64_t other = h - k - (int64_t)(sizeof(T) / sizeof(TW)) + 1;
    const TW     *halfi = half + h / 2 + 1;
    const T       a = *(const TU *)(zr + k), b = *(const TU *)(zi + k), c = L(backward)(*(const TU *)(zr + other)), d = L(backward)(*(const TU *)(zi + other));
    const T       wr = *(const TU *)(half + k) * by, wi = *(const TU *)(halfi + k) * by, or = b + d, oi = c - a;
    const T       er = (a + c) * by, ei = (b - d) * by, tr = or * wr - oi * wi, ti = or * wi + oi * wr;
    L(join)(x + 2 * k, er + tr, ei + ti);
    L(join)(x + 2 * other, L(backward)(er - tr), L(backward)(ti - ei));
}

/* And back. */
INLINE void L(tangled)(int64_t h, int64_t k, const TW *x, const TW *half, TW *zr, TW *zi)
{
    const int64_t other = h - k - (int64_t)(sizeof(T) / sizeof(TW)) + 1;
    const TW     *halfi = half + h / 2 + 1, by = (TW)0.5;
    T             a, b, c, d;
    L(part)(x + 2 * k, &a, &b);
    L(part)(x + 2 * other, &c, &d);
    c = L(backward)(c);
    d = L(backward)(d);
    const T wr = *(const TU *)(half + k) * by, wi = *(const TU *)(halfi + k) * by, dr = a - c, di = b + d;
    const T er = (a + c) * by, ei = (b - d) * by, or = dr * wr + di * wi, oi = di * wr - dr * wi;
    *(TU *)(zr + k) = er - oi;
    *(TU *)(zi + k) = ei + or;
    *(TU *)(zr + other) = L(backward)(er + oi);
    *(TU *)(zi + other) = L(backward)(or - ei);
}
#undef L
#undef T
#undef TU
