/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/circular.h"

#include "program/program.h"

/* ---- messages ---- */

/** What a message carries; with its number it is the only one of its stages. */
typedef enum message_kind { FORWARD, BACKWARD, ROWS, OUTPUT, DERIVATIVE, ROWS_BACK } message_kind;

static int32_t passes_of(const pod_stage *stage)
{
    return stage->visits.repeats * stage->request->microbatches;
}

/** @param number  of the sender's pass, or of the stage at one end */
static int32_t message_of(const pod_stage *stage, message_kind kind, int32_t number)
{
    const int32_t passes = passes_of(stage);
    const int32_t place = (int32_t)kind;
    return kind <= BACKWARD ? place * passes + number
                            : 2 * passes + (place - (int32_t)ROWS) * stage->count + number;
}

int32_t pod_circular_messages(const pod_stage *stage)
{
    return message_of(stage, ROWS_BACK, stage->count);
}

static int32_t last_of(const pod_stage *stage)
{
    return stage->count - 1;
}

static pod_array rows_receive(pod_stage *stage, const char *name, bool backward, int32_t from,
                              int32_t message)
{
    const pod_array empty = stage->ops->entry(stage, backward);
    return pod_build_recv(&stage->build, name, &empty, from, message);
}

/* ---- rows of a stage's share, and of microbatches ---- */

int32_t pod_circular_share(const pod_stage *stage)
{
    return stage->request->microbatches / stage->count;
}

int32_t pod_circular_first(const pod_stage *stage)
{
    return stage->number * pod_circular_share(stage);
}

/** See pod_stage_ops.rows. */
static void rows_are(pod_stage *stage, int32_t op, const pod_array *whole, const pod_array *part,
                     int32_t i, bool join)
{
    if (stage->ops->rows != NULL) {
        stage->ops->rows(stage, op, whole, part, i, join);
    }
}

static void turn_outside(pod_stage *stage, bool outside)
{
    stage->outside = outside;
    stage->part = 0;
    stage->ops->resize(stage, outside ? pod_circular_share(stage) : 1);
}

/** Rows that are there, without a copy, from op `made` on, all of them when `done` is over: a share out of
 *  microbatches, or one of these. */
static pod_array view(pod_stage *stage, bool backward, int32_t made, int32_t done)
{
    pod_array array = stage->ops->entry(stage, backward);
    array.op = done;
    if (stage->build.st == POD_OK) {
        stage->build.program->buffers[array.buffer].made = made;
    }
    return array;
}

static void split(pod_stage *stage, bool backward, const pod_array *share, pod_array *parts)
{
    stage->ops->resize(stage, 1);
    for (int32_t i = 0; i < pod_circular_share(stage); i++) {
        parts[i] = view(stage, backward, share->op, share->op);
        rows_are(stage, POD_OP_NONE, share, &parts[i], i, false);
    }
    stage->ops->resize(stage, pod_circular_share(stage));
}

/** Each stage's share goes to `to`, which takes all microbatches. @param parts  parts[microbatch] of that stage */
static void gather(pod_stage *stage, bool backward, message_kind kind, const char *name, int32_t to,
                   const pod_array *share, pod_array *parts)
{
    if (stage->number != to) {
        const pod_array rows = view(stage, backward, share->op, share->op);
        rows_are(stage, POD_OP_NONE, share, &rows, -1, false);
        const int32_t op =
            pod_build_send(&stage->build, name, &rows, to, message_of(stage, kind, stage->number));
        rows_are(stage, op, share, &rows, -1, false);
        return;
    }
    for (int32_t s = 0; s < stage->count; s++) {
        const pod_array rows =
            s == stage->number ? *share
                               : rows_receive(stage, name, backward, s, message_of(stage, kind, s));
        split(stage, backward, &rows, &parts[s * pod_circular_share(stage)]);
    }
}

