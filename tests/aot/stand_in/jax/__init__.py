# SPDX-License-Identifier: Apache-2.0
"""Stands for JAX in the test of scripts/aot.py: it compiles any function to the text in AOT_TEXT."""
import os


class ShapeDtypeStruct:
    def __init__(self, shape, dtype, sharding=None):
        self.shape, self.dtype, self.sharding = shape, dtype, sharding


class Memory:
    argument_size_in_bytes = 1024
    output_size_in_bytes = 512
    alias_size_in_bytes = 0
    temp_size_in_bytes = 256
    peak_memory_in_bytes = 1792


class Compiled:
    def as_text(self):
        with open(os.environ["AOT_TEXT"], encoding="utf-8") as file:
            return file.read()

    def memory_analysis(self):
        return Memory()


class Lowered:
    def compile(self):
        return Compiled()


class Jitted:
    def __init__(self, function, options):
        self.function, self.options = function, options

    def lower(self, *inputs):
        self.function(*inputs)
        return Lowered()


def jit(function, **options):
    return Jitted(function, options)
