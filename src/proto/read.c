/* Input by content: text, a message, either of them gzipped. */
#include "config.h"

#include "proto/read.h"

#include <zlib.h>

#include "proto/proto.h"
#include "support/host.h"
#include "text/parse.h"

static bool is_gzip(const Buf *in)
{
    return in->n >= 2 && (uint8_t)in->p[0] == 0x1f && (uint8_t)in->p[1] == 0x8b;
}

/* Half of the machine's memory is the most that a file may become: a bomb ends there. */
static bool inflate_all(z_stream *z, Buf *out, Diag *d)
{
    enum { CHUNK = 1 << 16 };
    char    chunk[CHUNK];
    int64_t limit = host_memory() / 2;
    int     status = Z_OK;
    while (status != Z_STREAM_END) {
        z->next_out = (Bytef *)chunk;
        z->avail_out = CHUNK;
        status = inflate(z, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END) {
            diag_error(d, LOC_NONE, "the gzip data is cut off or damaged");
            return false;
        }
        buf_put(out, chunk, CHUNK - z->avail_out);
        if (status == Z_STREAM_END && z->avail_in > 0) /* gzip files one after the other are a gzip file */
            status = inflateReset(z);
        if ((int64_t)out->n > limit) {
            diag_error(d, LOC_NONE, "the gzip data becomes larger than %lld bytes, half of the memory there is", (long long)limit);
            return false;
        }
    }
    return true;
}

static bool gunzip(const Buf *in, Buf *out, Diag *d)
{
    enum { GZIP_WINDOW = 15 + 16 };
    z_stream z = {.next_in = (Bytef *)in->p, .avail_in = (uInt)in->n};
    if (in->n > UINT32_MAX || inflateInit2(&z, GZIP_WINDOW) != Z_OK) {
        diag_error(d, LOC_NONE, "the gzip data is too long");
        return false;
    }
    bool ok = inflate_all(&z, out, d);
    inflateEnd(&z);
    return ok;
}

bool module_input(Buf *in, Diag *d)
{
    Buf out = {0};
    if (!is_gzip(in))
        return true;
    bool ok = gunzip(in, &out, d);
    buf_free(in);
    *in = out;
    return ok;
}

static void set_source(const Buf *in, Diag *d)
{
    d->text = in->p ? in->p : "";
    d->len = in->n;
}

Module *module_read(const Buf *in, struct Snapshot *s, Diag *d)
{
    if (proto_is(in->p, in->n))
        return proto_read(in->p, in->n, s, d);
    set_source(in, d);
    return parse_module(d->text, in->n, d);
}

Module *module_read_in_place(Buf *in, struct Snapshot *s, Diag *d)
{
    if (proto_is(in->p, in->n))
        return proto_read(in->p, in->n, s, d);
    buf_putc(in, 0); /* and one stands behind every Buf */
    in->n--;
    set_source(in, d);
    return parse_module_in_place(in->p, in->n, d);
}
