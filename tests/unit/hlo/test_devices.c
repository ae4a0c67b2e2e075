/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hlo/devices.h"

static pod_slice slice_of(int32_t x, int32_t y)
{
    static const bool wrap[POD_AXES] = {true, true, false};
    const int32_t dims[POD_AXES] = {x, y, 1};
    pod_slice slice;
    cr_assert_eq(pod_slice_make("v5e", 2, dims, wrap, false, &slice, NULL), POD_OK);
    return slice;
}

Test(hlo_devices, reads_an_order_in_the_notation_of_podsim_mesh)
{
    static const char *const lists[] = {"0 2 1 3", " 0\t2\n1  3\n",
                                        "0:0 0:2 0:1 0:3 1:0 1:2 1:1 1:3",
                                        "1:0 0:0 1:2 0:2 0:1 1:1 0:3 1:3"};
    static const int32_t order[] = {0, 2, 1, 3};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        pod_hlo_devices devices;
        pod_error err = {0};
        cr_assert(pod_hlo_is_device_list(lists[i]));
        cr_assert_eq(pod_hlo_devices_parse(&devices, lists[i], "--device-order", 4, &err), POD_OK,
                     "%s: %s", lists[i], err.text);
        cr_assert_eq(memcmp(devices.chip, order, sizeof order), 0, "%s", lists[i]);
        cr_assert_str_eq(pod_hlo_order_name(devices.order), "given");
        pod_hlo_devices_fini(&devices);
    }
    cr_assert_not(pod_hlo_is_device_list("order.txt"));
    cr_assert_not(pod_hlo_is_device_list(""));
}

Test(hlo_devices, refuses_orders_that_are_not_the_program_s)
{
    static const struct {
        const char *list;
        pod_status status;
        const char *says;
    } wrong[] = {
        {"0 1 2",                           POD_E_INVALID, "3 devices of slice 0; the program has 4"},
        {"0 1 2 3 0",                       POD_E_INVALID, "more devices than the 4 partitions"     },
        {"0 1 1 3",                         POD_E_INVALID, "chip 1 twice"                           },
        {"0 1 2 4",                         POD_E_INVALID, "device 0:4; the program has 4"          },
        {"0:0 0:1 0:2 0:3 1:0 1:2 1:1 1:3", POD_E_INVALID, "another order than slice 0"             },
        {"1:0 1:1 1:2 1:3",                 POD_E_INVALID, "slice 1 has its chips in another order" },
        {"0 1: 2 3",                        POD_E_USAGE,   "not an order of devices"                },
        {"0 1:2:3 2 3",                     POD_E_USAGE,   "not an order of devices"                },
        {"   ",                             POD_E_USAGE,   "not an order of devices"                },
        {"99999999999999999999 1 2 3",      POD_E_INVALID, "chips 0 to 3"                           },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_hlo_devices devices;
        pod_error err = {0};
        cr_assert_eq(pod_hlo_devices_parse(&devices, wrong[i].list, "--device-order", 4, &err),
                     wrong[i].status, "%s", wrong[i].list);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "%s: %s", wrong[i].list, err.text);
        cr_assert_null(devices.chip);
    }
}

static const char text[] =
    "HloModule m, is_scheduled=true, num_partitions=16\nENTRY e {\n  a = f32[64] parameter(0)\n"
    "  b = f32[64] all-to-all(a), replica_groups=mesh['x'=4,'y'=4] {'x'}, dimensions={0}\n"
    "  c = f32[64] all-to-all(b), replica_groups={{0,5,10,15},{1,6,11,12},{2,7,8,13},{3,4,9,14}}, "
    "dimensions={0}\n"
    "  ROOT d = f32[64] collective-permute(c), source_target_pairs={{0,1},{1,2},{5,0}}\n}\n";

/* A program whose partition p is chip 4 (p mod 4) + p / 4 of 4x4: its columns become rows, whole axes. */
Test(hlo_devices, makes_groups_of_partitions_groups_of_chips)
{
    pod_hlo_module *module = module_of(text);
    pod_hlo_analysis analysis = analysis_of(module);
    const pod_slice slice = slice_of(4, 4);
    const pod_hlo_groups_pool *pool = &analysis.collectives.pool;
    pod_hlo_devices plain;
    pod_hlo_devices turned;
    pod_group group;
    cr_assert_eq(pod_hlo_devices_init(&plain, 16, NULL), POD_OK);
    cr_assert_eq(
        pod_hlo_devices_parse(&turned, "0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 15", "x", 16, NULL),
        POD_OK);
    /* partitions 0 4 8 12 are a column of chips: axis y */
    cr_assert_eq(pod_hlo_groups_on_chips(pool, 0, &plain, &slice, &group, NULL), POD_OK);
    cr_assert_eq(group.ndims, 1);
    cr_assert_eq(group.dim[0].axis, 1);
    cr_assert_eq(group.dim[0].size, 4);
    cr_assert(group.dim[0].closed);
    pod_group_fini(&group);
    /* chips 0 1 2 3: axis x */
    cr_assert_eq(pod_hlo_groups_on_chips(pool, 0, &turned, &slice, &group, NULL), POD_OK);
    cr_assert_eq(group.ndims, 1);
    cr_assert_eq(group.dim[0].axis, 0);
    pod_group_fini(&group);
    /* diagonals are no grid */
    cr_assert_eq(pod_hlo_groups_on_chips(pool, 1, &plain, &slice, &group, NULL), POD_OK);
    cr_assert_eq(group.ndims, 0);
    cr_assert_eq(group.size, 4);
    pod_group_fini(&group);
    int32_t sources[16];
    pod_hlo_sources_on_chips(pool, 0, &turned, sources);
    for (int32_t chip = 0; chip < 16; chip++) {
        /* partitions 0, 1, 2, 5 are chips 0, 4, 8, 5 */
        const int32_t right = chip == 4 ? 0 : chip == 8 ? 4 : chip == 0 ? 5 : -1;
        cr_assert_eq(sources[chip], right, "chip %d", (int)chip);
    }
    pod_hlo_devices_fini(&turned);
    pod_hlo_devices_fini(&plain);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
}

