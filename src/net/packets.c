/* SPDX-License-Identifier: Apache-2.0 */
#include "net/packets.h"

#include "base/grow.h"

#include <stdlib.h>

enum {
    PORTS_MAX = 2 * POD_DIRECTIONS,
    INPUTS_MAX = PORTS_MAX * POD_PACKETS_VCS_MAX,
    SLOTS = 4,       /* cycles that a wire knows: this one and the next three */
    LINK_CYCLES = 3, /* from a grant of the crossbar to the next queue, and for its credit back */
    NONE = -1
};

typedef struct packet {
    int64_t message;
    int32_t dst;
    int32_t next; /* in its source's queue, or of those not in use */
    uint8_t end;
    uint8_t ties;
    bool crosses; /* the end of the axis that it moves along */
} packet;

/* A queue of an input. */
typedef struct channel {
    int32_t first; /* of its ring */
    int32_t count;
    int32_t output; /* of the packet at its head, once found */
    int32_t output_vc;
    uint32_t wants; /* virtual channels of the output that it may have */
} channel;

/* An input: masks of its virtual channels by what they do next, and where the arbiters go on. */
typedef struct input {
    uint32_t finds; /* its output */
    uint32_t asks;  /* for a virtual channel of it */
    uint32_t ready; /* for the crossbar */
    int32_t next_vc;
    int32_t next_output;
} input;

typedef struct output {
    uint32_t taken; /* virtual channels that a packet of this router has */
    int32_t next_input;
    int64_t carried;
} output;

/* What is on its way to a port in some cycle. */
typedef struct wire {
    int32_t packet; /* to the input; NONE */
    int32_t packet_vc;
    int32_t credit_vc; /* to the output, or to the source of an end; NONE */
    int32_t leaving;   /* to the chip of an end; NONE */
} wire;

typedef struct source {
    int32_t first; /* queue of packets; NONE */
    int32_t last;
    int32_t next_vc;
} source;

struct pod_packets {
    pod_packets_options options;
    int directions; /* 2 · axes: ports below are links, from there on ends */
    int ports;
    int32_t nchips;
    uint32_t all_vcs;
    uint32_t lower_vcs;
    unsigned closed;
    int64_t now;
    int64_t waiting;
    int32_t (*coords)[POD_AXES];
    int32_t *neighbor; /* neighbor[chip * directions + direction] */
    int32_t *inside;   /* inside[chip]: packets in its router's queues */
    input *inputs;     /* inputs[chip * ports + port], and so on */
    output *outputs;
    channel *channels;     /* channels[(chip * ports + port) * vcs + vc], and so on */
    int32_t *queued;       /* queued[buffer] of each channel: packets */
    int32_t *credits;      /* of an output's virtual channels; of an end's: of its source */
    int32_t *next_asker;   /* of an output's virtual channels: where its arbiter goes on */
    int32_t *next_granted; /* of an input's */
    wire *wires[SLOTS];
    source *sources; /* sources[chip * ends + end] */
    packet *packets;
    int64_t room;
    int32_t count; /* that have ever been in use at once */
    int32_t unused;
};

/* ---- life ---- */

pod_status pod_packets_check(const pod_packets_options *options, pod_error *err)
{
    const pod_slice *slice = options->slice;
    if (slice->nchips > POD_PACKETS_CHIPS_MAX) {
        return pod_fail(err, POD_E_INVALID,
                        "packets are simulated on up to %d chips, and %s has %d; use a smaller "
                        "slice, or fluid links",
                        POD_PACKETS_CHIPS_MAX, slice->name, slice->nchips);
    }
    if (slice->twisted || slice->nfaults > 0 || slice->nslices > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "packets go in dimension order on one healthy slice without twist, and %s "
                        "is none; name a plain one (SHAPE_untwisted), or use fluid links",
                        slice->name);
    }
    if (options->buffer < 1 || options->buffer > POD_PACKETS_BUFFER_MAX || options->vcs < 1
        || options->vcs > POD_PACKETS_VCS_MAX) {
        return pod_fail(err, POD_E_USAGE,
                        "packets need 1 to %d virtual channels and queues of 1 to %d flits",
                        POD_PACKETS_VCS_MAX, POD_PACKETS_BUFFER_MAX);
    }
    return options->vcs < 2 && pod_slice_closed_axes(slice) != 0
               ? pod_fail(err, POD_E_USAGE,
                          "one virtual channel can deadlock where an axis closes, as on %s; give "
                          "2 or more",
                          slice->name)
               : POD_OK;
}

