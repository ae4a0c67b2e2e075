/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_inject.h"

#include "base/rng.h"
#include "experiment/step_infer.h"
#include "program/numbers.h"

#include <stdlib.h>
#include <string.h>

const char *pod_injected_name(pod_injected_fault fault)
{
#define FAULT_NAME(id, name) [id] = name,
    static const char *const names[] = {POD_INJECTED_LIST(FAULT_NAME)};
#undef FAULT_NAME
    return names[fault];
}

/** What a gather gave in the first step. */
typedef struct gathers {
    char **data; /**< data[chip]; NULL: it has no such op, or is on another rank */
} gathers;

/** A fault at an op. */
typedef struct site {
    const pod_programs *programs;
    const pod_experiment_step_case *run_case;
    pod_injected_fault fault;
    int32_t stage;
    int32_t op;
    int32_t number; /* of the program, POD_OP_NONE: the fault is in what travels */
    int32_t group;  /* that takes the place of the op's */
    int32_t chip;   /* of a stale shard */
    gathers *kept;  /* of a stale gather */
} site;

static const pod_op *site_op(const site *s)
{
    return &s->programs->stages[s->stage].ops[s->op];
}

/* ---- what travels ---- */

/** Blocks of a matrix along rows (dim 0) or columns. */
typedef struct blocks {
    char *data;
    int dim;
    int64_t n;
    int64_t rows;
    size_t row_bytes;
} blocks;

static void block_copy(const blocks *b, int64_t block, char *plain, bool to_plain)
{
    const int64_t rows = b->dim == 0 ? b->rows / b->n : b->rows;
    const size_t size = b->dim == 0 ? b->row_bytes : b->row_bytes / (size_t)b->n;
    for (int64_t r = 0; r < rows; r++) {
        char *at = b->dim == 0 ? b->data + (size_t)(block * rows + r) * b->row_bytes
                               : b->data + (size_t)r * b->row_bytes + (size_t)block * size;
        char *with = plain + (size_t)r * size;
        memcpy(to_plain ? with : at, to_plain ? at : with, size);
    }
}

/** The last `count` of the first blocks come to the front. Without memory nothing moves. */
static void blocks_turn(const blocks *b, int64_t count)
{
    const size_t bytes = (size_t)b->rows * b->row_bytes / (size_t)b->n + 1;
    char *plain = malloc((size_t)count * bytes);
    for (int64_t i = 0; plain != NULL && i < count; i++) {
        block_copy(b, i, plain + (size_t)i * bytes, true);
    }
    for (int64_t i = 0; plain != NULL && i < count; i++) {
        block_copy(b, (i + 1) % count, plain + (size_t)i * bytes, false);
    }
    free(plain);
}

static bool is_sum(const pod_op *op)
{
    return op->op == POD_ALL_REDUCE || op->op == POD_REDUCE_SCATTER;
}

/** Whether blocks are those of what is sent, or of what comes. */
static bool moves_before(const pod_op *op)
{
    return !pod_op_is_collective(op) || is_sum(op) || op->op == POD_ALL_TO_ALL;
}

static blocks site_blocks(const site *s, const pod_buffer *buffer, void *data)
{
    const pod_op *op = site_op(s);
    const bool collective = pod_op_is_collective(op);
    const int64_t n = collective ? s->programs->groups[op->group].group.size : 2;
    blocks b = {.data = data,
                .dim = collective ? op->dim : 0,
                .n = s->fault == POD_INJECTED_PERMUTE && !collective ? buffer->rows : n,
                .rows = buffer->rows,
                .row_bytes = (size_t)pod_buffer_bytes(buffer) / (size_t)buffer->rows};
    if (b.dim == 0 && b.rows % b.n != 0) { /* as one vector */
        b.row_bytes = (size_t)pod_dtype_size(buffer->dtype);
        b.rows = pod_buffer_bytes(buffer) / pod_dtype_size(buffer->dtype) / b.n * b.n;
    }
    return b;
}

