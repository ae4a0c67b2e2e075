/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/chip.h"

#include "base/names.h"
#include "chip/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the scaling book takes of the vendor's link rate: 45 of 50 and 90 of 100 GB/s. */
static const double book_of_vendor_link_frac = 0.9;

static const double per_giga = 1e9;
static const double per_tera = 1e12;
static const double per_mega = 1e6;
static const double s_per_us = 1e-6;
static const double bytes_per_kib = 1024.0;
static const double bytes_per_gib = 1073741824.0;
static const double bytes_per_mib = 1048576.0;

pod_status pod_chips_check(const pod_table *chips, pod_error *err)
{
    return pod_chip_rows_check(chips, err);
}

const char *pod_chips_name(const pod_table *chips, int row)
{
    return pod_table_text(chips, row, pod_table_column(chips, "chip"));
}

int pod_chips_find(const pod_table *chips, const char *name, pod_error *err)
{
    enum { KNOWN_MAX = 64 };
    const int chip = pod_table_column(chips, "chip");
    const int alias = pod_table_column(chips, "alias");
    const int row = pod_table_find(chips, chip, name);
    if (row >= 0) {
        return row;
    }
    for (int i = 0; i < pod_table_rows(chips); i++) {
        if (pod_is_word(pod_table_text(chips, i, alias), name, strlen(name))) {
            return i;
        }
    }
    const char *known[KNOWN_MAX];
    int nknown = 0;
    for (int i = 0; i < pod_table_rows(chips) && nknown < KNOWN_MAX; i++) {
        known[nknown++] = pod_table_text(chips, i, chip);
    }
    (void)pod_fail_unknown(err, POD_E_USAGE, "chip", name, known, nknown);
    return -1;
}

/* The book's figure under book rates where it has one, else the vendor's. */
static double pick(const struct pod_chip_row *row, pod_rates rates, int vendor, int book)
{
    const bool use_book = rates == POD_RATES_BOOK && row->present[book];
    return row->value[use_book ? book : vendor];
}

static void fill_compute(const struct pod_chip_row *row, pod_chip_spec *spec)
{
    const double *value = row->value;
    spec->devices = (int)value[FIG_DEVICES];
    spec->cores = (int)value[FIG_CORES];
    spec->mxus_per_core = (int)value[FIG_MXUS];
    spec->mxu_dim = (int)value[FIG_MXU_DIM];
    spec->clock_hz = value[FIG_CLOCK] * per_mega;

    double *peak = spec->peak_ops_per_s;
    const double bf16 = pick(row, spec->rates, FIG_PEAK_BF16, FIG_PEAK_BOOK_BF16) * per_tera;
    const double int8 = pick(row, spec->rates, FIG_PEAK_INT8, FIG_PEAK_BOOK_INT8) * per_tera;
    const double fp8 = value[FIG_PEAK_FP8] * per_tera;
    peak[POD_DTYPE_BF16] = bf16;
    peak[POD_DTYPE_F32] = bf16 / value[FIG_F32_PASSES];
    peak[POD_DTYPE_INT8] = int8 > 0 ? int8 : bf16;
    peak[POD_DTYPE_FP8] = fp8 > 0 ? fp8 : bf16;
    peak[POD_DTYPE_FP8_E5M2] = peak[POD_DTYPE_FP8];
    spec->vpu_ops_per_s =
        value[FIG_VPU_LANES] * value[FIG_VPU_ALUS] * value[FIG_CORES] * spec->clock_hz;
    spec->attention_fwd_ops = value[FIG_ATTENTION_FWD];
    spec->attention_bwd_ops = value[FIG_ATTENTION_BWD];
    spec->attention_rescale_ops = value[FIG_ATTENTION_RESCALE];
    spec->loss_fwd_ops = value[FIG_LOSS_FWD];
    spec->loss_bwd_ops = value[FIG_LOSS_BWD];
    spec->loss_chunk_ops = value[FIG_LOSS_CHUNK];
    spec->grouped_cores = (int)fmin(value[FIG_GROUPED_CORES], value[FIG_CORES]);
}

