/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation by every algorithm that applies, with real numbers: right in every bit and never below
 * its bound. Rank 0 prints a checksum of all times, which is the same on every number of ranks that can hold
 * all shapes. With the argument `all`: more shapes, element types and sizes. */
#include "mpi_check.h"

#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "sim/run.h"

#include <string.h>

typedef struct shape {
    const char *chip;
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    bool twisted;
    unsigned axes;
    bool always;
} shape;

static const shape shapes[] = {
    {"v5e", {2, 2, 1}, {false, false, false}, false, 3, false},
    {"v5e", {1, 4, 1}, {false, false, false}, false, 3, true },
    {"v5e", {5, 1, 1}, {true, false, false},  false, 1, true },
    {"v5e", {1, 5, 1}, {false, false, false}, false, 3, false},
    {"v5p", {2, 2, 2}, {true, true, true},    false, 7, true },
    {"v5p", {2, 2, 2}, {false, false, false}, false, 7, false},
    {"v5e", {2, 4, 1}, {false, false, false}, false, 3, true },
    {"v5e", {3, 3, 1}, {true, true, false},   false, 3, true },
    {"v5p", {2, 2, 4}, {false, false, false}, false, 7, true },
    {"v5e", {2, 8, 1}, {false, false, false}, false, 3, false},
    {"v5e", {4, 4, 1}, {false, false, false}, false, 3, true },
    {"v5p", {3, 5, 2}, {false, true, false},  false, 7, true },
    {"v5p", {2, 4, 4}, {false, false, false}, false, 7, false},
    {"v5e", {4, 8, 1}, {false, false, false}, false, 2, false},
    {"v5e", {4, 8, 1}, {false, false, false}, false, 3, false},
    {"v5p", {4, 4, 4}, {true, true, true},    false, 7, false},
    {"v5p", {4, 4, 4}, {true, true, true},    false, 5, true },
    {"v5e", {8, 8, 1}, {false, false, false}, false, 3, false},
    {"v5p", {4, 4, 8}, {true, true, true},    true,  7, false},
};

enum { FILL = -1, FILL_BYTES = 1 << 20 }; /* as many elements as fill a MiB */

static const pod_dtype dtypes[] = {POD_DTYPE_BF16, POD_DTYPE_F32, POD_DTYPE_INT8};

typedef struct scene {
    pod_par *par;
    pod_slice slice;
    pod_router *router;
    pod_group group;
    int32_t *source_of;
    uint64_t sum; /* of all times: the same on every number of ranks */
    int64_t cases;
} scene;

static void fail(const char *what, const scene *s, const char *algorithm,
                 const pod_coll_request *request, const char *text)
{
    char message[512];
    (void)snprintf(message, sizeof message, "%s: %s %s on %dx%dx%d, %lld elements of %d bytes: %s",
                   what, algorithm, pod_coll_op_name(request->op), (int)s->slice.dims[0],
                   (int)s->slice.dims[1], (int)s->slice.dims[2], (long long)request->elements,
                   (int)request->element_bytes, text);
    mpi_check_fail(__FILE__, __LINE__, message);
}

static void run_case(scene *s, const pod_coll_algorithm *algorithm, const pod_coll_request *request,
                     pod_dtype dtype)
{
    pod_error err = {.status = POD_OK};
    pod_coll_schedule *schedule = NULL;
    pod_coll_bound bound;
    pod_run_result result;
    const pod_status built = algorithm->build(request, &schedule, &err);
    if (built == POD_E_INVALID) { /* it keeps the order of another row, which shares links here */
        return;
    }
    if (built != POD_OK) {
        fail("build", s, algorithm->name, request, err.text);
    }
    const pod_machine machine = {.par = s->par,
                                 .slice = &s->slice,
                                 .router = s->router,
                                 .link_bytes_per_s = request->link_rate.bytes_per_s,
                                 .hop_latency_ps = request->hop_latency_ps};
    const pod_run_collective_args args = {.machine = &machine,
                                          .schedule = schedule,
                                          .source_of = request->source_of,
                                          .dtype = dtype,
                                          .seed = 11,
                                          .data = true};
    if (pod_run_collective(&args, &result, &err) != POD_OK) {
        fail("run", s, algorithm->name, request, err.text);
    }
    if (result.wrong != 0) {
        fail("wrong numbers", s, algorithm->name, request, "some elements differ");
    }
    if (pod_coll_bound_get(request, s->router, &bound, &err) != POD_OK
        || result.time_ps < bound.time_ps) {
        fail("below its bound", s, algorithm->name, request, err.text);
    }
    s->sum = s->sum * UINT64_C(6364136223846793005) + (uint64_t)result.time_ps;
    s->cases++;
    pod_coll_schedule_free(schedule);
}

static void run_op(scene *s, pod_coll_op op, pod_dtype dtype, int64_t elements)
{
    const pod_coll_request request = {
        .op = op,
        .slice = &s->slice,
        .group = &s->group,
        .elements = elements,
        .element_bytes = pod_dtype_size(dtype),
        .link_rate = pod_rate_make(9e10),
        .hop_latency_ps = POD_PS_PER_US,
        .root = s->group.size / 2,
        .source_of = op == POD_PERMUTE ? s->source_of : NULL,
    };
    for (int i = 0; i < pod_coll_algorithm_count(); i++) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        if (pod_coll_algorithm_fits(algorithm, &request)) {
            run_case(s, algorithm, &request, dtype);
        }
    }
}

static void run_shape(scene *s, const shape *what, bool all)
{
    pod_error err = {.status = POD_OK};
    const int naxes = strcmp(what->chip, "v5e") == 0 ? 2 : 3;
    if (pod_slice_make(what->chip, naxes, what->dims, what->wrap, what->twisted, &s->slice, &err)
            != POD_OK
        || pod_router_new(&s->slice, &s->router, &err) != POD_OK
        || pod_group_init_axes(&s->group, &s->slice, what->axes, &err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err.text);
    }
    const int32_t n = s->group.size;
    s->source_of = malloc((size_t)n * sizeof *s->source_of);
    for (int32_t rank = 0; rank < n; rank++) {
        s->source_of[rank] = rank == n - 1 ? -1 : (rank * 2 + 1) % n;
    }
    const int64_t sizes[] = {n + 1, 1, 0, n - 1, n, FILL};
    const int nsizes = all ? 6 : 2;
    for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
        for (int d = 0; d < (all ? 3 : 1); d++) {
            for (int i = 0; i < nsizes; i++) {
                const int64_t fill = FILL_BYTES / pod_dtype_size(dtypes[d]);
                run_op(s, (pod_coll_op)op, dtypes[d], sizes[i] == FILL ? fill : sizes[i]);
            }
        }
    }
    free(s->source_of);
    pod_group_fini(&s->group);
    pod_router_free(s->router);
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    scene s = {.cases = 0};
    pod_error err = {.status = POD_OK};
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    if (pod_par_start(&argc, &argv, &s.par, &err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err.text);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if ((all || shapes[i].always)
            && shapes[i].dims[0] * shapes[i].dims[1] * shapes[i].dims[2] >= mpi_check_size()) {
            run_shape(&s, &shapes[i], all);
            if (all && mpi_check_rank() == 0) {
                (void)printf("%zu of %zu shapes, %lld cases\n", i + 1,
                             sizeof shapes / sizeof shapes[0], (long long)s.cases);
                (void)fflush(stdout);
            }
        }
    }
    if (mpi_check_rank() == 0) {
        (void)printf("%lld cases, times %016llx\n", (long long)s.cases, (unsigned long long)s.sum);
    }
    pod_par_stop(s.par);
    return mpi_check_end();
}
