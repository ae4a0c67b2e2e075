# SPDX-License-Identifier: Apache-2.0
"""Meshes in an order that the test can tell from that of the devices: the last first, within each slice."""


class Array:
    def __init__(self, devices):
        self.flat = devices


def create_device_mesh(shape, devices, allow_split_physical_axes):
    return Array(devices[::-1])


def create_hybrid_device_mesh(shape, dcn_shape, devices, allow_split_physical_axes):
    return Array(sorted(devices, key=lambda d: d.slice_index)[::-1])
