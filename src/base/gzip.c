/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Unpack all members. @param[out] out  heap, also after an error */
static pod_status inflate_all(const char *name, z_stream *stream, size_t most, char **out,
                              size_t *used, pod_error *err)
{
    size_t room = 1 << 16;
    int said = Z_OK;
    *used = 0;
    while (stream->avail_in > 0 || said != Z_STREAM_END) {
        if (said == Z_STREAM_END && inflateReset(stream) != Z_OK) {
            return pod_fail(err, POD_E_INVALID, "%s is damaged gzip data", name);
        }
        if (*out == NULL || *used == room) {
            room = *out == NULL ? room : 2 * room;
            char *grown = realloc(*out, room + 1);
            if (grown == NULL) {
                return pod_fail(err, POD_E_NOMEM, "no memory to unpack %s", name);
            }
            *out = grown;
        }
        const size_t before = *used;
        stream->next_out = (unsigned char *)*out + *used;
        stream->avail_out = (unsigned)(room - *used);
        said = inflate(stream, Z_NO_FLUSH);
        *used = room - stream->avail_out;
        if (said != Z_OK && said != Z_STREAM_END && !(said == Z_BUF_ERROR && *used > before)) {
            return pod_fail(err, POD_E_INVALID, "%s is damaged gzip data, or cut", name);
        }
        if (*used > most) {
            return pod_fail(err, POD_E_INVALID, "%s unpacks to more than %zu MiB", name,
                            most >> 20);
        }
    }
    return POD_OK;
}

pod_status pod_gunzip(const char *name, char **data, size_t *size, size_t most, pod_error *err)
{
    enum { GZIP_ONLY = 16 };
    char *out = NULL;
    size_t used = 0;
    if (*size < 2 || (*data)[0] != '\x1f' || (*data)[1] != '\x8b') {
        return POD_OK;
    }
    z_stream stream = {.next_in = (unsigned char *)*data, .avail_in = (unsigned)*size};
    if (*size > UINT32_MAX || inflateInit2(&stream, MAX_WBITS + GZIP_ONLY) != Z_OK) {
        return pod_fail(err, POD_E_NOMEM, "no memory to unpack %s", name);
    }
    const pod_status st = inflate_all(name, &stream, most, &out, &used, err);
    (void)inflateEnd(&stream);
    if (st != POD_OK) {
        free(out);
        return st;
    }
    free(*data);
    *data = out;
    out[used] = '\0';
    *size = used;
    return POD_OK;
}
