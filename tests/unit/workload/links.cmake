# SPDX-License-Identifier: Apache-2.0
set(UNIT_LINKS pod_mesh pod_program pod_chip pod_ici pod_base)
