/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "slices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    POD_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    pod_slice slice;
    bool listed = false;
    pod_error err = {0};
    if (pod_slice_parse(fuzz_catalog(), text, &slice, &listed, &err) == POD_OK) {
        fuzz_check_slice(&slice);
    } else {
        POD_ASSERT(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
    }
    free(text);
    return 0;
}
