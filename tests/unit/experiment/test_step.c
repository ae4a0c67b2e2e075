/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by structs: against the time of one kernel, against each other, and what is refused. */
#include "fixture.h"
#include "models/catalog.h"

#include "chip/matmul.h"
#include "experiment/search.h"
#include "experiment/step_best.h"
#include "experiment/step_dcn.h"
#include "experiment/step_outcome.h"
#include "experiment/step_routes.h"
#include "experiment/step_simulate.h"
#include "experiment/step_what_if.h"

#include <string.h>

#include "../sample.h"

static pod_experiment_step_request request_of(world *w, const char *model, int64_t batch)
{
    pod_model parsed;
    OK(pod_catalog_model(&w->tables.maxtext, model, &parsed, &w->err));
    pod_experiment_step_request request = pod_experiment_step_request_of(&parsed);
    request.batch = batch;
    return request;
}

static pod_logical_mesh mesh_of(world *w, const char *text)
{
    pod_logical_mesh mesh;
    OK(pod_logical_mesh_parse(text, NULL, &mesh, &w->err));
    return mesh;
}

static pod_status try_step(world *w, const pod_experiment_step_request *request, const char *mesh,
                           pod_experiment_step_outcome *outcome)
{
    const pod_logical_mesh logical = mesh_of(w, mesh);
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    pod_status st =
        pod_experiment_step_lay(&w->experiment, &run_case, request, &w->setup, &logical, &w->err);
    if (st == POD_OK) {
        st = pod_experiment_step(&w->experiment, &run_case, &w->setup.chip, NULL, &result, outcome,
                                 &w->err);
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

static const char MLP[] = "mlp:layers=2,d_model=256,d_ff=512";

Test(step, a_forward_matmul_on_one_chip_is_one_kernel)
{
    world world_, *w = &world_;
    world_init(w, "v5e:1x1");
    w->experiment.data = POD_DATA_NONE;
    pod_experiment_step_request request = request_of(w, "matmul:m=4096,k=2048,n=1024", 0);
    request.mode = POD_STEP_FORWARD;
    pod_experiment_step_outcome outcome;
    OK(try_step(w, &request, "data=1", &outcome));
    const pod_matmul_args args = {.m = 4096, .k = 2048, .n = 1024, .dtype = POD_DTYPE_BF16};
    pod_matmul_time kernel;
    OK(pod_matmul_time_get(&w->setup.chip, &args, &kernel, &w->err));
    cr_expect_eq(outcome.time_ps, kernel.time_ps);
    cr_expect_float_eq(outcome.compute_s, pod_time_to_s(kernel.time_ps), 1e-15);
    cr_expect_eq(outcome.batch, 4096);
    cr_expect_float_eq(outcome.figures.model_tflops_per_chip,
                       2.0 * 4096 * 2048 * 1024 / pod_time_to_s(kernel.time_ps) / 1e12, 1e-6);
    cr_expect_str_eq(outcome.placement, "jax");
    world_fini(w);
}

Test(step, real_numbers_agree_with_one_chip_and_do_not_change_the_time)
{
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    const pod_experiment_step_request request = request_of(w, MLP, 64);
    pod_experiment_step_outcome real;
    pod_experiment_step_outcome timed;
    OK(try_step(w, &request, "data=2,tensor=2", &real));
    cr_expect_eq(real.data, 1);
    cr_expect_eq(real.numbers.wrong, 0);
    cr_expect_gt(real.numbers.checked, 0);
    cr_expect_eq(w->notes, 1);
    cr_expect(strstr(w->note, "--data real") != NULL, "%s", w->note);
    OK(pod_experiment_step_verdict(&real, &w->err));
    w->experiment.data = POD_DATA_NONE;
    OK(try_step(w, &request, "data=2,tensor=2", &timed));
    cr_expect_eq(timed.data, 0);
    cr_expect_eq(timed.time_ps, real.time_ps);
    const double parts = timed.compute_s + timed.exposed_ici_s + timed.exposed_dcn_s
                         + timed.exposed_host_s + timed.idle_s;
    cr_expect_float_eq(parts, pod_time_to_s(timed.time_ps), 1e-12);
    real.numbers.wrong = 3;
    cr_expect_eq(pod_experiment_step_verdict(&real, &w->err), POD_E_CHECK);
    world_fini(w);
}

/* Clusters that the oracle knows, against every message of every chip. */
Test(step, layers_known_from_others_take_the_time_of_all_messages)
{
    static const char model[] = "transformer:layers=12,d_model=512,d_ff=1024,heads=4,kv_heads=4,"
                                "head_dim=128,vocab=1024,mlp_matrices=3";
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    pod_experiment_step_request request = request_of(w, model, 16);
    request.seq = 512;
    pod_experiment_step_outcome few;
    pod_experiment_step_outcome all;
    OK(try_step(w, &request, "fsdp=16", &few));
    request.exact = true;
    OK(try_step(w, &request, "fsdp=16", &all));
    cr_expect_eq(few.time_ps, all.time_ps, "%lld and %lld ps", (long long)few.time_ps,
                 (long long)all.time_ps);
    world_fini(w);
}

/* Updates of ten layers hide all of the last all-reduces, and those of further layers no more: extrapolated from fewer,
 * such a step took less than its bound. */
Test(step, layers_hide_no_more_than_there_is)
{
    static const char model[] = "transformer:layers=32,d_model=256,d_ff=512,heads=16,kv_heads=1,"
                                "head_dim=128,vocab=512,mlp_matrices=2";
    world world_, *w = &world_;
    world_init(w, "tpu7x:2x2x4");
    w->experiment.data = POD_DATA_NONE;
    pod_experiment_step_request request = request_of(w, model, 128);
    request.seq = 2048;
    request.dtype = POD_DTYPE_FP8;
    request.remat = POD_REMAT_FULL;
    const pod_experiment_candidate candidate = {
        .request = &request, .setup = &w->setup, .mesh = mesh_of(w, "data=16")};
    pod_experiment_step_outcome few;
    pod_experiment_step_outcome all;
    OK(pod_experiment_search_times(&w->experiment, &candidate, 1, 0, NULL, &few, &w->err));
    cr_expect_leq(few.bound_ps, few.time_ps);
    request.exact = true;
    OK(try_step(w, &request, "data=16", &all));
    cr_expect_eq(few.time_ps, all.time_ps, "%lld and %lld ps", (long long)few.time_ps,
                 (long long)all.time_ps);
    world_fini(w);
}

/* What is charged to collectives, messages and the wait for the slowest slice, less what is exposed. */
static int64_t left_over(const pod_experiment_step_case *run_case, const pod_step_result *result)
{
    int64_t sum = result->slowest_ps - result->exposed_ici_ps - result->exposed_dcn_ps;
    for (int32_t s = 0; s < result->nstages; s++) {
        const pod_program *program = &run_case->work.programs.stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op_kind kind = program->ops[i].kind;
            sum += kind == POD_OP_COLLECTIVE || kind == POD_OP_SEND || kind == POD_OP_RECV
                       ? result->ops[s][i].exposed_ps
                       : 0;
        }
    }
    return sum;
}

/* On one slice and over slices that wait for the slowest. */
Test(step, what_ops_are_charged_adds_up_to_what_is_exposed)
{
    static const char model[] = "transformer:layers=12,d_model=512,d_ff=1024,heads=4,kv_heads=4,"
                                "head_dim=128,vocab=1024,mlp_matrices=3";
    static const char *const slice[] = {"v5e:4x4", "2*v5e:2x4"};
    static const char *const mesh[] = {"fsdp=16", "fsdp=4,tensor=4", "pipeline=4,fsdp=4",
                                       "fsdp=8",  "fsdp=4,tensor=2", "pipeline=2,fsdp=4"};
    for (int i = 0; i < 6; i++) {
        world world_, *w = &world_;
        world_init(w, slice[i / 3]);
        w->experiment.data = POD_DATA_NONE;
        w->setup.chip.slice_jitter_frac = 0.07;
        pod_experiment_step_request request = request_of(w, model, 32);
        request.seq = 512;
        request.microbatches = strncmp(mesh[i], "pipeline", 8) == 0 ? 4 : 1;
        pod_logical_mesh logical;
        OK(pod_logical_mesh_parse(mesh[i], i / 3 == 1 ? "data=2" : NULL, &logical, &w->err));
        pod_experiment_step_case run_case;
        pod_step_result result = {0};
        OK(pod_experiment_step_lay(&w->experiment, &run_case, &request, &w->setup, &logical,
                                   &w->err));
        OK(pod_experiment_step_run(&w->experiment, &run_case, &w->setup.chip, NULL, &result,
                                   &w->err));
        cr_expect_eq(left_over(&run_case, &result), 0, "%s on %s: %lld ps", mesh[i], slice[i / 3],
                     (long long)left_over(&run_case, &result));
        cr_expect_gt(result.exposed_ici_ps, 0);
        cr_expect((i / 3 == 1) == (result.exposed_dcn_ps > 0));
        cr_expect((i / 3 == 1) == (result.slowest_ps > 0));
        pod_step_result_fini(&result);
        pod_experiment_step_case_fini(&run_case);
        world_fini(w);
    }
}

Test(step, the_best_placement_is_none_slower_than_that_of_jax)
{
    world world_, *w = &world_;
    world_init(w, "v5e:8x4");
    w->experiment.data = POD_DATA_NONE;
    pod_experiment_step_request request = request_of(w, MLP, 512);
    pod_experiment_step_outcome jax;
    pod_experiment_step_outcome best;
    OK(try_step(w, &request, "data=8,tensor=4", &jax));
    request.placement = "best";
    OK(try_step(w, &request, "data=8,tensor=4", &best));
    cr_expect_leq(best.time_ps, jax.time_ps);
    cr_expect_str_neq(best.placement, "best", "it says which");
    world_fini(w);
}

/* Where all is twice as fast, all takes half as long, to the rounding of its ops. */
Test(step, everything_twice_as_fast_takes_half_the_time)
{
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    const pod_experiment_step_request request = request_of(w, MLP, 512);
    const pod_logical_mesh mesh = mesh_of(w, "data=4,tensor=4");
    pod_experiment_step_case run_case;
    pod_step_result base = {0};
    pod_step_result twice = {0};
    pod_experiment_what_if probe[POD_WHAT_IF_KEYS];
    pod_chip_spec chip = w->setup.chip;
    for (int key = 0; key < POD_WHAT_IF_KEYS; key++) {
        chip = pod_experiment_what_if_chip(&chip, key, 2);
    }
    OK(pod_experiment_step_lay(&w->experiment, &run_case, &request, &w->setup, &mesh, &w->err));
    OK(pod_experiment_step_run(&w->experiment, &run_case, &w->setup.chip, NULL, &base, &w->err));
    OK(pod_experiment_step_run(&w->experiment, &run_case, &chip, NULL, &twice, &w->err));
    cr_expect_float_eq((double)base.time_ps / (double)twice.time_ps, 2, 1e-5);
    OK(pod_experiment_what_if_all(&w->experiment, &run_case, base.time_ps, probe, &w->err));
    double sum = 0;
    for (int i = 0; i < POD_WHAT_IF_KEYS; i++) {
        cr_expect_leq(probe[i].time_ps, base.time_ps, "%s", pod_experiment_what_if_key[i]);
        sum += probe[i].elasticity;
    }
    cr_expect(sum > 0.5 && sum < 1 + 1e-9, "parts of 1, less where another resource takes over: %g",
              sum);
    cr_expect_eq(probe[1].elasticity, 0, "one slice has no DCN");
    pod_step_result_fini(&base);
    pod_step_result_fini(&twice);
    pod_experiment_step_case_fini(&run_case);
    world_fini(w);
}

/* Bytes that leave a slice, over what the rest of the step leaves for them. */
Test(step, dcn_is_required_against_available)
{
    world world_, *w = &world_;
    world_init(w, "2*v5e:4x4");
    const pod_experiment_step_request request = request_of(w, MLP, 512);
    pod_logical_mesh mesh;
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    OK(pod_logical_mesh_parse("data=16", "data=2", &mesh, &w->err));
    OK(pod_experiment_step_lay(&w->experiment, &run_case, &request, &w->setup, &mesh, &w->err));
    OK(pod_experiment_step_run(&w->experiment, &run_case, &w->setup.chip, NULL, &result, &w->err));
    cr_assert(pod_experiment_step_crosses(&result));
    const pod_experiment_step_dcn dcn =
        pod_experiment_step_dcn_get(&run_case, &w->setup.chip, &result);
    /* gradients of 2 layers, 2 · 256 · 512 of bf16 each, of which a chip passes its 16th on */
    cr_expect_eq(dcn.chip_bytes, 2 * 2 * 256 * 512 * 2 / 16);
    cr_expect_float_eq(dcn.required_bytes_per_s, (double)dcn.chip_bytes / dcn.rest_s, 1e-3);
    cr_expect_float_eq(dcn.slack, dcn.available_bytes_per_s / dcn.required_bytes_per_s, 1e-12);
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    world_fini(w);
}

Test(step, a_collective_faster_than_its_bound_is_an_internal_error)
{
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    const pod_experiment_step_request request = request_of(w, MLP, 64);
    const pod_logical_mesh mesh = mesh_of(w, "data=4");
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    OK(pod_experiment_step_lay(&w->experiment, &run_case, &request, &w->setup, &mesh, &w->err));
    OK(pod_experiment_step_run(&w->experiment, &run_case, &w->setup.chip, NULL, &result, &w->err));
    const pod_programs *programs = &run_case.work.programs;
    int collectives = 0;
    for (int32_t i = 0; i < programs->stages[0].nops; i++) {
        pod_op_record *record = &result.ops[0][i];
        if (programs->stages[0].ops[i].kind != POD_OP_COLLECTIVE) {
            continue;
        }
        collectives++;
        cr_expect_gt(record->bound_ps, 0);
        const pod_time_ps was_ps = record->last_end_ps;
        OK(pod_experiment_step_bounds_check(programs, &result, 0, &w->err));
        record->last_end_ps = record->first_start_ps + record->bound_ps;
        OK(pod_experiment_step_bounds_check(programs, &result, 0, &w->err));
        record->last_end_ps--;
        cr_expect_eq(pod_experiment_step_bounds_check(programs, &result, 0, &w->err),
                     POD_E_INTERNAL);
        record->last_end_ps = was_ps;
    }
    cr_expect_gt(collectives, 0);
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    world_fini(w);
}

Test(step, says_what_is_wrong)
{
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    pod_experiment_step_outcome outcome;
    pod_experiment_step_request request = request_of(w, MLP, 512);
    cr_expect_eq(try_step(w, &request, "data=5", &outcome), POD_E_INVALID, "16 chips");
    request.batch = 511;
    cr_expect_eq(try_step(w, &request, "data=16", &outcome), POD_E_INVALID, "rows don't divide");
    request.batch = 0;
    request.batch_per_chip = INT64_MAX / 2;
    cr_expect_eq(try_step(w, &request, "data=16", &outcome), POD_E_RANGE);
    request = request_of(w, "mlp:layers=64,d_model=16384,d_ff=65536", 512);
    cr_expect_eq(try_step(w, &request, "data=16", &outcome), POD_E_NOFIT);
    world_fini(w);
}

/* ---- search ---- */

Test(search, has_a_reason_or_figures_for_every_candidate_and_sorts_them)
{
    static const char *const meshes[] = {"data=5", "data=16", "data=4,tensor=4", "tensor=16"};
    enum { COUNT = sizeof meshes / sizeof meshes[0] };
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    w->experiment.data = POD_DATA_NONE;
    const pod_experiment_step_request request = request_of(w, MLP, 512);
    pod_experiment_candidate candidates[COUNT];
    pod_experiment_step_outcome outcomes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        candidates[i] = (pod_experiment_candidate){
            .request = &request, .setup = &w->setup, .mesh = mesh_of(w, meshes[i])};
    }
    OK(pod_experiment_search(&w->experiment, candidates, COUNT, 0, NULL, outcomes, &w->err));
    cr_expect_eq(outcomes[0].status, POD_E_INVALID);
    cr_expect(outcomes[0].reason[0] != '\0');
    cr_expect_str_eq(outcomes[0].mesh, "data=5");
    for (int i = 1; i < COUNT; i++) {
        pod_experiment_step_outcome one;
        cr_expect_eq(outcomes[i].status, POD_OK, "%s", meshes[i]);
        OK(try_step(w, &request, meshes[i], &one));
        cr_expect_eq(outcomes[i].time_ps, one.time_ps, "%s", meshes[i]);
    }
    pod_experiment_outcomes_sort(outcomes, COUNT);
    cr_expect_str_eq(outcomes[COUNT - 1].mesh, "data=5", "what can't run comes last");
    for (int i = 1; i < COUNT - 1; i++) {
        cr_expect_leq(outcomes[i - 1].time_ps, outcomes[i].time_ps);
    }
    world_fini(w);
}

