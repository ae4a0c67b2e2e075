/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of XProf: anything is read, or refused in one line. The first byte says which kind of file the rest is. */
#include "fuzz.h"

#include "report/profile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/podsim_fuzz_%ld.%s", (long)getpid(),
                   data[0] == 'x' ? "xplane.pb" : "trace.json");
    FILE *file = fopen(path, "wb");
    POD_ASSERT(file != NULL && fwrite(data + 1, 1, size - 1, file) == size - 1
               && fclose(file) == 0);
    pod_profile profile = {.device = NULL};
    pod_error err = {0};
    const pod_status st = pod_profile_read(path, -1, NULL, &profile, &err);
    POD_ASSERT(st == POD_OK || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
    POD_ASSERT(st != POD_OK || (profile.step_ps >= 0 && profile.gaps_ps >= 0));
    pod_profile_free(&profile);
    POD_ASSERT(remove(path) == 0);
    return 0;
}
