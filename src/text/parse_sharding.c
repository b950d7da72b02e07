/* Shardings: the old style of items in any order, brought to the form that XLA keeps, and the named style over a mesh.
 * Source: reference text 6.1. */
#include "config.h"

#include <stdlib.h>

#include "text/parse_int.h"

ShardDraft *shard_new(Parser *p)
{
    return ARENA_NEW(p->tmp, ShardDraft);
}

void shard_device(Parser *p, const char *key, Loc loc, int64_t device)
{
    if (strcmp(key, "device") != 0)
        parse_error(p, loc, "a sharding has no item '%s'", key);
    p->shard->list = int_list(p, NULL, device);
}

static void append_ints(Parser *p, IntVec **to, Ints more)
{
    for (int32_t k = 0; k < more.n; k++)
        *to = int_list(p, *to, more.v[k]);
}

static void append_list(Parser *p, IntVec **to, const IntVec *more)
{
    if (more)
        append_ints(p, to, (Ints){more->v, more->n});
}

/* An item that is given twice adds to what the first one said. */
void shard_devices(Parser *p, IntVec *dims, IntVec *list)
{
    append_list(p, &p->shard->dims, dims);
    append_list(p, &p->shard->list, list);
}

void shard_iota(Parser *p, IntVec *dims, Iota x)
{
    append_list(p, &p->shard->dims, dims);
    append_ints(p, &p->shard->iota_dims, x.dims);
    append_ints(p, &p->shard->iota_perm, x.perm);
}

void shard_subgroups(Parser *p, const IntVec *kinds)
{
    p->shard->has_subgroups = true;
    append_list(p, &p->shard->subgroups, kinds);
}

void shard_metas(Parser *p, const MetaVec *metas)
{
    for (int32_t k = 0; k < metas->n; k++)
        p->shard->metas = meta_list(p, p->shard->metas, metas->v[k]);
}

void shard_group(Parser *p, ShardGroup group, int64_t id)
{
    if (p->shard->group != GROUP_SHARD_AS) /* shard_as stays, with the last number */
        p->shard->group = group;
    p->shard->group_id = id;
}

static void set_metas(Parser *p, Sharding *s, const MetaVec *v)
{
    if (!v)
        return;
    s->n_meta = v->n;
    s->meta = arena_copy(p->a, v->v, (size_t)v->n * sizeof *v->v);
}

const Sharding *shard_tuple(Parser *p, const ShardVec *v)
{
    return sharding_tuple(p->a, v->n, v->v);
}

/* ---- tilings ---- */

/* Devices as an array: dims with an iota or a list in row-major order. */
typedef struct Tiling {
    Ints dims;
    bool has_iota;
    Iota iota;
    Ints devices;
} Tiling;

/* The iota with its dimensions cut so that each dimension of the array is a run of them; dims as the array has them. False when a
 * boundary of the array falls inside a factor that does not split there. */
static bool iota_split(Parser *p, const Tiling *t, IntVec *sizes, IntVec *order)
{
    /* factors of the transposed iota, cut where the array's dimensions end */
    int32_t at = 0;
    int64_t left = 1;
    IntVec  source = {0}; /* original dimension of each piece */
    Ints    perm = t->iota.perm.n ? t->iota.perm : ints_iota(p->tmp, t->iota.dims.n);
    for (int32_t k = 0; k < t->dims.n; k++) {
        int64_t need = t->dims.v[k];
        while (need > 1) {
            if (left == 1) {
                if (at == perm.n)
                    return false;
                left = t->iota.dims.v[perm.v[at++]];
                if (left == 1)
                    continue;
            }
            int64_t piece;
            if (left % need == 0)
                piece = need;
            else if (need % left == 0)
                piece = left;
            else
                return false;
            vec_push(p->tmp, sizes, piece);
            vec_push(p->tmp, &source, perm.v[at - 1]);
            vec_push(p->tmp, order, k);
            need /= piece;
            left /= piece;
        }
    }
    for (int32_t k = 0; k < sizes->n; k++) /* keep the source beside the array dimension */
        vec_push(p->tmp, order, source.v[k]);
    return true;
}

