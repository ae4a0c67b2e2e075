/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of an instruction of a binary program, as texts have them. */
#include "hlo/proto_write.h"

#include <inttypes.h>
#include <string.h>

/* ---- lists and strings ---- */

static void add_list(pod_text *text, const char *name, const int64_t *values, size_t count)
{
    if (count == 0) {
        return;
    }
    pod_text_printf(text, ", %s={", name);
    for (size_t i = 0; i < count; i++) {
        pod_text_printf(text, "%s%" PRId64, i > 0 ? "," : "", values[i]);
    }
    pod_text_add(text, "}");
}

static void add_quoted(pod_text *text, const char *string)
{
    pod_text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            pod_text_add(text, "\\");
        }
        pod_text_append(text, *c == '\n' ? " " : c, 1);
    }
    pod_text_add(text, "\"");
}

static void add_string(pod_text *text, const char *name, const char *string)
{
    if (string[0] != '\0') {
        pod_text_printf(text, ", %s=", name);
        add_quoted(text, string);
    }
}

/* ---- matmuls ---- */

/* One figure a dim, "3x3". */
static void add_figures(pod_text *text, const char *name, const PodWire__Window *window,
                        int64_t (*figure)(const PodWire__WindowDim *dim))
{
    pod_text_printf(text, " %s=", name);
    for (size_t i = 0; i < window->n_dims; i++) {
        pod_text_printf(text, "%s%" PRId64, i > 0 ? "x" : "", figure(window->dims[i]));
    }
}

/* What is at least 1, where 0 stands for what wasn't said. */
static int64_t one_at_least(int64_t value)
{
    return value == 0 ? 1 : value;
}

static int64_t size_of(const PodWire__WindowDim *dim)
{
    return dim->size;
}

static int64_t stride_of(const PodWire__WindowDim *dim)
{
    return one_at_least(dim->stride);
}

static int64_t lhs_dilation_of(const PodWire__WindowDim *dim)
{
    return one_at_least(dim->lhs_dilation);
}

static int64_t rhs_dilation_of(const PodWire__WindowDim *dim)
{
    return one_at_least(dim->rhs_dilation);
}

static int64_t reversal_of(const PodWire__WindowDim *dim)
{
    return dim->reversed ? 1 : 0;
}

static void add_window(pod_text *text, const PodWire__Window *window)
{
    if (window == NULL || window->n_dims == 0) {
        return;
    }
    pod_text_add(text, ", window={");
    add_figures(text, "size", window, size_of);
    add_figures(text, "stride", window, stride_of);
    pod_text_add(text, " pad=");
    for (size_t i = 0; i < window->n_dims; i++) {
        pod_text_printf(text, "%s%" PRId64 "_%" PRId64, i > 0 ? "x" : "", window->dims[i]->pad_low,
                        window->dims[i]->pad_high);
    }
    add_figures(text, "lhs_dilate", window, lhs_dilation_of);
    add_figures(text, "rhs_dilate", window, rhs_dilation_of);
    add_figures(text, "rhs_reversal", window, reversal_of);
    pod_text_add(text, "}");
}

enum { LABELS_MAX = 32 };

/* "01bf": where two dims stand by letter, and the spatial ones by number. */
static void add_labels(pod_text *text, const int64_t place[2], const char letters[2],
                       const int64_t *spatial, size_t nspatial)
{
    char labels[LABELS_MAX + 1] = "";
    const size_t rank = nspatial + 2;
    memset(labels, '?', sizeof labels - 1);
    for (int i = 0; i < 2; i++) {
        if (place[i] >= 0 && place[i] < LABELS_MAX) {
            labels[place[i]] = letters[i];
        }
    }
    for (size_t i = 0; i < nspatial; i++) {
        if (spatial[i] >= 0 && spatial[i] < LABELS_MAX) {
            labels[spatial[i]] = (char)('0' + i % 10);
        }
    }
    pod_text_append(text, labels, rank < LABELS_MAX ? rank : LABELS_MAX);
}

static void add_convolution(pod_text *text, const PodWire__Convolution *c)
{
    if (c == NULL) {
        return;
    }
    const int64_t input[2] = {c->input_batch, c->input_feature};
    const int64_t kernel[2] = {c->kernel_input, c->kernel_output};
    const int64_t output[2] = {c->output_batch, c->output_feature};
    pod_text_add(text, ", dim_labels=");
    add_labels(text, input, "bf", c->input_spatial, c->n_input_spatial);
    pod_text_add(text, "_");
    add_labels(text, kernel, "io", c->kernel_spatial, c->n_kernel_spatial);
    pod_text_add(text, "->");
    add_labels(text, output, "bf", c->output_spatial, c->n_output_spatial);
}

