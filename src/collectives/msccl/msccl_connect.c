/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of msccl.h: which tb receives what another one sends, and a channel for each pair. */
#include "collectives/msccl/msccl_program.h"

#include <stdlib.h>

pod_status pod_msccl_blame(const pod_msccl *m, const msccl_tb *tb, int32_t step, const char *what,
                           pod_error *err)
{
    const msccl_at at = step < 0 ? tb->at : m->steps[tb->first_step + step].at;
    if (step < 0) {
        return pod_fail_at(err, POD_E_TABLE, m->file, at.line, at.column, "gpu %d, tb %d: %s",
                           (int)tb->gpu, (int)tb->id, what);
    }
    return pod_fail_at(err, POD_E_TABLE, m->file, at.line, at.column, "gpu %d, tb %d, step %d: %s",
                       (int)tb->gpu, (int)tb->id, (int)step, what);
}

/* The tb on `gpu` that talks to `peer` on this chan in the wanted role; -1 = none, -2 = several. */
static int32_t find_tb(const pod_msccl *m, int32_t gpu, int32_t peer, int32_t chan, bool sending)
{
    int32_t found = -1;
    for (int32_t t = m->gpus[gpu].first_tb; t < m->gpus[gpu].first_tb + m->gpus[gpu].tbs; ++t) {
        const msccl_tb *tb = &m->tbs[t];
        if (tb->chan == chan && (sending ? tb->send : tb->recv) == peer) {
            found = found == -1 ? t : -2;
        }
    }
    return found;
}

static int32_t count_steps(const pod_msccl *m, const msccl_tb *tb, bool (*is_one)(msccl_type))
{
    int32_t count = 0;
    for (int32_t i = 0; i < tb->steps; ++i) {
        count += is_one(m->steps[tb->first_step + i].type);
    }
    return count;
}

/* Index in the tb of its k-th step that sends (or msccl_receives). */
static int32_t nth_step(const pod_msccl *m, const msccl_tb *tb, bool (*is_one)(msccl_type),
                        int32_t k)
{
    for (int32_t i = 0; i < tb->steps; ++i) {
        if (is_one(m->steps[tb->first_step + i].type) && k-- == 0) {
            return i;
        }
    }
    return -1;
}

/* What one tb msccl_sends, the other receives: as often, and as much each time. */
static pod_status match(const pod_msccl *m, const msccl_tb *from, const msccl_tb *to,
                        pod_error *err)
{
    const int32_t sent = count_steps(m, from, msccl_sends);
    const int32_t received = count_steps(m, to, msccl_receives);
    if (sent > received) {
        return pod_msccl_blame(m, from, nth_step(m, from, msccl_sends, received),
                               "what it sends is never received; the other chip has fewer receives",
                               err);
    }
    if (received > sent) {
        return pod_msccl_blame(m, to, nth_step(m, to, msccl_receives, sent),
                               "it waits for ever for a message; the other chip sends fewer", err);
    }
    int32_t s = 0;
    int32_t r = 0;
    for (int32_t k = 0; k < sent; ++k, ++s, ++r) {
        while (!msccl_sends(m->steps[from->first_step + s].type)) {
            ++s;
        }
        while (!msccl_receives(m->steps[to->first_step + r].type)) {
            ++r;
        }
        if (m->steps[from->first_step + s].chunks != m->steps[to->first_step + r].chunks) {
            return pod_msccl_blame(m, to, r,
                                   "it receives another number of chunks than is sent to it", err);
        }
    }
    return POD_OK;
}

static pod_status pair_up(const pod_msccl *m, msccl_links *links, pod_error *err)
{
    for (int32_t t = 0; t < m->ntbs; ++t) {
        const msccl_tb *tb = &m->tbs[t];
        links->receiver[t] = -1;
        links->sender[t] = -1;
        if (count_steps(m, tb, msccl_sends) > 0) {
            if (find_tb(m, tb->gpu, tb->send, tb->chan, true) == -2) {
                return pod_msccl_blame(
                    m, tb, -1, "two tbs send to the same chip on one chan; give them two", err);
            }
            links->receiver[t] = find_tb(m, tb->send, tb->gpu, tb->chan, false);
            if (links->receiver[t] < 0) {
                return pod_msccl_blame(
                    m, tb, -1, "no tb of that chip receives on this chan, or several do", err);
            }
            const pod_status st = match(m, tb, &m->tbs[links->receiver[t]], err);
            if (st != POD_OK) {
                return st;
            }
        }
        if (count_steps(m, tb, msccl_receives) > 0) {
            links->sender[t] = find_tb(m, tb->recv, tb->gpu, tb->chan, true);
            if (links->sender[t] < 0
                || count_steps(m, &m->tbs[links->sender[t]], msccl_sends) == 0) {
                return pod_msccl_blame(
                    m, tb, nth_step(m, tb, msccl_receives, 0),
                    "it waits for ever for a message; no tb of that chip sends on this chan", err);
            }
        }
    }
    return POD_OK;
}

/* Connections that share a chip get different channels. @return false when memory is out */
static bool colour(const pod_msccl *m, msccl_links *links)
{
    const size_t colours = 4 * (size_t)m->ntbs + 1;
    int32_t most = 0;
    for (int32_t g = 0; g < m->ngpus; ++g) {
        most = m->gpus[g].tbs > most ? m->gpus[g].tbs : most;
    }
    const size_t width = 4 * (size_t)most + 1 < colours ? 4 * (size_t)most + 1 : colours;
    bool *used = calloc((size_t)m->ngpus * width, sizeof *used);
    if (!used) {
        return false;
    }
    for (int32_t t = 0; t < m->ntbs; ++t) {
        links->send_channel[t] = -1;
        links->recv_channel[t] = -1;
    }
    for (int32_t t = 0; t < m->ntbs; ++t) {
        if (links->receiver[t] < 0) {
            continue;
        }
        bool *from = &used[(size_t)m->tbs[t].gpu * width];
        bool *to = &used[(size_t)m->tbs[t].send * width];
        int32_t channel = 0;
        while (from[channel] || to[channel]) {
            ++channel;
        }
        from[channel] = true;
        to[channel] = true;
        links->send_channel[t] = channel;
        links->recv_channel[links->receiver[t]] = channel;
        links->channels = channel + 1 > links->channels ? channel + 1 : links->channels;
    }
    free(used);
    return true;
}

pod_status pod_msccl_connect(const pod_msccl *m, msccl_links *links, pod_error *err)
{
    const size_t tbs = (size_t)m->ntbs + 1;
    *links = (msccl_links){
        .sender = calloc(tbs, sizeof *links->sender),
        .receiver = calloc(tbs, sizeof *links->receiver),
        .send_channel = calloc(tbs, sizeof *links->send_channel),
        .recv_channel = calloc(tbs, sizeof *links->recv_channel),
    };
    const bool ok = links->sender && links->receiver && links->send_channel && links->recv_channel;
    pod_status st = ok ? pair_up(m, links, err) : POD_E_NOMEM;
    if (!ok || (st == POD_OK && !colour(m, links))) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to compile %s", m->file);
    }
    if (st != POD_OK) {
        pod_msccl_links_fini(links);
    }
    return st;
}

void pod_msccl_links_fini(msccl_links *links)
{
    free(links->recv_channel);
    free(links->send_channel);
    free(links->receiver);
    free(links->sender);
    *links = (msccl_links){0};
}
