/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program whose ranks 1, 2, … ask together in a communicator of their own, while rank 0 asks alone: all get the
 * same answer, an error is one on all, and the program's own messages are not disturbed. */
#include <mpi.h>
#include <podsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const podsim_option collective[] = {
    {"slice",     "v5p:2x2x2" },
    {"op",        "all-reduce"},
    {"bytes",     "1KiB,64KiB"},
    {"algorithm", "all"       },
    {"data",      "real"      },
    {NULL,        NULL        }
};
static const podsim_option layouts[] = {
    {"slice", "v5e:2x4"                           },
    {"model", "mlp:layers=2,d_model=256,d_ff=1024"},
    {"batch", "256"                               },
    {"data",  "none"                              },
    {NULL,    NULL                                }
};
static const podsim_option unreadable[] = {
    {"",      "/nowhere/at/all.txt"},
    {"slice", "v5p:2x2x2"          },
    {NULL,    NULL                 }
};

static void fail(int rank, const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The answer of rank 1 of the world, or of this rank, held to that of rank 0. */
static void compare(int rank, const char *mine)
{
    char *theirs = rank == 0 ? strdup(mine) : NULL;
    int size = rank == 0 ? (int)strlen(mine) + 1 : 0;
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    theirs = rank == 0 ? theirs : malloc((size_t)size);
    MPI_Bcast(theirs, size, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (strcmp(mine, theirs) != 0) {
        fail(rank, "another answer than rank 0 got alone");
    }
    free(theirs);
}

int main(int argc, char **argv)
{
    int rank = 0;
    MPI_Comm own = MPI_COMM_NULL;
    if (podsim_open_comm(0) != NULL) { /* before MPI_Init */
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &own);
    podsim *context = rank == 0 ? podsim_open() : podsim_open_comm((int)MPI_Comm_c2f(own));
    if (context == NULL) {
        fail(rank, "no context");
    }
    podsim_result *result = NULL;
    if (podsim_collective(context, collective, &result) != PODSIM_OK) {
        fail(rank, podsim_error(context));
    }
    compare(rank, podsim_result_json(result));
    podsim_result_free(result);
    if (podsim_compare(context, layouts, &result) != PODSIM_OK) {
        fail(rank, podsim_error(context));
    }
    compare(rank, podsim_step_at(result, 0)->mesh);
    compare(rank, podsim_result_json(result));
    podsim_result_free(result);
    if (podsim_hlo(context, unreadable, &result) != PODSIM_SYSTEM || result != NULL) {
        fail(rank, "a file that isn't there is no error");
    }
    compare(rank, podsim_error(context));
    podsim_close(context);
    MPI_Comm_free(&own);
    MPI_Finalize();
    return 0;
}
