/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/deal.h"

#include <stdlib.h>
#include <string.h>

#include "engine/par_mpi.h"

enum { WORD_NEXT, WORD_NUMBERS };

struct pod_deal {
    /* rank 0: the next piece, numbers[count], records; without a window, of each rank */
    int64_t *words;
    MPI_Win window; /* MPI_WIN_NULL for one rank, and where there is none to be had */
    int count;
    int step; /* from a piece to the next without a window */
    size_t record_bytes;
    size_t record_words;
};

static size_t words_of(const pod_deal *deal)
{
    return WORD_NUMBERS + (size_t)deal->count * (1 + deal->record_words);
}

/* Where a piece's record begins. */
static size_t record_word(const pod_deal *deal, int piece)
{
    return WORD_NUMBERS + (size_t)deal->count + (size_t)piece * deal->record_words;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

/* Rank 0's words as a window of all ranks. There is none to be had from Open MPI 4.1 over Ethernet (its issue 11466):
 * MPI then says so on all ranks. Collective. */
static void window_open(pod_par *par, pod_deal *deal)
{
    const size_t words = par->rank == 0 ? words_of(deal) : 0;
    const int code = MPI_Win_allocate((MPI_Aint)(words * sizeof *deal->words), sizeof *deal->words,
                                      MPI_INFO_NULL, par->comm, &deal->words, &deal->window);
    int64_t open[] = {code == MPI_SUCCESS, code != MPI_SUCCESS};
    pod_par_min_i64(par, open, 2);
    if (open[1] != 0) { /* no rank has one */
        deal->words = NULL;
        deal->window = MPI_WIN_NULL;
        return;
    }
    if (open[0] == 0) {
        pod_par_mpi_failed(code, "MPI_Win_allocate", __FILE__, __LINE__);
    }
    if (par->rank == 0) {
        POD_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, deal->window));
        memset(deal->words, 0, words * sizeof *deal->words);
        POD_MPI(MPI_Win_unlock(0, deal->window));
    }
}

pod_status pod_deal_new(pod_par *par, int count, size_t record_bytes, pod_deal **deal,
                        pod_error *err)
{
    pod_deal *made = calloc(1, sizeof *made);
    pod_status st = made != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory to deal work");
    if (made != NULL) {
        *made = (pod_deal){.window = MPI_WIN_NULL,
                           .count = count,
                           .record_bytes = record_bytes,
                           .record_words =
                               (record_bytes + sizeof *made->words - 1) / sizeof *made->words};
    }
    st = pod_par_agree(par, st, err);
    if (st == POD_OK && par->size > 1) {
        window_open(par, made);
    }
    if (st == POD_OK && made->window == MPI_WIN_NULL) {
        made->words = calloc(words_of(made), sizeof *made->words);
        st = made->words != NULL ? POD_OK
                                 : pod_fail(err, POD_E_NOMEM, "no memory to deal %d pieces", count);
    }
    st = pod_par_agree(par, st, err); /* nobody asks before the words are there */
    if (st == POD_OK && made->window == MPI_WIN_NULL) {
        made->words[WORD_NEXT] = par->rank;
        made->step = par->size;
    }
    if (st != POD_OK && made != NULL) {
        free(made->words);
        free(made);
        made = NULL;
    }
    *deal = made;
    return st;
}

void pod_deal_free(pod_deal *deal)
{
    if (deal == NULL) {
        return;
    }
    if (deal->window != MPI_WIN_NULL) {
        POD_MPI(MPI_Win_free(&deal->window));
    } else {
        free(deal->words);
    }
    free(deal);
}

int pod_deal_next(pod_deal *deal)
{
    const int64_t one = 1;
    int64_t next = deal->count;
    if (deal->window == MPI_WIN_NULL) {
        next = deal->words[WORD_NEXT];
        deal->words[WORD_NEXT] += deal->step;
    } else {
        POD_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, deal->window));
        POD_MPI(MPI_Fetch_and_op(&one, &next, MPI_INT64_T, 0, WORD_NEXT, MPI_SUM, deal->window));
        POD_MPI(MPI_Win_unlock(0, deal->window));
    }
    return next < deal->count ? (int)next : deal->count;
}

void pod_deal_tell(pod_deal *deal, int piece, int64_t number)
{
    if (deal->window == MPI_WIN_NULL) {
        deal->words[WORD_NUMBERS + piece] = number;
        return;
    }
    POD_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, deal->window));
    POD_MPI(MPI_Accumulate(&number, 1, MPI_INT64_T, 0, WORD_NUMBERS + piece, 1, MPI_INT64_T,
                           MPI_REPLACE, deal->window));
    POD_MPI(MPI_Win_unlock(0, deal->window));
}

void pod_deal_leave(pod_deal *deal, int piece, const void *record)
{
    const size_t at = record_word(deal, piece);
    if (deal->window == MPI_WIN_NULL) {
        memcpy(deal->words + at, record, deal->record_bytes);
        return;
    }
    POD_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, deal->window));
    POD_MPI(MPI_Put(record, (int)deal->record_bytes, MPI_BYTE, 0, (MPI_Aint)at,
                    (int)deal->record_bytes, MPI_BYTE, deal->window));
    POD_MPI(MPI_Win_unlock(0, deal->window));
}

void pod_deal_fetch(const pod_deal *deal, int piece, void *record)
{
    const size_t at = record_word(deal, piece);
    if (deal->window == MPI_WIN_NULL) {
        memcpy(record, deal->words + at, deal->record_bytes);
        return;
    }
    POD_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, deal->window));
    POD_MPI(MPI_Get(record, (int)deal->record_bytes, MPI_BYTE, 0, (MPI_Aint)at,
                    (int)deal->record_bytes, MPI_BYTE, deal->window));
    POD_MPI(MPI_Win_unlock(0, deal->window));
}

void pod_deal_read(const pod_deal *deal, int64_t *numbers)
{
    if (deal->window == MPI_WIN_NULL) {
        memcpy(numbers, deal->words + WORD_NUMBERS, (size_t)deal->count * sizeof *numbers);
        return;
    }
    POD_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, deal->window));
    POD_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, numbers, deal->count, MPI_INT64_T, 0,
                               WORD_NUMBERS, deal->count, MPI_INT64_T, MPI_NO_OP, deal->window));
    POD_MPI(MPI_Win_unlock(0, deal->window));
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
