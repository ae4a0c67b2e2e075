/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/remat.h"

#include "base/names.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    ALL = (1U << POD_KEEP_COUNT) - 1,
    MINIMAL = 1U << POD_KEEP_INPUT | 1U << POD_KEEP_QKV | 1U << POD_KEEP_OUT | 1U << POD_KEEP_MLP,
    FULL = 1U << POD_KEEP_INPUT
};

pod_remat_plan pod_remat_plan_of(pod_remat remat)
{
    switch (remat) {
    case POD_REMAT_AUTO:
    case POD_REMAT_NONE:
        return (pod_remat_plan){.hbm = ALL};
    case POD_REMAT_MINIMAL:
        return (pod_remat_plan){.hbm = MINIMAL};
    case POD_REMAT_FULL:
        return (pod_remat_plan){.hbm = FULL};
    }
    return (pod_remat_plan){.hbm = FULL};
}

static void names_print(pod_text *text, unsigned mask)
{
    static const char *const names[POD_KEEP_COUNT] = {"input", "qkv",   "context", "out",
                                                      "mlp",   "norms", "scores"};
    bool first = true;
    for (int i = 0; i < POD_KEEP_COUNT; i++) {
        if ((mask >> i & 1U) != 0) {
            pod_text_printf(text, "%s%s", first ? "" : "+", names[i]);
            first = false;
        }
    }
}

const char *pod_remat_plan_print(pod_remat_plan plan, char *buf, size_t size)
{
    pod_text text = {0};
    if (plan.host == 0 && !plan.narrow
        && (plan.hbm == ALL || plan.hbm == MINIMAL || plan.hbm == FULL)) {
        (void)snprintf(buf, size, "%s",
                       plan.hbm == ALL    ? "none"
                       : plan.hbm == FULL ? "full"
                                          : "minimal");
        return buf;
    }
    names_print(&text, plan.hbm);
    if (plan.host != 0) {
        pod_text_printf(&text, "%shost:", plan.hbm != 0 ? " " : "");
        names_print(&text, plan.host);
    }
    if (plan.narrow) {
        pod_text_printf(&text, " bf16 adam");
    }
    (void)snprintf(buf, size, "%s", text.data != NULL ? text.data : "");
    pod_text_free(&text);
    return buf;
}

static const char *const remat_names[] = {"auto", "none", "minimal", "full"};
enum { NREMATS = sizeof remat_names / sizeof remat_names[0] };

const char *pod_remat_name(pod_remat remat)
{
    return remat_names[remat];
}

pod_status pod_remat_parse(const char *text, pod_remat *remat, pod_error *err)
{
    for (int i = 0; i < NREMATS; i++) {
        if (strcmp(text, remat_names[i]) == 0) {
            *remat = (pod_remat)i;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "remat", text, remat_names, NREMATS);
}
