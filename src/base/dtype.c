/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include "base/names.h"

#include <stdbool.h>
#include <string.h>

static const char *const dtype_names[] = {
#define NAME(id, name, bytes) name,
    POD_DTYPE_LIST(NAME)
#undef NAME
};

static const int dtype_sizes[] = {
#define SIZE(id, name, bytes) bytes,
    POD_DTYPE_LIST(SIZE)
#undef SIZE
};

int pod_dtype_size(pod_dtype dtype)
{
    POD_ASSERT((unsigned)dtype < POD_DTYPE_COUNT);
    return dtype_sizes[dtype];
}

const char *pod_dtype_name(pod_dtype dtype)
{
    POD_ASSERT((unsigned)dtype < POD_DTYPE_COUNT);
    return dtype_names[dtype];
}

/* Names of JAX and PyTorch. */
static const pod_alias dtype_aliases[] = {
    {"float32",       "f32"     },
    {"fp32",          "f32"     },
    {"float",         "f32"     },
    {"bfloat16",      "bf16"    },
    {"s8",            "int8"    },
    {"i8",            "int8"    },
    {"float8",        "fp8"     },
    {"float8_e4m3fn", "fp8"     },
    {"float8_e4m3",   "fp8"     },
    {"f8e4m3fn",      "fp8"     },
    {"fp8_e4m3",      "fp8"     },
    {"float8_e5m2",   "fp8_e5m2"},
    {"f8e5m2",        "fp8_e5m2"},
};

