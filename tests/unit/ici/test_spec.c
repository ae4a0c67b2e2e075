/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ici/group.h"
#include "ici/spec.h"

#include "../generations.h"
#include "make.h"

static pod_table *table_of_text(const char *text)
{
    pod_table *table = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_table_parse("t.csv", text, strlen(text), &table, &err), POD_OK, "%s",
                 err.text);
    return table;
}

static pod_slice_catalog *catalog_load(void)
{
    pod_table *chips = own_table("topologies/chips.csv");
    pod_table *table = own_table("topologies/slices.csv");
    pod_slice_catalog *catalog = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_slice_catalog_load(chips, table, &catalog, &err), POD_OK, "%s:%d:%d: %s",
                 err.file, err.line, err.column, err.text);
    pod_table_free(table);
    pod_table_free(chips);
    return catalog;
}

static pod_slice parse(const pod_slice_catalog *catalog, const char *text, bool *listed)
{
    pod_slice slice;
    pod_error err = {0};
    cr_assert_eq(pod_slice_parse(catalog, text, &slice, listed, &err), POD_OK, "%s: %s", text,
                 err.text);
    return slice;
}

Test(ici_spec, reads_specs_and_types)
{
    static const struct {
        const char *text, *name;
        int32_t nslices, nchips, nhosts;
        unsigned closed;
        bool twisted, listed;
    } cases[] = {
        {"v5p:4x4x4",              "v5p:4x4x4",              1, 64,    16,   7, false, true },
        {"V5P:4X4x4",              "v5p:4x4x4",              1, 64,    16,   7, false, true },
        {"v5p:4x4x8",              "v5p:4x4x8",              1, 128,   32,   7, true,  true },
        {"v5p:4x4x8_twisted",      "v5p:4x4x8",              1, 128,   32,   7, true,  true },
        {"v5p:4x4x8_untwisted",    "v5p:4x4x8_untwisted",    1, 128,   32,   7, false, true },
        {"v5p-256",                "v5p:4x4x8",              1, 128,   32,   7, true,  true },
        {"v5p-512",                "v5p:4x8x8",              1, 256,   64,   7, true,  true },
        {"v4:4x4x8",               "v4:4x4x8",               1, 128,   32,   7, false, true },
        {"v4-256",                 "v4:4x4x8",               1, 128,   32,   7, false, true },
        {"v4:4x4x8_twisted",       "v4:4x4x8_twisted",       1, 128,   32,   7, true,  true },
        {"v4:4x4x8_untwisted",     "v4:4x4x8",               1, 128,   32,   7, false, true },
        {"v4-128",                 "v4:4x4x4",               1, 64,    16,   7, false, true },
        {"tpu7x:4x4x8",            "tpu7x:4x4x8",            1, 128,   32,   7, false, true },
        {"tpu7x:4x4x8_twisted",    "tpu7x:4x4x8_twisted",    1, 128,   32,   7, true,  true },
        {"tpu7x-128",              "tpu7x:4x4x4",            1, 64,    16,   7, false, true },
        {"v7-2",                   "tpu7x:1x1x1",            1, 1,     1,    0, false, true },
        {"v7:2x2x1",               "tpu7x:2x2x1",            1, 4,     1,    0, false, true },
        {"v5litepod-16",           "v5e:4x4",                1, 16,    4,    0, false, true },
        {"v5e-16",                 "v5e:4x4",                1, 16,    4,    0, false, true },
        {"v5litepod:2x8",          "v5e:2x8",                1, 16,    4,    0, false, true },
        {"v6e-16",                 "v6e:4x4",                1, 16,    4,    0, false, true },
        {"v6e-256",                "v6e:16x16",              1, 256,   64,   3, false, true },
        {"v6e:8x16",               "v6e:8x16",               1, 128,   32,   2, false, true },
        {"2*v6e:16x16",            "2*v6e:16x16",            2, 256,   64,   3, false, true },
        {"1*v6e:16x16",            "v6e:16x16",              1, 256,   64,   3, false, true },
        {"3*v5p-128",              "3*v5p:4x4x4",            3, 64,    16,   7, false, true },
        {"v2-512",                 "v2:16x16",               1, 256,   64,   3, false, true },
        {"v3:16x16",               "v3:16x16",               1, 256,   64,   0, false, true },
        {"v3-2048",                "v3:32x32",               1, 1024,  256,  3, false, true },
        {"v5p:12x12x24",           "v5p:12x12x24",           1, 3456,  864,  7, true,  true },
        {"v5p:16x20x28",           "v5p:16x20x28",           1, 8960,  2240, 7, false, true },
        {"v5p-8",                  "v5p:2x2x1",              1, 4,     1,    0, false, true },
 /* By rule: shapes of no table. */
        {"v5e:16x4",               "v5e:16x4",               1, 64,    16,   1, false, false},
        {"v5e:16",                 "v5e:16x1",               1, 16,    8,    1, false, false},
        {"v5e:3x3",                "v5e:3x3",                1, 9,     4,    0, false, false},
        {"v5e:1x4",                "v5e:1x4",                1, 4,     2,    0, false, false},
        {"v6e:32x32",              "v6e:32x32",              1, 1024,  256,  0, false, false},
        {"v4:3x5x2",               "v4:3x5x2",               1, 30,    12,   0, false, false},
        {"v4:8",                   "v4:8x1x1",               1, 8,     4,    0, false, false},
        {"v5p:4x8",                "v5p:4x8x1",              1, 32,    8,    0, false, false},
        {"v5p:8x4x4",              "v5p:8x4x4",              1, 128,   32,   7, false, false},
        {"v5p:4x8x4",              "v5p:4x8x4",              1, 128,   32,   7, false, false},
        {"v5p:20x20x40",           "v5p:20x20x40",           1, 16000, 4000, 7, true,  false},
        {"v5p:20x20x40_untwisted", "v5p:20x20x40_untwisted", 1, 16000, 4000, 7, false, false},
        {"v4:20x20x40_twisted",    "v4:20x20x40_twisted",    1, 16000, 4000, 7, true,  false},
        {"v2:32x32",               "v2:32x32",               1, 1024,  256,  0, false, false},
    };
    pod_slice_catalog *catalog = catalog_load();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool listed = false;
        pod_slice slice = parse(catalog, cases[i].text, &listed);
        cr_expect_str_eq(slice.name, cases[i].name, "%s is %s", cases[i].text, slice.name);
        cr_expect_eq(slice.nslices, cases[i].nslices, "%s", cases[i].text);
        cr_expect_eq(slice.nchips, cases[i].nchips, "%s", cases[i].text);
        cr_expect_eq(slice.nhosts, cases[i].nhosts, "%s: %d hosts", cases[i].text,
                     (int)slice.nhosts);
        cr_expect_eq(pod_slice_closed_axes(&slice), cases[i].closed, "%s", cases[i].text);
        cr_expect_eq(slice.twisted, cases[i].twisted, "%s", cases[i].text);
        cr_expect_eq(listed, cases[i].listed, "%s", cases[i].text);
        /* Names read back to the same slice. */
        pod_slice again = parse(catalog, slice.name, &listed);
        cr_expect_str_eq(again.name, slice.name);
        cr_expect_eq(again.twisted, slice.twisted);
        cr_expect_eq(again.nslices, slice.nslices);
    }
    pod_slice_catalog_free(catalog);
}

