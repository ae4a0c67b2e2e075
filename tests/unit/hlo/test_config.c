/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hlo/attributes.h"
#include "hlo/config.h"

static pod_hlo_config config_of(const char *value, pod_hlo_module **module)
{
    static pod_text text;
    pod_text_free(&text);
    pod_text_printf(&text,
                    HEAD "ENTRY e {\n  a = f32[8] parameter(0)\n"
                         "  ROOT b = f32[8] negate(a), backend_config=%s\n}\n",
                    value);
    pod_hlo_config config;
    pod_error err = {0};
    *module = module_of(text.data);
    cr_assert_eq(pod_hlo_config_read(*module, instruction_of(*module, "b"), &config, &err), POD_OK,
                 "%s: %s", value, err.text);
    return config;
}

static void check_text(const pod_hlo_module *module, pod_hlo_span span, const char *right)
{
    cr_assert(pod_hlo_is(module->text, span, right), "%.*s is not %s", (int)(span.end - span.begin),
              module->text + span.begin, right);
}

Test(hlo_config, reads_its_fields_wherever_they_stand)
{
    pod_hlo_module *module = NULL;
    pod_hlo_config config = config_of(
        "{\"flag_configs\":[],\"x\":{\"estimated_cycles\":\"9\",\"a\":[{},[\"]\"]]}, /* \"{ */\n"
        "\"window_config\":{\"kernel_window_bounds\":[\"64\",\"4\"],\"estimated_cycles\":"
        "\"302820\","
        "\"ml\":0.5e-3,\"is_mask\":false},\"custom_call_config\":{\"body\":\"TUzvUg==\","
        "\"cost_estimate\":{\"flops\":\"12\",\"bytes_accessed\":34,\"transcendentals\":\"5\"}},"
        "\"known_trip_count\":{\"n\":\"6\"},\"collective_algorithm_config\":{\"emitter\":"
        "\"RotatedPincerEmitter\",\"strategy\":\"UniDirectionNDRingStrategy\",\"debug\":"
        "\"a\\n\\\"b\"}}",
        &module);
    cr_assert_eq(config.cycles, 302820);
    cr_assert_eq(config.flops, 12);
    cr_assert_eq(config.bytes_accessed, 34);
    cr_assert_eq(config.transcendentals, 5);
    cr_assert_eq(config.trips, 6);
    check_text(module, config.emitter, "RotatedPincerEmitter");
    check_text(module, config.strategy, "UniDirectionNDRingStrategy");
    check_text(module, config.debug, "a\\n\\\"b");
    pod_hlo_free(module);
}

Test(hlo_config, reads_json_that_a_string_holds)
{
    pod_hlo_module *module = NULL;
    pod_hlo_config config = config_of(
        "\"{\\\"x\\\":\\\"a\\\\\\\"}\\\",\\n\\\"window_config\\\":{\\\"estimated_cycles\\\":"
        "\\\"77\\\"},\\\"collective_algorithm_config\\\":{\\\"emitter\\\":\\\"E\\\"}}\"",
        &module);
    cr_assert_eq(config.cycles, 77);
    check_text(module, config.emitter, "E");
    pod_hlo_free(module);
}

Test(hlo_config, takes_what_is_no_json_and_what_is_unknown_as_not_given)
{
    static const char *const values[] = {"\"opaque words\"",
                                         "{lower = true, n = 1 : i32}",
                                         "{\"window_config\":{\"estimated_cycles\":\"5\"},}",
                                         "{\"window_config\":{\"estimated_cycles\":\"5\"} \"a\"}",
                                         "{}",
                                         "\"\"",
                                         "{\"window_config\":{\"estimated_cycles\":"
                                         "\"9223372036854775807\"}}",
                                         "{\"window_config\":[{\"estimated_cycles\":\"5\"}]}",
                                         "{\"estimated_cycles\":\"5\"}"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        pod_hlo_module *module = NULL;
        pod_hlo_config config = config_of(values[i], &module);
        cr_assert_eq(config.cycles, -1, "%s", values[i]);
        cr_assert_eq(config.trips, -1);
        cr_assert_eq(config.emitter.end, config.emitter.begin);
        pod_hlo_free(module);
    }
}

Test(hlo_config, finds_fields_of_metadata_and_frontend_attributes)
{
    pod_hlo_module *module = module_of(
        HEAD "ENTRY e {\n  a = f32[8] parameter(0), metadata={op_name=\"w[\\'a,b\\']\" "
             "stack_frame_id=11 x=y}\n"
             "  ROOT b = f32[8] negate(a), frontend_attributes={chain_id=\"2\",kernel_metadata={\n"
             "\"xprof_metadata\":\"{\\\"block_q\\\": 1024, \\\"use_fused_bwd_kernel\\\": true}\"\n"
             "},_xla_z=\"9\"}, metadata={}\n}\n");
    pod_hlo_span span;
    const pod_hlo_instruction *a = instruction_of(module, "a");
    const pod_hlo_instruction *b = instruction_of(module, "b");
    cr_assert(pod_hlo_field(module, a, POD_HLO_AT_METADATA, "op_name", &span));
    check_text(module, span, "w[\\'a,b\\']");
    cr_assert(pod_hlo_field(module, a, POD_HLO_AT_METADATA, "x", &span));
    check_text(module, span, "y");
    cr_assert(pod_hlo_field(module, b, POD_HLO_AT_FRONTEND, "_xla_z", &span));
    check_text(module, span, "9");
    cr_assert_not(pod_hlo_field(module, b, POD_HLO_AT_METADATA, "op_name", &span));
    cr_assert_not(pod_hlo_field(module, b, POD_HLO_AT_FRONTEND, "xla_z", &span));
    /* JSON in a string in an attribute */
    cr_assert(pod_hlo_field(module, b, POD_HLO_AT_FRONTEND, "kernel_metadata", &span));
    pod_hlo_json json = pod_hlo_json_of(module->text, span);
    pod_hlo_span key;
    int64_t block = 0;
    cr_assert(pod_hlo_json_next(&json, &key));
    check_text(module, key, "xprof_metadata");
    pod_hlo_json inside = pod_hlo_json_inside(&json);
    cr_assert(pod_hlo_json_next(&inside, &key));
    cr_assert(pod_hlo_json_integer(&inside, &block));
    cr_assert_eq(block, 1024);
    cr_assert(pod_hlo_json_next(&inside, &key));
    check_text(module, key, "use_fused_bwd_kernel");
    pod_hlo_json_skip(&inside);
    cr_assert_not(pod_hlo_json_next(&inside, &key));
    cr_assert_not(inside.bad);
    cr_assert_not(pod_hlo_json_next(&json, &key));
    cr_assert_not(json.bad);
    pod_hlo_free(module);
}
