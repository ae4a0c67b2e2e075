/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t hex(const pod_table *table, int row, const char *column)
{
    return (uint32_t)strtoul(field(table, row, column), NULL, 16);
}

/* rounding.csv: f32 patterns with NaN, infinities, subnormals, ties and overflow, as JAX's types
 * (ml_dtypes) round them. */
Test(dtype, rounds_as_jax_does_bit_for_bit)
{
    pod_table *table = table_read(CHIP_TEST_FILE("rounding.csv"));
    cr_expect_eq(pod_table_rows(table), 194);
    for (int row = 0; row < pod_table_rows(table); row++) {
        const float value = float_of(hex(table, row, "f32"));
        cr_expect_eq(pod_bf16_from_f32(value), hex(table, row, "bf16"), "row %d", row);
        cr_expect_eq(pod_fp8_e4m3fn_from_f32(value), hex(table, row, "fp8_e4m3fn"), "row %d", row);
        cr_expect_eq(pod_fp8_e5m2_from_f32(value), hex(table, row, "fp8_e5m2"), "row %d", row);
    }
    pod_table_free(table);
}

Test(dtype, every_bf16_goes_to_f32_and_back)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float value = pod_bf16_to_f32((uint16_t)bits);
        const uint32_t quiet = (bits & 0x8000U) | 0x7fc0U;
        cr_expect_eq(bits_of(value), bits << 16);
        cr_expect_eq(pod_bf16_from_f32(value), isnan(value) ? quiet : bits, "%x", bits);
    }
}

Test(dtype, every_bf16_tie_goes_to_even)
{
    for (uint32_t bits = 0; bits < 0x7f7fU; bits++) {
        const uint32_t tie = (bits << 16) | 0x8000U;
        cr_expect_eq(pod_bf16_from_f32(float_of(tie - 1)), bits);
        cr_expect_eq(pod_bf16_from_f32(float_of(tie)), bits + (bits & 1U));
        cr_expect_eq(pod_bf16_from_f32(float_of(tie + 1)), bits + 1);
    }
}

/* The value of 8 bits by the formula of the OCP specification. */
static double fp8_value(uint32_t bits, int mantissa_bits, int bias)
{
    const int mantissa = (int)(bits & ((1U << mantissa_bits) - 1U));
    const int exponent = (int)((bits & 0x7fU) >> mantissa_bits);
    const double sign = (bits & 0x80U) != 0 ? -1 : 1;
    const double one = exponent > 0 ? 1 : 0;
    const int scale = (exponent > 0 ? exponent : 1) - bias - mantissa_bits;
    return sign * ldexp(one * (1 << mantissa_bits) + mantissa, scale);
}

Test(dtype, every_fp8_has_the_value_of_its_formula)
{
    for (uint32_t bits = 0; bits < 256; bits++) {
        const float e4m3fn = pod_fp8_e4m3fn_to_f32((uint8_t)bits);
        if ((bits & 0x7fU) == 0x7fU) {
            cr_expect(isnan(e4m3fn));
        } else {
            cr_expect_eq((double)e4m3fn, fp8_value(bits, 3, 7));
        }
        cr_expect_eq(pod_fp8_e4m3fn_from_f32(e4m3fn), bits);
        const float e5m2 = pod_fp8_e5m2_to_f32((uint8_t)bits);
        if ((bits & 0x7fU) > 0x7cU) {
            cr_expect(isnan(e5m2));
        } else if ((bits & 0x7fU) == 0x7cU) {
            cr_expect(isinf(e5m2));
        } else {
            cr_expect_eq((double)e5m2, fp8_value(bits, 2, 15));
            cr_expect_eq(pod_fp8_e5m2_from_f32(e5m2), bits);
        }
    }
}

/* Between finite neighbours of a format the middle goes to the even one, the rest to the nearer. */
Test(dtype, fp8_rounds_to_the_nearest_everywhere)
{
    for (uint32_t bits = 0; bits < 0x7eU; bits++) {
        const float low = pod_fp8_e4m3fn_to_f32((uint8_t)bits);
        const float high = pod_fp8_e4m3fn_to_f32((uint8_t)(bits + 1));
        const float middle = (low + high) / 2;
        cr_expect_eq(pod_fp8_e4m3fn_from_f32(middle), bits + (bits & 1U));
        cr_expect_eq(pod_fp8_e4m3fn_from_f32(nextafterf(middle, 0)), bits);
        cr_expect_eq(pod_fp8_e4m3fn_from_f32(nextafterf(middle, high)), bits + 1);
    }
}

enum { COUNT = 1027 }; /* not a multiple of any vector width */

static void fill(float values[COUNT])
{
    for (int i = 0; i < COUNT; i++) {
        values[i] = ldexpf((float)(i * 7919 % 2003 - 1001), i % 23 - 14);
    }
    values[1] = NAN;
    values[2] = INFINITY;
    values[3] = -0.0F;
}

