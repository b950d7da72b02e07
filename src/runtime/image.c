/* image.c - see image.h. */
#include "runtime/image.h"

static int64_t size_of(int64_t x)
{
    return x < 0 ? -x : x;
}

static void exchange(ImageDim *a, ImageDim *b)
{
    ImageDim x = *a;
    *a = *b;
    *b = x;
}

/* The result's order, single pixels first. */
static int goes_before(const ImageDim *a, const ImageDim *b)
{
    if ((a->out == 1) != (b->out == 1))
        return a->out == 1;
    return a->y > b->y;
}

static void sort_dims(Image *im)
{
    for (int64_t k = 1; k < im->n; k++)
        for (int64_t j = k; j > 0 && goes_before(&im->d[j], &im->d[j - 1]); j--)
            exchange(&im->d[j - 1], &im->d[j]);
}

/* A dimension with one tap that stays inside has pixels as coordinates. */
static void straighten(Image *im, ImageDim *d)
{
    const int64_t last = d->first + (d->out - 1) * d->step;
    d->checked = d->window > 0 && (d->first < 0 || last + (d->window - 1) * d->dilation >= d->size);
    if (d->window != 1 || d->checked)
        return;
    im->x_first += d->first * d->x;
    d->x *= d->step;
    d->first = 0;
    d->step = 1;
    d->size = d->out;
}

static int joins(const ImageDim *a, const ImageDim *b)
{
    return a->window == 1 && b->window == 1 && !a->checked && !b->checked && a->y == b->y * b->out && a->x == b->x * b->out;
}

static void drop(Image *im, int64_t k)
{
    im->n--;
    for (; k < im->n; k++)
        im->d[k] = im->d[k + 1];
}

static void join_dims(Image *im)
{
    for (int64_t k = 0; k < im->n && im->n > 1;) {
        ImageDim *d = &im->d[k];
        if (d->out == 1 && d->window == 1 && !d->checked) {
            drop(im, k);
        } else if (k + 1 < im->n && joins(d, d + 1)) {
            d[1].out *= d->out;
            d[1].size = d[1].out;
            drop(im, k);
        } else {
            k++;
        }
    }
}

static int64_t distance(const Image *im, int64_t axis, int by_image)
{
    if (axis == IMAGE_FEATURES)
        return by_image ? im->x_in : size_of(im->w_in);
    return by_image ? im->d[axis].x * im->d[axis].dilation : size_of(im->d[axis].w);
}

static int64_t count(const Image *im, int64_t axis)
{
    return axis == IMAGE_FEATURES ? im->in : im->d[axis].window;
}

static int64_t kernel_distance(const Image *im, int64_t axis)
{
    return axis == IMAGE_FEATURES ? im->w_in : im->d[axis].w;
}

/* Runs of a few elements cost more than they copy: features last, if they are more. */
static void lengthen_runs(Image *im)
{
    const int64_t last = im->axes - 1;
    if (im->is_b || im->axis[last] == IMAGE_FEATURES || im->in <= count(im, im->axis[last]))
        return;
    for (int64_t k = 0; k < last; k++)
        if (im->axis[k] == IMAGE_FEATURES) {
            im->axis[k] = im->axis[k + 1];
            im->axis[k + 1] = IMAGE_FEATURES;
        }
}

/* Columns in the image's order where features are neighbours in it, else in the kernel's. */
static void sort_axes(Image *im)
{
    const int by_image = !im->is_b && im->x_in == 1 && im->in > 1;
    im->axes = 0;
    for (int64_t d = 0; d < im->n; d++)
        if (im->d[d].window != 1)
            im->axis[im->axes++] = d;
    if (im->in != 1 || im->axes == 0)
        im->axis[im->axes++] = IMAGE_FEATURES;
    for (int64_t k = 1; k < im->axes; k++)
        for (int64_t j = k; j > 0 && distance(im, im->axis[j - 1], by_image) < distance(im, im->axis[j], by_image); j--) {
            int64_t x = im->axis[j];
            im->axis[j] = im->axis[j - 1];
            im->axis[j - 1] = x;
        }
}

