/* SPDX-License-Identifier: Apache-2.0 */
/* Placements by hand, and the search over all of them. */
#include "make.h"

static pod_placement placement_from(const char *text, const pod_slice *slice, int32_t cores)
{
    pod_placement placement;
    pod_error err = {0};
    cr_assert_eq(pod_placement_parse(text, slice, cores, &placement, &err), POD_OK, "%s", err.text);
    return placement;
}

Test(mesh_placement, prints_what_it_parses)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"tensor:x,data:yz",          "tensor:x,data:yz"         },
        {"tensor:x[2],data:x[2@2]yz", "tensor:x[2],data:x[2@2]yz"},
        {"tensor:zx",                 "tensor:zx"                },
        {"tensor:x[4]",               "tensor:x"                 },
        {"tensor:x[2@2]x[2]",         "tensor:x"                 },
        {"tensor:x[2]x[2@2]",         "tensor:x[2]x[2@2]"        },
        {"tensor:x[1]y",              "tensor:y"                 },
    };
    const pod_slice slice = slice_from("v5p:4x4x4", "xyz");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[POD_MESH_TEXT_MAX];
        const pod_placement placement = placement_from(cases[i].text, &slice, 1);
        pod_placement_print(&placement, &slice, 1, text, sizeof text);
        cr_expect_str_eq(text, cases[i].printed);
    }
}

Test(mesh_placement, refuses_what_is_no_placement)
{
    static const struct {
        const char *text;
        pod_status status;
        const char *says;
    } cases[] = {
        {"",              POD_E_USAGE,   "no AXIS:PARTS"      },
        {"tensor",        POD_E_USAGE,   "no AXIS:PARTS"      },
        {"tensor:",       POD_E_USAGE,   "without parts"      },
        {"tensor:x,",     POD_E_USAGE,   "no AXIS:PARTS"      },
        {"tensr:x",       POD_E_USAGE,   "'tensor'"           },
        {"data:x,data:y", POD_E_USAGE,   "data twice"         },
        {"data:w",        POD_E_USAGE,   "'w' is no physical" },
        {"data:x[",       POD_E_USAGE,   "no number"          },
        {"data:x[2",      POD_E_USAGE,   "']' is missing"     },
        {"data:x[2@]",    POD_E_USAGE,   "no number"          },
        {"data:x[0]",     POD_E_USAGE,   "out of range"       },
        {"data:x[3]",     POD_E_INVALID, "does not fit axis x"},
        {"data:x[4@2]",   POD_E_INVALID, "does not fit axis x"},
        {"data:z",        POD_E_INVALID, "no axis z"          },
        {"data:c",        POD_E_INVALID, "no axis c"          },
    };
    const pod_slice slice = slice_from("v6e:4x4", "none");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_placement placement;
        pod_error err = {0};
        cr_expect_eq(pod_placement_parse(cases[i].text, &slice, 1, &placement, &err),
                     cases[i].status, "'%s': %s", cases[i].text, err.text);
        cr_expect_not_null(strstr(err.text, cases[i].says), "'%s': %s", cases[i].text, err.text);
    }
}

static char *placed_ids(const char *slice_text, const char *mesh, const char *placement)
{
    const pod_slice slice = slice_from(slice_text, "xyz");
    const pod_placement by_hand = placement_from(placement, &slice, 1);
    const pod_logical_mesh logical = logical_from(mesh, NULL);
    pod_mesh laid;
    pod_error err = {0};
    cr_assert_eq(pod_mesh_init_placed(&laid, &slice, &logical, &by_hand, &err), POD_OK, "%s",
                 err.text);
    char *ids = ids_text(&laid);
    pod_mesh_fini(&laid);
    return ids;
}

Test(mesh_placement, lays_devices_where_it_says)
{
    static const struct {
        const char *slice, *mesh, *placement, *ids;
    } cases[] = {
        {"v6e:2x2", "data=2,tensor=2", "tensor:x,data:y",          "0 1 2 3"        },
        {"v6e:2x2", "data=2,tensor=2", "tensor:y,data:x",          "0 2 1 3"        },
        {"v6e:2x2", "data=4",          "data:xy",                  "0 2 1 3"        },
        {"v6e:2x2", "data=4",          "data:yx",                  "0 1 2 3"        },
        {"v6e:4x1", "data=2,tensor=2", "tensor:x[2],data:x[2@2]",  "0 1 2 3"        },
        {"v6e:4x1", "data=2,tensor=2", "data:x[2],tensor:x[2@2]",  "0 2 1 3"        },
        {"v6e:4x2", "data=4,tensor=2", "data:yx[2@2],tensor:x[2]", "0 1 2 3 4 5 6 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *ids = placed_ids(cases[i].slice, cases[i].mesh, cases[i].placement);
        cr_expect_str_eq(ids, cases[i].ids, "%s: %s", cases[i].placement, ids);
        free(ids);
    }
}

Test(mesh_placement, refuses_parts_that_do_not_make_the_mesh)
{
    static const struct {
        const char *mesh, *placement, *says;
    } cases[] = {
        {"data=16,tensor=4", "data:xy",                              "gives tensor 1 devices, the mesh 4"},
        {"data=16,tensor=4", "data:x,tensor:y",                      "gives data 4 devices"              },
        {"data=16,tensor=4", "data:xy,tensor:y",                     "two parts at stride 1 of axis y"   },
        {"data=16,tensor=4", "data:xy[2@2]z[2],tensor:z[2@2]x[2]",
         "two parts at stride 1 of axis x"                                                               },
        {"data=16,tensor=4", "data:xy[2@2]z[2],tensor:z[2@2]y[2@2]",
         "nothing at stride 1 of axis y"                                                                 },
        {"data=64",          "data:xyz,tensor:x",                    "does not have"                     },
    };
    const pod_slice slice = slice_from("v5p:4x4x4", "xyz");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_placement placement = placement_from(cases[i].placement, &slice, 1);
        const pod_logical_mesh logical = logical_from(cases[i].mesh, NULL);
        pod_mesh laid;
        pod_error err = {0};
        cr_expect_eq(pod_mesh_init_placed(&laid, &slice, &logical, &placement, &err), POD_E_INVALID,
                     "%s", cases[i].placement);
        cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].placement, err.text);
    }
}

