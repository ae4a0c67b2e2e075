/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/step_state.h  What the files of sim/step share: the state of a step. Private. */
#pragma once

#include "base/map.h"
#include "collectives/bounds/bound.h"
#include "program/exec.h"
#include "sim/collective.h"
#include "sim/oracle.h"
#include "sim/step.h"

#include <stdio.h>

enum { POD_TAG_STAGE_MESSAGE = 2, POD_TAG_HOST = 3, POD_TAG_HBM = 4 };

/* What exposed time is charged to. */
enum { STEP_ICI, STEP_DCN, STEP_HOST, STEP_HBM };

/* A schedule that equal collectives share. */
typedef struct step_schedule {
    int32_t group;
    pod_coll_op op;
    int64_t elements;
    pod_dtype dtype;
    int32_t shift;
    int32_t root;       /* of broadcasts */
    int32_t sources;    /* of permutes by list */
    int32_t algorithm;  /* index in programs->algorithms, or POD_OP_NONE */
    int32_t fallback;   /* number in run->fallbacks, from 1; 0 = none */
    int32_t *source_of; /* permutes */
    bool shared;        /* drives several axes */
    bool directions_known;
    unsigned directions; /* of links that it may use, a bit each, once they are known */
    pod_coll_schedule *schedule;
    /* bound_ps[stage]: for the groups of that stage; of meetings bound_ps[group]; -1 = not known
     * yet */
    pod_time_ps *bound_ps;
    pod_coll_chip_bounds *chip_bounds;    /* chip_bounds[stage], where nothing will run, */
    struct step_kind_bounds *kind_bounds; /* and kind_bounds[stage] (step_bound_kinds.h) */
} step_schedule;

/* How long the core of a cell has waited, in its present wait, while a collective crossed slices. */
typedef struct step_crossing {
    int32_t channels;  /* that cross now */
    pod_time_ps since; /* what is not yet in waited_ps */
    pod_time_ps waited_ps;
    pod_time_ps wait; /* when that wait began */
} step_crossing;

/* A collective under way on this rank's cells. */
typedef struct step_instance {
    pod_collective *collective;
    pod_time_ps *start_ps;   /* start_ps[local cell] */
    step_crossing *crossing; /* crossing[local cell] */
    int32_t cells_left;
    bool told;   /* the oracle is told */
    bool beside; /* it isn't */
} step_instance;

/* What is the same for all cells of a stage. */
typedef struct step_stage {
    const pod_program *program;
    int32_t first_instance; /* instance of op i = first_instance + i */
    int32_t cells;          /* of this rank */
    pod_time_ps *time_ps;   /* time_ps[op] of core and host ops */
    bool *hbm_bound;        /* hbm_bound[op] */
    int32_t *schedule_of;   /* schedule_of[op], collectives */
    int32_t *core_next;     /* core_next[op]: the next core op; core_next[nops]: the first */
    int32_t *first_user;    /* users[first_user[op] … first_user[op + 1]) wait for op */
    int32_t *users;
    /* begins[op]: join that ends when the op begins, or POD_OP_NONE; NULL: no op has one */
    int32_t *begins;
    pod_op_record *records; /* records[op], of this rank */
} step_stage;

/* Something other than the core ended while the core waited. */
typedef struct step_trail {
    int32_t op;
    pod_time_ps start_ps;
    pod_time_ps end_ps;
    pod_time_ps across_ps; /* collectives over slices: the part of the wait in which they crossed */
} step_trail;

/* An op that is under way until its unit time and its bytes are through. */
typedef struct step_work {
    int32_t op;
    int parts_left;
    pod_time_ps start_ps;
    bool hbm_last; /* its bytes took longer than its unit time */
} step_work;

/* Copies that are ready: queue[next … nqueue), the first of which is under way if busy. */
typedef struct step_lane {
    step_work work;
    bool busy;
    int32_t next;
    int32_t nqueue;
    int64_t room;
    int32_t *queue;
} step_lane;

/* Ops in the order in which they became ready: op[next … count). */
typedef struct step_queue {
    int32_t *op;
    int32_t next;
    int32_t count;
    int64_t room;
} step_queue;

/* A message that came before a receive asked for it. */
typedef struct step_letter {
    int32_t from;
    int32_t tag;
    pod_time_ps start_ps;
} step_letter;

/* Of programs that match: messages and receives that wait for each other, oldest first. */
typedef struct step_letters {
    step_letter *here;
    int64_t nhere;
    int64_t here_room;
    step_queue wanted; /* receives, next = 0 */
} step_letters;

