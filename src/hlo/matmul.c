/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/matmul.h"

#include "base/units.h"
#include "hlo/attributes.h"
#include "hlo/results.h"

__extension__ typedef __int128 wide;

/* Where the dims of one array stand: batch and feature (of a kernel: input and output feature), then
 * the spatial dims by number. */
typedef struct array_labels {
    int first;  /* b, or i of a kernel */
    int second; /* f, or o */
    int spatial[POD_HLO_SPATIAL_MAX];
    int nspatial;
    int count;
} array_labels;

/* A product that must stay within the limit. */
static bool grow(int64_t *product, int64_t factor)
{
    return pod_mul_i64(*product, factor, product) && *product <= POD_HLO_COUNT_MAX;
}

static pod_status fail_flops(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             pod_error *err)
{
    const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, err);
    return pod_hlo_fail_limit(&scan, instruction->offset, "FLOPs of a matmul", POD_HLO_COUNT_MAX);
}

/* ---- what the MXU computes in ---- */

static int precision_passes(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    pod_hlo_span value;
    int passes = 1;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_PRECISION, &value)) {
        return passes;
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, NULL);
    pod_hlo_span word;
    (void)pod_hlo_take(&scan, '{');
    while (pod_hlo_try_name(&scan, &word)) {
        const int wanted = pod_hlo_is(module->text, word, "highest") ? 6
                           : pod_hlo_is(module->text, word, "high")  ? 3
                                                                     : 1;
        passes = wanted > passes ? wanted : passes;
        (void)pod_hlo_take(&scan, ',');
    }
    return passes;
}

static void take_dtype(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                       pod_hlo_matmul *matmul)
{
    bool int8 = true;
    bool fp8 = true;
    bool f32 = true;
    for (uint32_t i = 0; i < 2; i++) {
        const uint8_t dtype =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, i))->dtype;
        int8 = int8 && (dtype == POD_HLO_TYPE_S8 || dtype == POD_HLO_TYPE_U8);
        fp8 = fp8 && pod_hlo_dtype_is_fp8((pod_hlo_dtype)dtype);
        f32 = f32 && dtype == POD_HLO_TYPE_F32;
    }
    matmul->dtype = int8 ? POD_DTYPE_INT8 : fp8 ? POD_DTYPE_FP8 : POD_DTYPE_BF16;
    matmul->passes = f32 ? precision_passes(module, instruction) : 1;
}

/* ---- convolution ---- */

/* The letters of one array, "01bf": each dim of it once. */
static pod_status take_labels(pod_hlo_scan *scan, char first, char second, array_labels *labels)
{
    const uint32_t begin = scan->at;
    labels->first = -1;
    labels->second = -1;
    for (int i = 0; i < POD_HLO_SPATIAL_MAX; i++) {
        labels->spatial[i] = -1;
    }
    for (labels->count = 0; scan->at < scan->size; labels->count++, scan->at++) {
        const char c = scan->text[scan->at];
        const bool digit = c >= '0' && c <= '9';
        int *place = c == first    ? &labels->first
                     : c == second ? &labels->second
                     : digit       ? &labels->spatial[c - '0']
                                   : NULL;
        if (place == NULL) {
            break;
        }
        if (*place >= 0) {
            return pod_hlo_fail(scan, scan->at, "dim_labels names '%c' twice", c);
        }
        labels->nspatial += digit;
        *place = labels->count;
    }
    bool complete = labels->first >= 0 && labels->second >= 0;
    for (int i = 0; i < labels->nspatial; i++) {
        complete = complete && labels->spatial[i] >= 0;
    }
    return complete ? POD_OK : pod_hlo_fail(scan, begin, "dim_labels leaves a dim out here");
}

static pod_status take_dim_labels(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, array_labels all[3],
                                  pod_error *err)
{
    pod_hlo_span value;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_DIM_LABELS, &value)) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "a convolution without dim_labels");
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, err);
    POD_TRY(take_labels(&scan, 'b', 'f', &all[0]));
    POD_TRY(pod_hlo_expect(&scan, '_', "dim_labels"));
    POD_TRY(take_labels(&scan, 'i', 'o', &all[1]));
    POD_TRY(pod_hlo_expect(&scan, '-', "dim_labels"));
    POD_TRY(pod_hlo_expect(&scan, '>', "dim_labels"));
    POD_TRY(take_labels(&scan, 'b', 'f', &all[2]));
    POD_TRY(pod_hlo_end(&scan, "dim_labels"));
    const pod_hlo_shape *shapes[3] = {
        pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0)),
        pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 1)),
        pod_hlo_shape_of(module, instruction)};
    for (int i = 0; i < 3; i++) {
        if (shapes[i]->dtype == POD_HLO_TYPE_TUPLE || shapes[i]->count != (uint32_t)all[i].count
            || all[i].nspatial != all[0].nspatial) {
            POD_TRY(pod_hlo_fail(&scan, value.begin, "dim_labels doesn't fit the shapes"));
        }
    }
    return POD_OK;
}