/* The places of the pieces of iota_split in the original iota: by source dimension, within one as they come. dims: their sizes in that order. */
static int32_t *piece_places(Parser *p, const Tiling *t, const IntVec *sizes, const IntVec *order, Ints dims)
{
    int32_t *place = ARENA_ARRAY(p->tmp, int32_t, sizes->n), count = 0;
    for (int32_t d = 0; d < t->iota.dims.n; d++)
        for (int32_t k = 0; k < sizes->n; k++)
            if (order->v[sizes->n + k] == d) {
                *ints_at(dims, count) = sizes->v[k];
                place[k] = count++;
            }
    return place;
}

/* Whether perm leaves the dimensions in order, but for those of size 1. */
static bool keeps_order(Ints dims, Ints perm)
{
    int64_t last = -1;
    for (int32_t k = 0; k < perm.n; k++) {
        if (dims.v[perm.v[k]] == 1)
            continue;
        if (perm.v[k] < last)
            return false;
        last = perm.v[k];
    }
    return true;
}

/* t transposed by perm (over its dimensions). Iotas stay iotas when their factors allow. */
static Tiling tiling_transpose(Parser *p, const Tiling *t, Ints perm)
{
    Tiling out = *t;
    out.dims = ints_make(p->a, perm.n);
    for (int32_t k = 0; k < perm.n; k++)
        *ints_at(out.dims, k) = t->dims.v[perm.v[k]];
    if (keeps_order(t->dims, perm))
        return out;
    IntVec sizes = {0}, order = {0};
    if (t->has_iota && iota_split(p, t, &sizes, &order)) {
        int32_t  n = sizes.n, count = 0;
        Ints     dims = ints_make(p->tmp, n), moved = ints_make(p->tmp, n);
        int32_t *place = piece_places(p, t, &sizes, &order, dims);
        for (int32_t k = 0; k < perm.n; k++)
            for (int32_t j = 0; j < n; j++)
                if (order.v[j] == perm.v[k])
                    *ints_at(moved, count++) = place[j];
        out.has_iota = true;
        out.iota = iota_canonical(p->a, dims, moved);
        return out;
    }
    out.has_iota = false;
    Ints    from = t->has_iota ? iota_expand(p->tmp, t->iota) : t->devices;
    int64_t count = ints_product(t->dims);
    out.devices = ints_make(p->a, from.n == count ? from.n : 0);
    int64_t *strides = ARENA_ARRAY(p->tmp, int64_t, perm.n), stride = 1;
    for (int32_t k = perm.n; k-- > 0; stride *= t->dims.v[k])
        strides[k] = stride;
    for (int32_t i = 0; i < out.devices.n; i++) {
        int64_t rest = i, src = 0;
        for (int32_t k = perm.n; k-- > 0; rest /= out.dims.v[k])
            src += rest % out.dims.v[k] * strides[perm.v[k]];
        *ints_at(out.devices, i) = from.v[src];
    }
    return out;
}

