/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/cost.h"

#include "chip/matmul.h"
#include "hlo/config.h"

#include <stdlib.h>

/* Of some matmuls. */
struct matmuls {
    double mxu_s;       /* without fill */
    double block_bytes; /* what they move if all operands and results are in HBM */
    double gaps_s;      /* between the blocks of those: block_step_us each */
};

struct pod_hlo_costs {
    const pod_hlo_works *works;
    const pod_hlo_module *module;
    const pod_chip_spec *chip;
    const pod_hlo_cost_options *options;
    pod_chip_spec sustained; /* the chip as long steps run it */
    struct matmuls *inside;  /* inside[computation]: its matmuls, those of nested fusions too */
};

const char *pod_hlo_bound_name(pod_hlo_bound bound)
{
    static const char *const names[] = {"-", "mxu", "vpu", "vmem", "hbm", "start", "given"};
    return names[bound];
}

bool pod_hlo_cost_moves(const pod_hlo_cost *cost)
{
    static const int64_t bytes_per_op = 64;
    const pod_hlo_traffic *traffic = &cost->work.traffic;
    const int64_t bytes =
        pod_hlo_add(pod_hlo_add(traffic->hbm_read, traffic->hbm_write), traffic->vmem);
    return cost->kind == POD_HLO_KIND_ELEMENTWISE && traffic->ops <= bytes / bytes_per_op;
}

/* ---- matmuls ---- */

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void matmul_add(const pod_hlo_costs *costs, const pod_hlo_matmul *matmul,
                       struct matmuls *sum)
{
    const pod_chip_spec *chip = &costs->sustained;
    const double times = (double)matmul->count * matmul->passes;
    const pod_matmul_args args = {
        .m = matmul->m, .k = matmul->k, .n = matmul->n, .dtype = matmul->dtype};
    const pod_matmul_args turned = {
        .m = matmul->n, .k = matmul->k, .n = matmul->m, .dtype = matmul->dtype};
    pod_matmul_time time;
    sum->mxu_s += times * least(pod_matmul_mxu_s(chip, &args), pod_matmul_mxu_s(chip, &turned));
    if (pod_matmul_time_get(chip, &args, &time, NULL) == POD_OK && time.steps > 0) {
        sum->block_bytes += (double)matmul->count * (double)time.hbm_bytes;
        sum->gaps_s +=
            (double)matmul->count * (double)(time.steps - 1) * pod_time_to_s(chip->block_step_ps);
    }
}

/* The matmuls that an instruction is or holds. */
static void matmuls_add(const pod_hlo_costs *costs, uint32_t instruction, struct matmuls *sum)
{
    const pod_hlo_instruction *what = &costs->module->instruction[instruction];
    const uint32_t own = costs->works->matmul_of[instruction];
    const uint32_t fused = pod_hlo_fused(costs->module, what);
    if (own != POD_HLO_NONE) {
        matmul_add(costs, &costs->works->analysis->matmul[own], sum);
    } else if (fused != POD_HLO_NONE) {
        sum->mxu_s += costs->inside[fused].mxu_s;
        sum->block_bytes += costs->inside[fused].block_bytes;
        sum->gaps_s += costs->inside[fused].gaps_s;
    }
}

pod_status pod_hlo_costs_new(const pod_hlo_works *works, const pod_chip_spec *chip,
                             const pod_hlo_cost_options *options, pod_hlo_costs **out,
                             pod_error *err)
{
    const pod_hlo_module *module = works->module;
    *out = NULL;
    pod_hlo_costs *costs = calloc(1, sizeof *costs);
    struct matmuls *inside = calloc((size_t)module->ncomputations + 1, sizeof *inside);
    if (costs == NULL || inside == NULL) {
        free(costs);
        free(inside);
        return pod_fail(err, POD_E_NOMEM, "out of memory for the costs of an HLO text");
    }
    *costs = (pod_hlo_costs){.works = works,
                             .module = module,
                             .chip = chip,
                             .options = options,
                             .sustained = *chip,
                             .inside = inside};
    costs->sustained.mxu_eff_frac *= chip->mxu_step_frac;
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        const uint32_t number = module->callee_first[c];
        const pod_hlo_computation *computation = &module->computation[number];
        if (works->largest[number] == POD_HLO_NONE) {
            continue;
        }
        for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
            matmuls_add(costs, i, &inside[number]);
        }
    }
    *out = costs;
    return POD_OK;
}

