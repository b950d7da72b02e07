/* --emit=h: what a C or C++ program needs to call the entry. */
#include "emit/c_text.h"

static void put_leaves(Buf *b, const Program *p, const char *what, int32_t n, const ProgramLeaf *v)
{
    if (n == 0)
        return;
    buf_printf(b, "static const hlo_leaf %s_%s[%d] = {\n", p->name, what, n);
    for (int32_t k = 0; k < n; k++) {
        Buf shape = { 0 };
        shape_print(&shape, v[k].shape, true);
        buf_puts(b, "    { ");
        c_string(b, v[k].name);
        buf_puts(b, ", ");
        c_string(b, shape.p);
        buf_printf(b, ", %lld, %d },\n", (long long)v[k].bytes, v[k].alias);
        buf_free(&shape);
    }
    buf_puts(b, "};\n");
}

void c_header(Buf *b, const Program *p, const char *types, const char *functions)
{
    buf_puts(b, "/* HLO module ");
    c_comment_text(b, p->module->name);
    buf_printf(b, " */\n#ifndef HLO_MODULE_%s\n#define HLO_MODULE_%s\n\n#include <stdint.h>\n\n", p->name, p->name);
    buf_puts(b, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    buf_puts(b, types);
    c_env_type(b);
    buf_puts(b, "#ifndef HLO_LEAF\n"
                "#define HLO_LEAF\n"
                "typedef struct hlo_leaf { /* an argument or a result: a dense array */\n"
                "    const char *name, *shape; /* element type, sizes, {minor to major} order of the dimensions */\n"
                "    int64_t bytes;\n"
                "    int32_t alias; /* result: the argument whose memory it may be; argument: that result; -1: none */\n"
                "} hlo_leaf;\n"
                "#endif\n\n");
    buf_printf(b, "#define %s_N_ARGS %d\n#define %s_N_RESULTS %d\n", p->name, p->n_args, p->name, p->n_results);
    buf_printf(b, "#define %s_SCRATCH_BYTES INT64_C(%lld)\n#define %s_SCRATCH_ALIGN %d\n\n", p->name, (long long)p->scratch_bytes, p->name,
               PROGRAM_ALIGN);
    if (devices_n(p->on) > 1)
        buf_printf(b, "#define %s_REPLICAS %lld\n#define %s_PARTITIONS %lld\n\n", p->name, (long long)p->on.replicas, p->name,
                   (long long)p->on.partitions);
    put_leaves(b, p, "args", p->n_args, p->args);
    put_leaves(b, p, "results", p->n_results, p->results);
    buf_printf(b, "\nextern const uint64_t %s_scratch_bytes;\n\n"
                  "/* 0, or 1 with a text in env->error. Reentrant: calls at the same time need a scratch each. */\n"
                  "int %s_run(const hlo_env *env, const void *const *args, void *const *results, void *scratch);\n%s\n",
               p->name, p->name, functions);
    buf_puts(b, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}
