/* SPDX-License-Identifier: Apache-2.0 */
/* What chips have against the reference's values and bounds. */
#include "workload/verify/transformer_reference.h"

#include <math.h>

static void element_compare(pod_transformer_check *check, const pod_transformer_values *values,
                            int64_t at, double got)
{
    const double difference = fabs(got - values->value[at]);
    const double bound = (double)values->bound[at];
    const double error = values->largest > 0 ? difference / values->largest : difference;
    check->checked++;
    check->wrong += !(difference <= bound);
    check->error = error > check->error ? error : check->error;
    check->share = difference / bound > check->share ? difference / bound : check->share;
}

void pod_transformer_compare(pod_transformer_check *check, const pod_transformer_values *values,
                             const pod_patch *patch, pod_dtype dtype, const void *got)
{
    const char *next = got;
    for (int64_t r = patch->row; r < patch->row + patch->rows; r++) {
        for (int64_t c = patch->column; c < patch->column + patch->columns; c++) {
            float value;
            pod_dtype_to_f32(dtype, &value, next, 1);
            element_compare(check, values, r * values->columns + c, (double)value);
            next += pod_dtype_size(dtype);
        }
    }
}

pod_transformer_verdict pod_transformer_judge(const pod_transformer_values *logits, int64_t row,
                                              int32_t token, int64_t classes)
{
    const double *value = logits->value + row * logits->columns;
    const float *bound = logits->bound + row * logits->columns;
    int64_t best = token;
    for (int64_t i = token % classes; i < logits->columns; i += classes) {
        best = value[i] > value[best] ? i : best;
    }
    if (token == best) {
        return POD_TOKEN_SAME;
    }
    const double error = hypot((double)bound[token], (double)bound[best]);
    return value[best] - value[token] <= error ? POD_TOKEN_NEAR : POD_TOKEN_WRONG;
}