Test(ici_spec, refuses_what_is_no_slice)
{
    // clang-format off
    static const struct {
        const char *text;
        pod_status status;
        const char *message;
    } cases[] = {
        {"", POD_E_USAGE, "'' is no slice"},
        {"v5p", POD_E_USAGE, "'v5p' is no slice; write CHIP:SHAPE"},
        {"v5q:4x4x4", POD_E_USAGE, "unknown chip 'v5q'"},
        {"v5pp:4x4x4", POD_E_USAGE, "did you mean 'v5p'?"},
        {"h100:4x4", POD_E_USAGE, "unknown chip 'h100'"},
        {":4x4", POD_E_USAGE, "unknown chip"},
        {"v9-16", POD_E_USAGE, "unknown chip 'v9'"},
        {"v5p:", POD_E_INVALID, "is not a shape"},
        {"v5p:x", POD_E_INVALID, "is not a shape"},
        {"v5p:4x", POD_E_INVALID, "is not a shape"},
        {"v5p:4x4x4x", POD_E_INVALID, "is not a shape"},
        {"v5p:4x4x4 ", POD_E_INVALID, "is not a shape"},
        {"v5p:4xfourx4", POD_E_INVALID, "is not a shape"},
        {"v5p:4x4x4junk", POD_E_INVALID, "is not a shape"},
        {"v5p:4.5x4", POD_E_INVALID, "is not a shape"},
        {"v5p:4x4x4x4", POD_E_INVALID, "more axes than a v5p, which has 3"},
        {"v5e:4x4x4", POD_E_INVALID, "more axes than a v5e, which has 2"},
        {"v5e:4x4x1", POD_E_INVALID, "more axes"},
        {"v5p:0x4x4", POD_E_INVALID, "axis of 0"},
        {"v5p:4x4x0", POD_E_INVALID, "axis of 0"},
        {"v5p:-4x4x4", POD_E_INVALID, "less than 0"},
        {"v5p:4x4x8_bent", POD_E_INVALID, "unknown suffix '_bent'"},
        {"v5p:4x4x8_", POD_E_INVALID, "unknown suffix '_'"},
        {"v5p:4x4x8_twisted_twisted", POD_E_INVALID, "unknown suffix"},
        {"v5p:4x4x4_twisted", POD_E_INVALID, "no twisted form"},
        {"v4:8x4x4_twisted", POD_E_INVALID, "no twisted form"},
        {"v4:2x2x4_twisted", POD_E_INVALID, "no twisted form"},
        {"v5e:4x4_twisted", POD_E_INVALID, "no twisted form"},
        {"v5p:99999x99999x99999", POD_E_RANGE, "too large"},
        {"v5p:99999999999999999999999999", POD_E_RANGE, "too large"},
        {"v5p:2147483648", POD_E_RANGE, "too large"},
        {"0*v5p:4x4x4", POD_E_INVALID, "0 slices"},
        {"x*v5p:4x4x4", POD_E_USAGE, "is no slice"},
        {"*v5p:4x4x4", POD_E_USAGE, "is no slice"},
        {"-1*v5p:4x4x4", POD_E_USAGE, "is no slice"},
        {"2*2*v5p:4x4x4", POD_E_USAGE, "unknown chip"},
        {"99999999999*v5p:4x4x4", POD_E_RANGE, "too many slices"},
        {"2000000000*v5p:4x4x4", POD_E_RANGE, "too many"},
        {"v5p-", POD_E_USAGE, "is no slice"},
        {"v5p-12x", POD_E_INVALID, "'12x' is not a shape"},
        {"v5p-100", POD_E_INVALID, "no accelerator type v5p-100; the nearest v5p-64 and v5p-128"},
        {"v5litepod-512", POD_E_INVALID, "the nearest v5litepod-256, or"},
        {"v2-2", POD_E_INVALID, "the nearest v2-8, or"},
        {"v5p-0", POD_E_INVALID, "the nearest v5p-8, or"},
        {"v5p-99999999999999999999", POD_E_INVALID, "the nearest v5p-17920, or"},
    };
    // clang-format on
    pod_slice_catalog *catalog = catalog_load();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_slice slice = {.nchips = 77};
        bool listed = false;
        pod_error err = {0};
        pod_status st = pod_slice_parse(catalog, cases[i].text, &slice, &listed, &err);
        cr_expect_eq(st, cases[i].status, "%s: status %d, %s", cases[i].text, (int)st, err.text);
        cr_expect_not_null(strstr(err.text, cases[i].message), "%s: %s", cases[i].text, err.text);
        cr_expect_eq(slice.nchips, 77);
    }
    char long_text[4096];
    memset(long_text, '4', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    pod_slice slice;
    bool listed = false;
    cr_assert_eq(pod_slice_parse(catalog, long_text, &slice, &listed, NULL), POD_E_USAGE);
    pod_slice_catalog_free(catalog);
}

