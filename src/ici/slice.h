/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/slice.h  What a slice is: shape, wrap, twist, faults, coordinates, neighbours.
 *
 *  Vocabulary: a slice is a grid of `dims[0] x dims[1] x dims[2]` chips (missing axes are 1). Chip
 *  number = x + X·(y + Y·z). A chip has up to six directions, numbered +x 0, -x 1, +y 2, -y 3,
 *  +z 4, -z 5; direction d leaves along axis d/2. A cable joins two neighbours and carries two
 *  links, one each way; the link of (chip, direction) has index chip·6 + direction and belongs to
 *  the chip it leaves.
 *
 *  An axis of size 1 has no cables, even when wrapped. An axis of size 2 has one cable, or two when
 *  it is wrapped explicitly. A wrapped axis closes; on a twisted slice crossing the wrap of axis a in
 *  + direction also adds twist[a] to the other coordinates (Camarero et al., arXiv 1311.2019), so
 *  that the slice is the Cayley graph of Z^3 over a lattice and every chip sees the same slice.
 *
 *  Ownership: caller's storage, no heap inside. Threads: read-only after it is built. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    POD_AXES = 3,      /**< axes of the largest torus */
    POD_DIRECTIONS = 6,
    POD_SLICE_FAULTS_MAX = 64,
    POD_SLICE_NAME_MAX = 96
};

typedef enum pod_fault_kind { POD_FAULT_LINK_DEAD, POD_FAULT_LINK_SLOW, POD_FAULT_CHIP_SLOW } pod_fault_kind;

/** A fault of a cable (both ways) or of a chip. */
typedef struct pod_fault {
    pod_fault_kind kind;
    int32_t chip;
    int direction;   /**< for link faults */
    double factor;   /**< >= 1, times slower; for the slow kinds */
} pod_fault;

typedef struct pod_slice {
    char chip_name[16];              /**< generation as in chips.csv, "v5p" */
    char name[POD_SLICE_NAME_MAX];   /**< as printed: "v5p:4x4x4", "2*v5e:4x8" */
    int naxes;                       /**< axes that chips of this generation have: 2 or 3 */
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    bool twisted;
    int32_t twist[POD_AXES][POD_AXES];
    int32_t nchips;                  /**< of one slice */
    int32_t nslices;
    int32_t nhosts;                  /**< virtual machines of one slice, as slices.csv counts them */
    int nfaults;
    pod_fault faults[POD_SLICE_FAULTS_MAX];
} pod_slice;

/** Fill a slice from its shape alone (no table, no faults): nchips, twist vectors.
 *  @param dims  `POD_AXES` sizes >= 1; product must fit int32
 *  @return POD_E_INVALID (zero or negative size, twist of a shape that is not k,k,2k or k,2k,2k),
 *          POD_E_RANGE */
pod_status pod_slice_make(const char *chip_name, int naxes, const int32_t dims[POD_AXES],
                          const bool wrap[POD_AXES], bool twisted, pod_slice *slice,
                          pod_error *err);

int32_t pod_slice_chip(const pod_slice *slice, const int32_t coords[POD_AXES]);
void pod_slice_coords(const pod_slice *slice, int32_t chip, int32_t coords[POD_AXES]);

/** The chip one hop away, or -1 where there is no cable. Faults don't count here. */
int32_t pod_slice_neighbor(const pod_slice *slice, int32_t chip, int direction);
/** The direction at the neighbour that leads back: d ^ 1. */
int pod_direction_reverse(int direction);
/** "+x" … "-z", static. */
const char *pod_direction_name(int direction);

/** Relative slowness of a link: 1 healthy, > 1 slow (its own and its chips' faults multiplied), 0 dead
 *  or absent. */
double pod_slice_link_slowness(const pod_slice *slice, int32_t chip, int direction);
/** Cables that exist and are not dead. */
int64_t pod_slice_cables(const pod_slice *slice);
