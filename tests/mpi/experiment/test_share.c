/* SPDX-License-Identifier: Apache-2.0 */
/* Results dealt out to ranks come together on all of them. */
#include "mpi_check.h"

#include "experiment/experiment.h"

typedef struct item {
    int64_t number;
    double half;
    char text[3]; /* with padding behind it */
} item;

static void every_rank_gets_all(pod_par *par, int count)
{
    item items[8];
    pod_error err = {0};
    memset(items, 0xEE, sizeof items); /* what others did is not looked at */
    for (int i = pod_par_rank(par); i < count; i += pod_par_size(par)) {
        items[i] = (item){.number = -i, .half = i + 0.5, .text = {(char)('a' + i)}};
    }
    MPI_CHECK_I64(pod_experiment_share(par, items, count, sizeof *items, NULL, &err), POD_OK);
    for (int i = 0; i < count; i++) {
        MPI_CHECK_I64(items[i].number, -i);
        MPI_CHECK_I64(items[i].half == i + 0.5, 1);
        MPI_CHECK_I64(items[i].text[0], 'a' + i);
    }
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_start(&argc, &argv, &par, &err), POD_OK);
    for (int count = 0; count <= 8; count++) {
        every_rank_gets_all(par, count);
    }
    pod_par_stop(par);
    return mpi_check_end();
}