/* The rules say for every row of slices.csv what the row says, so that shapes by rule are in line
 * with shapes by table. */
Test(ici_spec, has_rules_that_agree_with_every_row)
{
    pod_slice_catalog *catalog = catalog_load();
    cr_assert_eq(pod_slice_catalog_rows(catalog), 249);
    int ntwisted = 0;
    for (int i = 0; i < pod_slice_catalog_rows(catalog); i++) {
        pod_slice slice;
        const char *type = NULL;
        pod_slice_catalog_row(catalog, i, &slice, &type);
        const pod_generation *g = slice.generation;
        cr_assert_not_null(g);
        cr_assert_eq(pod_generation_wrap(g, slice.dims), pod_slice_closed_axes(&slice), "%s",
                     slice.name);
        bool listed = false;
        pod_slice by_name = parse(catalog, slice.name, &listed);
        cr_assert(listed);
        cr_assert_eq(by_name.twisted, slice.twisted, "%s", slice.name);
        bool bare = strchr(slice.name, '_') == NULL;
        bool rule = g->twisted_by_default && pod_generation_can_twist(g, slice.dims);
        cr_assert(!bare || slice.twisted == rule, "%s", slice.name);
        pod_slice by_type = parse(catalog, type, &listed);
        cr_assert_eq(by_type.nchips, slice.nchips, "%s", type);
        ntwisted += slice.twisted ? 1 : 0;
    }
    cr_assert_eq(ntwisted, 10);
    pod_slice_catalog_free(catalog);
}

