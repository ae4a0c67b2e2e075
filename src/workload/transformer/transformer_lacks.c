/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_lacks.h"

#include "workload/build/circular.h"

static pod_status lack_fail(pod_status status, const char *feature, pod_error *err)
{
    return pod_fail(err, status, "--data real: %s has no real numbers yet; use --data none",
                    feature);
}

static pod_status feature_fail(const char *feature, pod_error *err)
{
    return lack_fail(POD_E_USAGE, feature, err);
}

pod_status pod_tf_lacks_first(const pod_tf_lack *lacks, size_t count, pod_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (lacks[i].asked) {
            return lack_fail(POD_E_INVALID, lacks[i].what, err);
        }
    }
    return POD_OK;
}

/** Keep the first feature that is asked for. */
static void lack_note(const char **lack, bool asked, const char *feature)
{
    *lack = *lack == NULL && asked ? feature : *lack;
}

static void model_lacks(const pod_model *m, const char **lack)
{
    lack_note(lack, m->index_top_k > 0, "an indexer");
    lack_note(lack, m->encoder > 0 && m->window > 0 && m->chunked > 0, "an encoder with chunks");
    lack_note(lack, m->expert_d_model > 0, "narrow experts");
    lack_note(lack, m->gated > 0 && m->kv_lora > 0, "gated latent attention");
    lack_note(lack, m->delta_v_heads > 0, "a gated delta rule");
    lack_note(lack, m->layer_embedding > 0, "a further embedding of each layer");
    lack_note(lack, m->parallel > 0 && m->post_norms > 0,
              "attention beside an MLP with norms after");
    lack_note(lack, m->image > 0 && m->positions == 0, "a picture's class without positions");
    lack_note(lack, m->biases > 0 && (m->experts > 0 || m->kv_lora > 0),
              "a model with biases of experts or of latents");
    bool none = false;
    for (int64_t l = 0; l < m->layers; l++) {
        none = none || pod_model_kv_source(m, l) < 0;
    }
    lack_note(lack, none, "layers that share keys and values with none before them");
}

static void layout_lacks(const pod_step_request *r, const pod_work_layout *layout,
                         const char **lack)
{
    lack_note(lack,
              r->model->tied > 0 && (r->model->biases > 0 || r->model->head_dense > 0)
                  && layout->stages > 1 && !pod_circular_is_on(r, layout->stages),
              "a tied head with biases or a dense one over pipeline");
    const bool shares = r->model->kv_shared_layers > 0;
    lack_note(lack, shares && layout->stages > 1,
              "layers that share keys and values over pipeline");
    lack_note(lack, r->model->image > 0 && layout->size[POD_MESH_SEQUENCE] > 1,
              "a model that reads pictures over sequence");
    lack_note(lack,
              r->mode == POD_STEP_TRAIN && r->optimizer == POD_OPTIMIZER_MUON
                  && r->model->biases > 0,
              "--optimizer muon of a model with biases");
    lack_note(lack,
              r->mode == POD_STEP_TRAIN && r->optimizer == POD_OPTIMIZER_MUON
                  && layout->size[POD_MESH_EXPERT] > 1,
              "--optimizer muon over the mesh axis expert");
    lack_note(lack, r->settings.narrow_gathers && r->dtype != POD_DTYPE_BF16,
              "a gather of weights that are quantised before");
    lack_note(lack, r->attention == POD_ATTENTION_PLAIN, "--attention plain");
    const bool pieces = r->collective_matmul && layout->size[POD_MESH_TENSOR] > 1;
    lack_note(lack,
              pieces && pod_circular_is_on(r, layout->stages) && r->microbatches > layout->stages,
              "--collective-matmul on in a circular pipeline with more microbatches than stages");
    lack_note(lack, pieces && r->model->head_dense > 0, "--collective-matmul on of a dense head");
}