static int compare_int64(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* The last dimension of an iota takes its pieces in the order of the original. False when no piece ends where the last dimension begins. */
static bool sort_iota(Parser *p, Tiling *t)
{
    int64_t groups[] = {ints_product((Ints){t->dims.v, t->dims.n - 1}), t->dims.v[t->dims.n - 1]};
    Tiling  two = {.dims = {groups, 2}, .has_iota = true, .iota = t->iota};
    IntVec  sizes = {0}, order = {0};
    if (!iota_split(p, &two, &sizes, &order))
        return false;
    Ints     dims = ints_make(p->tmp, sizes.n), perm = ints_make(p->tmp, sizes.n);
    int32_t *place = piece_places(p, t, &sizes, &order, dims), first = 0;
    for (int32_t k = 0; k < sizes.n; k++) {
        *ints_at(perm, k) = place[k];
        first += order.v[k] == 0;
    }
    qsort(ints_at(perm, first), (size_t)(sizes.n - first), sizeof(int64_t), compare_int64);
    t->iota = iota_canonical(p->a, dims, perm);
    return true;
}

/* The devices of each run of the last dimension in ascending order. */
static void sort_groups(Parser *p, Tiling *t, Loc loc)
{
    if (t->has_iota && !iota_is_order(t->iota)) {
        parse_error(p, loc, "the devices of each group are sorted, but T(...) is no permutation");
        return;
    }
    if (t->has_iota && sort_iota(p, t))
        return;
    if (t->has_iota) {
        t->devices = iota_expand(p->a, t->iota);
        t->has_iota = t->devices.n == 0;
    }
    int64_t n = t->dims.v[t->dims.n - 1];
    for (int64_t k = 0; !t->has_iota && n > 0 && k + n <= t->devices.n; k += n)
        qsort(ints_at(t->devices, (int32_t)k), (size_t)n, sizeof(int64_t), compare_int64);
}

static int64_t leading_product(Ints dims, int32_t n)
{
    return wrapped_product((Ints){dims.v, n});
}

static void set_tiling(Sharding *s, const Tiling *t)
{
    s->kind = SHARDING_TILED;
    s->dims = t->dims;
    s->has_iota = t->has_iota;
    s->iota = t->iota;
    s->devices = t->devices;
}

/* XLA counts tiles of negative sizes, too, and gives up in some places where it orders the devices of groups. */
static bool sizes_are_positive(Parser *p, const Tiling *t, Loc loc)
{
    if (ints_product(t->dims) > 0)
        return true;
    parse_error(p, loc, "the number of tiles of a sharding with subgroups is no positive 64-bit number");
    return false;
}

/* The last dimension counts replicas. */
static void set_partial(Parser *p, Sharding *s, Tiling *t, Loc loc)
{
    int32_t rank = t->dims.n;
    if (wrapped_product(t->dims) == t->dims.v[rank - 1]) {
        s->kind = SHARDING_REPLICATED;
        return;
    }
    if (!sizes_are_positive(p, t, loc))
        return;
    if (t->dims.v[rank - 1] == 1)
        t->dims.n--;
    else {
        s->replicate_last = true;
        sort_groups(p, t, loc);
    }
    set_tiling(s, t);
}

static ShardingKind plain_kind(Subgroup g)
{
    switch (g) {
    case SUBGROUP_MANUAL: return SHARDING_MANUAL;
    case SUBGROUP_UNREDUCED: return SHARDING_UNREDUCED;
    case SUBGROUP_REPLICATED: return SHARDING_REPLICATED;
    case SUBGROUP_MAXIMAL: break;
    }
    return SHARDING_TILED;
}

/* The last dimensions are subgroups: those of size 1 go, equal kinds become one, kinds in the order of the enumeration. */
static void set_subgroups(Parser *p, Sharding *s, const Tiling *t, const IntVec *groups, Loc loc)
{
    int32_t data = t->dims.n - groups->n;
    bool    alike = true;
    for (int32_t k = 1; k < groups->n; k++)
        alike = alike && groups->v[k] == groups->v[0];
    if (alike && leading_product(t->dims, data) == 1 && plain_kind((Subgroup)groups->v[0]) != SHARDING_TILED) {
        s->kind = plain_kind((Subgroup)groups->v[0]);
        return;
    }
    if (!sizes_are_positive(p, t, loc))
        return;
    IntVec perm = {0}, dims = {0}, kinds = {0};
    for (int32_t k = 0; k < data; k++) {
        vec_push(p->tmp, &perm, k);
        vec_push(p->tmp, &dims, t->dims.v[k]);
    }
    for (int kind = SUBGROUP_MAXIMAL; kind <= SUBGROUP_REPLICATED; kind++) {
        int64_t size = 1;
        for (int32_t k = 0; k < groups->n; k++)
            if (groups->v[k] == kind && t->dims.v[data + k] != 1) {
                vec_push(p->tmp, &perm, data + k);
                size *= t->dims.v[data + k];
            }
        if (size == 1)
            continue;
        vec_push(p->tmp, &dims, size);
        vec_push(p->tmp, &kinds, kind);
    }
    for (int32_t k = 0; k < groups->n; k++)
        if (t->dims.v[data + k] == 1)
            vec_push(p->tmp, &perm, data + k);
    if (t->has_iota && !iota_is_order(t->iota) && !keeps_order(t->dims, (Ints){perm.v, perm.n})) {
        parse_error(p, loc, "subgroups are sorted by kind, but T(...) is no permutation that could be kept");
        return;
    }
    Tiling moved = tiling_transpose(p, t, (Ints){perm.v, perm.n});
    moved.dims = list_ints(p, &dims);
    if (kinds.n == 1 && kinds.v[0] == SUBGROUP_REPLICATED) {
        set_partial(p, s, &moved, loc);
        return;
    }
    if (kinds.n == 1 && kinds.v[0] == SUBGROUP_MANUAL && leading_product(moved.dims, data) == 1) {
        s->kind = SHARDING_MANUAL;
        return;
    }
    s->subgroups = list_ints(p, &kinds);
    if (kinds.n && kinds.v[kinds.n - 1] == SUBGROUP_REPLICATED)
        sort_groups(p, &moved, loc);
    set_tiling(s, &moved);
}

static bool read_tiling(Parser *p, const ShardDraft *d, Tiling *t, Loc loc)
{
    *t = (Tiling){.dims = list_ints(p, d->dims), .has_iota = d->iota_dims};
    int64_t count = wrapped_product(t->dims);
    if (d->iota_dims && d->list)
        parse_error(p, loc, "a sharding lists its devices in one way");
    else if (d->iota_dims) {
        Iota x = {list_ints(p, d->iota_dims), list_ints(p, d->iota_perm)};
        if (!iota_covers(p, x, count, "the device list", loc))
            return false;
        t->iota = iota_canonical(p->a, x.dims, x.perm);
        return true;
    } else if (!d->list || d->list->n < 2)
        parse_error(p, loc, "a tiled sharding has more than one device");
    else if (d->list->n != count)
        parse_error(p, loc, "the sharding has %lld tiles and %d devices", (long long)count, d->list->n);
    else {
        t->devices = list_ints(p, d->list);
        return true;
    }
    return false;
}

/* The reduction of something unreduced: what its metadata says, else a sum. XLA adds it to the metadata each time it reads the text. */
static void add_reduction(Parser *p, Sharding *s)
{
    static const char *const words[] = {[REDUCTION_SUM] = "SUM", [REDUCTION_MAX] = "MAX", [REDUCTION_MIN] = "MIN"};
    s->reduction = REDUCTION_SUM;
    for (int32_t k = 0; k < s->n_meta; k++) {
        const Metadata *md = s->meta[k];
        if (!md->op_type || strcmp(md->op_type, "sdy::reduction_op") != 0 || !md->op_name)
            continue;
        for (Reduction r = REDUCTION_SUM; r <= REDUCTION_MIN; r++)
            if (strcmp(md->op_name, words[r]) == 0)
                s->reduction = r;
    }
    Metadata *md = ARENA_NEW(p->a, Metadata);
    md->op_type = intern_str(p->strings, "sdy::reduction_op");
    md->op_name = intern_str(p->strings, words[s->reduction]);
    const Metadata **all = ARENA_ARRAY(p->a, const Metadata *, s->n_meta + 1);
    for (int32_t k = 0; k < s->n_meta; k++)
        all[k] = s->meta[k];
    all[s->n_meta++] = md;
    s->meta = all;
}

static void fill_old(Parser *p, Sharding *s, const ShardDraft *d, Loc loc)
{
    static const char many[] = "a sharding that is replicated, manual, unknown or unreduced lists no devices";
    bool              listed = d->list != NULL;
    Iota              x = {list_ints(p, d->iota_dims), list_ints(p, d->iota_perm)};
    if (d->iota_dims && !iota_check(p, x, "the device list", loc))
        return;
    if (d->maximal && !d->replicated) {
        s->kind = SHARDING_MAXIMAL;
        if (!listed || d->list->n != 1)
            parse_error(p, loc, "a maximal sharding has one device, found %d", listed ? d->list->n : 0);
        else
            s->device = d->list->v[0];
    } else if (d->replicated || d->manual || d->unknown || d->unreduced) {
        s->kind = d->replicated ? SHARDING_REPLICATED : d->manual ? SHARDING_MANUAL : d->unknown ? SHARDING_UNKNOWN : SHARDING_UNREDUCED;
        if (listed)
            parse_error(p, loc, "%s", many);
    } else if (!d->dims)
        parse_error(p, loc, "this sharding says nothing about devices");
    else if (d->replicate_last && d->has_subgroups)
        parse_error(p, loc, "last_tile_dim_replicate and last_tile_dims exclude each other");
    else {
        Tiling t;
        if (!read_tiling(p, d, &t, loc))
            return;
        if (d->subgroups && d->subgroups->n > t.dims.n)
            parse_error(p, loc, "last_tile_dims has %d entries, the sharding has %d dimensions", d->subgroups->n, t.dims.n);
        else if (d->replicate_last)
            set_partial(p, s, &t, loc);
        else if (d->subgroups)
            set_subgroups(p, s, &t, d->subgroups, loc);
        else
            set_tiling(s, &t);
    }
}

const Sharding *shard_old(Parser *p, const ShardDraft *d, Loc loc)
{
    Sharding *s = ARENA_NEW(p->a, Sharding);
    s->group = d->group;
    s->group_id = d->group_id;
    set_metas(p, s, d->metas);
    fill_old(p, s, d, loc);
    if (s->kind == SHARDING_UNREDUCED || ints_has(s->subgroups, SUBGROUP_UNREDUCED))
        add_reduction(p, s);
    return s;
}

/* ---- named style ---- */

static Reduction reduction_word(Parser *p, const char *word, Loc loc)
{
    if (!word || strcmp(word, "sum") == 0)
        return REDUCTION_SUM;
    if (strcmp(word, "max") == 0)
        return REDUCTION_MAX;
    if (strcmp(word, "min") != 0)
        parse_error(p, loc, "expected 'sum', 'max' or 'min', found '%s'", word);
    return REDUCTION_MIN;
}

static ShardDraft *named_new(Parser *p, MeshDraft *m)
{
    ShardDraft *d = shard_new(p);
    d->mesh = m;
    d->named.kind = SHARDING_NAMED;
    d->named.mesh = m ? m->mesh : NULL;
    p->shard = d;
    return d;
}

static AxisRefs all_axes(Parser *p, const Mesh *m)
{
    AxisRef *v = ARENA_ARRAY(p->a, AxisRef, m->n_axes);
    for (int32_t k = 0; k < m->n_axes; k++)
        v[k].axis = k;
    return (AxisRefs){m->n_axes, v};
}

ShardDraft *named_single(Parser *p, const char *key, Loc loc, int64_t device, const MetaVec *metas)
{
    ShardDraft *d = named_new(p, NULL);
    d->named.mesh = mesh_single(p, key, loc, device);
    set_metas(p, &d->named, metas);
    return d;
}

ShardDraft *named_all(Parser *p, MeshDraft *m, NamedWhole what, const MetaVec *metas)
{
    ShardDraft *d = named_new(p, m);
    if (what == NAMED_MANUAL) {
        d->named.manual = all_axes(p, m->mesh);
        if (m->mesh->n_axes == 0)
            parse_error(p, m->loc, "a mesh without axes has nothing manual");
    }
    set_metas(p, &d->named, metas);
    return d;
}

ShardDraft *named_partly_unreduced(Parser *p, MeshDraft *m, const char *op, Loc op_loc, const AxisVec *axes, const MetaVec *metas)
{
    ShardDraft *d = named_new(p, m);
    d->named.reduction = reduction_word(p, op, op_loc);
    axes_resolve(p, m->mesh, axes, &d->named.unreduced);
    set_metas(p, &d->named, metas);
    return d;
}

ShardDraft *named_unreduced(Parser *p, MeshDraft *m, const char *op, Loc op_loc, const MetaVec *metas)
{
    ShardDraft *d = named_partly_unreduced(p, m, op, op_loc, NULL, metas);
    d->named.unreduced = all_axes(p, m->mesh);
    return d;
}

void named_begin(Parser *p, MeshDraft *m, const NamedDimVec *dims)
{
    ShardDraft *d = named_new(p, m);
    int32_t     n = dims ? dims->n : 0;
    NamedDim   *v = ARENA_ARRAY(p->a, NamedDim, n);
    for (int32_t k = 0; k < n; k++) {
        v[k].open = dims->v[k].open;
        axes_resolve(p, m->mesh, dims->v[k].axes, &v[k].axes);
    }
    d->named.n_named = n;
    d->named.named = v;
}

void named_dim(Parser *p, const AxisVec *axes, bool open)
{
    p->named_dim = (NamedDimDraft){axes, open};
}

/* An attribute that is given twice adds to what the first one said. */
static void more_axes(Parser *p, const Mesh *m, const AxisVec *axes, AxisRefs *to)
{
    AxisRefs more;
    if (!axes_resolve(p, m, axes, &more))
        return;
    AxisRef *v = ARENA_ARRAY(p->a, AxisRef, to->n + more.n);
    for (int32_t k = 0; k < to->n; k++)
        v[k] = to->v[k];
    for (int32_t k = 0; k < more.n; k++)
        v[to->n + k] = more.v[k];
    *to = (AxisRefs){to->n + more.n, v};
}

void named_axes(Parser *p, const char *key, const AxisVec *axes)
{
    ShardDraft *d = p->shard;
    more_axes(p, d->mesh->mesh, axes, strcmp(key, "manual") == 0 ? &d->named.manual : &d->named.replicated);
}

void named_unreduced_axes(Parser *p, const char *op, Loc op_loc, const AxisVec *axes)
{
    ShardDraft *d = p->shard;
    if (op || d->named.unreduced.n == 0)
        d->named.reduction = reduction_word(p, op, op_loc);
    more_axes(p, d->mesh->mesh, axes, &d->named.unreduced);
}

void named_metas(Parser *p, const MetaVec *metas)
{
    shard_metas(p, metas);
    set_metas(p, &p->shard->named, p->shard->metas);
}

const Sharding *shard_named(Parser *p, const ShardDraft *d, Loc loc)
{
    Sharding *s = arena_copy(p->a, &d->named, sizeof d->named);
    int32_t   n = 0;
    const AxisRefs **lists = ARENA_ARRAY(p->tmp, const AxisRefs *, s->n_named + 3);
    for (int32_t k = 0; k < s->n_named; k++)
        lists[n++] = &s->named[k].axes;
    lists[n++] = &s->replicated;
    lists[n++] = &s->unreduced;
    lists[n++] = &s->manual;
    if (axes_disjoint(p, s->mesh, n, lists, loc) && axes_sorted(p, s->replicated, loc) && axes_sorted(p, s->unreduced, loc))
        axes_sorted(p, s->manual, loc);
    if (s->unreduced.n == 0)
        s->reduction = REDUCTION_NONE;
    return s;
}
