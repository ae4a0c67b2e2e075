/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/generation.h  What all slices of one chip generation have in common, from topologies/chips.csv.
 *
 *  Adding a generation is adding its rows to the tables: nothing here knows a chip by its name.
 *
 *  Rules of wrap (docs/slices.md), used for shapes that slices.csv doesn't list; a test holds every row of
 *  slices.csv against them:
 *
 *      pod:N        only the full pod of N x N wraps                            v2, v3
 *      axis:N       an axis of N wraps                                          v5e, v6e
 *      multiple:N   all axes wrap when every size is a multiple of N, else none v4, v5p, tpu7x
 *
 *  A slice of three axes can be twisted when it is k,k,2k or k,2k,2k with k a multiple of 4.
 *
 *  Orders of devices in JAX (mesh/layout.h): `grid` lays meshes on whole axes; `rings` has fixed rings
 *  for 4, 8 and 16 chips; `hosts` lists cores host by host; `trays` does so on small slices.
 *
 *  The compiler's columns are read by collectives/xla/xla_choice.h, where they are explained.
 *
 *  Ownership: a list owns its rows; slices borrow them. Threads: read-only after load.
 *  Errors: POD_E_TABLE at the field. */
#pragma once

#include "base/table.h"
#include "ici/slice.h"

enum { POD_GENERATION_CAVEAT_MAX = 160 };

typedef enum pod_wrap_rule { POD_WRAP_POD, POD_WRAP_AXIS, POD_WRAP_MULTIPLE } pod_wrap_rule;

typedef enum pod_mesh_order {
    POD_MESH_ORDER_GRID,
    POD_MESH_ORDER_RINGS,
    POD_MESH_ORDER_HOSTS,
    POD_MESH_ORDER_TRAYS
} pod_mesh_order;

/** How the TPU compiler's collectives differ from chip to chip. */
typedef struct pod_compiler_traits {
    bool short_form;           /**< small payloads have a form of their own */
    bool twist_seen;           /**< twisted slices of it were seen compiled */
    int32_t ring_slice_chips;  /**< whole slices up to this size are one ring */
    int32_t gather_ring_chips; /**< all-gathers of two axes up to this ring; INT32_MAX = always */
    int32_t router_chips;      /**< slices from this size route all-to-all; INT32_MAX = none do */
    char caveat
        [POD_GENERATION_CAVEAT_MAX]; /**< why the rules are unproven for it; "" = rows back them */
} pod_compiler_traits;

typedef struct pod_generation {
    char name[POD_CHIP_NAME_MAX];        /**< as in chips.csv */
    char aliases[96];                    /**< other names of the chip, blanks between them, or "" */
    char type_prefix[POD_CHIP_NAME_MAX]; /**< of accelerator types: "v5litepod" */
    int naxes;                           /**< 1 to 3 */
    int devices;                         /**< devices that JAX sees of a chip */
    int type_units_per_chip; /**< what one chip adds to the number of an accelerator type */
    pod_wrap_rule wrap_rule;
    int32_t wrap_chips;          /**< the N of its rule */
    int32_t host_dims[POD_AXES]; /**< chips of a virtual machine, where a slice is not one server */
    int32_t server_dims[POD_AXES]; /**< chips that share NICs */
    bool twisted_by_default;       /**< shapes that can twist do, unless `_untwisted` */
    pod_mesh_order mesh_order;
    pod_compiler_traits compiler;
} pod_generation;

typedef struct pod_generations {
    int count;
    pod_generation *row; /**< in the order of chips.csv */
} pod_generations;

/** Read the generations of chips.csv. POD_E_TABLE at the field, POD_E_NOMEM. */
pod_status pod_generations_load(const pod_table *chips, pod_generations *generations,
                                pod_error *err);
void pod_generations_fini(pod_generations *generations);

/** Generation by name or alias; POD_E_USAGE with the nearest name.
 *  @param name  `length` characters, lower case */
pod_status pod_generations_find(const pod_generations *generations, const char *name, size_t length,
                                const pod_generation **generation, pod_error *err);

/** Parse "4x4x8" (and nothing after it) into dims. @param length  characters of text that count
 *  @return POD_E_USAGE, POD_E_INVALID (zero, too many axes), POD_E_RANGE */
pod_status pod_shape_parse(const pod_generation *generation, const char *text, size_t length,
                           int32_t dims[POD_AXES], pod_error *err);

/** Axes that close by the rule, as a mask. @param dims  `POD_AXES` sizes >= 1 */
unsigned pod_generation_wrap(const pod_generation *generation, const int32_t dims[POD_AXES]);
/** True if a slice of this shape can be twisted. */
bool pod_generation_can_twist(const pod_generation *generation, const int32_t dims[POD_AXES]);
