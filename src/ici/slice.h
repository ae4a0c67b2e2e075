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
 *  it is wrapped. A wrapped axis closes; on a twisted slice crossing the wrap of axis a in
 *  + direction also adds twist[a][b] to each other coordinate b (Camarero et al., arXiv 1311.2019):
 *
 *      k,k,2k    x and y wraps land k further along z; z wraps plainly
 *      k,2k,2k   the x wrap lands k further along y and along z; y and z wrap plainly
 *
 *  With all axes wrapped the slice is then Z^3 over a lattice: every chip sees the same slice.
 *
 *  A host (virtual machine) holds a block of chips, 2x2x1 of all generations so far, cut off at the edge of the
 *  slice. A slice of just one server, the chips that share NICs, is one host: v5e-8 and v6e-8. slices.csv counts so.
 *
 *  Ownership: caller's storage, no heap inside. Threads: read-only after it is built. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    POD_AXES = 3, /**< axes of the largest torus */
    POD_DIRECTIONS = 6,
    POD_SLICE_FAULTS_MAX = 64,
    POD_SLICE_NAME_MAX = 96,
    POD_CHIP_NAME_MAX = 16
};

typedef enum pod_fault_kind {
    POD_FAULT_LINK_DEAD,
    POD_FAULT_LINK_SLOW,
    POD_FAULT_CHIP_SLOW
} pod_fault_kind;

/** A fault of a cable (both ways) or of a chip (its compute and its links). */
typedef struct pod_fault {
    pod_fault_kind kind;
    int32_t chip;  /**< the cable leaves this chip in + direction */
    int direction; /**< of link faults: +x, +y or +z; else -1 */
    double factor; /**< of slow faults: >= 1, times slower; else 0 */
    int32_t only;  /**< 1 + the slice that has it alone (slow faults); 0 = all slices have it */
} pod_fault;

struct pod_generation;

typedef struct pod_slice {
    char chip_name[POD_CHIP_NAME_MAX];       /**< generation as in chips.csv, "v5p" */
    char name[POD_SLICE_NAME_MAX];           /**< as printed: "v5p:4x4x4", "2*v5e:4x8" */
    const struct pod_generation *generation; /**< borrowed from the catalogue; NULL = of no table:
                                                the rules that differ between chips don't hold */
    int naxes;                               /**< axes that chips of this generation have: 2 or 3 */
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    bool twisted;                      /**< some wrap that is there is twisted */
    int32_t twist[POD_AXES][POD_AXES]; /**< twist[a][b]: added to b by crossing the wrap of a */
    int32_t nchips;                    /**< of one slice */
    int32_t nslices;                   /**< slices of this kind */
    int32_t host_dims[POD_AXES];       /**< chips of a host, cut off at the slice's edge */
    int32_t nhosts;                    /**< virtual machines of one slice */
    int nfaults;
    pod_fault faults[POD_SLICE_FAULTS_MAX];
} pod_slice;

/** Fill a slice from its shape alone: no table, no faults, one slice. Not collective.
 *  @param chip_name  copied; shorter than POD_CHIP_NAME_MAX
 *  @param naxes      2 or 3; the dims beyond must be 1
 *  @param dims       `POD_AXES` sizes >= 1; product must fit int32
 *  @param wrap       `POD_AXES` flags; kept also for axes of size 1, where they mean nothing
 *  @param twisted    twist the wraps that are there
 *  @param[out] slice  named CHIP:AxBxC, with `_twisted` when it is; undefined on error
 *  @return POD_E_INVALID (zero or negative size, more axes than naxes, twist of a shape that is not
 *          k,k,2k or k,2k,2k with k a multiple of 4), POD_E_RANGE (product) */
pod_status pod_slice_make(const char *chip_name, int naxes, const int32_t dims[POD_AXES],
                          const bool wrap[POD_AXES], bool twisted, pod_slice *slice,
                          pod_error *err);

/** Say which chips are a host, and count them. pod_slice_make leaves it at blocks of 2x2x1.
 *  @param host_dims    `POD_AXES` sizes >= 1: chips of a host, unless
 *  @param server_dims  the slice has just these sizes, in any order, and they are more: then it is one host */
