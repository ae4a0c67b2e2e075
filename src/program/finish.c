/* SPDX-License-Identifier: Apache-2.0 */
/* What every program must obey: deps point backwards, shapes fit, messages pair up. */
#include "program/numbers.h"

#include <stdlib.h>

/* The op under check. */
typedef struct op_check {
    const pod_programs *programs;
    const pod_program *program;
    int32_t number;
    pod_error *err;
} op_check;

static pod_status op_fail(const op_check *check, const char *what)
{
    return pod_fail(check->err, POD_E_INTERNAL, "op %d (%s, layer %d) of stage %d: %s",
                    (int)check->number, check->program->ops[check->number].name,
                    (int)check->program->ops[check->number].layer, (int)check->program->stage,
                    what);
}

static const pod_buffer *buffer_at(const op_check *check, int32_t index)
{
    return index == POD_OP_NONE ? NULL : &check->program->buffers[index];
}

static bool index_fits(int32_t index, int32_t count)
{
    return index == POD_OP_NONE || (index >= 0 && index < count);
}

static pod_status references_check(const op_check *check, const pod_op *op)
{
    for (int32_t i = 0; i < op->ndeps; i++) {
        const int32_t dep = check->program->deps[op->first_dep + i];
        if (dep < 0 || dep >= check->number) {
            return op_fail(check, "depends on an op that does not come before it");
        }
    }
    for (int i = 0; i < POD_OP_INPUTS_MAX; i++) {
        if (!index_fits(op->in[i], check->program->nbuffers)) {
            return op_fail(check, "reads a buffer that does not exist");
        }
    }
    for (int i = 0; i < POD_OP_TOUCHES_MAX; i++) {
        if (!index_fits(op->touch[i], check->program->nbuffers)) {
            return op_fail(check, "needs a buffer that does not exist");
        }
    }
    if (!index_fits(op->out, check->program->nbuffers)) {
        return op_fail(check, "writes a buffer that does not exist");
    }
    const bool wants_group = pod_op_is_collective(op);
    if (wants_group && (op->group < 0 || op->group >= check->programs->ngroups)) {
        return op_fail(check, "works on a group that does not exist");
    }
    if (!index_fits(op->algorithm, check->programs->nalgorithms)) {
        return op_fail(check, "runs an algorithm that does not exist");
    }
    if (!index_fits(op->sources, check->programs->npermutes)) {
        return op_fail(check, "permutes by a list that does not exist");
    }
    return POD_OK;
}

static bool shape_is(const pod_buffer *buffer, int64_t rows, int64_t columns)
{
    return buffer == NULL || (buffer->rows == rows && buffer->columns == columns);
}

/** With a capacity: otherwise rows are copied. */
static bool moves_rows(const pod_number *n)
{
    return n->sequences > 0
           && (n->function == POD_NUMBER_SEND || n->function == POD_NUMBER_RETURN
               || n->function == POD_NUMBER_RETURN_BACK);
}

/** Rows of experts and their tokens, sequence by sequence, as a product with a matrix of zeros and ones. */
static double rows_product(const pod_number *n)
{
    const pod_number_view *rows = n->function == POD_NUMBER_RETURN ? &n->in[1] : &n->out[0];
    return (double)rows->rows * (double)(n->in[0].rows / n->sequences) * (double)rows->columns;
}

/** The multiply-adds of all products that an op computes are those that it costs. */
static pod_status products_check(const op_check *check, const pod_op *op)
{
    double products = 0;
    for (int32_t i = op->numbers; i != POD_OP_NONE; i = check->program->numbers[i].next) {
        const pod_number *n = &check->program->numbers[i];
        if ((n->function == POD_NUMBER_PRODUCT || n->function == POD_NUMBER_GROUPS)
            && !n->untimed) {
            const int64_t depth = n->transpose_a ? n->in[0].rows : n->in[0].columns;
            products += (double)n->out[0].rows * (double)depth * (double)n->out[0].columns;
        } else if (moves_rows(n)) {
            products += rows_product(n);
        } else if ((n->function == POD_NUMBER_PICK || n->function == POD_NUMBER_PICK_BACK)
                   && !n->untimed) { /* with a matrix of zeros and ones */
            const pod_number_view *rows = &n->in[n->function == POD_NUMBER_PICK ? 0 : 1];
            const pod_number_view *table = n->function == POD_NUMBER_PICK ? &n->in[1] : &n->out[0];
            products += (double)rows->rows * (double)table->rows * (double)table->columns;
        }
    }
    const double said = (double)op->m * (double)op->k * (double)op->n * (double)op->count;
    return products == said ? POD_OK : op_fail(check, "its products differ from its matmul");
}

