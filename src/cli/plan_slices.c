/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_slices.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MAX_CHIPS = 256, ITEM_MAX = 96 };

/* What the list is read with. */
typedef struct reader {
    pod_plan_slices *slices;
    const pod_experiment_market *market;
    int64_t max_chips;
    int capacity;
} reader;

/* ---- one slice ---- */

static bool known(const pod_plan_slices *slices, const char *name)
{
    for (int i = 0; i < slices->count; i++) {
        if (strcmp(slices->setup[i].slice.name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Setups must not move once they are made, so there is room for all from the start. */
static pod_status add_spec(reader *r, const char *spec, bool limited, pod_error *err)
{
    pod_plan_slices *slices = r->slices;
    POD_ASSERT(slices->count < r->capacity);
    pod_experiment_setup *setup = &slices->setup[slices->count];
    const pod_status status = pod_experiment_market_setup(r->market, spec, setup, err);
    if (status != POD_OK || known(slices, setup->slice.name)
        || (limited && pod_experiment_setup_chips(setup) > r->max_chips)) {
        pod_experiment_setup_fini(setup);
        return status;
    }
    slices->count++;
    return POD_OK;
}

/* All rows of a generation, or of all (chip NULL), `count` slices of each. */
static pod_status add_rows(reader *r, const char *count, const char *chip, pod_error *err)
{
    const pod_slice_catalog *catalog = r->market->tables->catalog;
    for (int i = 0; i < pod_slice_catalog_rows(catalog); i++) {
        pod_slice slice;
        const char *type = NULL;
        char spec[ITEM_MAX];
        pod_slice_catalog_row(catalog, i, &slice, &type);
        if (chip != NULL && strcmp(slice.chip_name, chip) != 0) {
            continue;
        }
        (void)snprintf(spec, sizeof spec, "%s%s", count, slice.name);
        POD_TRY(add_spec(r, spec, true, err));
    }
    return POD_OK;
}

/* ---- the list ---- */

/* "v5e", "v5p:*", "2*v5e:*"; else a spec. */
static pod_status add_item(reader *r, const char *item, pod_error *err)
{
    char count[16] = "";
    const char *star = strchr(item, '*');
    const char *colon = strchr(item, ':');
    const char *name = item;
    if (star != NULL && colon != NULL && star < colon) {
        (void)snprintf(count, sizeof count, "%.*s", (int)(star - item + 1), item);
        name = star + 1;
    }
    const bool pattern = colon != NULL && strcmp(colon, ":*") == 0;
    if (!pattern && (colon != NULL || strchr(item, '-') != NULL)) {
        return add_spec(r, item, false, err);
    }
    const pod_generation *generation = NULL;
    const size_t length = pattern ? (size_t)(colon - name) : strlen(name);
    POD_TRY(pod_generations_find(pod_slice_catalog_generations(r->market->tables->catalog), name,
                                 length, &generation, err));
    return add_rows(r, count, generation->name, err);
}

static pod_status add_list(reader *r, const char *list, pod_error *err)
{
    pod_status status = POD_OK;
    const char *at = list;
    do {
        char item[ITEM_MAX];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof item) {
            return pod_fail(err, POD_E_USAGE,
                            "--slices is a list of specs, generations and patterns, as "
                            "v5p:4x4x8,v5e,2*v6e:*; not '%s'",
                            list);
        }
        (void)snprintf(item, sizeof item, "%.*s", (int)length, at);
        status = add_item(r, item, err);
        at += length + (at[length] == ',' ? 1 : 0);
    } while (status == POD_OK && *at != '\0');
    return status;
}

/* The most slices that a list can name. */
static int room_of(const pod_experiment_market *market, const char *list)
{
    int items = 1;
    for (const char *c = list; c != NULL && *c != '\0'; c++) {
        items += *c == ',' ? 1 : 0;
    }
    return items * (pod_slice_catalog_rows(market->tables->catalog) + 1);
}

pod_status pod_plan_slices_init(pod_plan_slices *slices, const pod_experiment_market *market,
                                const char *list, const char *max_chips, pod_error *err)
{
    reader r = {.slices = slices, .market = market, .max_chips = DEFAULT_MAX_CHIPS};
    *slices = (pod_plan_slices){0};
    POD_TRY(max_chips != NULL
                ? pod_parse_i64(max_chips, "--max-chips", 1, INT32_MAX, &r.max_chips, err)
                : POD_OK);
    r.capacity = room_of(market, list);
    slices->setup = calloc((size_t)r.capacity, sizeof *slices->setup);
    if (slices->setup == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the slices");
    }
    POD_TRY(list != NULL ? add_list(&r, list, err) : add_rows(&r, "", NULL, err));
    if (slices->count == 0) {
        POD_TRY(pod_fail(err, POD_E_USAGE,
                         "no slice of --slices has at most %lld chips; raise --max-chips",
                         (long long)r.max_chips));
    }
    return POD_OK;
}

void pod_plan_slices_fini(pod_plan_slices *slices)
{
    for (int i = 0; i < slices->count; i++) {
        pod_experiment_setup_fini(&slices->setup[i]);
    }
    free(slices->setup);
    *slices = (pod_plan_slices){0};
}

/* ---- prices ---- */

static pod_status add_price(pod_plan_prices *prices, const pod_cli *cli, const char *item,
                            size_t length, pod_error *err)
{
    const char *equals = memchr(item, '=', length);
    const pod_generation *generation = NULL;
    char number[32];
    if (equals == NULL || prices->count == POD_PLAN_PRICES_MAX
        || (size_t)(item + length - equals) > sizeof number) {
        return pod_fail(err, POD_E_USAGE, "--price is CHIP=X,..., as v5e=1.2,v6e=2.7; not '%.*s'",
                        (int)length, item);
    }
    POD_TRY(pod_generations_find(pod_slice_catalog_generations(cli->tables->catalog), item,
                                 (size_t)(equals - item), &generation, err));
    const int at = prices->count++;
    (void)snprintf(prices->chip[at], sizeof prices->chip[at], "%s", generation->name);
    (void)snprintf(number, sizeof number, "%.*s", (int)(item + length - equals - 1), equals + 1);
    return pod_parse_double(number, "--price", 1e-6, 1e9, &prices->price[at], err);
}

pod_status pod_plan_prices_read(pod_plan_prices *prices, const pod_cli *cli, const char *text,
                                pod_error *err)
{
    pod_status status = POD_OK;
    *prices = (pod_plan_prices){0};
    while (status == POD_OK && text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        status = add_price(prices, cli, text, length, err);
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return status;
}

pod_status pod_plan_prices_check(const pod_plan_prices *prices, const pod_plan_slices *slices,
                                 pod_error *err)
{
    for (int i = 0; prices->count > 0 && i < slices->count; i++) {
        const char *chip = slices->setup[i].slice.chip_name;
        if (pod_plan_price(prices, chip) < 0) {
            return pod_fail(err, POD_E_USAGE, "--price has no %s, of which slices are considered",
                            chip);
        }
    }
    return POD_OK;
}

double pod_plan_price(const pod_plan_prices *prices, const char *chip)
{
    for (int i = 0; i < prices->count; i++) {
        if (strcmp(prices->chip[i], chip) == 0) {
            return prices->price[i];
        }
    }
    return prices->count == 0 ? 1 : -1;
}