static void join_axes(Image *im)
{
    const int64_t last = im->axis[im->axes - 1];
    im->x_step = last == IMAGE_FEATURES ? im->x_in : im->d[last].x * im->d[last].dilation;
    im->w_step = kernel_distance(im, last);
    im->merged = 0;
    if (im->axes > 1 && last == IMAGE_FEATURES && im->x_in == 1 && !im->is_b) {
        const ImageDim *line = &im->d[im->axis[im->axes - 2]];
        im->merged = line->x == im->in && line->dilation == 1 && line->w == im->in * im->w_in;
    }
    im->plain = 1;
    for (int64_t k = 0; k + 1 < im->axes; k++)
        im->plain &= kernel_distance(im, im->axis[k]) == kernel_distance(im, im->axis[k + 1]) * count(im, im->axis[k + 1]);
}

void image_order(Image *im)
{
    im->x_first = 0;
    for (int64_t k = 0; k < im->n; k++)
        straighten(im, &im->d[k]);
    sort_dims(im);
    join_dims(im);
    sort_axes(im);
    lengthen_runs(im);
    join_axes(im);
}

int64_t image_pixels(const Image *im)
{
    int64_t n = 1;
    for (int64_t d = 0; d < im->n; d++)
        n *= im->d[d].out;
    return n;
}

int64_t image_taps(const Image *im)
{
    int64_t n = 1;
    for (int64_t d = 0; d < im->n; d++)
        n *= im->d[d].window;
    return n;
}

int image_is_matrix(const Image *im)
{
    return im->n == 1 && im->d[0].window == 1 && !im->d[0].checked;
}

void image_run(const Image *im, int64_t k, ImageRun *r)
{
    int64_t end = im->axes - 1, length = count(im, im->axis[end]);
    if (im->merged)
        length *= count(im, im->axis[--end]);
    int64_t in = k % length, rest = k / length, at[IMAGE_DIMS + 1] = { 0 };
    *r = (ImageRun){ .length = length - in };
    for (int64_t a = end - 1; a >= 0; a--) {
        at[im->axis[a]] = rest % count(im, im->axis[a]);
        rest /= count(im, im->axis[a]);
    }
    if (im->merged) {
        at[im->axis[end]] = in / im->in;
        r->lead = in % im->in;
        at[IMAGE_FEATURES] = r->lead;
    } else {
        at[im->axis[end]] = in;
    }
    r->x = at[IMAGE_FEATURES] * im->x_in;
    r->w = at[IMAGE_FEATURES] * im->w_in;
    for (int64_t d = 0; d < im->n; d++) {
        r->c[d] = at[d] * im->d[d].dilation;
        r->x += r->c[d] * im->d[d].x;
        r->w += at[d] * im->d[d].w;
    }
}

int64_t image_runs(const Image *im, int64_t k, int64_t n, ImageRun *runs)
{
    int64_t found = 0;
    for (int64_t at = 0; at < n; at += runs[found++].length) {
        image_run(im, k + at, &runs[found]);
        runs[found].k = at;
        if (runs[found].length > n - at)
            runs[found].length = n - at;
    }
    return found;
}

void image_rows(const Image *im, int64_t row, int64_t n, ImageRow *rows)
{
    int64_t at[IMAGE_DIMS] = { 0 }, rest = row;
    for (int64_t d = im->n - 1; d >= 0; d--) {
        at[d] = rest % im->d[d].out;
        rest /= im->d[d].out;
    }
    for (int64_t k = 0; k < n; k++) {
        ImageRow *r = &rows[k];
        r->x = im->x_first;
        r->y = 0;
        for (int64_t d = 0; d < im->n; d++) {
            r->c[d] = im->d[d].first + at[d] * im->d[d].step;
            r->x += r->c[d] * im->d[d].x;
            r->y += at[d] * im->d[d].y;
        }
        for (int64_t d = im->n - 1; d >= 0 && ++at[d] == im->d[d].out; d--)
            at[d] = 0;
    }
}
