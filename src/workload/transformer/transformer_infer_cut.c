/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_cut.h"

#include "workload/transformer/transformer_lacks.h"
#include "workload/transformer/transformer_numbers.h"

/* ---- what divides ---- */

pod_tf_infer_shares pod_tf_infer_shares_of(const pod_layer *layer, const pod_work_layout *layout)
{
    const int64_t chips = layout->size[POD_MESH_FSDP];
    const int64_t heads = pod_max_i64(layer->kv_heads / layout->size[POD_MESH_TENSOR], 1);
    const int64_t share = pod_min_i64(heads, chips);
    return (pod_tf_infer_shares){.heads = share, .rows = chips / share};
}

static pod_status shares_check(const pod_step_request *request, const pod_work_layout *layout,
                               int64_t number, pod_error *err)
{
    const pod_layer first = pod_model_layer(request->model, 0);
    const pod_layer layer = pod_model_layer(request->model, number);
    const pod_tf_infer_shares cut = pod_tf_infer_shares_of(&layer, layout);
    const int64_t tensor = layout->size[POD_MESH_TENSOR];
    const int64_t chips = layout->size[POD_MESH_FSDP];
    const int64_t sequences =
        request->batch / layout->size[POD_MESH_DATA] / layout->size[POD_MESH_EXPERT];
    if (cut.heads * cut.rows != chips || layer.kv_heads % (tensor * cut.heads) != 0
        || cut.heads != pod_tf_infer_shares_of(&first, layout).heads) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: the %lld kv_heads of layer %lld and %lld chips of fsdp are "
            "no multiples of each other, or differ from layer to layer; use --data none",
            (long long)(layer.kv_heads / tensor), (long long)number, (long long)chips);
    }
    if (sequences % cut.rows != 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: %lld sequences of a chip do not divide over the %lld chips "
            "of fsdp that share a head's keys; use a --batch that is a multiple of %lld",
            (long long)sequences, (long long)cut.rows,
            (long long)(request->batch / sequences * cut.rows));
    }
    if (layer.d_ff % (tensor * cut.heads) != 0 || layer.moe_d_ff % (tensor * cut.heads) != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: d_ff = %lld does not divide over tensor=%lld and %lld chips "
                        "of fsdp",
                        (long long)pod_max_i64(layer.d_ff, layer.moe_d_ff), (long long)tensor,
                        (long long)cut.heads);
    }
    return POD_OK;
}

pod_status pod_tf_infer_cut_check(const pod_step_request *request, const pod_work_layout *layout,
                                  pod_error *err)
{
    const pod_model *model = request->model;
    const pod_tf_lack lacks[] = {
        {layout->size[POD_MESH_SEQUENCE] > 1,       "prefill over both fsdp and sequence"        },
        {layout->size[POD_MESH_FSDP_TRANSPOSE] > 1, "inference over the mesh axis fsdp_transpose"},
        {model->kv_lora > 0,                        "latent attention in inference over fsdp"    },
        {model->post_norms > 0,                     "norms after attention or MLP over fsdp"     },
    };
    if (layout->fsdp.count == 0) {
        return POD_OK;
    }
    POD_TRY(pod_tf_lacks_first(lacks, sizeof lacks / sizeof lacks[0], err));
    const pod_axis_list both = pod_axis_list_join(layout->fsdp, &layout->tensor);
    POD_TRY(pod_work_divides(layout, "d_model", model->d_model, &both, err));
    for (int64_t l = 0; l < model->layers; l++) {
        POD_TRY(shares_check(request, layout, l, err));
    }
    return POD_OK;
}

/* ---- pieces ---- */

static bool is_cut(const pod_tf *tf, const pod_tf_infer_numbers *n)
{
    return pod_tf_numbers(tf) && n->fsdp > 1;
}

/** Columns of numbers that lie side by side in pieces. */
typedef struct cut_run {
    int32_t number;
    int64_t first;
    int64_t columns;
} cut_run;

enum { CUT_RUNS_MAX = POD_LAYER_MATMULS_MAX + 4 };

typedef struct cut_runs {
    cut_run run[CUT_RUNS_MAX];
    int count;
    int64_t columns; /**< of all */
} cut_runs;

static void cut_run_add(cut_runs *list, int32_t number, int64_t first, int64_t columns)
{
    POD_ASSERT(list->count < CUT_RUNS_MAX);
    list->run[list->count++] = (cut_run){number, first, columns};
    list->columns += columns;
}

/** Between columns of all rows and pieces of them, from column `at` of a piece on. */
static void cut_run_copy(pod_tf *tf, const pod_tf_infer_numbers *n, const cut_run *r,
                         int32_t pieces, int64_t at, bool apart)
{
    const int64_t rows = tf->program->buffers[r->number].rows / n->cut.rows;
    const int64_t columns = r->columns / n->cut.heads;
    for (int64_t i = 0; i < n->fsdp; i++) {
        const pod_number_view whole =
            pod_tf_number_part(tf, r->number, i % n->cut.rows * rows, rows,
                               r->first + i / n->cut.rows * columns, columns);
        const pod_number_view piece = pod_tf_number_part(tf, pieces, i * rows, rows, at, columns);
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = apart ? whole : piece;
        copy.out[0] = apart ? piece : whole;
        pod_tf_number_compute(tf, &copy);
    }
}

