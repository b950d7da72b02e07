/* The text of shardings, meshes, replica groups, origins and the other attributes of ir/attr_rare.h, as XLA writes it. Every
 * function writes the value alone. Source: reference text 5.4, 5.8, 6.1, 6.3, 6.4, 8.2. */
#include "text/print_rare.h"

#include "ir/numeric.h"
#include "text/print.h"
#include "text/print_value.h"

/* ---- devices and meshes ---- */

/* "2,1,4" */
static void print_list(Buf *b, Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        buf_printf(b, k > 0 ? ",%lld" : "%lld", (long long)x.v[k]);
}

/* "[4]", "[2,2]T(1,0)"; one device is "[1]". */
static void print_iota(Buf *b, Iota x)
{
    buf_putc(b, '[');
    print_list(b, x.dims);
    buf_puts(b, x.dims.n == 0 ? "1]" : "]");
    if (x.dims.n > 1) {
        buf_puts(b, "T(");
        print_list(b, x.perm);
        buf_putc(b, ')');
    }
}

static void print_axis_name(Buf *b, const char *name)
{
    buf_putc(b, '\'');
    buf_put(b, name, intern_len(name));
    buf_putc(b, '\'');
}

static void print_mesh(Buf *b, const Mesh *m)
{
    if (m->kind == MESH_SINGLE_DEVICE) {
        buf_printf(b, "single_device[device_id=%lld]", (long long)m->device);
        return;
    }
    buf_puts(b, "mesh[");
    for (int32_t k = 0; k < m->n_axes; k++) {
        buf_puts(b, k > 0 ? "," : "");
        print_axis_name(b, m->axes[k].name);
        buf_printf(b, "=%lld", (long long)m->axes[k].size);
    }
    buf_putc(b, ']');
    if (m->has_iota ? m->iota.dims.n > 1 : m->devices.n > 0) {
        buf_puts(b, ", device_ids=(");
        if (m->has_iota)
            print_iota(b, m->iota);
        else
            print_list(b, m->devices);
        buf_putc(b, ')');
    }
}

static void print_axes(Buf *b, const Mesh *m, AxisRefs x, const char *separator)
{
    for (int32_t k = 0; k < x.n; k++) {
        buf_puts(b, k > 0 ? separator : "");
        print_axis_name(b, m->axes[x.v[k].axis].name);
        if (x.v[k].size != 0)
            buf_printf(b, ":(%lld)%lld", (long long)x.v[k].pre, (long long)x.v[k].size);
    }
}

void print_replica_groups(Buf *b, const ReplicaGroups *g)
{
    switch (g->version) {
    case GROUPS_LISTS:
        buf_putc(b, '{');
        for (int32_t k = 0; k < g->lists.n; k++) {
            buf_puts(b, k > 0 ? "," : "");
            print_ints(b, g->lists.v[k]);
        }
        buf_putc(b, '}');
        return;
    case GROUPS_IOTA:
        buf_printf(b, "[%lld,%lld]<=", (long long)g->count, (long long)g->size);
        print_iota(b, g->iota);
        return;
    case GROUPS_MESH:
        print_mesh(b, g->mesh);
        buf_puts(b, " {");
        print_axes(b, g->mesh, g->axes, ",");
        buf_putc(b, '}');
        return;
    }
    die("replica groups of version %d", (int)g->version);
}

/* ---- shardings ---- */

static const char *const subgroup_names[] = {
    [SUBGROUP_MAXIMAL] = "maximal", [SUBGROUP_MANUAL] = "manual", [SUBGROUP_UNREDUCED] = "unreduced", [SUBGROUP_REPLICATED] = "replicated"};
/* "{..}" for one entry, "{{..}, {..}}" for several or when list asks for it. */
static void print_sharding_metadata(Buf *b, const char *before, const Sharding *s, bool list)
{
    if (s->n_meta == 0)
        return;
    bool braces = list || s->n_meta > 1;
    buf_puts(b, before);
    buf_puts(b, braces ? "metadata={" : "metadata=");
    for (int32_t k = 0; k < s->n_meta; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        print_metadata(b, s->meta[k]);
    }
    buf_puts(b, braces ? "}" : "");
}