/* One spatial dim: which of m, k, n and count it multiplies. */
typedef struct spatial {
    int64_t n;
    int64_t w;
    int64_t o;
    int64_t v;
} spatial;

/* What a convolution is made of while its dims are gone through. */
typedef struct convolution {
    pod_hlo_matmul *matmul;
    int64_t flops;    /* half of them */
    int64_t all_taps; /* likewise */
    int64_t k;        /* times `k_parts` */
    int64_t k_parts;
} convolution;

static bool spatial_apply(convolution *c, const spatial *s)
{
    pod_hlo_matmul *matmul = c->matmul;
    if (!grow(&c->flops, s->v) || !grow(&c->all_taps, s->o) || !grow(&c->all_taps, s->w)) {
        return false;
    }
    if (s->w == 1) {
        return grow(&matmul->m, s->v);
    }
    if (s->o == 1) {
        return grow(&c->k, s->v);
    }
    if (s->n == 1 && s->v == s->o && s->o == s->w) {
        return grow(&matmul->n, s->o);
    }
    if (s->n == s->o && s->o == s->w && s->w == s->v) {
        return grow(&matmul->count, s->o);
    }
    return grow(&matmul->m, s->o) && grow(&c->k, s->v) && grow(&c->k_parts, s->o);
}

/* Positions of a window over what is padded and dilated. */
static bool fits_window(const pod_hlo_window_dim *window, const spatial *s)
{
    const wide inside = s->n == 0 ? 0 : (wide)(s->n - 1) * window->lhs_dilate + 1;
    const wide reach = s->w == 0 ? 0 : (wide)(s->w - 1) * window->rhs_dilate + 1;
    const wide room = inside + window->pad_low + window->pad_high - reach;
    return s->o == (room < 0 ? 0 : room / window->stride + 1);
}

static pod_status take_spatial(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                               const array_labels all[3], convolution *c, pod_error *err)
{
    pod_hlo_window_dim window[POD_HLO_SPATIAL_MAX];
    int count = 0;
    POD_TRY(pod_hlo_window(module, instruction, window, &count, err));
    const int64_t *lhs =
        pod_hlo_dims(module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0)));
    const int64_t *kernel =
        pod_hlo_dims(module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 1)));
    const int64_t *result = pod_hlo_dims(module, pod_hlo_shape_of(module, instruction));
    if (count != all[0].nspatial) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "a window of %d dims; dim_labels has %d", count,
                                        all[0].nspatial);
    }
    for (int i = 0; i < count; i++) {
        spatial s = {.n = lhs[all[0].spatial[i]],
                     .w = kernel[all[1].spatial[i]],
                     .o = result[all[2].spatial[i]]};
        if (s.w != window[i].size) {
            return pod_hlo_fail_instruction(module, instruction, err,
                                            "dim %d of the window isn't the kernel's", i);
        }
        if (!fits_window(&window[i], &s)) {
            return pod_hlo_fail_instruction(module, instruction, err,
                                            "dim %d of the result isn't what the window gives", i);
        }
        if (pod_hlo_window_hits(&window[i], s.n, s.o, &s.v) != POD_OK) {
            const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, err);
            return pod_hlo_fail_limit(&scan, instruction->offset, "taps and positions of a window",
                                      INT64_C(1) << 20);
        }
        if (!spatial_apply(c, &s)) {
            return fail_flops(module, instruction, err);
        }
    }
    return POD_OK;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a == 0 || b == 0 ? 0 : (a - 1) / b + 1;
}

