/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_context.h"

#include "chip/kernels.h"
#include "workload/transformer/transformer_heads.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

/* ---- sizes ---- */

int64_t pod_tf_context_chips(const pod_tf *tf)
{
    return pod_work_layout_pieces(tf->layout, &tf->sequence);
}

static pod_number_view some_columns(const pod_tf *tf, int32_t number, int64_t first,
                                    int64_t columns)
{
    return pod_tf_number_part(tf, number, 0, tf->program->buffers[number].rows, first, columns);
}

static int32_t rows_new(pod_tf *tf, const char *name, int64_t rows, int64_t columns)
{
    return pod_tf_number_new(tf, name, tf->stage.build.dtype, rows, columns);
}

static int64_t gathered_rows(const pod_tf *tf)
{
    return tf->tokens * pod_tf_context_chips(tf);
}

/* ---- what has no numbers ---- */

static pod_status layer_check(const pod_step_request *request, const pod_work_layout *layout,
                              const pod_layer *layer, pod_error *err)
{
    const int64_t chips = layout->size[POD_MESH_SEQUENCE];
    const int64_t heads = request->model->kv_lora > 0 ? layer->heads : layer->kv_heads;
    const int64_t kv_heads = heads / pod_work_layout_pieces(layout, &layout->tensor);
    if (request->settings.context == POD_CONTEXT_ULYSSES && kv_heads % chips != 0
        && chips % kv_heads != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: %lld heads of keys of a chip and sequence=%lld: use a "
                        "sequence that divides them or is a multiple of them, or --data none",
                        (long long)kv_heads, (long long)chips);
    }
    return POD_OK;
}

pod_status pod_tf_context_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    if (layout->size[POD_MESH_SEQUENCE] == 1) {
        return POD_OK;
    }
    for (int64_t l = 0; l < request->model->layers; l++) {
        const pod_layer layer = pod_model_layer(request->model, l);
        POD_TRY(layer_check(request, layout, &layer, err));
    }
    return POD_OK;
}

/* ---- parts of numbers ---- */

static void copy_part(pod_tf *tf, pod_number_view from, pod_number_view to, bool add)
{
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = from;
    copy.out[0] = to;
    copy.accumulate = add;
    pod_tf_number_compute(tf, &copy);
}

int32_t pod_tf_context_regroup(pod_tf *tf, int32_t from, bool back)
{
    const pod_buffer like = tf->program->buffers[from];
    const int32_t to = pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
    pod_number number = pod_tf_number_begin(POD_NUMBER_REGROUP);
    number.in[0] = pod_tf_number_whole(tf, from);
    number.out[0] = pod_tf_number_whole(tf, to);
    number.sequences = tf->sequences;
    number.parts = pod_tf_context_chips(tf);
    number.back = back;
    pod_tf_number_compute(tf, &number);
    return to;
}

/** Heads of queries or keys after their norms and rotation. */
static void heads_turn(pod_tf *tf, const pod_layer *layer, pod_number_view from, pod_number_view to)
{
    pod_number_view in = from;
    if (pod_tf_heads_have_norms(tf)) {
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.in[0] = from;
        norm.out[0] =
            pod_tf_number_whole(tf, rows_new(tf, "heads.normed", from.rows, from.columns));
        norm.dim = layer->qk_dim;
        pod_tf_number_compute(tf, &norm);
        in = norm.out[0];
    }
    pod_tf_number_turn(tf, layer, in, to, false);
}

/** The way back of that, from `from`, derivatives by results, to `to`. @param raw  what forward began with */
static void heads_turn_back(pod_tf *tf, const pod_layer *layer, pod_number_view raw,
                            pod_number_view from, pod_number_view to)
{
    if (!pod_tf_heads_have_norms(tf)) {
        pod_tf_number_turn(tf, layer, from, to, true);
        return;
    }
    pod_number norm = pod_tf_number_norm_of(tf, true);
    norm.in[0] = raw;
    norm.in[1] = pod_tf_number_whole(tf, rows_new(tf, "heads.turned", from.rows, from.columns));
    norm.out[0] = to;
    norm.dim = layer->qk_dim;
    pod_tf_number_turn(tf, layer, from, norm.in[1], true);
    pod_tf_number_compute(tf, &norm);
}

