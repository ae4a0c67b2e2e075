/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/rates.h"

#include "base/names.h"

#include <string.h>

static const char *const rates_names[] = {"measured", "book", "vendor"};

enum { NRATES = (int)(sizeof rates_names / sizeof rates_names[0]) };

pod_status pod_rates_parse(const char *text, pod_rates *rates, pod_error *err)
{
    for (int i = 0; i < NRATES; i++) {
        if (strcmp(text, rates_names[i]) == 0) {
            *rates = (pod_rates)i;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "--rates", text, rates_names, NRATES);
}

const char *pod_rates_name(pod_rates rates)
{
    POD_ASSERT((unsigned)rates < NRATES);
    return rates_names[rates];
}
