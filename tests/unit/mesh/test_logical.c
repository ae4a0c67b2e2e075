/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes as users write them: what is read, filled in and refused. */
#include "make.h"

static void expect_print(const char *mesh, const char *dcn_mesh, const char *inside,
                         const char *across)
{
    char text[POD_MESH_TEXT_MAX];
    const pod_logical_mesh logical = logical_from(mesh, dcn_mesh);
    cr_expect_str_eq(pod_logical_mesh_print(&logical, text, sizeof text), inside);
    cr_expect_str_eq(pod_logical_mesh_print_dcn(&logical, text, sizeof text), across);
}

Test(mesh_logical, prints_what_it_parses)
{
    expect_print("fsdp=16,tensor=4", NULL, "fsdp=16,tensor=4", "");
    expect_print("tensor=4,fsdp=16", "", "tensor=4,fsdp=16", "");
    expect_print("fsdp=16,tensor=-1", "fsdp=2", "fsdp=16,tensor=-1", "fsdp=2");
    expect_print("fsdp=8,tensor=4", "data=2", "fsdp=8,tensor=4", "data=2");
    expect_print("data=1", "data=2", "data=1", "data=2");
}

Test(mesh_logical, puts_axes_that_only_span_slices_in_front)
{
    const pod_logical_mesh logical = logical_from("fsdp=8,tensor=4", "tensor=2,pipeline=3,data=5");
    const pod_mesh_axis axes[] = {POD_MESH_PIPELINE, POD_MESH_DATA, POD_MESH_FSDP, POD_MESH_TENSOR};
    const int32_t sizes[] = {1, 1, 8, 4};
    const int32_t dcn_sizes[] = {3, 5, 1, 2};
    cr_assert_eq(logical.naxes, 4);
    for (int i = 0; i < logical.naxes; i++) {
        cr_expect_eq(logical.axis[i], axes[i]);
        cr_expect_eq(logical.size[i], sizes[i]);
        cr_expect_eq(logical.dcn_size[i], dcn_sizes[i]);
    }
}