pod_status pod_dtype_parse(const char *text, pod_dtype *dtype, pod_error *err)
{
    const char *meant = pod_alias_name(dtype_aliases, sizeof dtype_aliases / sizeof *dtype_aliases,
                                       text, strlen(text));
    for (int i = 0; i < POD_DTYPE_COUNT; i++) {
        if (strcmp(meant != NULL ? meant : text, dtype_names[i]) == 0) {
            *dtype = (pod_dtype)i;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "dtype", text, dtype_names, POD_DTYPE_COUNT);
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* condition ? yes : no as arithmetic. A ternary would do if compilers did not keep the branch for
 * the sake of floating-point traps; every conversion below is free of branches, so that the loops
 * over them become vector code. Magnitudes are compared as int32_t, which plain SSE2 can. */
static inline uint32_t choose(bool condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0U - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline bool above(uint32_t magnitude, uint32_t limit)
{
    return (int32_t)magnitude > (int32_t)limit;
}

enum {
    F32_SIGN_SHIFT_8 = 24,  /* moves the sign of an f32 to the top of 8 bits */
    F32_SIGN_SHIFT_16 = 16, /* the same for 16 bits */
    F32_MANTISSA_BITS = 23,
};

static const uint32_t f32_abs = 0x7fffffffU;
static const uint32_t f32_infinity = 0x7f800000U;

static inline uint16_t bf16_from_f32(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const uint32_t quiet = ((bits >> F32_SIGN_SHIFT_16) & 0x8000U) | 0x7fc0U;
    return (uint16_t)choose(above(bits & f32_abs, f32_infinity), quiet, rounded);
}

static inline float bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

/* An 8-bit float format: what differs between E4M3FN and E5M2. */
struct fp8_format {
    int mantissa_bits;
    uint32_t bias;     /* of the exponent */
    uint32_t largest;  /* bits of the largest finite value */
    uint32_t overflow; /* bits of what overflow gives */
    uint32_t nan;      /* bits of the NaN */
};

static const struct fp8_format e4m3fn = {3, 7, 0x7e, 0x7f, 0x7f};
static const struct fp8_format e5m2 = {2, 15, 0x7b, 0x7c, 0x7e};

/* Normal results: add half of the last kept place (ties to even), cut, move the exponent's bias.
 * Subnormal results: adding 2^23 units of the last place to the value makes the FPU round it there.
 */
static inline uint8_t fp8_from_f32(float value, struct fp8_format format)
{
    const int cut = F32_MANTISSA_BITS - format.mantissa_bits;
    const uint32_t rebias = 127U - format.bias;
    const uint32_t bits = bits_of(value);
    const uint32_t magnitude = bits & f32_abs;
    const uint32_t half = (1U << (cut - 1)) - 1U + ((magnitude >> cut) & 1U);
    const uint32_t normal = ((magnitude + half) >> cut) - (rebias << format.mantissa_bits);
    const uint32_t clamped = choose(above(normal, format.largest), format.overflow, normal);
    const uint32_t magic = (rebias + 1U + (uint32_t)cut) << F32_MANTISSA_BITS;
    const uint32_t tiny = bits_of(float_of(magnitude) + float_of(magic)) - magic;
    const uint32_t smallest_normal = (rebias + 1U) << F32_MANTISSA_BITS;
    const uint32_t finite = choose(above(smallest_normal, magnitude), tiny, clamped);
    const uint32_t code = choose(above(magnitude, f32_infinity), format.nan, finite);
    return (uint8_t)(code | ((bits >> F32_SIGN_SHIFT_8) & 0x80U));
}

static inline float fp8_to_f32(uint8_t bits, struct fp8_format format)
{
    const int cut = F32_MANTISSA_BITS - format.mantissa_bits;
    const uint32_t rebias = 127U - format.bias;
    const uint32_t magnitude = bits & 0x7fU;
    const uint32_t sign = (uint32_t)(bits & 0x80U) << F32_SIGN_SHIFT_8;
    const float unit =
        float_of((rebias + 1U - (uint32_t)format.mantissa_bits) << F32_MANTISSA_BITS);
    const uint32_t tiny = bits_of((float)(int32_t)magnitude * unit);
    const uint32_t normal = (magnitude << cut) + (rebias << F32_MANTISSA_BITS);
    const uint32_t finite = choose(above(1U << format.mantissa_bits, magnitude), tiny, normal);
    const bool infinite = magnitude == format.overflow && format.overflow != format.nan;
    const uint32_t beyond = choose(infinite, f32_infinity, 0x7fc00000U);
    return float_of(choose(above(magnitude, format.largest), beyond, finite) | sign);
}

/* Magnitudes are cut at 256, rounded by adding 2^23, then limited to 127, or 128 below zero. */
static inline int8_t int8_from_f32(float value)
{
    const uint32_t large = 0x43800000U;
    const uint32_t magic = 0x4b000000U;
    const uint32_t bits = bits_of(value);
    const uint32_t sign = bits >> 31;
    const uint32_t magnitude = bits & f32_abs;
    const uint32_t cut = choose(above(magnitude, large), large, magnitude);
    const uint32_t rounded = bits_of(float_of(cut) + float_of(magic)) - magic;
    const uint32_t known = choose(above(magnitude, f32_infinity), 0, rounded);
    const uint32_t limited = choose(above(known, 127U + sign), 127U + sign, known);
    return (int8_t)(int32_t)((limited ^ (0U - sign)) + sign);
}

uint16_t pod_bf16_from_f32(float value)
{
    return bf16_from_f32(value);
}

float pod_bf16_to_f32(uint16_t bits)
{
    return bf16_to_f32(bits);
}

uint8_t pod_fp8_e4m3fn_from_f32(float value)
{
    return fp8_from_f32(value, e4m3fn);
}

float pod_fp8_e4m3fn_to_f32(uint8_t bits)
{
    return fp8_to_f32(bits, e4m3fn);
}

uint8_t pod_fp8_e5m2_from_f32(float value)
{
    return fp8_from_f32(value, e5m2);
}

float pod_fp8_e5m2_to_f32(uint8_t bits)
{
    return fp8_to_f32(bits, e5m2);
}

/* On x86 the loops exist twice, and the loader picks: the bits are the same, the vectors wider. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/* The three loops of one element type. A format that is a constant here is compiled into the code. */
#define DEFINE_LOOPS(name, type, from, to)                                                         \
    VECTOR_CLONES static void name##_from_f32_all(type *restrict out, const float *restrict in,    \
                                                  int64_t count)                                   \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            out[i] = from(in[i]);                                                                  \
        }                                                                                          \
    }                                                                                              \
    VECTOR_CLONES static void name##_to_f32_all(float *restrict out, const type *restrict in,      \
                                                int64_t count)                                     \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            out[i] = to(in[i]);                                                                    \
        }                                                                                          \
    }                                                                                              \
    VECTOR_CLONES static void name##_add_all(type *restrict dst, const type *restrict src,         \
                                             int64_t count)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            dst[i] = from(to(dst[i]) + to(src[i]));                                                \
        }                                                                                          \
    }

