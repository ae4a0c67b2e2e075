/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/proto.h  Programs in binary form as HLO text: HloProto, HloModuleProto, and HloProtos inside a profile.
 *
 *  Model: the bytes are decoded by protobuf-c with the fields of hlo/hlo.proto, and written as the text that the
 *  compiler would write, as far as the reader of texts asks for it; that text is then read as any other. Instructions
 *  come in the order of the schedule. A start of one instruction ("async-start" of a slice) is written as that
 *  instruction's start, as texts have it. Binary programs don't say how many partitions they have where no devices
 *  are assigned: as many as groups or permutes name.
 *
 *  Ownership: the text is heap memory of the caller. Threads: none. Not collective.
 *  Errors: POD_E_INVALID (no such program, several programs and none of this name), POD_E_RANGE, POD_E_NOMEM. */
#pragma once

#include "base/status.h"
#include "base/text.h"

/** POD_E_USAGE if a name is wanted of a file that is one program. @param wanted  NULL = none is */
pod_status pod_hlo_proto_sole(const char *file, const char *wanted, pod_error *err);

/** @param wanted  name of the program, where a profile holds several; NULL = the only one
 *  @param[out] text  "" if the bytes are none of these messages */
pod_status pod_hlo_proto_text(const char *file, const char *bytes, size_t size, const char *wanted,
                              pod_text *text, pod_error *err);
