/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/chip.h  One generation of TPU chips: its figures, from topologies/chips.csv.
 *
 *  Model: a chip is TensorCores with systolic arrays (MXU) and a vector unit (VPU), VMEM beside
 *  each, one HBM, links to its neighbours (ICI), and by its host PCIe and the data-centre network.
 *  chips.csv has one row per generation and one column per figure, the unit in the name; this
 *  module turns a row into SI units under the rates in force (chip/rates.h).
 *
 *  Settings (`--set KEY=VALUE`) replace a figure of the table by name before it is turned. Figures
 *  that follow from others follow: peaks scale with clock, cores, MXUs and array, usable HBM with
 *  capacity, unless they are set themselves. A setting that the rates in force don't look at is
 *  refused, because a what-if that changes nothing misleads.
 *
 *  Ownership: pod_chip_spec is a plain value. Threads: none.
 *  Errors: POD_E_TABLE with the place in chips.csv; POD_E_USAGE for names and settings. */
#pragma once

#include "base/dtype.h"
#include "base/status.h"
#include "base/table.h"
#include "base/units.h"
#include "chip/rates.h"

#include <stdbool.h>
#include <stdint.h>

/** One chip in SI units under the rates in force. All rates are of the whole chip and, for
 *  transfers, one way. Efficiencies are 1 and launch costs 0 under book and vendor. */
typedef struct pod_chip_spec {
    char name[POD_CHIP_NAME_SIZE]; /**< "v5p" */
    pod_rates rates;

    int devices;       /**< devices that JAX sees per chip: 2 when each core is one, else 1 */
    int cores;         /**< TensorCores */
    int mxus_per_core; /**< systolic arrays of a core */
    int mxu_dim;       /**< rows and columns of an array */
    double clock_hz;
    double p_state_clock_frac;              /**< pod_chip_clock_set; 0: no states are known */
    double peak_ops_per_s[POD_DTYPE_COUNT]; /**< multiply and add count as two */
    double mxu_eff_frac;                    /**< what a large matmul sustains of the peak */
    double mxu_step_frac;        /**< and of that, what the products of a transformer's step do: its
                               matmuls are fused with other work, and the clock gives way */
    pod_time_ps kernel_start_ps; /**< of a matmul: latency of its first and last DMA */
    /** a matmul run alone, as benchmarks time it; besides the start */
    pod_time_ps matmul_launch_ps;
    pod_time_ps block_step_ps; /**< of a block, besides its bytes and its work */

    /** measured time over estimated_cycles of the TPU compiler, of matmuls */
    double hlo_cycles_ratio;

    double vpu_ops_per_s; /**< elementwise operations on 32-bit lanes */
    double vpu_eff_frac;

    double attention_fwd_ops;     /**< vector operations of a score in the forward kernel */
    double attention_bwd_ops;     /**< and in the fused backward kernel */
    double attention_rescale_ops; /**< of an element of the running result, each piece */
    double loss_fwd_ops;          /**< of a logit in the fused kernel of head and loss */
    double loss_bwd_ops;          /**< and in its backward kernel */
    double loss_chunk_ops;        /**< and in the compiler's loop over chunks */
    int grouped_cores; /**< cores that a kernel of grouped matmuls or of the loss runs on */

    double scalar_gather_s; /**< of one scalar that a core picks out of HBM by its index */

    int64_t hbm_bytes;
    int64_t hbm_usable_bytes; /**< what programs may use, all devices together */
    double hbm_bytes_per_s;   /**< nominal; times hbm_eff_frac is what is reached */
    double hbm_eff_frac;
    pod_time_ps copy_launch_ps; /**< an HBM copy run alone */
    double paged_eff_frac;      /**< of the rate at which HBM is read: of a KV cache in pages */
    double gather_hbm_ratio;    /**< HBM bytes moved for each byte of gathered weights: 1 is the
                               receipt, more what passes on and lays out anew */
    double scatter_hbm_ratio; /**< likewise of scattered gradients, which are added up on the way */
    int64_t vmem_bytes;
    int64_t vmem_block_bytes; /**< what the blocks of a matmul may use of one core's VMEM */
    double vmem_bytes_per_s;  /**< between VMEM and the units */

    int ici_axes;
    int ici_links;                    /**< links of a chip that has all its neighbours */
    double link_oneway_bytes_per_s;   /**< in force: what a long message reaches */
    double link_nominal_bytes_per_s;  /**< the same without measured losses */
    double link_compiler_bytes_per_s; /**< what the TPU compiler plans with; 0 = not known */
    pod_time_ps hop_latency_ps;
    pod_time_ps collective_launch_ps; /**< on the device, before each collective of a program */
    /** the host's, once around a collective that is a program of its own */
    pod_time_ps host_launch_ps;
    double multi_axis_eff_frac;   /**< of the link rate when one collective drives several axes */
    int64_t cut_min_bytes;        /**< a collective's block isn't cut into less than this */
    double core_link_bytes_per_s; /**< between the two devices of a chip; 0 = one device */

    double dcn_bytes_per_s; /**< egress of one chip's share of its host's NICs */
    double dcn_eff_frac;
    pod_time_ps dcn_latency_ps;
    double dcn_oversubscription; /**< NICs of a slice over its uplink into the fabric, >= 1 */
    /** spread of the slices' times of a step, of that: all wait for the slowest */
    double slice_jitter_frac;
    double pcie_bytes_per_s;        /**< one chip to its host, one way */
    int server_dims[POD_CHIP_AXES]; /**< chips of a server: they share NICs; 1s fill up */
    int vm_dims[POD_CHIP_AXES];     /**< chips of a virtual machine */
    int pod_dims[POD_CHIP_AXES];    /**< the largest pod; 1s fill up */
} pod_chip_spec;

