/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { KIND_TOY = 7, SEED = 20 };

void toy_init(toy *model, const toy_options *options)
{
    *model = (toy){.options = *options};
    model->cells = calloc((size_t)options->ncells, sizeof *model->cells);
    POD_ASSERT(model->cells != NULL);
}

void toy_fini(toy *model)
{
    for (int32_t cell = 0; cell < model->options.ncells; cell++) {
        pod_payload_release(model->cells[cell].kept);
    }
    free(model->cells);
}

static uint64_t draw(toy *model, int32_t cell, uint64_t bound)
{
    return pod_rng_below(SEED, (uint64_t)cell, model->cells[cell].draws++, bound);
}

static void mix(toy_cell *cell, uint64_t value)
{
    cell->hash = (cell->hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    cell->hash ^= cell->hash >> 29;
}

static pod_payload *make_payload(toy *model, int32_t cell)
{
    if (model->options.payload_max_bytes == 0 || draw(model, cell, 3) == 0) {
        return NULL;
    }
    int64_t size = (int64_t)draw(model, cell, (uint64_t)model->options.payload_max_bytes + 1);
    if (draw(model, cell, 4) == 0) {
        size %= 3;
    }
    pod_payload *payload = pod_payload_new(size);
    POD_ASSERT(payload != NULL);
    for (int64_t i = 0; i < size; i++) {
        payload->bytes[i] = (unsigned char)(i * 7 + cell);
    }
    return payload;
}

static int32_t choose_target(toy *model, int32_t cell)
{
    const toy_options *options = &model->options;
    uint64_t chance = draw(model, cell, 8);
    if (options->hot_cell >= 0 && chance < 4) {
        return options->hot_cell;
    }
    if (chance == 7) {
        return cell;
    }
    int32_t reach = options->reach != 0 ? options->reach : options->ncells / 2;
    int32_t step = (int32_t)draw(model, cell, 2 * (uint64_t)reach + 1) - reach;
    return (cell + step + options->ncells) % options->ncells;
}

static void send(toy *model, int32_t cell, pod_time_ps now_ps, uint64_t lifetime)
{
    const toy_options *options = &model->options;
    int32_t target = choose_target(model, cell);
    pod_time_ps least_ps = options->cross_ps;
    if (target == cell) {
        least_ps = 0;
    } else if (target / options->group == cell / options->group) {
        least_ps = options->lookahead_ps;
    }
    /* Coarse steps make equal times common. */
    pod_time_ps step_ps = options->lookahead_ps / 4 + 1;
    pod_time_ps delay_ps = least_ps + (pod_time_ps)draw(model, cell, 12) * step_ps;
    if (options->far_ps != 0 && draw(model, cell, 10) == 0) {
        delay_ps += (pod_time_ps)draw(model, cell, (uint64_t)options->far_ps);
    }
    pod_event event = {
        .time_ps = now_ps + delay_ps,
        .dst = target,
        .kind = KIND_TOY,
        .small = (uint16_t)cell,
        .arg = {lifetime, draw(model, cell, 1000), 3, (uint64_t)now_ps},
        .payload = make_payload(model, cell)
    };
    model->post(model->simulator, cell, &event);
}

static void move_timer(toy *model, int32_t cell, pod_time_ps now_ps)
{
    uint64_t chance = draw(model, cell, 8);
    if (!model->options.timers || chance < 2) {
        return;
    }
    pod_time_ps delay_ps = (pod_time_ps)draw(model, cell, 9) * (model->options.lookahead_ps / 3);
    if (chance == 2) {
        delay_ps += model->options.far_ps;
    }
    model->timer_set(model->simulator, cell, chance == 3 ? POD_TIME_NEVER : now_ps + delay_ps);
}

void toy_start(toy *model, int32_t cell)
{
    for (int32_t i = 0; i < model->options.starts; i++) {
        pod_event event = {.time_ps = (pod_time_ps)draw(model, cell, 5000),
                           .dst = cell,
                           .kind = KIND_TOY,
                           .arg = {(uint64_t)model->options.lifetime}};
        model->post(model->simulator, cell, &event);
    }
    if (model->options.timers) {
        model->timer_set(model->simulator, cell, (pod_time_ps)draw(model, cell, 5000));
    }
}

void toy_handle(toy *model, int32_t cell, const pod_event *event)
{
    toy_cell *state = &model->cells[cell];
    POD_ASSERT(event->dst == cell && event->kind == KIND_TOY);
    const uint64_t seen[] = {(uint64_t)event->time_ps,
                             (uint64_t)event->src,
                             event->seq,
                             event->small,
                             event->arg[0],
                             event->arg[1],
                             event->arg[2],
                             event->arg[3]};
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        mix(state, seen[i]);
    }
    if (event->payload != NULL) {
        mix(state, (uint64_t)event->payload->size_bytes);
        for (int64_t i = 0; i < event->payload->size_bytes; i++) {
            mix(state, event->payload->bytes[i]);
        }
        pod_payload_release(state->kept);
        state->kept = pod_payload_retain(event->payload);
    }
    state->handled++;
    if (event->arg[0] > 0) {
        send(model, cell, event->time_ps, event->arg[0] - 1);
        move_timer(model, cell, event->time_ps);
    }
}