Test(ici_spec, refuses_a_bad_catalogue_with_position)
{
    static const char header[] =
        "chip,accelerator_type,shape,chips,hosts,wrap,twisted,default,source,note\n";
    // clang-format off
    static const struct {
        const char *rows, *message;
        int line, column;
    } cases[] = {
        {"v9,v9-8,2x2x1,4,1,none,0,1,s,\n", "unknown chip 'v9'", 2, 1},
        {"v4,v4-8,2x2x1x1,4,1,none,0,1,s,\n", "more axes", 2, 0},
        {"v4,v4-8,2x0x1,4,1,none,0,1,s,\n", "axis of 0", 2, 0},
        {"v4,v4-8,2x2x1,5,1,none,0,1,s,\n", "chips is 5; the shape has 4", 2, 0},
        {"v4,v4-8,2x2x1,4,2,none,0,1,s,\n", "hosts is 2; by the rule it has 1", 2, 0},
        {"v4,v4-4,2x2x1,4,1,none,0,1,s,\n", "4 chips of v4 are v4-8", 2, 0},
        {"v4,v4-8,2x2x1,4,1,q,0,1,s,\n", "does not name axes", 2, 0},
        {"v5e,v5litepod-4,2x2,4,1,xyz,0,1,s,\n", "no axis z", 2, 0},
        {"v4,v4-8,2x2x1,4,1,none,1,1,s,\n", "no twisted form", 2, 0},
        {"v4,v4-8,2x2x1,4,1,none,2,1,s,\n", "", 2, 0},
        {"v4,v4-8,2x2x1,4,1,none,0,0,s,\n", "0 default rows", 2, 0},
        {"v4,v4-8,2x2x1,4,1,none,0,1,s,\nv4,v4-8,2x2x1,4,1,none,0,0,s,\n", "again", 3, 0},
        {"v4,v4-8,2x2x1,4,1,none,0,1,s,\nv4,v4-8,4x1x1,4,2,none,0,1,s,\n", "2 default rows", 2, 0},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", header, cases[i].rows);
        pod_table *table = table_of_text(text);
        pod_slice_catalog *catalog = NULL;
        pod_error err = {0};
        pod_table *chips = own_table("topologies/chips.csv");
        pod_status st = pod_slice_catalog_load(chips, table, &catalog, &err);
        pod_table_free(chips);
        cr_expect_neq(st, POD_OK, "%s", cases[i].rows);
        cr_expect_eq(pod_status_exit_code(st), 3, "%s", cases[i].rows);
        cr_expect_not_null(strstr(err.text, cases[i].message), "%s: %s", cases[i].rows, err.text);
        cr_expect_eq(err.line, cases[i].line, "%s: line %d", cases[i].rows, err.line);
        cr_expect_gt(err.column, 0);
        cr_expect_null(catalog);
        pod_table_free(table);
    }
    pod_table *missing = table_of_text("chip,shape\nv4,2x2x1\n");
    pod_slice_catalog *catalog = NULL;
    pod_table *chips = own_table("topologies/chips.csv");
    cr_assert_eq(pod_slice_catalog_load(chips, missing, &catalog, NULL), POD_E_TABLE);
    pod_table_free(chips);
    pod_table_free(missing);
}