static void fill_memory(const struct pod_chip_row *row, pod_chip_spec *spec)
{
    const double *value = row->value;
    spec->hbm_bytes = llround(value[FIG_HBM_SIZE] * bytes_per_gib);
    spec->hbm_usable_bytes = llround(value[FIG_HBM_USABLE] * bytes_per_gib);
    spec->hbm_bytes_per_s = pick(row, spec->rates, FIG_HBM_RATE, FIG_HBM_BOOK) * per_giga;
    spec->vmem_bytes = llround(value[FIG_VMEM_SIZE] * bytes_per_mib);
    spec->vmem_block_bytes = llround(value[FIG_VMEM_BLOCK] * bytes_per_mib);
    spec->vmem_bytes_per_s = spec->hbm_bytes_per_s * value[FIG_VMEM_RATIO];
}

static void fill_network(const struct pod_chip_row *row, pod_chip_spec *spec)
{
    const double *value = row->value;
    const bool from_vendor = spec->rates == POD_RATES_BOOK && !row->present[FIG_LINK_BOOK];
    const double link = pick(row, spec->rates, FIG_LINK_VENDOR, FIG_LINK_BOOK) * per_giga;
    spec->ici_axes = (int)value[FIG_ICI_AXES];
    spec->ici_links = (int)value[FIG_ICI_LINKS];
    spec->link_nominal_bytes_per_s = from_vendor ? link * book_of_vendor_link_frac : link;
    spec->link_oneway_bytes_per_s = spec->link_nominal_bytes_per_s;
    spec->link_compiler_bytes_per_s = value[FIG_LINK_COMPILER] * per_giga;
    spec->hop_latency_ps = pod_time_from_s(value[FIG_HOP] * s_per_us);
    spec->core_link_bytes_per_s = value[FIG_CORE_LINK] * per_giga;
    spec->dcn_bytes_per_s = value[FIG_DCN] * per_giga;
    spec->dcn_oversubscription = value[FIG_DCN_OVERSUBSCRIPTION];
    spec->dcn_latency_ps = pod_time_from_s(value[FIG_DCN_LATENCY] * s_per_us);
    spec->pcie_bytes_per_s = value[FIG_PCIE] * per_giga;
    memcpy(spec->server_dims, row->server_dims, sizeof spec->server_dims);
    memcpy(spec->vm_dims, row->vm_dims, sizeof spec->vm_dims);
    memcpy(spec->pod_dims, row->pod_dims, sizeof spec->pod_dims);
}

static void fill_losses(const struct pod_chip_row *row, pod_chip_spec *spec)
{
    const double *value = row->value;
    const bool measured = spec->rates == POD_RATES_MEASURED;
    spec->mxu_eff_frac = measured ? value[FIG_MXU_EFF] : 1;
    spec->mxu_step_frac = measured ? value[FIG_MXU_STEP] : 1;
    spec->p_state_clock_frac = measured ? value[FIG_P_STATE_CLOCK] : 0;
    spec->hlo_cycles_ratio = value[FIG_HLO_CYCLES];
    spec->vpu_eff_frac = measured ? value[FIG_VPU_EFF] : 1;
    spec->hbm_eff_frac = measured ? value[FIG_HBM_EFF] : 1;
    spec->dcn_eff_frac = measured ? value[FIG_DCN_EFF] : 1;
    spec->multi_axis_eff_frac = measured ? value[FIG_MULTI_AXIS] : 1;
    spec->gather_hbm_ratio = measured ? value[FIG_GATHER_HBM] : 1;
    spec->scatter_hbm_ratio = measured ? value[FIG_SCATTER_HBM] : 1;
    spec->paged_eff_frac = measured ? value[FIG_PAGED_EFF] : 1;
    if (!measured) {
        return;
    }
    spec->scalar_gather_s = value[FIG_SCALAR_GATHER] * 1e-9;
    spec->slice_jitter_frac = value[FIG_SLICE_JITTER];
    spec->link_oneway_bytes_per_s *= value[FIG_LINK_EFF];
    spec->kernel_start_ps = pod_time_from_s(value[FIG_KERNEL_START] * s_per_us);
    spec->matmul_launch_ps = pod_time_from_s(value[FIG_MATMUL_LAUNCH] * s_per_us);
    spec->block_step_ps = pod_time_from_s(value[FIG_BLOCK_STEP] * s_per_us);
    spec->copy_launch_ps = pod_time_from_s(value[FIG_COPY_LAUNCH] * s_per_us);
    spec->collective_launch_ps = pod_time_from_s(value[FIG_COLLECTIVE_LAUNCH] * s_per_us);
    spec->host_launch_ps = pod_time_from_s(value[FIG_HOST_LAUNCH] * s_per_us);
    spec->cut_min_bytes = llround(value[FIG_CUT_MIN] * bytes_per_kib);
}