enum { HEARD_MAX = 8 };

/* What a listener was told. */
typedef struct heard {
    int bounded;
    int found;
    char mesh[HEARD_MAX][POD_MESH_TEXT_MAX];
} heard;

static void hear_bounds(void *context, const pod_experiment_step_outcome *outcomes, int count)
{
    heard *h = context;
    cr_expect_eq(h->found, 0, "bounds come first");
    for (int i = 0; i < count; i++) {
        if (outcomes[i].status == POD_OK) {
            cr_expect_float_eq(outcomes[i].figures.step_time_s, pod_time_to_s(outcomes[i].bound_ps),
                               1e-15);
            cr_expect_gt(outcomes[i].figures.hbm_frac, 0);
        }
    }
    h->bounded = count;
}

static void hear_outcome(void *context, const pod_experiment_step_outcome *outcome)
{
    heard *h = context;
    (void)snprintf(h->mesh[h->found++], sizeof h->mesh[0], "%s", outcome->mesh);
}

Test(search, who_listens_hears_the_final_order)
{
    static const char *const meshes[] = {"tensor=16", "data=16",       "data=5",
                                         "fsdp=16",   "data=4,fsdp=4", "data=4,tensor=4"};
    enum { COUNT = sizeof meshes / sizeof meshes[0] };
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    w->experiment.data = POD_DATA_NONE;
    const pod_experiment_step_request request = request_of(w, MLP, 512);
    pod_experiment_candidate candidates[COUNT];
    for (int i = 0; i < COUNT; i++) {
        candidates[i] = (pod_experiment_candidate){
            .request = &request, .setup = &w->setup, .mesh = mesh_of(w, meshes[i])};
    }
    for (int top = 0; top <= COUNT; top++) {
        pod_experiment_step_outcome outcomes[COUNT];
        heard h = {.bounded = 0};
        const pod_experiment_search_listener listener = {
            .context = &h, .bounded = hear_bounds, .found = hear_outcome};
        OK(pod_experiment_search(&w->experiment, candidates, COUNT, top, &listener, outcomes,
                                 &w->err));
        pod_experiment_outcomes_sort(outcomes, COUNT);
        cr_expect_eq(h.bounded, COUNT);
        int figures = 0;
        for (; figures < COUNT && outcomes[figures].status == POD_OK && !outcomes[figures].slower;
             figures++) {
            cr_expect_str_eq(h.mesh[figures], outcomes[figures].mesh, "top %d", top);
        }
        cr_expect_eq(h.found, figures, "top %d", top);
    }
    world_fini(w);
}