Test(ici_spec, tells_files_from_specs)
{
    cr_assert(pod_slice_spec_is_file("my.csv"));
    cr_assert(pod_slice_spec_is_file("MY.CSV"));
    cr_assert(pod_slice_spec_is_file("./slice"));
    cr_assert(pod_slice_spec_is_file("topologies/examples/v5p_cube.csv"));
    cr_assert_not(pod_slice_spec_is_file("v5p:4x4x4"));
    cr_assert_not(pod_slice_spec_is_file("v5p-128"));
    cr_assert_not(pod_slice_spec_is_file(".csv"));
    cr_assert_not(pod_slice_spec_is_file(""));
}

Test(ici_spec, sets_wraps)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    cr_assert_eq(pod_slice_wrap_set(&slice, "xy", NULL), POD_OK);
    cr_assert_eq(pod_slice_closed_axes(&slice), 3U);
    cr_assert_eq(pod_slice_cables(&slice), 32);
    cr_assert_eq(pod_slice_wrap_set(&slice, "y", NULL), POD_OK);
    cr_assert_eq(pod_slice_closed_axes(&slice), 2U);
    cr_assert_eq(pod_slice_wrap_set(&slice, "none", NULL), POD_OK);
    cr_assert_eq(pod_slice_closed_axes(&slice), 0U);
    cr_assert_eq(pod_slice_wrap_set(&slice, "z", NULL), POD_E_INVALID);
    cr_assert_eq(pod_slice_wrap_set(&slice, "w", NULL), POD_E_USAGE);
    pod_slice twisted = slice_of(3, 4, 4, 8, 7, true);
    cr_assert_eq(pod_slice_wrap_set(&twisted, "xyz", NULL), POD_OK);
    cr_assert(twisted.twisted);
    cr_assert_eq(pod_slice_wrap_set(&twisted, "xy", NULL), POD_OK);
    cr_assert(twisted.twisted);
}

Test(ici_spec, keeps_the_cables_that_have_faults)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_DEAD, "3,1,2:+x", NULL), POD_OK);
    pod_error err = {0};
    cr_assert_eq(pod_slice_wrap_set(&slice, "none", &err), POD_E_INVALID);
    cr_assert_not_null(strstr(err.text, "3,1,2:+x"), "%s", err.text);
    cr_assert_eq(pod_slice_closed_axes(&slice), 7U);
    cr_assert_eq(pod_slice_wrap_set(&slice, "x", NULL), POD_OK);
}