/** Muon: slices of matrices along the longer side, and rows of their squares, equally many on all chips. */
static pod_status matrix_divides(const pod_layer_matmul *m, const pod_work_layout *layout,
                                 pod_error *err)
{
    const bool wide = pod_layer_matmul_is_wide(m);
    const pod_axis_list sequence = {.count = layout->size[POD_MESH_SEQUENCE] > 1,
                                    .axis = {POD_MESH_SEQUENCE}};
    const bool by_tensor = m->n_units > 0 || m->k_units > 0;
    pod_axis_list axes = pod_axis_list_join(layout->fsdp, &sequence);
    if (!pod_layer_matmul_of_experts(m)) {
        axes = pod_axis_list_join(axes, &layout->expert);
    }
    if (by_tensor) {
        axes = pod_axis_list_join(axes, &layout->tensor);
    }
    if (layout->size[POD_MESH_TENSOR] > 1 && by_tensor && wide != (m->n_units > 0)) {
        return pod_fail(err, POD_E_USAGE,
                        "--data real: --optimizer muon has no real numbers where tensor cuts the "
                        "shorter side of a matrix (%s); use --mesh without tensor, or --data none",
                        m->name);
    }
    POD_TRY(pod_work_divides(layout, m->name, m->k, &axes, err));
    return pod_work_divides(layout, m->name, m->n, &axes, err);
}

static pod_status matrices_divide(const pod_step_request *request, const pod_work_layout *layout,
                                  pod_error *err)
{
    const bool muon = request->mode == POD_STEP_TRAIN && request->optimizer == POD_OPTIMIZER_MUON;
    for (int64_t l = 0; l < request->model->layers && muon; l++) {
        const pod_layer layer = pod_model_layer(request->model, l);
        for (int i = 0; i < layer.nmatmuls; i++) {
            POD_TRY(matrix_divides(&layer.matmul[i], layout, err));
        }
    }
    return POD_OK;
}

/** What tensor and the cut of the embedding's columns must divide. */
static pod_status divides_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const pod_model *model = request->model;
    const pod_axis_list sequence = {.count = layout->size[POD_MESH_SEQUENCE] > 1,
                                    .axis = {POD_MESH_SEQUENCE}};
    const pod_axis_list rest = pod_axis_list_join(layout->fsdp, &sequence);
    const pod_axis_list columns = pod_axis_list_join(rest, &layout->expert);
    POD_TRY(pod_work_divides(layout, "vocab", model->vocab, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "kv_heads", model->kv_heads, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "d_model", model->d_model, &columns, err));
    const int64_t rotated = model->kv_lora > 0 ? model->rope_dim : model->head_dim;
    if (rotated % 2 != 0 && request->form.rotary_base > 0) {
        return pod_fail(err, POD_E_INVALID, "%s %lld: pairs of a head are rotated; use an even one",
                        model->kv_lora > 0 ? "rope_dim" : "head_dim", (long long)rotated);
    }
    return POD_OK;
}

/** Over sequence a chip has two pieces of each one, or one. */
static bool pieces_divide(const pod_step_request *request, const pod_work_layout *layout)
{
    const int64_t chips = layout->size[POD_MESH_SEQUENCE];
    const int64_t pieces = request->settings.context_unbalanced ? chips : 2 * chips;
    return chips == 1 || request->seq % (pieces * request->model->experts) == 0;
}

pod_status pod_tf_lacks_experts(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const pod_model *model = request->model;
    if (layout->size[POD_MESH_EXPERT] > 1 && request->settings.expert_balance > 1) {
        return pod_fail(err, POD_E_USAGE,
                        "--data real: the router's choices decide how loaded experts are; leave "
                        "--expert-balance out, or use --data none");
    }
    if (model->vocab < model->experts || model->d_model < model->experts) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: %lld experts need as many columns and a vocabulary of as many",
            (long long)model->experts);
    }
    return POD_OK;
}

