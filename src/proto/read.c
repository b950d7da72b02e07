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

/* zlib counts in 32 bits. */
static void feed(z_stream *z, size_t *left)
{
    enum { MOST = 1 << 30 };
    if (z->avail_in > 0)
        return;
    z->avail_in = (uInt)(*left < MOST ? *left : MOST);
    *left -= z->avail_in;
}

/* Is what stands behind a member another one? Padding is not. */
static bool next_member(const z_stream *z)
{
    return z->avail_in >= 2 && z->next_in[0] == 0x1f && z->next_in[1] == 0x8b;
}

static bool is_padding(const uint8_t *p, size_t n)
{
    while (n > 0 && p[n - 1] == 0)
        n--;
    return n == 0;
}

/* Has it become more than what was read of it can mean? A bomb is known by its beginning. */
static bool is_bomb(const Buf *in, size_t left, const z_stream *z, const Buf *out, Diag *d)
{
    int64_t most = host_unpacked_limit((int64_t)(in->n - left - z->avail_in));
    if ((int64_t)out->n > most)
        diag_error(d, LOC_NONE, "the gzip data becomes larger than %lld bytes; if it is meant to, unpack it first", (long long)most);
    return (int64_t)out->n > most;
}

/* All members, one after the other. */
static bool inflate_all(z_stream *z, const Buf *in, Buf *out, Diag *d)
{
    enum { CHUNK = 1 << 16 };
    char   chunk[CHUNK];
    size_t left = in->n;
    int    status = Z_OK;
    while (status == Z_OK) {
        feed(z, &left);
        z->next_out = (Bytef *)chunk;
        z->avail_out = CHUNK;
        status = inflate(z, Z_NO_FLUSH);
        buf_put(out, chunk, CHUNK - z->avail_out);
        if (is_bomb(in, left, z, out, d))
            return false;
        feed(z, &left);
        if (status == Z_STREAM_END && next_member(z))
            status = inflateReset(z);
    }
    size_t behind = z->avail_in + left;
    if (status == Z_STREAM_END && is_padding(z->next_in, behind))
        return true;
    diag_error(d, LOC_NONE, "the gzip data is cut off or damaged");
    return false;
}

static bool gunzip(const Buf *in, Buf *out, Diag *d)
{
    enum { GZIP_WINDOW = 15 + 16 };
    z_stream z = {.next_in = (Bytef *)in->p};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) {
        diag_error(d, LOC_NONE, "there is no memory to unpack gzip data");
        return false;
    }
    bool ok = inflate_all(&z, in, out, d);
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