static pod_status check_matmul(const op_check *check, const pod_op *op)
{
    if (op->numbers != POD_OP_NONE) {
        return products_check(check, op);
    }
    const pod_buffer *a = buffer_at(check, op->in[0]);
    const pod_buffer *b = buffer_at(check, op->in[1]);
    const bool fits = (op->transpose_a ? shape_is(a, op->k, op->m) : shape_is(a, op->m, op->k))
                      && (op->transpose_b ? shape_is(b, op->n, op->k) : shape_is(b, op->k, op->n))
                      && shape_is(buffer_at(check, op->out), op->m, op->n);
    if (!fits) {
        return op_fail(check, "sizes of the matmul differ from its buffers");
    }
    if (op->in[0] != POD_OP_NONE && (op->out == op->in[0] || op->out == op->in[1])) {
        return op_fail(check, "a matmul can't work in place");
    }
    return POD_OK;
}

static pod_status check_conv(const op_check *check, const pod_op *op)
{
    if (op->numbers != POD_OP_NONE) {
        return products_check(check, op);
    }
    const pod_conv_shape *s = &op->conv->shape;
    const int32_t arrays[3][3] = {
        {op->in[0], op->in[1], op->out  }, /* X, F, Y of forward */
        {op->out,   op->in[1], op->in[0]}, /* input */
        {op->in[0], op->out,   op->in[1]}, /* weights */
    };
    const int32_t *of = arrays[op->conv->op];
    const int64_t lines = s->n * pod_conv_out(s->h, s->stride);
    const bool fits =
        shape_is(buffer_at(check, of[0]), s->n * s->h * s->w, s->cin)
        && shape_is(buffer_at(check, of[1]), s->kh * s->kw * s->cin, s->cout)
        && shape_is(buffer_at(check, of[2]), lines * pod_conv_out(s->w, s->stride), s->cout);
    return fits ? POD_OK : op_fail(check, "sizes of the convolution differ from its buffers");
}

static pod_status check_vector(const op_check *check, const pod_op *op)
{
    const pod_buffer *out = buffer_at(check, op->out);
    for (int i = 0; i < POD_OP_INPUTS_MAX && out != NULL; i++) {
        if (!shape_is(buffer_at(check, op->in[i]), out->rows, out->columns)) {
            return op_fail(check, "an input has another shape than the result");
        }
    }
    return POD_OK;
}

/** True if `part` is one of n pieces of `whole` along `dim`. */
static bool is_piece(const pod_buffer *part, const pod_buffer *whole, int dim, int64_t n)
{
    return dim == 0 ? part->rows * n == whole->rows && part->columns == whole->columns
                    : part->rows == whole->rows && part->columns * n == whole->columns;
}

static pod_status check_collective(const op_check *check, const pod_op *op)
{
    const pod_program_group *group = &check->programs->groups[op->group];
    const pod_buffer *in = buffer_at(check, op->in[0]);
    const pod_buffer *out = buffer_at(check, op->out);
    if (in == NULL || out == NULL) {
        return POD_OK; /* timing only: sizes are the op's own */
    }
    const int64_t n = group->group.size;
    const pod_buffer *full = op->op == POD_ALL_GATHER ? out : in;
    const int64_t padded = in->use == POD_BUFFER_NUMBERS ? n * pod_dtype_size(op->dtype) : 1;
    const int64_t beyond = op->bytes - pod_buffer_bytes(full);
    bool fits = in->dtype == op->dtype && out->dtype == op->dtype && beyond >= 0 && beyond < padded;
    if (op->op == POD_ALL_GATHER) {
        fits = fits && is_piece(in, out, op->dim, n);
    } else if (op->op == POD_REDUCE_SCATTER) {
        fits = fits && is_piece(out, in, op->dim, n);
    } else if (op->op == POD_ALL_TO_ALL) {
        const int64_t pieces[2] = {op->dim == 0 ? n : 1, op->dim == 1 ? n : 1};
        const int64_t joined[2] = {op->dim_out == 0 ? n : 1, op->dim_out == 1 ? n : 1};
        fits = fits && out->rows == in->rows / pieces[0] * joined[0]
               && out->columns == in->columns / pieces[1] * joined[1] && in->rows % pieces[0] == 0
               && in->columns % pieces[1] == 0;
    } else {
        fits = fits && shape_is(in, out->rows, out->columns);
    }
    if (!fits) {
        return op_fail(check, "sizes or dtype of the collective differ from its buffers");
    }
    if (op->in[0] == op->out && op->op != POD_ALL_REDUCE) {
        return op_fail(check, "only all-reduces work in place");
    }
    return POD_OK;
}

