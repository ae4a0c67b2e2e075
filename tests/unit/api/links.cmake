# SPDX-License-Identifier: Apache-2.0
set(UNIT_LINKS pod_base)
