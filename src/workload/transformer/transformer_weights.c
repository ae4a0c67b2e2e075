/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a transformer: stored, gathered, their gradients. */
#include "workload/transformer/transformer_weights.h"

#include "models/model.h"
#include "models/resnet.h"
#include "workload/build/circular.h"
#include "workload/build/uses.h"
#include "workload/transformer/transformer_muon.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/** @param index  of the layer, or of the block of a resnet, all of whose weights are one part */
static int64_t part_size(const pod_tf *tf, int32_t index, pod_layer_part part)
{
    int64_t size = 0;
    if (tf->model->kind == POD_MODEL_RESNET) {
        const pod_resnet_block block = pod_resnet_block_of(tf->model, index);
        return part == POD_PART_ATTENTION ? pod_resnet_convs_weights(block.conv, block.nconvs) : 0;
    }
    const pod_layer whole = pod_model_layer(tf->model, index);
    const pod_layer *layer = &whole;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t experts = pod_layer_matmul_of_experts(m) ? layer->experts / tf->expert : 1;
        if (m->part == part) {
            const int64_t rows =
                pod_layer_matmul_k(m, tf->tensor) + (tf->model->biases > 0 ? 1 : 0);
            size += rows * pod_layer_matmul_n(m, tf->tensor) * m->count * experts;
        }
    }
    return size;
}

/* ---- making them ---- */

pod_tf_states pod_tf_states_of(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    enum { NARROW = 2, WIDE = 4 };
    const pod_step_settings *settings = &tf->stage.request->settings;
    const bool narrow = tf->plan.narrow;
    const int moments = pod_optimizer_moments(pod_tf_optimizer_of(tf, bundle));
    return (pod_tf_states){.weight = narrow || settings->narrow_weights ? NARROW : WIDE,
                           .mu = moments < 1                     ? 0
                                 : narrow || settings->narrow_mu ? NARROW
                                                                 : WIDE,
                           .nu = moments < 2                          ? 0
                                 : narrow || settings->narrow_weights ? NARROW
                                                                      : WIDE};
}

static void bundle_make(pod_tf *tf, pod_tf_bundle *bundle, const char *name, int64_t whole)
{
    const pod_work_layout *layout = tf->layout;
    const bool train = tf->stage.request->mode == POD_STEP_TRAIN;
    const bool moments = train && tf->stage.request->optimizer != POD_OPTIMIZER_SGD;
    const pod_tf_states states = pod_tf_states_of(tf, bundle);
    bundle->name = name;
    bundle->cut = pod_axis_list_join(layout->fsdp, &tf->sequence);
    if (!bundle->experts) {
        bundle->cut = pod_axis_list_join(bundle->cut, &layout->expert);
    }
    if (layout->size[POD_MESH_DATA] > 1) {
        bundle->late = (pod_axis_list){.count = 1, .axis = {POD_MESH_DATA}};
    }
    bundle->there = whole > 0;
    bundle->whole = whole;
    bundle->shard = pod_ceil_div(whole, pod_work_layout_pieces(layout, &bundle->cut));
    bundle->common = bundle->shard;
    bundle->moments = POD_OP_NONE;
    bundle->gradient = POD_OP_NONE;
    bundle->gathered = POD_OP_NONE;
    bundle->gradient_op = POD_OP_NONE;
    bundle->once = POD_OP_NONE;
    bundle->uses = 0;
    bundle->sum = POD_OP_NONE;
    bundle->pieces = POD_OP_NONE;
    bundle->moment[0] = POD_OP_NONE;
    bundle->moment[1] = POD_OP_NONE;
    if (!bundle->there) {
        return;
    }
    const bool wide = moments && states.weight > pod_dtype_size(POD_DTYPE_BF16);
    bundle->weights = pod_tf_buffer(tf, name, POD_MEMORY_WEIGHTS,
                                    wide ? POD_DTYPE_F32 : tf->stage.build.dtype, bundle->shard, 1);
    if (moments) {
        bundle->moments = pod_tf_buffer(tf, name, POD_MEMORY_OPTIMIZER, POD_DTYPE_BF16,
                                        bundle->shard, (states.mu + states.nu) / BYTES);
    }
    pod_tf_place(tf, POD_PLACE_WEIGHTS, pod_tf_number(tf, bundle->weights), bundle, &bundle->cut);
    const int count = pod_optimizer_moments(pod_tf_optimizer_of(tf, bundle));
    for (int i = 0; moments && i < count; i++) {
        const bool narrow = (i == 0 ? states.mu : states.nu) == BYTES;
        bundle->moment[i] =
            pod_tf_number_new(tf, name, narrow ? POD_DTYPE_BF16 : POD_DTYPE_F32, bundle->shard, 1);
        pod_tf_place(tf, POD_PLACE_MOMENT, bundle->moment[i], bundle, &bundle->cut);
    }
}