static inline uint8_t e4m3fn_from_f32(float value)
{
    return fp8_from_f32(value, e4m3fn);
}

static inline float e4m3fn_to_f32(uint8_t bits)
{
    return fp8_to_f32(bits, e4m3fn);
}

static inline uint8_t e5m2_from_f32(float value)
{
    return fp8_from_f32(value, e5m2);
}

static inline float e5m2_to_f32(uint8_t bits)
{
    return fp8_to_f32(bits, e5m2);
}

DEFINE_LOOPS(bf16, uint16_t, bf16_from_f32, bf16_to_f32)
DEFINE_LOOPS(e4m3fn, uint8_t, e4m3fn_from_f32, e4m3fn_to_f32)
DEFINE_LOOPS(e5m2, uint8_t, e5m2_from_f32, e5m2_to_f32)

VECTOR_CLONES static void int8_from_f32_all(int8_t *restrict out, const float *restrict in,
                                            int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        out[i] = int8_from_f32(in[i]);
    }
}

VECTOR_CLONES static void int8_to_f32_all(float *restrict out, const int8_t *restrict in,
                                          int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        out[i] = (float)in[i];
    }
}

/* Unsigned, because signed overflow is undefined: the bits are those of two's complement. */
VECTOR_CLONES static void int8_add_all(uint8_t *restrict dst, const uint8_t *restrict src,
                                       int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        dst[i] = (uint8_t)(dst[i] + src[i]);
    }
}

VECTOR_CLONES static void f32_add_all(float *restrict dst, const float *restrict src, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        dst[i] += src[i];
    }
}

void pod_dtype_from_f32(pod_dtype dtype, void *out, const float *in, int64_t count)
{
    switch (dtype) {
    case POD_DTYPE_BF16:
        bf16_from_f32_all(out, in, count);
        return;
    case POD_DTYPE_F32:
        memcpy(out, in, (size_t)count * sizeof *in);
        return;
    case POD_DTYPE_INT8:
        int8_from_f32_all(out, in, count);
        return;
    case POD_DTYPE_FP8:
        e4m3fn_from_f32_all(out, in, count);
        return;
    case POD_DTYPE_FP8_E5M2:
        e5m2_from_f32_all(out, in, count);
        return;
    case POD_DTYPE_COUNT:
        break;
    }
    pod_panic(__FILE__, __LINE__, "unknown dtype");
}

void pod_dtype_to_f32(pod_dtype dtype, float *out, const void *in, int64_t count)
{
    switch (dtype) {
    case POD_DTYPE_BF16:
        bf16_to_f32_all(out, in, count);
        return;
    case POD_DTYPE_F32:
        memcpy(out, in, (size_t)count * sizeof *out);
        return;
    case POD_DTYPE_INT8:
        int8_to_f32_all(out, in, count);
        return;
    case POD_DTYPE_FP8:
        e4m3fn_to_f32_all(out, in, count);
        return;
    case POD_DTYPE_FP8_E5M2:
        e5m2_to_f32_all(out, in, count);
        return;
    case POD_DTYPE_COUNT:
        break;
    }
    pod_panic(__FILE__, __LINE__, "unknown dtype");
}

void pod_dtype_add(pod_dtype dtype, void *dst, const void *src, int64_t count)
{
    switch (dtype) {
    case POD_DTYPE_BF16:
        bf16_add_all(dst, src, count);
        return;
    case POD_DTYPE_F32:
        f32_add_all(dst, src, count);
        return;
    case POD_DTYPE_INT8:
        int8_add_all(dst, src, count);
        return;
    case POD_DTYPE_FP8:
        e4m3fn_add_all(dst, src, count);
        return;
    case POD_DTYPE_FP8_E5M2:
        e5m2_add_all(dst, src, count);
        return;
    case POD_DTYPE_COUNT:
        break;
    }
    pod_panic(__FILE__, __LINE__, "unknown dtype");
}
