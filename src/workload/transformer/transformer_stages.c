/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_stages.h"

#include "base/grow.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

/* ---- rows ---- */

/** Whether rows are a chip's piece of those of all chips of tensor, which the embedding gives. */
static bool is_piece(const pod_tf *tf, int32_t whole, int32_t part)
{
    return tf->pieces && tf->program->buffers[whole].rows == tf->tokens
           && tf->program->buffers[part].rows == tf->tokens / tf->tensor;
}

static pod_number rows_copy(pod_tf *tf, int32_t from, int32_t to, int32_t i, bool join)
{
    if (is_piece(tf, from, to)) {
        return pod_tf_number_turn_of_rows(tf, pod_tf_number_whole(tf, from),
                                          pod_tf_number_whole(tf, to));
    }
    const pod_buffer *part = &tf->program->buffers[join ? from : to];
    const pod_number_view whole = pod_tf_number_whole(tf, join ? from : to);
    const pod_number_view piece =
        pod_tf_number_part(tf, join ? to : from, i * part->rows, part->rows, 0, part->columns);
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = join ? whole : piece;
    copy.out[0] = join ? piece : whole;
    return copy;
}

static void rows_wait(pod_tf *tf, int32_t whole, int32_t part, int32_t i)
{
    if (!POD_GROW(tf->rows_wait, tf->rows_wait_room, tf->nrows_wait + 1)) {
        tf->stage.build.st =
            pod_fail(tf->stage.build.err, POD_E_NOMEM, "out of memory for numbers");
        return;
    }
    tf->rows_wait[tf->nrows_wait++] = (pod_tf_rows_wait){.whole = whole, .part = part, .i = i};
}

void pod_tf_stages_rows(pod_stage *stage, int32_t op, const pod_array *whole, const pod_array *part,
                        int32_t i, bool join)
{
    pod_tf *tf = (pod_tf *)stage; /* its first member */
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int32_t all = pod_tf_number(tf, whole->buffer);
    if (i < 0 && tf->pieces && is_piece(tf, all, pod_tf_number(tf, part->buffer))) {
        const pod_number copy = rows_copy(tf, all, pod_tf_number(tf, part->buffer), 0, false);
        if (op != NONE) {
            (void)pod_program_number(tf->program, op, &copy);
        }
    } else if (i < 0
               || (!join
                   && tf->program->buffers[all].rows
                          == tf->program->buffers[pod_tf_number(tf, part->buffer)].rows)) {
        pod_tf_number_set(tf, part->buffer, all);
    } else if (!join) {
        rows_wait(tf, pod_tf_number(tf, whole->buffer), pod_tf_number(tf, part->buffer), i);
    } else {
        const pod_number copy = rows_copy(tf, pod_tf_number(tf, part->buffer),
                                          pod_tf_number(tf, whole->buffer), i, true);
        (void)pod_program_number(tf->program, op != NONE ? op : tf->last_core, &copy);
    }
}

void pod_tf_stages_take(pod_tf *tf, int32_t buffer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int32_t part = pod_tf_number(tf, buffer);
    for (int64_t i = 0; i < tf->nrows_wait; i++) {
        pod_tf_rows_wait *wait = &tf->rows_wait[i];
        if (wait->part == part && wait->whole != NONE) {
            const pod_number copy = rows_copy(tf, wait->whole, part, wait->i, false);
            pod_tf_number_before(tf, &copy);
            wait->whole = NONE;
        }
    }
}

/* ---- gradients ---- */

pod_tf_stages_list pod_tf_stages_ring(const pod_tf *tf)
{
    const pod_stage *stage = &tf->stage;
    const int32_t last = stage->count - 1;
    if (!stage->circular) {
        const int32_t other = stage->number == 0 ? last : 0;
        return (pod_tf_stages_list){
            .count = 2, .place = stage->number == 0 ? 0 : 1, .next = other, .before = other};
    }
    return (pod_tf_stages_list){.count = stage->count,
                                .place = stage->number,
                                .next = (stage->number + 1) % stage->count,
                                .before = (stage->number + last) % stage->count};
}

