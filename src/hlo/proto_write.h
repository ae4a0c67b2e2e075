/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/proto_write.h  Private to hlo/proto.h: a decoded program as text. */
#pragma once

#include "base/status.h"
#include "base/text.h"

#include <hlo.pb-c.h>

/** Append the text of a program. @return POD_E_INVALID (an id that nothing has), POD_E_NOMEM */
pod_status pod_hlo_proto_write(const PodWire__Module *module, pod_text *text, pod_error *err);
/** Append ", attribute=value" of all that an instruction has of itself: what the reader of texts asks for. */
void pod_hlo_proto_attributes(const PodWire__Instruction *instruction, pod_text *text);