Test(search, with_numbers_checks_all_candidates)
{
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    const pod_experiment_step_request request = request_of(w, MLP, 64);
    const pod_experiment_candidate candidates[] = {
        {.request = &request, .setup = &w->setup, .mesh = mesh_of(w, "data=4")         },
        {.request = &request, .setup = &w->setup, .mesh = mesh_of(w, "data=2,tensor=2")},
    };
    pod_experiment_step_outcome outcomes[2];
    OK(pod_experiment_search(&w->experiment, candidates, 2, 0, NULL, outcomes, &w->err));
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(outcomes[i].data, 1);
        cr_expect_eq(outcomes[i].numbers.wrong, 0);
        cr_expect_gt(outcomes[i].numbers.checked, 0);
    }
    cr_expect_eq(w->notes, 1, "one choice for all");
    world_fini(w);
}

/* Bounds hold for every step; only what was folded over DCN may be rounded, by 10 ppm. */
Test(experiment_step, may_not_be_below_its_bound)
{
    pod_error err = {.status = POD_OK};
    pod_step_result result = {.time_ps = 1000000};
    cr_assert_eq(pod_experiment_step_bound_hold(0, &result, &err), POD_OK);
    cr_assert_eq(pod_experiment_step_bound_hold(1000000, &result, &err), POD_OK);
    cr_assert_eq(pod_experiment_step_bound_hold(1000001, &result, &err), POD_E_INTERNAL);
    cr_assert(strstr(err.text, "below its bound of 1.000001 us") != NULL, "%s", err.text);
    result.links.dcn_bytes = 1;
    cr_assert_eq(pod_experiment_step_bound_hold(1000001, &result, &err), POD_OK);
    cr_assert_eq(pod_experiment_step_bound_hold(1000020, &result, &err), POD_E_INTERNAL);
}
