/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

pod_status pod_bounds_init(pod_bounds *bounds, const pod_program *program, pod_shards *shards,
                           double roundings, pod_error *err)
{
    *bounds = (pod_bounds){.program = program, .shards = shards, .roundings = roundings};
    bounds->bound = calloc((size_t)program->nbuffers + 1, sizeof *bounds->bound);
    return bounds->bound ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for error bounds");
}

void pod_bounds_fini(pod_bounds *bounds)
{
    for (int32_t b = 0; bounds->bound != NULL && b < bounds->program->nbuffers; b++) {
        free(bounds->bound[b]);
    }
    free(bounds->bound);
    bounds->bound = NULL;
}

/** Unit roundoff: half the distance from 1 to the next number. */
static double roundoff(pod_dtype dtype)
{
    return dtype == POD_DTYPE_BF16 ? 0x1p-8 : 0x1p-24;
}

static int64_t elements_of(const pod_bounds *bounds, int32_t buffer)
{
    return bounds->program->buffers[buffer].rows * bounds->program->buffers[buffer].columns;
}

/** A buffer as floats; from malloc. NULL when out of memory. */
static float *values_of(const pod_bounds *bounds, int32_t buffer)
{
    const int64_t count = elements_of(bounds, buffer);
    float *values = malloc((size_t)count * sizeof *values + 1);
    if (values != NULL) {
        pod_dtype_to_f32(bounds->program->buffers[buffer].dtype, values,
                         bounds->shards->data[buffer], count);
    }
    return values;
}

/* ---- products ---- */

/** |x| + E_x, or |x|; *whole is cleared if some x is no whole number. */
static float *magnitudes(const pod_bounds *bounds, int32_t buffer, bool with_bound, bool *whole)
{
    const float *bound = with_bound ? bounds->bound[buffer] : NULL;
    const int64_t count = elements_of(bounds, buffer);
    float *values = values_of(bounds, buffer);
    for (int64_t i = 0; values != NULL && i < count; i++) {
        *whole = *whole && values[i] == rintf(values[i]);
        values[i] = fabsf(values[i]) + (bound != NULL ? bound[i] : 0.0F);
    }
    return values;
}

/** |A||B| or (|A| + E_A)(|B| + E_B), by the op itself on buffers of floats. NULL: out of memory. */
static float *magnitude_product(const pod_bounds *bounds, const pod_op *op, bool with_bound,
                                bool *whole)
{
    const int32_t three[3] = {op->in[0], op->in[1], op->out};
    pod_buffer buffers[3];
    float *data[3] = {magnitudes(bounds, op->in[0], with_bound, whole),
                      magnitudes(bounds, op->in[1], with_bound, whole),
                      malloc((size_t)elements_of(bounds, op->out) * sizeof(float) + 1)};
    void *pointers[3] = {data[0], data[1], data[2]};
    for (int i = 0; i < 3; i++) {
        buffers[i] = bounds->program->buffers[three[i]];
        buffers[i].dtype = POD_DTYPE_F32;
    }
    pod_op plain = *op;
    plain.in[0] = 0;
    plain.in[1] = 1;
    plain.out = 2;
    const pod_program program = {.nops = 1, .ops = &plain, .nbuffers = 3, .buffers = buffers};
    pod_shards shards = {.data = pointers};
    const bool done = data[0] != NULL && data[1] != NULL && data[2] != NULL
                      && pod_op_exec(&program, 0, &shards, NULL) == POD_OK;
    free(data[0]);
    free(data[1]);
    if (!done) {
        free(data[2]);
    }
    return done ? data[2] : NULL;
}

/** Turn the product of magnitudes into a bound; true if it is above 0 somewhere.
 *  @param exact  product of the magnitudes without bounds, or NULL if it is the same */
static bool product_bound(const pod_bounds *bounds, const pod_op *op, bool whole,
                          const float *exact, float *product)
{
    const double u = roundoff(bounds->program->buffers[op->out].dtype);
    const double growth = expm1(bounds->roundings * log1p(u)) + (double)op->k * 0x1p-23;
    const int64_t count = elements_of(bounds, op->out);
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        const double magnitude = (double)product[i];
        const bool rounds = !whole || magnitude > 1 / u;
        const double operands = exact != NULL ? magnitude - (double)exact[i] : 0;
        /* the magnitudes themselves were added in f32 */
        const double slack = 1 + (double)(op->k + 2) * 0x1p-22;
        product[i] = (float)((operands + (rounds ? growth * magnitude : 0)) * slack);
        any = any || product[i] > 0;
    }
    return any;
}

static pod_status matmul_bound(pod_bounds *bounds, const pod_op *op, float **result, pod_error *err)
{
    const bool inexact = bounds->bound[op->in[0]] != NULL || bounds->bound[op->in[1]] != NULL;
    bool whole = true;
    float *product = magnitude_product(bounds, op, true, &whole);
    float *exact = inexact ? magnitude_product(bounds, op, false, &whole) : NULL;
    *result = NULL;
    if (product == NULL || (inexact && exact == NULL)) {
        free(product);
        free(exact);
        return pod_fail(err, POD_E_NOMEM, "out of memory for error bounds");
    }
    if (product_bound(bounds, op, whole, exact, product)) {
        *result = product;
    } else {
        free(product);
    }
    free(exact);
    return POD_OK;
}