typedef struct step_cell {
    int32_t stage;
    int32_t core_op; /* next (or running) core op; nops = none left */
    double slowness; /* of the chip: times its core takes longer */
    double host_slowness;
    bool core_busy;
    step_queue core_ready; /* of programs in ready_order */
    step_queue turns;      /* what waits for its turn, next = 0 (one_at_a_time) */
    bool turn_taken;
    step_letters letters;
    step_work core; /* of compute ops */
    step_lane lanes[POD_PROGRAM_LANES];
    bool done;
    pod_time_ps free_ps;       /* since when the core waits */
    pod_time_ps host_free_ps;  /* since when the host has nothing to make */
    pod_time_ps host_start_ps; /* when the latest transfer from the host began */
    pod_time_ps done_ps;
    int32_t ops_left;
    uint64_t begun;    /* collectives */
    step_trail *trail; /* trail[ntrail] of the present wait, in the order of ends */
    int32_t ntrail;
    int64_t trail_room;
    uint16_t *deps_left; /* deps_left[op]; STEP_ENDED once it has ended */
    pod_step_parts parts;
} step_cell;

enum { STEP_ENDED = UINT16_MAX };

/* A collective that chips with programs of their own have together. */
typedef struct step_meeting {
    int32_t cells; /* of this rank */
    int32_t stage; /* the first that has it, and its op there */
    int32_t op;
} step_meeting;

typedef struct step_run step_run;

struct step_run {
    const pod_step_args *args;
    bool bounds_only; /* nothing will run: collectives need their bounds, and no schedules */
    pod_net *net;
    int32_t first;
    int32_t ncells;
    step_stage *stages;
    step_cell *cells;
    step_schedule *schedules;
    int32_t nschedules;
    pod_step_fallback *fallbacks;
    int32_t nfallbacks;
    int hbm_port;
    step_instance **instances; /* instances[stage's first + op], NULL unless under way */
    int32_t ninstances;
    pod_map recv_op;        /* (stage; message) → the op that receives it */
    pod_map meeting_op;     /* (stage; meeting) → op */
    step_meeting *meetings; /* meetings[programs->nmeetings] */
    pod_map recv_start;     /* (cell; message) → time a message's sender began, once it is here */
    pod_shards *shards;     /* shards[local cell], with data */
    bool out_of_memory;     /* in a handler: what it leaves is incomplete */
    pod_error failure;      /* of something inside a handler */
    pod_oracle *oracle;     /* runs collectives; NULL: all are simulated here */
    bool begins;            /* it was told of one */
    pod_oracle_memo *memo;  /* of a step that is watched: what links carry is in no other */
    bool *watched;          /* watched[cell], then */
    int64_t beside; /* transfers of hosts that are to come, and collectives simulated beside them */
    unsigned beside_links; /* which of these may use (step_oracle.c) */
    /* An op of a cell that has begun at start_ps ends now. */
    void (*op_done)(step_run *run, int32_t cell, int32_t op, pod_time_ps start_ps);
    /* The core of a cell has finished an op now, which took so long, and gets the next one. */
    void (*core_done)(step_run *run, int32_t cell, int32_t op, pod_time_ps took_ps, bool hbm_bound);
};

static inline step_cell *step_cell_at(step_run *run, int32_t cell)
{
    return &run->cells[cell - run->first];
}

static inline step_stage *step_stage_at(step_run *run, const step_cell *state)
{
    return &run->stages[state->stage];
}

/** What a chip asked to be woken for, and the op. */
enum {
    WAKE_BEGIN,
    WAKE_CORE,
    WAKE_COLLECTIVE,
    WAKE_ENDS, /* as the oracle says, like the next two (pod_collective_options.crossing) */
    WAKE_CROSSES,
    WAKE_CROSSED,
    WAKE_HOST,
    WAKE_JOIN,
    WAKE_BYTES,
    WAKE_UNIT
};
static inline uint64_t pod_step_wake(int what, int32_t op)
{
    return (uint64_t)what << 32 | (uint32_t)op;
}

/** Memory ran out in a handler: the run ends with POD_E_NOMEM on every rank, once the handler has returned. */
static inline void pod_step_out_of_memory(step_run *run, const char *what)
{
    char text[128];
    run->out_of_memory = true;
    (void)snprintf(text, sizeof text, "no memory for %s; use fewer chips, or more ranks", what);
    pod_engine_fail(pod_net_engine(run->net), POD_E_NOMEM, text);
}

/** The instance of a collective of a stage, and the op of an instance in a stage. */
static inline uint32_t pod_step_instance_of(const step_run *run, const step_stage *stage,
                                            int32_t op)
{
    return run->args->programs->nmeetings > 0 ? (uint32_t)stage->program->ops[op].meeting
                                              : (uint32_t)(stage->first_instance + op);
}

static inline int32_t pod_step_op_of(const step_run *run, const step_stage *stage, uint32_t number)
{
    return run->args->programs->nmeetings > 0
               ? (int32_t)*pod_map_get(&run->meeting_op, (uint32_t)stage->program->stage, number)
               : (int32_t)number - stage->first_instance;
}

/** Cells of this rank that run an instance. */
static inline int32_t pod_step_instance_cells(const step_run *run, const step_stage *stage,
                                              uint32_t number)
{
    return run->args->programs->nmeetings > 0 ? run->meetings[number].cells : stage->cells;
}

/** Where the bound of a collective of a stage is in its schedule's bound_ps. */
int32_t pod_step_bound_place(const step_run *run, const step_stage *stage, int32_t op);