/** Queries or keys as norms read them; nothing where there are none. */
static pod_number_view heads_raw(pod_tf *tf, const pod_layer *layer, int32_t raw, unsigned what)
{
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const bool keys = what == POD_TF_KEYS;
    return pod_tf_heads_have_norms(tf) ? some_columns(tf, pod_tf_heads_packed(tf, layer, raw, what),
                                                      keys ? w.q : 0, keys ? w.k : w.q)
                                       : (pod_number_view){.buffer = NONE};
}

/* ---- positions ---- */

void pod_tf_context_begin(pod_tf *tf)
{
    const bool ring = tf->stage.request->settings.context == POD_CONTEXT_RING;
    if (pod_tf_context_chips(tf) > 1 && pod_tf_numbers(tf)) {
        const int64_t rows = pod_tf_context_chips(tf) * (ring ? tf->seq : tf->tokens);
        tf->context.positions = pod_tf_number_new(tf, "positions", POD_DTYPE_F32, rows, 1);
        pod_tf_place(tf, ring ? POD_PLACE_RING_POSITIONS : POD_PLACE_POSITIONS,
                     tf->context.positions, NULL, &tf->sequence);
    }
}

/* ---- attention ---- */

static pod_number attend_of(pod_tf *tf, const pod_layer *layer, pod_number_function function,
                            int64_t share)
{
    pod_number attend = pod_tf_number_attend_of(tf, layer, function);
    const int64_t kv_heads = attend.kv_heads / share;
    attend.heads /= share;
    attend.kv_heads = kv_heads > 0 ? kv_heads : 1; /* of few heads a copy */
    return attend;
}

enum { QUERY_POSITION = 3, KEY_POSITION, RESULT, ALONG };

/* ---- all-gather ---- */

void pod_tf_context_gather(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t qkv,
                           const pod_tf_gathering *how)
{
    if (!pod_tf_numbers(tf) || op == NONE) {
        return;
    }
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const bool keys = (how->what & POD_TF_KEYS) != 0;
    const bool values = (how->what & POD_TF_VALUES) != 0;
    const int64_t first[2] = {0, keys ? w.k : 0};
    const int64_t columns = (keys ? w.k : 0) + (values ? w.v : 0);
    const int32_t from = how->rotated
                             ? pod_tf_number(tf, qkv)
                             : pod_tf_heads_packed(tf, layer, pod_tf_number(tf, qkv), how->what);
    const int32_t own = rows_new(tf, "kv", tf->tokens, columns);
    const int32_t all = rows_new(tf, "kv", gathered_rows(tf), columns);
    if (keys && how->rotated) {
        copy_part(tf, some_columns(tf, from, w.q, w.k), some_columns(tf, own, 0, w.k), false);
    } else if (keys) {
        heads_turn(tf, layer, some_columns(tf, from, w.q, w.k), some_columns(tf, own, 0, w.k));
    }
    if (values) {
        copy_part(tf, some_columns(tf, from, w.q + w.k, w.v), some_columns(tf, own, first[1], w.v),
                  false);
    }
    for (int i = 0; i < 2; i++) {
        if (i == 0 ? keys : values) {
            tf->context.gathered[i] = all;
            tf->context.first[i] = first[i];
            tf->context.regrouped[i] = NONE;
        }
    }
    pod_tf_number_move(tf, op, own, all, (const int[2]){0, 0});
}