/** What stands before the first layer, without a tied table. @param table  weights of the head's columns */
static int64_t embedding_size(const pod_tf *tf, int64_t table)
{
    const pod_model *model = tf->model;
    const pod_conv_shape stem = pod_resnet_stem(model);
    if (model->kind == POD_MODEL_RESNET) {
        return pod_resnet_convs_weights(&stem, 1);
    }
    const int64_t patch = POD_PICTURE_CHANNELS * model->patch * model->patch + model->biases;
    const int64_t further = model->layer_embedding * pod_ceil_div(model->vocab, tf->tensor);
    const int64_t first = model->patch > 0 ? patch * model->d_model : model->tied ? 0 : table;
    return first + further * model->layers + model->positions * model->d_model;
}

static int64_t head_size(const pod_tf *tf, int64_t table)
{
    const pod_model *model = tf->model;
    const int64_t bias = model->biases > 0 ? 1 : 0;
    const int64_t dense = model->head_dense > 0 ? (model->d_model + bias) * model->d_model : 0;
    return model->kind == POD_MODEL_RESNET ? pod_resnet_head_weights(model)
                                           : table + bias * (table / model->d_model) + dense;
}

void pod_tf_bundles_make(pod_tf *tf)
{
    static const char *const names[POD_LAYER_PARTS] = {"attention",    "mlp.in",     "mlp.out",
                                                       "experts.gate", "experts.in", "experts.out"};
    const pod_model *model = tf->model;
    const bool blocks = model->kind == POD_MODEL_RESNET;
    const int64_t table = pod_ceil_div(model->vocab, tf->tensor) * model->d_model;
    tf->nbundles = tf->stage.layers * POD_LAYER_PARTS + 2;
    tf->bundles = calloc((size_t)tf->nbundles, sizeof *tf->bundles);
    if (tf->bundles == NULL) {
        tf->stage.build.st = pod_fail(tf->stage.build.err, POD_E_NOMEM,
                                      "out of memory for %d layers", (int)tf->stage.layers);
        return;
    }
    for (int32_t l = 0; l < tf->stage.layers; l++) {
        for (int part = 0; part < POD_LAYER_PARTS; part++) {
            pod_tf_bundle *bundle = &tf->bundles[l * POD_LAYER_PARTS + part];
            bundle->layer = pod_stage_layer(&tf->stage, l);
            bundle->shared = tf->stage.circular && bundle->layer < tf->stage.visits.outer;
            bundle->experts = part >= POD_PART_EXPERTS_GATE;
            bundle_make(tf, bundle, blocks ? "block" : names[part],
                        part_size(tf, bundle->layer, (pod_layer_part)part));
        }
    }
    pod_tf_bundle *embedding = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    pod_tf_bundle *head = pod_tf_bundle_of(tf, 0, POD_TF_HEAD);
    embedding->layer = -1;
    embedding->shared = tf->stage.circular;
    head->layer = -1;
    head->shared = tf->stage.circular || (tf->model->tied > 0 && tf->stage.count > 1);
    bundle_make(tf, embedding, blocks ? "stem" : "embedding",
                pod_stage_has_input(&tf->stage) ? embedding_size(tf, table) : 0);
    bundle_make(tf, head, "head",
                pod_stage_has_output(&tf->stage)                         ? head_size(tf, table)
                : tf->model->tied > 0 && pod_stage_has_input(&tf->stage) ? table
                                                                         : 0);
    head->common = tf->stage.circular
                       ? head->shard
                       : pod_ceil_div(table, pod_work_layout_pieces(tf->layout, &head->cut));
}

