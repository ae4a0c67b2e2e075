/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t pod_reference_tokens(const pod_reference_step *step)
{
    return step->sequences * step->args->seq;
}

pod_reference_weight *pod_reference_weight_of(const pod_reference_step *step,
                                              const pod_reference_state *state, const char *name)
{
    for (int64_t i = 0; i < step->nweights; i++) {
        const char *of = step->weights[i].array.name;
        if (step->weights[i].array.layer == state->number
            && strcmp(strchr(strchr(of, '.') + 1, '.') + 1, name) == 0) {
            return &step->weights[i];
        }
    }
    return NULL;
}

pod_reference_weight *pod_reference_end_of(const pod_reference_step *step, const char *name)
{
    for (int64_t i = 0; i < step->nweights; i++) {
        if (strcmp(step->weights[i].array.name, name) == 0) {
            return &step->weights[i];
        }
    }
    return NULL;
}

int64_t pod_reference_input_terms(const pod_reference_step *step)
{
    return pod_max_i64(step->args->input_terms, 1);
}

/** Matmuls of layers have operands of their own dtype, but those of routers. */
static pod_dtype operands_of(const pod_reference_step *step, const pod_reference_weight *weight)
{
    const bool own = weight->array.layer >= 0 && strstr(weight->array.name, "router") == NULL;
    return own ? step->args->operands : step->args->dtype;
}

pod_reference_weight *pod_reference_bias_of(const pod_reference_step *step,
                                            pod_reference_weight *weight)
{
    return step->args->model->biases > 0 ? weight + 1 : NULL;
}

void pod_reference_multiply(pod_reference_step *step, const pod_inexact_product *product,
                            const pod_reference_weight *bias, const pod_inexact *a,
                            const pod_inexact *weight, const pod_inexact *out)
{
    static const double wide = 0x1p-24; /* of f32 sums */
    const bool several = product->terms > 1;
    const double sums = (double)a->columns * pod_square(wide / step->ix.roundoff);
    const double part =
        (several ? (double)product->terms : 0) * pod_square(step->ix.roundoff) + pod_square(wide);
    pod_inexact_product added = *product;
    if (bias == NULL) {
        pod_inexact_matmul(&step->ix, product, a, weight, out);
        return;
    }
    for (int64_t i = 0; i < out->rows * out->columns; i++) {
        const int64_t at = i / out->columns * out->stride + i % out->columns;
        out->value[at] = bias->value.value[i % out->columns];
        out->square[at] = (float)(part * pod_square(out->value[at]));
    }
    added.accumulate = true;
    pod_inexact_matmul(&step->ix, &added, a, weight, out);
    pod_inexact_store(&step->ix, product->site, out, (double)product->terms + sums);
}

void pod_reference_bias_back(pod_reference_step *step, const pod_reference_weight *bias,
                             const pod_inexact *dout)
{
    const pod_inexact_product sum = {.site = "bias",
                                     .transpose_a = true,
                                     .accumulate = true,
                                     .terms = step->args->gradient_terms,
                                     .operands = step->args->dtype};
    const size_t mark = step->ix.arena.used;
    if (bias == NULL) {
        return;
    }
    const pod_inexact ones = pod_inexact_make(&step->ix, dout->rows, 1);
    pod_inexact_clear(&ones);
    for (int64_t r = 0; r < ones.rows; r++) {
        ones.value[r] = 1;
    }
    pod_inexact_matmul(&step->ix, &sum, &ones, dout, &bias->gradient);
    step->ix.arena.used = mark;
}

/* ---- weights in a byte ---- */

/** A part of an array that one chip has. */
typedef struct part {
    double *first;
    int64_t rows;
    int64_t columns;
    int64_t pitch;
} part;

static double *part_at(const part *p, int64_t i)
{
    return &p->first[i / p->columns * p->pitch + i % p->columns];
}

static float as_dtype(pod_dtype dtype, float value)
{
    char bytes[sizeof(float)];
    pod_dtype_from_f32(dtype, bytes, &value, 1);
    pod_dtype_to_f32(dtype, &value, bytes, 1);
    return value;
}

/** To values of a dtype times a scale, in f32, by which the largest is that of the dtype.
 *  @param stored  what weights are on their way */
static void part_round(pod_dtype stored, pod_dtype dtype, const part *p)
{
    static const float int8_most = 127;
    static const float fp8_most = 448;
    float largest = 0;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        *part_at(p, i) = (double)as_dtype(stored, (float)*part_at(p, i));
        largest = fmaxf(largest, (float)fabs(*part_at(p, i)));
    }
    const float scale =
        largest > 0 ? largest / (dtype == POD_DTYPE_INT8 ? int8_most : fp8_most) : 1;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        *part_at(p, i) = (double)(as_dtype(dtype, (float)*part_at(p, i) / scale) * scale);
    }
}