/** Queries of `qkv`, keys and values of all chips. */
static pod_number gathered_attend(pod_tf *tf, const pod_layer *layer, pod_number_function function,
                                  int32_t qkv)
{
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    pod_tf_context *of = &tf->context;
    for (int i = 0; i < 2; i++) {
        const bool again = i == 1 && of->gathered[1] == of->gathered[0];
        if (of->regrouped[i] == NONE) {
            of->regrouped[i] =
                again ? of->regrouped[0] : pod_tf_context_regroup(tf, of->gathered[i], false);
        }
    }
    pod_number attend = attend_of(tf, layer, function, 1);
    attend.in[0] = some_columns(tf, pod_tf_number(tf, qkv), 0, w.q);
    attend.in[1] = some_columns(tf, of->regrouped[0], of->first[0], w.k);
    attend.in[2] = some_columns(tf, of->regrouped[1], of->first[1], w.v);
    attend.in[KEY_POSITION] = pod_tf_number_whole(tf, of->positions);
    return attend;
}

void pod_tf_context_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t context)
{
    if (pod_tf_numbers(tf)) {
        pod_number attend = gathered_attend(tf, layer, POD_NUMBER_ATTEND, qkv);
        attend.out[0] = pod_tf_number_whole(tf, pod_tf_heads_result(tf, context));
        pod_tf_number_compute(tf, &attend);
        pod_tf_heads_gate(tf, layer, TOUCH(qkv, context), false);
    }
}

int32_t pod_tf_context_attend_back(pod_tf *tf, const pod_layer *layer,
                                   const int32_t qkv_dcontext_dqkv[3], int32_t raw)
{
    if (!pod_tf_numbers(tf)) {
        return NONE;
    }
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const int32_t projected = pod_tf_number(tf, qkv_dcontext_dqkv[2]);
    const int32_t heads = pod_tf_heads_like(tf, layer, projected);
    const int32_t dq = rows_new(tf, "dq", tf->tokens, w.q);
    const int32_t dkv = rows_new(tf, "dkv", gathered_rows(tf), w.k + w.v);
    pod_number attend = gathered_attend(tf, layer, POD_NUMBER_ATTEND_BACK, qkv_dcontext_dqkv[0]);
    attend.in[RESULT] =
        pod_tf_number_whole(tf, pod_tf_heads_gate_back(tf, layer, qkv_dcontext_dqkv, heads));
    attend.out[0] = pod_tf_number_whole(tf, dq);
    attend.out[1] = some_columns(tf, dkv, 0, w.k);
    attend.out[2] = some_columns(tf, dkv, w.k, w.v);
    pod_tf_number_compute(tf, &attend);
    heads_turn_back(tf, layer, heads_raw(tf, layer, raw, POD_TF_QUERIES),
                    pod_tf_number_whole(tf, dq), some_columns(tf, heads, 0, w.q));
    pod_tf_heads_unpack(tf, layer, (const int32_t[2]){heads, projected},
                        POD_TF_QUERIES | POD_TF_GATES);
    return pod_tf_context_regroup(tf, dkv, true);
}

void pod_tf_context_scatter(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t all)
{
    if (pod_tf_numbers(tf) && op != NONE) {
        const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
        tf->context.scattered = rows_new(tf, "dkv", tf->tokens, w.k + w.v);
        pod_tf_number_move(tf, op, all, tf->context.scattered, (const int[2]){0, 0});
    }
}

/* ---- ring ---- */

static void along_add(pod_tf *tf, const pod_layer *layer, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    const int32_t dqkv = touch[3];
    const int64_t heads = layer->heads / tf->tensor;
    pod_tf_number_set(tf, dqkv, pod_tf_heads_like(tf, layer, pod_tf_number(tf, dqkv)));
    tf->context.by_result =
        pod_tf_heads_gate_back(tf, layer, TOUCH(touch[0], touch[2]), pod_tf_number(tf, dqkv));
    tf->context.along =
        pod_tf_number_new(tf, "along", POD_DTYPE_F32, tf->tokens, heads * POD_KERNEL_PART_SUMS);
    pod_number along = pod_tf_number_begin(POD_NUMBER_ATTEND_ALONG);
    along.in[0] = pod_tf_number_whole(tf, pod_tf_saved_of(tf, tf->layer)->sums);
    along.in[1] = pod_tf_number_whole(tf, pod_tf_heads_plain(tf, touch[1]));
    along.in[2] = pod_tf_number_whole(tf, tf->context.by_result);
    along.out[0] = pod_tf_number_whole(tf, tf->context.along);
    along.heads = heads;
    pod_tf_number_compute(tf, &along);
}

