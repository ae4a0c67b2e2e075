# SPDX-License-Identifier: Apache-2.0
"""Devices of a slice with their coordinates, x fastest."""


class Device:
    def __init__(self, coords, slice_index):
        self.coords, self.slice_index = coords, slice_index


class Topology:
    def __init__(self, devices):
        self.devices = devices


def get_topology_desc(platform, topology_name, chip_config_name, chips_per_host_bounds, wrap, num_slices=1):
    if platform != "tpu" or len(chips_per_host_bounds) != 3 or len(wrap) != 3:
        raise ValueError(topology_name)
    dims = [int(n) for n in topology_name.split(":")[1].split("x")] + [1]
    return Topology([Device((x, y, z), s) for s in range(num_slices)
                     for z in range(dims[2]) for y in range(dims[1]) for x in range(dims[0])])