static void add_dot(pod_text *text, const PodWire__Instruction *instruction)
{
    const PodWire__RaggedDot *ragged = instruction->ragged_dot;
    const PodWire__Dot *dot = ragged != NULL ? ragged->dot : instruction->dot;
    if (dot != NULL) {
        add_list(text, "lhs_batch_dims", dot->lhs_batch, dot->n_lhs_batch);
        add_list(text, "rhs_batch_dims", dot->rhs_batch, dot->n_rhs_batch);
        add_list(text, "lhs_contracting_dims", dot->lhs_contracting, dot->n_lhs_contracting);
        add_list(text, "rhs_contracting_dims", dot->rhs_contracting, dot->n_rhs_contracting);
    }
    if (ragged != NULL) {
        add_list(text, "lhs_ragged_dims", ragged->lhs_ragged, ragged->n_lhs_ragged);
        add_list(text, "rhs_group_dims", ragged->rhs_group, ragged->n_rhs_group);
    }
}

static void add_precision(pod_text *text, const PodWire__Precision *precision)
{
    static const char *const names[] = {"default", "high", "highest"};
    bool said = false;
    for (size_t i = 0; precision != NULL && i < precision->n_operands; i++) {
        said = said || precision->operands[i] != 0;
    }
    for (size_t i = 0; said && i < precision->n_operands; i++) {
        const int32_t which = precision->operands[i];
        pod_text_printf(text, "%s%s", i == 0 ? ", operand_precision={" : ",",
                        which >= 0 && which < 3 ? names[which] : names[0]);
    }
    pod_text_add(text, said ? "}" : "");
}

/* ---- communication ---- */

static void add_groups(pod_text *text, PodWire__Ids *const *groups, size_t count)
{
    pod_text_add(text, ", replica_groups={");
    for (size_t i = 0; i < count; i++) {
        pod_text_add(text, i > 0 ? ",{" : "{");
        for (size_t k = 0; k < groups[i]->n_ids; k++) {
            pod_text_printf(text, "%s%" PRId64, k > 0 ? "," : "", groups[i]->ids[k]);
        }
        pod_text_add(text, "}");
    }
    pod_text_add(text, "}");
}

static void add_iota(pod_text *text, const PodWire__Iota *iota)
{
    pod_text_printf(text, ", replica_groups=[%" PRId64 ",%" PRId64 "]<=[", iota->groups,
                    iota->size);
    for (size_t i = 0; i < iota->n_dims; i++) {
        pod_text_printf(text, "%s%" PRId64, i > 0 ? "," : "", iota->dims[i]);
    }
    pod_text_add(text, "]");
    for (size_t i = 0; iota->n_order == iota->n_dims && i < iota->n_order; i++) {
        pod_text_printf(text, "%s%" PRId32, i == 0 ? "T(" : ",", iota->order[i]);
    }
    pod_text_add(text, iota->n_order == iota->n_dims && iota->n_order > 0 ? ")" : "");
}

static void add_communication(pod_text *text, const PodWire__Instruction *instruction)
{
    const PodWire__Devices *devices = instruction->devices;
    const int64_t channel =
        instruction->channel > 0 ? instruction->channel : instruction->old_channel;
    if (channel > 0) {
        pod_text_printf(text, ", channel_id=%" PRId64, channel);
    }
    if (devices != NULL && devices->iota != NULL) {
        add_iota(text, devices->iota);
    } else if (devices != NULL && devices->n_groups > 0) {
        add_groups(text, devices->groups, devices->n_groups);
    } else if (instruction->n_groups > 0) {
        add_groups(text, instruction->groups, instruction->n_groups);
    }
    pod_text_add(text, instruction->global_ids ? ", use_global_device_ids=true" : "");
    for (size_t i = 0; i < instruction->n_pairs; i++) {
        pod_text_printf(text, "%s{%" PRId64 ",%" PRId64 "}",
                        i == 0 ? ", source_target_pairs={" : ",", instruction->pairs[i]->source,
                        instruction->pairs[i]->target);
    }
    pod_text_add(text, instruction->n_pairs > 0 ? "}" : "");
    if (instruction->n_pairs == 0 && strncmp(instruction->opcode, "collective-permute", 18) == 0
        && strstr(instruction->opcode, "-done") == NULL) {
        pod_text_add(text, ", source_target_pairs={}");
    }
}

/* ---- the rest ---- */