pod_tf_bundle *pod_tf_bundle_of(const pod_tf *tf, int32_t layer, int part)
{
    const int32_t first = part < POD_LAYER_PARTS
                              ? pod_stage_local(&tf->stage, layer) * POD_LAYER_PARTS
                              : (tf->stage.layers - 1) * POD_LAYER_PARTS;
    return &tf->bundles[first + part];
}

pod_tf_bundle *pod_tf_words(const pod_tf *tf)
{
    return pod_tf_bundle_of(tf, 0, tf->model->tied > 0 ? POD_TF_HEAD : POD_TF_EMBEDDING);
}

/* ---- uses ---- */

void pod_tf_use_declare(pod_tf *tf, pod_tf_bundle *bundle, const char *phase)
{
    if (bundle->there) {
        pod_build_use_declare(&tf->stage.build, bundle, phase, bundle->layer);
    }
}

/** Whether experts' weights are quantised before they are gathered. */
static bool travels_narrow(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    return bundle->experts && tf->stage.request->settings.narrow_gathers
           && tf->stage.build.compute != POD_DTYPE_BF16;
}

/** Whether its weights are gathered once for all passes, and its gradients scattered once. */
static bool moves_once(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    return tf->stage.circular && tf->stage.request->settings.circular.gather_once
           && !bundle->shared;
}

/** Whether they are gathered and scattered once for all microbatches of a round: each bundle is of one round. */
static bool moves_by_rounds(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    return tf->stage.circular && tf->stage.request->settings.circular.gather_by_rounds
           && !bundle->shared;
}

/** Whether weights are gathered over one axis of fsdp after the other. */
static bool in_two_stages(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    const pod_step_settings *settings = &tf->stage.request->settings;
    return tf->layout->fsdp.count > 1
           && (bundle->experts ? settings->two_stage_experts : settings->two_stage_dense);
}

/** Gather an array over axes. @param elements  that come together @return the op, number and all */
static int32_t gather_over(pod_tf *tf, const pod_use *use, const pod_axis_list *axes,
                           int64_t elements, pod_dtype dtype, const int32_t from_to_after[3],
                           int32_t own)
{
    const pod_tf_bundle *bundle = use->weight;
    const int32_t touch[POD_OP_TOUCHES_MAX] = {from_to_after[0], from_to_after[1], POD_OP_NONE,
                                               POD_OP_NONE};
    char name[POD_BUILD_NAME_MAX];
    pod_build_name(name, use->phase, "gather", bundle->name);
    const int32_t op =
        pod_tf_collective(tf, POD_ALL_GATHER, name, axes, elements, dtype, from_to_after[2], touch);
    if (pod_work_layout_pieces(tf->layout, axes) > 1) {
        pod_tf_number_move(tf, op, own, pod_tf_number(tf, from_to_after[1]), (const int[2]){0, 0});
    }
    return op;
}