static void shape_fill(pod_packets *p)
{
    const pod_slice *slice = p->options.slice;
    for (int32_t chip = 0; chip < p->nchips; chip++) {
        pod_slice_coords(slice, chip, p->coords[chip]);
        for (int direction = 0; direction < p->directions; direction++) {
            p->neighbor[chip * p->directions + direction] =
                pod_slice_neighbor(slice, chip, direction);
        }
    }
}

static bool arrays_new(pod_packets *p)
{
    const size_t chips = (size_t)p->nchips;
    const size_t ports = chips * (size_t)p->ports;
    const size_t channels = ports * (size_t)p->options.vcs;
    p->coords = calloc(chips, sizeof *p->coords);
    p->neighbor = calloc(chips * (size_t)p->directions, sizeof *p->neighbor);
    p->inside = calloc(chips, sizeof *p->inside);
    p->inputs = calloc(ports, sizeof *p->inputs);
    p->outputs = calloc(ports, sizeof *p->outputs);
    p->channels = calloc(channels, sizeof *p->channels);
    p->queued = calloc(channels * (size_t)p->options.buffer, sizeof *p->queued);
    p->credits = calloc(channels, sizeof *p->credits);
    p->next_asker = calloc(channels, sizeof *p->next_asker);
    p->next_granted = calloc(channels, sizeof *p->next_granted);
    p->sources = calloc(chips * (size_t)p->options.ends, sizeof *p->sources);
    bool ok = p->coords != NULL && p->neighbor != NULL && p->inside != NULL && p->inputs != NULL
              && p->outputs != NULL && p->channels != NULL && p->queued != NULL
              && p->credits != NULL && p->next_asker != NULL && p->next_granted != NULL
              && p->sources != NULL;
    for (int slot = 0; slot < SLOTS; slot++) {
        p->wires[slot] = calloc(ports, sizeof *p->wires[slot]);
        ok = ok && p->wires[slot] != NULL;
        for (size_t i = 0; i < ports && ok; i++) {
            p->wires[slot][i] = (wire){.packet = NONE, .credit_vc = NONE, .leaving = NONE};
        }
    }
    for (size_t i = 0; i < channels && ok; i++) {
        p->credits[i] = p->options.buffer;
    }
    for (size_t i = 0; i < chips * (size_t)p->options.ends && ok; i++) {
        p->sources[i].first = NONE;
    }
    return ok;
}

pod_status pod_packets_new(const pod_packets_options *options, pod_packets **packets,
                           pod_error *err)
{
    POD_TRY(pod_packets_check(options, err));
    pod_packets *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the routers");
    }
    p->options = *options;
    p->directions = 2 * options->slice->naxes;
    p->ports = p->directions + options->ends;
    p->nchips = options->slice->nchips;
    p->all_vcs = UINT32_MAX >> (POD_PACKETS_VCS_MAX - options->vcs);
    p->lower_vcs = p->all_vcs >> (options->vcs / 2);
    p->closed = pod_slice_closed_axes(options->slice);
    p->unused = NONE;
    if (!arrays_new(p)) {
        pod_packets_free(p);
        return pod_fail(err, POD_E_NOMEM, "no memory for the routers of %d chips",
                        options->slice->nchips);
    }
    shape_fill(p);
    *packets = p;
    return POD_OK;
}

void pod_packets_free(pod_packets *packets)
{
    if (packets == NULL) {
        return;
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        free(packets->wires[slot]);
    }
    free(packets->coords);
    free(packets->neighbor);
    free(packets->inside);
    free(packets->inputs);
    free(packets->outputs);
    free(packets->channels);
    free(packets->queued);
    free(packets->credits);
    free(packets->next_asker);
    free(packets->next_granted);
    free(packets->sources);
    free(packets->packets);
    free(packets);
}

int64_t pod_packets_now(const pod_packets *packets)
{
    return packets->now;
}

int64_t pod_packets_waiting(const pod_packets *packets)
{
    return packets->waiting;
}

int64_t pod_packets_carried(const pod_packets *packets, int32_t chip, int direction)
{
    return direction < packets->directions
               ? packets->outputs[chip * packets->ports + direction].carried
               : 0;
}

/* ---- sources ---- */

