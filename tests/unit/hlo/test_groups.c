/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

/* Groups of an all-to-all over `partitions` with this attribute. */
static pod_status groups_of(int partitions, const char *attribute, pod_hlo_groups_pool *pool,
                            uint32_t *group, pod_error *err)
{
    static char text[8192];
    snprintf(
        text, sizeof text,
        "HloModule m, is_scheduled=true, num_partitions=%d\nENTRY e {\n  a = f32[64] parameter(0)\n"
        "  ROOT b = f32[64] all-to-all(a)%s%s, dimensions={0}\n}\n",
        partitions, attribute[0] == '\0' ? "" : ", replica_groups=", attribute);
    pod_hlo_module *module = module_of(text);
    *pool = (pod_hlo_groups_pool){.nids = 0};
    const pod_status st =
        pod_hlo_groups_read(pool, module, instruction_of(module, "b"), group, err);
    pod_hlo_free(module);
    return st;
}

typedef struct groups_case {
    int partitions;
    const char *attribute;
    const char *lists;
} groups_case;

/* The first of each form is the contract's own; the rest follows from the same words. */
static const groups_case cases[] = {
    {4, "{{0,1},{2,3}}",                                                         "0 1|2 3"        },
    {4, "{{3,1},{2,0}}",                                                         "3 1|2 0"        },
    {4, "{}",                                                                    "0 1 2 3"        },
    {4, "",                                                                      "0 1 2 3"        },
    {8, "[4,2]<=[2,4]T(1,0)",                                                    "0 4|1 5|2 6|3 7"},
    {8, "[4,2]<=[8]",                                                            "0 1|2 3|4 5|6 7"},
    {8, "[2,4]<=[2,2,2]T(2,0,1)",                                                "0 2 4 6|1 3 5 7"},
    {8, "[8,1]<=[8]",                                                            "0|1|2|3|4|5|6|7"},
    {8, "mesh['a'=2,'b'=4] {'a'}",                                               "0 4|1 5|2 6|3 7"},
    {8, "mesh['a'=2,'b'=4] {'b'}",                                               "0 1 2 3|4 5 6 7"},
    {8, "mesh['a'=2,'b'=4] {'b','a'}",                                           "0 4 1 5 2 6 3 7"},
    {8, "mesh['a'=2,'b'=4] {'a','b'}",                                           "0 1 2 3 4 5 6 7"},
    {8, "mesh['a'=2,'b'=2,'c'=2] {'a','c'}",                                     "0 1 4 5|2 3 6 7"},
    {4, "mesh['a'=2,'b'=2] {}",                                                  "0|1|2|3"        },
    {8, "mesh['a'=8] {'a':(2)2}",                                                "0 2|1 3|4 6|5 7"},
    {8, "mesh['a'=8] {'a':(1)2}",                                                "0 4|1 5|2 6|3 7"},
    {8, "mesh['a'=8] {'a':(4)2}",                                                "0 1|2 3|4 5|6 7"},
    {8, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}",                     "0 2 4 6|1 3 5 7"},
    {8, "mesh['a'=2,'b'=4], device_ids=([8]) {'b'}",                             "0 1 2 3|4 5 6 7"},
    {4, "mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'a'}",                         "0 1|2 3"        },
    {4, "mesh['a'=2,'b'=2], device_ids=([0,2,1,3]) {'a'}",                       "0 1|2 3"        },
    {4, "mesh[ 'a' = 2 , 'b' = 2 ] , device_ids = ( 0, 2, 1, 3 ) { 'a' /*x*/ }", "0 1|2 3"        },
};

static void print_groups(const pod_hlo_groups_pool *pool, uint32_t group, char *out, size_t size)
{
    const pod_hlo_groups *groups = &pool->group[group];
    size_t used = 0;
    int32_t partitions[1024];
    pod_hlo_groups_list(pool, group, partitions);
    for (int32_t i = 0; i < groups->size * groups->count; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%d",
                                 i == 0                  ? ""
                                 : i % groups->size == 0 ? "|"
                                                         : " ",
                                 (int)partitions[i]);
    }
}

