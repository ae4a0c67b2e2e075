/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/config.h"

typedef struct config_reader {
    const pod_hlo_module *module;
    pod_hlo_json json;
    uint32_t wrong; /* offset of a field that is no number, or POD_HLO_NONE */
} config_reader;

static void number(config_reader *reader, pod_hlo_json *json, int64_t *value)
{
    const uint32_t at = json->at;
    if (!pod_hlo_json_integer(json, value) || *value < 0) {
        reader->wrong = at;
    }
}

static void window_config(config_reader *reader, pod_hlo_json *json, pod_hlo_config *config)
{
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        if (pod_hlo_is(json->text, key, "estimated_cycles")) {
            number(reader, json, &config->cycles);
        } else {
            pod_hlo_json_skip(json);
        }
    }
}

static void collective_config(pod_hlo_json *json, pod_hlo_config *config)
{
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        if (pod_hlo_is(json->text, key, "emitter")) {
            (void)pod_hlo_json_string(json, &config->emitter);
        } else if (pod_hlo_is(json->text, key, "strategy")) {
            (void)pod_hlo_json_string(json, &config->strategy);
        } else if (pod_hlo_is(json->text, key, "debug")) {
            (void)pod_hlo_json_string(json, &config->debug);
        } else {
            pod_hlo_json_skip(json);
        }
    }
}

static void cost_estimate(config_reader *reader, pod_hlo_json *json, pod_hlo_config *config)
{
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        if (pod_hlo_is(json->text, key, "flops")) {
            number(reader, json, &config->flops);
        } else if (pod_hlo_is(json->text, key, "bytes_accessed")) {
            number(reader, json, &config->bytes_accessed);
        } else if (pod_hlo_is(json->text, key, "transcendentals")) {
            number(reader, json, &config->transcendentals);
        } else {
            pod_hlo_json_skip(json);
        }
    }
}

static void custom_call_config(config_reader *reader, pod_hlo_json *json, pod_hlo_config *config)
{
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        if (pod_hlo_is(json->text, key, "cost_estimate")) {
            pod_hlo_json object = pod_hlo_json_object(json);
            cost_estimate(reader, &object, config);
        } else {
            pod_hlo_json_skip(json);
        }
    }
}

static void trip_count(config_reader *reader, pod_hlo_json *json, pod_hlo_config *config)
{
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        if (pod_hlo_is(json->text, key, "n")) {
            number(reader, json, &config->trips);
        } else {
            pod_hlo_json_skip(json);
        }
    }
}

static void read_all(config_reader *reader, pod_hlo_config *config)
{
    pod_hlo_json *json = &reader->json;
    const char *text = json->text;
    for (pod_hlo_span key; pod_hlo_json_next(json, &key);) {
        pod_hlo_json object = pod_hlo_json_object(json);
        if (pod_hlo_is(text, key, "window_config")) {
            window_config(reader, &object, config);
        } else if (pod_hlo_is(text, key, "collective_algorithm_config")) {
            collective_config(&object, config);
        } else if (pod_hlo_is(text, key, "custom_call_config")) {
            custom_call_config(reader, &object, config);
        } else if (pod_hlo_is(text, key, "known_trip_count")) {
            trip_count(reader, &object, config);
        }
    }
}

pod_status pod_hlo_config_read(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                               pod_hlo_config *config, pod_error *err)
{
    static const pod_hlo_config none = {
        .cycles = -1, .flops = -1, .bytes_accessed = -1, .transcendentals = -1, .trips = -1};
    pod_hlo_span value;
    *config = none;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_CONFIG, &value)) {
        return POD_OK;
    }
    config_reader reader = {
        .module = module, .json = pod_hlo_json_of(module->text, value), .wrong = POD_HLO_NONE};
    read_all(&reader, config);
    if (reader.json.bad) {
        *config = none;
        return POD_OK;
    }
    if (reader.wrong != POD_HLO_NONE) {
        const pod_hlo_scan part = pod_hlo_part(module, value, err);
        return pod_hlo_fail(&part, reader.wrong, "a bad figure in backend_config; a whole number");
    }
    config->cycles = config->cycles == INT64_MAX ? -1 : config->cycles;
    return POD_OK;
}
