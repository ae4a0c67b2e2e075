/* SPDX-License-Identifier: Apache-2.0 */
/* Values that many options share. */
#include "cli/values.h"

#include "base/names.h"
#include "base/units.h"

#include <stdio.h>
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

pod_status pod_cli_require(const char *value, const char *option, const char *example,
                           pod_error *err)
{
    return value != NULL ? POD_OK
                         : pod_fail(err, POD_E_USAGE, "missing %s; give it as in %s %s", option,
                                    option, example);
}

pod_status pod_cli_cores_parse(const char *text, const pod_chip_spec *chip, bool *one_core,
                               pod_error *err)
{
    char all[16];
    (void)snprintf(all, sizeof all, "%d", chip->cores);
    const char *const names[] = {"all", "1", all};
    int index = 0;
    const pod_status st =
        pod_cli_choice_parse(text, "--cores", names, chip->cores > 1 ? 3 : 2, &index, err);
    *one_core = index == 1;
    return st;
}

pod_status pod_cli_dtype_read(const char *text, void *field, pod_error *err)
{
    return pod_dtype_parse(text, field, err);
}