/** One chip of each group: the second along its axes; of messages all. */
static bool is_chosen(const site *s, int32_t chip)
{
    const pod_op *op = site_op(s);
    if (!pod_op_is_collective(op)) {
        return true;
    }
    const pod_program_group *group = &s->programs->groups[op->group];
    return group->position_of_rank[pod_group_rank(&group->group, chip)] == 1;
}

static void site_tamper(const void *context, int32_t chip, const pod_program *program, int32_t op,
                        bool arrived, void *data)
{
    const site *s = context;
    const pod_op *what = &program->ops[op];
    if (program->stage != s->stage || op != s->op) {
        return;
    }
    const pod_buffer *buffer = &program->buffers[arrived ? what->out : what->in[0]];
    const size_t bytes = (size_t)pod_buffer_bytes(buffer);
    if (s->fault == POD_INJECTED_DROP && !arrived && is_chosen(s, chip)) {
        memset(data, 0, bytes);
    } else if (s->fault == POD_INJECTED_DOUBLE && !arrived && is_chosen(s, chip)) {
        pod_dtype_add(buffer->dtype, data, data, buffer->rows * buffer->columns);
    } else if ((s->fault == POD_INJECTED_PERMUTE || s->fault == POD_INJECTED_SWAP)
               && arrived != moves_before(what)) {
        const blocks b = site_blocks(s, buffer, data);
        blocks_turn(&b, s->fault == POD_INJECTED_SWAP ? 2 : b.n);
    }
}

/* ---- stale weights, in a second step ---- */

static bool in_second(pod_injected_fault fault)
{
    return fault == POD_INJECTED_STALE_SHARD || fault == POD_INJECTED_STALE_GATHER;
}

/** What an op has gathered. @return its bytes; 0: it is another op */
static size_t gathered_bytes(const site *s, const pod_program *program, int32_t op, bool arrived)
{
    return program->stage == s->stage && op == s->op && arrived
               ? (size_t)pod_buffer_bytes(&program->buffers[program->ops[op].out])
               : 0;
}

/** Keep it. Without memory nothing is stale. */
static void gather_keep(const void *context, int32_t chip, const pod_program *program, int32_t op,
                        bool arrived, void *data)
{
    const site *s = context;
    const size_t bytes = gathered_bytes(s, program, op, arrived);
    if (bytes > 0) {
        free(s->kept->data[chip]);
        s->kept->data[chip] = malloc(bytes);
        if (s->kept->data[chip] != NULL) {
            memcpy(s->kept->data[chip], data, bytes);
        }
    }
}

static void gather_put(const void *context, int32_t chip, const pod_program *program, int32_t op,
                       bool arrived, void *data)
{
    const site *s = context;
    const size_t bytes = gathered_bytes(s, program, op, arrived);
    if (bytes > 0 && s->kept->data[chip] != NULL) {
        memcpy(data, s->kept->data[chip], bytes);
    }
}

static bool shard_stale(const void *context, int32_t chip, int32_t stage, int32_t buffer)
{
    const site *s = context;
    const pod_number *update = &s->programs->stages[s->stage].numbers[s->number];
    return chip == s->chip && stage == s->stage && buffer == update->in[0].buffer;
}

/** The last chip of a stage. */
static int32_t last_chip(const site *s)
{
    const int32_t chips = s->run_case->work.layout.mesh->ndevices;
    return s->programs->nstages > 1 ? s->programs->chip_at[chips - s->programs->nstages + s->stage]
                                    : chips - 1;
}

