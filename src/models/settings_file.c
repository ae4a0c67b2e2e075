/* SPDX-License-Identifier: Apache-2.0 */
#include "models/settings_file.h"

#include <string.h>

/** Whether the first line that says something reads `key:` or begins a YAML document. */
static bool looks_like_yaml(const char *data)
{
    while (*data != '\0') {
        data += strspn(data, " \t\r\n");
        if (*data != '#') {
            break;
        }
        data += strcspn(data, "\n");
    }
    const size_t key = strcspn(data, ":= \t\r\n");
    return strncmp(data, "---", 3) == 0 || (data[key] == ':' && pod_setting_is_key(data, key));
}

pod_status pod_settings_file(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err)
{
    if (strlen(data) != size) {
        return pod_fail_at(err, POD_E_USAGE, file, 1, 1,
                           "holds a zero byte; give a text of key=value or key: value");
    }
    return looks_like_yaml(data) ? pod_settings_yaml(settings, data, size, file, err)
                                 : pod_settings_words(settings, data, file, err);
}
