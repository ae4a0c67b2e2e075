/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/remat.h"

#include "base/names.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    ALL = (1U << POD_KEEP_COUNT) - 1,
    INPUT = 1U << POD_KEEP_INPUT,
    QKV = 1U << POD_KEEP_QUERY | 1U << POD_KEEP_KEY | 1U << POD_KEEP_VALUE,
    CONTEXT = 1U << POD_KEEP_CONTEXT,
    OUT = 1U << POD_KEEP_OUT,
    MLPWI = 1U << POD_KEEP_MLPWI,
    MLPWO = 1U << POD_KEEP_MLPWO,
    MINIMAL = INPUT | QKV | OUT | MLPWI | MLPWO
};

typedef struct policy_row {
    const char *name;
    pod_remat_plan plan;
} policy_row;

static const policy_row policies[POD_REMAT_LIST] = {
    [POD_REMAT_AUTO] = {"auto",                             {.hbm = ALL}               },
    [POD_REMAT_NONE] = {"none",                             {.hbm = ALL}               },
    [POD_REMAT_FULL] = {"full",                             {.hbm = INPUT}             },
    [POD_REMAT_CUSTOM] = {"custom",                           {.hbm = INPUT}             },
    [POD_REMAT_MINIMAL] = {"minimal",                          {.hbm = MINIMAL}           },
    [POD_REMAT_MINIMAL_WITH_CONTEXT] = {"minimal_with_context",             {.hbm = MINIMAL | CONTEXT} },
    [POD_REMAT_MINIMAL_FLASH] = {"minimal_flash",                    {.hbm = MINIMAL | CONTEXT} },
    [POD_REMAT_SAVE_DOT_EXCEPT_MLP] = {"save_dot_except_mlp",              {.hbm = INPUT | QKV | OUT} },
    [POD_REMAT_SAVE_DOT_EXCEPT_MLPWI] = {"save_dot_except_mlpwi",
                        {.hbm = INPUT | QKV | OUT | MLPWO}                             },
    [POD_REMAT_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP] = {"save_dot_with_context_except_mlp",
                        {.hbm = INPUT | QKV | CONTEXT | OUT}                           },
    [POD_REMAT_SAVE_QKV_PROJ] = {"save_qkv_proj",                    {.hbm = INPUT | QKV}       },
    [POD_REMAT_SAVE_OUT_PROJ] = {"save_out_proj",                    {.hbm = INPUT | OUT}       },
    [POD_REMAT_QKV_PROJ_OFFLOADED] = {"qkv_proj_offloaded",               {.hbm = INPUT, .host = QKV}},
    [POD_REMAT_MINIMAL_OFFLOADED] = {"minimal_offloaded",
                        {.hbm = INPUT, .host = QKV | OUT | MLPWI | MLPWO}              },
};

pod_remat_plan pod_remat_plan_of(pod_remat remat)
{
    return policies[remat < POD_REMAT_LIST ? remat : POD_REMAT_NONE].plan;
}

const char *pod_remat_name(pod_remat remat)
{
    return remat < POD_REMAT_LIST ? policies[remat].name : "list";
}

/* ---- lists ---- */

/** Names of a list, those of several things first. */
static const struct {
    const char *name;
    unsigned mask;
} items[] = {
    {"qkv",     QKV                 },
    {"input",   INPUT               },
    {"query",   1U << POD_KEEP_QUERY},
    {"key",     1U << POD_KEEP_KEY  },
    {"value",   1U << POD_KEEP_VALUE},
    {"context", CONTEXT             },
    {"out",     OUT                 },
    {"mlpwi",   MLPWI               },
    {"mlpwo",   MLPWO               },
};
enum { NITEMS = sizeof items / sizeof items[0], TOKEN_MAX = 48 };

static void item_print(pod_text *text, const char *name, const char *place)
{
    pod_text_printf(text, "%s%s=%s", text->size > 0 ? "," : "", name, place);
}