static pod_status check_message(const op_check *check, const pod_op *op)
{
    const pod_buffer *buffer = buffer_at(check, pod_op_sends(op) ? op->in[0] : op->out);
    if (buffer != NULL && pod_buffer_bytes(buffer) != op->bytes) {
        return op_fail(check, "bytes of the message differ from its buffer");
    }
    if (op->to_stage < 0 || op->to_stage >= check->programs->nstages
        || op->to_stage == check->program->stage) {
        return op_fail(check, "the other stage does not exist");
    }
    return POD_OK;
}

static pod_status check_work(const op_check *check, const pod_op *op)
{
    if (op->start_ps < 0 || op->unit_ps < 0 || op->hbm_bytes < 0) {
        return op_fail(check, "takes less than no time");
    }
    if (op->lane < 0 || op->lane >= POD_PROGRAM_LANES) {
        return op_fail(check, "copies on a lane that does not exist");
    }
    return POD_OK;
}

#define check_none NULL

static pod_status op_check_shapes(const op_check *check, const pod_op *op)
{
#define KIND_CHECK(kind, name, resource, pace, unit, time, flops, check, exec)                     \
    [kind] = check_##check,
    static pod_status (*const fits[])(const op_check *,
                                      const pod_op *) = {POD_OP_KIND_LIST(KIND_CHECK)};
#undef KIND_CHECK
    return fits[op->kind] != NULL ? fits[op->kind](check, op) : POD_OK;
}

pod_status pod_program_finish(const pod_programs *programs, const pod_program *program,
                              pod_error *err)
{
    if (program->out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a program of %d ops",
                        (int)program->nops);
    }
    for (int32_t i = 0; i < program->nops; i++) {
        const op_check check = {.programs = programs, .program = program, .number = i, .err = err};
        pod_status st = references_check(&check, &program->ops[i]);
        POD_THEN(st, op_check_shapes(&check, &program->ops[i]));
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

/** Sends and receives of a stage, so that partners are looked for among these alone. */
typedef struct message_list {
    int32_t *op;
    int32_t count;
} message_list;

static bool messages_list(const pod_program *program, message_list *list)
{
    *list = (message_list){.count = 0};
    for (int pass = 0; pass < 2; pass++) {
        list->count = 0;
        for (int32_t i = 0; i < program->nops; i++) {
            if (!pod_op_sends(&program->ops[i]) && !pod_op_receives(&program->ops[i])) {
                continue;
            }
            if (list->op != NULL) {
                list->op[list->count] = i;
            }
            list->count++;
        }
        if (list->op == NULL) {
            list->op = calloc((size_t)list->count + 1, sizeof *list->op);
        }
        if (list->op == NULL) {
            return false;
        }
    }
    return true;
}

/** Ops of `program` with this message to or from a stage; *bytes of the last. */
static int messages_count(const pod_program *program, const message_list *list, bool sends,
                          int32_t stage, int32_t message, int64_t *bytes)
{
    int count = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const pod_op *op = &program->ops[list->op[i]];
        if (pod_op_sends(op) == sends && op->to_stage == stage && op->message == message) {
            *bytes = op->bytes;
            count++;
        }
    }
    return count;
}

/** Check that the op under check, a message of stage `stage`, has one partner. */
static pod_status messages_pair(const op_check *check, const message_list *lists, int32_t stage)
{
    const pod_op *op = &check->program->ops[check->number];
    const bool sends = pod_op_sends(op);
    const pod_program *other = &check->programs->stages[op->to_stage];
    int64_t own_bytes = 0;
    int64_t bytes = 0;
    const int own =
        messages_count(check->program, &lists[stage], sends, op->to_stage, op->message, &own_bytes);
    const int theirs = messages_count(other, &lists[op->to_stage], !sends, check->program->stage,
                                      op->message, &bytes);
    if (own != 1 || theirs != 1 || bytes != op->bytes) {
        return op_fail(check, "its message has no partner, several, or one of another size");
    }
    return POD_OK;
}

pod_status pod_programs_finish(const pod_programs *programs, pod_error *err)
{
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_status st = pod_program_finish(programs, &programs->stages[s], err);
        if (st != POD_OK) {
            return st;
        }
    }
    message_list *lists = calloc((size_t)programs->nstages + 1, sizeof *lists);
    bool ok = lists != NULL;
    for (int32_t s = 0; ok && s < programs->nstages; s++) {
        ok = messages_list(&programs->stages[s], &lists[s]);
    }
    pod_status st = ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for a program");
    for (int32_t s = 0; st == POD_OK && s < programs->nstages; s++) {
        for (int32_t i = 0; st == POD_OK && i < lists[s].count; i++) {
            const op_check check = {.programs = programs,
                                    .program = &programs->stages[s],
                                    .number = lists[s].op[i],
                                    .err = err};
            st = messages_pair(&check, lists, s);
        }
    }
    for (int32_t s = 0; lists != NULL && s < programs->nstages; s++) {
        free(lists[s].op);
    }
    free(lists);
    return st;
}