static void print_tiled(Buf *b, const Sharding *s)
{
    buf_puts(b, "devices=[");
    print_list(b, s->dims);
    buf_putc(b, ']');
    if (s->has_iota) {
        buf_puts(b, "<=");
        print_iota(b, s->iota);
    } else {
        print_list(b, s->devices);
    }
    buf_puts(b, s->replicate_last ? " last_tile_dim_replicate" : "");
    for (int32_t k = 0; k < s->subgroups.n; k++) {
        buf_puts(b, k > 0 ? ", " : " last_tile_dims={");
        buf_puts(b, subgroup_names[s->subgroups.v[k]]);
    }
    buf_puts(b, s->subgroups.n > 0 ? "}" : "");
}

/* The axes hold all devices; axes of size 1 need not be among them. */
static bool is_whole_mesh(const Mesh *m, AxisRefs x)
{
    uint64_t all = 1, held = 1;
    for (int32_t k = 0; k < m->n_axes; k++)
        all *= (uint64_t)m->axes[k].size;
    for (int32_t k = 0; k < x.n; k++)
        held *= (uint64_t)(x.v[k].size != 0 ? x.v[k].size : m->axes[x.v[k].axis].size);
    return x.n > 0 && held == all && (all != 0 || x.n == m->n_axes);
}

/* Lower-case word of a reduction that is written: sum is not. */
static const char *reduction_word(Reduction r)
{
    return r == REDUCTION_MAX ? "max" : r == REDUCTION_MIN ? "min" : "";
}

static void print_axis_list(Buf *b, const Sharding *s, const char *key, const char *word, AxisRefs x)
{
    if (x.n == 0)
        return;
    buf_printf(b, ", %s=%s{", key, word);
    print_axes(b, s->mesh, x, ", ");
    buf_putc(b, '}');
}

/* Without dimensions, one word says what the whole mesh does. */
static bool print_named_word(Buf *b, const Sharding *s)
{
    const char *word = reduction_word(s->reduction);
    if (s->n_named > 0)
        return false;
    if (is_whole_mesh(s->mesh, s->manual))
        buf_puts(b, ", manual");
    else if (is_whole_mesh(s->mesh, s->unreduced)) {
        buf_printf(b, ", unreduced%s%s", word[0] != '\0' ? "=" : "", word);
        if (s->unreduced.n < s->mesh->n_axes) {
            buf_putc(b, '{');
            print_axes(b, s->mesh, s->unreduced, ", ");
            buf_putc(b, '}');
        }
    } else if (s->replicated.n == 0 && s->unreduced.n == 0 && s->manual.n == 0)
        buf_puts(b, ", replicated");
    else
        return false;
    return true;
}

