/* Attributes with a structure of their own that few instructions carry: shardings, meshes, replica groups, statistics, accuracy,
 * origins, sparsity and scaling of dots, domains, and the two header tables about values. All are immutable and live in the
 * arena of the module; strings are interned in it.
 *
 * Source: reference text 2.4, 5.4, 5.8, 6.1, 6.3, 6.4. */
#ifndef IR_ATTR_RARE_H
#define IR_ATTR_RARE_H

#include "ir/attr.h"
#include "support/intern.h"

/* Devices 0..N-1 reshaped to dims and transposed by perm. Canonical (iota_canonical): no dimension of size 1, no two neighbours
 * that stay neighbours; perm is empty for one dimension. */
typedef struct Iota {
    Ints dims, perm;
} Iota;

enum { MAX_IOTA_RANK = 64 };

Iota    iota_canonical(Arena *a, Ints dims, Ints perm);
bool    iota_is_order(Iota x);         /* perm is short and names no dimension twice; text may say otherwise */
Ints    iota_expand(Arena *a, Iota x); /* the devices in order; at most 2^24 of them and an order, else an empty list */
int64_t ints_product(Ints x);          /* -1 when it overflows or an entry is negative */

/* A mesh names the axes of an array of devices. */
typedef struct MeshAxis {
    const char *name;
    int64_t     size;
} MeshAxis;
typedef enum { MESH_AXES, MESH_SINGLE_DEVICE } MeshKind;
typedef struct Mesh {
    MeshKind        kind;
    int64_t         device; /* MESH_SINGLE_DEVICE */
    int32_t         n_axes;
    const MeshAxis *axes;
    bool            has_iota; /* device_ids=([4,2]T(1,0)) */
    Iota            iota;
    Ints            devices; /* device_ids=(0,2,1,3); empty: 0..N-1 */
} Mesh;

int64_t mesh_size(const Mesh *m); /* devices */
Ints    mesh_devices(Arena *a, const Mesh *m); /* in the order of the axes; empty: too many, or no order */

/* A whole axis (pre and size 0) or the part of it that remains when it is split as [pre, size, rest]. */
typedef struct AxisRef {
    int32_t axis; /* number in the mesh */
    int64_t pre, size;
} AxisRef;
typedef struct AxisRefs {
    int32_t        n;
    const AxisRef *v;
} AxisRefs;

/* Which devices hold which part of an array. */
typedef enum {
    SHARDING_REPLICATED, SHARDING_MAXIMAL, SHARDING_MANUAL, SHARDING_UNKNOWN, SHARDING_UNREDUCED, SHARDING_TILED,
    SHARDING_NAMED, SHARDING_TUPLE
} ShardingKind;
/* In the order in which the dimensions of a normal sharding stand. */
typedef enum { SUBGROUP_MAXIMAL, SUBGROUP_MANUAL, SUBGROUP_UNREDUCED, SUBGROUP_REPLICATED } Subgroup;
typedef enum { GROUP_NONE, GROUP_SHARD_AS, GROUP_SHARD_LIKE } ShardGroup;
typedef enum { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MAX, REDUCTION_MIN } Reduction;

typedef struct NamedDim {
    AxisRefs axes;
    bool     open; /* '?': may be sharded further */
} NamedDim;

typedef struct Sharding Sharding;
struct Sharding {
    ShardingKind kind;
    int64_t      device; /* MAXIMAL */
    /* TILED: tiles per dimension, the subgroup dimensions last. */
    Ints     dims;
    bool     has_iota;
    Iota     iota;
    Ints     devices;          /* of each tile, row-major, when there is no iota */
    bool     replicate_last;   /* last_tile_dim_replicate */
    Ints     subgroups;        /* last_tile_dims: a Subgroup for each of the last dimensions */
    /* NAMED */
    const Mesh     *mesh;
    int32_t         n_named;
    const NamedDim *named;
    AxisRefs        replicated, unreduced, manual;
    Reduction       reduction; /* of the unreduced axes or of the old form; NONE when nothing is unreduced */
    /* Any kind but TUPLE. */
    ShardGroup              group;
    int64_t                 group_id;
    int32_t                 n_meta;
    const Metadata *const  *meta;
    /* TUPLE: one for each leaf. */
    int32_t                n_elems;
    const Sharding *const *elems;
};

