/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/attributes.h  Values of attributes: lists of numbers, quoted texts, fields of metadata.
 *
 *  Threads: none. Not collective. Errors: POD_E_INVALID with the place of what is wrong. */
#pragma once

#include "hlo/module.h"

/** A list of whole numbers "{0,2}", or one bare number. An attribute that isn't there is empty.
 *  @param[out] values  room for `max` */
pod_status pod_hlo_list(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        pod_hlo_attribute_key key, int64_t *values, int max, int *count,
                        pod_error *err);
/** A whole number, or `otherwise` if the attribute isn't there. */
pod_status pod_hlo_integer(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                           pod_hlo_attribute_key key, int64_t otherwise, int64_t *value,
                           pod_error *err);
/** Sum of the numbers of a constant, also through copies, conversions and bitcasts of it.
 *  @return false if it is none, or its numbers aren't in the text or aren't whole and at least 0 */
bool pod_hlo_constant_sum(const pod_hlo_module *module, const pod_hlo_instruction *constant,
                          int64_t *sum);
/** A value without its double quotes, if it has them. */
pod_hlo_span pod_hlo_unquoted(const pod_hlo_module *module, pod_hlo_span value);
/** Is the attribute there with this value, quoted or not? */
bool pod_hlo_attribute_is(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_attribute_key key, const char *expected);
/** Value of a field of "{name=value name=value}" (metadata) or "{name=value,…}" (frontend_attributes),
 *  without quotes. @return false if it isn't there */
bool pod_hlo_field(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                   pod_hlo_attribute_key key, const char *name, pod_hlo_span *value);

/** Value of a field of such a span. */
bool pod_hlo_field_in(const pod_hlo_module *module, pod_hlo_span fields, const char *name,
                      pod_hlo_span *value);

/** Where an instruction comes from: source_file and source_line of its metadata, or what its stack_frame_id says
 *  through the tables before the computations. @return false if the text doesn't tell the file; *line 0 if not
 *  the line */
bool pod_hlo_source_line(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         pod_hlo_span *file, int64_t *line);
