/* SPDX-License-Identifier: Apache-2.0 */
/* No simulated time is below its bound: random shapes, wraps, groups, faults, operations, sizes and
 * algorithms, the same ones on every run. An argument is the number of cases. */
#include "scene.h"

#include "../../dice.h"

enum { CASES = 300, CHIPS_MAX = 96, SEED = 2026 };

static scene_shape random_shape(dice *d)
{
    static const int32_t lengths[] = {1, 2, 3, 4, 4, 5, 6, 8};
    scene_shape shape = {
        .chip = "v4", .dims = {1, 1, 1}
    };
    int32_t chips = 1;
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t length = lengths[roll(d, 8)];
        shape.dims[a] = chips * length <= CHIPS_MAX ? length : 1;
        chips *= shape.dims[a];
        shape.wrap[a] = roll(d, 2) == 0;
    }
    if (roll(d, 12) == 0) {
        memcpy(shape.dims, (int32_t[POD_AXES]){4, 4, 8}, sizeof shape.dims);
        memcpy(shape.wrap, (bool[POD_AXES]){true, true, true}, sizeof shape.wrap);
        shape.twisted = true;
    }
    const int32_t length = shape.dims[0];
    if (roll(d, 4) == 0 && length % 2 == 0 && !shape.twisted) {
        shape.dim = (pod_group_dim){.axis = 0, .size = length / 2, .stride = roll(d, 2) + 1};
    } else {
        shape.axes = roll(d, 3) == 0 ? 1U + (unsigned)roll(d, 7) : 7U;
    }
    return shape;
}

/* A slow link, or a dead one unless that cuts the slice in two. */
static void break_a_link(scene *s, dice *d)
{
    const pod_slice healthy = s->slice;
    const int32_t chip = roll(d, s->slice.nchips);
    const int direction = roll(d, POD_DIRECTIONS);
    const pod_fault_kind kind = roll(d, 2) == 0 ? POD_FAULT_LINK_DEAD : POD_FAULT_LINK_SLOW;
    if (pod_slice_fault_insert(&s->slice, kind, chip, direction, 2.5, NULL) != POD_OK) {
        return;
    }
    pod_router *router = NULL;
    if (pod_router_new(&s->slice, &router, NULL) != POD_OK) {
        s->slice = healthy;
        return;
    }
    pod_router_free(s->router);
    s->router = router;
}

static int64_t random_elements(dice *d, int32_t n)
{
    switch (roll(d, 4)) {
    case 0:
        return 1 + roll(d, 3 * n);
    case 1:
        return (int64_t)n * (1 + roll(d, 1000));
    case 2:
        return 1 + roll(d, 100000);
    default:
        return (int64_t)1 << (10 + roll(d, 14));
    }
}

static void check_bound(scene *s, const pod_coll_algorithm *algorithm)
{
    pod_coll_bound any = {0};
    pod_coll_bound own = {0};
    pod_coll_schedule *schedule = NULL;
    const pod_time_ps time_ps = scene_run(s, algorithm);
    if (algorithm->build(&s->request, &schedule, &s->err) != POD_OK
        || pod_coll_bound_get(&s->request, s->router, &any, &s->err) != POD_OK
        || pod_coll_bound_schedule(&s->request, s->router, schedule, &own, &s->err) != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    pod_coll_schedule_free(schedule);
    if (time_ps < own.time_ps || own.time_ps < any.time_ps) {
        char text[120];
        (void)snprintf(text, sizeof text, "took %.6f us, its bound is %.6f, that of all %.6f",
                       pod_time_to_us(time_ps), pod_time_to_us(own.time_ps),
                       pod_time_to_us(any.time_ps));
        scene_fail(s, algorithm->name, text);
    }
}

/* One algorithm of those that apply to a random request; 0 when none does. */
static int run_case(pod_par *par, int number)
{
    dice d = {.seed = SEED, .stream = (uint64_t)number};
    const scene_shape shape = random_shape(&d);
    scene s;
    scene_open(&s, par, &shape);
    if (roll(&d, 3) == 0) {
        break_a_link(&s, &d);
    }
    const int32_t n = s.group.size;
    int32_t source_of[CHIPS_MAX + 32];
    for (int32_t rank = 0; rank < n; rank++) {
        source_of[rank] = roll(&d, n + 1) - 1;
    }
    s.request.op = (pod_coll_op)roll(&d, POD_COLL_OP_COUNT);
    s.request.elements = random_elements(&d, n);
    s.request.root = roll(&d, n);
    s.request.source_of = s.request.op == POD_PERMUTE ? source_of : NULL;
    const int first = roll(&d, pod_coll_algorithm_count());
    int ran = 0;
    for (int i = 0; i < pod_coll_algorithm_count() && ran == 0; i++) {
        const pod_coll_algorithm *algorithm =
            pod_coll_algorithm_at((first + i) % pod_coll_algorithm_count());
        if (pod_coll_algorithm_fits(algorithm, &s.request)) {
            check_bound(&s, algorithm);
            ran = 1;
        }
    }
    scene_close(&s);
    return ran;
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {.status = POD_OK};
    const int cases = argc > 1 ? (int)strtol(argv[1], NULL, 10) : CASES;
    if (pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err.text);
    }
    int ran = 0;
    for (int i = 0; i < cases; i++) {
        ran += run_case(par, i);
    }
    if (ran < cases * 9 / 10) {
        mpi_check_fail(__FILE__, __LINE__, "too few cases had an algorithm");
    }
    pod_par_stop(par);
    return mpi_check_end();
}
