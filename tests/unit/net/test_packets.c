/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../out_of_memory.h"

#include "base/rng.h"
#include "net/packets.h"

/* Packets and when each arrived. */
typedef struct arrivals {
    pod_packets *packets;
    int64_t *at; /* -1: not yet */
    int64_t count;
} arrivals;

static void delivered(void *context, int64_t message)
{
    arrivals *a = context;
    cr_assert_eq(a->at[message], -1, "packet %ld arrives twice", (long)message);
    a->at[message] = pod_packets_now(a->packets);
    a->count++;
}

static pod_slice slice_of(int naxes, int32_t x, int32_t y, int32_t z, unsigned closed)
{
    const int32_t dims[POD_AXES] = {x, y, z};
    const bool wrap[POD_AXES] = {(closed & 1U) != 0, (closed & 2U) != 0, (closed & 4U) != 0};
    pod_slice slice;
    cr_assert_eq(pod_slice_make("v5p", naxes, dims, wrap, false, &slice, NULL), POD_OK);
    return slice;
}

static void network_new(arrivals *a, const pod_slice *slice, int ends, int vcs, int buffer,
                        int64_t room)
{
    const pod_packets_options options = {.slice = slice,
                                         .ends = ends,
                                         .vcs = vcs,
                                         .buffer = buffer,
                                         .context = a,
                                         .delivered = delivered};
    pod_error err = {0};
    cr_assert_eq(pod_packets_new(&options, &a->packets, &err), POD_OK, "%s", err.text);
    a->at = malloc((size_t)room * sizeof *a->at);
    cr_assert_not_null(a->at);
    memset(a->at, 0xff, (size_t)room * sizeof *a->at);
    a->count = 0;
}

static void network_free(arrivals *a)
{
    pod_packets_free(a->packets);
    free(a->at);
}

/* Straight from the coordinates. */
static int64_t hops_of(const pod_slice *slice, int32_t src, int32_t dst)
{
    int64_t hops = 0;
    for (int axis = 0; axis < POD_AXES; axis++) {
        const int32_t size = slice->dims[axis];
        int32_t ahead = 0;
        while ((src % size + ahead) % size != dst % size) {
            ahead++;
        }
        const int32_t apart = abs(src % size - dst % size);
        hops += !slice->wrap[axis] ? apart : ahead < size - ahead ? ahead : size - ahead;
        src /= size;
        dst /= size;
    }
    return hops;
}