/** Whether numbers are a chip's piece of weights: as stored, rounded, or gathered over some axes. */
static bool are_weights(const site *s, int32_t buffer)
{
    const pod_tensors *tensors = &s->run_case->work.tensors;
    const pod_program *program = &s->programs->stages[s->stage];
    for (int32_t i = 0; i < tensors->nplaces; i++) {
        if (tensors->places[i].stage == s->stage && tensors->places[i].buffer == buffer) {
            return tensors->places[i].role == POD_PLACE_WEIGHTS;
        }
    }
    for (int32_t i = 0; i < program->nnumbers; i++) {
        const pod_number *n = &program->numbers[i];
        if (n->function == POD_NUMBER_COPY && n->out[0].buffer == buffer) {
            return are_weights(s, n->in[0].buffer);
        }
    }
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (pod_op_is_collective(op) && op->op == POD_ALL_GATHER && op->out == buffer) {
            return are_weights(s, program->ops[i].in[0]);
        }
    }
    return false;
}

/* ---- where a fault can be ---- */

/** Another group of as many chips, or POD_OP_NONE. */
static int32_t other_group(const pod_programs *programs, int32_t group)
{
    for (int32_t g = 0; g < programs->ngroups; g++) {
        if (g != group && programs->groups[g].group.size == programs->groups[group].group.size
            && programs->groups[g].group.count == programs->groups[group].group.count
            && pod_program_group_slices(&programs->groups[g])
                   == pod_program_group_slices(&programs->groups[group])) {
            return g;
        }
    }
    return POD_OP_NONE;
}

/** A number of the op that the fault can be in, or POD_OP_NONE. */
static int32_t number_of(const pod_program *program, const pod_op *op, pod_injected_fault fault)
{
    for (int32_t i = op->numbers; i != POD_OP_NONE; i = program->numbers[i].next) {
        const pod_number *n = &program->numbers[i];
        const bool attends =
            n->function == POD_NUMBER_ATTEND || n->function == POD_NUMBER_ATTEND_BACK
            || n->function == POD_NUMBER_ATTEND_PART || n->function == POD_NUMBER_ATTEND_PART_BACK;
        const bool updates = n->function == POD_NUMBER_SGD || n->function == POD_NUMBER_MOMENTUM
                             || n->function == POD_NUMBER_ADAM || n->function == POD_NUMBER_LARS
                             || n->function == POD_NUMBER_LAMB;
        const bool adds = (n->function == POD_NUMBER_ADD && strcmp(op->name, "bwd.add") == 0)
                          || (n->function == POD_NUMBER_PICK_BACK && n->accumulate);
        if (fault == POD_INJECTED_MASK                                         ? attends && !n->all
            : fault == POD_INJECTED_STALE || fault == POD_INJECTED_STALE_SHARD ? updates
            : fault == POD_INJECTED_MICROBATCH                                 ? adds
                                                                               : false) {
            return i;
        }
    }
    return POD_OP_NONE;
}

/** @return whether the fault can be there */
static bool site_make(site *s)
{
    const pod_program *program = &s->programs->stages[s->stage];
    const pod_op *op = site_op(s);
    const bool collective = pod_op_is_collective(op);
    const bool travels = (collective || pod_op_sends(op)) && op->in[0] != POD_OP_NONE;
    s->number = POD_OP_NONE;
    s->group = POD_OP_NONE;
    switch (s->fault) {
    case POD_INJECTED_DROP:
    case POD_INJECTED_PERMUTE:
    case POD_INJECTED_SWAP:
        return travels;
    case POD_INJECTED_DOUBLE:
        return travels && (!collective || is_sum(op));
    case POD_INJECTED_GROUP:
        s->group = travels && collective ? other_group(s->programs, op->group) : POD_OP_NONE;
        return s->group != POD_OP_NONE;
    case POD_INJECTED_MICROBATCH:
        if (s->run_case->request.microbatches == 1) {
            return false;
        }
        /* fall through */
    case POD_INJECTED_MASK:
    case POD_INJECTED_STALE:
    case POD_INJECTED_STALE_SHARD:
        s->number = number_of(program, op, s->fault);
        s->chip = last_chip(s);
        return s->number != POD_OP_NONE;
    case POD_INJECTED_STALE_GATHER:
        return travels && collective && op->op == POD_ALL_GATHER
               && strncmp(op->name, "fwd.", 4) == 0 && are_weights(s, op->in[0]);
    case POD_INJECTED_FAULTS:
        break;
    }
    return false;
}

