/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/predict/predict_state.h
 *  What the files of predict share: links, messages on them, events. Private. */
#pragma once

#include "collectives/predict/predict.h"
#include "collectives/schedule/turns.h"
#include "ici/link_queue.h"
#include "ici/route.h"

/* Predicted events and the work of one message end by then: 26 days, as in the simulation (net/net_state.h),
 * so that sums of two never overflow. */
#define PREDICT_TIME_MAX (POD_TIME_NEVER / 4)

/* A message, or the part of it that takes one of several paths. */
typedef struct predict_fragment {
    pod_path path;
    pod_time_ps work_ps; /* on a healthy link */
    int32_t channel;
    int32_t from; /* cell */
    int32_t to;   /* cell */
    int32_t to_step;
    int32_t first_flow; /* of those on links, -1 = none */
    int32_t to_come;    /* circuits: links that have not served it */
    int32_t next;       /* free list; -1 = end */
} predict_fragment;

/* A fragment on a link. */
typedef struct predict_flow {
    pod_time_ps finish; /* service of the link, per message, at which it has had its own */
    int32_t fragment;
    int32_t hop;
    int32_t chip; /* at the sending end of the link */
    bool no_tail; /* its tail has not come in */
    bool served;
    int32_t sibling; /* the next of its fragment */
    int32_t next;    /* free list, or list of those just served; -1 = end */
} predict_flow;

/* An ordered send that waits for its link. */
typedef struct predict_waiting {
    int64_t key; /* (priority, channel), lowest first; of a timed schedule the turn */
    int64_t bytes;
    int32_t channel;
    int32_t step; /* of the sender */
    int32_t to;
    int32_t to_step;
    int32_t next;
} predict_waiting;

/* Where a message goes. */
typedef struct predict_message {
    int32_t channel;
    int32_t to; /* cell */
    int32_t to_step;
} predict_message;

typedef struct predict_link {
    pod_link share; /* `first` isn't used */
    pod_link_queue queue;
    int32_t waiting;       /* ordered sends, -1 = none */
    uint32_t joined;       /* messages so far */
    int32_t turn;          /* ordered sends so far */
    uint32_t version;      /* of the pending completion */
    bool taken;            /* by an ordered send */
    predict_message alone; /* of an exclusive schedule: what it carries */
} predict_link;

typedef enum predict_kind {
    PREDICT_SERVED, /* a link's first message has had its service */
    PREDICT_HEAD,   /* the head of a fragment is at the next link */
    PREDICT_TAIL,   /* and its tail */
    PREDICT_ARRIVE, /* a fragment is at its destination */
    PREDICT_LEFT,   /* a message of an exclusive schedule has left: `at` is its link, */
    PREDICT_COME    /* and come: to cell `at`, in channel `hop`, for step `version` */
} predict_kind;

/* Handled by time, then messages by the places of the chips that sent them, links as the first of these, then in the
 * order of their posting. */
typedef struct predict_event {
    pod_time_ps time;
    int32_t source; /* place of the sending chip; of a link 0 */
    uint64_t seq;
    predict_kind kind;
    int32_t at;   /* link or fragment */
    int32_t hop;  /* head, tail */
    int32_t chip; /* head: at which it is */
    uint32_t version;
} predict_event;

/* Events that come equally long after what they follow from, in the order of time. */
typedef struct predict_lane {
    pod_time_ps delay_ps;
    predict_event *events; /* events[room]; those from `first` to `end` are to come */
    int64_t room;
    int64_t first;
    int64_t end;
} predict_lane;

enum { PREDICT_LANES = 8 };

typedef struct predict_channel {
    int32_t steps;
    int32_t next_send;
    int32_t next_recv;
    int32_t needs;     /* receives without which the next send is known to wait */
    int32_t receives;  /* the step after one that is known to receive */
    int32_t leaving;   /* fragments of its send that have not left */
    int32_t waits_for; /* channel, -1 = none */
    int32_t next_waiter;
    int32_t first_waiter; /* of the channels that wait for this one */
    int8_t direction;     /* whose ordered link its send holds; -1 = none */
} predict_channel;

typedef struct predict_run predict_run;

struct predict_run {
    const pod_coll_request *request;
    const pod_coll_schedule *schedule;
    const pod_coll_fold *fold;
    pod_router *router; /* made when a message must be routed first */
    pod_coll_place *places;
    int axis[POD_AXES];  /* of the slice, sorted: what is first in one picosecond goes by it */
    int32_t *source_of;  /* [cell]: place of its chip (pod_slice_place) */
    predict_link *links; /* [cell][direction] */
    predict_channel *channels; /* [cell][channel] */
    int64_t *arrived_base;
    uint8_t *arrived; /* [channel][cell][step]: fragments to come, then 1 = here */
    predict_fragment *fragments;
    int32_t free_fragment;
    int32_t nfragments;
    predict_flow *flows;
    int32_t free_flow;
    int32_t nflows;
    predict_waiting *waitings;
    int32_t free_waiting;
    int32_t nwaitings;
    predict_lane lanes[PREDICT_LANES];
    predict_event *heap; /* events of other delays */
    int64_t heap_size;
    int64_t heap_room;
    uint64_t seq;
    int32_t *woken; /* channels that need wait no longer; room for all */
    int32_t nwoken;
    int64_t messages;
    int64_t hops; /* flows so far */
    pod_time_ps now;
    pod_status status;
    /* A fragment has left its sender. */
    void (*left)(predict_run *r, int32_t cell, int32_t channel);
    pod_coll_turns *turns; /* to be noted, or NULL */
};

static inline predict_channel *predict_channel_at(const predict_run *r, int32_t cell, int32_t c)
{
    return &r->channels[(int64_t)cell * r->schedule->nchannels + c];
}

static inline int32_t predict_cell(const predict_run *r, int32_t rank)
{
    return r->fold->like ? r->fold->like[rank] : rank;
}

/* Fragments of a step that have not arrived, plus 1; 1 = the step's message is here. */
static inline uint8_t *predict_arrived_at(const predict_run *r, int32_t cell, int32_t channel,
                                          int32_t step)
{
    const int64_t steps = r->schedule->channels[channel].max_steps;
    return &r->arrived[r->arrived_base[channel] + cell * steps + step];
}

/** predict_events.c: what is to happen, and what happens next: false = nothing. */
void pod_predict_push(predict_run *r, predict_event e);
bool pod_predict_pop(predict_run *r, predict_event *next);
void pod_predict_events_fini(predict_run *r);

/** predict_links.c from here on. Send what a step sends; the channel's `leaving` and the receiver's
 *  `arrived` are set. */
void pod_predict_send(predict_run *r, int32_t cell, int32_t channel, const pod_coll_step *step);
/** An ordered send has left: its link is for the next. */
void pod_predict_release(predict_run *r, int32_t cell, int direction);
void pod_predict_link_served(predict_run *r, int32_t link);
void pod_predict_link_left(predict_run *r, int32_t link);
void pod_predict_head(predict_run *r, int32_t fragment, int32_t hop, int32_t chip);
void pod_predict_tail(predict_run *r, int32_t fragment, int32_t hop);
void pod_predict_fragment_free(predict_run *r, int32_t fragment);
