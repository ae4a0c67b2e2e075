/* SPDX-License-Identifier: Apache-2.0 */
/* The remedy that is said, against a step with that change. */
#include "fixture.h"
#include "models/catalog.h"

#include "experiment/step_remedies.h"

#include <math.h>

static void find(world *w, const char *model, const char *mesh, int64_t batch, int32_t ahead,
                 int32_t microbatches, pod_experiment_step_remedy *remedy, double *per_flop)
{
    pod_model parsed;
    pod_logical_mesh logical;
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    OK(pod_catalog_model(&w->tables.maxtext, model, &parsed, &w->err));
    OK(pod_logical_mesh_parse(mesh, NULL, &logical, &w->err));
    pod_experiment_step_request request = pod_experiment_step_request_of(&parsed);
    request.batch = batch;
    request.gather_ahead = ahead;
    request.microbatches = microbatches;
    OK(pod_experiment_step_case_init(&run_case, &request, &w->setup, &logical, NULL, &w->err));
    OK(pod_experiment_step_run(&w->experiment, &run_case, &w->setup.chip, NULL, &result, &w->err));
    *per_flop = (double)result.time_ps / run_case.work.model_flops;
    OK(pod_experiment_step_remedy_find(&w->experiment, &run_case, &w->setup.chip, &result, remedy,
                                       &w->err));
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
}

/* Gathers of one matmul have no layer before them to hide in: running ahead gains nothing. */
Test(remedies, what_gains_nothing_is_not_said)
{
    world world_, *w = &world_;
    world_init(w, "v5e:2x2");
    pod_experiment_step_remedy remedy;
    double per_flop;
    find(w, "matmul:m=8192,k=8192,n=1024", "fsdp=4", 0, 0, 1, &remedy, &per_flop);
    cr_expect_eq(remedy.change, POD_CHANGE_NONE);
    world_fini(w);
}

Test(remedies, the_gain_is_that_of_a_step_with_the_change)
{
    static const struct {
        const char *model, *mesh, *changed_model, *changed_mesh;
        int64_t batch, changed_batch;
        int32_t ahead, microbatches, changed_ahead, changed_microbatches;
        pod_experiment_step_change change;
    } cases[] = {
        {"mlp:layers=4,d_model=1024,d_ff=4096",  "data=4",     "mlp:layers=4,d_model=1024,d_ff=4096",
         "data=4",          256,   512,   1, 1, 1, 1, POD_CHANGE_BATCH            },
        {"mlp:layers=8,d_model=2048,d_ff=8192",  "fsdp=4",     "mlp:layers=8,d_model=2048,d_ff=8192",
         "fsdp=4",          16384, 16384, 0, 1, 1, 1, POD_CHANGE_GATHER_AHEAD     },
        {"mlp:layers=4,d_model=4096,d_ff=4096",  "tensor=4",   "mlp:layers=4,d_model=4096,d_ff=4096",
         "data=2,tensor=2", 65536, 65536, 1, 1, 1, 1, POD_CHANGE_TENSOR           },
        {"mlp:layers=4,d_model=4096,d_ff=4096",  "pipeline=4", "mlp:layers=4,d_model=4096,d_ff=4096",
         "pipeline=4",      65536, 65536, 1, 2, 1, 4, POD_CHANGE_MORE_MICROBATCHES},
        {"mlp:layers=4,d_model=4000,d_ff=16000", "data=4",     "mlp:layers=4,d_model=4096,d_ff=16000",
         "data=4",          65536, 65536, 1, 1, 1, 1, POD_CHANGE_SIZES            },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world world_, *w = &world_;
        world_init(w, "v5e:2x2");
        pod_experiment_step_remedy remedy;
        pod_experiment_step_remedy next;
        double before;
        double after;
        find(w, cases[i].model, cases[i].mesh, cases[i].batch, cases[i].ahead,
             cases[i].microbatches, &remedy, &before);
        find(w, cases[i].changed_model, cases[i].changed_mesh, cases[i].changed_batch,
             cases[i].changed_ahead, cases[i].changed_microbatches, &next, &after);
        cr_expect_eq(remedy.change, cases[i].change, "case %zu: change %d", i, (int)remedy.change);
        cr_expect(fabs(remedy.gain_frac - (1 - after / before)) < 1e-12, "case %zu: %.6f, not %.6f",
                  i, remedy.gain_frac, 1 - after / before);
        cr_expect_geq(remedy.gain_frac, 0.01);
        world_fini(w);
    }
}
