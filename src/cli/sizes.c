/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sizes.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 4096, ITEM_MAX = 128 };

static pod_status add_size(pod_cli_sizes *sizes, int64_t bytes, const char *option, pod_error *err)
{
    if (sizes->count == SIZES_MAX) {
        return pod_fail(err, POD_E_USAGE, "%s has more than %d sizes; give fewer", option,
                        SIZES_MAX);
    }
    sizes->bytes[sizes->count++] = bytes;
    return POD_OK;
}

/* from:to:factor. The sizes are from·factor^i as far as they don't exceed `to`. */
static pod_status add_range(pod_cli_sizes *sizes, char *from_text, const char *option,
                            pod_error *err)
{
    char *to_text = strchr(from_text, ':');
    *to_text++ = '\0';
    char *factor_text = strchr(to_text, ':');
    if (factor_text == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "%s '%s:%s' has no factor; a range is FROM:TO:FACTOR, as 1KiB:1GiB:4",
                        option, from_text, to_text);
    }
    *factor_text++ = '\0';
    int64_t from = 0;
    int64_t to = 0;
    int64_t factor = 0;
    pod_status st = pod_parse_bytes(from_text, option, &from, err);
    POD_THEN(st, pod_parse_bytes(to_text, option, &to, err));
    if (st == POD_OK && factor_text[strspn(factor_text, "-0123456789")] != '\0') {
        st = pod_parse_i64(factor_text, "the factor of a range", 2, INT64_MAX, &factor, err);
    } else if (st == POD_OK) {
        st =
            pod_parse_i64(factor_text, "the factor of a range", INT64_MIN, INT64_MAX, &factor, err);
    }
    if (st != POD_OK) {
        return st;
    }
    if (factor < 2) {
        return pod_fail(err, POD_E_USAGE, "%s '%s:%s:%s' never ends; the factor must be at least 2",
                        option, from_text, to_text, factor_text);
    }
    if (from == 0 || from > to) {
        return pod_fail(err, POD_E_USAGE,
                        "%s '%s:%s:%s' holds no sizes; FROM must be at least 1 and at most TO",
                        option, from_text, to_text, factor_text);
    }
    for (int64_t bytes = from; st == POD_OK;) {
        st = add_size(sizes, bytes, option, err);
        if (!pod_mul_i64(bytes, factor, &bytes) || bytes > to) {
            break;
        }
    }
    return st;
}

static pod_status add_item(pod_cli_sizes *sizes, const char *item, size_t length,
                           const char *option, pod_error *err)
{
    char text[ITEM_MAX];
    if (length >= sizeof text) {
        return pod_fail(err, POD_E_USAGE, "%s has an item of %zu characters; give sizes as 64MiB",
                        option, length);
    }
    memcpy(text, item, length);
    text[length] = '\0';
    if (strchr(text, ':') != NULL) {
        return add_range(sizes, text, option, err);
    }
    int64_t bytes = 0;
    POD_TRY(pod_parse_bytes(text, option, &bytes, err));
    return add_size(sizes, bytes, option, err);
}

/* "1,000": three digits of which the first is 0, after a number. As a list of sizes that makes no sense. */
static bool is_thousands(const char *text, const char *item, size_t length)
{
    return item > text && length == 3 && item[0] == '0' && strspn(item, "0123456789") == 3
           && item[-2] >= '0' && item[-2] <= '9';
}

pod_status pod_cli_sizes_parse(const char *text, const char *option, pod_cli_sizes *sizes,
                               pod_error *err)
{
    *sizes = (pod_cli_sizes){.bytes = malloc(SIZES_MAX * sizeof(int64_t))};
    if (sizes->bytes == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the sizes");
    }
    pod_status st = POD_OK;
    for (const char *item = text; st == POD_OK; item++) {
        const size_t length = strcspn(item, ",");
        st = is_thousands(text, item, length) ? pod_fail(
                 err, POD_E_USAGE,
                 "%s '%s' has a separator of thousands; commas are between sizes, so leave it "
                 "out, or give a unit as 64KiB",
                 option, text)
                                              : add_item(sizes, item, length, option, err);
        item += length;
        if (*item == '\0') {
            break;
        }
    }
    return st;
}
