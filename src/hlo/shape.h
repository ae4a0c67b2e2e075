/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/shape.h  Shapes of an HLO text: element type, dims, layout, memory, bytes.
 *
 *  Model:
 *
 *      bf16[3,5]{1,0:T(8,128)(2,1)S(1)}
 *      |    |    |   |             memory space 1, VMEM
 *      |    |    |   first tile: dims are padded to it, 5 to 128 and 3 to 8
 *      |    |    dims from the most minor one: 5 (dim 1), then 3 (dim 0)
 *      |    dims                            bytes 8*128*2 = 2048, payload 3*5*2 = 30
 *      element type
 *
 *  Memory spaces: none = HBM; 1 VMEM; 3 CMEM (v4); 5 the host; 2 semaphores, 4 contexts of
 *  asynchronous collectives, 6 scalars, 7 and 8 SparseCore: no bytes of interest.
 *  E(n) in a layout gives the bits of an element; without it the type does. A layout that names no
 *  dims is that of C (the last dim is the most minor). "<=8" as a dim counts 8. Other marks of a
 *  layout are skipped. Figures of a tile beyond the shape's dims pad nothing, scalars aren't padded. Elements
 *  below 8 bits are packed: f4e2m1fn[3] takes 2 bytes.
 *
 *  Shapes are shared: the same text is the same number. A shape counts its bytes once; those of a tuple are the
 *  sums of its leaves.
 *
 *  Ownership: pod_hlo_shapes is zero-initialised storage of its owner. Threads: read-only after the text
 *  is parsed. Errors: POD_E_INVALID (a bad shape, an unknown element type), POD_E_RANGE (elements or
 *  bytes beyond 2^62), POD_E_NOMEM. */
#pragma once

#include "hlo/intern.h"

/** name, bits per element */
#define POD_HLO_DTYPE_LIST(X)                                                                      \
    X(POD_HLO_TYPE_PRED, "pred", 8)                                                                \
    X(POD_HLO_TYPE_S1, "s1", 1)                                                                    \
    X(POD_HLO_TYPE_U1, "u1", 1)                                                                    \
    X(POD_HLO_TYPE_S2, "s2", 2)                                                                    \
    X(POD_HLO_TYPE_U2, "u2", 2)                                                                    \
    X(POD_HLO_TYPE_S4, "s4", 4)                                                                    \
    X(POD_HLO_TYPE_U4, "u4", 4)                                                                    \
    X(POD_HLO_TYPE_S8, "s8", 8)                                                                    \
    X(POD_HLO_TYPE_U8, "u8", 8)                                                                    \
    X(POD_HLO_TYPE_S16, "s16", 16)                                                                 \
    X(POD_HLO_TYPE_U16, "u16", 16)                                                                 \
    X(POD_HLO_TYPE_S32, "s32", 32)                                                                 \
    X(POD_HLO_TYPE_U32, "u32", 32)                                                                 \
    X(POD_HLO_TYPE_S64, "s64", 64)                                                                 \
    X(POD_HLO_TYPE_U64, "u64", 64)                                                                 \
    X(POD_HLO_TYPE_F4E2M1FN, "f4e2m1fn", 4)                                                        \
    X(POD_HLO_TYPE_F6E2M3FN, "f6e2m3fn", 6)                                                        \
    X(POD_HLO_TYPE_F6E3M2FN, "f6e3m2fn", 6)                                                        \
    X(POD_HLO_TYPE_F8E8M0FNU, "f8e8m0fnu", 8)                                                      \
    X(POD_HLO_TYPE_F8E3M4, "f8e3m4", 8)                                                            \
    X(POD_HLO_TYPE_F8E4M3, "f8e4m3", 8)                                                            \
    X(POD_HLO_TYPE_F8E4M3FN, "f8e4m3fn", 8)                                                        \
    X(POD_HLO_TYPE_F8E4M3FNUZ, "f8e4m3fnuz", 8)                                                    \
    X(POD_HLO_TYPE_F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8)                                              \
    X(POD_HLO_TYPE_F8E5M2, "f8e5m2", 8)                                                            \
    X(POD_HLO_TYPE_F8E5M2FNUZ, "f8e5m2fnuz", 8)                                                    \
    X(POD_HLO_TYPE_BF16, "bf16", 16)                                                               \
    X(POD_HLO_TYPE_F16, "f16", 16)                                                                 \
    X(POD_HLO_TYPE_F32, "f32", 32)                                                                 \
    X(POD_HLO_TYPE_F64, "f64", 64)                                                                 \
    X(POD_HLO_TYPE_C64, "c64", 64)                                                                 \
    X(POD_HLO_TYPE_C128, "c128", 128)                                                              \
    X(POD_HLO_TYPE_TOKEN, "token", 0)                                                              \
    X(POD_HLO_TYPE_OPAQUE, "opaque", 0)                                                            \
    X(POD_HLO_TYPE_TUPLE, "tuple", 0)