/* One element of a dtype as a float, by the scalar functions. */
static float scalar_to_f32(pod_dtype dtype, const void *data, int index)
{
    switch (dtype) {
    case POD_DTYPE_BF16:
        return pod_bf16_to_f32(((const uint16_t *)data)[index]);
    case POD_DTYPE_F32:
        return ((const float *)data)[index];
    case POD_DTYPE_INT8:
        return ((const int8_t *)data)[index];
    case POD_DTYPE_FP8:
        return pod_fp8_e4m3fn_to_f32(((const uint8_t *)data)[index]);
    case POD_DTYPE_FP8_E5M2:
        return pod_fp8_e5m2_to_f32(((const uint8_t *)data)[index]);
    case POD_DTYPE_COUNT:
        break;
    }
    return NAN;
}

static bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

Test(dtype, bulk_conversion_agrees_with_single_values)
{
    float values[COUNT];
    float back[COUNT];
    uint32_t store[COUNT];
    fill(values);
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        pod_dtype_from_f32((pod_dtype)dtype, store, values, COUNT);
        pod_dtype_to_f32((pod_dtype)dtype, back, store, COUNT);
        for (int i = 0; i < COUNT; i++) {
            cr_expect(same(back[i], scalar_to_f32((pod_dtype)dtype, store, i)));
        }
    }
    pod_dtype_from_f32(POD_DTYPE_BF16, store, values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_expect_eq(((uint16_t *)store)[i], pod_bf16_from_f32(values[i]));
    }
}

Test(dtype, addition_rounds_the_exact_sum)
{
    float a[COUNT];
    float b[COUNT];
    uint32_t left[COUNT];
    uint32_t right[COUNT];
    uint32_t expected[COUNT];
    fill(a);
    for (int i = 0; i < COUNT; i++) {
        b[i] = a[(i * 31 + 5) % COUNT];
    }
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        if (dtype == POD_DTYPE_INT8) {
            continue;
        }
        float sum[COUNT];
        pod_dtype_from_f32((pod_dtype)dtype, left, a, COUNT);
        pod_dtype_from_f32((pod_dtype)dtype, right, b, COUNT);
        for (int i = 0; i < COUNT; i++) {
            sum[i] = scalar_to_f32((pod_dtype)dtype, left, i)
                     + scalar_to_f32((pod_dtype)dtype, right, i);
        }
        pod_dtype_from_f32((pod_dtype)dtype, expected, sum, COUNT);
        pod_dtype_add((pod_dtype)dtype, left, right, COUNT);
        for (int i = 0; i < COUNT; i++) {
            cr_expect(same(scalar_to_f32((pod_dtype)dtype, left, i),
                           scalar_to_f32((pod_dtype)dtype, expected, i)),
                      "%s %d", pod_dtype_name((pod_dtype)dtype), i);
        }
    }
}

Test(dtype, int8_wraps_in_addition_and_clamps_in_conversion)
{
    int8_t left[] = {127, -128, 100, 0};
    const int8_t right[] = {1, -1, 100, 0};
    pod_dtype_add(POD_DTYPE_INT8, left, right, 4);
    const int8_t wrapped[] = {-128, 127, -56, 0};
    cr_expect_arr_eq(left, wrapped, sizeof wrapped);
    const float values[] = {127.4F, 127.5F, 1e30F, -129, 0.5F, 1.5F, -0.5F, NAN};
    int8_t clamped[8];
    pod_dtype_from_f32(POD_DTYPE_INT8, clamped, values, 8);
    const int8_t expected[] = {127, 127, 127, -128, 0, 2, 0, 0};
    cr_expect_arr_eq(clamped, expected, sizeof expected);
}

Test(dtype, small_integers_add_exactly_in_every_dtype)
{
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        float ones[] = {1, 1, 1, 2};
        uint32_t sum[4] = {0};
        uint32_t one[4];
        pod_dtype_from_f32((pod_dtype)dtype, one, ones, 4);
        for (int i = 0; i < 4; i++) {
            pod_dtype_add((pod_dtype)dtype, sum, one, 4);
        }
        pod_dtype_to_f32((pod_dtype)dtype, ones, sum, 4);
        cr_expect_eq(ones[0], 4);
        cr_expect_eq(ones[3], 8);
    }
}

Test(dtype, nothing_happens_to_no_elements)
{
    uint16_t left = 3;
    uint16_t right = 4;
    pod_dtype_add(POD_DTYPE_BF16, &left, &right, 0);
    cr_expect_eq(left, 3);
}

Test(dtype, names_and_sizes)
{
    pod_dtype dtype = POD_DTYPE_BF16;
    for (int i = 0; i < POD_DTYPE_COUNT; i++) {
        cr_expect_eq(pod_dtype_parse(pod_dtype_name((pod_dtype)i), &dtype, NULL), POD_OK);
        cr_expect_eq((int)dtype, i);
    }
    cr_expect_eq(pod_dtype_size(POD_DTYPE_F32), 4);
    cr_expect_eq(pod_dtype_size(POD_DTYPE_FP8_E5M2), 1);
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_dtype_parse("bf61", &dtype, &err), POD_E_USAGE);
    cr_expect_not_null(strstr(err.text, "did you mean 'bf16'"), "%s", err.text);
}
