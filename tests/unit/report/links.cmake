# SPDX-License-Identifier: Apache-2.0
set(UNIT_LINKS pod_workload pod_sim pod_program pod_base PkgConfig::JANSSON)