/* ---- runs ---- */

typedef struct injection {
    pod_experiment *experiment;
    pod_experiment_step_case *run_case;
    const pod_chip_spec *chip;
    pod_experiment_reference reference;
    int64_t digest; /* without a fault */
    bool has_second;
    pod_place_state between; /* what a second step starts from */
    pod_experiment_reference second;
    int64_t second_digest;
} injection;

static bool infers(const pod_experiment_step_case *run_case)
{
    return run_case->request.mode > POD_STEP_FORWARD;
}

/** One step: the second one, if tamper says what it starts from. */
static pod_status run_with(const injection *in, const pod_experiment_tamper *tamper,
                           pod_experiment_step_numbers *numbers, pod_error *err)
{
    const pod_experiment_reference *reference =
        tamper->before != NULL ? &in->second : &in->reference;
    pod_step_result result = {0};
    pod_status st;
    if (infers(in->run_case)) {
        st = pod_experiment_step_infer(in->experiment, in->run_case, in->chip, tamper, NULL,
                                       &result, numbers, err);
    } else {
        st = pod_experiment_step_run_data(in->experiment, in->run_case, in->chip, reference, tamper,
                                          NULL, &result, numbers, err);
    }
    if (st == POD_E_CHECK) { /* of experts that the reference doesn't choose */
        numbers->wrong++;
        pod_error_clear(err);
        st = POD_OK;
    }
    pod_step_result_fini(&result);
    return st;
}

static void number_break(pod_number *number, pod_injected_fault fault)
{
    if (fault == POD_INJECTED_MASK) {
        number->ahead = true;
    } else if (fault == POD_INJECTED_STALE) {
        number->rate = 0;
    } else if (number->function == POD_NUMBER_PICK_BACK) {
        number->accumulate = false;
    } else { /* y + x: only y */
        number->function = POD_NUMBER_COPY;
        number->in[0] = number->in[1];
        number->in[1].buffer = POD_OP_NONE;
    }
}

/** Two steps, the second with stale weights. */
static pod_status stale_run(const injection *in, const site *s,
                            pod_experiment_step_numbers *numbers, pod_error *err)
{
    const int32_t chips = in->run_case->work.layout.mesh->ndevices;
    gathers gathered = {.data = calloc((size_t)chips, sizeof *gathered.data)};
    site at = *s;
    at.kept = &gathered;
    const bool gather = s->fault == POD_INJECTED_STALE_GATHER;
    const pod_experiment_tamper first = {.tamper = gather_keep, .context = &at};
    const pod_experiment_tamper second = {.tamper = gather ? gather_put : NULL,
                                          .stale = gather ? NULL : shard_stale,
                                          .context = &at,
                                          .before = &in->between};
    pod_status st =
        gathered.data != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for faults");
    st = pod_par_agree(in->experiment->par, st, err);
    if (st == POD_OK && gather) {
        st = run_with(in, &first, numbers, err);
    }
    POD_THEN(st, run_with(in, &second, numbers, err));
    for (int32_t chip = 0; gathered.data != NULL && chip < chips; chip++) {
        free(gathered.data[chip]);
    }
    free(gathered.data);
    return st;
}

