/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/columns.h  Private to chip/: the columns of chips.csv and the figures of one row.
 *
 *  One line of POD_CHIP_FIGURES per column of numbers: enumerator, name, least and largest value,
 *  flags. Adding a figure is a line here, a column in chips.csv and its use in chip.c. */
#pragma once

#include "base/table.h"
#include "chip/rates.h"

enum {
    POD_FIG_MEASURED = 1, /**< looked at under --rates measured */
    POD_FIG_BOOK = 2,
    POD_FIG_VENDOR = 4,
    POD_FIG_ALWAYS = 7,
    POD_FIG_WHOLE = 8,     /**< a whole number */
    POD_FIG_OPTIONAL = 16, /**< may be empty */
    POD_FIG_FALLBACK = 32, /**< also looked at under book when the book's column is empty */
};

/** A figure of the data sheet for which the book may have one of its own. */
enum { POD_FIG_SHEET = POD_FIG_MEASURED | POD_FIG_VENDOR | POD_FIG_FALLBACK };

/* clang-format off */
#define POD_CHIP_FIGURES(X)                                                                        \
    X(FIG_DEVICES, "devices", 1, 2, POD_FIG_ALWAYS | POD_FIG_WHOLE)                                \
    X(FIG_CORES, "cores", 1, 16, POD_FIG_ALWAYS | POD_FIG_WHOLE)                                   \
    X(FIG_MXUS, "mxus_per_core", 1, 64, POD_FIG_ALWAYS | POD_FIG_WHOLE)                            \
    X(FIG_MXU_DIM, "mxu_dim", 8, 4096, POD_FIG_ALWAYS | POD_FIG_WHOLE)                             \
    X(FIG_CLOCK, "clock_MHz", 1, 1e5, POD_FIG_ALWAYS)                                              \
    X(FIG_P_STATE_CLOCK, "p_state_clock_frac", 0, 0.125, POD_FIG_MEASURED)                         \
    X(FIG_PEAK_BF16, "peak_bf16_TFLOPs", 1e-3, 1e7, POD_FIG_SHEET)                                 \
    X(FIG_PEAK_INT8, "peak_int8_TOPs", 1e-3, 1e7, POD_FIG_SHEET | POD_FIG_OPTIONAL)                \
    X(FIG_PEAK_FP8, "peak_fp8_TFLOPs", 1e-3, 1e7, POD_FIG_ALWAYS | POD_FIG_OPTIONAL)               \
    X(FIG_F32_PASSES, "f32_passes", 1, 64, POD_FIG_ALWAYS)                                         \
    X(FIG_PEAK_BOOK_BF16, "peak_book_bf16_TFLOPs", 1e-3, 1e7, POD_FIG_BOOK | POD_FIG_OPTIONAL)     \
    X(FIG_PEAK_BOOK_INT8, "peak_book_int8_TOPs", 1e-3, 1e7, POD_FIG_BOOK | POD_FIG_OPTIONAL)       \
    X(FIG_MXU_EFF, "mxu_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                      \
    X(FIG_MXU_STEP, "mxu_step_frac", 1e-3, 1, POD_FIG_MEASURED)                                    \
    X(FIG_KERNEL_START, "kernel_start_us", 0, 1e6, POD_FIG_MEASURED)                               \
    X(FIG_MATMUL_LAUNCH, "matmul_launch_us", 0, 1e6, POD_FIG_MEASURED)                             \
    X(FIG_BLOCK_STEP, "block_step_us", 0, 1e6, POD_FIG_MEASURED)                                   \
    X(FIG_HLO_CYCLES, "hlo_cycles_ratio", 1e-3, 1e3, POD_FIG_ALWAYS)                              \
    X(FIG_VPU_LANES, "vpu_lanes", 1, 1e6, POD_FIG_ALWAYS | POD_FIG_WHOLE)                          \
    X(FIG_VPU_ALUS, "vpu_alus", 1, 64, POD_FIG_ALWAYS | POD_FIG_WHOLE)                             \
    X(FIG_VPU_EFF, "vpu_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                      \
    X(FIG_ATTENTION_FWD, "attention_fwd_ops", 0, 1e3, POD_FIG_ALWAYS)                              \
    X(FIG_ATTENTION_BWD, "attention_bwd_ops", 0, 1e3, POD_FIG_ALWAYS)                              \
    X(FIG_ATTENTION_RESCALE, "attention_rescale_ops", 0, 1e3, POD_FIG_ALWAYS)                      \
    X(FIG_LOSS_FWD, "loss_fwd_ops", 0, 1e3, POD_FIG_ALWAYS)                                        \
    X(FIG_LOSS_BWD, "loss_bwd_ops", 0, 1e3, POD_FIG_ALWAYS)                                        \
    X(FIG_LOSS_CHUNK, "loss_chunk_ops", 0, 1e3, POD_FIG_ALWAYS)                                    \
    X(FIG_GROUPED_CORES, "grouped_cores", 1, 16, POD_FIG_ALWAYS | POD_FIG_WHOLE)                   \
    X(FIG_SCALAR_GATHER, "scalar_gather_ns", 0, 1e6, POD_FIG_MEASURED)                             \
    X(FIG_HBM_SIZE, "hbm_GiB", 1e-3, 1e6, POD_FIG_ALWAYS)                                          \
    X(FIG_HBM_USABLE, "hbm_usable_GiB", 1e-3, 1e6, POD_FIG_ALWAYS)                                 \
    X(FIG_HBM_RATE, "hbm_GBps", 1e-3, 1e7, POD_FIG_SHEET)                                          \
    X(FIG_HBM_BOOK, "hbm_book_GBps", 1e-3, 1e7, POD_FIG_BOOK | POD_FIG_OPTIONAL)                   \
    X(FIG_HBM_EFF, "hbm_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                      \
    X(FIG_COPY_LAUNCH, "copy_launch_us", 0, 1e6, POD_FIG_MEASURED)                                 \
    X(FIG_GATHER_HBM, "gather_hbm_ratio", 0, 64, POD_FIG_MEASURED)                                 \
    X(FIG_SCATTER_HBM, "scatter_hbm_ratio", 0, 64, POD_FIG_MEASURED)                               \
    X(FIG_PAGED_EFF, "paged_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                  \
    X(FIG_VMEM_SIZE, "vmem_MiB", 1e-3, 1e6, POD_FIG_ALWAYS)                                        \
    X(FIG_VMEM_BLOCK, "vmem_block_MiB", 1e-3, 1e6, POD_FIG_ALWAYS)                                 \
    X(FIG_VMEM_RATIO, "vmem_over_hbm_ratio", 1, 1e4, POD_FIG_ALWAYS)                               \
    X(FIG_ICI_AXES, "ici_axes", 1, 3, POD_FIG_WHOLE)                                               \
    X(FIG_ICI_LINKS, "ici_links", 2, 6, POD_FIG_WHOLE)                                             \
    X(FIG_LINK_VENDOR, "link_vendor_GBps", 1e-6, 1e6, POD_FIG_SHEET)                               \
    X(FIG_LINK_BOOK, "link_book_GBps", 1e-6, 1e6, POD_FIG_BOOK | POD_FIG_OPTIONAL)                 \
    X(FIG_LINK_COMPILER, "link_compiler_GBps", 1e-6, 1e6, POD_FIG_OPTIONAL)                        \
    X(FIG_LINK_EFF, "link_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                    \
    X(FIG_HOP, "hop_latency_us", 1e-6, 1e6, POD_FIG_ALWAYS)                                        \
    X(FIG_COLLECTIVE_LAUNCH, "collective_launch_us", 0, 1e6, POD_FIG_MEASURED)                     \
    X(FIG_HOST_LAUNCH, "host_launch_us", 0, 1e6, POD_FIG_MEASURED)                                 \
    X(FIG_MULTI_AXIS, "multi_axis_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                            \
    X(FIG_CUT_MIN, "cut_min_KiB", 0, 1e9, POD_FIG_MEASURED)                                        \
    X(FIG_CORE_LINK, "core_link_GBps", 1e-6, 1e6, POD_FIG_ALWAYS | POD_FIG_OPTIONAL)               \
    X(FIG_DCN, "dcn_chip_GBps", 1e-6, 1e6, POD_FIG_ALWAYS)                                         \
    X(FIG_DCN_EFF, "dcn_eff_frac", 1e-3, 1, POD_FIG_MEASURED)                                      \
    X(FIG_DCN_LATENCY, "dcn_latency_us", 0, 1e9, POD_FIG_ALWAYS)                                   \
    X(FIG_DCN_OVERSUBSCRIPTION, "dcn_oversubscription_ratio", 1, 1e6, POD_FIG_ALWAYS)              \
    X(FIG_SLICE_JITTER, "slice_jitter_frac", 0, 1, POD_FIG_MEASURED)                               \
    X(FIG_PCIE, "pcie_chip_GBps", 1e-6, 1e6, POD_FIG_ALWAYS)

/* Columns of what slices of a generation have in common: ici/generation.h reads them. */
#define POD_CHIP_SLICE_TEXTS(X)                                                                    \
    X("type_prefix") X("type_units") X("wrap_rule") X("twisted_by_default")                        \
    X("slice_rule_source") X("mesh_order") X("mesh_order_source") X("xla_short_form")              \
    X("xla_ring_slice_chips") X("xla_gather_ring_chips") X("xla_router_chips") X("xla_twist_seen") \
    X("xla_caveat") X("xla_source")
/* Columns of text; those from server_dims on are dimensions such as "4x2". */
#define POD_CHIP_TEXTS(X)                                                                          \
    X("chip") X("alias") X("server_dims") X("vm_dims") X("pod_dims") X("devices_source")             \
    X("core_source") X("peak_source") X("peak_book_source") X("matmul_fit_source")           \
    X("hlo_cycles_source")                                                                         \
    X("vpu_source") X("kernel_source") X("hbm_size_source") X("hbm_source") X("hbm_book_source")                      \
    X("hbm_fit_source") X("vmem_source") X("ici_source") X("link_vendor_source")                   \
    X("link_book_source") X("link_compiler_source") X("link_fit_source") X("hop_source")           \
    X("core_link_source") X("dcn_source") X("dcn_fit_source") X("pcie_source") X("host_source") \
    POD_CHIP_SLICE_TEXTS(X)
/* clang-format on */

#define POD_FIG_ENUM(id, name, min, max, flags) id,
enum pod_figure_id { POD_CHIP_FIGURES(POD_FIG_ENUM) FIG_COUNT };
#undef POD_FIG_ENUM

struct pod_figure {
    const char *name;
    double min;
    double max;
    unsigned flags;
};

extern const struct pod_figure pod_chip_figure[FIG_COUNT];

/** The figures of one row, in the units of the table. */
struct pod_chip_row {
    double value[FIG_COUNT]; /**< 0 where empty */
    bool present[FIG_COUNT];
    int server_dims[POD_CHIP_AXES];
    int vm_dims[POD_CHIP_AXES];
    int pod_dims[POD_CHIP_AXES];
};

/** Check the columns and every row. POD_E_TABLE at the field. */
pod_status pod_chip_rows_check(const pod_table *chips, pod_error *err);

/** Read row `row` of a table whose columns were checked. POD_E_TABLE at the field. */
pod_status pod_chip_row_read(const pod_table *chips, int row, struct pod_chip_row *figures,
                             pod_error *err);

/** Apply `nsettings` texts "KEY=VALUE", then let the figures that follow follow. POD_E_USAGE. */
pod_status pod_chip_row_set(struct pod_chip_row *figures, pod_rates rates,
                            const char *const *settings, int nsettings, pod_error *err);
