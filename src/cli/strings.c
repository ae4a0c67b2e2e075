/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/strings.h"

#include <stdlib.h>

struct pod_cli_strings {
    pod_cli_strings *next;
    void *memory;
};

bool pod_cli_strings_keep(pod_cli_strings **strings, void *memory)
{
    pod_cli_strings *entry = memory != NULL ? malloc(sizeof *entry) : NULL;
    if (entry == NULL) {
        free(memory);
        return false;
    }
    *entry = (pod_cli_strings){.next = *strings, .memory = memory};
    *strings = entry;
    return true;
}

void pod_cli_strings_free(pod_cli_strings **strings)
{
    while (*strings != NULL) {
        pod_cli_strings *entry = *strings;
        *strings = entry->next;
        free(entry->memory);
        free(entry);
    }
}

pod_status pod_cli_list_append(pod_cli_strings **strings, pod_cli_list *list, const char *text,
                               pod_error *err)
{
    const char **longer = malloc(((size_t)list->count + 1) * sizeof *longer);
    if (!pod_cli_strings_keep(strings, longer)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the command line");
    }
    for (int i = 0; i < list->count; i++) {
        longer[i] = list->text[i];
    }
    longer[list->count] = text;
    *list = (pod_cli_list){.count = list->count + 1, .text = longer};
    return POD_OK;
}
