/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of work dealt out to ranks: each piece once, and what is told is read by all. */
#include "mpi_check.h"

#include "engine/deal.h"

enum { PIECES = 200 };

static void every_piece_goes_to_one(pod_par *par, int count)
{
    int64_t mine[PIECES] = {0};
    int64_t told[PIECES];
    pod_deal *deal = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_deal_new(par, count, sizeof(int64_t[2]), &deal, &err), POD_OK);
    int last = -1;
    int piece = pod_deal_next(deal);
    for (; piece < count; piece = pod_deal_next(deal)) {
        MPI_CHECK_I64(piece > last, 1);
        last = piece;
        mine[piece]++;
        const int64_t left[2] = {piece, 3 * piece};
        pod_deal_leave(deal, piece, left);
        pod_deal_tell(deal, piece, 7 * piece + 1);
        pod_deal_read(deal, told);
        MPI_CHECK_I64(told[piece], 7 * piece + 1);
    }
    MPI_CHECK_I64(piece, count);
    MPI_CHECK_I64(pod_deal_next(deal), count);
    pod_par_sum_i64(par, mine, count); /* all have told */
    pod_deal_read(deal, told);
    for (int i = 0; i < count; i++) {
        MPI_CHECK_I64(mine[i], 1);
        MPI_CHECK_I64(told[i], 7 * i + 1);
        int64_t left[2];
        pod_deal_fetch(deal, i, left);
        MPI_CHECK_I64(left[0], i);
        MPI_CHECK_I64(left[1], 3 * i);
    }
    pod_deal_free(deal);
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_start(&argc, &argv, &par, &err), POD_OK);
    every_piece_goes_to_one(par, 0);
    every_piece_goes_to_one(par, 1);
    every_piece_goes_to_one(par, PIECES);
    pod_par_stop(par);
    return mpi_check_end();
}
