/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings_yaml.h  Settings as YAML: one mapping. Threads: none. */
#pragma once

#include "models/settings.h"

/** Append a YAML mapping. Not collective. @return POD_E_USAGE with the position; POD_E_NOMEM */
pod_status pod_settings_yaml(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err);