/** What passes before the first byte of a collective or a message leaves.
 *  @param inside  of a program: without the host's part */
static inline pod_time_ps pod_chip_launch_ps(const pod_chip_spec *chip, bool inside)
{
    return chip->collective_launch_ps + (inside ? 0 : chip->host_launch_ps);
}

/** Check all of chips.csv: columns, one row per name, every figure in its range, figures that
 *  must agree with each other. POD_E_TABLE at the field. Not collective. */
pod_status pod_chips_check(const pod_table *chips, pod_error *err);

/** Row of a chip by name or alias, or -1 with POD_E_USAGE and the nearest name in err.
 *  Not collective. */
int pod_chips_find(const pod_table *chips, const char *name, pod_error *err);
/** Name of the chip in a row, owned by the table. Not collective. */
const char *pod_chips_name(const pod_table *chips, int row);

/** One chip under the rates in force. Checks the whole table first. Not collective.
 *  @param chips      the parsed chips.csv
 *  @param name       name or alias: "v5e", "tpu7x", "v7"
 *  @param settings   `nsettings` texts "KEY=VALUE", KEY a column, VALUE a number in that column's
 *                    unit; may be NULL when nsettings is 0; each key once
 *  @param[out] spec  undefined on error
 *  @return POD_OK; POD_E_TABLE; POD_E_USAGE: no such chip or key (with the nearest), value no number
 *          or out of the column's range, or no effect under these rates (saying what has) */
pod_status pod_chip_load(const pod_table *chips, const char *name, pod_rates rates,
                         const char *const *settings, int nsettings, pod_chip_spec *spec,
                         pod_error *err);

/** Settings as far as no chip is needed to judge them: keys that exist, each once, with numbers in their range. Not
 *  collective. @return POD_E_USAGE */
pod_status pod_chip_settings_check(const char *const *settings, int nsettings, pod_error *err);

/** What each of the links reaches when one collective keeps `links` of a chip's links busy. Two
 *  links (a ring through a chip) run at link_oneway_bytes_per_s; more share what feeds them.
 *  Not collective. */
double pod_chip_link_bytes_per_s(const pod_chip_spec *chip, int links);

/** The cores at another state of the clock (libtpu's xla_tpu_dvfs_p_state): each above 3, in which the measured figures
 *  are, adds p_state_clock_frac to what arrays sustain and to the vector unit; HBM and links have clocks of their own.
 *  Without effect on chips whose states aren't known. Not collective.
 *  @param state  0 to 7 */
void pod_chip_clock_set(pod_chip_spec *chip, int state);

/** Spec of one core of the chip as a device of its own: half of everything on a chip of two cores
 *  (peak, HBM and its rate, VMEM, VPU); the same chip when it has one core. Not collective. */
pod_chip_spec pod_chip_one_core(const pod_chip_spec *chip);

/** Spec of one JAX device of the chip: half of everything where each core is a device; else the
 *  same chip. Not collective. */
pod_chip_spec pod_chip_one_device(const pod_chip_spec *chip);

/** One JAX device with those of its cores on which a kernel of grouped matmuls or of the loss runs; VMEM is that
 *  of these cores, HBM the device's. Not collective.
 *  @param cores  of the chip that take part; 0 = grouped_cores
 *  @param[out] devices  that take part */
pod_chip_spec pod_chip_kernel_device(const pod_chip_spec *chip, int cores, int *devices);