Test(hlo_groups, reads_every_form)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_hlo_groups_pool pool;
        pod_error err = {0};
        uint32_t group = 0;
        char lists[1024];
        cr_assert_eq(groups_of(cases[i].partitions, cases[i].attribute, &pool, &group, &err),
                     POD_OK, "%s: %s", cases[i].attribute, err.text);
        print_groups(&pool, group, lists, sizeof lists);
        cr_assert_str_eq(lists, cases[i].lists, "%s", cases[i].attribute);
        pod_hlo_groups_fini(&pool);
    }
}

/* What numbers mean in programs of replicas and partitions: XLA's group modes, written out by hand. */
Test(hlo_groups, reads_replicas_and_partitions)
{
    static const struct {
        int replicas;
        int partitions;
        const char *collective; /* opcode and its other attributes */
        const char *attributes;
        const char *lists;
    } modes[] = {
  /* replicas alone: all numbers are theirs */
        {4, 1, "all-reduce",           "",                                                 "0 1 2 3"        },
        {4, 1, "all-reduce",           ", replica_groups={}",                              "0 1 2 3"        },
        {4, 1, "all-reduce",           ", replica_groups={{0,3},{1,2}}",                   "0 3|1 2"        },
        {4, 1, "all-reduce",           ", replica_groups={{0,3},{1,2}}, channel_id=1",     "0 3|1 2"        },
        {4, 1, "all-to-all",           ", replica_groups=[2,2]<=[4], channel_id=1",        "0 1|2 3"        },
        {4, 1, "all-gather",
         ", replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true",       "0 3|1 2"        },
 /* partitions alone */
        {1, 4, "all-reduce",           ", replica_groups={}",                              "0 1 2 3"        },
        {1, 4, "all-reduce",           ", replica_groups={{0}}",                           "0|1|2|3"        },
        {1, 4, "all-reduce",           ", replica_groups={{0}}, channel_id=1",             "0 1 2 3"        },
        {1, 4, "all-reduce",           ", replica_groups={{0,1},{2,3}}, channel_id=1",     "0 1|2 3"        },
 /* both */
        {2, 3, "all-reduce",           "",                                                 "0 3|1 4|2 5"    },
        {2, 3, "all-reduce",           ", replica_groups={{0},{1}}",                       "0|1|2|3|4|5"    },
        {2, 3, "all-reduce",           ", replica_groups={{1,0}}",                         "3 0|4 1|5 2"    },
        {2, 3, "all-reduce",           ", channel_id=1",                                   "0 1 2 3 4 5"    },
        {2, 3, "reduce-scatter",       ", replica_groups={{0},{1}}, channel_id=1",         "0 1 2|3 4 5"    },
        {2, 3, "all-gather",
         ", replica_groups={{0},{1}}, channel_id=1, use_global_device_ids=false",          "0 1 2|3 4 5"    },
        {2, 3, "all-reduce",
         ", replica_groups={{0,4},{1,5},{2,3}}, channel_id=1, use_global_device_ids=true", "0 4|1 5|2 3"    },
        {2, 3, "all-reduce",
         ", replica_groups=[3,2]<=[2,3]T(1,0), channel_id=1, use_global_device_ids=true",  "0 3|1 4|2 5"    },
        {2, 3, "all-to-all",           "",                                                 "0 3|1 4|2 5"    },
        {2, 3, "all-to-all",           ", channel_id=1",                                   "0 1 2|3 4 5"    },
        {2, 4, "all-to-all",           ", replica_groups={{0,2},{1,3}}, channel_id=1",     "0 2|1 3|4 6|5 7"},
        {4, 2, "all-to-all",           ", replica_groups={{0,2},{1,3}}",                   "0 4|1 5|2 6|3 7"},
        {2, 3, "collective-broadcast", ", replica_groups={{0,2,1}}, channel_id=1",         "0 2 1|3 5 4"    },
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char text[1024];
        char lists[1024];
        pod_hlo_groups_pool pool = {.nids = 0};
        pod_error err = {0};
        uint32_t group = 0;
        uint32_t again = 0;
        snprintf(text, sizeof text,
                 "HloModule m, is_scheduled=true, replica_count=%d, num_partitions=%d\n"
                 "ENTRY e {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] %s(a)%s\n}\n",
                 modes[i].replicas, modes[i].partitions, modes[i].collective, modes[i].attributes);
        pod_hlo_module *module = module_of(text);
        const pod_hlo_instruction *b = instruction_of(module, "b");
        cr_assert_eq(module->devices, modes[i].replicas * modes[i].partitions);
        cr_assert_eq(pod_hlo_groups_read(&pool, module, b, &group, &err), POD_OK, "%s: %s", text,
                     err.text);
        print_groups(&pool, group, lists, sizeof lists);
        cr_expect_str_eq(lists, modes[i].lists, "%s: %s", text, lists);
        cr_assert_eq(pod_hlo_groups_read(&pool, module, b, &again, &err), POD_OK);
        cr_expect_eq(again, group);
        pod_hlo_groups_fini(&pool);
        pod_hlo_free(module);
    }
}