static const struct {
    int naxes;
    int32_t x, y, z;
    unsigned closed;
} shapes[] = {
    {2, 1, 1, 1, 0},
    {2, 2, 1, 1, 0},
    {2, 2, 2, 1, 3},
    {2, 4, 4, 1, 3},
    {2, 5, 3, 1, 3},
    {2, 3, 4, 1, 1},
    {2, 8, 2, 1, 0},
    {3, 4, 4, 4, 7},
    {3, 3, 2, 5, 4},
    {3, 1, 4, 3, 7},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(packets, alone_a_packet_takes_five_cycles_a_router_and_two)
{
    for (int s = 0; s < SHAPES; s++) {
        const pod_slice slice =
            slice_of(shapes[s].naxes, shapes[s].x, shapes[s].y, shapes[s].z, shapes[s].closed);
        arrivals a;
        network_new(&a, &slice, 1, 2, 1, (int64_t)slice.nchips * slice.nchips);
        int64_t message = 0;
        for (int32_t src = 0; src < slice.nchips; src++) {
            for (int32_t dst = 0; dst < slice.nchips; dst++) {
                const int64_t start = pod_packets_now(a.packets);
                cr_assert_eq(pod_packets_send(a.packets, src, dst, 0, (unsigned)dst, message, NULL),
                             POD_OK);
                while (pod_packets_waiting(a.packets) > 0) {
                    pod_packets_step(a.packets);
                }
                cr_expect_eq(a.at[message] - start, 5 * (hops_of(&slice, src, dst) + 1) + 2,
                             "%s: %d to %d", slice.name, src, dst);
                message++;
            }
        }
        network_free(&a);
    }
}

/* Many more packets than fit, in queues of one flit and with the fewest virtual channels: a circle of queues that wait
 * for each other would never end. */
Test(packets, every_packet_arrives)
{
    enum { EACH = 100, MOST_CYCLES = 100000 };
    for (int s = 0; s < SHAPES; s++) {
        for (int vcs = 2; vcs < 9; vcs += 3) {
            const pod_slice slice =
                slice_of(shapes[s].naxes, shapes[s].x, shapes[s].y, shapes[s].z, shapes[s].closed);
            const int64_t count = (int64_t)slice.nchips * EACH;
            int64_t hops = 0;
            int64_t carried = 0;
            arrivals a;
            network_new(&a, &slice, 2, vcs, 1, count);
            for (int64_t i = 0; i < count; i++) {
                const int32_t src = (int32_t)(i % slice.nchips);
                const int32_t dst =
                    (int32_t)pod_rng_below(7, 1, (uint64_t)i, (uint64_t)slice.nchips);
                const unsigned ties = (unsigned)pod_rng_below(7, 2, (uint64_t)i, 8);
                cr_assert_eq(pod_packets_send(a.packets, src, dst, (int)(i / slice.nchips % 2),
                                              ties, i, NULL),
                             POD_OK);
                hops += hops_of(&slice, src, dst);
            }
            while (pod_packets_waiting(a.packets) > 0 && pod_packets_now(a.packets) < MOST_CYCLES) {
                pod_packets_step(a.packets);
            }
            cr_expect_eq(a.count, count, "%s, %d channels: %ld of %ld arrive", slice.name, vcs,
                         (long)a.count, (long)count);
            for (int32_t chip = 0; chip < slice.nchips; chip++) {
                for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
                    carried += pod_packets_carried(a.packets, chip, direction);
                }
            }
            cr_expect_eq(carried, hops, "%s: a way that is not the shortest", slice.name);
            network_free(&a);
        }
    }
}

/* A link carries a flit a cycle once queues are long enough for the way of a credit: a stream of n packets over one hop
 * takes n cycles, a packet's latency, and what arbiters lose until they take turns. */
Test(packets, a_stream_takes_a_cycle_a_packet)
{
    enum { COUNT = 1000 };
    const pod_slice slice = slice_of(2, 4, 1, 1, 0);
    arrivals a;
    network_new(&a, &slice, 1, 8, 8, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(pod_packets_send(a.packets, 0, 1, 0, 0, i, NULL), POD_OK);
    }
    while (pod_packets_waiting(a.packets) > 0) {
        pod_packets_step(a.packets);
    }
    const int64_t least = COUNT - 1 + 5 * 2 + 2;
    cr_expect(a.at[COUNT - 1] >= least && a.at[COUNT - 1] < least + 5, "%ld",
              (long)a.at[COUNT - 1]);
    network_free(&a);
}

/* Three neighbours send to chip (2, 1) of a mesh: what comes from them has the one virtual channel to it in turn. */
Test(packets, those_that_share_an_output_take_turns)
{
    enum { EACH = 40, SOURCES = 3 };
    static const int32_t sources[SOURCES] = {2, 4, 8};
    const pod_slice slice = slice_of(2, 3, 3, 1, 0);
    arrivals a;
    network_new(&a, &slice, 1, 1, 8, (int64_t)SOURCES * EACH);
    for (int64_t i = 0; i < SOURCES * EACH; i++) {
        cr_assert_eq(pod_packets_send(a.packets, sources[i % SOURCES], 5, 0, 0, i, NULL), POD_OK);
    }
    while (pod_packets_waiting(a.packets) > 0) {
        pod_packets_step(a.packets);
    }
    const int64_t round_cycles = a.at[SOURCES * EACH - 1] / EACH;
    for (int64_t i = 0; i < SOURCES * EACH; i++) {
        const int64_t first = a.at[i - i % SOURCES];
        cr_expect_leq(llabs(a.at[i] - first), 2 * round_cycles, "packet %d: %d and %d", (int)i,
                      (int)a.at[i], (int)first);
    }
    network_free(&a);
}

