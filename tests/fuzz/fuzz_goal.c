/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/goal.h"
#include "fuzz.h"

#include <string.h>

enum { RANKS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bool open[POD_AXES] = {false, false, false};
    pod_goal goal;
    pod_slice slice;
    pod_programs programs = {.nstages = 0};
    pod_error err = {0};
    POD_ASSERT(pod_slice_make("v4", 3, (const int32_t[]){4, 1, 1}, open, false, &slice, &err)
               == POD_OK);
    pod_status st = pod_goal_read("my.goal", (const char *)data, size, &goal, &err);
    if (st == POD_OK && goal.nranks <= RANKS_MAX) {
        st = pod_goal_programs(&goal, &slice, &programs, &err);
        pod_programs_fini(&programs);
    }
    POD_ASSERT(st == POD_OK || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
    pod_goal_fini(&goal);
    return 0;
}