/* ---- the same groups in every form, and the same chips in another order of devices ---- */

typedef struct written {
    const char *groups;
    const char *order; /* NULL = chip numbers */
} written;

static void groups_and_facts(const written *w, pod_group *group, pod_text *list)
{
    pod_text program = {0};
    const pod_slice slice = slice_of(4, 2);
    pod_text_printf(&program,
                    HEAD "ENTRY e {\n  a = f32[64] parameter(0)\n"
                         "  ROOT b = f32[64] all-to-all(a), replica_groups=%s, dimensions={0}\n}\n",
                    w->groups);
    pod_hlo_module *module = module_of(program.data);
    pod_hlo_analysis analysis = analysis_of(module);
    pod_hlo_facts facts;
    pod_hlo_devices devices;
    cr_assert_eq(pod_hlo_facts_init(&facts, &analysis, NULL), POD_OK);
    cr_assert_eq(w->order == NULL ? pod_hlo_devices_init(&devices, 8, NULL)
                                  : pod_hlo_devices_parse(&devices, w->order, "order", 8, NULL),
                 POD_OK);
    cr_assert_eq(
        pod_hlo_groups_on_chips(&analysis.collectives.pool, 0, &devices, &slice, group, NULL),
        POD_OK);
    pod_text_append(list, facts.collectives.data, facts.collectives.size);
    pod_hlo_devices_fini(&devices);
    pod_hlo_facts_fini(&facts);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
    pod_text_free(&program);
}

Test(hlo_devices, make_the_same_of_the_same_groups_in_every_form)
{
    static const written forms[] = {
        {"{{0,4},{1,5},{2,6},{3,7}}",                             NULL             },
        {"{{5,1},{7,3},{4,0},{2,6}}",                             NULL             },
        {"[4,2]<=[2,4]T(1,0)",                                    NULL             },
        {"mesh['a'=2,'b'=4] {'a'}",                               NULL             },
        {"mesh['b'=4,'a'=2], device_ids=([2,4]T(1,0)) {'a'}",     NULL             },
        {"mesh['b'=4,'a'=2], device_ids=(0,4,1,5,2,6,3,7) {'a'}", NULL             },
        {"mesh['c'=8] {'c':(1)2}",                                NULL             },
 /* devices turned: partition p is chip 7 - p, or every second one first */
        {"{{0,4},{1,5},{2,6},{3,7}}",                             "7 6 5 4 3 2 1 0"},
        {"[4,2]<=[8]",                                            "0 4 1 5 2 6 3 7"},
        {"{{0,2},{1,3},{4,6},{5,7}}",                             "0 1 4 5 2 3 6 7"},
    };
    pod_group first;
    pod_text right = {0};
    groups_and_facts(&forms[0], &first, &right);
    cr_assert_str_eq(right.data, "all-to-all:sync:256:2x4:1");
    cr_assert_eq(first.ndims, 1);
    cr_assert_eq(first.dim[0].axis, 1);
    for (size_t i = 1; i < sizeof forms / sizeof forms[0]; i++) {
        pod_group group;
        pod_text list = {0};
        groups_and_facts(&forms[i], &group, &list);
        cr_assert_str_eq(list.data, right.data, "%s", forms[i].groups);
        cr_assert_eq(group.ndims, 1, "%s", forms[i].groups);
        cr_assert_eq(group.dim[0].axis, 1);
        cr_assert_eq(memcmp(group.chip_of, first.chip_of, 8 * sizeof *group.chip_of), 0);
        pod_text_free(&list);
        pod_group_fini(&group);
    }
    pod_text_free(&right);
    pod_group_fini(&first);
}

Test(hlo_devices, takes_the_order_of_a_mesh)
{
    pod_slice slice = slice_of(4, 4);
    slice.nslices = 2;
    pod_logical_mesh logical;
    pod_mesh mesh;
    pod_error err = {0};
    pod_hlo_devices devices;
    cr_assert_eq(pod_logical_mesh_parse("data=4,tensor=4", "data=2", &logical, &err), POD_OK, "%s",
                 err.text);
    cr_assert_eq(pod_mesh_init(&mesh, &slice, &logical, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_hlo_devices_init_mesh(&devices, &mesh, 16, &err), POD_OK, "%s", err.text);
    int32_t next = 0;
    for (int32_t i = 0; i < mesh.ndevices; i++) {
        if (mesh.device[i].slice == 0) {
            cr_assert_eq(devices.chip[next++], mesh.device[i].chip);
        }
    }
    cr_assert_eq(next, 16);
    cr_assert_str_eq(pod_hlo_order_name(devices.order), "mesh");
    pod_hlo_devices_fini(&devices);
    cr_assert_eq(pod_hlo_devices_init_mesh(&devices, &mesh, 8, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "16 devices in a slice; the program has 8") != NULL, "%s", err.text);
    pod_mesh_fini(&mesh);
}