/** The piece that comes in a step. */
static int32_t piece_of_step(const pod_tf *tf, int32_t step)
{
    const pod_tf_stages_list ring = pod_tf_stages_ring(tf);
    return ((ring.place - 1 - step) % ring.count + ring.count) % ring.count;
}

/** Elements of a piece that there are: the last ones may be fewer. */
static int64_t piece_elements(const pod_tf *tf, const pod_tf_bundle *bundle, int32_t piece)
{
    const int64_t most = tf->program->buffers[bundle->pieces].rows;
    const int64_t left = bundle->common - piece * most;
    return left < 0 ? 0 : left < most ? left : most;
}

static pod_number_view own_piece(pod_tf *tf, const pod_tf_bundle *bundle, int32_t piece)
{
    return pod_tf_number_matrix(tf, pod_tf_number(tf, bundle->gradient),
                                piece * tf->program->buffers[bundle->pieces].rows,
                                piece_elements(tf, bundle, piece), 1);
}

void pod_tf_stages_begin(pod_tf *tf, pod_tf_bundle *bundle, int64_t elements)
{
    for (int32_t i = 0; i < pod_tf_stages_ring(tf).count; i++) {
        const int32_t piece = pod_tf_number_new(tf, "piece", tf->stage.build.dtype, elements, 1);
        bundle->pieces = i == 0 ? piece : bundle->pieces;
    }
}

void pod_tf_stages_send(pod_tf *tf, const pod_tf_bundle *bundle, int32_t op, int32_t buffer)
{
    const int32_t piece = pod_tf_stages_ring(tf).place;
    if (pod_tf_numbers(tf) && op != NONE) {
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = own_piece(tf, bundle, piece);
        copy.out[0] = pod_tf_number_matrix(tf, pod_tf_number(tf, buffer), 0,
                                           piece_elements(tf, bundle, piece), 1);
        (void)pod_program_number(tf->program, op, &copy);
    }
}

void pod_tf_stages_receive(pod_tf *tf, const pod_tf_bundle *bundle, int32_t step, int32_t buffer)
{
    if (pod_tf_numbers(tf) && step < pod_tf_stages_ring(tf).count - 1) {
        (void)pod_tf_number_next(tf, buffer);
    } else if (pod_tf_numbers(tf)) {
        pod_tf_number_set(tf, buffer, bundle->pieces + piece_of_step(tf, step));
    }
}

void pod_tf_stages_add(pod_tf *tf, const pod_tf_bundle *bundle, int32_t step, int32_t buffer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int32_t piece = piece_of_step(tf, step);
    const int64_t elements = piece_elements(tf, bundle, piece);
    const int32_t came = pod_tf_number(tf, buffer);
    if (step == pod_tf_stages_ring(tf).count - 2) {
        pod_tf_number_set(tf, buffer, bundle->pieces + piece);
    } else {
        (void)pod_tf_number_next(tf, buffer);
    }
    pod_number add = pod_tf_number_begin(POD_NUMBER_ADD);
    add.in[0] = pod_tf_number_matrix(tf, came, 0, elements, 1);
    add.in[1] = own_piece(tf, bundle, piece);
    add.out[0] = pod_tf_number_matrix(tf, pod_tf_number(tf, buffer), 0, elements, 1);
    pod_tf_number_compute(tf, &add);
}

void pod_tf_stages_end(pod_tf *tf, const pod_tf_bundle *bundle)
{
    if (!pod_tf_numbers(tf) || bundle->pieces == NONE) {
        return;
    }
    const int32_t to = pod_tf_number_next(tf, bundle->gradient);
    for (int32_t i = 0; i < pod_tf_stages_ring(tf).count; i++) {
        const int64_t elements = piece_elements(tf, bundle, i);
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = pod_tf_number_matrix(tf, bundle->pieces + i, 0, elements, 1);
        copy.out[0] = pod_tf_number_matrix(tf, to, i * tf->program->buffers[bundle->pieces].rows,
                                           elements, 1);
        if (elements > 0) {
            pod_tf_number_compute(tf, &copy);
        }
    }
}