/** All placements as text, one a line; every one must lay, and no two alike. */
static char *list_text(const pod_slice *slice, const char *mesh, bool split_axes, int *count)
{
    pod_logical_mesh logical = logical_from(mesh, NULL);
    logical.split_axes = split_axes;
    pod_placement *list;
    cr_assert_eq(pod_placement_list(slice, &logical, &list, count, NULL), POD_OK);
    char *all = calloc((size_t)*count + 1, POD_MESH_TEXT_MAX);
    for (int i = 0; i < *count; i++) {
        char text[POD_MESH_TEXT_MAX];
        pod_mesh laid;
        pod_error err = {0};
        pod_placement_print(&list[i], slice, 1, text, sizeof text - 1);
        strcat(text, "\n");
        cr_expect_null(strstr(all, text), "twice: %s", text);
        strcat(all, text);
        cr_expect_eq(pod_mesh_init_placed(&laid, slice, &logical, &list[i], &err), POD_OK, "%s: %s",
                     text, err.text);
        pod_mesh_fini(&laid);
    }
    free(list);
    return all;
}

static void expect_list(const char *slice_text, const char *wrap, const char *mesh, bool split_axes,
                        const char *wanted)
{
    int count;
    const pod_slice slice = slice_from(slice_text, wrap);
    char *all = list_text(&slice, mesh, split_axes, &count);
    cr_expect_str_eq(all, wanted, "%s %s:\n%s", slice_text, mesh, all);
    free(all);
}

Test(mesh_placement, lists_all_whole_axes_once)
{
    expect_list("v5p:4x4x4", "xyz", "data=4,tensor=16", false, "data:z,tensor:xy\n");
    expect_list("v5p:4x4x4", "xy", "data=4,tensor=16", false,
                "data:z,tensor:xy\ndata:y,tensor:xz\n");
    expect_list("v5p:4x4x8", "xyz", "data=4,tensor=32", false, "data:y,tensor:xz\n");
    expect_list("v4:4x4x8_twisted", "xyz", "data=4,tensor=32", false,
                "data:y,tensor:xz\ndata:x,tensor:yz\n");
    expect_list("v5p:4x4x16", "xyz", "data=16,tensor=16", false,
                "data:z,tensor:xy\ndata:xy,tensor:z\n");
    expect_list("v5p:4x4x4", "xyz", "data=2,tensor=32", false, "");
    expect_list("v6e:1x1", "none", "data=1", false, "\n");
}

Test(mesh_placement, lists_all_parts_of_axes_in_every_nesting)
{
    expect_list("v6e:4x1", "x", "data=2,tensor=2", true,
                "data:x[2@2],tensor:x[2]\ndata:x[2],tensor:x[2@2]\n");
    expect_list("v6e:4x2", "none", "data=2,tensor=4", true,
                "data:y,tensor:x\n"
                "data:x[2@2],tensor:x[2]y\n"
                "data:x[2],tensor:x[2@2]y\n");
}

Test(mesh_placement, lists_what_jax_would_choose)
{
    static const char *const meshes[] = {"data=64,tensor=4", "data=2,tensor=128",
                                         "data=4,fsdp=4,tensor=16"};
    const pod_slice slice = slice_from("v6e:16x16", "y");
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        int count;
        char text[POD_MESH_TEXT_MAX];
        char *all = list_text(&slice, meshes[i], true, &count);
        pod_mesh mesh = mesh_on(&slice, meshes[i], NULL, true);
        pod_placement placement = {.naxes = mesh.naxes};
        for (int l = 0; l < mesh.naxes; l++) {
            placement.axis[l] = mesh.axis[l].axis;
            placement.parts[l] = mesh.axis[l].parts;
        }
        pod_placement_print(&placement, &slice, 1, text, sizeof text);
        cr_expect_not_null(strstr(all, text), "%s", text);
        free(all);
        pod_mesh_fini(&mesh);
    }
}