/** Experts: equally many rows for each, of all that a chip has at a time. */
static pod_status rows_divide(const pod_step_request *request, const pod_work_layout *layout,
                              pod_error *err)
{
    const pod_model *model = request->model;
    const int64_t chips = pod_work_layout_pieces(layout, &layout->rows);
    const int64_t tokens = request->batch * request->seq / chips / request->microbatches;
    if (model->experts == 0) {
        return POD_OK;
    }
    enum { PERCENT = 100 };
    const int64_t seq =
        request->seq / layout->size[POD_MESH_SEQUENCE]; /* of one sequence on a chip */
    const int64_t room = seq * model->top_k * model->capacity_percent;
    if (room % (PERCENT * model->experts) != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: a capacity of %lld %% of %lld tokens with %lld of %lld "
                        "experts each is no whole number of rows; use a --seq with more factors "
                        "of the experts",
                        (long long)model->capacity_percent, (long long)seq, (long long)model->top_k,
                        (long long)model->experts);
    }
    POD_TRY(pod_tf_lacks_experts(request, layout, err));
    if (tokens % model->experts != 0 || !pieces_divide(request, layout)) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: %lld tokens of a chip at a time do not divide among %lld "
                        "experts; use a --batch or --seq with more factors of it",
                        (long long)tokens, (long long)model->experts);
    }
    return pod_work_divides(layout, "moe_d_ff", model->moe_d_ff, &layout->tensor, err);
}

/** Equally many tokens of the head in each piece of a sequence. */
static pod_status masked_divides(const pod_step_request *request, const pod_work_layout *layout,
                                 pod_error *err)
{
    const int64_t masked = request->model->masked;
    const int64_t chips = layout->size[POD_MESH_SEQUENCE];
    const int64_t pieces = chips == 1                             ? 1
                           : request->settings.context_unbalanced ? chips
                                                                  : 2 * chips;
    return masked % pieces == 0 && (masked == 0 || request->seq % pieces == 0)
               ? POD_OK
               : pod_fail(err, POD_E_INVALID,
                          "--data real: the head reads %lld tokens of each sequence (masked), "
                          "which do not divide over %lld pieces of sequence; use a divisor",
                          (long long)masked, (long long)pieces);
}

/** Logits of all tokens of a chip at a time in equal pieces. */
static pod_status tiles_divide(const pod_step_request *request, const pod_work_layout *layout,
                               pod_error *err)
{
    const int64_t chips = pod_work_layout_pieces(layout, &layout->rows);
    const int64_t masked = request->model->masked;
    const int64_t tokens =
        request->batch * (masked > 0 ? masked : request->seq) / chips / request->microbatches;
    const int64_t tiles = request->settings.vocab_tiles;
    return tiles <= 1 || tiles >= tokens || tokens % tiles == 0
               ? POD_OK
               : pod_fail(err, POD_E_INVALID,
                          "--data real: --vocab-tiling %lld does not divide the %lld tokens of a "
                          "chip at a time; use a divisor",
                          (long long)tiles, (long long)tokens);
}

pod_status pod_tf_lacks_layout(const pod_step_request *request, const pod_work_layout *layout,
                               pod_error *err)
{
    const char *lack = NULL;
    layout_lacks(request, layout, &lack);
    POD_TRY(lack != NULL ? feature_fail(lack, err) : POD_OK);
    POD_TRY(rows_divide(request, layout, err));
    POD_TRY(masked_divides(request, layout, err));
    POD_TRY(tiles_divide(request, layout, err));
    POD_TRY(matrices_divide(request, layout, err));
    return divides_check(request, layout, err);
}

/** What norms are of. */
static pod_status widths_check(const pod_model *model, pod_error *err)
{
    const int64_t least = model->positions > 0 ? 3 : 2; /* a layer norm of two says who is larger */
    if (model->d_model < least || (model->qk_norms > 0 && model->head_dim < 2)
        || model->kv_lora == 1 || model->q_lora == 1) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: a norm of so few columns is no more than signs, which "
                        "rounding may change; "
                        "use a d_model of %lld and more, and others of 2",
                        (long long)least);
    }
    return POD_OK;
}

pod_status pod_tf_lacks_model(const pod_model *model, pod_error *err)
{
    const char *lack = NULL;
    model_lacks(model, &lack);
    POD_TRY(lack != NULL ? feature_fail(lack, err) : POD_OK);
    return widths_check(model, err);
}