/** Pieces by the last core op, which `op` sums and scatters. @return what this chip has of them */
static int32_t scattered(pod_tf *tf, const pod_tf_infer_numbers *n, const cut_runs *runs,
                         int32_t op)
{
    const pod_buffer of = tf->program->buffers[runs->run[0].number];
    const int64_t rows = of.rows / n->cut.rows;
    const int64_t columns = runs->columns / n->cut.heads;
    const int32_t pieces = pod_tf_number_new(tf, of.name, of.dtype, n->fsdp * rows, columns);
    const int32_t own = pod_tf_number_new(tf, of.name, of.dtype, rows, columns);
    int64_t at = 0;
    for (int i = 0; i < runs->count; i++) {
        cut_run_copy(tf, n, &runs->run[i], pieces, at, true);
        at += runs->run[i].columns / n->cut.heads;
    }
    pod_tf_number_move(tf, op, pieces, own, (const int[2]){0, 0});
    return own;
}

/** Of hidden rows: gate and up, or up. */
static void cut_hidden_add(const pod_tf *tf, cut_runs *runs, int32_t wi)
{
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int64_t width = tf->program->buffers[wi].columns / matrices;
    for (int64_t i = 0; i < matrices; i++) {
        cut_run_add(runs, wi, i * width, width);
    }
}

void pod_tf_infer_scatter_qkv(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer,
                              int32_t op)
{
    cut_runs runs = {.count = 0};
    if (!is_cut(tf, n)) {
        return;
    }
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t columns = pod_layer_matmul_n(m, tf->tensor);
        const int64_t first = pod_tf_column_first(tf, layer, m);
        for (int64_t c = 0; m->role == POD_ROLE_PROJECTION && c < m->count; c++) {
            cut_run_add(&runs, n->qkv, first + c * columns, columns);
        }
    }
    if (tf->model->parallel > 0) {
        cut_hidden_add(tf, &runs, n->wi);
    }
    n->qkv = scattered(tf, n, &runs, op);
}

void pod_tf_infer_scatter_hidden(pod_tf *tf, pod_tf_infer_numbers *n, bool of_experts, int32_t op)
{
    cut_runs runs = {.count = 0};
    if (is_cut(tf, n)) {
        int32_t *wi = of_experts ? &tf->rows.wi : &n->wi;
        cut_hidden_add(tf, &runs, *wi);
        *wi = scattered(tf, n, &runs, op);
    }
}

static int32_t cut_columns_new(pod_tf *tf, int32_t from, int64_t first, int64_t columns)
{
    const pod_buffer of = tf->program->buffers[from];
    const int32_t to = pod_tf_number_new(tf, of.name, of.dtype, of.rows, columns);
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = pod_tf_number_part(tf, from, 0, of.rows, first, columns);
    copy.out[0] = pod_tf_number_whole(tf, to);
    pod_tf_number_compute(tf, &copy);
    return to;
}

void pod_tf_infer_split(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (is_cut(tf, n) && tf->model->parallel > 0) {
        const int64_t width = pod_layer_projection_width(layer, tf->tensor) / n->cut.heads;
        const int64_t more = tf->program->buffers[n->qkv].columns - width;
        n->wi = cut_columns_new(tf, n->qkv, width, more);
        n->qkv = cut_columns_new(tf, n->qkv, 0, width);
    }
}

/** `op` puts the pieces of all chips one after the other. */
static int32_t gathered(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t piece, int32_t op)
{
    const pod_buffer of = tf->program->buffers[piece];
    const int32_t all = pod_tf_number_new(tf, of.name, of.dtype, n->fsdp * of.rows, of.columns);
    pod_tf_number_move(tf, op, piece, all, (const int[2]){0, 0});
    return all;
}

/** Columns of both side by side, by the last core op. */
static int32_t beside(pod_tf *tf, int32_t left, int32_t right)
{
    const pod_buffer a = tf->program->buffers[left];
    const pod_buffer b = tf->program->buffers[right];
    const int32_t both = pod_tf_number_new(tf, a.name, a.dtype, a.rows, a.columns + b.columns);
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = pod_tf_number_whole(tf, left);
    copy.out[0] = pod_tf_number_part(tf, both, 0, a.rows, 0, a.columns);
    pod_tf_number_compute(tf, &copy);
    copy.in[0] = pod_tf_number_whole(tf, right);
    copy.out[0] = pod_tf_number_part(tf, both, 0, a.rows, a.columns, b.columns);
    pod_tf_number_compute(tf, &copy);
    return both;
}

void pod_tf_infer_gather_context(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (is_cut(tf, n)) {
        const bool parallel = tf->model->parallel > 0;
        n->context = gathered(tf, n, parallel ? beside(tf, n->context, n->h) : n->context, op);
        n->h = n->context;
    }
}

void pod_tf_infer_gather_hidden(pod_tf *tf, pod_tf_infer_numbers *n, bool of_experts, int32_t op)
{
    if (is_cut(tf, n)) {
        int32_t *h = of_experts ? &tf->rows.h : &n->h;
        *h = gathered(tf, n, *h, op);
    }
}

int32_t pod_tf_infer_whole(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t pieces, int64_t first,
                           int64_t columns)
{
    if (!is_cut(tf, n)) {
        return pieces;
    }
    const pod_buffer of = tf->program->buffers[pieces];
    const cut_run all = {
        .number = pod_tf_number_new(tf, of.name, of.dtype, of.rows / n->cut.heads, columns),
        .columns = columns};
    cut_run_copy(tf, n, &all, pieces, first, false);
    return all.number;
}
