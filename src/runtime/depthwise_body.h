/* depthwise_body.h - a run of pixels of a depthwise convolution (depthwise.h).
 *
 * Included after gemv_body.h, with its names. What does not fill a block is summed once more with what is in front of it: the same sums. */

enum { N(CHANNELS) = MR * NV >= 24 ? 4 : 2, N(PIXELS) = 6, N(FEW_PIXELS) = 3 };

/* np pixels and nv vectors of channels, from channel c on. */
INLINE void N(channels)(int np, int nv, const PixelRun *run, int64_t pixel, int64_t c)
{
    const PixelRun r = *run; /* no store changes it */
    const TE *x = r.x, *w = r.w;
    VC        acc[N(PIXELS)][N(CHANNELS)];
    UNROLL for (int p = 0; p < np; p++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[p][v] = (VC){ 0 };
    ROLLED for (int64_t o = 0; o < r.n_outer; o++) {
        int64_t at_x = r.x_first + r.x_outer[o] + pixel * r.x_pixel + c, at_w = r.w_first + r.w_outer[o] + c;
        ROLLED for (int64_t t = 0; t < r.taps; t++, at_x += r.x_tap, at_w += r.w_tap) {
            VC b[N(CHANNELS)];
            UNROLL for (int v = 0; v < nv; v++)
                b[v] = N(widen)(w + at_w + v * VL);
            UNROLL for (int p = 0; p < np; p++)
                UNROLL for (int v = 0; v < nv; v++)
                    acc[p][v] += N(widen)(x + at_x + p * r.x_pixel + v * VL) * b[v];
        }
    }
    UNROLL for (int p = 0; p < np; p++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)((TC *)r.sums + (pixel + p) * r.stride + c + v * VL) = acc[p][v];
}

/* Six pixels whose windows overlap: what of the image several taps meet is loaded once. */
INLINE void N(overlapping)(int taps, int stride, int nv, const PixelRun *run, int64_t pixel, int64_t c)
{
    const PixelRun r = *run;
    enum { NP = N(PIXELS) };
    const TE *x = r.x, *w = r.w;
    VC        acc[NP][2];
    UNROLL for (int p = 0; p < NP; p++)
        UNROLL for (int v = 0; v < nv; v++)
            acc[p][v] = (VC){ 0 };
    ROLLED for (int64_t o = 0; o < r.n_outer; o++) {
        const TE *from = x + (r.x_first + r.x_outer[o] + pixel * r.x_pixel + c), *of = w + (r.w_first + r.w_outer[o] + c);
        VC        b[5][2];
        UNROLL for (int t = 0; t < taps; t++)
            UNROLL for (int v = 0; v < nv; v++)
                b[t][v] = N(widen)(of + t * r.w_tap + v * VL);
        UNROLL for (int q = 0; q < (NP - 1) * stride + taps; q++) {
            VC a[2];
            UNROLL for (int v = 0; v < nv; v++)
                a[v] = N(widen)(from + q * r.x_tap + v * VL);
            UNROLL for (int p = 0; p < NP; p++)
                UNROLL for (int v = 0; v < nv; v++)
                    if (q >= p * stride && q < p * stride + taps)
                        acc[p][v] += a[v] * b[q - p * stride][v];
        }
    }
    UNROLL for (int p = 0; p < NP; p++)
        UNROLL for (int v = 0; v < nv; v++)
            *(VCU *)((TC *)r.sums + (pixel + p) * r.stride + c + v * VL) = acc[p][v];
}

INLINE void N(overlapping_pixels)(int taps, int stride, const PixelRun *r, int64_t pixel)
{
    enum { NV2 = N(CHANNELS) / 2, WIDE = NV2 * VL };
    int64_t c = 0;
    for (; c + WIDE <= r->channels; c += WIDE)
        N(overlapping)(taps, stride, NV2, r, pixel, c);
    for (; c < r->channels; c += VL)
        N(overlapping)(taps, stride, 1, r, pixel, hlort_min(c, r->channels - VL));
}

INLINE void N(pixels)(int np, const PixelRun *r, int64_t pixel)
{
    enum { WIDE = N(CHANNELS) * VL };
    int64_t c = 0;
    for (; c + WIDE <= r->channels; c += WIDE)
        N(channels)(np, N(CHANNELS), r, pixel, c);
    for (; c < r->channels; c += VL)
        N(channels)(np, 1, r, pixel, hlort_min(c, r->channels - VL));
}

/* Six pixels. */
static void N(six_pixels)(const PixelRun *r, int64_t pixel)
{
    const int64_t stride = r->x_pixel == r->x_tap ? 1 : r->x_pixel == 2 * r->x_tap ? 2 : 0;
    if (stride == 1 && r->taps == 3)
        N(overlapping_pixels)(3, 1, r, pixel);
    else if (stride == 2 && r->taps == 3)
        N(overlapping_pixels)(3, 2, r, pixel);
    else if (stride == 1 && r->taps == 5)
        N(overlapping_pixels)(5, 1, r, pixel);
    else if (stride == 2 && r->taps == 5)
        N(overlapping_pixels)(5, 2, r, pixel);
    else
        N(pixels)(N(PIXELS), r, pixel);
}

static void N(run_pixels)(const PixelRun *r)
{
    for (int64_t p = 0; p < r->pixels;) {
        const int64_t rest = r->pixels - p;
        if (rest > N(FEW_PIXELS) && r->pixels >= N(PIXELS)) {
            N(six_pixels)(r, hlort_min(p, r->pixels - N(PIXELS)));
            p += N(PIXELS);
        } else if (rest > 1 && r->pixels >= N(FEW_PIXELS)) {
            N(pixels)(N(FEW_PIXELS), r, hlort_min(p, r->pixels - N(FEW_PIXELS)));
            p += N(FEW_PIXELS);
        } else {
            N(pixels)(1, r, p++);
        }
    }
}
