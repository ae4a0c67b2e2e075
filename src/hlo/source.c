/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/source.h"

#include "hlo/module.h"
#include "hlo/proto.h"

#include <stdlib.h>
#include <string.h>

bool pod_hlo_source_holds(const char *text, size_t size, const char *word, size_t *at)
{
    const size_t length = strlen(word);
    for (size_t from = 0; from + length <= size;) {
        const char *found = memchr(text + from, word[0], size - length + 1 - from);
        if (found == NULL) {
            return false;
        }
        from = (size_t)(found - text);
        if (memcmp(found, word, length) == 0) {
            if (at != NULL) {
                *at = from;
            }
            return true;
        }
        from++;
    }
    return false;
}

/* ---- what the bytes are ---- */

static const char byte_order_mark[] = "\xef\xbb\xbf";
enum { MARK = sizeof byte_order_mark - 1, LOOKED_AT = 256 };

static bool source_begins(const char *bytes, size_t size, const char *with)
{
    const size_t length = strlen(with);
    return size >= length && memcmp(bytes, with, length) == 0;
}

static bool is_text(const char *bytes, size_t size)
{
    bool text = true;
    for (size_t i = 0; i < size && i < LOOKED_AT; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        text = text && (c >= ' ' || c == '\t' || c == '\r' || c == '\n') && c != 0x7f;
    }
    return text;
}

static pod_status bytes_check(const char *file, const char *bytes, size_t size, pod_error *err)
{
    if (source_begins(bytes, size, "\xff\xfe") || source_begins(bytes, size, "\xfe\xff")) {
        return pod_fail(err, POD_E_INVALID,
                        "'%s' is text in UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)",
                        file);
    }
    if (!is_text(bytes, size)) {
        return pod_fail(err, POD_E_INVALID,
                        "'%s' isn't text, nor a binary HloProto; podsim reads the HLO text that "
                        "as_text() gives",
                        file);
    }
    if (size > (size_t)POD_HLO_TEXT_MAX) {
        return pod_fail(err, POD_E_RANGE, "'%s' is too large: more than 64 MiB of text", file);
    }
    return POD_OK;
}

/* ---- logs ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_end(const char *text, size_t at, size_t size)
{
    while (at < size && is_digit(text[at])) {
        at++;
    }
    return at;
}

/* Where a prefix ends in a line that begins with it, whatever its numbers; 0 if the line doesn't. */
static size_t prefix_end(const char *prefix, size_t length, const char *line, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length;) {
        if (at >= size || is_digit(prefix[i]) != is_digit(line[at])
            || (!is_digit(prefix[i]) && prefix[i] != line[at])) {
            return 0;
        }
        const bool number = is_digit(prefix[i]);
        i = number ? digits_end(prefix, i, length) : i + 1;
        at = number ? digits_end(line, at, size) : at + 1;
    }
    return at;
}

/* What stands before HloModule in its line: a log's words, that is no blanks and no comment alone. */
static size_t log_prefix(const char *text, size_t size, size_t *begin)
{
    size_t module = 0;
    if (!pod_hlo_source_holds(text, size, "HloModule ", &module)) {
        return 0;
    }
    *begin = module;
    while (*begin > 0 && text[*begin - 1] != '\n') {
        (*begin)--;
    }
    const char last = module > *begin ? text[module - 1] : '\n';
    return last == ' ' || last == ':' || last == ']' || last == '>' || last == '\t'
               ? module - *begin
               : 0;
}

static void blank_out(char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text[i] = text[i] == '\n' ? '\n' : ' ';
    }
}

static void prefixes_blank(char *text, size_t size, size_t begin, size_t length)
{
    char prefix[LOOKED_AT];
    memcpy(prefix, text + begin, length);
    blank_out(text, begin);
    for (size_t at = begin; at < size;) {
        blank_out(text + at, prefix_end(prefix, length, text + at, size - at));
        const char *end = memchr(text + at, '\n', size - at);
        at = end == NULL ? size : (size_t)(end - text) + 1;
    }
}

/* Blanks and comments alone are no prefix, and what stands before the first module of a text is one only where its
 * numbers or brackets are a log's. */
static bool is_log(const char *prefix, size_t length)
{
    bool number = false;
    for (size_t i = 0; i < length; i++) {
        number = number || is_digit(prefix[i]);
    }
    return number && length <= LOOKED_AT && memchr(prefix, '/', length) != prefix
           && !pod_hlo_source_holds(prefix, length, "/*", NULL)
           && !pod_hlo_source_holds(prefix, length, "//", NULL);
}

static pod_status binary_read(const char *file, const char *bytes, size_t *size, const char *wanted,
                              char **made, pod_error *err)
{
    pod_text text = {0};
    const pod_status st = pod_hlo_proto_text(file, bytes, *size, wanted, &text, err);
    if (st != POD_OK || text.size == 0) {
        pod_text_free(&text);
        return st;
    }
    *made = text.data;
    *size = text.size;
    return POD_OK;
}

pod_status pod_hlo_source_clean(const char *file, const char *bytes, size_t *size,
                                const char *wanted, char **made, pod_error *err)
{
    size_t begin = 0;
    *made = NULL;
    if (!is_text(bytes, *size) && !source_begins(bytes, *size, "\x1f\x8b")) {
        const pod_status st = binary_read(file, bytes, size, wanted, made, err);
        if (st != POD_OK || *made != NULL) {
            return st;
        }
    }
    POD_TRY(bytes_check(file, bytes, *size, err));
    POD_TRY(pod_hlo_proto_sole(file, wanted, err));
    const bool marked = source_begins(bytes, *size, byte_order_mark);
    const size_t prefix = log_prefix(bytes, *size, &begin);
    const bool log = prefix > 0 && is_log(bytes + begin, prefix);
    if (!marked && !log) {
        return POD_OK;
    }
    *made = malloc(*size);
    if (*made == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a text of %zu bytes", *size);
    }
    memcpy(*made, bytes, *size);
    if (log) {
        prefixes_blank(*made, *size, begin, prefix);
    }
    if (marked) {
        blank_out(*made, MARK);
    }
    return POD_OK;
}

/* ---- other machines ---- */

bool pod_hlo_source_target(const char *target, size_t size)
{
    static const char *const targets[] = {"__cublas", "__cudnn",  "__gpu$",    "__triton",
                                          "triton_",  "cusolver", "hipsolver", "__onednn",
                                          "lapack_",  "blas_"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (source_begins(target, size, targets[i])) {
            return true;
        }
    }
    return false;
}

const char *pod_hlo_source_elsewhere(const char *text, size_t size, size_t *at)
{
    /* Keys of backend_config, kinds of fusions, and names that those compilers give. */
    static const char *const marks[] = {
        "__triton",
        "__gpu$",
        "fusion_backend_config",
        "gemm_backend_config",
        "cudnn_conv_backend_config",
        "collective_backend_config",
        "block_level_fusion_config",
        "wait_on_operation_queues",
        "operation_queue_id",
        "reification_cost",
        "fingerprint_before_lhs",
        "outer_dimension_partitions",
        "onednn_matmul_config",
        "__xnn_fusion",
        "__ynn_fusion",
        "calls=%wrapped_",
        "calls=%parallel_",
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (pod_hlo_source_holds(text, size, marks[i], at)) {
            return marks[i];
        }
    }
    return NULL;
}