void pod_tf_context_ring_begin(pod_tf *tf, const pod_layer *layer,
                               const int32_t touch[POD_OP_TOUCHES_MAX], bool back)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    tf->context.at_hand = rows_new(tf, "kv", tf->tokens, w.k + w.v);
    tf->context.passed[0] = tf->context.at_hand;
    tf->context.passed[1] = tf->context.at_hand;
    tf->context.home = back;
    copy_part(tf, some_columns(tf, pod_tf_number(tf, touch[0]), w.q, w.k + w.v),
              pod_tf_number_whole(tf, tf->context.at_hand), false);
    if (back) {
        along_add(tf, layer, touch);
    }
}

/** `op` moves numbers. @return those where they come to */
static int32_t ring_move(pod_tf *tf, int32_t op, int32_t from)
{
    const pod_buffer like = tf->program->buffers[from];
    const int32_t to = pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
    pod_tf_number_move(tf, op, from, to, (const int[2]){0, 0});
    return to;
}

void pod_tf_context_ring_pass(pod_tf *tf, int32_t op, int way)
{
    if (pod_tf_numbers(tf)) {
        tf->context.passed[way] = ring_move(tf, op, tf->context.passed[way]);
    }
}

void pod_tf_context_ring_passed(pod_tf *tf, int way)
{
    tf->context.at_hand = tf->context.passed[way];
}

static pod_number ring_attend(pod_tf *tf, const pod_layer *layer, pod_number_function function,
                              int64_t back, int32_t qkv)
{
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    pod_number attend = attend_of(tf, layer, function, 1);
    attend.in[0] = some_columns(tf, pod_tf_number(tf, qkv), 0, w.q);
    attend.in[1] = some_columns(tf, tf->context.at_hand, 0, w.k);
    attend.in[2] = some_columns(tf, tf->context.at_hand, w.k, w.v);
    attend.in[QUERY_POSITION] = pod_tf_number_part(tf, tf->context.positions, 0, tf->seq, 0, 1);
    attend.in[KEY_POSITION] =
        pod_tf_number_part(tf, tf->context.positions, back * tf->seq, tf->seq, 0, 1);
    return attend;
}

void pod_tf_context_ring_attend(pod_tf *tf, const pod_layer *layer, const pod_tf_visit *visit,
                                int32_t qkv, bool back)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const int64_t heads = layer->heads / tf->tensor;
    pod_number attend = ring_attend(
        tf, layer, back ? POD_NUMBER_ATTEND_PART_BACK : POD_NUMBER_ATTEND_PART, visit->back, qkv);
    const int64_t width[POD_TF_RING_PARTS] = {back ? w.q : heads * layer->v_dim,
                                              back ? w.k : heads * POD_KERNEL_PART_SUMS, w.v};
    for (int i = 0; i < (back ? POD_TF_RING_PARTS : 2); i++) {
        tf->context.step[i] = pod_tf_number_new(tf, "partial", POD_DTYPE_F32, tf->tokens, width[i]);
        attend.out[i] = pod_tf_number_whole(tf, tf->context.step[i]);
    }
    if (back) {
        attend.in[RESULT] = pod_tf_number_whole(tf, tf->context.by_result);
        attend.in[ALONG] = pod_tf_number_whole(tf, tf->context.along);
    }
    pod_tf_number_compute(tf, &attend);
}

