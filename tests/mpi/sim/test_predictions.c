/* SPDX-License-Identifier: Apache-2.0 */
/* What an algorithm's prediction says is what its simulation takes, within 2 %, on slices that it has to
 * itself (no groups in between). The choice of `auto` rests on it. With the argument `all`: more shapes. */
#include "scene.h"

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

static const double tolerance = 0.02;

static void compare(scene *s, const pod_coll_algorithm *algorithm)
{
    pod_coll_prediction predicted;
    if (algorithm->predict(&s->request, &predicted, &s->err) != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    const pod_time_ps time_ps = scene_run(s, algorithm);
    const double ratio = (double)predicted.total_ps / (double)time_ps;
    if (ratio < 1 - tolerance || ratio > 1 + tolerance) {
        char text[100];
        (void)snprintf(text, sizeof text, "predicted %.4f us, simulated %.4f us",
                       pod_time_to_us(predicted.total_ps), pod_time_to_us(time_ps));
        scene_fail(s, algorithm->name, text);
    }
}

static int compare_on(pod_par *par, const scene_shape *shape)
{
    scene s;
    scene_open(&s, par, shape);
    int cases = 0;
    for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes && op != POD_PERMUTE; size++) {
            s.request.op = (pod_coll_op)op;
            s.request.elements = sizes[size];
            s.request.root = s.group.size / 3;
            scene_describe(&s);
            for (int i = 0; i < pod_coll_algorithm_count(); i++) {
                const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
                if (pod_coll_algorithm_fits(algorithm, &s.request)) {
                    compare(&s, algorithm);
                    cases++;
                }
            }
        }
    }
    scene_close(&s);
    return cases;
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
    int cases = 0;
    for (int i = 0; i < count; i++) {
        cases += compare_on(par, &shapes[i]);
    }
    if (cases < 500) {
        mpi_check_fail(__FILE__, __LINE__, "too few algorithms applied");
    }
    (void)printf("%d predictions\n", cases);
    pod_par_stop(par);
    return mpi_check_end();
}
