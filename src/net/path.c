/* SPDX-License-Identifier: Apache-2.0 */
#include "net/path.h"

enum { SEGMENT_BITS = 12, SEGMENTS_PER_WORD = 5 };

static int path_segments(const pod_net_path *path)
{
    int segments = 0;
    for (int word = 0; word < 2; word++) {
        for (uint64_t rest = path->word[word]; rest; rest >>= SEGMENT_BITS) {
            segments++;
        }
    }
    return segments;
}

bool pod_net_path_append(pod_net_path *path, int port, int32_t hops)
{
    int at = path_segments(path);
    while (hops > 0) {
        const int32_t run = hops < POD_NET_RUN_MAX ? hops : POD_NET_RUN_MAX;
        if (at == POD_NET_SEGMENTS_MAX) {
            return false;
        }
        const uint64_t segment = (uint64_t)port | (uint64_t)run << 4;
        path->word[at / SEGMENTS_PER_WORD] |= segment << (SEGMENT_BITS * (at % SEGMENTS_PER_WORD));
        hops -= run;
        at++;
    }
    return true;
}

int pod_net_path_pop(pod_net_path *path)
{
    const int port = (int)(path->word[0] & 15U);
    path->word[0] -= 1U << 4;
    if (((path->word[0] >> 4) & POD_NET_RUN_MAX) == 0) {
        const uint64_t moved = path->word[1] & ((UINT64_C(1) << SEGMENT_BITS) - 1);
        path->word[0] =
            path->word[0] >> SEGMENT_BITS | moved << (SEGMENT_BITS * (SEGMENTS_PER_WORD - 1));
        path->word[1] >>= SEGMENT_BITS;
    }
    return port;
}