static void add_ranges(pod_text *text, const PodWire__Instruction *instruction)
{
    for (size_t i = 0; i < instruction->n_ranges; i++) {
        const PodWire__Range *range = instruction->ranges[i];
        pod_text_printf(text, "%s[%" PRId64 ":%" PRId64 ":%" PRId64 "]",
                        i == 0 ? ", slice={" : ", ", range->first, range->limit,
                        one_at_least(range->stride));
    }
    pod_text_add(text, instruction->n_ranges > 0 ? "}" : "");
}

static void add_index(pod_text *text, const int64_t *index, size_t count)
{
    pod_text_add(text, "{");
    for (size_t i = 0; i < count; i++) {
        pod_text_printf(text, "%s%" PRId64, i > 0 ? "," : "", index[i]);
    }
    pod_text_add(text, "}");
}

static void add_aliasing(pod_text *text, const PodWire__Instruction *instruction)
{
    for (size_t i = 0; i < instruction->n_aliasing; i++) {
        const PodWire__Alias *alias = instruction->aliasing[i];
        pod_text_add(text, i == 0 ? ", output_to_operand_aliasing={" : ", ");
        add_index(text, alias->output, alias->n_output);
        pod_text_printf(text, ": (%" PRId64 ", ", alias->input);
        add_index(text, alias->index, alias->n_index);
        pod_text_add(text, ")");
    }
    pod_text_add(text, instruction->n_aliasing > 0 ? "}" : "");
}

static void add_metadata(pod_text *text, const PodWire__Metadata *metadata)
{
    if (metadata == NULL) {
        return;
    }
    pod_text_add(text, ", metadata={op_name=");
    add_quoted(text, metadata->op_name);
    if (metadata->source_file[0] != '\0') {
        pod_text_add(text, " source_file=");
        add_quoted(text, metadata->source_file);
        pod_text_printf(text, " source_line=%" PRId32, metadata->source_line);
    }
    if (metadata->stack_frame > 0) {
        pod_text_printf(text, " stack_frame_id=%" PRId32, metadata->stack_frame);
    }
    pod_text_add(text, "}");
}

static void add_frontend(pod_text *text, const PodWire__Frontend *frontend)
{
    for (size_t i = 0; frontend != NULL && i < frontend->n_values; i++) {
        pod_text_printf(text, "%s%s=", i == 0 ? ", frontend_attributes={" : ",",
                        frontend->values[i]->key);
        add_quoted(text, frontend->values[i]->value);
    }
    pod_text_add(text, frontend != NULL && frontend->n_values > 0 ? "}" : "");
}

/* JSON stands as it is; what is in another form isn't read. */
static void add_config(pod_text *text, const ProtobufCBinaryData *config)
{
    bool printable =
        config->len > 1 && config->data[0] == '{' && config->data[config->len - 1] == '}';
    for (size_t i = 0; i < config->len && printable; i++) {
        printable = config->data[i] >= ' ' || config->data[i] == '\n' || config->data[i] == '\t';
    }
    if (printable) {
        pod_text_add(text, ", backend_config=");
        pod_text_append(text, (const char *)config->data, config->len);
    }
}

void pod_hlo_proto_attributes(const PodWire__Instruction *instruction, pod_text *text)
{
    if (instruction->kind[0] != '\0') {
        pod_text_printf(text, ", kind=%s", instruction->kind);
    }
    if (strcmp(instruction->opcode, "get-tuple-element") == 0) {
        pod_text_printf(text, ", index=%" PRId64, instruction->element);
    }
    add_list(text, "dimensions", instruction->dims, instruction->n_dims);
    add_window(text, instruction->window);
    add_convolution(text, instruction->convolution);
    if (instruction->feature_groups > 1) {
        pod_text_printf(text, ", feature_group_count=%" PRId64, instruction->feature_groups);
    }
    if (instruction->batch_groups > 1) {
        pod_text_printf(text, ", batch_group_count=%" PRId64, instruction->batch_groups);
    }
    add_dot(text, instruction);
    add_precision(text, instruction->precision);
    add_ranges(text, instruction);
    add_list(text, "dynamic_slice_sizes", instruction->slice_sizes, instruction->n_slice_sizes);
    add_list(text, "slice_sizes", instruction->gather_sizes, instruction->n_gather_sizes);
    add_communication(text, instruction);
    if (instruction->direction[0] != '\0') {
        pod_text_printf(text, ", direction=%s", instruction->direction);
    }
    add_string(text, "custom_call_target", instruction->target);
    add_aliasing(text, instruction);
    pod_text_add(text, instruction->host_transfer ? ", is_host_transfer=true" : "");
    add_metadata(text, instruction->metadata);
    add_frontend(text, instruction->frontend);
    add_config(text, &instruction->config);
}