Test(ici_spec, reads_faults)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_DEAD, "0,0,0:-x", NULL), POD_OK);
    cr_assert_eq(pod_slice_link_slowness(&slice, 3, 0), 0);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_SLOW, "1,2,3:+z:2.5", NULL), POD_OK);
    cr_assert_eq(pod_slice_link_slowness(&slice, 57, 4), 2.5);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_CHIP_SLOW, "2,2:3", NULL), POD_OK);
    cr_assert_eq(pod_slice_chip_slowness(&slice, 10), 3);
    static const struct {
        pod_fault_kind kind;
        const char *text;
        pod_status status;
    } bad[] = {
        {POD_FAULT_LINK_DEAD, "",                     POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0",                POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0:",               POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0:x",              POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0:+w",             POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0:+x:2",           POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,0,0,0:+x",           POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,,0:+x",              POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,-1,0:+x",            POD_E_USAGE  },
        {POD_FAULT_LINK_DEAD, "0,4,0:+x",             POD_E_INVALID},
        {POD_FAULT_LINK_DEAD, "9999999999999,0,0:+x", POD_E_INVALID},
        {POD_FAULT_LINK_SLOW, "0,0,0:+x",             POD_E_USAGE  },
        {POD_FAULT_LINK_SLOW, "0,0,0:+x:0.5",         POD_E_USAGE  },
        {POD_FAULT_LINK_SLOW, "0,0,0:+x:nan",         POD_E_USAGE  },
        {POD_FAULT_LINK_SLOW, "0,0,0:+x:2:2",         POD_E_USAGE  },
        {POD_FAULT_CHIP_SLOW, "0,0,0:two",            POD_E_USAGE  },
        {POD_FAULT_CHIP_SLOW, "0,0,0:-2",             POD_E_USAGE  },
        {POD_FAULT_CHIP_SLOW, "0,0,0",                POD_E_USAGE  },
    };
    int before = slice.nfaults;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pod_error err = {0};
        cr_expect_eq(pod_slice_fault_add(&slice, bad[i].kind, bad[i].text, &err), bad[i].status,
                     "%s: %s", bad[i].text, err.text);
        cr_expect_neq(err.text[0], '\0');
    }
    cr_assert_eq(slice.nfaults, before);
    pod_slice open = slice_of(2, 4, 4, 1, 0, false);
    cr_assert_eq(pod_slice_fault_add(&open, POD_FAULT_LINK_DEAD, "0,0:-x", NULL), POD_E_INVALID);
    cr_assert_eq(pod_slice_fault_add(&open, POD_FAULT_LINK_DEAD, "0,0:+z", NULL), POD_E_INVALID);
}

Test(ici_spec, reads_coordinates_of_chips)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    int32_t chip = -1;
    cr_assert_eq(pod_slice_chip_parse(&slice, "3,2", "--to", &chip, NULL), POD_OK);
    cr_assert_eq(chip, 11);
    cr_assert_eq(pod_slice_chip_parse(&slice, "3", "--to", &chip, NULL), POD_OK);
    cr_assert_eq(chip, 3);
    cr_assert_eq(pod_slice_chip_parse(&slice, "3,2,0", "--to", &chip, NULL), POD_OK);
    pod_error err = {0};
    cr_assert_eq(pod_slice_chip_parse(&slice, "3,2,1", "--to", &chip, &err), POD_E_INVALID);
    cr_assert_str_eq(err.text, "--to: chip 3,2,1 is outside 4x4; z runs from 0 to 0");
}

/* Slice files. */

static pod_status parse_text(const char *text, pod_slice *slice, pod_error *err)
{
    pod_slice_catalog *catalog = catalog_load();
    pod_table *table = table_of_text(text);
    bool listed = false;
    pod_status st = pod_slice_parse_file(catalog, table, slice, &listed, err);
    pod_table_free(table);
    pod_slice_catalog_free(catalog);
    return st;
}

Test(ici_slice_file, reads_every_key_in_any_order)
{
    pod_slice slice;
    pod_error err = {0};
    cr_assert_eq(parse_text("key,value\nslow_chip,\"1,1,1:2\"\nslices,2\nfail_link,\"3,0,0:+x\"\n"
                            "twist,0\nwrap,xz\ndims,4x4x8\nchip,v5p\nslow_link,\"0,0,0:+y:3\"\n",
                            &slice, &err),
                 POD_OK, "%s", err.text);
    cr_assert_str_eq(slice.name, "2*v5p:4x4x8_untwisted");
    cr_assert_eq(slice.nslices, 2);
    cr_assert_not(slice.twisted);
    cr_assert_eq(pod_slice_closed_axes(&slice), 5U);
    cr_assert_eq(slice.nfaults, 3);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 1), 0);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 2), 3);
}