/** Gather weights for a use of them. @param after  another op that it waits for */
static void use_gather(pod_tf *tf, pod_use *use, int32_t after)
{
    pod_tf_bundle *bundle = use->weight;
    const int32_t layer = tf->layer;
    const int32_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    tf->layer = bundle->layer;
    const bool stored_wide =
        bundle->moments != POD_OP_NONE && pod_tf_states_of(tf, bundle).weight > BYTES;
    use->gathered.op = POD_OP_NONE;
    if (pieces == 1 && !stored_wide) {
        use->gathered.buffer = bundle->weights;
        tf->layer = layer;
        return;
    }
    const bool narrow = travels_narrow(tf, bundle);
    const pod_dtype dtype = narrow ? tf->stage.build.compute : tf->stage.build.dtype;
    use->gathered.buffer =
        pod_tf_buffer(tf, bundle->name, pieces > 1 ? POD_MEMORY_GATHERED : POD_MEMORY_COPIES, dtype,
                      bundle->shard * pieces, 1);
    const int32_t touch[POD_OP_TOUCHES_MAX] = {bundle->weights, use->gathered.buffer, POD_OP_NONE,
                                               POD_OP_NONE};
    int32_t own = pod_tf_number(tf, bundle->weights);
    if (stored_wide) {
        pod_tf_vector(tf, "cast", (double)bundle->shard, 6 * bundle->shard, touch);
        const int32_t wide = own;
        own = pieces > 1 ? pod_tf_number_new(tf, bundle->name, dtype, bundle->shard, 1)
                         : pod_tf_number(tf, use->gathered.buffer);
        pod_tf_number_copy(tf, wide, own);
    }
    if (narrow) {
        pod_tf_quantize_weights(tf, bundle->shard, use->gathered.buffer);
    }
    int32_t from = bundle->weights;
    pod_axis_list axes = bundle->cut;
    if (in_two_stages(
            tf,
            bundle)) { /* first over all but the slowest axis: pieces of an array that lie together */
        pod_axis_list fast = {.count = axes.count - 1};
        memcpy(fast.axis, axes.axis + 1, (size_t)fast.count * sizeof *fast.axis);
        axes.count = 1;
        const int64_t part = bundle->shard * pod_work_layout_pieces(tf->layout, &fast);
        const int32_t half = pod_tf_buffer(tf, bundle->name, POD_MEMORY_GATHERED, dtype, part, 1);
        after =
            gather_over(tf, use, &fast, part, dtype, (const int32_t[3]){from, half, after}, own);
        own = pod_tf_number(tf, half);
        from = half;
    }
    use->gathered.op = gather_over(tf, use, &axes, bundle->shard * pieces, dtype,
                                   (const int32_t[3]){from, use->gathered.buffer, after}, own);
    tf->layer = layer;
}

void pod_tf_use_gather(void *context, pod_use *use)
{
    pod_tf *tf = context;
    pod_tf_bundle *bundle = use->weight;
    if (moves_by_rounds(tf, bundle) && bundle->uses++ % tf->stage.request->microbatches == 0) {
        bundle->once = POD_OP_NONE;
    }
    if (bundle->once != POD_OP_NONE) {
        use->gathered.buffer = bundle->once;
        use->gathered.op = POD_OP_NONE;
        return;
    }
    use_gather(tf, use, POD_OP_NONE);
    if (moves_by_rounds(tf, bundle)) {
        bundle->once = use->gathered.buffer;
    }
}

/** Whether a bundle has more than a table in it whose rows are also those of the embedding. */
static bool is_table_with_more(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    const int64_t table = pod_ceil_div(tf->model->vocab, tf->tensor) * tf->model->d_model;
    return tf->model->tied > 0 && bundle == pod_tf_bundle_of(tf, 0, POD_TF_HEAD)
           && bundle->whole > table;
}

/** Of a tied head with biases or a dense one, each piece has its rows of the table, then its part of all else. They are
 *  put in the order of the matrices, or back. @param buffer  of gathered weights, of a gradient */
static void put_in_order(pod_tf *tf, const pod_tf_bundle *bundle, int32_t buffer, bool back)
{
    const int64_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    if (!pod_tf_numbers(tf) || pieces == 1 || !is_table_with_more(tf, bundle)) {
        return;
    }
    const int64_t table = tf->model->vocab / tf->tensor * tf->model->d_model;
    const int64_t columns = table / pieces;
    const int64_t more = bundle->shard - columns;
    const int32_t from = pod_tf_number(tf, buffer);
    const int32_t to = pod_tf_number_next(tf, buffer);
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t left = pod_min_i64(more, bundle->whole - table - i * more);
        const int64_t at[2][2] = {
            {i * bundle->shard,           i * columns     },
            {i * bundle->shard + columns, table + i * more}
        };
        for (int of = 0; of < 2; of++) {
            const int64_t count = of == 0 ? columns : left;
            if (count > 0) {
                pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
                copy.in[0] = pod_tf_number_matrix(tf, from, at[of][back], 1, count);
                copy.out[0] = pod_tf_number_matrix(tf, to, at[of][!back], 1, count);
                pod_tf_number_compute(tf, &copy);
            }
        }
    }
}