void toy_timer(toy *model, int32_t cell, pod_time_ps now_ps)
{
    toy_cell *state = &model->cells[cell];
    mix(state, ~(uint64_t)now_ps);
    state->handled++;
    if (draw(model, cell, 2) == 0) {
        send(model, cell, now_ps, 1);
    }
}

/* ---- the simple simulator ---- */

typedef struct simple {
    pod_event *list;
    size_t count;
    size_t size;
    pod_time_ps *timers;
    uint32_t *seqs;
} simple;

static void simple_post(void *simulator, int32_t src, const pod_event *event)
{
    simple *sim = simulator;
    if (sim->count == sim->size) {
        sim->size = sim->size * 2 + 64;
        sim->list = realloc(sim->list, sim->size * sizeof *sim->list);
        POD_ASSERT(sim->list != NULL);
    }
    sim->list[sim->count] = *event;
    sim->list[sim->count].src = src;
    sim->list[sim->count].seq = sim->seqs[src]++;
    sim->count++;
}

static void simple_timer_set(void *simulator, int32_t cell, pod_time_ps time_ps)
{
    simple *sim = simulator;
    sim->timers[cell] = time_ps;
}

static bool before(const pod_event *a, const pod_event *b)
{
    if (a->time_ps != b->time_ps) {
        return a->time_ps < b->time_ps;
    }
    return a->src != b->src ? a->src < b->src : a->seq < b->seq;
}

/* Handle what is earliest of all, a timer first. @return false when nothing is left */
static bool simple_step(toy *model, simple *sim, pod_engine_counts *counts)
{
    size_t best = 0;
    for (size_t i = 1; i < sim->count; i++) {
        best = before(&sim->list[i], &sim->list[best]) ? i : best;
    }
    pod_time_ps event_ps = sim->count > 0 ? sim->list[best].time_ps : POD_TIME_NEVER;
    int32_t cell = 0;
    for (int32_t i = 1; i < model->options.ncells; i++) {
        cell = sim->timers[i] < sim->timers[cell] ? i : cell;
    }
    pod_time_ps timer_ps = sim->timers[cell];
    if (timer_ps != POD_TIME_NEVER && timer_ps <= event_ps) {
        sim->timers[cell] = POD_TIME_NEVER;
        counts->timers++;
        toy_timer(model, cell, timer_ps);
        return true;
    }
    if (sim->count == 0) {
        return false;
    }
    pod_event event = sim->list[best];
    sim->list[best] = sim->list[--sim->count];
    counts->events++;
    toy_handle(model, event.dst, &event);
    pod_payload_release(event.payload);
    return true;
}

void toy_run_simply(toy *model, pod_engine_counts *counts)
{
    int32_t ncells = model->options.ncells;
    simple sim = {.timers = malloc((size_t)ncells * sizeof *sim.timers),
                  .seqs = calloc((size_t)ncells, sizeof *sim.seqs)};
    POD_ASSERT(sim.timers != NULL && sim.seqs != NULL);
    model->simulator = &sim;
    model->post = simple_post;
    model->timer_set = simple_timer_set;
    *counts = (pod_engine_counts){0};
    for (int32_t cell = 0; cell < ncells; cell++) {
        sim.timers[cell] = POD_TIME_NEVER;
        toy_start(model, cell);
    }
    while (simple_step(model, &sim, counts)) {
    }
    free(sim.list);
    free(sim.timers);
    free(sim.seqs);
}
