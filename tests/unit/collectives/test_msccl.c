/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of two chips, written out: right ones are proved, wrong ones refused with the place. */
#include "collectives/check.h"
#include "collectives/msccl.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 4096 };

#define STEP(s, type, from, to)                                                                    \
    "<step s=\"" s "\" type=\"" type "\" srcbuf=\"i\" srcoff=\"" from                              \
    "\" dstbuf=\"i\" dstoff=\"" to "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
#define HEAD                                                                                       \
    "<algo name=\"pair\" coll=\"allreduce\" ngpus=\"2\" nchunksperloop=\"2\" inplace=\"1\">\n"
#define GPU(id, peer, steps)                                                                       \
    "<gpu id=\"" id "\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"0\">\n<tb id=\"0\" send=\"" peer  \
    "\" recv=\"" peer "\" chan=\"0\">\n" steps "</tb>\n</gpu>\n"

/* Halves exchanged, summed, and sent back. */
static const char good[] = HEAD GPU(
    "0", "1", STEP("0", "s", "1", "1") STEP("1", "rrcs", "0", "0") STEP("2", "r", "1", "1"))
    GPU("1", "0",
        STEP("0", "s", "0", "0") STEP("1", "rrcs", "1", "1") STEP("2", "r", "0", "0")) "</algo>\n";

/* The same without in-place sums: rrs sends what it doesn't keep, rrc keeps what it doesn't send. */
static const char aside[] = HEAD GPU("0", "1",
                                     STEP("0", "s", "0", "0") STEP("1", "rrs", "1", "1")
                                         STEP("2", "r", "0", "0") STEP("3", "r", "1", "1"))
    GPU("1", "0",
        STEP("0", "s", "1", "1") STEP("1", "rrc", "0", "0") STEP("2", "s", "0", "0")
            STEP("3", "r", "1", "1") STEP("4", "s", "1", "1")) "</algo>\n";

static pod_status try_text(const char *text, int64_t elements, pod_coll_op op, pod_error *err)
{
    const int32_t dims[POD_AXES] = {2, 1, 1};
    const bool wrap[POD_AXES] = {false, false, false};
    pod_slice slice;
    pod_group group;
    pod_msccl *program = NULL;
    pod_coll_schedule *schedule = NULL;
    pod_status st = pod_msccl_parse("my.xml", text, strlen(text), &program, err);
    if (st != POD_OK) {
        return st;
    }
    cr_assert_eq(pod_slice_make("v5p", 3, dims, wrap, false, &slice, err), POD_OK);
    cr_assert_eq(pod_group_init_axes(&group, &slice, 1, err), POD_OK);
    const pod_coll_request request = {
        .op = op, .slice = &slice, .group = &group, .elements = elements, .element_bytes = 2};
    st = pod_msccl_build(program, &request, &schedule, err);
    if (st == POD_OK) {
        cr_assert_str_eq(schedule->algorithm, "file:pair");
        cr_assert_eq(pod_coll_check(schedule, err), POD_OK, "%s", err->text);
        pod_coll_schedule_free(schedule);
    }
    pod_group_fini(&group);
    pod_msccl_free(program);
    return st;
}

Test(collectives_msccl, right_programs_are_proved)
{
    pod_error err = {0};
    cr_assert_eq(try_text(good, 64, POD_ALL_REDUCE, &err), POD_OK, "%s", err.text);
    cr_assert_eq(try_text(aside, 64, POD_ALL_REDUCE, &err), POD_OK, "%s", err.text);
}

/* Every one differs from the good program in one place. */
Test(collectives_msccl, wrong_programs_are_refused_and_say_where)
{
    static const struct {
        const char *find;
        const char *put;
        const char *said;
    } cases[] = {
        {"type=\"rrcs\" srcbuf=\"i\" srcoff=\"0\"", "type=\"rrcs\" srcbuf=\"i\" srcoff=\"1\"",
         "rank"                                                                                                            },
        {"type=\"rrcs\"",                           "type=\"rcs\"",                            "rank"                      },
        {"type=\"s\"",                              "type=\"t\"",                              "use s, r"                  },
        {"s=\"1\"",                                 "s=\"4\"",                                 "step 4 where step 1 is due"},
        {"srcoff=\"1\"",                            "srcoff=\"2\"",                            "which has 2"               },
        {"send=\"1\"",                              "send=\"-1\"",                             "name the peer"             },
        {"chan=\"0\"",                              "chan=\"3\"",                              "chan 3"                    },
        {"coll=\"allreduce\"",                      "coll=\"gossip\"",                         "use allreduce"             },
        {"ngpus=\"2\"",                             "ngpus=\"x\"",                             "whole number"              },
        {"<tb id",                                  "<block id",                               "expected <algo>"           },
        {"depid=\"-1\" deps=\"-1\"",                "depid=\"0\" deps=\"2\"",                  "deadlock"                  },
        {"depid=\"-1\"",                            "depid=\"7\"",                             "no such thread block"      },
        {"</algo>",                                 "",                                        "no element found"          },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[TEXT];
        pod_error err = {0};
        const char *at = strstr(good, cases[i].find);
        cr_assert_not_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].put,
                       at + strlen(cases[i].find));
        cr_assert_eq(try_text(text, 64, POD_ALL_REDUCE, &err), POD_E_TABLE, "case %zu: %s", i,
                     err.text);
        cr_assert_not_null(strstr(err.text, cases[i].said), "case %zu: %s", i, err.text);
        cr_assert_str_eq(err.file, "my.xml");
    }
}

Test(collectives_msccl, requests_that_do_not_fit_are_refused)
{
    pod_error err = {0};
    cr_assert_eq(try_text(good, 65, POD_ALL_REDUCE, &err), POD_E_INVALID);
    cr_assert_not_null(strstr(err.text, "multiple of 4 bytes"), "%s", err.text);
    pod_error_clear(&err);
    cr_assert_eq(try_text(good, 64, POD_ALL_GATHER, &err), POD_E_INVALID);
    cr_assert_not_null(strstr(err.text, "--op all-reduce"), "%s", err.text);
}
