/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pattern.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES_PLAIN = 251, STREAM_VALUES = 1 };

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

pod_status pod_pattern_init(pod_pattern *pattern, pod_dtype dtype, uint64_t seed, int32_t nranks,
                            bool sums, pod_error *err)
{
    const int64_t limit = exact_max(dtype);
    const int64_t share = sums ? limit / nranks : limit;
    *pattern =
        (pod_pattern){.dtype = dtype, .seed = seed, .nranks = nranks, .classes = CLASSES_PLAIN};
    if (share == 0) {
        /* ones in one class of so many that at most `limit` ranks contribute to an element */
        pattern->classes = (int32_t)((nranks + limit - 1) / limit) + 1;
    }
    pattern->value = calloc((size_t)pattern->classes, sizeof *pattern->value);
    if (!pattern->value) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for test data");
    }
    for (int32_t i = 0; i < pattern->classes; i++) {
        if (share == 0) {
            pattern->value[i] = i == 0 ? 1.0F : 0.0F;
        } else {
            const uint64_t bound = share < 1000 ? (uint64_t)share : 1000;
            pattern->value[i] = (float)(1 + pod_rng_below(seed, STREAM_VALUES, (uint64_t)i, bound));
        }
    }
    return POD_OK;
}

void pod_pattern_fini(pod_pattern *pattern)
{
    free(pattern->value);
    pattern->value = NULL;
}

void *pod_pattern_table(const pod_pattern *pattern, int32_t rank)
{
    const size_t classes = (size_t)pattern->classes;
    float *plain = calloc(classes, sizeof *plain);
    void *table = malloc(classes * (size_t)pod_dtype_size(pattern->dtype));
    if (!plain || !table) {
        free(plain);
        free(table);
        return NULL;
    }
    for (size_t class = 0; class < classes; class ++) {
        if (rank >= 0) {
            plain[class] = pattern->value[(class + (size_t)rank) % classes];
            continue;
        }
        for (size_t i = 0; i < classes; i++) {
            const int64_t ranks = pattern->nranks / pattern->classes
                                  + ((int32_t)i < pattern->nranks % pattern->classes ? 1 : 0);
            plain[class] += (float)ranks * pattern->value[(class + i) % classes];
        }
    }
    pod_dtype_from_f32(pattern->dtype, table, plain, pattern->classes);
    free(plain);
    return table;
}

/* Class of an element: the high half of a 32 x 32 bit product maps a hash to [0, classes). */
static inline uint32_t class_of(uint32_t salt, uint32_t classes, int64_t element)
{
    uint32_t hash = ((uint32_t)element ^ (uint32_t)(element >> 32)) * UINT32_C(0x9e3779b1) + salt;
    hash ^= hash >> 15;
    hash *= UINT32_C(0x85ebca77);
    return (uint32_t)(((uint64_t)hash * classes) >> 32);
}

#define PATTERN_LOOPS(type, name)                                                                  \
    static void fill_##name(const type *table, uint32_t salt, uint32_t classes, int64_t first,     \
                            int64_t count, type *out)                                              \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            out[i] = table[class_of(salt, classes, first + i)];                                    \
        }                                                                                          \
    }                                                                                              \
    static int64_t wrong_##name(const type *table, uint32_t salt, uint32_t classes, int64_t first, \
                                int64_t count, const type *data)                                   \
    {                                                                                              \
        int64_t wrong = 0;                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            wrong += data[i] != table[class_of(salt, classes, first + i)];                         \
        }                                                                                          \
        return wrong;                                                                              \
    }

PATTERN_LOOPS(uint8_t, u8)
PATTERN_LOOPS(uint16_t, u16)
PATTERN_LOOPS(uint32_t, u32)

static uint32_t salt_of(const pod_pattern *pattern)
{
    return (uint32_t)pod_rng_u64(pattern->seed, 0, 0);
}

void pod_pattern_fill(const pod_pattern *pattern, const void *table, int64_t first, int64_t count,
                      void *out)
{
    const uint32_t salt = salt_of(pattern);
    const uint32_t classes = (uint32_t)pattern->classes;
    switch (pod_dtype_size(pattern->dtype)) {
    case 1:
        fill_u8(table, salt, classes, first, count, out);
        break;
    case 2:
        fill_u16(table, salt, classes, first, count, out);
        break;
    default:
        fill_u32(table, salt, classes, first, count, out);
        break;
    }
}

int64_t pod_pattern_wrong(const pod_pattern *pattern, const void *table, int64_t first,
                          int64_t count, const void *data)
{
    const uint32_t salt = salt_of(pattern);
    const uint32_t classes = (uint32_t)pattern->classes;
    switch (pod_dtype_size(pattern->dtype)) {
    case 1:
        return wrong_u8(table, salt, classes, first, count, data);
    case 2:
        return wrong_u16(table, salt, classes, first, count, data);
    default:
        return wrong_u32(table, salt, classes, first, count, data);
    }
}