void pod_tf_context_ring_merge(pod_tf *tf, const pod_layer *layer, const pod_tf_visit *visit,
                               const int32_t qkv_context[2])
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    pod_number merge = pod_tf_number_begin(POD_NUMBER_ATTEND_MERGE);
    merge.heads = layer->heads / tf->tensor;
    for (int i = 0; i < 2 && !visit->first; i++) {
        const pod_buffer like = tf->program->buffers[tf->context.step[i]];
        const int32_t merged =
            pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
        merge.in[i] = pod_tf_number_whole(tf, tf->context.sum[i]);
        merge.in[2 + i] = pod_tf_number_whole(tf, tf->context.step[i]);
        merge.out[i] = pod_tf_number_whole(tf, merged);
        tf->context.step[i] = merged;
    }
    if (!visit->first) {
        pod_tf_number_compute(tf, &merge);
    }
    tf->context.sum[0] = tf->context.step[0];
    tf->context.sum[1] = tf->context.step[1];
    if (visit->last) {
        pod_number end = pod_tf_number_begin(POD_NUMBER_ATTEND_END);
        end.heads = merge.heads;
        end.in[0] = pod_tf_number_whole(tf, tf->context.sum[0]);
        end.in[1] = pod_tf_number_whole(tf, tf->context.sum[1]);
        end.out[0] = pod_tf_number_whole(tf, pod_tf_heads_result(tf, qkv_context[1]));
        pod_tf_number_compute(tf, &end);
        pod_tf_heads_gate(tf, layer, qkv_context, false);
        pod_tf_saved_of(tf, tf->layer)->sums = tf->context.sum[1];
    }
}

void pod_tf_context_ring_came_home(pod_tf *tf, int32_t number, int which)
{
    if (pod_tf_numbers(tf)) {
        const pod_buffer like = tf->program->buffers[number];
        pod_number add = pod_tf_number_begin(POD_NUMBER_ADD);
        add.in[0] = pod_tf_number_whole(tf, tf->context.sum[which]);
        add.in[1] = pod_tf_number_whole(tf, number);
        tf->context.sum[which] =
            pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
        add.out[0] = pod_tf_number_whole(tf, tf->context.sum[which]);
        pod_tf_number_compute(tf, &add);
    }
}

void pod_tf_context_ring_add(pod_tf *tf, const pod_tf_visit *visit, int which)
{
    if (visit->first) {
        tf->context.sum[which] = tf->context.step[which];
    } else {
        pod_tf_context_ring_came_home(tf, tf->context.step[which], which);
    }
}

void pod_tf_context_ring_pass_back(pod_tf *tf, int32_t op, int which)
{
    if (pod_tf_numbers(tf)) {
        tf->context.sum[which] = ring_move(tf, op, tf->context.sum[which]);
    }
}

int32_t pod_tf_context_ring_home(pod_tf *tf, int32_t op, int which)
{
    return pod_tf_numbers(tf) ? ring_move(tf, op, tf->context.step[which]) : NONE;
}

/* ---- ulysses ---- */

/** What a chip has of the heads after the exchange. */
static pod_tf_head_widths heads_share(const pod_tf *tf, const pod_layer *layer)
{
    const int64_t chips = pod_tf_context_chips(tf);
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const int64_t k = w.k / chips;
    const int64_t v = w.v / chips;
    return (pod_tf_head_widths){.q = w.q / chips,
                                .k = k > layer->qk_dim ? k : layer->qk_dim,
                                .v = v > layer->v_dim ? v : layer->v_dim};
}

/** Columns of queries, keys or values (0 to 2) among those of this chip, and among those that are sent. */
typedef struct sent_columns {
    int64_t own;
    int64_t sent;
    int64_t columns;
    bool again; /**< a copy: the chip before has these columns, too */
} sent_columns;

static sent_columns sent_columns_of(const pod_tf *tf, const pod_layer *layer, int64_t chip,
                                    int what)
{
    const int64_t chips = pod_tf_context_chips(tf);
    const pod_tf_head_widths all = pod_tf_heads_widths(tf, layer);
    const pod_tf_head_widths share = heads_share(tf, layer);
    const int64_t own_first[3] = {0, all.q, all.q + all.k};
    const int64_t sent_first[3] = {0, share.q, share.q + share.k};
    const int64_t own[3] = {all.q, all.k, all.v};
    const int64_t columns[3] = {share.q, share.k, share.v};
    const int64_t copies = columns[what] * chips / own[what];
    return (sent_columns){.own = own_first[what] + chip / copies * columns[what],
                          .sent = chip * (share.q + share.k + share.v) + sent_first[what],
                          .columns = columns[what],
                          .again = chip % copies > 0};
}

