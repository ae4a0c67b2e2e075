/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "../dcn_options.h"

static pod_dcn dcn_of(int32_t nslices, int32_t x, int32_t y, double oversubscription)
{
    const pod_dcn_options options = v5e_dcn_options(nslices, x, y, oversubscription);
    pod_dcn dcn;
    pod_error err = {0};
    cr_assert_eq(pod_dcn_init(&dcn, &options, &err), POD_OK, "%s", err.text);
    return dcn;
}

Test(dcn, cuts_a_slice_into_hosts_and_servers)
{
    const pod_dcn dcn = dcn_of(2, 16, 16, 1.0);
    cr_assert_eq(dcn.nchips, 256);
    cr_assert_eq(dcn.nservers, 32);
    cr_assert_eq(pod_dcn_server(&dcn, 0), 0);
    cr_assert_eq(pod_dcn_server(&dcn, 3 + 16), 0);
    cr_assert_eq(pod_dcn_server(&dcn, 4), 1);
    cr_assert_eq(pod_dcn_server(&dcn, 2 * 16), 4);
    cr_assert_eq(pod_dcn_server_first(&dcn, 5), 4 + 2 * 16);
    cr_assert_eq(pod_dcn_server_last(&dcn, 5), 7 + 3 * 16);
    cr_assert_eq(dcn.nhosts, 64);
    cr_assert_eq(pod_dcn_host(&dcn, 1 + 16), 0);
    cr_assert_eq(pod_dcn_host(&dcn, 2), 1);
    cr_assert_eq(pod_dcn_host(&dcn, 2 * 16), 8);
    for (int32_t chip = 0; chip < dcn.nchips; chip++) {
        cr_assert_eq(pod_dcn_server_of(&dcn, pod_dcn_host(&dcn, chip)), pod_dcn_server(&dcn, chip));
    }
    char text[40];
    cr_assert_str_eq(pod_dcn_server_text(&dcn, 5, text, sizeof text), "hosts 10 and 11");
    /* 6.4 Tbit/s a pod of 256 chips, as the vendor says */
    cr_assert_float_eq(pod_dcn_slice_bytes_per_s(&dcn, 1), 6.4e12 / 8, 1.0);
}

Test(dcn, gives_every_chip_one_server_that_counts_it)
{
    static const int32_t shapes[][2] = {
        {1,  1 },
        {2,  2 },
        {3,  5 },
        {4,  2 },
        {4,  8 },
        {6,  3 },
        {16, 16}
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const pod_dcn dcn = dcn_of(2, shapes[i][0], shapes[i][1], 1.0);
        int32_t chips = 0;
        for (int32_t server = 0; server < dcn.nservers; server++) {
            int32_t members = 0;
            int32_t first = INT32_MAX;
            for (int32_t chip = 0; chip < dcn.nchips; chip++) {
                const bool here = pod_dcn_server(&dcn, chip) == server;
                members += here ? 1 : 0;
                first = here && chip < first ? chip : first;
            }
            cr_assert_eq(members, pod_dcn_server_chips(&dcn, server));
            cr_assert_eq(first, pod_dcn_server_first(&dcn, server));
            cr_assert_float_eq(pod_dcn_nic_bytes_per_s(&dcn, 0, server), 3.125e9 * members, 1e-3);
            chips += members;
        }
        cr_assert_eq(chips, dcn.nchips);
    }
}

Test(dcn, limits_a_slice_by_an_oversubscribed_uplink)
{
    const pod_dcn plain = dcn_of(2, 4, 8, 1.0);
    const pod_dcn over = dcn_of(2, 4, 8, 4.0);
    cr_assert(isinf(pod_dcn_uplink_bytes_per_s(&plain, 0)));
    cr_assert_float_eq(pod_dcn_slice_bytes_per_s(&plain, 0), 1e11, 1e-3);
    cr_assert_float_eq(pod_dcn_slice_bytes_per_s(&over, 0), 2.5e10, 1e-3);
}

