/* Shapes: sizes that overflow, comparison, layouts, text. */
#include "ir/shape.h"

#include <string.h>

#include "support/check.h"

static Arena *arena;

static const Shape *array(Type t, int32_t rank, const int64_t *dims)
{
    return shape_array(arena, t, rank, dims);
}

static void test_sizes(void)
{
    CHECK(shape_count(shape_scalar(arena, TYPE_F32)) == 1);
    CHECK(shape_bytes(array(TYPE_C128, 2, (int64_t[]){3, 5})) == 240);
    CHECK(shape_bytes(array(TYPE_S4, 1, (int64_t[]){7})) == 7);
    CHECK(shape_count(array(TYPE_F32, 2, (int64_t[]){INT64_MAX, 3})) == -1);
    CHECK(shape_count(array(TYPE_F32, 3, (int64_t[]){INT64_MAX, 3, 0})) == 0);
    CHECK(shape_bytes(array(TYPE_F32, 1, (int64_t[]){INT64_MAX / 2})) == -1);
    CHECK(shape_count(array(TYPE_F32, 1, (int64_t[]){DIM_UNBOUNDED})) == -1);
    puts("ok sizes");
}

static void test_layouts(void)
{
    const Shape  *plain = array(TYPE_F32, 2, (int64_t[]){2, 3});
    const Layout *turned = layout_from_order(arena, (Ints){(int64_t[]){0, 1}, 2});
    CHECK(!layout_from_order(arena, (Ints){(int64_t[]){1, 0}, 2}));
    const Shape *columns = shape_with_layout(arena, plain, turned);
    int64_t      strides[2];
    shape_strides(columns, strides);
    CHECK(strides[0] == 1 && strides[1] == 2 && !layout_is_row_major(columns) && layout_is_row_major(plain));
    CHECK(!shape_equal(plain, columns) && shape_compatible(plain, columns));
    CHECK(shape_equal(columns, shape_copy(arena, columns)));
    Layout same = {.minor_to_major = {(int64_t[]){1, 0}, 2}, .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT};
    CHECK(layout_equal(NULL, &same, 2) && shape_with_layout(arena, plain, &same) == plain);
    puts("ok layouts");
}

static void test_compare(void)
{
    const Shape *f = array(TYPE_F32, 1, (int64_t[]){2}), *b = array(TYPE_BF16, 1, (int64_t[]){2}),
                *s = array(TYPE_S32, 1, (int64_t[]){2});
    CHECK(!shape_compatible(f, b) && shape_compatible_ignoring_precision(f, b) && !shape_compatible_ignoring_precision(f, s));
    const Shape *t = shape_tuple(arena, 2, (const Shape *[]){f, s}), *u = shape_tuple(arena, 2, (const Shape *[]){b, s});
    CHECK(shape_compatible_ignoring_precision(t, u) && !shape_equal(t, u) && shape_leaf_count(t, false) == 2);
    CHECK(type_higher_precision(TYPE_F16, TYPE_BF16) == TYPE_BF16 && type_higher_precision(TYPE_F32, TYPE_F64) == TYPE_F64);
    CHECK(type_lookup("f8e4m3", 6) == TYPE_F8E4M3 && type_lookup("tuple", 5) == TYPE_COUNT);
    puts("ok compare");
}

static void test_text(void)
{
    bool    dynamic[] = {true, false};
    Shape   d = *array(TYPE_F32, 2, (int64_t[]){8, 2});
    Layout  tiled = {.minor_to_major = {(int64_t[]){0}, 1}, .tiles = (Tile[]){{{(int64_t[]){2, TILE_COMBINE, 128}, 3}}}, .n_tiles = 1,
                     .tail_padding = 1, .index_type = TYPE_COUNT, .pointer_type = TYPE_COUNT, .element_bits = 4, .memory_space = 5,
                     .splits = (SplitConfig[]){{0, {(int64_t[]){10}, 1}}, {1, {(int64_t[]){4, 5}, 2}}}, .n_splits = 2,
                     .metadata_prefix = 1024};
    Shape   l = *array(TYPE_S4, 1, (int64_t[]){9});
    Buf     b = {0};
    d.dynamic = dynamic;
    l.layout = &tiled;
    const Shape *elems[6];
    for (int k = 0; k < 6; k++)
        elems[k] = shape_scalar(arena, TYPE_PRED);
    elems[0] = &d;
    elems[1] = &l;
    shape_print(&b, shape_tuple(arena, 6, elems), true);
    CHECK(strcmp(b.p, "(f32[<=8,2]{1,0}, s4[9]{0:T(2,*,128)E(4)S(5)SC(0:10)(1:4,5)M(1024)}, "
                      "pred[], pred[], pred[], /*index=5*/pred[])") == 0);
    buf_free(&b);
    CHECK(strcmp(shape_text(arena, array(TYPE_F32, 1, (int64_t[]){DIM_UNBOUNDED})), "f32[?]") == 0);
    puts("ok text");
}

int main(void)
{
    arena = arena_new();
    test_sizes();
    test_layouts();
    test_compare();
    test_text();
    arena_free(arena);
    return 0;
}
