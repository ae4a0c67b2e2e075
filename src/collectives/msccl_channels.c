/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/msccl_impl.h"

#include <stdlib.h>

int32_t pod_msccl_find_tb(const pod_msccl *program, int32_t gpu, int32_t peer, int32_t chan,
                          bool receiver)
{
    for (int32_t i = 0; i < program->ntbs; i++) {
        const msccl_tb *tb = &program->tbs[i];
        if (tb->gpu == gpu && tb->chan == chan && (receiver ? tb->recv : tb->send) == peer) {
            return i;
        }
    }
    return -1;
}

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* Thread blocks that send to each other, directly or through others, share a channel. */
pod_status pod_msccl_channels_find(msccl_builder *b, int32_t *nchannels, pod_error *err)
{
    const pod_msccl *program = b->program;
    int32_t *parent = b->channel_of;
    for (int32_t i = 0; i < program->ntbs; i++) {
        parent[i] = i;
    }
    for (int32_t i = 0; i < program->ntbs; i++) {
        const msccl_tb *tb = &program->tbs[i];
        const int32_t to =
            tb->send < 0 ? i : pod_msccl_find_tb(program, tb->send, tb->gpu, tb->chan, true);
        const int32_t from =
            tb->recv < 0 ? i : pod_msccl_find_tb(program, tb->recv, tb->gpu, tb->chan, false);
        if (to < 0 || from < 0) {
            return pod_fail_at(err, POD_E_TABLE, program->file, tb->line, 1,
                               "gpu %d %s gpu %d on chan %d, where no thread block %s", tb->gpu,
                               to < 0 ? "sends to" : "receives from", to < 0 ? tb->send : tb->recv,
                               tb->chan, to < 0 ? "receives it" : "sends it");
        }
        parent[root_of(parent, i)] = root_of(parent, to);
        parent[root_of(parent, i)] = root_of(parent, from);
    }
    int32_t count = 0;
    int32_t *number = calloc((size_t)program->ntbs + 1, sizeof *number);
    if (!number) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %s", program->file);
    }
    for (int32_t i = 0; i < program->ntbs; i++) {
        const int32_t root = root_of(parent, i);
        number[root] = number[root] ? number[root] : ++count;
    }
    for (int32_t i = 0; i < program->ntbs; i++) {
        parent[i] = root_of(parent, i);
    }
    for (int32_t i = 0; i < program->ntbs; i++) {
        parent[i] = number[parent[i]] - 1;
    }
    free(number);
    *nchannels = count;
    return POD_OK;
}

pod_status pod_msccl_channels_fill(msccl_builder *b, int32_t nchannels, pod_error *err)
{
    const pod_msccl *program = b->program;
    const size_t cells = (size_t)(nchannels + 1) * (size_t)program->ngpus;
    for (size_t i = 0; i < cells; i++) {
        b->out->tb_of[i] = -1;
    }
    for (int32_t i = 0; i < program->ntbs; i++) {
        const msccl_tb *tb = &program->tbs[i];
        int32_t *place =
            &b->out->tb_of[(size_t)b->channel_of[i] * (size_t)program->ngpus + (size_t)tb->gpu];
        if (*place >= 0) {
            return pod_fail_at(err, POD_E_TABLE, program->file, tb->line, 1,
                               "thread blocks %d and %d of gpu %d are in one chain of peers; give "
                               "one of them a chan of its own",
                               program->tbs[*place].id, tb->id, tb->gpu);
        }
        *place = i;
    }
    return POD_OK;
}