/** HBM traffic of a collective over a bundle, which its overlap doesn't hide.
 *  @param ratio  bytes for each of its bytes */
static void relayout(pod_tf *tf, const char *name, double ratio, const pod_tf_bundle *bundle,
                     pod_dtype dtype, int32_t buffer)
{
    const int64_t size = pod_dtype_size(dtype);
    const int devices = tf->stage.request->chip != NULL ? tf->stage.request->chip->devices : 1;
    const double bytes = ratio * (double)(bundle->whole * size * devices);
    const int32_t touch[POD_OP_TOUCHES_MAX] = {buffer, POD_OP_NONE, POD_OP_NONE, POD_OP_NONE};
    pod_tf_vector(tf, name, (double)bundle->whole, llround(bytes), touch);
}

static void relayout_weights(pod_tf *tf, const pod_tf_bundle *bundle, pod_dtype dtype,
                             int32_t buffer)
{
    const pod_chip_spec *chip = tf->stage.request->chip;
    relayout(tf, "relayout.weights", chip != NULL ? chip->gather_hbm_ratio : 1, bundle, dtype,
             buffer);
    pod_tf_muon_relayout(tf, bundle, buffer, false);
}

static void relayout_gradients(pod_tf *tf, const pod_tf_bundle *bundle, int32_t buffer)
{
    const pod_chip_spec *chip = tf->stage.request->chip;
    relayout(tf, "relayout.gradients", chip != NULL ? chip->scatter_hbm_ratio : 1, bundle,
             tf->stage.build.dtype, buffer);
    pod_tf_muon_relayout(tf, bundle, buffer, true);
}

void pod_tf_gather_once(pod_tf *tf)
{
    int32_t last = POD_OP_NONE;
    for (int32_t i = 0; i < tf->nbundles && tf->stage.build.st == POD_OK; i++) {
        pod_tf_bundle *bundle = &tf->bundles[i];
        pod_use use = {.weight = bundle, .phase = "fwd"};
        if (bundle->there && moves_once(tf, bundle)) {
            use_gather(tf, &use, last);
            last = use.gathered.op;
            bundle->once = use.gathered.buffer;
        }
    }
    pod_tf_wait(tf, last);
    for (int32_t i = 0; i < tf->nbundles && last != POD_OP_NONE; i++) {
        if (tf->bundles[i].once != POD_OP_NONE) {
            relayout_weights(tf, &tf->bundles[i], tf->stage.build.dtype, tf->bundles[i].once);
        }
    }
}

pod_tf_bundle *pod_tf_use_begin(pod_tf *tf)
{
    if (tf->stage.build.st != POD_OK) {
        return &tf->bundles[0];
    }
    const pod_use *use = pod_build_use_begin(&tf->stage.build);
    pod_tf_bundle *bundle = use->weight;
    bundle->gathered = use->gathered.buffer; /* a later use may be gathered already, into another */
    pod_tf_wait(tf, use->gathered.op);
    if (use->gathered.op != POD_OP_NONE) {
        relayout_weights(tf, bundle,
                         travels_narrow(tf, bundle) ? tf->stage.build.compute
                                                    : tf->stage.build.dtype,
                         bundle->gathered);
        put_in_order(tf, bundle, bundle->gathered, false);
    }
    if (bundle->layer >= 0 && !travels_narrow(tf, bundle)) {
        pod_tf_quantize_weights(tf, bundle->whole, bundle->gathered);
    }
    return bundle;
}

int32_t pod_tf_use_part(pod_tf *tf, int part)
{
    pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, part);
    if (!bundle->there || tf->stage.build.st != POD_OK) {
        return POD_OP_NONE;
    }
    const pod_tf_bundle *begun = pod_tf_use_begin(tf);
    POD_ASSERT(tf->stage.build.st != POD_OK || begun == bundle);
    return begun->gathered;
}

/* ---- gradients ---- */

