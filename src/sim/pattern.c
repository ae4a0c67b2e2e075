/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pattern.h"

#include "base/rng.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES_PLAIN = 251, STREAM_VALUES = 1, RUN_ELEMENTS = 64 };

/* Largest integer up to which every integer is exact. */
static int64_t exact_max(pod_dtype dtype)
{
    switch (dtype) {
    case POD_DTYPE_BF16:
        return 256;
    case POD_DTYPE_F32:
        return INT64_C(1) << 24;
    case POD_DTYPE_INT8:
        return 127;
    case POD_DTYPE_FP8:
        return 16;
    case POD_DTYPE_FP8_E5M2:
    case POD_DTYPE_COUNT:
        break;
    }
    return 8;
}

static void values_draw(const pod_pattern *pattern, int64_t share, float *value)
{
    for (int32_t i = 0; i < pattern->classes; i++) {
        if (share == 0) {
            value[i] = i == 0 ? 1.0F : 0.0F;
        } else {
            const uint64_t bound = share < 1000 ? (uint64_t)share : 1000;
            value[i] = (float)(1 + pod_rng_below(pattern->seed, STREAM_VALUES, (uint64_t)i, bound));
        }
    }
}

/* sum[class] over all ranks, of which every period of `classes` contributes all values once. */
static void sums_add(const pod_pattern *pattern, const float *value, float *sum)
{
    const int32_t classes = pattern->classes;
    const int32_t rest = pattern->nranks % classes;
    float all = 0.0F;
    for (int32_t i = 0; i < classes; i++) {
        all += (float)(pattern->nranks / classes) * value[i];
    }
    for (int32_t class = 0; class < classes; class ++) {
        sum[class] = all;
        for (int32_t i = 0; i < rest; i++) {
            sum[class] += value[(class + i) % classes];
        }
    }
}

/* value[i mod classes] for i < entries, encoded; NULL when memory is out. */
static unsigned char *table_new(const pod_pattern *pattern, const float *value, size_t entries)
{
    float *plain = malloc(entries * sizeof *plain);
    unsigned char *table = malloc(entries * (size_t)pod_dtype_size(pattern->dtype));
    if (plain && table) {
        for (size_t i = 0; i < entries; i++) {
            plain[i] = value[i % (size_t)pattern->classes];
        }
        pod_dtype_from_f32(pattern->dtype, table, plain, (int64_t)entries);
    } else {
        free(table);
        table = NULL;
    }
    free(plain);
    return table;
}

pod_status pod_pattern_init(pod_pattern *pattern, pod_dtype dtype, uint64_t seed, int32_t nranks,
                            bool sums, pod_error *err)
{
    const int64_t limit = exact_max(dtype);
    const int64_t share = sums ? limit / nranks : limit;
    *pattern =
        (pod_pattern){.dtype = dtype, .seed = seed, .nranks = nranks, .classes = CLASSES_PLAIN};
    if (share == 0) {
        /* ones in one class of so many that at most `limit` ranks contribute to an element */
        pattern->classes = (int32_t)pod_ceil_div(nranks, limit);
    }
    const size_t classes = (size_t)pattern->classes;
    float *value = calloc(2 * classes, sizeof *value);
    if (value) {
        values_draw(pattern, share, value);
        sums_add(pattern, value, value + classes);
        pattern->own = table_new(pattern, value, 2 * classes + RUN_ELEMENTS);
        pattern->sum = table_new(pattern, value + classes, classes + RUN_ELEMENTS);
    }
    free(value);
    if (!pattern->own || !pattern->sum) {
        pod_pattern_fini(pattern);
        return pod_fail(err, POD_E_NOMEM, "out of memory for test data");
    }
    return POD_OK;
}

void pod_pattern_fini(pod_pattern *pattern)
{
    free(pattern->own);
    free(pattern->sum);
    pattern->own = NULL;
    pattern->sum = NULL;
}

const void *pod_pattern_table(const pod_pattern *pattern, int32_t rank)
{
    const size_t size = (size_t)pod_dtype_size(pattern->dtype);
    return rank < 0 ? pattern->sum : pattern->own + (size_t)(rank % pattern->classes) * size;
}

/* Classes of the elements of a run count up from a hash of the run's number, so that a run is a
 * piece of the (periodic) table and can be copied and compared as memory. */
static size_t run_class(const pod_pattern *pattern, uint64_t salt, int64_t run)
{
    uint64_t hash = ((uint64_t)run + salt) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(((hash >> 32) * (uint64_t)pattern->classes) >> 32);
}

/* Elements of the vector from `element` on that lie in one run, at most `count`. */
typedef struct run_piece {
    const unsigned char *from; /* in the table */
    int64_t count;
} run_piece;

static run_piece piece_at(const pod_pattern *pattern, uint64_t salt, const void *table,
                          int64_t element, int64_t count)
{
    const int64_t within = element % RUN_ELEMENTS;
    const int64_t rest = RUN_ELEMENTS - within;
    const size_t first = run_class(pattern, salt, element / RUN_ELEMENTS) + (size_t)within;
    const unsigned char *bytes = table;
    return (run_piece){.from = bytes + first * (size_t)pod_dtype_size(pattern->dtype),
                       .count = rest < count ? rest : count};
}

static uint64_t salt_of(const pod_pattern *pattern)
{
    return pod_rng_u64(pattern->seed, 0, 0);
}

void pod_pattern_fill(const pod_pattern *pattern, const void *table, int64_t first, int64_t count,
                      void *out)
{
    const uint64_t salt = salt_of(pattern);
    const size_t size = (size_t)pod_dtype_size(pattern->dtype);
    unsigned char *to = out;
    while (count > 0) {
        const run_piece piece = piece_at(pattern, salt, table, first, count);
        memcpy(to, piece.from, (size_t)piece.count * size);
        to += (size_t)piece.count * size;
        first += piece.count;
        count -= piece.count;
    }
}

int64_t pod_pattern_wrong(const pod_pattern *pattern, const void *table, int64_t first,
                          int64_t count, const void *data)
{
    const uint64_t salt = salt_of(pattern);
    const size_t size = (size_t)pod_dtype_size(pattern->dtype);
    const unsigned char *at = data;
    int64_t wrong = 0;
    while (count > 0) {
        const run_piece piece = piece_at(pattern, salt, table, first, count);
        if (memcmp(at, piece.from, (size_t)piece.count * size) != 0) {
            for (int64_t i = 0; i < piece.count; i++) {
                wrong += memcmp(at + (size_t)i * size, piece.from + (size_t)i * size, size) != 0;
            }
        }
        at += (size_t)piece.count * size;
        first += piece.count;
        count -= piece.count;
    }
    return wrong;
}