pod_status pod_packets_send(pod_packets *packets, int32_t src, int32_t dst, int end, unsigned ties,
                            int64_t message, pod_error *err)
{
    pod_packets *p = packets;
    int32_t made = p->unused;
    if (made == NONE) {
        if (!POD_GROW(p->packets, p->room, (int64_t)p->count + 1)) {
            return pod_fail(err, POD_E_NOMEM, "no memory for %d packets under way", p->count);
        }
        made = p->count++;
    } else {
        p->unused = p->packets[made].next;
    }
    p->packets[made] = (packet){
        .message = message, .dst = dst, .next = NONE, .end = (uint8_t)end, .ties = (uint8_t)ties};
    source *from = &p->sources[src * p->options.ends + end];
    if (from->first == NONE) {
        from->first = made;
    } else {
        p->packets[from->last].next = made;
    }
    from->last = made;
    p->waiting++;
    return POD_OK;
}

static wire *wire_at(pod_packets *p, int32_t port, int cycles)
{
    return &p->wires[(p->now + cycles) % SLOTS][port];
}

/* The next packet of a source goes to the first virtual channel that has room, in turn. */
static void source_step(pod_packets *p, int32_t chip, int end)
{
    source *from = &p->sources[chip * p->options.ends + end];
    const int32_t port = chip * p->ports + p->directions + end;
    for (int i = 0; i < p->options.vcs && from->first != NONE; i++) {
        const int32_t vc = (from->next_vc + i) % p->options.vcs;
        int32_t *credit = &p->credits[port * p->options.vcs + vc];
        if (*credit > 0) {
            wire *to = wire_at(p, port, POD_PACKETS_END_CYCLES);
            (*credit)--;
            to->packet = from->first;
            to->packet_vc = vc;
            from->first = p->packets[from->first].next;
            from->next_vc = (vc + 1) % p->options.vcs;
            return;
        }
    }
}

/* ---- routes ---- */

/* The output of a packet in a router, and which of its virtual channels it may have. */
static void route_find(pod_packets *p, int32_t chip, int port, packet *moved, channel *at)
{
    const int32_t *here = p->coords[chip];
    const int32_t *there = p->coords[moved->dst];
    int axis = 0;
    while (axis < p->directions / 2 && here[axis] == there[axis]) {
        axis++;
    }
    at->wants = p->all_vcs;
    if (2 * axis == p->directions) {
        at->output = p->directions + moved->end;
        return;
    }
    const bool closed = ((p->closed >> axis) & 1U) != 0;
    if (port / 2 == axis && port < p->directions) {
        at->output = port ^ 1; /* straight on */
    } else {
        const int32_t size = p->options.slice->dims[axis];
        const int32_t ahead = (there[axis] - here[axis] + size) % size;
        const bool tie = 2 * ahead == size;
        const bool plus = !closed ? there[axis] > here[axis]
                          : tie   ? (((unsigned)moved->ties >> axis) & 1U) != 0
                                  : 2 * ahead < size;
        at->output = 2 * axis + (plus ? 0 : 1);
        moved->crosses = plus ? here[axis] > there[axis] : here[axis] < there[axis];
    }
    if (closed) {
        at->wants = moved->crosses ? p->all_vcs & ~p->lower_vcs : p->lower_vcs;
    }
}

/* ---- allocation ---- */

static int lowest(uint32_t mask)
{
    return __builtin_ctz(mask);
}

/* How far after its pointer somebody stands in a circle. */
static int32_t turn(int32_t who, int32_t pointer, int32_t size)
{
    return who >= pointer ? who - pointer : who - pointer + size;
}

/* Those that ask an output for one of its virtual channels. */
typedef struct askers {
    int count;
    int32_t input[INPUTS_MAX]; /* port * vcs + vc */
} askers;

/* iSLIP between the virtual channels of all inputs and those of one output: each that is free grants one asker, and an
 * asker takes one. */
