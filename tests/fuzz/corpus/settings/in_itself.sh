# SPDX-License-Identifier: Apache-2.0
B='sh -c "$B base.yml x"'
bash -c "$B base.yml x"