#define POD_HLO_DTYPE_ENUM(id, name, bits) id,
typedef enum pod_hlo_dtype { POD_HLO_DTYPE_LIST(POD_HLO_DTYPE_ENUM) POD_HLO_TYPES } pod_hlo_dtype;
#undef POD_HLO_DTYPE_ENUM

/** Largest product of dims, number of bytes, FLOPs, runs. */
#define POD_HLO_COUNT_MAX (INT64_C(1) << 62)

enum {
    POD_HLO_SPACE_HBM = 0,
    POD_HLO_SPACE_VMEM = 1,
    POD_HLO_SPACE_SEMAPHORE = 2,
    POD_HLO_SPACE_CMEM = 3,
    POD_HLO_SPACE_CONTEXT = 4,
    POD_HLO_SPACE_HOST = 5,
    POD_HLO_SPACE_SCALAR = 6
};

typedef struct pod_hlo_shape {
    uint8_t dtype;    /**< pod_hlo_dtype */
    uint8_t space;    /**< S(n); of a tuple 0 */
    uint16_t bits;    /**< of an element */
    uint32_t count;   /**< dims, or members of a tuple */
    uint32_t first;   /**< first dim in shapes->dim, or first member in shapes->member */
    int64_t elements; /**< product of dims; of a tuple the sum */
    int64_t bytes;    /**< as laid out, padded; of a tuple the sum */
    int64_t payload;  /**< without padding; of a tuple the sum */
} pod_hlo_shape;

typedef struct pod_hlo_shapes {
    pod_hlo_interned text; /**< texts of shapes; number = index in number_of */
    uint32_t *number_of;   /**< shape of a text */
    uint32_t numbers_capacity;
    pod_hlo_shape *shape; /**< shape[count] */
    uint32_t count;
    uint32_t capacity;
    int64_t *dim;     /**< for each array its dims, then as many indices of dims, minor to major */
    uint32_t *member; /**< shape numbers of the members of tuples */
    uint32_t ndims;
    uint32_t dims_capacity;
    uint32_t nmembers;
    uint32_t members_capacity;
} pod_hlo_shapes;

/** Take a shape from the text. @param[out] number  its number */
pod_status pod_hlo_shape_take(pod_hlo_shapes *shapes, pod_hlo_scan *scan, uint32_t *number);
void pod_hlo_shapes_fini(pod_hlo_shapes *shapes);

/** Name of an element type, static. */
const char *pod_hlo_dtype_name(pod_hlo_dtype dtype);
/** Bits of an element; 0 of tokens and tuples. */
int pod_hlo_dtype_bits(pod_hlo_dtype dtype);
/** pred, s… or u…. */
bool pod_hlo_dtype_is_integer(pod_hlo_dtype dtype);
/** f8…, f6…, f4…. */
bool pod_hlo_dtype_is_fp8(pod_hlo_dtype dtype);
/** f…, bf16 or c…. */
bool pod_hlo_dtype_is_float(pod_hlo_dtype dtype);
