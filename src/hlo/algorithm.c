/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/algorithm.h"

#include "hlo/config.h"

#include <stdio.h>
#include <string.h>

/* Axes in the compiler's numbering: y, x, z (collectives/xla/xla_colours.h). */
static const int compiler_axis[POD_XLA_AXES_MAX] = {1, 0, 2};

/* The place after `name` in a piece of the text, or its end. */
static uint32_t after(const char *text, pod_hlo_span span, const char *name)
{
    const size_t size = strlen(name);
    for (uint32_t at = span.begin; at + size <= span.end; at++) {
        if (memcmp(text + at, name, size) == 0) {
            return at + (uint32_t)size;
        }
    }
    return span.end;
}

/* A small number at a place; -1 if none is there. */
static int number_at(const char *text, uint32_t *at, uint32_t end)
{
    int value = -1;
    while (*at < end && text[*at] >= '0' && text[*at] <= '9' && value < 1000) {
        value = (value < 0 ? 0 : value * 10) + (text[*at] - '0');
        (*at)++;
    }
    return value;
}

static int number_after(const char *text, pod_hlo_span span, const char *name)
{
    uint32_t at = after(text, span, name);
    return number_at(text, &at, span.end);
}

/* "{0 1 2},{1 2 0},…": the orders of the streams. @return false if they aren't so */
static bool orders_read(const char *text, uint32_t at, uint32_t end, pod_xla_wish *wish)
{
    for (int s = 0; s < wish->streams; s++) {
        if (at >= end || text[at++] != '{') {
            return false;
        }
        for (int p = 0; p < wish->nphases; p++) {
            const int dim = number_at(text, &at, end);
            if (dim < 0 || dim >= POD_XLA_AXES_MAX || at >= end) {
                return false;
            }
            wish->order[s][p] = compiler_axis[dim];
            at += text[at] == ' ';
        }
        if (at >= end || text[at++] != '}') {
            return false;
        }
        at += at < end && text[at] == ',';
    }
    return true;
}

/* Streams as `debug` says them. @return false if it doesn't */
static bool streams_read(const char *text, const pod_hlo_config *config, pod_xla_wish *wish)
{
    static const char dim_used[] = "dim_used:";
    wish->form = POD_XLA_FORM_STREAMS;
    wish->way = pod_hlo_begins(text, config->strategy, "UniDirection") ? POD_XLA_ONE : POD_XLA_BOTH;
    wish->short_form = pod_hlo_holds(text, config->emitter, "Short");
    wish->streams = number_after(text, config->debug, "colors:");
    wish->nphases = number_after(text, config->debug, "phases:");
    if (wish->streams < 1 || wish->streams > POD_XLA_STREAMS_MAX || wish->nphases < 1
        || wish->nphases > POD_XLA_AXES_MAX) {
        return false;
    }
    if (!pod_hlo_holds(text, config->debug, dim_used)) {
        const bool one = wish->nphases == 1;
        wish->nphases = 0;
        return one;
    }
    return orders_read(text, after(text, config->debug, dim_used), config->debug.end, wish);
}

/* The form that a config names. @return false: none that is known here */
static bool wish_read(const char *text, const pod_hlo_config *config, bool scatter,
                      pod_xla_wish *wish)
{
    static const struct {
        const char *begins;
        pod_xla_form form;
    } forms[] = {
        {"3DAllGather",      POD_XLA_FORM_AG3D  },
        {"2DAllGather",      POD_XLA_FORM_AG2D  },
        {"1DAllGather",      POD_XLA_FORM_AG1D  },
        {"AllToAllEmitter",  POD_XLA_FORM_DIRECT},
        {"NetRouterEmitter", POD_XLA_FORM_DIRECT},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (pod_hlo_begins(text, config->emitter, forms[i].begins)) {
            wish->form = forms[i].form;
            return true;
        }
    }
    const bool ring = pod_hlo_is(text, config->emitter, "SinglePhaseRingSumEmitter")
                      || pod_hlo_is(text, config->strategy, "StrategyRing");
    if (ring) {
        wish->form = scatter ? POD_XLA_FORM_RS1D : POD_XLA_FORM_RING;
        wish->short_form = pod_hlo_holds(text, config->emitter, "Short");
        return true;
    }
    return pod_hlo_holds(text, config->strategy, "Strategy") && streams_read(text, config, wish);
}

static bool runs_auto(const pod_hlo_collective *collective)
{
    return collective->opcode == POD_HLO_COLLECTIVE_PERMUTE
           || collective->opcode == POD_HLO_COLLECTIVE_BROADCAST;
}

static void text_print(const char *text, const pod_hlo_config *config, char *out, size_t size)
{
    if (config->emitter.end > config->emitter.begin) {
        const bool strategy = config->strategy.end > config->strategy.begin;
        (void)snprintf(out, size, "%.*s%s%.*s", pod_hlo_shown(config->emitter),
                       text + config->emitter.begin, strategy ? ":" : "",
                       pod_hlo_shown(config->strategy), text + config->strategy.begin);
    }
}

pod_status pod_hlo_algorithm_of(const pod_hlo_module *module, const pod_hlo_collective *collective,
                                const pod_hlo_algorithms *which, pod_hlo_algorithm *algorithm,
                                pod_error *err)
{
    const char *text = module->text;
    pod_hlo_config config;
    *algorithm = (pod_hlo_algorithm){.reason = ""};
    pod_status st =
        pod_hlo_config_read(module, &module->instruction[collective->instruction], &config, err);
    if (st == POD_OK && config.emitter.end == config.emitter.begin) {
        st = pod_hlo_config_read(module, &module->instruction[collective->inner], &config, err);
    }
    if (st != POD_OK) {
        return st;
    }
    text_print(text, &config, algorithm->text, sizeof algorithm->text);
    algorithm->runs.name = "auto";
    if (runs_auto(collective)) {
        return POD_OK;
    }
    if (!which->text) {
        algorithm->runs.name = which->name;
        return POD_OK;
    }
    if (pod_hlo_begins(text, config.emitter, "AllGatherWithNetRouter")) {
        algorithm->reason = "the compiler's router gathers; podsim's has no all-gather";
        return POD_OK;
    }
    algorithm->runs.name = "xla";
    algorithm->runs.given =
        wish_read(text, &config, collective->how == POD_HLO_HOW_SCATTER, &algorithm->runs.wish);
    if (!algorithm->runs.given) {
        algorithm->reason = algorithm->text[0] == '\0'
                                ? "the text names no algorithm; the compiler's rules"
                                : "podsim knows no such algorithm; the compiler's rules";
    }
    return POD_OK;
}