Test(packets, what_it_cannot_be_is_refused)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7);
    pod_packets *packets = NULL;
    pod_packets_options options = {.slice = &slice, .ends = 1, .vcs = 1, .buffer = 8};
    cr_expect_eq(pod_packets_new(&options, &packets, NULL), POD_E_USAGE);
    options.vcs = POD_PACKETS_VCS_MAX + 1;
    cr_expect_eq(pod_packets_new(&options, &packets, NULL), POD_E_USAGE);
    options.vcs = 8;
    options.buffer = 0;
    cr_expect_eq(pod_packets_new(&options, &packets, NULL), POD_E_USAGE);
    options.buffer = 8;
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 0, 0, NULL), POD_OK);
    cr_expect_eq(pod_packets_new(&options, &packets, NULL), POD_E_INVALID);
    slice = slice_of(3, 8, 8, 16, 7);
    cr_expect_eq(pod_packets_new(&options, &packets, NULL), POD_E_INVALID);
    cr_expect_null(packets);
}

/* The largest of each is taken: 8x8x8, 32 virtual channels, queues of 1024 flits; one of each on a mesh. */
Test(packets, limits_are_what_still_works)
{
    static const struct {
        int32_t side;
        unsigned closed;
        int vcs, buffer;
    } limits[] = {
        {8, 7, 2,                   1                     },
        {2, 0, 1,                   1                     },
        {3, 7, POD_PACKETS_VCS_MAX, 1                     },
        {3, 0, 1,                   POD_PACKETS_BUFFER_MAX},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const int32_t side = limits[i].side;
        const pod_slice slice = slice_of(3, side, side, side, limits[i].closed);
        arrivals a;
        network_new(&a, &slice, POD_DIRECTIONS, limits[i].vcs, limits[i].buffer, slice.nchips);
        for (int32_t chip = 0; chip < slice.nchips; chip++) {
            const int32_t dst = slice.nchips - 1 - chip;
            cr_assert_eq(
                pod_packets_send(a.packets, chip, dst, chip % POD_DIRECTIONS, 0, chip, NULL),
                POD_OK);
        }
        while (pod_packets_waiting(a.packets) > 0 && pod_packets_now(a.packets) < 10000) {
            pod_packets_step(a.packets);
        }
        cr_expect_eq(a.count, slice.nchips, "case %zu: %ld arrive", i, (long)a.count);
        network_free(&a);
    }
    pod_slice slice = slice_of(3, 2, 2, 2, 0);
    pod_packets_options options = {
        .slice = &slice, .ends = 1, .vcs = 1, .buffer = POD_PACKETS_BUFFER_MAX + 1};
    cr_expect_eq(pod_packets_check(&options, NULL), POD_E_USAGE);
    options.buffer = 1;
    cr_expect_eq(pod_packets_check(&options, NULL), POD_OK);
    options.vcs = 0;
    cr_expect_eq(pod_packets_check(&options, NULL), POD_E_USAGE);
    options.vcs = 1;
    slice.nslices = 2;
    cr_expect_eq(pod_packets_check(&options, NULL), POD_E_INVALID);
}

/* More packets than a first piece of memory holds. */
static pod_status sends_many(void *context)
{
    const pod_packets_options *options = context;
    pod_packets *packets = NULL;
    pod_status st = pod_packets_new(options, &packets, NULL);
    for (int64_t i = 0; i < 5000 && st == POD_OK; i++) {
        st = pod_packets_send(packets, 0, 3, 0, 0, i, NULL);
    }
    pod_packets_free(packets);
    return st;
}

Test(packets, need_memory_for_routers_and_queues)
{
    const pod_slice slice = slice_of(2, 4, 2, 1, 1);
    pod_packets_options options = {.slice = &slice, .ends = 1, .vcs = 2, .buffer = 2};
    cr_expect_gt(every_allocation_fails(sends_many, &options), 16);
}
