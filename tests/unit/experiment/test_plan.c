/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a pipeline, automatic microbatches, and the best layout of a slice. */
#include "fixture.h"
#include "models/catalog.h"

#include "experiment/plan.h"

static pod_experiment_step_request request_of(world *w, const char *model, int64_t batch,
                                              int64_t seq)
{
    pod_model parsed;
    OK(pod_catalog_model(&w->tables.maxtext, model, &parsed, &w->err));
    pod_experiment_step_request request = pod_experiment_step_request_of(&parsed);
    request.batch = batch;
    request.seq = seq;
    request.plain = true;
    return request;
}

/* Four equal stages and M microbatches of t, a third of it for the gradients of weights, which no other stage waits
 * for: the last microbatch leaves the first stage after (M + 3 * 2/3) t. */
Test(plan, the_bound_of_a_pipeline_has_its_bubble)
{
    enum { STAGES = 4, PARTS = 4 };
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    pod_experiment_step_request request =
        request_of(w, "mlp:layers=4,d_model=4096,d_ff=16384", 8192, 1);
    request.microbatches = PARTS;
    pod_experiment_candidate candidate = {.request = &request, .setup = &w->setup};
    OK(pod_logical_mesh_parse("pipeline=4", NULL, &candidate.mesh, &w->err));
    pod_experiment_step_outcome outcome;
    OK(pod_experiment_search_times(&w->experiment, &candidate, 1, 0, NULL, &outcome, &w->err));
    OK((pod_status)outcome.status);
    const double bound_s = (double)outcome.bound_ps / (double)POD_PS_PER_S;
    cr_expect_leq(outcome.bound_ps, outcome.time_ps);
    cr_expect_geq(bound_s, 0.95 * outcome.compute_s * (PARTS + 2.0 / 3 * (STAGES - 1)) / PARTS);
    world_fini(w);
}

/* Half as many do not fit. */
Test(plan, automatic_microbatches_are_the_fewest_that_fit)
{
    world world_, *w = &world_;
    world_init(w, "v6e:2x4");
    pod_experiment_step_request request = request_of(w, "llama3.1-8b", 128, 8192);
    pod_logical_mesh mesh;
    pod_experiment_step_case run_case;
    OK(pod_logical_mesh_parse("fsdp=8", NULL, &mesh, &w->err));
    request.microbatches = 0;
    OK(pod_experiment_step_case_init(&run_case, &request, &w->setup, &mesh, NULL, &w->err));
    const int32_t fewest = run_case.request.microbatches;
    pod_experiment_step_case_fini(&run_case);
    cr_assert_gt(fewest, 1);
    request.microbatches = fewest / 2;
    cr_expect_eq(
        pod_experiment_step_case_init(&run_case, &request, &w->setup, &mesh, NULL, &w->err),
        POD_E_NOFIT);
    pod_experiment_step_case_fini(&run_case);
    request.microbatches = 0;
    request.microbatches_doublings = 1;
    OK(pod_experiment_step_case_init(&run_case, &request, &w->setup, &mesh, NULL, &w->err));
    cr_expect_eq(run_case.request.microbatches, 2 * fewest);
    pod_experiment_step_case_fini(&run_case);
    world_fini(w);
}

Test(plan, a_slice_has_the_fastest_of_its_layouts_with_bounds_and_without)
{
    world world_, *w = &world_;
    world_init(w, "v5p:2x2x2");
    const pod_experiment_step_request request =
        request_of(w, "mlp:layers=2,d_model=1024,d_ff=4096", 4096, 1);
    pod_experiment_plan_question question = {.request = &request};
    pod_experiment_plan_row fast;
    pod_experiment_plan_row all;
    pod_experiment_plan_row dealt;
    OK(pod_experiment_plan_slice(&w->experiment, &question, &w->setup, &fast, &w->err));
    question.exhaustive = true;
    OK(pod_experiment_plan_slice(&w->experiment, &question, &w->setup, &all, &w->err));
    OK((pod_status)fast.best.status);
    cr_expect_eq(fast.best.time_ps, all.best.time_ps);
    cr_expect_str_eq(fast.best.mesh, all.best.mesh);
    OK(pod_experiment_plan_slices(&w->experiment, &question, &w->setup, 1, &dealt, &w->err));
    cr_expect_eq(fast.candidates, all.candidates);
    cr_expect_eq(fast.candidates, dealt.candidates);
    cr_expect_eq(dealt.best.time_ps, all.best.time_ps);
    cr_expect_eq(dealt.setup, &w->setup);
    cr_expect_leq(fast.best.bound_ps, fast.best.time_ps);
    world_fini(w);
}

Test(plan, what_fits_no_slice_says_how_much_it_needs)
{
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    const pod_experiment_step_request request = request_of(w, "llama3.1-405b", 4, 2048);
    const pod_experiment_plan_question question = {.request = &request};
    pod_experiment_plan_row row;
    bool holds = true;
    OK(pod_experiment_plan_slice(&w->experiment, &question, &w->setup, &row, &w->err));
    cr_expect_eq(row.best.status, POD_E_NOFIT);
    cr_expect_geq(row.best.needs_bytes, INT64_C(405000000000) * 6 / 4);
    OK(pod_experiment_plan_holds(&question, &w->setup, &holds, &w->err));
    cr_expect(!holds);
    world_fini(w);
}
