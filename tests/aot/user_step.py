# SPDX-License-Identifier: Apache-2.0
"""A user's module: what scripts/aot.py is given."""
import jax


def build(mesh):
    return (lambda x: x), (jax.ShapeDtypeStruct((8, 128), "bfloat16", mesh.axis_names),), {"donate_argnums": 0}