/* ---- vectors ---- */

typedef struct operand {
    float value;
    float bound;
} operand;

/** Bound of an element before the result is rounded. */
static float element_bound(const pod_op *op, operand a, operand b, operand c)
{
    const float rate = (float)op->rate;
    switch (op->function) {
    case POD_VEC_NONE:
    case POD_VEC_ZERO:
        return 0;
    case POD_VEC_COPY:
    case POD_VEC_RELU:
        return a.bound;
    case POD_VEC_RELU_GRAD:
        if (a.bound > 0 && fabsf(a.value) <= a.bound) {
            return fabsf(b.value) + b.bound;
        }
        return a.value > 0 ? b.bound : 0;
    case POD_VEC_ADD:
    case POD_VEC_SUB:
        return a.bound + b.bound;
    case POD_VEC_SGD:
        return a.bound + rate * b.bound;
    case POD_VEC_MOMENTUM:
        return 0.9F * a.bound + b.bound;
    case POD_VEC_ADAM_M:
        return 0.9F * a.bound + 0.1F * b.bound;
    case POD_VEC_ADAM_V:
        return 0.999F * a.bound + 0.001F * (2 * fabsf(b.value) + b.bound) * b.bound;
    case POD_VEC_ADAM_W:
        /* the first step moves a weight by rate at most, either way */
        return a.bound + (b.bound > 0 || c.bound > 0 ? 2 * rate : 0);
    }
    return 0;
}

/** The inputs of a vector op as floats. */
typedef struct operands {
    float *value[POD_OP_INPUTS_MAX];
    const float *bound[POD_OP_INPUTS_MAX];
} operands;

static operand operand_at(const operands *from, int k, int64_t i)
{
    return (operand){.value = from->value[k] != NULL ? from->value[k][i] : 0,
                     .bound = from->bound[k] != NULL ? from->bound[k][i] : 0};
}

static pod_status vector_bound(pod_bounds *bounds, const pod_op *op, float **result, pod_error *err)
{
    operands from = {0};
    bool inexact = false;
    bool complete = true;
    *result = NULL;
    for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
        from.bound[k] = op->in[k] != POD_OP_NONE ? bounds->bound[op->in[k]] : NULL;
        inexact = inexact || from.bound[k] != NULL;
    }
    if (!inexact) {
        return POD_OK;
    }
    const int64_t count = elements_of(bounds, op->out);
    float *bound = malloc((size_t)count * sizeof *bound + 1);
    for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
        from.value[k] = op->in[k] != POD_OP_NONE ? values_of(bounds, op->in[k]) : NULL;
        complete = complete && (op->in[k] == POD_OP_NONE || from.value[k] != NULL);
    }
    complete = complete && bound != NULL;
    for (int64_t i = 0; complete && i < count; i++) {
        bound[i] = element_bound(op, operand_at(&from, 0, i), operand_at(&from, 1, i),
                                 operand_at(&from, 2, i));
    }
    for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
        free(from.value[k]);
    }
    *result = bound;
    return complete ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for error bounds");
}

/* Both results are rounded: at most u of each magnitude more, where they may differ at all. */
static void rounding_add(const pod_bounds *bounds, int32_t out, float *bound)
{
    const float u = (float)roundoff(bounds->program->buffers[out].dtype);
    const int64_t count = elements_of(bounds, out);
    const pod_dtype dtype = bounds->program->buffers[out].dtype;
    const unsigned char *data = bounds->shards->data[out];
    for (int64_t i = 0; i < count; i++) {
        float value;
        pod_dtype_to_f32(dtype, &value, data + i * pod_dtype_size(dtype), 1);
        if (bound[i] > 0) {
            bound[i] = (bound[i] + 2 * u * (fabsf(value) + bound[i])) * 1.001F;
        }
    }
}

pod_status pod_bounds_exec(pod_bounds *bounds, int32_t number, pod_error *err)
{
    const pod_op *op = &bounds->program->ops[number];
    float *bound = NULL;
    const bool product = op->kind == POD_OP_MATMUL || op->kind == POD_OP_CONV;
    pod_status st =
        product ? matmul_bound(bounds, op, &bound, err) : vector_bound(bounds, op, &bound, err);
    POD_THEN(st, pod_op_exec(bounds->program, number, bounds->shards, err));
    if (st != POD_OK) {
        free(bound);
        return st;
    }
    if (bound != NULL && op->kind == POD_OP_VECTOR) {
        rounding_add(bounds, op->out, bound);
    }
    free(bounds->bound[op->out]);
    bounds->bound[op->out] = bound;
    return POD_OK;
}
