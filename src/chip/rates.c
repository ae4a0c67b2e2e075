/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/rates.h"

#include "base/names.h"

static const char *const rates_names[] = {"measured", "book", "vendor"};

enum { NRATES = (int)(sizeof rates_names / sizeof rates_names[0]) };

const char *pod_rates_name(pod_rates rates)
{
    POD_ASSERT((unsigned)rates < NRATES);
    return rates_names[rates];
}
