/* SPDX-License-Identifier: Apache-2.0 */
/* What an algorithm's prediction says is what its simulation takes, on slices that it has to itself (no groups
 * in between). The choice of `auto` rests on it. With the argument `all`: more shapes.
 *
 * Both keep links by ici/link.h, so that a schedule of which every rank is followed takes as long as its
 * simulation to the picosecond. What differs, and how much of the time at most (of 2070 cases with `all`):
 *
 *     every rank followed   channels of a chip that wait for each other and get ready in the same picosecond
 *                           may take a link in another order: bucket (5 cases) and tree (9)          0.5 %
 *     symmetry reduction    one rank is followed for all that do the same, with its own blocks, which may
 *                           have an element more or less than others; and where these run through each
 *                           other, others are served first: 329 cases of what closed axes fold       0.1 %
 *                           of bucket, which folds and waits                                         0.5 % */
#include "scene.h"

#include "collectives/predict/predict.h"

#include <stdlib.h>

static const scene_shape shapes[] = {
    {"v4",  {4, 4, 1}, {true, true, true},    false, 7, {0}         },
    {"v4",  {2, 2, 2}, {true, true, true},    false, 7, {0}         },
    {"v4",  {4, 4, 4}, {true, true, true},    false, 5, {0}         },
    {"v4",  {2, 2, 4}, {false, false, false}, false, 7, {0}         },
    {"v4",  {3, 5, 2}, {false, true, false},  false, 7, {0}         },
    {"v4",  {7, 1, 1}, {true, false, false},  false, 7, {0}         },
    {"v5e", {8, 1, 1}, {false, false, false}, false, 3, {0}         },
    {"v5e", {4, 4, 1}, {false, false, false}, false, 3, {0}         },
    {"v5e", {3, 3, 1}, {true, true, false},   false, 3, {0}         },
    {"v5e", {8, 2, 1}, {true, false, false},  false, 0, {0, 4, 1, 0}},
    {"v4",  {4, 4, 8}, {true, true, true},    true,  7, {0}         }, /* the rest with `all` */
    {"v4",  {4, 4, 8}, {true, true, true},    false, 7, {0}         },
    {"v4",  {4, 4, 4}, {true, true, true},    false, 7, {0}         },
    {"v4",  {2, 4, 4}, {false, false, false}, false, 7, {0}         },
    {"v4",  {3, 5, 6}, {true, true, true},    false, 7, {0}         },
    {"v5e", {8, 8, 1}, {false, false, false}, false, 3, {0}         },
    {"v5e", {8, 8, 1}, {true, true, false},   false, 3, {0}         },
    {"v5e", {4, 8, 1}, {false, true, false},  false, 3, {0}         },
};
enum { QUICK_SHAPES = 10, SHAPES = sizeof shapes / sizeof *shapes };

static const int64_t sizes[] = {512, 100000, 8 << 20}; /* elements of 2 bytes */

static const double waiting_max =
    0.005; /* of bucket and tree, and of what follows their schedules */
static const double folded_max = 0.001; /* of all others */