static pod_status convolution_of(const pod_hlo_module *module,
                                 const pod_hlo_instruction *instruction, pod_hlo_matmul *matmul,
                                 pod_error *err)
{
    array_labels all[3] = {{0}, {0}, {0}};
    int64_t feature_groups = 1;
    int64_t batch_groups = 1;
    pod_status st = take_dim_labels(module, instruction, all, err);
    POD_THEN(st, pod_hlo_integer(module, instruction, POD_HLO_AT_FEATURE_GROUPS, 1, &feature_groups,
                                 err));
    POD_THEN(st,
             pod_hlo_integer(module, instruction, POD_HLO_AT_BATCH_GROUPS, 1, &batch_groups, err));
    if (st != POD_OK) {
        return st;
    }
    const int64_t batch = pod_hlo_dims(
        module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0)))[all[0].first];
    const int64_t *kernel =
        pod_hlo_dims(module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 1)));
    const int64_t outputs = kernel[all[1].second];
    if (feature_groups == 0 || batch_groups == 0 || batch % batch_groups != 0
        || outputs % feature_groups != 0) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "group counts that don't divide batch and features");
    }
    const int64_t *result = pod_hlo_dims(module, pod_hlo_shape_of(module, instruction));
    if (result[all[2].first] != batch / batch_groups || result[all[2].second] != outputs) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "batch and features of the result don't follow from the "
                                        "operands");
    }
    convolution c = {.matmul = matmul, .k = kernel[all[1].first], .k_parts = 1};
    matmul->m = batch / batch_groups;
    matmul->n = outputs / feature_groups;
    matmul->count = feature_groups;
    c.flops = matmul->m;
    bool fits = grow(&matmul->count, batch_groups) && grow(&c.flops, outputs) && grow(&c.flops, c.k)
                && grow(&c.flops, 2);
    c.all_taps = c.flops;
    st = fits ? take_spatial(module, instruction, all, &c, err)
              : fail_flops(module, instruction, err);
    matmul->flops = c.flops;
    matmul->flops_all_taps = c.all_taps;
    matmul->k = divide_up(c.k, c.k_parts);
    return st;
}

/* ---- dot ---- */

enum { BATCH = 1, CONTRACTING = 2, GROUP = 3, DOT_DIMS_MAX = 64 };

/* Marks the dims of one side that a list names: in range, each once. */
static pod_status mark(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                       pod_hlo_attribute_key key, const pod_hlo_shape *shape, char *marks, char as,
                       int64_t *sizes, int *count, pod_error *err)
{
    const int64_t *dims = pod_hlo_dims(module, shape);
    POD_TRY(pod_hlo_list(module, instruction, key, sizes, DOT_DIMS_MAX, count, err));
    for (int i = 0; i < *count; i++) {
        if (sizes[i] >= shape->count || sizes[i] >= DOT_DIMS_MAX || marks[sizes[i]] != 0) {
            return pod_hlo_fail_instruction(module, instruction, err, "%s don't fit the operand",
                                            pod_hlo_attribute_name(key));
        }
        marks[sizes[i]] = as;
        sizes[i] = dims[sizes[i]];
    }
    return POD_OK;
}

/* Both sides of a list must have the same sizes; their product multiplies `product`. */
static pod_status pair(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                       const pod_hlo_attribute_key keys[2], char marks[2][DOT_DIMS_MAX],
                       int64_t *product, pod_error *err)
{
    int64_t sizes[2][DOT_DIMS_MAX];
    int count[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        const pod_hlo_shape *shape =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, (uint32_t)side));
        const pod_status st = mark(module, instruction, keys[side], shape, marks[side],
                                   keys[0] == POD_HLO_AT_LHS_BATCH ? BATCH : CONTRACTING,
                                   sizes[side], &count[side], err);
        if (st != POD_OK) {
            return st;
        }
    }
    bool same = count[0] == count[1];
    for (int i = 0; i < count[0] && same; i++) {
        same = sizes[0][i] == sizes[1][i];
        if (same && !grow(product, sizes[0][i])) {
            return fail_flops(module, instruction, err);
        }
    }
    return same ? POD_OK
                : pod_hlo_fail_instruction(
                    module, instruction, err, "%s and %s name dims of other sizes",
                    pod_hlo_attribute_name(keys[0]), pod_hlo_attribute_name(keys[1]));
}

/* The dim of the left side that the groups of a ragged dot cut; -1 of a plain one. Marks groups of the right side. */
static pod_status take_ragged(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                              char marks[2][DOT_DIMS_MAX], int64_t *dim, pod_error *err)
{
    int64_t sizes[DOT_DIMS_MAX];
    int count = 0;
    const pod_hlo_shape *lhs = pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0));
    const pod_hlo_shape *rhs = pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 1));
    *dim = -1;
    if (instruction->opcode != POD_HLO_RAGGED_DOT) {
        return POD_OK;
    }
    pod_status st =
        pod_hlo_list(module, instruction, POD_HLO_AT_LHS_RAGGED, sizes, DOT_DIMS_MAX, &count, err);
    if (st == POD_OK && (count != 1 || sizes[0] >= lhs->count)) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "lhs_ragged_dims isn't one dim of the left operand");
    }
    *dim = sizes[0];
    return st == POD_OK ? mark(module, instruction, POD_HLO_AT_RHS_GROUP, rhs, marks[1], GROUP,
                               sizes, &count, err)
                        : st;
}