static void print_named(Buf *b, const Sharding *s)
{
    print_mesh(b, s->mesh);
    if (s->mesh->kind == MESH_SINGLE_DEVICE || print_named_word(b, s))
        return;
    buf_puts(b, ", [");
    for (int32_t k = 0; k < s->n_named; k++) {
        buf_puts(b, k > 0 ? ", {" : "{");
        print_axes(b, s->mesh, s->named[k].axes, ", ");
        if (s->named[k].open)
            buf_puts(b, s->named[k].axes.n > 0 ? ", ?" : "?");
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
    print_axis_list(b, s, "replicated", "", s->replicated);
    print_axis_list(b, s, "unreduced", reduction_word(s->reduction), s->unreduced);
    print_axis_list(b, s, "manual", "", s->manual);
}

static void print_sharding_tuple(Buf *b, const Sharding *s, bool metadata)
{
    buf_putc(b, '{');
    for (int32_t k = 0; k < s->n_elems; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        if (k > 0 && k % 5 == 0)
            buf_printf(b, "/*index=%d*/", (int)k);
        print_sharding(b, s->elems[k], metadata);
    }
    buf_putc(b, '}');
}

void print_sharding(Buf *b, const Sharding *s, bool metadata)
{
    if (s->kind == SHARDING_TUPLE) {
        print_sharding_tuple(b, s, metadata);
        return;
    }
    buf_putc(b, '{');
    switch (s->kind) {
    case SHARDING_REPLICATED: buf_puts(b, "replicated"); break;
    case SHARDING_MANUAL: buf_puts(b, "manual"); break;
    case SHARDING_UNKNOWN: buf_puts(b, "unknown"); break;
    case SHARDING_UNREDUCED: buf_puts(b, "unreduced"); break;
    case SHARDING_MAXIMAL: buf_printf(b, "maximal device=%lld", (long long)s->device); break;
    case SHARDING_TILED: print_tiled(b, s); break;
    case SHARDING_NAMED: print_named(b, s); break;
    case SHARDING_TUPLE: break;
    }
    if (s->group != GROUP_NONE)
        buf_printf(b, " %s %lld", s->group == GROUP_SHARD_AS ? "shard_as" : "shard_like", (long long)s->group_id);
    if (metadata)
        print_sharding_metadata(b, s->kind == SHARDING_NAMED ? ", " : " ", s, s->kind == SHARDING_NAMED);
    buf_putc(b, '}');
}

/* Without metadata, whatever is asked for. */
void print_domain(Buf *b, const Domain *x)
{
    buf_puts(b, "{kind=\"sharding\", entry=");
    print_sharding(b, x->entry, false);
    buf_puts(b, ", exit=");
    print_sharding(b, x->exit, false);
    buf_putc(b, '}');
}

/* ---- numbers for people and for accuracy ---- */

void print_statistics(Buf *b, const Statistics *s)
{
    buf_printf(b, "{visualizing_index=%lld", (long long)s->visualizing_index);
    for (int32_t k = 0; k < s->n; k++) {
        buf_printf(b, ",%s=", s->v[k].name);
        number_print_g(b, 6, s->v[k].value);
    }
    buf_putc(b, '}');
}

bool accuracy_is_default(const Accuracy *x)
{
    return !x->highest && !x->has_tolerance;
}

void print_accuracy(Buf *b, const Accuracy *x)
{
    if (!x->has_tolerance) {
        buf_puts(b, x->highest ? "{mode=highest}" : "{mode=default}");
        return;
    }
    buf_puts(b, "{tolerance={atol=");
    number_print_g(b, 6, x->atol);
    buf_puts(b, ",rtol=");
    number_print_g(b, 6, x->rtol);
    buf_printf(b, ",ulps=%lld}}", (long long)x->ulps);
}

/* ---- sparse and scaled operands of dots ---- */

static void print_sparsity_side(Buf *b, const char *side, const SparsitySide *x)
{
    buf_printf(b, "%s={sparsity=%lldx%lld dimension=%lld stride=%lld idx=%lld}", side, (long long)x->nonzero, (long long)x->block,
               (long long)x->dimension, (long long)x->stride, (long long)x->operand);
}

void print_sparsity(Buf *b, const Sparsity *x)
{
    buf_putc(b, '{');
    if (x->lhs.given)
        print_sparsity_side(b, "lhs", &x->lhs);
    if (x->rhs.given)
        print_sparsity_side(b, x->lhs.given ? " rhs" : "rhs", &x->rhs);
    buf_putc(b, '}');
}

static void print_by(Buf *b, const char *key, Ints x)
{
    for (int32_t k = 0; k < x.n; k++)
        buf_printf(b, "%s%lld", k > 0 ? "x" : key, (long long)x.v[k]);
}

static void print_scaling_side(Buf *b, const char *side, const ScalingSide *x)
{
    buf_printf(b, "%s={scale_idx=%lld", side, (long long)(x->has_scale ? x->scale : 0));
    if (x->has_zero)
        buf_printf(b, " zero_idx=%lld", (long long)x->zero);
    print_by(b, " strides=", x->strides);
    print_by(b, " steps=", x->steps);
    buf_putc(b, '}');
}

void print_scaling(Buf *b, const Scaling *x)
{
    buf_putc(b, '{');
    if (x->lhs.given)
        print_scaling_side(b, "lhs", &x->lhs);
    if (x->rhs.given)
        print_scaling_side(b, x->lhs.given ? " rhs" : "rhs", &x->rhs);
    buf_putc(b, '}');
}

/* ---- origins ---- */

/* Names stand as they are: XLA does not escape them. */
static void print_bare_string(Buf *b, const char *s)
{
    buf_putc(b, '"');
    buf_put(b, s, intern_len(s));
    buf_putc(b, '"');
}

static void print_origin_array(Buf *b, const OriginArray *x)
{
    buf_putc(b, '{');
    if (x->known) {
        print_bare_string(b, x->name);
        if (x->index.n > 0) {
            buf_putc(b, ' ');
            print_ints(b, x->index);
        }
    }
    buf_putc(b, '}');
}

static void print_origin_node(Buf *b, const OriginNode *x)
{
    if (x->leaf) {
        print_origin_array(b, &x->array);
        return;
    }
    buf_putc(b, '(');
    for (int32_t k = 0; k < x->n; k++) {
        buf_puts(b, k > 0 ? ", " : "");
        print_origin_node(b, &x->elems[k]);
    }
    buf_putc(b, ')');
}

void print_origin(Buf *b, const Origin *o)
{
    buf_putc(b, '{');
    print_origin_node(b, &o->tree);
    if (o->call != NULL) {
        buf_puts(b, ",[");
        print_bare_string(b, o->call);
        buf_putc(b, ']');
    }
    buf_putc(b, '}');
}

/* ---- tables of the header ---- */

/* The text of a module inside a string: two levels of blanks before every line that is not empty, quotes and backslashes escaped. */
static void print_quoted_module(Buf *b, const Module *m, const PrintOptions *outer)
{
    PrintOptions o = print_options_default();
    o.large_constants = outer->large_constants;
    Buf          text = {0};
    print_module(&text, m, &o);
    for (size_t k = 0; k < text.n; k++) {
        if ((k == 0 || text.p[k - 1] == '\n') && text.p[k] != '\n')
            print_levels(b, outer->indent + 2);
        if (text.p[k] == '"' || text.p[k] == '\\')
            buf_putc(b, '\\');
        buf_putc(b, text.p[k]);
    }
    buf_free(&text);
}

void print_origin_table(Buf *b, const OriginTable *t, const PrintOptions *o)
{
    buf_puts(b, "{\n");
    for (int32_t k = 0; k < t->n; k++) {
        print_levels(b, o->indent + 1);
        print_origin_array(b, &t->v[k].old);
        buf_puts(b, " : ");
        print_origin_array(b, &t->v[k].replacement);
        if (t->v[k].module != NULL) {
            buf_puts(b, ",\n");
            print_levels(b, o->indent + 1);
            buf_puts(b, "\"\n");
            print_quoted_module(b, t->v[k].module, o);
            buf_putc(b, '\n');
            print_levels(b, o->indent + 1);
            buf_putc(b, '"');
        }
        buf_putc(b, '\n');
    }
    buf_puts(b, "}\n");
}

static void put_debug_key(Buf *b, bool *more, const char *text)
{
    buf_puts(b, *more ? "," : "");
    buf_puts(b, text);
    *more = true;
}

static void print_debug_attr(Buf *b, const DebugAttr *x)
{
    bool more = false;
    buf_putc(b, '{');
    if (x->log_mode != LOG_MODE_NONE)
        put_debug_key(b, &more, x->log_mode == LOG_MODE_DEFAULT ? "log_mode=default" : "log_mode=fusion_debugger");
    if (x->callback_id != 0) {
        put_debug_key(b, &more, "callback_id=");
        buf_printf(b, "%lld", (long long)x->callback_id);
    }
    if (x->partitioned)
        put_debug_key(b, &more, "partitioned=true");
    if (x->op_id != 0) {
        put_debug_key(b, &more, "op_id=");
        buf_printf(b, "%lld", (long long)x->op_id);
    }
    buf_putc(b, '}');
}

void print_debug_table(Buf *b, const DebugTable *t, int32_t indent)
{
    buf_puts(b, "{\n");
    for (int32_t k = 0; k < t->n; k++) {
        print_levels(b, indent + 1);
        print_origin_array(b, &t->v[k].array);
        buf_puts(b, ":(");
        for (int32_t j = 0; j < t->v[k].n; j++) {
            buf_puts(b, j > 0 ? "," : "");
            print_debug_attr(b, &t->v[k].v[j]);
        }
        buf_puts(b, k + 1 < t->n ? "),\n" : ")\n");
    }
    buf_putc(b, '}');
}