static bool waits_in_ties(const pod_coll_algorithm *algorithm)
{
    static const char *const names[] = {"bucket", "tree", "mirrored", "as_all_reduce"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(algorithm->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The predicted time of a schedule of which every rank is followed. */
static pod_time_ps followed(scene *s, const pod_coll_algorithm *algorithm)
{
    const pod_coll_fold every_rank = {.cells = s->group.size, .hops_max = INT64_MAX};
    pod_coll_schedule *schedule = NULL;
    pod_coll_estimate estimate = {0};
    pod_status status = algorithm->build(&s->request, &schedule, &s->err);
    if (status == POD_OK) {
        status = pod_coll_estimate_folded(&s->request, schedule, &every_rank, &estimate, &s->err);
    }
    if (status != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    pod_coll_schedule_free(schedule);
    return estimate.time_ps;
}

static void expect_near(scene *s, const pod_coll_algorithm *algorithm, pod_time_ps predicted_ps,
                        pod_time_ps simulated_ps, double most)
{
    const pod_time_ps off_ps = (pod_time_ps)llabs(predicted_ps - simulated_ps);
    if ((double)off_ps > most * (double)simulated_ps) {
        char text[120];
        (void)snprintf(text, sizeof text, "predicted %.6f us, simulated %.6f us; at most %g off",
                       pod_time_to_us(predicted_ps), pod_time_to_us(simulated_ps), most);
        scene_fail(s, algorithm->name, text);
    }
}

/* @return whether the prediction is exact */
static bool compare(scene *s, const pod_coll_algorithm *algorithm)
{
    pod_coll_prediction predicted;
    if (algorithm->predict(&s->request, &predicted, &s->err) != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    const pod_time_ps time_ps = scene_run(s, algorithm);
    if (predicted.total_ps == time_ps) {
        return true;
    }
    const bool waits = waits_in_ties(algorithm);
    expect_near(s, algorithm, followed(s, algorithm), time_ps, waits ? waiting_max : 0);
    expect_near(s, algorithm, predicted.total_ps, time_ps, waits ? waiting_max : folded_max);
    return false;
}

/* Cases, and those of them whose prediction is exact. */
typedef struct tally {
    int cases;
    int exact;
} tally;

static void compare_on(pod_par *par, const scene_shape *shape, tally *count)
{
    scene s;
    scene_open(&s, par, shape);
    for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes && op != POD_PERMUTE; size++) {
            s.request.op = (pod_coll_op)op;
            s.request.elements = sizes[size];
            s.request.root = s.group.size / 3;
            scene_describe(&s);
            for (int i = 0; i < pod_coll_algorithm_count(); i++) {
                const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
                if (pod_coll_algorithm_fits(algorithm, &s.request)) {
                    count->exact += compare(&s, algorithm) ? 1 : 0;
                    count->cases++;
                }
            }
        }
    }
    scene_close(&s);
}

/* One chip that stands for all takes what all of them take. */
static void compare_folded(pod_par *par)
{
    static const struct {
        scene_shape shape;
        const char *algorithm;
    } alike[] = {
        {{"v4", {4, 4, 4}, {true, true, true}, false, 7, {0}}, "direct"  },
        {{"v4", {3, 5, 4}, {true, true, true}, false, 7, {0}}, "direct"  },
        {{"v4", {4, 4, 8}, {true, true, true}, true, 7, {0}},  "direct"  },
        {{"v4", {3, 5, 4}, {true, true, true}, false, 7, {0}}, "per_axis"},
        {{"v4", {4, 2, 8}, {true, true, true}, false, 5, {0}}, "per_axis"},
    };
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        scene s;
        const pod_coll_algorithm *algorithm = NULL;
        scene_open(&s, par, &alike[i].shape);
        s.request.op = POD_ALL_TO_ALL;
        s.request.elements = 1 << 20;
        if (pod_coll_algorithm_find(alike[i].algorithm, &algorithm, &s.err) != POD_OK) {
            mpi_check_fail(__FILE__, __LINE__, s.err.text);
        }
        const double whole = (double)scene_run(&s, algorithm);
        s.fold = true;
        const double folded = (double)scene_run(&s, algorithm);
        if (folded < 0.999 * whole || folded > 1.001 * whole) {
            scene_fail(&s, algorithm->name, "one chip takes another time than all of them");
        }
        scene_close(&s);
    }
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {.status = POD_OK};
    const int count = argc > 1 && strcmp(argv[1], "all") == 0 ? SHAPES : QUICK_SHAPES;
    if (pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err.text);
    }
    compare_folded(par);
    tally total = {0};
    for (int i = 0; i < count; i++) {
        compare_on(par, &shapes[i], &total);
    }
    if (total.cases < 500) {
        mpi_check_fail(__FILE__, __LINE__, "too few algorithms applied");
    }
    if (total.exact < total.cases * 4 / 5) {
        mpi_check_fail(__FILE__, __LINE__, "too few predictions are exact");
    }
    (void)printf("%d predictions, %d of them exact\n", total.cases, total.exact);
    pod_par_stop(par);
    return mpi_check_end();
}
