/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over several slices on the simulated machine. */
#include "dcn_fixture.h"

#include <math.h>
#include <string.h>

#include "../sample.h"

static const char *const names[] = {"auto", "hier", "hier_serial", "flat", "routed"};

static void run_all(joined *j, int64_t bytes)
{
    int ran = 0;
    for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const pod_coll_algorithm *a = NULL;
            j->request.op = (pod_coll_op)op;
            if (i > 0
                && (pod_coll_algorithm_find(names[i], &a, NULL) != POD_OK
                    || !pod_coll_algorithm_fits(a, &j->request))) {
                continue;
            }
            joined_run(j, (pod_coll_op)op, names[i], bytes, true);
            ran++;
        }
    }
    cr_assert_eq(ran, 6 + 2 * 5 + 4 + 2);
}

Test(sim_dcn, moves_the_right_numbers)
{
    static const struct {
        int32_t x, y, slices;
        unsigned closed;
        double oversubscription;
    } cases[] = {
        {1, 1, 2, 0, 1.0},
        {4, 2, 2, 0, 1.0},
        {4, 4, 3, 3, 1.0},
        {3, 3, 4, 0, 2.0}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        joined joined_case;
        joined *j = &joined_case;
        joined_init(j, cases[i].x, cases[i].y, cases[i].closed, cases[i].slices,
                    cases[i].oversubscription);
        int32_t *source_of = calloc((size_t)j->group.size, sizeof *source_of);
        for (int32_t rank = 0; rank < j->group.size; rank++) {
            source_of[rank] = rank % 3 == 1 ? -1 : (rank * 7 + 3) % j->group.size;
        }
        j->request.source_of = source_of;
        j->request.root = j->group.size / 2;
        run_all(j, 6000);
        run_all(j, 2);
        free(source_of);
        joined_fini(j);
    }
}

/* joined_run simulates these once more, one server for all, and wants the same time. */
Test(sim_dcn, one_server_stands_for_all_that_do_the_same)
{
    static const int32_t slices[] = {2, 3, 5};
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                      POD_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        joined joined_case;
        joined *j = &joined_case;
        joined_init(j, 8, 4, 3, slices[i], i == 1 ? 2.0 : 1.0);
        const int64_t chip_bytes = (int64_t)j->group.size * j->request.element_bytes;
        j->request.equal_blocks = true;
        for (size_t op = 0; op < sizeof ops / sizeof *ops; op++) {
            pod_coll_schedule *schedule = NULL;
            const pod_coll_algorithm *hier = NULL;
            joined_run(j, ops[op], "hier", 4000 * chip_bytes, false);
            joined_run(j, ops[op], "hier_serial", 3 * chip_bytes, true);
            OK(pod_coll_algorithm_find("hier", &hier, &j->err));
            OK(hier->build(&j->request, &schedule, &j->err));
            cr_assert(schedule->uniform, "%s", pod_coll_op_name(ops[op]));
            pod_coll_schedule_free(schedule);
        }
        joined_fini(j);
    }
}

static double us(pod_time_ps time_ps)
{
    return pod_time_to_us(time_ps);
}

/* Time of a collective inside one slice alone, in us. */
static double inside_us(joined *j, pod_coll_op op, const char *name, int64_t bytes)
{
    const pod_coll_request whole = j->request;
    const pod_machine machine = j->machine;
    j->request.group = &j->inside;
    j->machine.dcn = NULL;
    const double time_us = us(joined_run(j, op, name, bytes, false).time_ps);
    j->request = whole;
    j->machine = machine;
    return time_us;
}

/* The closed form: reduce-scatter inside, exchange, all-gather inside, one after the other. On a closed
 * 16x16 every chip takes in 255/256 of the vector over 4 links of 45 GB/s, 16 hops of 1 us away; of its host's
 * cards it has 3.125 GB/s; S = 2 swaps runs in one flight of 50 us, more slices need two. */