Test(hlo_groups, spreads_pairs_of_replicas_and_of_partitions)
{
    static const struct {
        const char *attributes;
        const char *pairs;
    } modes[] = {
        {"source_target_pairs={{0,1},{1,0}}",                     "0>3 1>4 2>5 3>0 4>1 5>2"},
        {"source_target_pairs={{1,0}}",                           "3>0 4>1 5>2"            },
        {"channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}", "0>1 1>2 2>0 3>4 4>5 5>3"},
        {"channel_id=1, source_target_pairs={}",                  ""                       },
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char text[1024];
        char pairs[1024] = "";
        size_t used = 0;
        pod_hlo_groups_pool pool = {.nids = 0};
        uint32_t number = 0;
        snprintf(text, sizeof text,
                 "HloModule m, is_scheduled=true, replica_count=2, num_partitions=3\n"
                 "ENTRY e {\n  a = f32[64] parameter(0)\n"
                 "  ROOT b = f32[64] collective-permute(a), %s\n}\n",
                 modes[i].attributes);
        pod_hlo_module *module = module_of(text);
        cr_assert_eq(pod_hlo_pairs_read(&pool, module, instruction_of(module, "b"), &number, NULL),
                     POD_OK);
        for (int source = 0; source < 6; source++) {
            for (uint32_t k = 0; k < pool.pairs[number].count; k++) {
                const int32_t *pair = &pool.id[pool.pairs[number].ids + 2 * k];
                if (pair[0] == source) {
                    used += (size_t)snprintf(pairs + used, sizeof pairs - used, "%s%d>%d",
                                             used > 0 ? " " : "", (int)pair[0], (int)pair[1]);
                }
            }
        }
        cr_expect_str_eq(pairs, modes[i].pairs, "%s: %s", modes[i].attributes, pairs);
        pod_hlo_groups_fini(&pool);
        pod_hlo_free(module);
    }
}

/* mesh['a'=16,'b'=1,'c'=4] over the iota [4,16] transposed: 0…15, 16…31, … */
Test(hlo_groups, reads_a_mesh_over_a_transposed_iota)
{
    pod_hlo_groups_pool pool;
    uint32_t group = 0;
    cr_assert_eq(groups_of(64, "mesh['a'=16,'b'=1,'c'=4], device_ids=([4,16]T(1,0)) {'a'}", &pool,
                           &group, NULL),
                 POD_OK);
    cr_assert_eq(pool.group[group].size, 16);
    cr_assert_eq(pool.group[group].count, 4);
    for (int32_t i = 0; i < 64; i++) {
        cr_assert_eq(pod_hlo_groups_device(&pool, group, i), i);
    }
    pod_hlo_groups_fini(&pool);
}