Test(mesh_logical, refuses_what_is_no_mesh)
{
    static const struct {
        const char *mesh, *dcn_mesh;
        pod_status status;
        const char *says;
    } cases[] = {
        {"",                                    NULL,            POD_E_USAGE,   "no AXIS=N"                  },
        {"data",                                NULL,            POD_E_USAGE,   "no AXIS=N"                  },
        {"data=4,",                             NULL,            POD_E_USAGE,   "no AXIS=N"                  },
        {"data=",                               NULL,            POD_E_USAGE,   "no size"                    },
        {"=4",                                  NULL,            POD_E_USAGE,   "no name of a mesh axis"     },
        {"4=4",                                 NULL,            POD_E_USAGE,   "no name of a mesh axis"     },
        {"a b=4",                               NULL,            POD_E_USAGE,   "no name of a mesh axis"     },
        {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=4", NULL,            POD_E_USAGE,   "more than 8 axes"           },
        {"data=4,data=2",                       NULL,            POD_E_USAGE,   "--mesh names data twice"    },
        {"data=4",                              "fsdp=1,fsdp=2", POD_E_USAGE,   "--dcn-mesh names fsdp twice"},
        {"data=4x",                             NULL,            POD_E_USAGE,   "4x"                         },
        {"data=-1,fsdp=-1",                     NULL,            POD_E_USAGE,   "to data and to fsdp"        },
        {"data=0",                              NULL,            POD_E_INVALID, "at least 1"                 },
        {"data=-2",                             NULL,            POD_E_INVALID, "at least 1"                 },
        {"data=4",                              "data=0",        POD_E_INVALID, "--dcn-mesh"                 },
        {"data=4294967296",                     NULL,            POD_E_RANGE,   "larger than any slice"      },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_logical_mesh logical;
        pod_error err = {0};
        cr_expect_eq(pod_logical_mesh_parse(cases[i].mesh, cases[i].dcn_mesh, &logical, &err),
                     cases[i].status, "'%s': %s", cases[i].mesh, err.text);
        cr_expect_not_null(strstr(err.text, cases[i].says), "'%s': %s", cases[i].mesh, err.text);
    }
}

Test(mesh_logical, takes_any_names_and_keeps_them)
{
    pod_logical_mesh logical = logical_from("x_batch=4,dp=2,data=-1", "pods=2,x_batch=3");
    char text[POD_MESH_TEXT_MAX];
    int index;
    pod_error err = {0};
    cr_expect_str_eq(pod_logical_mesh_print(&logical, text, sizeof text), "x_batch=4,dp=2,data=-1");
    cr_expect_str_eq(pod_logical_mesh_print_dcn(&logical, text, sizeof text), "pods=2,x_batch=3");
    cr_expect_eq(pod_logical_mesh_axis_find(&logical, "--axis", "data", 4, &index, &err), POD_OK);
    cr_expect_eq(index, 3); /* by name, though dp means data, too */
    cr_expect_eq(pod_logical_mesh_axis_find(&logical, "--axis", "zero", 4, &index, &err),
                 POD_E_USAGE);
    err = (pod_error){0};
    cr_expect_eq(pod_logical_mesh_axis_find(&logical, "--axis", "x_bach", 6, &index, &err),
                 POD_E_USAGE);
    cr_expect_not_null(strstr(err.text, "did you mean x_batch?"), "%s", err.text);
    logical = logical_from("dp=4,tp=2", "data=2");
    cr_expect_eq(logical.naxes, 2);
    cr_expect_eq(logical.dcn_size[0], 2);
    cr_expect_eq(pod_logical_mesh_axis_find(&logical, "--axis", "tensor", 6, &index, &err), POD_OK);
    cr_expect_eq(index, 1);
}

Test(mesh_logical, of_a_step_has_axes_that_mean_something)
{
    pod_error err = {0};
    char text[POD_MESH_TEXT_MAX];
    pod_logical_mesh logical = logical_from("dp=4,mdl=2", NULL);
    cr_expect_eq(pod_logical_mesh_meant(&logical, &err), POD_OK);
    cr_expect_str_eq(pod_logical_mesh_print(&logical, text, sizeof text), "data=4,tensor=2");
    logical = logical_from("tensr=4", NULL);
    cr_expect_eq(pod_logical_mesh_meant(&logical, &err), POD_E_USAGE);
    cr_expect_not_null(strstr(err.text, "did you mean 'tensor'"), "%s", err.text);
    err = (pod_error){0};
    logical = logical_from("dp=4,data=2", NULL);
    cr_expect_eq(pod_logical_mesh_meant(&logical, &err), POD_E_USAGE);
    cr_expect_not_null(strstr(err.text, "names data twice (dp, data)"), "%s", err.text);
}

Test(mesh_logical, gives_the_rest_to_minus_one)
{
    const pod_slice slice = slice_from("3*v5p:4x4x4", "xyz");
    pod_logical_mesh logical = logical_from("fsdp=-1,tensor=4", "data=-1");
    cr_assert_eq(pod_logical_mesh_resolve(&logical, &slice, NULL), POD_OK);
    cr_expect_eq(logical.size[1], 16);
    cr_expect_eq(logical.dcn_size[0], 3);
}

static void expect_refused(const char *slice_text, const char *wrap, const char *mesh,
                           const char *dcn_mesh, bool split_axes, const char *text)
{
    const pod_slice slice = slice_from(slice_text, wrap);
    pod_logical_mesh logical = logical_from(mesh, dcn_mesh);
    logical.split_axes = split_axes;
    pod_mesh laid;
    pod_error err = {0};
    cr_expect_eq(pod_mesh_init(&laid, &slice, &logical, &err), POD_E_INVALID);
    cr_expect_str_eq(err.text, text);
}

Test(mesh_logical, refuses_a_wrong_product_with_the_nearest_mesh)
{
    expect_refused("v5p:4x4x4", "xyz", "data=63", NULL, false,
                   "wrong product: data=63 does not multiply to the 64 chips of v5p:4x4x4; "
                   "data=64 works");
    expect_refused("v6e:4x4", "none", "data=5,tensor=3", NULL, false,
                   "wrong product: data=5,tensor=3 does not multiply to the 16 chips of v6e:4x4; "
                   "data=4,tensor=4 works");
    expect_refused("v5p:4x4x4", "xyz", "data=-1,tensor=3", NULL, true,
                   "wrong product: data=-1,tensor=3 does not multiply to the 64 chips of "
                   "v5p:4x4x4; data=16,tensor=4 works");
    expect_refused("v5p:4x4x4", "xyz", "data=2147483647,tensor=2147483647,fsdp=2147483647", NULL,
                   true,
                   "wrong product: data=2147483647,tensor=2147483647,fsdp=2147483647 does not "
                   "multiply to the 64 chips of v5p:4x4x4; data=2,tensor=2,fsdp=16 works");
}

Test(mesh_logical, suggests_no_axis_that_was_not_asked_for)
{
    expect_refused(
        "2*v5e:4x4", "none", "fsdp=8", "data=2", true,
        "wrong product: fsdp=8 does not multiply to the 16 chips of one slice of v5e:4x4; "
        "fsdp=16 works");
}

Test(mesh_logical, refuses_slices_that_the_mesh_does_not_span)
{
    expect_refused("2*v6e:4x4", "none", "data=16", NULL, false,
                   "wrong product: v6e:4x4 has 2 slices, but the mesh spans one; add a --dcn-mesh "
                   "such as data=2");
    expect_refused("2*v6e:4x4", "none", "data=16", "data=3", false,
                   "wrong product: --dcn-mesh data=3 does not multiply to the 2 slices of v6e:4x4; "
                   "data=2 works");
    expect_refused("v6e:4x4", "none", "data=16", "data=2", false,
                   "wrong product: --dcn-mesh data=2 does not multiply to the 1 slice of v6e:4x4; "
                   "data=1 works");
}

Test(mesh_logical, refuses_a_split_with_the_nearest_whole_mesh)
{
    expect_refused("v5p:4x4x4", "xyz", "data=2,tensor=32", NULL, false,
                   "axis needs a split: tensor=32 is no product of whole axes of v5p:4x4x4 that "
                   "later mesh axes left; --split-axes allows parts of axes, and data=4,tensor=16 "
                   "works without");
}

Test(mesh_logical, refuses_what_cannot_be_contiguous)
{
    const pod_slice slice = slice_from("v4:4x4x4", "xyz");
    const pod_slice flat = slice_from("v4:2x4x4", "none");
    pod_logical_mesh logical = logical_from("data=4,tensor=16", NULL);
    logical.contiguous = true;
    pod_mesh laid;
    pod_error err = {0};
    cr_expect_eq(pod_mesh_init(&laid, &slice, &logical, &err), POD_E_INVALID);
    cr_expect_str_eq(err.text, "not contiguous: JAX has no layout of data=4,tensor=16 on v4:4x4x4 "
                               "that keeps hosts together; leave out --contiguous, or use "
                               "data=16,tensor=4, which works");
    logical = logical_from("data=2,tensor=16", NULL);
    logical.contiguous = true;
    pod_error_clear(&err);
    cr_expect_eq(pod_mesh_init(&laid, &flat, &logical, &err), POD_E_INVALID);
    cr_expect_not_null(strstr(err.text, "no mesh of these axes works with it"), "%s", err.text);
    logical.dcn_size[0] = 2;
    cr_expect_eq(pod_mesh_init(&laid, &slice, &logical, NULL), POD_E_INVALID);
}

Test(mesh_logical, refuses_cores_of_chips_that_are_one_device)
{
    const pod_slice slice = slice_from("v5p:2x2x1", "none");
    pod_logical_mesh logical = logical_from("data=8", NULL);
    logical.cores = true;
    pod_mesh laid;
    pod_error err = {0};
    cr_expect_eq(pod_mesh_init(&laid, &slice, &logical, &err), POD_E_INVALID);
    cr_expect_not_null(strstr(err.text, "chips with two devices"), "%s", err.text);
}