/** One step with a fault. */
static pod_status broken_run(const injection *in, const site *s,
                             pod_experiment_step_numbers *numbers, pod_error *err)
{
    pod_program *program = &in->run_case->work.programs.stages[s->stage];
    pod_op *op = &program->ops[s->op];
    const pod_op was = *op;
    const pod_number number_was =
        s->number != POD_OP_NONE ? program->numbers[s->number] : (pod_number){0};
    const bool travels = s->number == POD_OP_NONE && s->group == POD_OP_NONE;
    const pod_experiment_tamper tamper = {.tamper = travels ? site_tamper : NULL, .context = s};
    if (s->number != POD_OP_NONE) {
        number_break(&program->numbers[s->number], s->fault);
    }
    op->group = s->group != POD_OP_NONE ? s->group : op->group;
    const pod_status st = run_with(in, &tamper, numbers, err);
    *op = was;
    if (s->number != POD_OP_NONE) {
        program->numbers[s->number] = number_was;
    }
    return st;
}

static pod_status site_run(const injection *in, const site *s, pod_experiment_injected *run,
                           pod_error *err)
{
    const bool second = in_second(s->fault);
    const pod_op *op = site_op(s);
    pod_experiment_step_numbers numbers = {0};
    const pod_status st =
        second ? stale_run(in, s, &numbers, err) : broken_run(in, s, &numbers, err);
    *run = (pod_experiment_injected){.fault = s->fault,
                                     .op = op->name,
                                     .layer = op->layer,
                                     .stage = s->stage,
                                     .changes = numbers.digest
                                                != (second ? in->second_digest : in->digest),
                                     .wrong = numbers.wrong};
    return st;
}

/* ---- which ---- */

/** All sites of a fault, in an order that the seed says. @param name  of the op; NULL: any
 *  @param[out] sites  the caller frees it @return how many; -1 without memory */
static int64_t sites_find(const injection *in, pod_injected_fault fault, const char *name,
                          site **sites)
{
    const pod_programs *programs = &in->run_case->work.programs;
    int64_t count = 0;
    int64_t all = 0;
    for (int32_t stage = 0; stage < programs->nstages; stage++) {
        all += programs->stages[stage].nops;
    }
    *sites = calloc((size_t)all + 1, sizeof **sites);
    for (int32_t stage = 0; *sites != NULL && stage < programs->nstages; stage++) {
        for (int32_t op = 0; op < programs->stages[stage].nops; op++) {
            site s = {.programs = programs,
                      .run_case = in->run_case,
                      .fault = fault,
                      .stage = stage,
                      .op = op};
            if ((name == NULL || strcmp(site_op(&s)->name, name) == 0) && site_make(&s)) {
                (*sites)[count++] = s;
            }
        }
    }
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)pod_rng_below(in->experiment->seed, (uint64_t)fault, (uint64_t)i,
                                                 (uint64_t)i + 1);
        const site kept = (*sites)[i];
        (*sites)[i] = (*sites)[j];
        (*sites)[j] = kept;
    }
    return *sites != NULL ? count : -1;
}

/** @param first  stop at the first one that changes something */
static pod_status fault_run(const injection *in, pod_injected_fault fault, const char *name,
                            bool first, pod_experiment_injected_visit *visit, void *context,
                            pod_error *err)
{
    site *sites = NULL;
    const int64_t count = sites_find(in, fault, name, &sites);
    pod_status st = count >= 0 ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for faults");
    st = pod_par_agree(in->experiment->par, st, err);
    bool done = false;
    for (int64_t i = 0; st == POD_OK && i < count && !done; i++) {
        pod_experiment_injected run;
        st = site_run(in, &sites[i], &run, err);
        if (st == POD_OK && (run.changes || !first)) {
            visit(context, &run);
            done = first;
        }
    }
    free(sites);
    return st;
}

/** @param[out] name  of the op, or NULL @return the fault; POD_INJECTED_FAULTS: all */
static pod_status what_read(const char *what, pod_injected_fault *fault, const char **name,
                            pod_error *err)
{
    const char *colon = strchr(what, ':');
    const size_t length = colon != NULL ? (size_t)(colon - what) : strlen(what);
    *name = colon != NULL ? colon + 1 : NULL;
    *fault = POD_INJECTED_FAULTS;
    for (int i = 0; i < POD_INJECTED_FAULTS; i++) {
        const char *of = pod_injected_name((pod_injected_fault)i);
        *fault =
            strlen(of) == length && strncmp(of, what, length) == 0 ? (pod_injected_fault)i : *fault;
    }
    return *fault != POD_INJECTED_FAULTS || strcmp(what, "all") == 0
               ? POD_OK
               : pod_fail(
                   err, POD_E_USAGE,
                   "--inject %s: use all, or drop, double, permute, swap, group, "
                   "microbatch, mask, stale, stale-shard or stale-gather, with :OP for ops of that "
                   "name",
                   what);
}