bool            sharding_equal(const Sharding *x, const Sharding *y); /* by meaning, without metadata */
const Sharding *sharding_tuple(Arena *a, int32_t n, const Sharding *const *elems);

/* Participants of a collective. */
typedef enum { GROUPS_LISTS = 1, GROUPS_IOTA = 2, GROUPS_MESH = 3 } GroupsVersion;
typedef struct ReplicaGroups {
    GroupsVersion version;
    IntsList      lists;        /* GROUPS_LISTS */
    int64_t       count, size;  /* GROUPS_IOTA: groups, devices in each */
    Iota          iota;
    const Mesh   *mesh;         /* GROUPS_MESH */
    AxisRefs      axes;
} ReplicaGroups;

/* The groups as lists, whatever the version. n 0: one group of all. *ok false: too many devices to list. */
IntsList replica_groups_lists(Arena *a, const ReplicaGroups *g, bool *ok);

typedef struct Statistic {
    const char *name;
    double      value;
} Statistic;
typedef struct Statistics {
    int64_t          visualizing_index;
    int32_t          n;
    const Statistic *v;
} Statistics;

typedef struct Accuracy {
    bool    highest;       /* mode=highest */
    bool    has_tolerance;
    double  atol, rtol;
    int64_t ulps;
} Accuracy;

/* Where a value was before optimisation: an array inside an old instruction's result. */
typedef struct OriginArray {
    bool        known; /* false: {} */
    const char *name;
    Ints        index;
} OriginArray;
typedef struct OriginNode OriginNode;
struct OriginNode {
    bool              leaf;
    OriginArray       array; /* of a leaf */
    int32_t           n;
    const OriginNode *elems;
};
typedef struct Origin {
    OriginNode  tree;
    const char *call; /* the call hierarchy, NULL: not given */
} Origin;

typedef struct SparsitySide {
    bool    given;
    int64_t nonzero, block, dimension, stride, operand;
} SparsitySide;
typedef struct Sparsity {
    SparsitySide lhs, rhs;
} Sparsity;

typedef struct ScalingSide {
    bool    given, has_scale, has_zero;
    int64_t scale, zero; /* operand numbers */
    Ints    strides, steps;
} ScalingSide;
typedef struct Scaling {
    ScalingSide lhs, rhs;
} Scaling;

typedef struct Domain {
    const Sharding *entry, *exit;
} Domain;

/* Header: origin_recovery_table. */
struct Module;
typedef struct OriginRecovery {
    OriginArray    old, replacement;
    struct Module *module; /* how to compute it; NULL: not given. The arena of the table frees it. */
} OriginRecovery;
typedef struct OriginTable {
    int32_t               n;
    const OriginRecovery *v;
} OriginTable;

/* Header: debug_attributes, sorted by name and index. */
typedef enum { LOG_MODE_NONE, LOG_MODE_DEFAULT, LOG_MODE_FUSION_DEBUGGER } LogMode;
typedef struct DebugAttr {
    LogMode log_mode;
    int64_t callback_id, op_id;
    bool    partitioned;
} DebugAttr;
typedef struct DebugEntry {
    OriginArray      array;
    int32_t          n;
    const DebugAttr *v;
} DebugEntry;
typedef struct DebugTable {
    int32_t           n;
    const DebugEntry *v;
} DebugTable;

/* For the attribute classes from GROUPS on that attr.c does not handle itself. */
bool attr_rare_equal(const Attr *x, const Attr *y);
Attr attr_rare_copy(Arena *a, Interner *t, const Attr *x);

/* Deep copies, with strings interned in t. */
const OriginTable *origin_table_copy(Arena *a, Interner *t, const OriginTable *x);
const DebugTable  *debug_table_copy(Arena *a, Interner *t, const DebugTable *x);

#endif
