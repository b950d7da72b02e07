/* Iotas in normal form, orders of devices, groups of collectives. */
#include "ir/attr_rare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/print.h"
#include "text/print_rare.h"

static Ints ints(Arena *a, int32_t n, const int64_t *v)
{
    return ints_copy(a, (Ints){v, n});
}
#define INTS(...) ints(a, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define NONE ((Ints){NULL, 0})

static void expect(Buf *b, const char *text)
{
    if (strcmp(b->p, text) != 0) {
        fprintf(stderr, "got      %s\nexpected %s\n", b->p, text);
        exit(1);
    }
    buf_free(b);
}

static void expect_iota(Arena *a, Ints dims, Ints perm, const char *normal, const char *devices)
{
    Buf           b = {0};
    Iota          x = iota_canonical(a, dims, perm);
    ReplicaGroups g = {.version = GROUPS_IOTA, .count = 1, .size = ints_product(dims), .iota = x};
    print_replica_groups(&b, &g);
    expect(&b, normal);
    print_ints(&b, iota_expand(a, x));
    expect(&b, devices);
    print_ints(&b, iota_expand(a, (Iota){dims, perm})); /* the normal form means the same */
    expect(&b, devices);
}

static void test_iota(Arena *a)
{
    expect_iota(a, INTS(4), NONE, "[1,4]<=[4]", "{0,1,2,3}");
    expect_iota(a, INTS(2, 2), INTS(1, 0), "[1,4]<=[2,2]T(1,0)", "{0,2,1,3}");
    expect_iota(a, INTS(2, 2, 2), INTS(0, 1, 2), "[1,8]<=[8]", "{0,1,2,3,4,5,6,7}");
    expect_iota(a, INTS(1, 6), INTS(1, 0), "[1,6]<=[6]", "{0,1,2,3,4,5}");
    expect_iota(a, INTS(2, 1, 2, 2), INTS(3, 0, 1, 2), "[1,8]<=[4,2]T(1,0)", "{0,2,4,6,1,3,5,7}");
    expect_iota(a, INTS(1, 1), INTS(1, 0), "[1,1]<=[1]", "{0}");
    puts("ok iota");
}

static void expect_groups(Arena *a, const ReplicaGroups *g, const char *text, const char *lists)
{
    bool          ok;
    Buf           b = {0};
    ReplicaGroups listed = {.version = GROUPS_LISTS};
    print_replica_groups(&b, g);
    expect(&b, text);
    listed.lists = replica_groups_lists(a, g, &ok);
    print_replica_groups(&b, &listed);
    expect(&b, ok ? lists : "not ok");
}

static void test_groups(Arena *a)
{
    const MeshAxis axes[] = {{intern_str(interner_new(a), "x"), 2}, {intern_str(interner_new(a), "y"), 4}};
    Mesh           mesh = {.n_axes = 2, .axes = axes};
    ReplicaGroups  g = {.version = GROUPS_IOTA, .count = 2, .size = 4, .iota = {INTS(4, 2), INTS(1, 0)}};
    expect_groups(a, &g, "[2,4]<=[4,2]T(1,0)", "{{0,2,4,6},{1,3,5,7}}");
    g = (ReplicaGroups){.version = GROUPS_MESH, .mesh = &mesh, .axes = {1, (AxisRef[]){{0, 0, 0}}}};
    expect_groups(a, &g, "mesh['x'=2,'y'=4] {'x'}", "{{0,4},{1,5},{2,6},{3,7}}");
    g.axes = (AxisRefs){2, (AxisRef[]){{1, 2, 2}, {0, 0, 0}}};
    expect_groups(a, &g, "mesh['x'=2,'y'=4] {'y':(2)2,'x'}", "{{0,4,1,5},{2,6,3,7}}");
    g.axes = (AxisRefs){1, (AxisRef[]){{1, 1, 2}}};
    mesh.has_iota = true;
    mesh.iota = (Iota){INTS(4, 2), INTS(1, 0)};
    expect_groups(a, &g, "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y':(1)2}", "{{0,4},{2,6},{1,5},{3,7}}");
    g.axes = (AxisRefs){0, NULL};
    expect_groups(a, &g, "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {}", "{{0},{2},{4},{6},{1},{3},{5},{7}}");
    Mesh single = {.kind = MESH_SINGLE_DEVICE, .device = 3};
    g = (ReplicaGroups){.version = GROUPS_MESH, .mesh = &single};
    expect_groups(a, &g, "single_device[device_id=3] {}", "{{3}}");
    puts("ok groups");
}

int main(void)
{
    Arena *a = arena_new();
    test_iota(a);
    test_groups(a);
    arena_free(a);
    return 0;
}