/** And back. @return this stage's share */
static pod_array scatter(pod_stage *stage, bool backward, message_kind kind, const char *name,
                         int32_t from, const pod_array *parts)
{
    if (stage->number != from) {
        return rows_receive(stage, name, backward, from, message_of(stage, kind, stage->number));
    }
    const int32_t done = parts[backward ? 0 : stage->request->microbatches - 1].op;
    pod_array own = {.buffer = POD_OP_NONE, .op = POD_OP_NONE};
    for (int32_t s = 0; s < stage->count; s++) {
        const int32_t first =
            backward ? (s + 1) * pod_circular_share(stage) - 1 : s * pod_circular_share(stage);
        const pod_array rows = view(stage, backward, parts[first].op, done);
        int32_t op = POD_OP_NONE;
        if (s == stage->number) {
            own = rows;
        } else {
            op = pod_build_send(&stage->build, name, &rows, s, message_of(stage, kind, s));
        }
        for (int32_t i = 0; i < pod_circular_share(stage); i++) {
            rows_are(stage, op, &rows, &parts[s * pod_circular_share(stage) + i], i, true);
        }
    }
    return own;
}

/* ---- passes ---- */

/** Outputs of a direction on their way to the next stage. */
typedef struct forwarding {
    bool backward;
    int32_t passed;
    bool held;
    int32_t pass;     /**< the one that is held */
    pod_array output; /**< and what it gives */
} forwarding;

static void output_send(pod_stage *stage, bool backward, const pod_array *output, int32_t pass)
{
    const int32_t n = stage->count;
    const int32_t to = (stage->number + (backward ? n - 1 : 1)) % n;
    stage->sent = pod_build_send(&stage->build, backward ? "bwd.send" : "fwd.send", output, to,
                                 message_of(stage, backward ? BACKWARD : FORWARD, pass));
}

/** Delayed, the stage after this one begins when two passes are done: then all others come in time. */
static void forward_on(pod_stage *stage, forwarding *way, const pod_array *output, int32_t pass)
{
    const bool wraps = stage->number == (way->backward ? 0 : last_of(stage));
    if (stage->request->settings.circular.delayed && way->passed++ == 0 && !wraps) {
        *way = (forwarding){.backward = way->backward,
                            .passed = way->passed,
                            .held = true,
                            .pass = pass,
                            .output = *output};
        return;
    }
    if (way->held) {
        way->held = false;
        way->output.op = output->op;
        output_send(stage, way->backward, &way->output, way->pass);
    }
    output_send(stage, way->backward, output, pass);
}

static void pass_choose(pod_stage *stage, int32_t pass)
{
    stage->visit = pass / stage->request->microbatches;
    stage->part = pass % stage->request->microbatches;
}

/** Passes and messages take turns, unless forwarding is delayed. */
static void pass_begin(pod_stage *stage, int32_t pass)
{
    pass_choose(stage, pass);
    if (!stage->request->settings.circular.delayed) {
        stage->ops->wait(stage, stage->sent);
    }
}

static int32_t layer_of_visit(const pod_stage *stage, int32_t l)
{
    return pod_stage_layer(stage, stage->visit * stage->visits.layers + l);
}

static void pass_forward(pod_stage *stage, forwarding *way, int32_t pass)
{
    const bool first = stage->number == 0;
    const bool last = stage->number == last_of(stage);
    pass_begin(stage, pass);
    const int32_t sent = first ? pass - stage->request->microbatches : pass;
    pod_array x = sent < 0 ? stage->starts[stage->part]
                           : rows_receive(stage, "fwd.recv", false,
                                          first ? last_of(stage) : stage->number - 1,
                                          message_of(stage, FORWARD, sent));
    for (int32_t l = 0; l < stage->visits.layers; l++) {
        x = stage->ops->forward(stage, layer_of_visit(stage, l), &x);
    }
    if (last && stage->visit == stage->visits.repeats - 1) {
        stage->ends[stage->part] = x;
    } else {
        forward_on(stage, way, &x, pass);
    }
}

