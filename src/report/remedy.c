/* SPDX-License-Identifier: Apache-2.0 */
#include "report/remedy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Exposed time of axes whose list has, or has not, the name of a mesh axis. */
static double exposed_with(const pod_breakdown *breakdown, const char *name, bool has)
{
    double sum = 0;
    for (int i = 0; i < breakdown->naxes; i++) {
        if ((strstr(breakdown->axis[i].axes, name) != NULL) == has
            && strcmp(breakdown->axis[i].axes, "pipeline") != 0) {
            sum += breakdown->axis[i].exposed_s;
        }
    }
    return sum;
}

__attribute__((format(printf, 3, 4))) static void offer(pod_remedy *best, double gain_frac,
                                                        const char *format, ...)
{
    enum { PERCENT_DIVISOR = 100 };
    if (gain_frac < 1.0 / PERCENT_DIVISOR || gain_frac <= best->gain_frac) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(best->text, sizeof best->text, format, args);
    va_end(args);
    best->gain_frac = gain_frac;
}

void pod_remedy_find(const pod_remedy_facts *facts, pod_remedy *remedy)
{
    const pod_breakdown *b = facts->breakdown;
    const double step = b->step_s;
    *remedy = (pod_remedy){.gain_frac = 0};
    if (step <= 0) {
        return;
    }
    const double by_weights = exposed_with(b, "tensor", false);
    const double by_rows = exposed_with(b, "tensor", true);
    const double by_gathers = exposed_with(b, "fsdp", true);
    if (facts->gather_ahead == 0) {
        offer(remedy, smaller(by_gathers, b->compute_s) / step,
              "--gather-ahead 1: gather weights while the layer before computes");
    }
    if (facts->stages > 1) {
        const double slots = facts->microbatches + facts->stages - 1;
        offer(remedy, b->idle_s * (1 - slots / (slots + facts->microbatches)) / step,
              "--microbatches %d: a smaller part of the pipeline's slots stays empty",
              2 * facts->microbatches);
    }
    if (!facts->batch_is_fixed) {
        const double later = (step - by_weights) + larger(0, by_weights - b->compute_s) / 2;
        offer(remedy, 1 - later / step,
              "twice the batch: the weight collectives stay the same size and overlap with more "
              "compute");
    }
    if (facts->smaller_tensor > 0) {
        const double left = (double)facts->smaller_tensor / facts->tensor;
        offer(remedy, by_rows * (1 - left) / step,
              "another sharding, tensor=%d: activations are %s", facts->smaller_tensor,
              facts->smaller_tensor > 1 ? "summed over fewer chips" : "not summed at all");
    }
    offer(remedy, facts->padding_s / step,
          "sizes of a shard in multiples of %d: matmuls fill the array", facts->mxu_dim);
    offer(remedy, b->hbm_bound_s / 2 / step, "%s: more rows for each weight read from HBM",
          facts->microbatches > 1 ? "half the microbatches" : "twice the rows a chip");
}

double pod_padding_s(const pod_programs *programs, const pod_step_result *result, int mxu_dim)
{
    double sum = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (op->kind != POD_OP_MATMUL || op->k == 0 || op->n == 0) {
                continue;
            }
            const int64_t k = (op->k + mxu_dim - 1) / mxu_dim * mxu_dim;
            const int64_t n = (op->n + mxu_dim - 1) / mxu_dim * mxu_dim;
            const double used = (double)op->k / (double)k * ((double)op->n / (double)n);
            sum += pod_time_to_s(result->ops[s][i].time_ps) * (1 - used);
        }
    }
    return result->cells > 0 ? sum / (double)result->cells : 0;
}