static int64_t share_width(const pod_tf *tf, const pod_layer *layer)
{
    const pod_tf_head_widths share = heads_share(tf, layer);
    return share.q + share.k + share.v;
}

void pod_tf_context_exchange(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t qkv)
{
    if (!pod_tf_numbers(tf) || op == NONE) {
        return;
    }
    const int64_t chips = pod_tf_context_chips(tf);
    const int64_t width = share_width(tf, layer);
    const int32_t from = pod_tf_number(tf, qkv);
    const int32_t sent = rows_new(tf, "qkv", tf->tokens, chips * width);
    for (int64_t chip = 0; chip < chips; chip++) {
        for (int what = 0; what < 3; what++) {
            const sent_columns p = sent_columns_of(tf, layer, chip, what);
            copy_part(tf, some_columns(tf, from, p.own, p.columns),
                      some_columns(tf, sent, p.sent, p.columns), false);
        }
    }
    tf->context.gathered[0] = rows_new(tf, "qkv", gathered_rows(tf), width);
    tf->context.regrouped[0] = NONE;
    pod_tf_number_move(tf, op, sent, tf->context.gathered[0], (const int[2]){1, 0});
}

static pod_number share_attend(pod_tf *tf, const pod_layer *layer, pod_number_function function)
{
    const pod_tf_head_widths share = heads_share(tf, layer);
    if (tf->context.regrouped[0] == NONE) {
        tf->context.regrouped[0] = pod_tf_context_regroup(tf, tf->context.gathered[0], false);
    }
    pod_number attend = attend_of(tf, layer, function, pod_tf_context_chips(tf));
    attend.in[0] = some_columns(tf, tf->context.regrouped[0], 0, share.q);
    attend.in[1] = some_columns(tf, tf->context.regrouped[0], share.q, share.k);
    attend.in[2] = some_columns(tf, tf->context.regrouped[0], share.q + share.k, share.v);
    attend.in[QUERY_POSITION] = pod_tf_number_whole(tf, tf->context.positions);
    attend.in[KEY_POSITION] = attend.in[QUERY_POSITION];
    return attend;
}

void pod_tf_context_share_attend(pod_tf *tf, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        pod_number attend = share_attend(tf, layer, POD_NUMBER_ATTEND);
        const int32_t result =
            rows_new(tf, "context", gathered_rows(tf), attend.heads * layer->v_dim);
        attend.out[0] = pod_tf_number_whole(tf, result);
        pod_tf_number_compute(tf, &attend);
        tf->context.scattered = pod_tf_context_regroup(tf, result, true);
    }
}

void pod_tf_context_exchange_result(pod_tf *tf, const pod_layer *layer, int32_t op,
                                    const int32_t qkv_context[2])
{
    if (pod_tf_numbers(tf)) {
        pod_tf_number_move(tf, op, tf->context.scattered, pod_tf_heads_result(tf, qkv_context[1]),
                           (const int[2]){0, 1});
        pod_tf_heads_gate(tf, layer, qkv_context, true);
        tf->context.scattered = NONE;
    }
}

void pod_tf_context_exchange_back(pod_tf *tf, const pod_layer *layer, int32_t op,
                                  const int32_t qkv_dcontext_dqkv[3])
{
    if (pod_tf_numbers(tf)) {
        const int32_t dqkv = qkv_dcontext_dqkv[2];
        pod_tf_number_set(tf, dqkv, pod_tf_heads_like(tf, layer, pod_tf_number(tf, dqkv)));
        const int32_t from =
            pod_tf_heads_gate_back(tf, layer, qkv_dcontext_dqkv, pod_tf_number(tf, dqkv));
        const int64_t width = tf->program->buffers[from].columns / pod_tf_context_chips(tf);
        tf->context.along = rows_new(tf, "dcontext", gathered_rows(tf), width);
        pod_tf_number_move(tf, op, from, tf->context.along, (const int[2]){1, 0});
    }
}