/** Whether a second step can follow: after one of experts too many choices are near. */
static bool has_second(const pod_step_request *request)
{
    return request->mode == POD_STEP_TRAIN && request->model->experts == 0
           && (request->optimizer == POD_OPTIMIZER_SGD
               || request->optimizer == POD_OPTIMIZER_MOMENTUM);
}

/** Both steps without a fault: nothing may be wrong. */
static pod_status clean_run(injection *in, pod_error *err)
{
    const pod_experiment_tamper first = {.after = in->has_second ? &in->between : NULL};
    const pod_experiment_tamper second = {.before = &in->between};
    pod_experiment_step_numbers clean = {0};
    POD_TRY(infers(in->run_case) ? POD_OK
                                 : pod_experiment_step_reference(in->experiment, in->run_case, NULL,
                                                                 NULL, &in->reference, err));
    POD_TRY(run_with(in, &first, &clean, err));
    in->digest = clean.digest;
    int64_t wrong = clean.wrong;
    if (in->has_second) {
        wrong += pod_experiment_state_share(in->experiment, &in->between);
        POD_TRY(pod_experiment_step_reference(in->experiment, in->run_case, NULL, &in->between,
                                              &in->second, err));
        POD_TRY(run_with(in, &second, &clean, err));
        in->second_digest = clean.digest;
        wrong += clean.wrong;
    }
    return wrong == 0 ? POD_OK
                      : pod_fail(err, POD_E_CHECK, "%lld elements are wrong without a fault",
                                 (long long)wrong);
}

pod_status pod_experiment_inject(pod_experiment *experiment, pod_experiment_step_case *run_case,
                                 const pod_chip_spec *chip, const char *what,
                                 pod_experiment_injected_visit *visit, void *context,
                                 pod_error *err)
{
    pod_injected_fault fault;
    const char *name;
    POD_TRY(what_read(what, &fault, &name, err));
    if (experiment->data != POD_DATA_REAL || run_case->request.model->kind != POD_MODEL_TRANSFORMER
        || run_case->work.data_bytes < 0) {
        return pod_fail(err, POD_E_USAGE, "--inject is for transformers with --data real");
    }
    const pod_step_request *request = &run_case->request;
    injection in = {.experiment = experiment,
                    .run_case = run_case,
                    .chip = chip,
                    .has_second =
                        has_second(request) && (fault == POD_INJECTED_FAULTS || in_second(fault))};
    if (in_second(fault) && !in.has_second) {
        return pod_fail(err, POD_E_USAGE,
                        "--inject %s: two steps are of training with sgd or sgd-momentum, and of "
                        "models without experts",
                        what);
    }
    pod_status st = in.has_second ? pod_place_state_init(&in.between, request->model, err) : POD_OK;
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, clean_run(&in, err));
    for (int i = 0; i < POD_INJECTED_FAULTS; i++) {
        const bool asked = fault == POD_INJECTED_FAULTS || fault == (pod_injected_fault)i;
        if (asked && (in.has_second || !in_second((pod_injected_fault)i))) {
            POD_THEN(st, fault_run(&in, (pod_injected_fault)i, name, fault == POD_INJECTED_FAULTS,
                                   visit, context, err));
        }
    }
    pod_experiment_reference_free(&in.reference);
    pod_experiment_reference_free(&in.second);
    pod_place_state_fini(&in.between);
    return st;
}