void pod_hlo_costs_free(pod_hlo_costs *costs)
{
    if (costs != NULL) {
        free(costs->inside);
        free(costs);
    }
}

/* ---- terms ---- */

double pod_hlo_scale_of(const pod_hlo_costs *costs, uint32_t instruction)
{
    double factor = 1;
    for (int i = 0; i < costs->options->nscales; i++) {
        const pod_hlo_scale *scale = &costs->options->scale[i];
        if (scale->pattern != NULL
            && pod_hlo_named(costs->module, &costs->module->instruction[instruction],
                             scale->pattern)) {
            factor *= scale->factor;
        }
    }
    return factor;
}

static double scale_of_kind(const pod_hlo_cost_options *options, pod_hlo_kind kind)
{
    double factor = 1;
    for (int i = 0; i < options->nscales; i++) {
        if (options->scale[i].pattern == NULL && options->scale[i].kind == kind) {
            factor *= options->scale[i].factor;
        }
    }
    return factor;
}

static pod_time_ps shorter(pod_time_ps time_ps, double factor)
{
    return (pod_time_ps)((double)time_ps / factor + 0.5);
}

pod_chip_spec pod_hlo_scale_links(const pod_hlo_cost_options *options, const pod_chip_spec *chip)
{
    const double ici = scale_of_kind(options, POD_HLO_KIND_COLLECTIVE);
    const double transfers = scale_of_kind(options, POD_HLO_KIND_TRANSFER);
    const double dcn = transfers != 1 ? transfers : ici;
    pod_chip_spec scaled = *chip;
    if (ici != 1) {
        scaled.link_oneway_bytes_per_s *= ici;
        scaled.collective_launch_ps = shorter(chip->collective_launch_ps, ici);
        scaled.hop_latency_ps = shorter(chip->hop_latency_ps, ici);
        scaled.hop_latency_ps += scaled.hop_latency_ps == 0; /* lookahead of the simulation */
    }
    if (dcn != 1) {
        scaled.dcn_bytes_per_s *= dcn;
        scaled.pcie_bytes_per_s *= dcn;
        scaled.dcn_latency_ps = shorter(chip->dcn_latency_ps, dcn);
        scaled.dcn_latency_ps += scaled.dcn_latency_ps == 0;
    }
    return scaled;
}

static double hbm_rate(const pod_chip_spec *chip)
{
    return chip->hbm_bytes_per_s * chip->hbm_eff_frac;
}

/* Bytes in terms of time: rows that are gathered or scattered count more than once. */
static int64_t weighed_bytes(const pod_chip_spec *chip, const pod_hlo_traffic *traffic)
{
    const double bytes = (double)traffic->hbm_read + (double)traffic->hbm_write
                         + (double)traffic->gather * (chip->gather_hbm_ratio - 1);
    return bytes < (double)POD_HLO_COUNT_MAX ? (int64_t)(bytes + 0.5) : POD_HLO_COUNT_MAX;
}

/* The estimate of the compiler; -1 if there is none. */
static pod_status compiler_time(const pod_hlo_costs *costs, uint32_t instruction,
                                pod_time_ps *time_ps)
{
    const int64_t cycles = costs->works->analysis->cycles[instruction];
    *time_ps = cycles < 0 || cycles == INT64_MAX
                   ? -1
                   : pod_time_from_s((double)cycles / costs->chip->clock_hz
                                     * costs->chip->hlo_cycles_ratio);
    return *time_ps == POD_TIME_NEVER ? POD_E_RANGE : POD_OK;
}

static pod_time_ps latest(pod_time_ps a, pod_time_ps b)
{
    return a > b ? a : b;
}

static pod_hlo_bound bound_of(const pod_hlo_cost *cost)
{
    const pod_time_ps hbm_ps = cost->hbm_ps + cost->gaps_ps;
    const pod_time_ps most =
        latest(latest(cost->mxu_ps, cost->vector_ps), latest(cost->vmem_ps, hbm_ps));
    if (cost->start_ps > most) {
        return POD_HLO_BOUND_START;
    }
    if (most == 0) {
        return POD_HLO_BOUND_NONE;
    }
    if (cost->mxu_ps == most) {
        return POD_HLO_BOUND_MXU;
    }
    if (hbm_ps == most) {
        return POD_HLO_BOUND_HBM;
    }
    return cost->vector_ps == most ? POD_HLO_BOUND_VPU : POD_HLO_BOUND_VMEM;
}

