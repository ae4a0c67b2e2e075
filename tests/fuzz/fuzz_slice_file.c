/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "slices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_table *table = NULL;
    pod_error err = {0};
    if (pod_table_parse("slice.csv", (const char *)data, size, &table, &err) != POD_OK) {
        POD_ASSERT(err.text[0] != '\0');
        return 0;
    }
    pod_slice slice;
    bool listed = false;
    if (pod_slice_parse_file(fuzz_catalog(), table, &slice, &listed, &err) == POD_OK) {
        fuzz_check_slice(&slice);
    } else {
        POD_ASSERT(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
    }
    pod_table_free(table);
    return 0;
}
