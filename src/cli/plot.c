/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plot.h"

#include "base/grow.h"

#include <stdlib.h>

pod_status pod_cli_plot_collective(pod_cli_plot *plot, const pod_cli *cli,
                                   const pod_plot_collective_row *row, pod_error *err)
{
    if (cli->common.plot_path == NULL) {
        return POD_OK;
    }
    if (!POD_GROW(plot->collectives, plot->room, plot->count + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    }
    plot->collectives[plot->count++] = *row;
    return POD_OK;
}

pod_plot_step_row pod_cli_plot_step(const pod_experiment_step_outcome *outcome)
{
    return (pod_plot_step_row){
        .part_s = {outcome->compute_s - outcome->hbm_bound_s, outcome->exposed_ici_s,
                   outcome->exposed_dcn_s, outcome->hbm_bound_s, outcome->exposed_host_s,
                   outcome->idle_s}
    };
}

void pod_cli_plot_fini(pod_cli_plot *plot)
{
    free(plot->collectives);
}

pod_status pod_cli_plot_write(const pod_cli *cli,
                              pod_status (*add)(pod_plot *plot, const void *figures,
                                                pod_error *err),
                              const void *figures, pod_error *err)
{
    pod_plot *plot = NULL;
    pod_status status = POD_OK;
    if (cli->common.plot_path == NULL) {
        return POD_OK;
    }
    if (pod_par_rank(cli->par) == 0) {
        status = pod_plot_new(&plot, err);
        POD_THEN(status, add(plot, figures, err));
        POD_THEN(status, pod_plot_write(plot, cli->common.plot_path, err));
        pod_plot_free(plot);
    }
    return pod_par_agree(cli->par, status, err);
}
