/* SPDX-License-Identifier: Apache-2.0 */
/* A step with faults in it, for tests: a row each, and whether they are found. */
#include "cli/step.h"
#include "cli/tables.h"

#include "experiment/step_inject.h"

#include <inttypes.h>

/* What a row shows. */
typedef struct inject_row {
    const char *fault;
    const char *op;
    int64_t layer;
    int64_t stage;
    int64_t changes;
    int64_t wrong;
} inject_row;

#define AT(field) POD_FIELD(inject_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "fault", AT(fault)},
    {.name = "op", AT(op)},
    {.name = "layer", AT(layer)},
    {.name = "stage", AT(stage)},
    {.name = "changes", AT(changes)},
    {.name = "wrong", AT(wrong)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

typedef struct found {
    pod_emit *emit;
    int64_t missed; /* that change something, and nothing is wrong */
} found;

static void add(void *context, const pod_experiment_injected *run)
{
    found *f = context;
    const inject_row row = {.fault = pod_injected_name(run->fault),
                            .op = run->op,
                            .layer = run->layer,
                            .stage = run->stage,
                            .changes = run->changes,
                            .wrong = run->wrong};
    pod_emit_fields(f->emit, &row, NCOLUMNS);
    f->missed += run->changes && run->wrong == 0;
}

pod_status pod_step_inject(pod_cli *cli, pod_experiment_step_case *run_case,
                           const pod_chip_spec *chip, const char *what, pod_error *err)
{
    found f = {.missed = 0};
    POD_TRY(pod_emit_new(cli->common.format, "inject", columns, NCOLUMNS, &f.emit, err));
    pod_status st = pod_experiment_inject(&cli->experiment, run_case, chip, what, add, &f, err);
    POD_THEN(st, pod_cli_finish(cli, f.emit, err));
    pod_emit_free(f.emit);
    return st == POD_OK && f.missed > 0 ? pod_fail(
               err, POD_E_CHECK, "%" PRId64 " faults change numbers and are not found", f.missed)
                                        : st;
}
