/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/place_chip.h"

pod_place_chip pod_place_chip_of(const pod_place_check *check, int32_t chip)
{
    pod_place_chip place = {.check = check, .chip = chip};
    for (int axis = 0; axis < POD_MESH_AXES; axis++) {
        const bool there = check->work->layout.size[axis] > 1;
        const pod_axis_list list = {.count = there, .axis = {(pod_mesh_axis)axis}};
        place.coordinate[axis] = pod_work_layout_piece(&check->work->layout, &list, chip);
    }
    return place;
}

/** Whether a list has an axis. */
static bool has_axis(const pod_axis_list *list, pod_mesh_axis axis)
{
    for (int i = 0; i < list->count; i++) {
        if (list->axis[i] == axis) {
            return true;
        }
    }
    return false;
}

int64_t pod_place_piece(const pod_place_chip *place, const pod_axis_list *cut)
{
    const pod_work_layout *layout = &place->check->work->layout;
    int64_t piece = 0;
    for (int l = 0; l < layout->mesh->naxes; l++) {
        const pod_mesh_axis axis = layout->mesh->axis[l].axis;
        if (has_axis(cut, axis) && layout->size[axis] > 1) {
            piece = piece * layout->size[axis] + place->coordinate[axis];
        }
    }
    return piece;
}

pod_place_chip pod_place_with_piece(const pod_place_chip *place, const pod_axis_list *cut,
                                    int64_t piece)
{
    const pod_work_layout *layout = &place->check->work->layout;
    pod_place_chip other = *place;
    for (int l = layout->mesh->naxes - 1; l >= 0; l--) {
        const pod_mesh_axis axis = layout->mesh->axis[l].axis;
        if (has_axis(cut, axis) && layout->size[axis] > 1) {
            other.coordinate[axis] = (int32_t)(piece % layout->size[axis]);
            piece /= layout->size[axis];
        }
    }
    return other;
}

/* ---- tokens ---- */

/** Axes that cut sequences. */
static pod_axis_list batch_axes(const pod_place_check *check)
{
    const pod_axis_list *rows = &check->work->layout.rows;
    pod_axis_list batch = {0};
    for (int i = 0; i < rows->count; i++) {
        if (rows->axis[i] != POD_MESH_SEQUENCE) {
            batch.axis[batch.count++] = rows->axis[i];
        }
    }
    return batch;
}

/** First token of a chip's microbatch; its tokens follow each other. */
static int64_t first_token(const pod_place_chip *place, int32_t microbatch)
{
    const pod_step_request *request = place->check->request;
    const pod_axis_list batch = batch_axes(place->check);
    const int64_t pieces = pod_work_layout_pieces(&place->check->work->layout, &batch);
    const int64_t sequences = request->batch / pieces;
    return (pod_place_piece(place, &batch) * sequences
            + sequences / request->microbatches * microbatch)
           * request->seq;
}

/** Tokens of a sequence of `seq` that are in the chip's front piece: chips of sequence have a front and a back piece
 *  each, unless that isn't asked for or a piece is one token. */
static int64_t front_of(const pod_place_chip *place, int64_t seq)
{
    const int64_t chips = place->check->work->layout.size[POD_MESH_SEQUENCE];
    const int64_t half = seq / chips / 2;
    return chips == 1 || place->check->request->settings.context_unbalanced || half == 0
               ? seq / chips
               : half;
}

/** Where the chip's token `t` of a sequence of `seq` is in it. */
static int64_t place_in(const pod_place_chip *place, int64_t seq, int64_t t)
{
    const int64_t chip = place->coordinate[POD_MESH_SEQUENCE];
    const int64_t tokens = seq / place->check->work->layout.size[POD_MESH_SEQUENCE];
    const int64_t front = front_of(place, seq);
    return t < front ? chip * front + t : seq - (chip + 1) * (tokens - front) + t - front;
}

int64_t pod_place_position_of(const pod_place_chip *place, int64_t t)
{
    return place_in(place, place->check->request->seq, t);
}

int64_t pod_place_position(const pod_place_check *check, int32_t chip, int32_t piece, int64_t t)
{
    pod_place_chip place = pod_place_chip_of(check, chip);
    if (piece >= 0) {
        place.coordinate[POD_MESH_SEQUENCE] = piece;
    }
    return pod_place_position_of(&place, t);
}

int64_t pod_place_token(const pod_place_chip *place, int32_t microbatch, int64_t row)
{
    const pod_step_request *request = place->check->request;
    const int64_t each = request->seq / place->check->work->layout.size[POD_MESH_SEQUENCE];
    return first_token(place, microbatch) + row / each * request->seq
           + pod_place_position_of(place, row % each);
}

pod_place_head_row pod_place_head_row_of(const pod_place_chip *place, int32_t microbatch,
                                         int64_t row)
{
    const pod_step_request *request = place->check->request;
    const int64_t chips = place->check->work->layout.size[POD_MESH_SEQUENCE];
    const int64_t masked = request->model->masked;
    const int64_t read = masked > 0 ? masked : request->seq;
    const int64_t each = read / chips;
    const int64_t first = first_token(place, microbatch) + row / each * request->seq;
    const int64_t number = place_in(place, read, row % each);
    const int64_t position = pod_transformer_head_position(
        request->model, place->check->seed, request->seq, first / request->seq, number);
    const int64_t front = front_of(place, request->seq);
    const bool in_front = row % each < front_of(place, read);
    return (pod_place_head_row){
        .token = first + position,
        .row = row / each * (request->seq / chips)
               + (in_front ? position - pod_place_position_of(place, 0)
                           : front + position - pod_place_position_of(place, front)),
        .of = first / request->seq * read + number};
}

int64_t pod_place_share(const pod_place_chip *place, const pod_axis_list *axes, int64_t size,
                        int64_t *first)
{
    const int64_t share = size / pod_work_layout_pieces(&place->check->work->layout, axes);
    *first = share * pod_place_piece(place, axes);
    return share;
}

int64_t pod_place_tensor_share(const pod_place_chip *place, int64_t size, int64_t *first)
{
    return pod_place_share(place, &place->check->work->layout.tensor, size, first);
}