Test(hlo_groups, refuses_what_is_no_partition)
{
    static const struct {
        const char *attribute;
        pod_status status;
        int column;
        const char *says;
    } wrong[] = {
        {"{{0,1},{2,4}}",                           POD_E_INVALID, 60, "partition 4"              },
        {"{{0,1},{1,3}}",                           POD_E_INVALID, 58, "partition 1 is here twice"},
        {"{{0,1}}",                                 POD_E_INVALID, 51, "name 2 of 4"              },
        {"{{0,1,2},{3}}",                           POD_E_INVALID, 62, "groups of 3 and of 1"     },
        {"{{}}",                                    POD_E_INVALID, 52, "a partition is missing"   },
        {"{0,1}",                                   POD_E_INVALID, 51, "'{' of a group"           },
        {"[2,2]<=[2,4]",                            POD_E_INVALID, 57, "isn't the number of"      },
        {"[3,2]<=[4]",                              POD_E_INVALID, 50, "isn't the number of"      },
        {"[4]<=[4]",                                POD_E_INVALID, 50, "[groups,size]"            },
        {"[2,2]<=[2,2]T(0,0)",                      POD_E_INVALID, 57, "each of them once"        },
        {"[2,2]<=[2,2]T(1)",                        POD_E_INVALID, 57, "an order of 1 of 2"       },
        {"[2,2]<=[1099511627776,1099511627776]",    POD_E_RANGE,   58, "a dim; at most"           },
        {"[1048576,1048576]<=[1048576,1048576]",    POD_E_INVALID, 69, "isn't the number of"      },
        {"mesh['a'=2,'b'=4] {'a'}",                 POD_E_INVALID, 54, "isn't the number of"      },
        {"mesh['a'=2,'a'=2] {'a'}",                 POD_E_INVALID, 62, "named twice"              },
        {"mesh['a'=2,'b'=2] {'c'}",                 POD_E_INVALID, 70, "'c' is no axis"           },
        {"mesh['a'=2,'b'=2] {'a','a'}",             POD_E_INVALID, 74, "named twice"              },
        {"mesh['a'=4] {'a':(2)4}",                  POD_E_INVALID, 67, "doesn't divide"           },
        {"mesh['a'=4], device_ids=(0,1,2) {'a'}",   POD_E_INVALID, 75, "names 3 of 4"             },
        {"mesh['a'=4], device_ids=(0,1,1,3) {'a'}", POD_E_INVALID, 79, "here twice"               },
        {"mesh['a'=4], device_ids=([2]) {'a'}",     POD_E_INVALID, 75, "isn't the number of"      },
        {"mush['a'=4] {'a'}",                       POD_E_INVALID, 50, "no form that is known"    },
        {"{{0,1},{2,3}} x",                         POD_E_INVALID, 64, "should end here"          },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_hlo_groups_pool pool;
        pod_error err = {0};
        uint32_t group = 0;
        cr_assert_eq(groups_of(4, wrong[i].attribute, &pool, &group, &err), wrong[i].status,
                     "%s: %s", wrong[i].attribute, err.text);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "%s: %s", wrong[i].attribute, err.text);
        cr_assert_eq(err.line, 4);
        cr_assert_eq(err.column, wrong[i].column, "%s: column %d", wrong[i].attribute, err.column);
        pod_hlo_groups_fini(&pool);
    }
}

static pod_status pairs_of(const char *attribute, pod_hlo_groups_pool *pool, uint32_t *pairs,
                           pod_error *err)
{
    char text[1024];
    snprintf(text, sizeof text,
             HEAD "ENTRY e {\n  a = f32[64] parameter(0)\n"
                  "  ROOT b = f32[64] collective-permute(a), source_target_pairs=%s\n}\n",
             attribute);
    pod_hlo_module *module = module_of(text);
    *pool = (pod_hlo_groups_pool){.nids = 0};
    const pod_status st = pod_hlo_pairs_read(pool, module, instruction_of(module, "b"), pairs, err);
    pod_hlo_free(module);
    return st;
}

Test(hlo_groups, reads_pairs_of_a_permute)
{
    pod_hlo_groups_pool pool;
    uint32_t pairs = 0;
    cr_assert_eq(pairs_of("{{0,1},{1, 2},{7,0}}", &pool, &pairs, NULL), POD_OK);
    const int32_t expected[] = {0, 1, 1, 2, 7, 0};
    cr_assert_eq(pool.pairs[pairs].count, 3);
    cr_assert_eq(memcmp(&pool.id[pool.pairs[pairs].ids], expected, sizeof expected), 0);
    pod_hlo_groups_fini(&pool);
    cr_assert_eq(pairs_of("{}", &pool, &pairs, NULL), POD_OK);
    cr_assert_eq(pool.pairs[pairs].count, 0);
    pod_hlo_groups_fini(&pool);
    static const char *const wrong[][2] = {
        {"{{0,1},{2,1}}", "partition 1 is here twice"},
        {"{{0,8}}",       "partition 8"              },
        {"{{0}}",         "',' of a pair"            },
    };
    for (size_t i = 0; i < 3; i++) {
        pod_error err = {0};
        cr_assert_eq(pairs_of(wrong[i][0], &pool, &pairs, &err), POD_E_INVALID, "%s", wrong[i][0]);
        cr_assert(strstr(err.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0], err.text);
        pod_hlo_groups_fini(&pool);
    }
}