static void pass_backward(pod_stage *stage, forwarding *way, int32_t pass)
{
    const bool first = stage->number == 0;
    const bool last = stage->number == last_of(stage);
    pass_begin(stage, pass);
    if (stage->ops->prepare != NULL) {
        stage->ops->prepare(stage, layer_of_visit(stage, stage->visits.layers - 1));
    }
    const int32_t sent = last ? pass + stage->request->microbatches : pass;
    pod_array dy = sent >= passes_of(stage)
                       ? stage->ends[stage->part]
                       : rows_receive(stage, "bwd.recv", true, last ? 0 : stage->number + 1,
                                      message_of(stage, BACKWARD, sent));
    for (int32_t l = stage->visits.layers - 1; l >= 0; l--) {
        dy = stage->ops->backward(stage, layer_of_visit(stage, l), &dy);
    }
    if (first && stage->visit == 0) {
        stage->starts[stage->part] = dy;
    } else {
        forward_on(stage, way, &dy, pass);
    }
}

/* ---- a stage ---- */

static void declare_forward(pod_stage *stage)
{
    if (stage->ops->declare_input != NULL) {
        stage->ops->declare_input(stage);
    }
    for (int32_t l = 0; l < stage->visits.outer; l++) {
        stage->ops->declare(stage, l, false);
    }
    for (int32_t pass = 0; pass < passes_of(stage); pass++) {
        pass_choose(stage, pass);
        for (int32_t l = 0; l < stage->visits.layers; l++) {
            stage->ops->declare(stage, layer_of_visit(stage, l), false);
        }
    }
    if (stage->ops->declare_output != NULL) {
        stage->ops->declare_output(stage);
    }
}

static void declare_backward(pod_stage *stage)
{
    for (int32_t pass = passes_of(stage) - 1; pass >= 0; pass--) {
        pass_choose(stage, pass);
        for (int32_t l = stage->visits.layers - 1; l >= 0; l--) {
            stage->ops->declare(stage, layer_of_visit(stage, l), true);
        }
    }
    for (int32_t l = stage->visits.outer - 1; l >= 0; l--) {
        stage->ops->declare(stage, l, true);
    }
}

/** @return the derivative by the output of this stage's share when training */
static pod_array forward(pod_stage *stage)
{
    forwarding way = {.backward = false};
    stage->sent = POD_OP_NONE;
    turn_outside(stage, true);
    pod_array x = stage->ops->input(stage);
    for (int32_t l = 0; l < stage->visits.outer; l++) {
        x = stage->ops->forward(stage, l, &x);
    }
    gather(stage, false, ROWS, "fwd.rows", 0, &x, stage->starts);
    turn_outside(stage, false);
    for (int32_t pass = 0; pass < passes_of(stage); pass++) {
        pass_forward(stage, &way, pass);
    }
    turn_outside(stage, true);
    x = scatter(stage, false, OUTPUT, "fwd.output", last_of(stage), stage->ends);
    return stage->ops->output(stage, &x);
}

static void backward(pod_stage *stage, const pod_array *derivative)
{
    forwarding way = {.backward = true};
    stage->sent = POD_OP_NONE;
    gather(stage, true, DERIVATIVE, "bwd.output", last_of(stage), derivative, stage->ends);
    turn_outside(stage, false);
    for (int32_t pass = passes_of(stage) - 1; pass >= 0; pass--) {
        pass_backward(stage, &way, pass);
    }
    turn_outside(stage, true);
    pod_array dx = scatter(stage, true, ROWS_BACK, "bwd.rows", 0, stage->starts);
    for (int32_t l = stage->visits.outer - 1; l >= 0; l--) {
        dx = stage->ops->backward(stage, l, &dx);
    }
    stage->ops->finish(stage, &dx);
}

void pod_circular_build(pod_stage *stage)
{
    const bool train = stage->request->mode == POD_STEP_TRAIN;
    declare_forward(stage);
    if (train) {
        declare_backward(stage);
    }
    const pod_array derivative = forward(stage);
    if (train) {
        backward(stage, &derivative);
    }
}