void pod_slice_hosts_set(pod_slice *slice, const int32_t host_dims[POD_AXES],
                         const int32_t server_dims[POD_AXES]);

/** True for k,k,2k and k,2k,2k with k a multiple of 4, in this order of axes. */
bool pod_dims_can_twist(const int32_t dims[POD_AXES]);

/** Choose which axes close. A wrap that was twisted stays twisted; a slice that loses all of its
 *  twisted wraps is plain. @param axes  bit a set = axis a closes */
void pod_slice_wrap_axes(pod_slice *slice, unsigned axes);
/** Mask of the axes that close: wrapped and longer than 1. */
unsigned pod_slice_closed_axes(const pod_slice *slice);
/** The wrap of an axis also shifts along another. */
bool pod_slice_axis_twisted(const pod_slice *slice, int axis);
/** Twisted, and all axes close: from every chip it looks the same. Faults don't count. */
bool pod_slice_is_lattice(const pod_slice *slice);

/** "4x4x8" or, for chips with two axes, "4x8". @param buf  `size` bytes; 40 always suffice */
const char *pod_slice_dims_text(const pod_slice *slice, char *buf, size_t size);

/** Chip number of coordinates, each in [0, dims[a]). */
int32_t pod_slice_chip(const pod_slice *slice, const int32_t coords[POD_AXES]);
void pod_slice_coords(const pod_slice *slice, int32_t chip, int32_t coords[POD_AXES]);
/** Axes in the order of their lengths, of equal ones closed before open, then as they are named. What is decided in
 *  this order is the same on a slice whose axes have other names. */
void pod_slice_axes_sorted(const pod_slice *slice, int axis[POD_AXES]);
/** Place of a chip when chips are counted along these axes, the first fastest. */
int32_t pod_slice_place(const pod_slice *slice, const int axis[POD_AXES], int32_t chip);
/** The chip at such a place. */
int32_t pod_slice_chip_at(const pod_slice *slice, const int axis[POD_AXES], int32_t place);
/** "1,2,3" or, for chips with two axes, "1,2". @param buf  `size` bytes; 40 always suffice */
const char *pod_slice_chip_text(const pod_slice *slice, int32_t chip, char *buf, size_t size);

/** The chip one hop away, or -1 where there is no cable. Faults don't count here. */
int32_t pod_slice_neighbor(const pod_slice *slice, int32_t chip, int direction);
/** The direction at the neighbour that leads back: d ^ 1. */
int pod_direction_reverse(int direction);
/** "+x" … "-z", static. */
const char *pod_direction_name(int direction);

/** Add a fault; a cable that is dead already is not counted again. Not collective.
 *  @param direction  of link faults, any of the six; -1 for POD_FAULT_CHIP_SLOW
 *  @param factor  >= 1 for the slow kinds, ignored for dead links
 *  @return POD_E_INVALID (no such chip; no cable there, saying which directions the chip has),
 *          POD_E_USAGE (factor below 1 or not finite), POD_E_RANGE (too many faults) */
pod_status pod_slice_fault_insert(pod_slice *slice, pod_fault_kind kind, int32_t chip,
                                  int direction, double factor, pod_error *err);

/** How many times slower than a healthy one a link is: the largest factor among the faults of its
 *  cable and of the chips at both ends (the weakest part decides); 1 healthy, 0 dead or absent. */
double pod_slice_link_slowness(const pod_slice *slice, int32_t chip, int direction);
/** How many times slower a chip computes: the largest factor among its faults, 1 healthy. */
double pod_slice_chip_slowness(const pod_slice *slice, int32_t chip);
/** The same in slice `number`, with the faults that it has alone. The two above leave these out: what all
 *  slices do the same way (routes, schedules, bounds) is made for what all have. */
double pod_slice_link_slowness_in(const pod_slice *slice, int32_t number, int32_t chip,
                                  int direction);
double pod_slice_chip_slowness_in(const pod_slice *slice, int32_t number, int32_t chip);
/** Links that leave this chip and are not dead, 0 to 6. */
int pod_slice_chip_links(const pod_slice *slice, int32_t chip);
/** True if some cable is dead. */
bool pod_slice_has_dead_links(const pod_slice *slice);
/** Cables that exist and are not dead. */
int64_t pod_slice_cables(const pod_slice *slice);
