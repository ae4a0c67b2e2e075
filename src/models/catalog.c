/* SPDX-License-Identifier: Apache-2.0 */
#include "models/catalog.h"

#include "base/names.h"
#include "models/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 512 };

static bool is_in(const pod_table *table, const char *name)
{
    return table != NULL && pod_table_find(table, pod_table_column(table, "model"), name) >= 0;
}

/** Neither a name nor a kind. Of a name with its owner, "meta-llama/Llama-3.1-8B", the last part is looked for. */
static pod_status no_such_model(const pod_maxtext *maxtext, const char *name, pod_error *err)
{
    static const char *const kinds[] = {"matmul", "mlp", "transformer", "resnet", "conv"};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    const char *names[NAMES_MAX + KINDS];
    const int count = pod_maxtext_names(maxtext, names, NAMES_MAX);
    memcpy(&names[count], kinds, sizeof kinds);
    const char *last = strrchr(name, '/');
    const char *nearest = last != NULL ? pod_nearest_name(last + 1, names, count + KINDS) : NULL;
    if (nearest != NULL) {
        return pod_fail(err, POD_E_USAGE, "unknown model '%s'; did you mean '%s'?", name, nearest);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "model", name, names, count + KINDS);
}

/** What experts drop by names.csv. */
static pod_status capacity_read(const pod_maxtext *maxtext, const char *name, pod_model *model,
                                pod_error *err)
{
    const pod_table *names = maxtext->names;
    const int row = pod_table_find(names, pod_table_column(names, "model"), name);
    const int column = pod_table_column(names, "capacity_percent");
    return row >= 0 && pod_table_text(names, row, column)[0] != '\0'
               ? pod_table_i64(names, row, column, 1, INT32_MAX, &model->capacity_percent, err)
               : POD_OK;
}

static pod_status named_model(const pod_maxtext *maxtext, const char *name, pod_model *model,
                              pod_error *err)
{
    char described[POD_MODEL_NAME_MAX];
    bool found = false;
    if (is_in(maxtext->own, name)) {
        return pod_model_parse(name, maxtext->own, model, err);
    }
    const char *sizes = pod_maxtext_sizes(maxtext, name);
    if (sizes != NULL) {
        POD_TRY(pod_model_parse(sizes, NULL, model, err));
        (void)snprintf(model->name, sizeof model->name, "%s", name);
        return POD_OK;
    }
    pod_status st = pod_recipe_model(maxtext, name, described, sizeof described, &found, err);
    if (st != POD_OK || !found) {
        return st != POD_OK ? st : no_such_model(maxtext, name, err);
    }
    st = pod_model_parse(described, NULL, model, err);
    (void)snprintf(model->name, sizeof model->name, "%s", name);
    return st == POD_OK ? capacity_read(maxtext, name, model, err) : st;
}

pod_status pod_catalog_model(const pod_maxtext *maxtext, const char *text, pod_model *model,
                             pod_error *err)
{
    char name[POD_MODEL_NAME_MAX];
    const char *colon = strchr(text, ':');
    if (pod_model_is_inline(text)) {
        return pod_model_parse(text, maxtext->own, model, err);
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    POD_TRY(named_model(maxtext, colon != NULL ? name : text, model, err));
    if (colon == NULL) {
        return POD_OK;
    }
    (void)snprintf(model->name, sizeof model->name, "%s", text);
    return pod_model_resize(model, colon + 1, err);
}

static const char *text_of(const pod_maxtext *maxtext, const char *name, const char *column)
{
    const pod_table *const tables[2] = {maxtext->names, maxtext->own};
    for (int i = 0; i < 2; i++) {
        if (is_in(tables[i], name)) {
            const int row = pod_table_find(tables[i], pod_table_column(tables[i], "model"), name);
            return pod_table_text(tables[i], row, pod_table_column(tables[i], column));
        }
    }
    return "";
}

pod_status pod_catalog_list(const pod_maxtext *maxtext, pod_catalog_row **rows, int *count,
                            pod_error *err)
{
    const char *names[NAMES_MAX];
    const int all = pod_maxtext_names(maxtext, names, NAMES_MAX);
    pod_catalog_row *list = calloc((size_t)all + 1, sizeof *list);
    pod_status st =
        list != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the list of models");
    *count = 0;
    for (int i = 0; i < all && st == POD_OK; i++) {
        pod_error refused = {.status = POD_OK};
        pod_catalog_row *row = &list[*count];
        st = pod_catalog_model(maxtext, names[i], &row->model, &refused);
        if (st == POD_E_INVALID) {
            st = POD_OK;
            continue;
        }
        if (st != POD_OK && err != NULL) {
            *err = refused;
        }
        row->name = names[i];
        row->params_B = text_of(maxtext, names[i], "params_B");
        row->source = text_of(maxtext, names[i], "source");
        (*count)++;
    }
    if (st != POD_OK) {
        free(list);
        list = NULL;
    }
    *rows = list;
    return st;
}
