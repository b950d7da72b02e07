/* Several devices, or one and its host: the types behind env->devices, and a table for each exchange.
 *
 *     static const int32_t hlo_groups_0[] = {2, 0, 1};
 *     static const hlo_exchange x_sum_gathered = {HLO_GATHER, 0, -1, 16, 1, hlo_groups_0, 0, 0, "all-reduce", "sum", "f32[4] (f32[4])"}; */
#include "emit/c_text.h"

void c_devices_types(Buf *b)
{
    buf_puts(b, "#ifndef HLO_DEVICES\n"
                "#define HLO_DEVICES\n"
                "enum { HLO_GATHER, HLO_TRADE, HLO_BROADCAST, HLO_PERMUTE, HLO_SEND, HLO_RECEIVE, HLO_INFEED, HLO_OUTFEED };\n"
                "typedef struct hlo_exchange { /* a place where devices meet */\n"
                "    int32_t        kind;     /* GATHER: 1 block in, those of all out; TRADE: block k goes to participant k; BROADCAST: the\n"
                "                                first one's block; PERMUTE: from device to device; SEND, RECEIVE: likewise, at\n"
                "                                times of their own; INFEED, OUTFEED: one array, by rows, from and to the host */\n"
                "    int32_t        step;     /* which of its instruction's exchanges this is */\n"
                "    int64_t        channel;  /* exchanges of one op, channel and step may meet, too; -1: none */\n"
                "    int64_t        bytes;    /* of a block */\n"
                "    int32_t        n_groups; /* of devices that meet */\n"
                "    const int32_t *groups;   /* of each: how many devices, then these; device: replica * partitions + partition */\n"
                "    int32_t        n_pairs;  /* of PERMUTE, SEND, RECEIVE */\n"
                "    const int32_t *pairs;    /* of each: from which device, to which */\n"
                "    const char    *op, *name, *type; /* the instruction */\n"
                "} hlo_exchange;\n"
                "typedef struct hlo_devices { /* one among others */\n"
                "    uint32_t size;                    /* sizeof(hlo_devices) where the caller was compiled */\n"
                "    int32_t  replicas, partitions;    /* how many there are */\n"
                "    int32_t  replica, partition;      /* which one this is */\n"
                "    void    *context;                 /* of exchange */\n"
                "    int (*exchange)(void *context, const hlo_exchange *x, const void *in, void *out); /* 0, or it was not done */\n"
                "    void    *communicator;            /* CUDA: the ncclComm_t of all devices, in order; NULL: exchange does it all */\n"
                "} hlo_devices;\n"
                "#endif\n");
}

/* ---- tables ---- */

static bool same_lists(IntsList x, IntsList y)
{
    bool same = x.n == y.n;
    for (int32_t k = 0; same && k < x.n; k++)
        same = ints_equal(x.v[k], y.v[k]);
    return same;
}

/* The first exchange that has these groups. */
static int32_t first_with(const Program *p, int32_t k)
{
    int32_t first = 0;
    while (!same_lists(p->exchanges[first]->groups, p->exchanges[k]->groups))
        first++;
    return first;
}

/* Lists one after the other, in front of each how many it has. */
static void put_lists(Buf *b, const char *name, int32_t k, IntsList lists, bool counts)
{
    int32_t column = 0;
    buf_printf(b, "static const int32_t hlo_%s_%d[] = {", name, k);
    for (int32_t g = 0; g < lists.n; g++) {
        if (counts)
            buf_printf(b, "%s%d", column++ > 0 ? ", " : "", lists.v[g].n);
        for (int32_t e = 0; e < lists.v[g].n; e++, column++)
            buf_printf(b, "%s%lld", column == 0 ? "" : column % 32 == 0 ? ",\n    " : ", ", (long long)lists.v[g].v[e]);
    }
    buf_puts(b, "};\n");
}

static void put_exchange(Buf *b, const Program *p, int32_t k)
{
    static const char *const kinds[] = {"HLO_GATHER", "HLO_TRADE", "HLO_BROADCAST", "HLO_PERMUTE", "HLO_SEND", "HLO_RECEIVE", "HLO_INFEED", "HLO_OUTFEED"};
    const Exchange          *x = p->exchanges[k];
    int32_t                  groups = first_with(p, k);
    if (groups == k && x->groups.n > 0)
        put_lists(b, "groups", k, x->groups, true);
    if (x->pairs.n > 0)
        put_lists(b, "pairs", k, x->pairs, false);
    buf_printf(b, "static const hlo_exchange %s = {%s, %d, %lld, %lld, %d, ", x->id, kinds[x->kind], x->step, (long long)x->channel,
               (long long)x->bytes, x->groups.n);
    buf_printf(b, x->groups.n > 0 ? "hlo_groups_%d, " : "0, ", groups);
    buf_printf(b, x->pairs.n > 0 ? "%d, hlo_pairs_%d, " : "%d, 0, ", x->pairs.n, k);
    c_string(b, x->op);
    buf_puts(b, ", ");
    c_string(b, x->name);
    buf_puts(b, ", ");
    c_string(b, x->type);
    buf_puts(b, "};\n");
}

void c_exchanges(Buf *b, const Program *p)
{
    if (p->n_exchanges > 0)
        buf_puts(b, "\n// Where devices meet\n");
    for (int32_t k = 0; k < p->n_exchanges; k++)
        put_exchange(b, p, k);
}

const char *c_exchange_failure(const Exchange *x)
{
    const bool host = x->kind == EXCHANGE_INFEED || x->kind == EXCHANGE_OUTFEED;
    return host ? "the host did not do its part" : "the devices did not exchange their blocks";
}