const char *pod_remat_plan_print(pod_remat_plan plan, char *buf, size_t size)
{
    pod_text text = {0};
    unsigned printed = 0;
    for (int i = 1; i <= NITEMS && plan.hbm != ALL; i++) {
        const int item = i == 1 ? 1 : i == 2 ? 0 : i - 1; /* the input first */
        const unsigned mask = items[item].mask;
        if ((printed & mask) == 0 && (~plan.hbm & mask) == 0) {
            item_print(&text, items[item].name, "device");
            printed |= mask;
        } else if ((printed & mask) == 0 && (~plan.host & mask) == 0) {
            item_print(&text, items[item].name, "offload");
            printed |= mask;
        }
    }
    if (plan.hbm == ALL) {
        pod_text_add(&text, "none");
    }
    if (plan.narrow) {
        item_print(&text, "adam", "bf16");
    }
    (void)snprintf(buf, size, "%s", text.data != NULL ? text.data : "");
    pod_text_free(&text);
    return buf;
}

static pod_status item_find(const char *name, unsigned *mask, pod_error *err)
{
    const char *names[NITEMS];
    for (int i = 0; i < NITEMS; i++) {
        names[i] = items[i].name;
        if (strcmp(name, names[i]) == 0) {
            *mask = items[i].mask;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "name in --remat", name, names, NITEMS);
}

/** One NAME=PLACE of a list. @param seen  things named so far */
static pod_status item_parse(char *token, pod_remat_plan *plan, unsigned *seen, pod_error *err)
{
    char *place = strchr(token, '=');
    unsigned mask = 0;
    if (place == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "'%s' in --remat has no place; write NAME=device, NAME=offload or "
                        "NAME=remat",
                        token);
    }
    *place++ = '\0';
    if (strcmp(token, "adam") == 0 && strcmp(place, "bf16") == 0) {
        plan->narrow = true;
        return POD_OK;
    }
    POD_TRY(item_find(token, &mask, err));
    if ((*seen & mask) != 0) {
        return pod_fail(err, POD_E_USAGE, "--remat says twice where %s goes; name it once", token);
    }
    *seen |= mask;
    if (strcmp(place, "device") == 0) {
        plan->hbm |= mask;
    } else if (strcmp(place, "offload") == 0) {
        plan->host |= mask;
    } else if (strcmp(place, "remat") != 0) {
        return pod_fail(err, POD_E_USAGE,
                        "'%s' in --remat is no place; use device, offload or remat", place);
    } else if (mask == INPUT) {
        return pod_fail(err, POD_E_USAGE,
                        "a layer's input is always kept; use input=device or input=offload");
    }
    return POD_OK;
}

/** A list, after its policy if it has one ("none,adam=bf16"). */
static pod_status list_parse(const char *text, pod_remat_plan *plan, pod_error *err)
{
    unsigned seen = 0;
    pod_status st = POD_OK;
    *plan = (pod_remat_plan){0};
    if (strncmp(text, "none,", 5) == 0) {
        *plan = pod_remat_plan_of(POD_REMAT_NONE);
        seen = ALL;
        text += 5;
    }
    while (st == POD_OK && *text != '\0') {
        char token[TOKEN_MAX];
        const size_t length = strcspn(text, ",");
        if (length >= sizeof token) {
            return pod_fail(err, POD_E_USAGE,
                            "'%s' is no list for --remat; write it like "
                            "qkv=device,context=offload",
                            text);
        }
        (void)snprintf(token, sizeof token, "%.*s", (int)length, text);
        st = item_parse(token, plan, &seen, err);
        text += length + (text[length] == ',');
    }
    if (((plan->hbm | plan->host) & INPUT) == 0) {
        plan->hbm |= INPUT;
    }
    return st;
}

pod_status pod_remat_parse(const char *text, pod_remat *remat, pod_remat_plan *plan, pod_error *err)
{
    const char *names[POD_REMAT_LIST];
    for (int i = 0; i < POD_REMAT_LIST; i++) {
        names[i] = policies[i].name;
        if (strcmp(text, names[i]) == 0) {
            *remat = (pod_remat)i;
            *plan = policies[i].plan;
            return POD_OK;
        }
    }
    if (strchr(text, '=') == NULL) {
        return pod_fail_unknown(err, POD_E_USAGE, "remat", text, names, POD_REMAT_LIST);
    }
    *remat = POD_REMAT_LIST;
    return list_parse(text, plan, err);
}