Test(dcn, slows_what_a_fault_names_and_nothing_else)
{
    pod_dcn dcn = dcn_of(2, 4, 8, 1.0);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_HOST_SLOW, "1:4:4", NULL), POD_OK);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_NIC_SLOW, "0:3:2.5", NULL), POD_OK);
    cr_assert_float_eq(pod_dcn_nic_bytes_per_s(&dcn, 1, 2), 25e9 / 4, 1e-3);
    cr_assert_float_eq(pod_dcn_pcie_bytes_per_s(&dcn, 1, 4 * 4), 15e9 / 4, 1e-3);
    cr_assert_float_eq(pod_dcn_pcie_bytes_per_s(&dcn, 1, 4 * 4 + 2), 15e9, 1e-3);
    cr_assert_float_eq(pod_dcn_host_slowness(&dcn, 1, 4), 4.0, 0.0);
    cr_assert_float_eq(pod_dcn_host_slowness(&dcn, 1, 5), 1.0, 0.0);
    cr_assert_float_eq(pod_dcn_nic_bytes_per_s(&dcn, 0, 1), 1e10, 1e-3);
    cr_assert_float_eq(pod_dcn_pcie_bytes_per_s(&dcn, 0, 8), 15e9, 1e-3);
    cr_assert_float_eq(pod_dcn_host_slowness(&dcn, 0, 3), 1.0, 0.0);
    cr_assert_float_eq(pod_dcn_nic_bytes_per_s(&dcn, 0, 2), 25e9, 1e-3);
}

Test(dcn, sends_the_chips_of_a_lost_path_by_the_nearest_server)
{
    pod_dcn dcn = dcn_of(2, 8, 4, 1.0); /* servers 0 1 / 2 3; hosts 0 1 2 3 / 4 5 6 7 */
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "1:1", NULL), POD_OK);
    cr_assert_eq(pod_dcn_exit(&dcn, 0, 9), 9);
    cr_assert_eq(pod_dcn_exit(&dcn, 1, 9), 9 + 4);
    cr_assert_eq(pod_dcn_exit(&dcn, 1, 13), 13);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "1:2", NULL), POD_OK);
    cr_assert_eq(pod_dcn_exit(&dcn, 1, 9), 9 + 2 * 8);
    cr_assert_float_eq(pod_dcn_slice_bytes_per_s(&dcn, 1), 50e9, 1e-3);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "1:2", NULL), POD_OK);
    cr_assert_eq(dcn.nfaults, 2);
}

Test(dcn, refuses_what_makes_no_sense)
{
    pod_dcn dcn = dcn_of(2, 4, 4, 1.0);
    pod_error err = {0};
    static const char *const wrong[] = {"",      "1",     "1:2",     "1:0:0.5",
                                        "1:0:x", "x:0:2", "1:0:2:3", "1:0:nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_NIC_SLOW, wrong[i], NULL), POD_E_USAGE, "%s",
                     wrong[i]);
    }
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "0:0:2", NULL), POD_E_USAGE);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_NIC_SLOW, "2:0:2", &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "slices 0 to 1"));
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_NIC_SLOW, "0:4:2", NULL), POD_E_INVALID);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "0:0", NULL), POD_OK);
    cr_assert_eq(pod_dcn_fault_add(&dcn, POD_DCN_PATH_LOST, "0:2", NULL), POD_E_INVALID);
    pod_dcn_options options = dcn.options;
    options.oversubscription = 0.5;
    cr_assert_eq(pod_dcn_init(&dcn, &options, NULL), POD_E_INVALID);
    options.oversubscription = 1.0;
    options.latency_ps = 0;
    cr_assert_eq(pod_dcn_init(&dcn, &options, NULL), POD_E_INVALID);
    options.latency_ps = POD_PS_PER_US;
    options.dims[1] = 0;
    cr_assert_eq(pod_dcn_init(&dcn, &options, NULL), POD_E_INVALID);
    options.dims[1] = INT32_MAX;
    cr_assert_eq(pod_dcn_init(&dcn, &options, NULL), POD_E_RANGE);
}
