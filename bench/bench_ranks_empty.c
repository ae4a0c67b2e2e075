/* SPDX-License-Identifier: Apache-2.0 */
/* The least an MPI program can do: what bench_ranks compares with. */
#include <mpi.h>

int main(int argc, char **argv)
{
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
        return 1;
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    (void)MPI_Finalize();
    return 0;
}