Test(sim_dcn, takes_the_sum_of_the_phases_within_two_percent)
{
    int number = 0;
    for (int32_t slices = 2; slices <= 5; slices++) {
        joined joined_case;
        joined *j = &joined_case;
        joined_init(j, 16, 16, 3, slices, 1.0);
        j->machine.fold_slices = true;
        for (int64_t bytes = 1 << 24; bytes <= 1 << 30; bytes <<= 3) {
            if (!sample_takes(number++, 4)) {
                continue;
            }
            const double run = (double)bytes / 256.0;
            const double dcn = 2.0 * (slices - 1) / slices * run / 3.125e9 * 1e6;
            const double phase = (double)bytes * 255.0 / 256.0 / (4.0 * 45e9) * 1e6 + 16.0;
            const double expected = 2.0 * phase + dcn + (slices == 2 ? 50.0 : 100.0);
            const double took =
                us(joined_run(j, POD_ALL_REDUCE, "hier_serial", bytes, false).time_ps);
            const double chunked = us(joined_run(j, POD_ALL_REDUCE, "hier", bytes, false).time_ps);
            cr_assert_float_eq(took / expected, 1.0, 0.02, "%d slices, %lld bytes: %.3f, not %.3f",
                               slices, (long long)bytes, took, expected);
            cr_assert_leq(chunked, 1.001 * took, "%d slices, %lld bytes: %.3f, serial %.3f", slices,
                          (long long)bytes, chunked, took);
        }
        joined_fini(j);
    }
}

/* On open groups reducing and gathering load different links most; predictions add both up. */
Test(sim_dcn, predicts_what_it_simulates)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 4, 8, 0, 4, 1.0);
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    int number = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        for (int64_t bytes = 1 << 12; bytes <= 1 << 28; bytes <<= 4) {
            if (!sample_takes(number++, 4)) {
                continue;
            }
            const pod_coll_algorithm *a = NULL;
            pod_coll_prediction p;
            j->request.op = ops[i];
            j->request.elements = bytes / 2;
            OK(pod_coll_choose(&j->request, &a, &p, &j->err));
            const double took = us(joined_run(j, ops[i], a->name, bytes, false).time_ps);
            cr_assert_float_eq(us(p.total_ps) / took, 1.0, 0.25, "%s of %lld bytes: %.3f, not %.3f",
                               pod_coll_op_name(ops[i]), (long long)bytes, took, us(p.total_ps));
        }
    }
    joined_fini(j);
}

/* Every slice does the same, so one can stand for all, but for blocks that differ by an element. */
Test(sim_dcn, takes_the_same_time_when_slices_are_folded)
{
    static const struct {
        int32_t x, y;
        unsigned closed;
        double oversubscription;
    } cases[] = {
        {4, 4, 3, 1.0},
        {4, 8, 0, 1.0},
        {3, 2, 0, 4.0}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        joined joined_case;
        joined *j = &joined_case;
        joined_init(j, cases[i].x, cases[i].y, cases[i].closed, 3, cases[i].oversubscription);
        for (int op = 0; op < POD_PERMUTE; op++) { /* a broadcast has a root */
            for (int64_t bytes = 2000; bytes < 1 << 23; bytes *= 31) {
                j->machine.fold_slices = false;
                const pod_run_result whole = joined_run(j, (pod_coll_op)op, "hier", bytes, false);
                j->machine.fold_slices = true;
                const pod_run_result folded = joined_run(j, (pod_coll_op)op, "hier", bytes, false);
                cr_assert_float_eq(us(whole.time_ps) / us(folded.time_ps), 1.0, 1e-4,
                                   "%s of %lld bytes: %.6f and %.6f us",
                                   pod_coll_op_name((pod_coll_op)op), (long long)bytes,
                                   us(whole.time_ps), us(folded.time_ps));
                cr_assert_float_eq((double)whole.links.dcn_bytes,
                                   3.0 * (double)folded.links.dcn_bytes,
                                   0.01 * (double)whole.links.dcn_bytes);
            }
        }
        joined_fini(j);
    }
}

/* One chip with its share of a server stands for 256. */
Test(sim_dcn, folds_servers_with_their_share_of_the_rates)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 16, 16, 3, 4, 1.0);
    j->machine.fold_slices = true;
    const double whole = us(joined_run(j, POD_ALL_REDUCE, "hier_serial", 1 << 26, false).time_ps);
    for (int32_t period = 1; period <= 8; period *= 2) {
        j->machine.period[0] = period;
        j->machine.period[1] = period;
        cr_assert(pod_machine_folds(&j->machine));
        const double took =
            us(joined_run(j, POD_ALL_REDUCE, "hier_serial", 1 << 26, false).time_ps);
        cr_assert_float_eq(took / whole, 1.0, 1e-4, "period %d: %.3f, not %.3f", period, took,
                           whole);
    }
    j->dcn.options.server_dims[0] = 3;
    cr_assert_not(pod_machine_folds(&j->machine));
    joined_fini(j);
}

