/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/model.h"

#include "base/names.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { PARAMETERS_MAX = 3, TOKEN_MAX = 64 };

/** A kind of model: its name, its parameters and where they go. */
typedef struct kind_row {
    const char *name;
    pod_model_kind kind;
    int nparameters;
    const char *parameter[PARAMETERS_MAX];
    size_t offset[PARAMETERS_MAX];
    const char *example;
} kind_row;

static const kind_row kinds[] = {
    {"matmul",
     POD_MODEL_MATMUL, 3,
     {"m", "k", "n"},
     {offsetof(pod_model, m), offsetof(pod_model, d_model), offsetof(pod_model, d_ff)},
     "matmul:m=512,k=512,n=2048"         },
    {"mlp",
     POD_MODEL_MLP,    3,
     {"layers", "d_model", "d_ff"},
     {offsetof(pod_model, layers), offsetof(pod_model, d_model), offsetof(pod_model, d_ff)},
     "mlp:layers=2,d_model=512,d_ff=2048"},
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static pod_status kind_find(const char *text, const kind_row **row, const char **rest,
                            pod_error *err)
{
    const char *names[NKINDS];
    char name[TOKEN_MAX];
    const size_t length = strcspn(text, ":");
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < TOKEN_MAX ? length : TOKEN_MAX - 1),
                   text);
    for (int i = 0; i < NKINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(name, kinds[i].name) == 0) {
            *row = &kinds[i];
            *rest = text[length] == ':' ? text + length + 1 : text + length;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "model", name, names, NKINDS);
}

/** Take one "name=value" of `length` characters. */
static pod_status parameter_set(const kind_row *row, const char *text, size_t length,
                                pod_model *model, pod_error *err)
{
    char token[TOKEN_MAX];
    if (length >= sizeof token) {
        return pod_fail(err, POD_E_USAGE, "'%s' is no model; write it like %s", model->name,
                        row->example);
    }
    (void)snprintf(token, sizeof token, "%.*s", (int)length, text);
    char *value = strchr(token, '=');
    if (value == NULL) {
        return pod_fail(err, POD_E_USAGE, "'%s' in a model has no value; write it like %s", token,
                        row->example);
    }
    *value++ = '\0';
    for (int i = 0; i < row->nparameters; i++) {
        int64_t *field = (int64_t *)(void *)((char *)model + row->offset[i]);
        if (strcmp(token, row->parameter[i]) != 0) {
            continue;
        }
        if (*field != 0) {
            return pod_fail(err, POD_E_USAGE, "%s is given twice in %s; give it once", token,
                            model->name);
        }
        return pod_parse_i64(value, token, 1, INT32_MAX, field, err);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "parameter of this model", token, row->parameter,
                            row->nparameters);
}

static pod_status parameters_complete(const kind_row *row, pod_model *model, pod_error *err)
{
    for (int i = 0; i < row->nparameters; i++) {
        if (*(int64_t *)(void *)((char *)model + row->offset[i]) == 0) {
            return pod_fail(err, POD_E_USAGE, "%s has no %s; write it like %s", model->name,
                            row->parameter[i], row->example);
        }
    }
    if (model->kind == POD_MODEL_MATMUL) {
        model->layers = 1;
    }
    int64_t weights = 0;
    if (!pod_mul_i64(model->d_model, model->d_ff, &weights)
        || !pod_mul_i64(weights, 2 * model->layers, &weights) || weights > INT64_MAX / 64) {
        return pod_fail(err, POD_E_RANGE, "%s has too many weights; use smaller sizes",
                        model->name);
    }
    return POD_OK;
}

pod_status pod_model_parse(const char *text, pod_model *model, pod_error *err)
{
    const kind_row *row = NULL;
    const char *rest = NULL;
    *model = (pod_model){0};
    pod_status st = kind_find(text, &row, &rest, err);
    if (st != POD_OK) {
        return st;
    }
    if (strlen(text) >= sizeof model->name) {
        return pod_fail(err, POD_E_USAGE, "a model of %zu characters; write it like %s",
                        strlen(text), row->example);
    }
    memcpy(model->name, text, strlen(text) + 1);
    model->kind = row->kind;
    while (*rest != '\0') {
        const size_t length = strcspn(rest, ",");
        st = parameter_set(row, rest, length, model, err);
        if (st != POD_OK) {
            return st;
        }
        rest += length;
        if (*rest == ',' && *++rest == '\0') {
            return pod_fail(err, POD_E_USAGE, "'%s' ends in a comma; write it like %s", text,
                            row->example);
        }
    }
    return parameters_complete(row, model, err);
}

int64_t pod_model_weights(const pod_model *model)
{
    const int64_t matrices = model->kind == POD_MODEL_MLP ? 2 : 1;
    return model->layers * matrices * model->d_model * model->d_ff;
}

double pod_model_flops(const pod_model *model, int64_t rows, int train)
{
    return (train ? 6.0 : 2.0) * (double)pod_model_weights(model) * (double)rows;
}
