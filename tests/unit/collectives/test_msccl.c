/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/file.h"
#include "collectives/msccl/msccl.h"

#include <stdlib.h>
#include <string.h>

static const shape line_of_4 = {
    {4,  1, 1},
    "x", false, 7, 0, {{0}}
};

static const struct {
    const char *file;
    pod_coll_op op;
} examples[] = {
    {"allreduce_ring_4",        POD_ALL_REDUCE    },
    {"allgather_ring_4",        POD_ALL_GATHER    },
    {"allgather_pairs_4",       POD_ALL_GATHER    },
    {"alltoall_direct_4",       POD_ALL_TO_ALL    },
    {"reducescatter_scratch_4", POD_REDUCE_SCATTER},
    {"allreduce_chain_4",       POD_ALL_REDUCE    },
    {"broadcast_chain_4",       POD_BROADCAST     },
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static char *example_text(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/topologies/examples/msccl/%s.xml", POD_SOURCE_DIR, name);
    char *text = NULL;
    size_t size = 0;
    cr_assert(pod_file_read(path, &text, &size, NULL) == POD_OK, "%s", path);
    return text;
}

/* Load and build; the status of whichever fails. */
static pod_status try_text(const char *text, pod_coll_op op, int64_t elements, pod_error *err)
{
    fixture f;
    fixture_init(&f, &line_of_4, op, elements);
    pod_msccl *msccl = NULL;
    pod_coll_schedule *schedule = NULL;
    *err = (pod_error){0};
    pod_status st = pod_msccl_parse("my.xml", text, strlen(text), &msccl, err);
    st = st == POD_OK ? pod_msccl_build(msccl, &f.request, &schedule, err) : st;
    if (st == POD_OK) {
        cr_assert(strncmp(schedule->algorithm, "file:", 5) == 0);
        cr_assert(pod_coll_check(schedule, NULL) == POD_OK);
        pod_coll_schedule_free(schedule);
    }
    pod_msccl_free(msccl);
    fixture_fini(&f);
    return st;
}

Test(msccl, examples_are_proved_right)
{
    for (int i = 0; i < EXAMPLES; ++i) {
        char *text = example_text(examples[i].file);
        static const int64_t sizes[] = {0, 4, 40, 1 << 20};
        for (int s = 0; s < 4; ++s) {
            pod_error err;
            cr_assert(try_text(text, examples[i].op, sizes[s], &err) == POD_OK, "%s: %s",
                      examples[i].file, err.text);
        }
        free(text);
    }
}

Test(msccl, sizes_that_do_not_divide_work_unless_scratch_is_used)
{
    pod_error err;
    char *ring = example_text("allreduce_ring_4");
    cr_assert(try_text(ring, POD_ALL_REDUCE, 7, &err) == POD_OK, "%s", err.text);
    free(ring);
    char *scratch = example_text("reducescatter_scratch_4");
    cr_assert(try_text(scratch, POD_REDUCE_SCATTER, 7, &err) == POD_E_INVALID);
    cr_assert(strstr(err.text, "use a multiple"), "%s", err.text);
    free(scratch);
}

/* The k-th occurrence (from 0) of `from` in the text of an example becomes `to`. */
static char *edited(const char *name, const char *from, int k, const char *to)
{
    char *text = example_text(name);
    char *at = strstr(text, from);
    while (at && k-- > 0) {
        at = strstr(at + 1, from);
    }
    cr_assert(at != NULL, "%s has no %s", name, from);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    cr_assert(out != NULL);
    const size_t before = (size_t)(at - text);
    memcpy(out, text, before);
    memcpy(out + before, to, strlen(to));
    memcpy(out + before + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    free(text);
    return out;
}

typedef struct mistake {
    const char *file;
    pod_coll_op op;
    const char *from;
    int k;
    const char *to;
    pod_status status;
    int line; /* 0 = any */
    const char *says;
} mistake;

/* clang-format off */
static const mistake mistakes[] = {
    /* wrong data */
    {"allreduce_ring_4", POD_ALL_REDUCE, "srcbuf=\"i\" srcoff=\"3\" dstbuf=\"i\" dstoff=\"3\"", 0,
     "srcbuf=\"i\" srcoff=\"2\" dstbuf=\"i\" dstoff=\"2\"", POD_E_TABLE, 0, "gpu "},
    {"allgather_ring_4", POD_ALL_GATHER, "type=\"s\" srcbuf=\"i\" srcoff=\"0\"", 1,
     "type=\"s\" srcbuf=\"o\" srcoff=\"3\"", POD_E_TABLE, 17, "gpu 1, tb 0, step 0"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "type=\"rrcs\"", 0, "type=\"rcs\"", POD_E_TABLE, 0,
     "gpu "},
    {"alltoall_direct_4", POD_ALL_TO_ALL, "srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\"", 0,
     "srcoff=\"0\" dstbuf=\"o\" dstoff=\"2\"", POD_E_TABLE, 0, "gpu "},
    {"reducescatter_scratch_4", POD_REDUCE_SCATTER, "depid=\"1\" deps=\"1\"", 0,
     "depid=\"0\" deps=\"1\"", POD_E_TABLE, 0, "gpu 0, tb 3, step 2"},
    /* deadlocks */
    {"allreduce_ring_4", POD_ALL_REDUCE, "type=\"s\"", 0, "type=\"nop\"", POD_E_TABLE, 0,
     "for ever"},
    {"broadcast_chain_4", POD_BROADCAST, "type=\"s\"", 0, "type=\"nop\"", POD_E_TABLE, 0,
     "for ever"},
    {"allgather_ring_4", POD_ALL_GATHER, "depid=\"-1\" deps=\"-1\"", 0, "depid=\"0\" deps=\"3\"",
     POD_E_TABLE, 6, "gpu 0, tb 0, step 0: it waits for ever"},
    {"broadcast_chain_4", POD_BROADCAST, "send=\"1\"", 0, "send=\"2\"", POD_E_TABLE, 5,
     "gpu 0, tb 0"},
    {"allreduce_chain_4", POD_ALL_REDUCE, "chan=\"1\"", 1, "chan=\"2\"", POD_E_TABLE, 0,
     "on this chan"},
    {"broadcast_chain_4", POD_BROADCAST, "cnt=\"1\"", 1, "cnt=\"2\"", POD_E_TABLE, 7,
     "counts from 0 to 0"},
    /* bad files */
    {"allreduce_ring_4", POD_ALL_REDUCE, "coll=\"allreduce\"", 0, "coll=\"sum\"", POD_E_TABLE, 3,
     "it is allreduce"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "ngpus=\"4\"", 0, "ngpus=\"5\"", POD_E_TABLE, 0, "4 gpus"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "ngpus=\"4\"", 0, "ngpus=\"3\"", POD_E_TABLE, 5, "recv=\"3\" is wrong"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "ngpus=\"4\"", 0, "", POD_E_TABLE, 3, "ngpus is missing"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "type=\"rrcs\"", 0, "type=\"add\"", POD_E_TABLE, 7,
     "it is s, r, rcs"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "srcoff=\"3\"", 0, "srcoff=\"4\"", POD_E_TABLE, 7,
     "counts from 0 to 3"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "srcbuf=\"i\"", 0, "srcbuf=\"x\"", POD_E_TABLE, 6,
     "i, o or s"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "srcbuf=\"i\"", 0, "srcbuf=\"s\"", POD_E_TABLE, 6,
     "has 0"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "send=\"1\"", 0, "send=\"0\"", POD_E_TABLE, 5, "itself"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "send=\"1\"", 0, "send=\"-1\"", POD_E_TABLE, 6,
     "sends to nobody"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "deps=\"-1\"", 0, "deps=\"9\"", POD_E_TABLE, 0, ""},
    {"reducescatter_scratch_4", POD_REDUCE_SCATTER, "depid=\"1\" deps=\"1\"", 0,
     "depid=\"7\" deps=\"1\"", POD_E_TABLE, 0, "doesn't have"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "</tb>", 0, "", POD_E_TABLE, 0, "XML"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "<gpu ", 1, "<chip ", POD_E_TABLE, 0, "not expected"},
    {"allreduce_ring_4", POD_ALL_REDUCE, "<algo", 0, "<!DOCTYPE a [<!ENTITY b \"c\">]><algo",
     POD_E_TABLE, 0, "document type"},
    {"allgather_ring_4", POD_ALL_GATHER, "nchunksperloop=\"4\"", 0, "nchunksperloop=\"6\"",
     POD_E_TABLE, 0, "as many for each chip"},
    {"allgather_pairs_4", POD_ALL_GATHER, "srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\"", 0,
     "srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\"", POD_E_TABLE, 0, "gpu "},
    {"alltoall_direct_4", POD_ALL_TO_ALL, "nchunksperloop=\"4\"", 0, "nchunksperloop=\"6\"",
     POD_E_TABLE, 0, "as many for each chip"},
    /* another request */
    {"allreduce_ring_4", POD_ALL_GATHER, "name", 0, "name", POD_E_INVALID, 0,
     "use --op all-reduce"},
};
/* clang-format on */

Test(msccl, wrong_files_are_refused_with_line_chip_and_step)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
        const mistake *m = &mistakes[i];
        char *text = edited(m->file, m->from, m->k, m->to);
        pod_error err;
        const pod_status st = try_text(text, m->op, 40, &err);
        if (m->says[0] == '\0') { /* a dependency without a tb is none */
            cr_assert(st == POD_OK, "case %zu: %s", i, err.text);
        } else {
            cr_assert(st == m->status, "case %zu: status %d, %s:%d %s", i, (int)st, err.file,
                      err.line, err.text);
            cr_assert(strstr(err.text, m->says), "case %zu: line %d %s", i, err.line, err.text);
            cr_assert(m->line == 0 || err.line == m->line, "case %zu: line %d, not %d: %s", i,
                      err.line, m->line, err.text);
            cr_assert(st == POD_E_INVALID || strcmp(err.file, "my.xml") == 0, "case %zu", i);
        }
        free(text);
    }
}

Test(msccl, of_another_number_of_chips_is_refused)
{
    static const shape five = {
        {5,  1, 1},
        "x", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &five, POD_ALL_REDUCE, 40);
    char *text = example_text("allreduce_ring_4");
    pod_msccl *msccl = NULL;
    pod_coll_schedule *schedule = NULL;
    cr_assert(pod_msccl_parse("my.xml", text, strlen(text), &msccl, NULL) == POD_OK);
    cr_assert(pod_msccl_op(msccl) == POD_ALL_REDUCE);
    cr_assert(pod_msccl_build(msccl, &f.request, &schedule, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "is for 4 chips; the groups here have 5"), "%s", f.err.text);
    pod_msccl_free(msccl);
    free(text);
    fixture_fini(&f);
}