static void output_vcs_give(pod_packets *p, int32_t chip, int out, const askers *asking)
{
    const int32_t vcs = p->options.vcs;
    const int32_t base = chip * p->ports * vcs;
    const int32_t size = p->ports * vcs;
    output *to = &p->outputs[chip * p->ports + out];
    int taker[POD_PACKETS_VCS_MAX];
    for (uint32_t free_vcs = p->all_vcs & ~to->taken; free_vcs != 0; free_vcs &= free_vcs - 1) {
        const int vc = lowest(free_vcs);
        const int32_t pointer = p->next_asker[base + out * vcs + vc];
        int32_t best = size;
        taker[vc] = NONE;
        for (int i = 0; i < asking->count; i++) {
            const int32_t who = asking->input[i];
            if ((p->channels[base + who].wants >> vc & 1U) != 0
                && turn(who, pointer, size) < best) {
                best = turn(who, pointer, size);
                taker[vc] = i;
            }
        }
    }
    const uint32_t were_free = p->all_vcs & ~to->taken;
    for (int i = 0; i < asking->count; i++) {
        const int32_t who = asking->input[i];
        const int32_t pointer = p->next_granted[base + who];
        int32_t best = size;
        int given = NONE;
        for (uint32_t free_vcs = were_free; free_vcs != 0; free_vcs &= free_vcs - 1) {
            const int vc = lowest(free_vcs);
            if (taker[vc] == i && turn(out * vcs + vc, pointer, size) < best) {
                best = turn(out * vcs + vc, pointer, size);
                given = vc;
            }
        }
        if (given != NONE) {
            input *from = &p->inputs[chip * p->ports + who / vcs];
            to->taken |= 1U << given;
            p->channels[base + who].output_vc = given;
            p->next_asker[base + out * vcs + given] = (who + 1) % size;
            p->next_granted[base + who] = (out * vcs + given + 1) % size;
            from->asks &= ~(1U << (who % vcs));
            from->ready |= 1U << (who % vcs);
        }
    }
}

/* @param asks  asks[ports]: who asks in this cycle */
static void vcs_allocate(pod_packets *p, int32_t chip, const uint32_t *asks)
{
    const int32_t vcs = p->options.vcs;
    uint32_t outputs = 0;
    for (int port = 0; port < p->ports; port++) {
        for (uint32_t mask = asks[port]; mask != 0; mask &= mask - 1) {
            outputs |= 1U << p->channels[(chip * p->ports + port) * vcs + lowest(mask)].output;
        }
    }
    for (; outputs != 0; outputs &= outputs - 1) {
        const int out = lowest(outputs);
        askers asking;
        asking.count = 0;
        for (int port = 0; port < p->ports; port++) {
            for (uint32_t mask = asks[port]; mask != 0; mask &= mask - 1) {
                const int32_t who = port * vcs + lowest(mask);
                if (p->channels[chip * p->ports * vcs + who].output == out) {
                    asking.input[asking.count++] = who;
                }
            }
        }
        output_vcs_give(p, chip, out, &asking);
    }
}

/* A packet leaves its queue over the crossbar: it is on its way, its place has a credit, the next one begins. */
static void packet_go(pod_packets *p, int32_t chip, int port, int vc)
{
    const int32_t vcs = p->options.vcs;
    const int32_t at = (chip * p->ports + port) * vcs + vc;
    channel *queue = &p->channels[at];
    input *from = &p->inputs[chip * p->ports + port];
    output *to = &p->outputs[chip * p->ports + queue->output];
    const int32_t moved = p->queued[at * p->options.buffer + queue->first];
    queue->first = (queue->first + 1) % p->options.buffer;
    queue->count--;
    p->inside[chip]--;
    from->ready &= ~(1U << vc);
    from->finds |= queue->count > 0 ? 1U << vc : 0;
    to->taken &= ~(1U << queue->output_vc);
    to->carried++;
    int32_t end = chip * p->ports + queue->output; /* of a chip */
    if (queue->output < p->directions) {
        p->credits[end * vcs + queue->output_vc]--;
        end = p->neighbor[chip * p->directions + queue->output] * p->ports + (queue->output ^ 1);
    }
    wire *on = wire_at(p, end, LINK_CYCLES);
    if (queue->output < p->directions) {
        on->packet = moved;
        on->packet_vc = queue->output_vc;
    } else {
        on->leaving = moved;
    }
    const int32_t back = port < p->directions
                             ? p->neighbor[chip * p->directions + port] * p->ports + (port ^ 1)
                             : chip * p->ports + port;
    wire_at(p, back, LINK_CYCLES)->credit_vc = vc;
}

/* What an input asks the crossbar for: of the packets for an output the one whose turn it is. */
static void crossbar_ask(const pod_packets *p, int32_t chip, int port, uint32_t ready,
                         int8_t *asked)
{
    const int32_t vcs = p->options.vcs;
    const int32_t first = p->inputs[chip * p->ports + port].next_vc;
    int32_t best[PORTS_MAX];
    for (int out = 0; out < p->ports; out++) {
        asked[out] = NONE;
        best[out] = vcs;
    }
    for (; ready != 0; ready &= ready - 1) {
        const int vc = lowest(ready);
        const channel *queue = &p->channels[(chip * p->ports + port) * vcs + vc];
        const int out = queue->output;
        const bool room = out >= p->directions
                          || p->credits[(chip * p->ports + out) * vcs + queue->output_vc] > 0;
        if (room && turn(vc, first, vcs) < best[out]) {
            best[out] = turn(vc, first, vcs);
            asked[out] = (int8_t)vc;
        }
    }
}