/* 1 chip of slice 0 to its twin: the PCIe decides; all chips of a server at once: the NICs do. */
Test(sim_dcn, shares_cards_fairly_and_pcie_not_at_all)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 4, 2, 0, 2, 1.0);
    int32_t source_of[16];
    for (int32_t rank = 0; rank < 16; rank++) {
        source_of[rank] = rank == 8 ? 0 : -1;
    }
    j->request.source_of = source_of;
    const pod_run_result one = joined_run(j, POD_PERMUTE, "routed", 15000000, true);
    cr_assert_float_eq(us(one.time_ps), 50.0 + 1000.0, 0.001);
    cr_assert_eq(one.links.dcn_bytes, 15000000);
    cr_assert_eq(one.links.dcn_busiest_slice, 0);
    for (int32_t rank = 8; rank < 16; rank++) {
        source_of[rank] = rank - 8;
    }
    const pod_run_result all = joined_run(j, POD_PERMUTE, "routed", 3125000, true);
    cr_assert_float_eq(us(all.time_ps), 50.0 + 1000.0, 0.001);
    cr_assert_float_eq(us(all.links.dcn_busy_ps), 1000.0, 0.001);
    joined_fini(j);
}

Test(sim_dcn, slows_down_by_an_oversubscribed_fabric)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 4, 4, 0, 2, 4.0);
    int32_t source_of[32];
    for (int32_t rank = 0; rank < 32; rank++) {
        source_of[rank] = (rank + 16) % 32;
    }
    j->request.source_of = source_of;
    const pod_run_result result = joined_run(j, POD_PERMUTE, "routed", 3125000, true);
    cr_assert_float_eq(us(result.time_ps), 50.0 + 4000.0, 0.001);
    joined_fini(j);
}

static double with_fault(pod_dcn_fault_kind kind, const char *text)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 8, 4, 0, 2, 1.0);
    if (text) {
        OK(pod_dcn_fault_add(&j->dcn, kind, text, &j->err));
    }
    joined_run(j, POD_ALL_REDUCE, "hier", 1 << 12, true);
    const double took = us(joined_run(j, POD_ALL_REDUCE, "hier_serial", 1 << 24, false).time_ps);
    joined_fini(j);
    return took;
}

static void check_slower(double took, double healthy, double most)
{
    cr_assert_leq(took - healthy, 1.01 * most, "%.3f after %.3f", took, healthy);
    cr_assert_geq(took - healthy, 0.75 * most, "%.3f after %.3f", took, healthy);
}

/* 2^24 bytes: runs of 524,288 bytes take 167.772 us at a chip's 3.125 GB/s. They come in parts, the first of which
 * crosses while others are reduced. */
Test(sim_dcn, waits_for_a_slow_host_a_slow_card_and_a_lost_path)
{
    const double run_us = (1 << 24) / 32.0 / 3.125e9 * 1e6;
    const double healthy = with_fault(POD_DCN_NIC_SLOW, NULL);
    check_slower(with_fault(POD_DCN_NIC_SLOW, "1:6:3"), healthy, 2.0 * run_us);
    check_slower(with_fault(POD_DCN_HOST_SLOW, "0:0:2"), healthy, run_us);
    /* twice the chips on the NICs of the server beside it */
    check_slower(with_fault(POD_DCN_PATH_LOST, "1:2"), healthy, run_us);
}

Test(sim_dcn, costs_at_most_a_flight_when_the_network_is_infinitely_fast)
{
    joined joined_case;
    joined *j = &joined_case;
    joined_init(j, 4, 4, 3, 2, 1.0);
    j->dcn.options.nic_bytes_per_s = 1e18;
    j->dcn.options.pcie_bytes_per_s = 1e18;
    const double one = inside_us(j, POD_REDUCE_SCATTER, "bucket", 1 << 26)
                       + inside_us(j, POD_ALL_GATHER, "bucket", 1 << 26);
    const double two = us(joined_run(j, POD_ALL_REDUCE, "hier", 1 << 26, false).time_ps);
    cr_assert(two > 0.98 * one && two < one + 50.0, "%.3f, alone %.3f", two, one);
    joined_fini(j);
}