pod_status pod_chip_load(const pod_table *chips, const char *name, pod_rates rates,
                         const char *const *settings, int nsettings, pod_chip_spec *spec,
                         pod_error *err)
{
    POD_TRY(pod_chips_check(chips, err));
    const int index = pod_chips_find(chips, name, err);
    if (index < 0) {
        return POD_E_USAGE;
    }
    struct pod_chip_row row;
    pod_status st = pod_chip_row_read(chips, index, &row, err);
    POD_THEN(st, pod_chip_row_set(&row, rates, settings, nsettings, err));
    if (st != POD_OK) {
        return st;
    }
    *spec = (pod_chip_spec){.rates = rates};
    (void)snprintf(spec->name, sizeof spec->name, "%s", pod_chips_name(chips, index));
    fill_compute(&row, spec);
    fill_memory(&row, spec);
    fill_network(&row, spec);
    fill_losses(&row, spec);
    return POD_OK;
}

double pod_chip_link_bytes_per_s(const pod_chip_spec *chip, int links)
{
    enum { RING_LINKS = 2 };
    return chip->link_oneway_bytes_per_s * (links > RING_LINKS ? chip->multi_axis_eff_frac : 1);
}

/* One of `parts` equal parts of the chip. */
static pod_chip_spec part_of_chip(const pod_chip_spec *chip, int parts)
{
    pod_chip_spec part = *chip;
    for (int i = 0; i < POD_DTYPE_COUNT; i++) {
        part.peak_ops_per_s[i] /= parts;
    }
    part.cores = chip->cores > parts ? chip->cores / parts : 1;
    part.devices = 1;
    part.vpu_ops_per_s /= parts;
    part.hbm_bytes /= parts;
    part.hbm_usable_bytes /= parts;
    part.hbm_bytes_per_s /= parts;
    part.vmem_bytes /= parts;
    part.vmem_bytes_per_s /= parts;
    return part;
}

void pod_chip_clock_set(pod_chip_spec *chip, int state)
{
    enum { USUAL_STATE = 3 };
    const double ratio = 1 + chip->p_state_clock_frac * (state - USUAL_STATE);
    chip->clock_hz *= ratio;
    chip->vpu_ops_per_s *= ratio;
    chip->mxu_eff_frac *= ratio;
}

pod_chip_spec pod_chip_one_core(const pod_chip_spec *chip)
{
    return part_of_chip(chip, chip->cores);
}

pod_chip_spec pod_chip_one_device(const pod_chip_spec *chip)
{
    return part_of_chip(chip, chip->devices);
}

pod_chip_spec pod_chip_kernel_device(const pod_chip_spec *chip, int cores, int *devices)
{
    pod_chip_spec device = pod_chip_one_device(chip);
    const int wanted = cores > 0 ? cores : chip->grouped_cores;
    *devices = wanted < chip->devices ? wanted : chip->devices;
    const int used = wanted / *devices < device.cores ? wanted / *devices : device.cores;
    for (int i = 0; i < POD_DTYPE_COUNT; i++) {
        device.peak_ops_per_s[i] *= (double)used / device.cores;
    }
    device.vpu_ops_per_s *= (double)used / device.cores;
    device.vmem_bytes = device.vmem_bytes / device.cores * used;
    device.cores = used;
    return device;
}