/* iSLIP between inputs and outputs. @param ready  ready[ports] */
static void crossbar_allocate(pod_packets *p, int32_t chip, const uint32_t *ready)
{
    int8_t asked[PORTS_MAX][PORTS_MAX]; /* [input][output]: the virtual channel; NONE */
    int granted[PORTS_MAX];             /* by an output, to an input; NONE */
    const int ports = p->ports;
    input *inputs = &p->inputs[chip * ports];
    output *outputs = &p->outputs[chip * ports];
    for (int port = 0; port < ports; port++) {
        crossbar_ask(p, chip, port, ready[port], asked[port]);
    }
    for (int out = 0; out < ports; out++) {
        granted[out] = NONE;
        for (int i = 0; i < ports && granted[out] == NONE; i++) {
            const int port = (outputs[out].next_input + i) % ports;
            granted[out] = asked[port][out] != NONE ? port : NONE;
        }
    }
    for (int port = 0; port < ports; port++) {
        int out = NONE;
        for (int i = 0; i < ports && out == NONE; i++) {
            const int next = (inputs[port].next_output + i) % ports;
            out = granted[next] == port ? next : NONE;
        }
        if (out != NONE) {
            const int vc = asked[port][out];
            inputs[port].next_output = (out + 1) % ports;
            inputs[port].next_vc = (vc + 1) % p->options.vcs;
            outputs[out].next_input = (port + 1) % ports;
            packet_go(p, chip, port, vc);
        }
    }
}

/* ---- a cycle ---- */

static void deliver(pod_packets *p, int32_t number)
{
    packet *done = &p->packets[number];
    const int64_t message = done->message;
    done->next = p->unused;
    p->unused = number;
    p->waiting--;
    p->options.delivered(p->options.context, message);
}

/* What the wires bring in this cycle. */
static void receive(pod_packets *p, int32_t chip)
{
    const int32_t vcs = p->options.vcs;
    for (int port = 0; port < p->ports; port++) {
        const int32_t at = chip * p->ports + port;
        wire *in = wire_at(p, at, 0);
        if (in->packet != NONE) {
            channel *queue = &p->channels[at * vcs + in->packet_vc];
            POD_DASSERT(queue->count < p->options.buffer);
            p->queued[(at * vcs + in->packet_vc) * p->options.buffer
                      + (queue->first + queue->count) % p->options.buffer] = in->packet;
            p->inputs[at].finds |= queue->count == 0 ? 1U << in->packet_vc : 0;
            queue->count++;
            p->inside[chip]++;
        }
        if (in->credit_vc != NONE) {
            p->credits[at * vcs + in->credit_vc]++;
        }
        if (in->leaving != NONE) {
            deliver(p, in->leaving);
        }
        *in = (wire){.packet = NONE, .credit_vc = NONE, .leaving = NONE};
    }
}

/* What stands at the beginning of the cycle decides; what is granted in it counts from the next on. */
static void router_step(pod_packets *p, int32_t chip)
{
    const int32_t vcs = p->options.vcs;
    uint32_t finds[PORTS_MAX];
    uint32_t asks[PORTS_MAX];
    uint32_t ready[PORTS_MAX];
    for (int port = 0; port < p->ports; port++) {
        const input *in = &p->inputs[chip * p->ports + port];
        finds[port] = in->finds;
        asks[port] = in->asks;
        ready[port] = in->ready;
    }
    vcs_allocate(p, chip, asks);
    crossbar_allocate(p, chip, ready);
    for (int port = 0; port < p->ports; port++) {
        input *in = &p->inputs[chip * p->ports + port];
        for (uint32_t mask = finds[port]; mask != 0; mask &= mask - 1) {
            const int32_t at = (chip * p->ports + port) * vcs + lowest(mask);
            channel *queue = &p->channels[at];
            route_find(p, chip, port, &p->packets[p->queued[at * p->options.buffer + queue->first]],
                       queue);
        }
        in->finds &= ~finds[port];
        in->asks |= finds[port];
    }
}

void pod_packets_step(pod_packets *packets)
{
    pod_packets *p = packets;
    for (int32_t chip = 0; chip < p->nchips; chip++) {
        receive(p, chip);
        for (int end = 0; end < p->options.ends; end++) {
            source_step(p, chip, end);
        }
        if (p->inside[chip] > 0) {
            router_step(p, chip);
        }
    }
    p->now++;
}