int32_t pod_tf_gradient_buffer(pod_tf *tf, const pod_tf_bundle *bundle)
{
    const int32_t buffer = pod_tf_buffer(tf, bundle->name, POD_MEMORY_GRADIENTS,
                                         tf->stage.build.dtype, bundle->whole, 1);
    const int32_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    pod_tf_number_set(tf, buffer,
                      pod_tf_number_new(tf, bundle->name, tf->stage.build.dtype,
                                        bundle->shard * pieces, 1)); /* padded */
    return buffer;
}

/** Whether the last sum of a gradient goes over several slices. */
static bool crosses_slices(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    const unsigned mask = pod_work_layout_mask(tf->layout, &bundle->late);
    return bundle->late.count > 0 && pod_mesh_slices_of(tf->layout->mesh, mask) > 1;
}

/** Round the ring of the stages that have a bundle, in as many pieces: each adds to what comes, then passes on what is
 *  done. */
static void stages_sum(pod_tf *tf, pod_tf_bundle *bundle)
{
    const pod_tf_stages_list ring = pod_tf_stages_ring(tf);
    const int32_t stages = ring.count;
    const pod_stage *stage = &tf->stage;
    const int32_t taken =
        stage->circular ? pod_circular_messages(stage) : pod_stage_messages(stage);
    const int32_t first = taken + 2 * stages * (int32_t)(bundle - tf->bundles);
    const int64_t elements = pod_ceil_div(bundle->common, stages);
    const int32_t piece =
        pod_tf_buffer(tf, "piece", POD_MEMORY_GRADIENTS, tf->stage.build.dtype, elements, 1);
    const int32_t touch[POD_OP_TOUCHES_MAX] = {bundle->gradient, piece, POD_OP_NONE, POD_OP_NONE};
    const int32_t own = bundle->gradient_op != NONE ? bundle->gradient_op : tf->last_core;
    pod_array moving = {.buffer = piece, .op = own, .dtype = tf->stage.build.dtype};
    char name[POD_BUILD_NAME_MAX];
    pod_build_name(name, "bwd", "sum", bundle->name);
    pod_tf_stages_begin(tf, bundle, elements);
    for (int32_t step = 0; step < 2 * (stages - 1); step++) {
        const int32_t op = pod_build_send(&tf->stage.build, name, &moving, ring.next, first + step);
        if (step == 0) {
            pod_tf_stages_send(tf, bundle, op, piece);
        }
        pod_tf_stages_receive(tf, bundle, step, piece);
        moving = pod_build_recv(&tf->stage.build, name, &moving, ring.before, first + step);
        if (step < stages - 1) {
            pod_tf_wait(tf, step == 0 ? own : NONE);
            pod_tf_wait(tf, moving.op);
            pod_tf_vector(tf, "bwd.add", (double)elements, 6 * elements, touch);
            pod_tf_stages_add(tf, bundle, step, piece);
            moving.op = tf->last_core;
        }
    }
    bundle->gradient_op = moving.op;
}

/** Of the weights that several stages have, when all else is done. */
static void shared_sum(pod_tf *tf)
{
    for (int32_t i = tf->nbundles - 1; i >= 0; i--) {
        if (tf->bundles[i].there && tf->bundles[i].shared && tf->stage.build.st == POD_OK) {
            tf->layer = tf->bundles[i].layer;
            stages_sum(tf, &tf->bundles[i]);
        }
    }
}

static void gradient_sum(pod_tf *tf, pod_tf_bundle *bundle)
{
    const int32_t touch[POD_OP_TOUCHES_MAX] = {bundle->gradient, POD_OP_NONE, POD_OP_NONE,
                                               POD_OP_NONE};
    char name[POD_BUILD_NAME_MAX];
    pod_build_name(name, "bwd", "sum", bundle->name);
    bundle->gradient_op = pod_tf_collective(tf, POD_ALL_REDUCE, name, &bundle->late, bundle->shard,
                                            tf->stage.build.dtype, bundle->gradient_op, touch);
    if (bundle->late.count > 0) {
        const int32_t own = pod_tf_number(tf, bundle->gradient);
        pod_tf_number_move(tf, bundle->gradient_op, own, pod_tf_number_next(tf, bundle->gradient),
                           (const int[2]){0, 0});
    }
}