/** An op at the end of a queue; the oldest, taken out of it. The queue isn't empty. */
void pod_step_queue_add(step_run *run, step_queue *queue, int32_t op);
static inline int32_t pod_step_queue_take(step_queue *queue)
{
    return queue->op[queue->next++];
}

/** What waits for its turn (step_turns.c): an op is ready, and has to wait; one has ended, and which begins now, or
 *  POD_OP_NONE. */
static inline bool pod_step_takes_turns(const pod_op *op)
{
    const pod_op_resource resource = pod_op_row(op->kind)->resource;
    return resource == POD_ON_LINKS || resource == POD_ON_SEND || resource == POD_ON_LANE;
}
bool pod_step_turn_wait(step_run *run, int32_t cell, int32_t op);
int32_t pod_step_turn_next(step_run *run, int32_t cell, int32_t ended);

/** Messages of programs that match (step_turns.c). A message is here: the receive that it ends, or POD_OP_NONE; a
 *  receive is ready: the message that it takes. */
int32_t pod_step_letter_come(step_run *run, int32_t cell, const step_letter *letter);
bool pod_step_letter_find(step_run *run, int32_t cell, int32_t op, step_letter *letter);

/** The chip of another stage that the chip of a cell exchanges messages with (step_wait.c). */
int32_t pod_step_stage_peer(const step_run *run, int32_t cell, int32_t stage);
/** An op of a cell ends now. */
void pod_step_trail_add(step_run *run, int32_t cell, int32_t op, pod_time_ps start_ps);
/** The core of a cell has waited since free_ps for what `op` needs (or nops, the end of the program). The
 *  last of these ops to end is charged from when it began; before that the one whose end let it begin, and
 *  so on back. A message from another stage was under way only since its sender began; before that the
 *  chip was idle. */
void pod_step_wait_charge(step_run *run, int32_t cell, int32_t op, pod_time_ps now);
/** pod_collective_options.crossing of the instances of a step. */
void pod_step_crossing_changed(void *context, int32_t cell, uint32_t number, int change);

/** Compute and copy ops (step_work.c): the core begins one now; a copy is ready; what the chip asked to be woken
 *  for; bytes are through the HBM. */
void pod_step_compute_begin(step_run *run, int32_t cell, int32_t op);
void pod_step_copy_ready(step_run *run, int32_t cell, int32_t op);
void pod_step_work_woke(step_run *run, int32_t cell, int what, int32_t op);
void pod_step_work_bytes(step_run *run, int32_t cell, int32_t op);
void pod_step_lanes_free(step_cell *state);

/** Tell the observer (step_watch.c): net callbacks for pod_net_client, and the end of an op. */
void pod_step_watch_client(const step_run *run, pod_net_client *client);
/** What of an oracle is told to the observer. @param[out] cells  of the watch, for free() */
pod_status pod_step_watch_cells(step_run *run, bool **cells, pod_oracle_watch *watch,
                                pod_error *err);
void pod_step_watch_op(const step_run *run, int32_t cell, int32_t stage, int32_t op,
                       pod_time_ps start_ps, pod_time_ps end_ps);

/** The step as a client of the net (step.c). */
pod_net_client pod_step_client(step_run *run);
void pod_step_instance_free(step_run *run, uint32_t number);

/** Times of core ops, order of the core, users of each op (step_plan.c). */
pod_status pod_step_plan(step_run *run, pod_error *err);
void pod_step_plan_free(step_run *run);
/** runs[group], for free(): it has chips of a stage (step_plan.c). POD_E_NOMEM. */
pod_status pod_step_stage_groups(const step_run *run, const pod_group *group, int32_t stage,
                                 bool **runs, pod_error *err);

/** Fold a machine that isn't folded yet to the smallest box of chips of which all others are translations
 *  (net/machine.h): the same stage, and in every schedule the same steps at the same offsets. An axis
 *  that closes may be folded, and an open one along which nothing moves; slices, when all do the
 *  same. Needs the plan. Local, and the same on every rank. */
void pod_step_fold(const step_run *run, pod_machine *machine);

/** A step with an oracle (step_oracle.c): how far its parts go, 0 if it has none; the run; a cell will begin a
 *  collective. */
pod_time_ps pod_step_oracle_part_ps(const pod_step_args *args);
pod_status pod_step_oracle_new(step_run *run, pod_error *err);
void pod_step_oracle_free(step_run *run);
pod_status pod_step_oracle_run(step_run *run, pod_error *err);
/* Whether a collective is simulated with the step instead, as transfers of hosts beside it share its ports. */
bool pod_step_oracle_leaves(step_run *run, int32_t op);
void pod_step_oracle_begin(step_run *run, int32_t cell, int32_t op, uint64_t order,
                           pod_time_ps time_ps);

/** Copy the input of a collective into its work buffers, and its result out (step_data.c). */
void pod_step_load(step_run *run, int32_t cell, const pod_op *op, pod_collective *collective,
                   const pod_coll_schedule *schedule);
void pod_step_store(step_run *run, int32_t cell, const pod_op *op, pod_collective *collective,
                    const pod_coll_schedule *schedule);
