/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

static pod_status take(pod_hlo_shapes *shapes, const char *text, uint32_t *number, pod_error *err)
{
    pod_hlo_scan scan = {.file = "a.txt",
                         .text = text,
                         .size = (uint32_t)strlen(text),
                         .computation = POD_HLO_NONE,
                         .part = true,
                         .err = err};
    pod_status st = pod_hlo_shape_take(shapes, &scan, number);
    return st == POD_OK ? pod_hlo_end(&scan, "the shape") : st;
}

typedef struct shape_case {
    const char *text;
    int64_t bytes;
    int64_t payload;
    int space;
} shape_case;

/* The first four are those that the layout of the compiler is known from; the rest follows. */
static const shape_case cases[] = {
    {"bf16[3,5]{1,0:T(8,128)(2,1)}",                                          8 * 128 * 2,     30,          0},
    {"s8[1,8,8]{2,1,0:T(8,128)(4,1)}",                                        1024,            64,          0},
    {"bf16[4096]{0:T(1024)(128)(2,1)}",                                       8192,            8192,        0},
    {"f32[]",                                                                 4,               4,           0},
    {"f32[]{:T(128)S(6)}",                                                    4,               4,           6},
    {"f32[3,5]{0,1:T(8,128)}",                                                8 * 128 * 4,     60,          0},
    {"f32[9,129]{0,1:T(8,128)}",                                              128 * 136 * 4,   9 * 129 * 4, 0},
    {"f32[9,129]{1,0:T(8,128)}",                                              16 * 256 * 4,    9 * 129 * 4, 0},
    {"bf16[512,1024]{1,0:T(8,128)(2,1)S(1)}",                                 1048576,         1048576,     1},
    {"u32[]{:S(2)}",                                                          4,               4,           2},
    {"bf16[7,3]",                                                             42,              42,          0},
    {"bf16[7,3]{1,0}",                                                        42,              42,          0},
    {"f32[2,3,4,5]{3,2,1,0:T(8,128)}",                                        6 * 8 * 128 * 4, 480,         0},
    {"f32[5]{0:T(8,128)}",                                                    128 * 4,         20,          0},
    {"s4[3,5]{1,0:T(8,128)(8,1)}",                                            512,             8,           0},
    {"s2[16]{0}",                                                             4,               4,           0},
    {"s8[16]{0:E(4)}",                                                        8,               8,           0},
    {"f32[1000]{0:T(1024)E(16)S(5)}",                                         2048,            2000,        5},
    {"f32[0,7]{1,0:T(8,128)}",                                                0,               0,           0},
    {"bf16[<=16,128]{1,0:T(8,128)(2,1)}",                                     4096,            4096,        0},
    {"token[]",                                                               0,               0,           0},
    {"opaque[]",                                                              0,               0,           0},
    {"f32[4]{0:T(4)D(D)L(8)M(64)#(u32)*(s32)SC(4:2)}",                        16,              16,          0},
    {"( f32[3,5] {1,0:T( 8, /*tile*/128 )} , (pred[], /*index=1*/token[]) )", 4096 + 1,        61,          0},
    {"()",                                                                    0,               0,           0},
};

Test(hlo_shape, counts_bytes_as_laid_out_and_as_sent)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_hlo_shapes shapes = {.count = 0};
        pod_error err = {0};
        uint32_t number = 0;
        cr_assert_eq(take(&shapes, cases[i].text, &number, &err), POD_OK, "%s: %s", cases[i].text,
                     err.text);
        const pod_hlo_shape *shape = &shapes.shape[number];
        cr_assert_eq(shape->bytes, cases[i].bytes, "%s: %lld bytes", cases[i].text,
                     (long long)shape->bytes);
        cr_assert_eq(shape->payload, cases[i].payload, "%s: payload %lld", cases[i].text,
                     (long long)shape->payload);
        cr_assert_eq(shape->space, cases[i].space, "%s", cases[i].text);
        pod_hlo_shapes_fini(&shapes);
    }
}

