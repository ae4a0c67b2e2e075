/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Length of a string that stands in JSON as it is; 0 if some character needs more care. */
static size_t plain_length(const char *string)
{
    size_t length = 0;
    for (; string[length] != '\0'; length++) {
        const unsigned char c = (unsigned char)string[length];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            return 0;
        }
    }
    return length;
}

bool pod_json_string(pod_text *text, const char *string)
{
    const size_t length = plain_length(string);
    if (length > 0) {
        pod_text_fill(text, '"', length + 2);
        if (!text->out_of_memory) {
            memcpy(text->data + text->size - length - 1, string, length);
        }
        return true;
    }
    json_t *value = json_string(string); /* NULL unless it is UTF-8 */
    if (value == NULL) {
        return false;
    }
    char *dumped = json_dumps(value, JSON_ENCODE_ANY);
    if (dumped == NULL) {
        text->out_of_memory = true;
    } else {
        pod_text_add(text, dumped);
    }
    free(dumped);
    json_decref(value);
    return true;
}