Test(ici_slice_file, takes_wrap_and_twist_from_the_table_when_silent)
{
    pod_slice slice;
    cr_assert_eq(parse_text("key,value\nchip,v5p\ndims,4x4x8\n", &slice, NULL), POD_OK);
    cr_assert(slice.twisted);
    cr_assert_eq(parse_text("key,value\nchip,v4\ndims,4x4x8\ntwist,1\n", &slice, NULL), POD_OK);
    cr_assert_str_eq(slice.name, "v4:4x4x8_twisted");
}

Test(ici_slice_file, refuses_with_position)
{
    // clang-format off
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"key,value\nchip,v5p\n", "no key 'dims'", 0, 0},
        {"key,value\ndims,4x4\n", "no key 'chip'", 0, 0},
        {"key,value\n", "no key 'chip'", 0, 0},
        {"key,value\nchip,v5p\ndims,4x4x4\nfail_lnk,0:+x\n", "'fail_link'", 4, 1},
        {"key,value\nchip,v5p\nchip,v5p\ndims,4x4x4\n", "a second time", 3, 1},
        {"key,value\nchip,v5z\ndims,4x4x4\n", "unknown chip 'v5z'", 2, 6},
        {"key,value\nchip,v5e\ndims,4x4x4\n", "more axes", 3, 6},
        {"key,value\nchip,v5e\ndims,4x0\n", "axis of 0", 3, 6},
        {"key,value\nchip,v5p\ndims,4x4x8_twisted\n", "is not a shape", 3, 6},
        {"key,value\nchip,v5p\ndims,4x4x4\ntwist,1\n", "no twisted form", 4, 7},
        {"key,value\nchip,v5p\ndims,4x4x4\ntwist,maybe\n", "twist is 'maybe'", 4, 7},
        {"key,value\nchip,v5e\ndims,4x4\nwrap,xyz\n", "no axis z", 4, 6},
        {"key,value\nchip,v5e\ndims,4x4\nslices,0\n", "", 4, 8},
        {"key,value\nchip,v5e\ndims,4x4\nslices,nan\n", "", 4, 8},
        {"key,value\nchip,v5e\ndims,4x4\nfail_link,\"0,0:-x\"\n", "no cable in direction -x", 4,
         11},
        {"key,value\nchip,v5e\ndims,40000x40000\nslices,9\n", "too many", 3, 6},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_slice slice;
        pod_error err = {0};
        pod_status st = parse_text(cases[i].text, &slice, &err);
        cr_expect_eq(pod_status_exit_code(st), 3, "%s: %d", cases[i].text, (int)st);
        cr_expect_not_null(strstr(err.text, cases[i].message), "%s: %s", cases[i].text, err.text);
        cr_expect_eq(err.line, cases[i].line, "%s: line %d", cases[i].text, err.line);
        cr_expect_eq(err.column, cases[i].column, "%s: column %d", cases[i].text, err.column);
        cr_expect_str_eq(err.file, "t.csv");
    }
    pod_slice slice;
    cr_assert_eq(parse_text("key,val\nchip,v5p\n", &slice, NULL), POD_E_TABLE);
    cr_assert_eq(parse_text("key,value,more\nchip,v5p,\n", &slice, NULL), POD_E_TABLE);
}

Test(ici_slice_file, reads_the_examples)
{
    static const struct {
        const char *file, *name;
        int nfaults;
    } cases[] = {
        {"topologies/examples/v5p_cube.csv",        "v5p:4x4x4", 0},
        {"topologies/examples/v5p_cube_faults.csv", "v5p:4x4x4", 2},
        {"topologies/examples/v5e_two_slices.csv",  "2*v5e:4x8", 0}
    };
    pod_slice_catalog *catalog = catalog_load();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_table *table = own_table(cases[i].file);
        pod_slice slice;
        bool listed = false;
        pod_error err = {0};
        cr_assert_eq(pod_slice_parse_file(catalog, table, &slice, &listed, &err), POD_OK, "%s",
                     err.text);
        cr_assert(listed);
        cr_assert_str_eq(slice.name, cases[i].name);
        cr_assert_eq(slice.nfaults, cases[i].nfaults);
        pod_table_free(table);
    }
    pod_slice_catalog_free(catalog);
}
