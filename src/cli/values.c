/* SPDX-License-Identifier: Apache-2.0 */
/* Values that many options share. */
#include "base/names.h"
#include "base/units.h"
#include "cli/options.h"

#include <string.h>

pod_status pod_cli_choice_parse(const char *text, const char *option, const char *const *names,
                                int nnames, int *index, pod_error *err)
{
    for (int i = 0; text != NULL && i < nnames; i++) {
        if (strcmp(text, names[i]) == 0) {
            *index = i;
            return POD_OK;
        }
    }
    return text == NULL ? POD_OK : pod_fail_unknown(err, POD_E_USAGE, option, text, names, nnames);
}

pod_status pod_cli_count_parse(const char *text, const char *option, int64_t *count, pod_error *err)
{
    return pod_parse_i64(text, option, 0, INT64_MAX, count, err);
}

pod_status pod_cli_require(const char *value, const char *option, const char *example,
                           pod_error *err)
{
    return value != NULL ? POD_OK
                         : pod_fail(err, POD_E_USAGE, "missing %s; give it as in %s %s", option,
                                    option, example);
}
