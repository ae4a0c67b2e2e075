/* SPDX-License-Identifier: Apache-2.0 */
/* All meshes that JAX lays on a slice. */
#include "make.h"

#include "mesh/search.h"

static void expect_meshes(const char *slice_text, const char *mesh, int nrest, bool split_axes,
                          const char *wanted)
{
    const pod_slice slice = slice_from(slice_text, "none");
    pod_logical_mesh wish = logical_from(mesh, NULL);
    pod_logical_mesh *list;
    int count;
    char all[1024] = "";
    wish.split_axes = split_axes;
    for (int l = 0; l < nrest; l++) {
        wish.size[l] = POD_MESH_REST;
    }
    cr_assert_eq(pod_logical_mesh_list(&slice, &wish, 1, &list, &count, NULL), POD_OK);
    for (int i = 0; i < count; i++) {
        char text[POD_MESH_TEXT_MAX];
        pod_logical_mesh_compact(&list[i]);
        strcat(all, pod_logical_mesh_print(&list[i], text, sizeof text));
        strcat(all, i + 1 < count ? " " : "");
    }
    free(list);
    cr_expect_str_eq(all, wanted, "%s %s: %s", slice_text, mesh, all);
}

Test(mesh_search, lists_all_meshes_that_jax_lays)
{
    expect_meshes("v5p:4x4x4", "data=1,tensor=1", 2, false,
                  "tensor=64 data=4,tensor=16 data=16,tensor=4 data=64");
    expect_meshes("v5p:2x2x4", "data=1,tensor=1", 2, false,
                  "tensor=16 data=2,tensor=8 data=4,tensor=4 data=8,tensor=2 data=16");
    expect_meshes("v5p:4x4x4", "data=1,fsdp=1,tensor=4", 2, false,
                  "fsdp=16,tensor=4 data=4,fsdp=4,tensor=4 data=16,tensor=4");
    expect_meshes("v6e:4x4", "data=1,tensor=1", 2, true,
                  "tensor=16 data=2,tensor=8 data=4,tensor=4 data=8,tensor=2 data=16");
    expect_meshes("v6e:4x4", "data=1,tensor=3", 1, true, "");
    expect_meshes("v6e:1x1", "data=1,tensor=1", 2, true, "tensor=1");
}

Test(mesh_search, lists_only_what_can_be_laid)
{
    const pod_slice slice = slice_from("v5p:4x8x8", "xyz");
    pod_logical_mesh wish = logical_from("data=1,fsdp=1,tensor=1", NULL);
    pod_logical_mesh *list;
    int count;
    for (int l = 0; l < wish.naxes; l++) {
        wish.size[l] = POD_MESH_REST;
    }
    cr_assert_eq(pod_logical_mesh_list(&slice, &wish, 1, &list, &count, NULL), POD_OK);
    cr_expect_gt(count, 0);
    for (int i = 0; i < count; i++) {
        pod_mesh mesh;
        cr_expect_eq(pod_mesh_init(&mesh, &slice, &list[i], NULL), POD_OK);
        pod_mesh_fini(&mesh);
    }
    free(list);
}
