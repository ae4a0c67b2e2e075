/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option_set.h"

#include "base/status.h"

void pod_cli_options_add(pod_cli_option_set *set, const pod_cli_option *options, int noptions)
{
    POD_ASSERT(set->count + noptions <= POD_CLI_OPTIONS_MAX);
    for (int i = 0; i < noptions; i++) {
        set->option[set->count++] = options[i];
    }
}