/* Rows, contraction or batch of a ragged dot are as many as its groups have together, at most all. */
static void apply_groups(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         char as, int64_t dim, pod_hlo_matmul *matmul)
{
    int64_t sum = 0;
    int64_t *of = as == BATCH ? &matmul->count : as == CONTRACTING ? &matmul->k : &matmul->m;
    const int64_t all = pod_hlo_dims(
        module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0)))[dim];
    matmul->at_most = !pod_hlo_constant_sum(module, pod_hlo_operand(module, instruction, 2), &sum);
    if (!matmul->at_most && sum < all) {
        *of = *of / all * sum;
    }
}

/* The result has the batch dims, then what is left of both sides; one by group in front of them where groups cut the
 * contraction. */
static pod_status check_dot(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                            char marks[2][DOT_DIMS_MAX], int64_t ragged, pod_error *err)
{
    int64_t dims[3 * DOT_DIMS_MAX + 1];
    int64_t *after = dims;
    int count = 0;
    const int64_t *lhs =
        pod_hlo_dims(module, pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0)));
    if (ragged >= 0 && marks[0][ragged] == CONTRACTING) {
        const pod_hlo_shape *sizes =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 2));
        *after++ = sizes->dtype == POD_HLO_TYPE_TUPLE || sizes->count == 0
                       ? 0
                       : pod_hlo_dims(module, sizes)[sizes->count - 1];
    }
    pod_status st =
        pod_hlo_list(module, instruction, POD_HLO_AT_LHS_BATCH, after, DOT_DIMS_MAX, &count, err);
    for (int i = 0; st == POD_OK && i < count; i++) {
        after[i] = lhs[after[i]];
    }
    for (uint32_t side = 0; side < 2; side++) {
        const pod_hlo_shape *shape =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, side));
        for (uint32_t i = 0; i < shape->count; i++) {
            if (marks[side][i] == 0) {
                after[count++] = pod_hlo_dims(module, shape)[i];
            }
        }
    }
    return st == POD_OK ? pod_hlo_results_expect(module, instruction, dims,
                                                 (uint32_t)(count + (after - dims)), err)
                        : st;
}

static pod_status dot_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         pod_hlo_matmul *matmul, pod_error *err)
{
    static const pod_hlo_attribute_key batch[2] = {POD_HLO_AT_LHS_BATCH, POD_HLO_AT_RHS_BATCH};
    static const pod_hlo_attribute_key contracting[2] = {POD_HLO_AT_LHS_CONTRACTING,
                                                         POD_HLO_AT_RHS_CONTRACTING};
    char marks[2][DOT_DIMS_MAX] = {{0}, {0}};
    int64_t *free_dims[2] = {&matmul->m, &matmul->n};
    matmul->count = matmul->m = matmul->k = matmul->n = 1;
    for (uint32_t side = 0; side < 2; side++) {
        const pod_hlo_shape *shape =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, side));
        if (shape->dtype == POD_HLO_TYPE_TUPLE || shape->count > DOT_DIMS_MAX) {
            return pod_hlo_fail_instruction(module, instruction, err,
                                            "an operand that is no array of at most %d dims",
                                            DOT_DIMS_MAX);
        }
    }
    pod_status st = pair(module, instruction, batch, marks, &matmul->count, err);
    POD_THEN(st, pair(module, instruction, contracting, marks, &matmul->k, err));
    int64_t ragged = -1;
    POD_THEN(st, take_ragged(module, instruction, marks, &ragged, err));
    for (int side = 0; side < 2 && st == POD_OK; side++) {
        const pod_hlo_shape *shape =
            pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, (uint32_t)side));
        const int64_t *dims = pod_hlo_dims(module, shape);
        for (uint32_t i = 0; i < shape->count && st == POD_OK; i++) {
            if (marks[side][i] == 0 && !grow(free_dims[side], dims[i])) {
                st = fail_flops(module, instruction, err);
            }
        }
    }
    if (st == POD_OK && ragged >= 0) {
        apply_groups(module, instruction, marks[0][ragged], ragged, matmul);
    }
    matmul->flops = 2;
    if (st == POD_OK
        && (!grow(&matmul->flops, matmul->count) || !grow(&matmul->flops, matmul->m)
            || !grow(&matmul->flops, matmul->k) || !grow(&matmul->flops, matmul->n))) {
        st = fail_flops(module, instruction, err);
    }
    matmul->flops_all_taps = matmul->flops;
    return st == POD_OK ? check_dot(module, instruction, marks, ragged, err) : st;
}

pod_status pod_hlo_matmul_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             pod_hlo_matmul *matmul, pod_error *err)
{
    *matmul = (pod_hlo_matmul){.instruction = (uint32_t)(instruction - module->instruction)};
    take_dtype(module, instruction, matmul);
    return instruction->opcode == POD_HLO_CONVOLUTION
               ? convolution_of(module, instruction, matmul, err)
               : dot_of(module, instruction, matmul, err);
}