/* Time between blocks, of those that pass through the HBM: operands and results in VMEM have none. */
static pod_time_ps gaps_of(const struct matmuls *matmuls, int64_t hbm_bytes)
{
    if (matmuls->block_bytes <= 0) {
        return 0;
    }
    const double frac = least(1, (double)hbm_bytes / matmuls->block_bytes);
    return pod_time_from_s(frac * matmuls->gaps_s);
}

static int64_t least_bytes(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void terms_of(const pod_hlo_costs *costs, uint32_t instruction, pod_hlo_cost *cost)
{
    const pod_chip_spec *chip = costs->chip;
    const pod_hlo_work *work = &cost->work;
    struct matmuls matmuls = {0};
    matmuls_add(costs, instruction, &matmuls);
    cost->flops = work->flops;
    cost->mxu_ps = matmuls.mxu_s > 0 ? pod_time_from_s(matmuls.mxu_s + pod_matmul_fill_s(chip)) : 0;
    cost->vector_ps =
        pod_time_from_s((double)work->traffic.ops / (chip->vpu_ops_per_s * chip->vpu_eff_frac));
    cost->vmem_ps = pod_time_from_s((double)work->traffic.vmem / chip->vmem_bytes_per_s);
    cost->hbm_bytes = weighed_bytes(chip, &work->traffic);
    if (costs->options->spared != NULL) {
        cost->hbm_bytes -= least_bytes(cost->hbm_bytes, costs->options->spared[instruction]);
    }
    cost->start_ps = cost->hbm_bytes > 0 ? chip->kernel_start_ps : 0;
    cost->unit_ps = latest(latest(cost->mxu_ps, cost->vector_ps), cost->vmem_ps);
    cost->gaps_ps = gaps_of(&matmuls, cost->hbm_bytes);
    if (cost->gaps_ps > 0) {
        const pod_time_ps bytes_ps =
            pod_rate_time_ps(pod_rate_make(hbm_rate(chip)), cost->hbm_bytes);
        cost->unit_ps = latest(cost->unit_ps, bytes_ps + cost->gaps_ps);
    }
}

/* ---- custom calls ---- */

static const pod_hlo_custom *custom_find(const pod_hlo_costs *costs, uint32_t instruction)
{
    for (int i = 0; i < costs->options->ncustom; i++) {
        if (pod_hlo_named_from(costs->module, &costs->module->instruction[instruction],
                               costs->options->custom[i].name)) {
            return &costs->options->custom[i];
        }
    }
    return NULL;
}

/* FLOPs and bytes over the chip's rates. */
static void custom_rates(const pod_hlo_costs *costs, double flops, int64_t bytes,
                         pod_hlo_cost *cost)
{
    const pod_chip_spec *chip = &costs->sustained;
    const double peak = chip->peak_ops_per_s[POD_DTYPE_BF16] * chip->mxu_eff_frac;
    cost->mxu_ps = pod_time_from_s(flops / peak);
    cost->unit_ps = cost->mxu_ps;
    cost->hbm_bytes = bytes;
    cost->start_ps = bytes > 0 ? chip->kernel_start_ps : 0;
    cost->flops = flops < (double)POD_HLO_COUNT_MAX ? (int64_t)(flops + 0.5) : POD_HLO_COUNT_MAX;
}

static pod_status attention_terms(const pod_hlo_costs *costs, pod_hlo_attention *attention,
                                  pod_hlo_cost *cost, pod_error *err)
{
    pod_attention_time time;
    attention->args.causal = !costs->options->full_attention;
    POD_TRY(pod_hlo_attention_time(attention, costs->chip, &time, err));
    cost->kind = POD_HLO_KIND_ATTENTION;
    cost->mxu_ps = time.mxu_ps;
    cost->vector_ps = time.vpu_ps;
    cost->unit_ps = time.grid_ps;
    cost->flops =
        time.flops < (double)POD_HLO_COUNT_MAX ? (int64_t)(time.flops + 0.5) : POD_HLO_COUNT_MAX;
    return POD_OK;
}

static pod_status custom_terms(const pod_hlo_costs *costs, uint32_t instruction, pod_hlo_cost *cost,
                               pod_error *err)
{
    const pod_hlo_instruction *call = &costs->module->instruction[instruction];
    const pod_hlo_custom *given = custom_find(costs, instruction);
    if (given != NULL && given->timed) {
        cost->start_ps = 0;
        cost->hbm_bytes = 0;
        cost->unit_ps = given->time_ps;
        cost->bound = POD_HLO_BOUND_GIVEN;
        return POD_OK;
    }
    if (given != NULL) {
        custom_rates(costs, given->flops, given->bytes, cost);
        return POD_OK;
    }
    pod_hlo_attention attention;
    if (pod_hlo_attention_find(costs->options->kernels, costs->module, call, &attention)) {
        return attention_terms(costs, &attention, cost, err);
    }
    pod_hlo_config config;
    const pod_status st = pod_hlo_config_read(costs->module, call, &config, err);
    if (st == POD_OK && (config.flops >= 0 || config.bytes_accessed >= 0)) {
        custom_rates(costs, config.flops > 0 ? (double)config.flops : 0,
                     config.bytes_accessed > 0 ? config.bytes_accessed : 0, cost);
        cost->estimated = true;
        return POD_OK;
    }
    cost->unknown = true;
    return st;
}

/* ---- one instruction ---- */

/* All that was said of it: the compiler's estimate, factors, what it takes by itself. */
static pod_status cost_finish(const pod_hlo_costs *costs, uint32_t instruction, pod_hlo_cost *cost,
                              pod_error *err)
{
    const double factor =
        pod_hlo_scale_of(costs, instruction) * scale_of_kind(costs->options, cost->kind);
    const pod_rate rate = pod_rate_make(hbm_rate(costs->chip));
    cost->hbm_ps = pod_rate_time_ps(rate, cost->hbm_bytes);
    pod_status st = compiler_time(costs, instruction, &cost->compiler_ps);
    cost->bound = cost->bound == POD_HLO_BOUND_NONE ? bound_of(cost) : cost->bound;
    if (costs->options->compiler && cost->kind == POD_HLO_KIND_MATMUL && cost->compiler_ps >= 0) {
        cost->start_ps = 0;
        cost->unit_ps = cost->compiler_ps;
        cost->bound = POD_HLO_BOUND_GIVEN;
    }
    if (factor != 1) {
        cost->start_ps = shorter(cost->start_ps, factor);
        cost->unit_ps = shorter(cost->unit_ps, factor);
        cost->hbm_bytes = (int64_t)((double)cost->hbm_bytes / factor + 0.5);
    }
    const pod_time_ps longest = latest(cost->unit_ps, pod_rate_time_ps(rate, cost->hbm_bytes));
    if (st == POD_OK
        && (longest == POD_TIME_NEVER || cost->mxu_ps == POD_TIME_NEVER
            || !pod_add_i64(cost->start_ps, longest, &cost->alone_ps))) {
        st = POD_E_RANGE;
    }
    if (st != POD_OK) {
        int line = 0;
        int column = 0;
        pod_hlo_position(costs->module->text, costs->module->instruction[instruction].offset, &line,
                         &column);
        return pod_fail_at(err, POD_E_RANGE, costs->module->file, line, column,
                           "an instruction that takes more than 106 days; make it smaller");
    }
    return POD_OK;
}

pod_status pod_hlo_cost_of(const pod_hlo_costs *costs, uint32_t instruction, pod_hlo_cost *cost,
                           pod_error *err)
{
    *cost = (pod_hlo_cost){.compiler_ps = -1};
    pod_status st = pod_hlo_work_of(costs->works, instruction, &cost->work, err);
    cost->kind = cost->work.kind;
    if (st != POD_OK || cost->kind == POD_HLO_KIND_NOTHING) {
        return st;
    }
    terms_of(costs, instruction, cost);
    if (cost->kind == POD_HLO_KIND_CUSTOM) {
        st = custom_terms(costs, instruction, cost, err);
    }
    return st == POD_OK ? cost_finish(costs, instruction, cost, err) : st;
}

pod_status pod_hlo_cost_of_bytes(const pod_hlo_costs *costs, uint32_t instruction,
                                 pod_hlo_cost *cost, pod_error *err)
{
    cost->hbm_bytes = weighed_bytes(costs->chip, &cost->work.traffic);
    const pod_status st = cost_finish(costs, instruction, cost, err);
    cost->compiler_ps = -1;
    return st;
}
