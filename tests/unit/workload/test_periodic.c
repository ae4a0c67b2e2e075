/* SPDX-License-Identifier: Apache-2.0 */
/* Which transformers' layers repeat. */
#include "models/model_layer.h"
#include "tables.h"
#include "workload/transformer/periodic.h"

static pod_model model_of(const char *name, int64_t layers)
{
    pod_model model = model_named(name);
    model.layers = layers > 0 ? layers : model.layers;
    return model;
}

Test(periodic, layers_repeat_or_not)
{
    const pod_model shallow = model_of("llama3.1-8b", 7);
    const pod_model uneven = model_of("gemma4-4b", 0); /* its last layers share keys and values */
    const pod_model deepseek = model_of("deepseek-v3", 0);
    const pod_model deep = model_of("llama3.1-8b", 0);
    pod_periodic p;
    cr_expect(pod_periodic_repeats(&deep, 1));
    cr_expect_not(pod_periodic_repeats(&shallow, 1));
    cr_expect_not(pod_periodic_repeats(&uneven, 1));
    cr_expect_not(pod_periodic_repeats(&deepseek, 2));
    cr_expect_not(pod_periodic_memory_find(&uneven, 1, &p));
}