void pod_tf_gradient_complete(pod_tf *tf, pod_tf_bundle *bundle)
{
    if (!tf->stage.request->settings.dcn_after || !crosses_slices(tf, bundle)) {
        gradient_sum(tf, bundle);
    }
}

/** Whole gradients of all passes add up. @return whether the last one is there */
static bool gradient_add_whole(pod_tf *tf, pod_tf_bundle *bundle, int32_t partial)
{
    if (bundle->sum == POD_OP_NONE) {
        bundle->sum = partial;
    } else {
        pod_tf_vector(
            tf, "bwd.add", (double)bundle->whole, 6 * bundle->whole,
            (const int32_t[POD_OP_TOUCHES_MAX]){partial, bundle->sum, POD_OP_NONE, POD_OP_NONE});
        pod_tf_number_add(tf, partial, bundle->sum);
    }
    return pod_stage_part_is_last(&tf->stage);
}

void pod_tf_gradient(pod_tf *tf, pod_tf_bundle *bundle, int32_t partial)
{
    if (moves_once(tf, bundle) || moves_by_rounds(tf, bundle)) {
        if (!gradient_add_whole(tf, bundle, partial)) {
            return;
        }
        partial = bundle->sum;
    }
    const int32_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    const bool first = bundle->gradient == POD_OP_NONE;
    const bool last = pod_stage_part_is_last(&tf->stage);
    const int32_t layer = tf->layer;
    char name[POD_BUILD_NAME_MAX];
    tf->layer = bundle->layer;
    if (first) {
        bundle->gradient = pieces == 1 ? partial
                                       : pod_tf_buffer(tf, bundle->name, POD_MEMORY_GRADIENTS,
                                                       tf->stage.build.dtype, bundle->shard, 1);
    }
    const int32_t touch[POD_OP_TOUCHES_MAX] = {partial, bundle->gradient, POD_OP_NONE, POD_OP_NONE};
    if (pieces > 1) {
        pod_tf_wait(tf, tf->scatters[tf->nscatters % POD_TF_SCATTERS]);
        relayout_gradients(tf, bundle, partial);
        put_in_order(tf, bundle, partial, true);
    }
    pod_build_name(name, "bwd", "scatter", bundle->name);
    bundle->gradient_op =
        pod_tf_collective(tf, POD_REDUCE_SCATTER, name, &bundle->cut, bundle->shard * pieces,
                          tf->stage.build.dtype, bundle->gradient_op, touch);
    int32_t sum = pod_tf_number(tf, partial);
    if (pieces > 1) {
        const int32_t whole = sum;
        sum = first ? pod_tf_number(tf, bundle->gradient)
                    : pod_tf_number_new(tf, bundle->name, tf->stage.build.dtype, bundle->shard, 1);
        pod_tf_number_move(tf, bundle->gradient_op, whole, sum, (const int[2]){0, 0});
        tf->scatters[tf->nscatters++ % POD_TF_SCATTERS] = bundle->gradient_op;
    }
    if (!first) {
        pod_tf_wait(tf, bundle->gradient_op);
        pod_tf_vector(tf, "bwd.add", (double)bundle->shard, 6 * bundle->shard, touch);
        pod_tf_number_set(tf, partial, sum);
        pod_tf_number_add(tf, partial, bundle->gradient);
        bundle->gradient_op = tf->last_core;
    }
    const bool more = pod_stage_has_input(&tf->stage) && tf->model->tied > 0
                      && bundle == pod_tf_words(tf); /* the embedding's part is still to come */
    if (last && !more) {
        pod_tf_gradient_complete(tf, bundle);
    }
    tf->layer = layer;
}

/** Without overlap what a loop over layers stacks is summed over slices when the loop is done. */
static void gradients_cross(pod_tf *tf)
{
    for (int32_t i = tf->nbundles - 1; i >= 0; i--) {
        if (tf->stage.request->settings.dcn_after && tf->bundles[i].there
            && crosses_slices(tf, &tf->bundles[i])) {
            gradient_sum(tf, &tf->bundles[i]);
        }
    }
}

void pod_tf_gradients_finish(pod_tf *tf)
{
    tf->layer = -1;
    gradients_cross(tf);
    shared_sum(tf);
}