Test(hlo_shape, knows_the_bytes_of_every_element_type)
{
    static const struct {
        const char *names;
        int bits;
    } types[] = {
        {"s1 u1",                                                                                  1  },
        {"f4e2m1fn",                                                                               4  },
        {"f6e2m3fn f6e3m2fn",                                                                      6  },
        {"pred s8 u8 f8e4m3fn f8e5m2 f8e4m3b11fnuz f8e4m3fnuz f8e5m2fnuz f8e8m0fnu f8e3m4 f8e4m3",
         8                                                                                            },
        {"s4 u4",                                                                                  4  },
        {"s2 u2",                                                                                  2  },
        {"s16 u16 bf16 f16",                                                                       16 },
        {"s32 u32 f32",                                                                            32 },
        {"s64 u64 f64 c64",                                                                        64 },
        {"c128",                                                                                   128},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char names[128];
        char *rest = names;
        snprintf(names, sizeof names, "%s", types[i].names);
        for (char *name = strtok_r(names, " ", &rest); name != NULL;
             name = strtok_r(NULL, " ", &rest)) {
            char text[64];
            pod_hlo_shapes shapes = {.count = 0};
            uint32_t number = 0;
            snprintf(text, sizeof text, "%s[8,16]{1,0}", name);
            cr_assert_eq(take(&shapes, text, &number, NULL), POD_OK, "%s", text);
            cr_assert_eq(shapes.shape[number].bytes, 128 * types[i].bits / 8, "%s", text);
            pod_hlo_shapes_fini(&shapes);
        }
    }
}

Test(hlo_shape, shares_shapes_of_the_same_text)
{
    pod_hlo_shapes shapes = {.count = 0};
    uint32_t first = 0;
    uint32_t second = 0;
    cr_assert_eq(take(&shapes, "(f32[8]{0}, f32[8]{0})", &first, NULL), POD_OK);
    const uint32_t count = shapes.count;
    cr_assert_eq(count, 2); /* the array once, and the tuple */
    cr_assert_eq(take(&shapes, "(f32[8]{0}, f32[8]{0})", &second, NULL), POD_OK);
    cr_assert_eq(first, second);
    cr_assert_eq(shapes.count, count);
    pod_hlo_shapes_fini(&shapes);
}

Test(hlo_shape, refuses_what_is_no_shape)
{
    static const struct {
        const char *text;
        pod_status status;
        int column;
        const char *says;
    } wrong[] = {
  /* clang-format off */
        {"f7[3]", POD_E_INVALID, 1, "'f7' is no element type"},
        {"f32", POD_E_INVALID, 4, "'['"},
        {"f32[3", POD_E_INVALID, 6, "']'"},
        {"f32[3,]", POD_E_INVALID, 7, "a dim is missing"},
        {"f32[-3]", POD_E_INVALID, 5, "a dim is negative"},
        {"f32[3,5]{1}", POD_E_INVALID, 10, "names 1 of 2 dims"},
        {"f32[3,5]{1,1}", POD_E_INVALID, 10, "names a dim twice"},
        {"f32[3,5]{2,0}", POD_E_INVALID, 10, "names others"},
        {"f32[3]{0:T(0)}", POD_E_INVALID, 8, "tile of size 0"},
        {"f32[3]{0:T(8}", POD_E_INVALID, 13, "')'"},
        {"f32[3]{0:!}", POD_E_INVALID, 10, "a bad mark"},
        {"f32[3]{0:S(256)}", POD_E_RANGE, 12, "memory space"},
        {"f32[4611686018427387905]", POD_E_RANGE, 5, "a dim; at most 4611686018427387904"},
        {"pred[4294967296,4294967296]", POD_E_RANGE, 1, "elements of a shape"},
        {"f32[2147483648,1073741824]", POD_E_RANGE, 1, "bytes of a shape"},
        {"pred[4611686018427387904]{0:T(4611686018427387903)}", POD_E_RANGE, 1,
         "elements of a shape"},
  /* clang-format on */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_hlo_shapes shapes = {.count = 0};
        pod_error err = {0};
        uint32_t number = 0;
        cr_assert_eq(take(&shapes, wrong[i].text, &number, &err), wrong[i].status, "%s: %s",
                     wrong[i].text, err.text);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "%s: %s", wrong[i].text, err.text);
        cr_assert_eq(err.column, wrong[i].column, "%s: column %d", wrong[i].text, err.column);
        pod_hlo_shapes_fini(&shapes);
    }
}