pod_status pod_reference_weight_round(const pod_reference_step *step, pod_reference_weight *weight,
                                      pod_error *err)
{
    const pod_transformer_array *array = &weight->array;
    const pod_dtype dtype = operands_of(step, weight);
    const int64_t pieces = step->args->weight_pieces;
    if (pod_dtype_size(dtype) > 1 || pieces == 0) {
        return POD_OK;
    }
    const pod_layer layer = pod_model_layer(step->args->model, array->layer);
    const pod_layer_matmul *m = &layer.matmul[array->matmul];
    const int64_t by_columns = m->n_units > 0 ? pieces : 1;
    const int64_t by_rows = m->n_units == 0 && m->k_units > 0 ? pieces : 1;
    const size_t bytes = (size_t)(array->groups * array->rows * array->columns) * sizeof(double);
    weight->rounded = weight->value;
    weight->rounded.value = malloc(bytes + 1);
    if (weight->rounded.value == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
    }
    memcpy(weight->rounded.value, weight->value.value, bytes);
    for (int64_t g = 0; g < array->groups * by_rows * by_columns; g++) {
        part p = {.rows = array->rows / by_rows,
                  .columns = array->columns / by_columns,
                  .pitch = array->columns};
        p.first =
            weight->rounded.value + g / by_columns * p.rows * p.pitch + g % by_columns * p.columns;
        part_round(step->args->dtype, dtype, &p);
    }
    return POD_OK;
}

/** What matmuls read of a weight. @param[out] product  says so, too */
static const pod_inexact *operand_of(const pod_reference_step *step,
                                     const pod_reference_weight *weight,
                                     pod_inexact_product *product)
{
    product->operands = operands_of(step, weight);
    product->rounded = weight->rounded.value != NULL;
    return product->rounded ? &weight->rounded : &weight->value;
}

void pod_reference_project(pod_reference_step *step, pod_reference_weight *weight, int64_t terms,
                           const pod_inexact *a, const pod_inexact *out)
{
    pod_inexact_product product = {.site = weight->array.name, .terms = terms};
    const pod_inexact *b = operand_of(step, weight, &product);
    pod_reference_multiply(step, &product, pod_reference_bias_of(step, weight), a, b, out);
}

void pod_reference_project_back(pod_reference_step *step, pod_reference_weight *weight,
                                int64_t terms, const pod_inexact *a, const pod_inexact *dout,
                                const pod_inexact *da)
{
    pod_inexact_product input = {
        .site = weight->array.name, .transpose_b = true, .accumulate = true, .terms = terms};
    const pod_inexact_product gradient = {.site = weight->array.name,
                                          .transpose_a = true,
                                          .accumulate = true,
                                          .terms = step->args->gradient_terms,
                                          .operands = operands_of(step, weight)};
    const pod_inexact *b = operand_of(step, weight, &input);
    pod_inexact_matmul(&step->ix, &input, dout, b, da);
    pod_inexact_matmul(&step->ix, &gradient, a, dout, &weight->gradient);
    pod_reference_bias_back(step, pod_reference_bias_of(step, weight), dout);
}

pod_status pod_reference_support_check(const pod_transformer_reference_args *args, pod_error *err)
{
    const pod_model *model = args->model;
    const struct {
        bool there;
        const char *what;
    } parts[] = {
        {model->delta_v_heads > 0,                "a gated delta rule"  },
        {model->index_top_k > 0,                  "an indexer"          },
        {model->expert_d_model > 0,               "narrow experts"      },
        {model->layer_embedding > 0,              "embeddings of layers"},
        {model->biases > 0 && model->experts > 0, "biases of experts"   },
        {model->biases > 0 && model->kv_lora > 0, "biases of latents"   },
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].there) {
            return pod_fail(err, POD_E_INVALID,
                            "no real numbers for a model with %s; use --data none", parts[i].what);
        }
    }
    if (args->dtype != POD_DTYPE_BF16 && args->dtype != POD_DTYPE_F32) {
        return pod_fail(err, POD_E_INVALID,
                        "no real numbers for a transformer in %s; use bf16 or f32",
                        pod_dtype_name(args->dtype));
    }
    if (model->positions > 0 && args->seq > model->positions) {
        return pod_fail(err, POD_E_INVALID,
                        "%lld tokens of a sequence, but %lld learned positions; use --seq %lld",
                        (long long)args->seq, (long long)model->positions,
                        (long long)model->positions);
    }
    return POD_OK;
}