void pod_tf_context_share_attend_back(pod_tf *tf, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const pod_tf_head_widths share = heads_share(tf, layer);
        const int32_t d = rows_new(tf, "dqkv", gathered_rows(tf), share_width(tf, layer));
        pod_number attend = share_attend(tf, layer, POD_NUMBER_ATTEND_BACK);
        attend.in[RESULT] =
            pod_tf_number_whole(tf, pod_tf_context_regroup(tf, tf->context.along, false));
        attend.out[0] = some_columns(tf, d, 0, share.q);
        attend.out[1] = some_columns(tf, d, share.q, share.k);
        attend.out[2] = some_columns(tf, d, share.q + share.k, share.v);
        pod_tf_number_compute(tf, &attend);
        tf->context.along = pod_tf_context_regroup(tf, d, true);
    }
}

void pod_tf_context_exchange_dqkv(pod_tf *tf, const pod_layer *layer, int32_t op)
{
    if (pod_tf_numbers(tf)) {
        tf->context.returned =
            rows_new(tf, "dqkv", tf->tokens, pod_tf_context_chips(tf) * share_width(tf, layer));
        pod_tf_number_move(tf, op, tf->context.along, tf->context.returned, (const int[2]){0, 1});
    }
}

/* ---- home ---- */

/** From the chips that had the heads. */
static void returned_collect(pod_tf *tf, const pod_layer *layer, int32_t to)
{
    for (int64_t chip = 0; chip < pod_tf_context_chips(tf); chip++) {
        for (int what = 0; what < 3; what++) {
            const sent_columns p = sent_columns_of(tf, layer, chip, what);
            copy_part(tf, some_columns(tf, tf->context.returned, p.sent, p.columns),
                      some_columns(tf, to, p.own, p.columns), p.again);
        }
    }
    tf->context.returned = NONE;
}

/** From the ring. */
static void sums_collect(pod_tf *tf, const pod_layer *layer, int32_t to)
{
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const int64_t first[3] = {0, w.q, w.q + w.k};
    const int64_t columns[3] = {w.q, w.k, w.v};
    for (int i = 0; i < 3; i++) {
        copy_part(tf, pod_tf_number_whole(tf, tf->context.sum[i]),
                  some_columns(tf, to, first[i], columns[i]), false);
    }
    tf->context.home = false;
}

bool pod_tf_context_collect(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t raw)
{
    if (!pod_tf_numbers(tf)) {
        return false;
    }
    const pod_tf_head_widths w = pod_tf_heads_widths(tf, layer);
    const int32_t to = pod_tf_number(tf, dqkv);
    if (tf->context.scattered != NONE) {
        const int32_t from = pod_tf_heads_share_sum(tf, tf->context.scattered);
        const int32_t heads = pod_tf_heads_like(tf, layer, to);
        tf->context.scattered = NONE;
        if (from == NONE) {
            return true;
        }
        heads_turn_back(tf, layer, heads_raw(tf, layer, raw, POD_TF_KEYS),
                        some_columns(tf, from, 0, w.k), some_columns(tf, heads, w.q, w.k));
        copy_part(tf, some_columns(tf, from, w.k, w.v), some_columns(tf, heads, w.q + w.k, w.v),
                  false);
        pod_tf_heads_unpack(tf, layer, (const int32_t[2]){heads, to}, POD_TF_KEYS | POD_TF_VALUES);
        return true;
    }
    if (tf->context.returned != NONE) {
        returned_collect(tf, layer, to);
    } else if (tf->context.home) {
        sums_collect(tf, layer, to);
    }
    return false;
}
