/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a MaxText run: any text gives figures, or one line that says what is wrong. */
#include "fuzz.h"

#include "models/recipe.h"
#include "models/settings_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    POD_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    pod_settings settings = {0};
    pod_recipe recipe;
    pod_error err = {0};
    pod_status st = pod_settings_file(&settings, text, size, "settings", &err);
    if (st == POD_OK) {
        st = pod_recipe_read(&settings, NULL, &recipe, &err);
    }
    if (st != POD_OK) {
        POD_ASSERT((st == POD_E_USAGE || st == POD_E_INVALID) && err.text[0] != '\0'
                   && strchr(err.text, '\n') == NULL);
    }
    pod_settings_fini(&settings);
    free(text);
    return 0;
}
