/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static pod_status try_setup(world *w, pod_experiment_setup_request request)
{
    pod_experiment_setup setup;
    request.rates = POD_RATES_BOOK;
    const pod_status st = pod_experiment_setup_init(&setup, &request, &w->tables, &w->err);
    pod_experiment_setup_fini(&setup);
    return st;
}

Test(setup, machine_and_requests_hold_the_figures_of_the_slice)
{
    world world_, *w = &world_;
    world_init(w, "2*v5p:4x4x4");
    cr_expect_eq(pod_experiment_setup_chips(&w->setup), 128);
    cr_expect(w->setup.listed);
    cr_expect_eq(pod_experiment_setup_faults(&w->setup), 0);
    const pod_machine machine = pod_experiment_machine(&w->experiment, &w->setup, 45e9, US(5));
    cr_expect_eq(machine.slice, &w->setup.slice);
    cr_expect_eq(machine.dcn, &w->setup.dcn, "several slices are joined");
    cr_expect_eq(machine.link_bytes_per_s, 45e9);
    cr_expect_eq(machine.hop_latency_ps, US(1));
    cr_expect_eq(machine.launch_ps, US(5));
    const pod_coll_request request =
        pod_experiment_coll_request(&w->setup, NULL, 90e9, POD_ALL_GATHER, 4096, POD_DTYPE_F32);
    cr_expect_eq(request.elements, 1024);
    cr_expect_eq(request.element_bytes, 4);
    cr_expect_eq(request.link_rate.bytes_per_s, 90e9);
    cr_expect_eq(request.hop_latency_ps, US(1));
    cr_expect_eq(request.dcn, &w->setup.dcn);
    world_fini(w);
}

Test(setup, one_slice_has_no_dcn)
{
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    cr_expect_null(pod_experiment_machine(&w->experiment, &w->setup, 90e9, 0).dcn);
    world_fini(w);
}

Test(setup, faults_are_counted_and_left_out_for_comparison)
{
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    static const char *const links[] = {"0,0,0:+x", "1,1,1:+z"};
    static const char *const nics[] = {"0:0:2"};
    const pod_experiment_setup_request request = {
        .slice = "2*v5p:4x4x4",
        .rates = POD_RATES_BOOK,
        .fail_links = {.count = 2, .text = links},
        .slow_nics = {.count = 1, .text = nics },
    };
    pod_experiment_setup setup;
    pod_experiment_setup healthy;
    OK(pod_experiment_setup_init(&setup, &request, &w->tables, &w->err));
    cr_expect_eq(pod_experiment_setup_faults(&setup), 3);
    OK(pod_experiment_setup_changed(&healthy, &setup, POD_FAULTS_NONE, 0, &w->err));
    cr_expect_eq(pod_experiment_setup_faults(&healthy), 0);
    cr_expect_eq(pod_router_hops(setup.router, 0, 1), 3, "around the dead cable");
    cr_expect_eq(pod_router_hops(healthy.router, 0, 1), 1);
    pod_experiment_setup_fini(&healthy);
    pod_experiment_setup_fini(&setup);
    world_fini(w);
}

Test(setup, says_what_is_wrong)
{
    static const char *const bad_key[] = {"nosuch=1"};
    static const char *const nic[] = {"0:0:2"};
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    cr_expect_eq(try_setup(w, (pod_experiment_setup_request){.slice = "v9:4x4"}), POD_E_USAGE);
    cr_expect_eq(try_setup(w, (pod_experiment_setup_request){.slice = "v5e:0x4"}), POD_E_INVALID);
    cr_expect_eq(try_setup(w,
                           (pod_experiment_setup_request){
                               .slice = "v5e:4x4", .settings = {1, bad_key}
    }),
                 POD_E_USAGE);
    cr_expect_eq(try_setup(w,
                           (pod_experiment_setup_request){
                               .slice = "v5e:4x4", .slow_nics = {1, nic}
    }),
                 POD_E_INVALID, "a single slice's network cards have nothing to do");
    world_fini(w);
}

/* 20 hours of a link at 90 GB/s are 6.48e15 bytes, of 64 chips together. */
Test(setup, sizes_that_keep_a_link_busy_for_more_than_20_hours_are_refused)
{
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    const int64_t most = INT64_C(6480000000000000) / 64;
    cr_expect_eq(pod_experiment_bytes_check(&w->setup, 90e9, most, &w->err), POD_OK);
    cr_expect_eq(pod_experiment_bytes_check(&w->setup, 90e9, most + 1, &w->err), POD_E_RANGE);
    world_fini(w);
}
