#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile a JAX function for a TPU slice, without a TPU, and write what `podsim hlo` reads.

FUNCTION of MODULE is called with the device mesh and returns three things: the function to compile, its
arguments as a tuple of jax.ShapeDtypeStruct with shardings on that mesh, and the keyword arguments of
jax.jit as a dict. Two files are written: NAME.hlo.txt, the program that every chip executes, and
NAME.hlo.csv, which says for what it was compiled (slice, mesh, order of devices, memory).

    scripts/aot.py my_step:build --slice v5e:4x4 --mesh data=4,tensor=4
    podsim hlo build.hlo.txt
"""

import argparse
import csv
import importlib
import io
import os
import subprocess
import sys
import tempfile

NEEDS = """Python packages: jax (it brings numpy) and libtpu, the TPU compiler (pip install 'jax[tpu]'); no TPU is needed.
The slice's shape and wrap come from podsim (--podsim, else the one built or installed beside this script, else the one on PATH)."""

# chip: (its name in the TPU compiler's topologies, how its cores are joined). Chips on which a core is a
# device of its own (v2, v3, tpu7x) are missing: podsim hlo does not read their programs.
CHIPS = {
    "v4": ("v4", "megacore"),
    "v5p": ("v5", "megacore"),
    "v5e": ("v5e", "default"),
    "v6e": ("v6e", "default"),
}


class Failure(Exception):
    """One line for the user, and the exit code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def read_mesh(text):
    """[(axis, size)] of AXIS=N,AXIS=N."""
    axes = []
    for part in text.split(",") if text else []:
        name, equals, size = part.partition("=")
        if not equals or not name.isidentifier() or not size.isdigit() or int(size) == 0:
            raise Failure(2, f"a mesh is AXIS=N,AXIS=N with sizes from 1, not '{text}'")
        if name in (axis for axis, _ in axes):
            raise Failure(2, f"axis {name} stands twice in '{text}'")
        axes.append((name, int(size)))
    return axes


def describe_slice(podsim, spec):
    """The row of `podsim slice`: chip, dims, chips, slices, wrap, …"""
    try:
        run = subprocess.run([podsim, "slice", "--slice", spec, "--format", "csv"],
                             capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(4, f"{podsim}: {error.strerror}; name the program with --podsim") from None
    if run.returncode != 0:
        raise Failure(run.returncode, run.stderr.strip().splitlines()[-1])
    row = next(csv.DictReader(io.StringIO(run.stdout)))
    if row["chip"] not in CHIPS:
        raise Failure(3, f"{row['chip']}: programs for it can't be read by podsim hlo; chips: {', '.join(CHIPS)}")
    return row


def find_podsim():
    """The program that was built here or installed beside this script, else the one on PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = ("../build/release/bin", "../build/demo/bin", "../../../bin")  # the last where it is installed
    built = [os.path.join(here, place, "podsim") for place in places]
    return next((path for path in built if os.access(path, os.X_OK)), "podsim")


def topology_devices(row):
    """The devices of the slices, as the TPU compiler describes them."""
    from jax.experimental import topologies

    name, config = CHIPS[row["chip"]]
    dims = [int(n) for n in row["dims"].split("x")]
    slices = int(row["slices"])
    wrap = "" if row["wrap"] == "none" else row["wrap"]
    options = {
        "chip_config_name": config,
        "chips_per_host_bounds": [min(2, n) for n in (dims + [1, 1])[:2]] + [1],
        "wrap": [axis in wrap for axis in "xyz"],
    }
    if slices > 1:
        options["num_slices"] = slices
    return topologies.get_topology_desc(platform="tpu", topology_name=f"{name}:{row['dims']}", **options).devices


def chip_number(device, dims):
    """x + X (y + Y z)."""
    x, y, z = (list(device.coords) + [0, 0])[:3]
    dims = dims + [1, 1]
    return x + dims[0] * (y + dims[1] * z)


def build_mesh(devices, axes, dcn_axes, split):
    """The mesh that JAX lays on the devices; axes of the DCN multiply those of the same name."""
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh

    names = [name for name, _ in dcn_axes if name not in dict(axes)] + [name for name, _ in axes]
    inner = [dict(axes).get(name, 1) for name in names]
    if dcn_axes:
        outer = [dict(dcn_axes).get(name, 1) for name in names]
        array = mesh_utils.create_hybrid_device_mesh(inner, outer, devices=devices, allow_split_physical_axes=split)
    else:
        array = mesh_utils.create_device_mesh(inner, devices=devices, allow_split_physical_axes=split)
    return Mesh(array, names)


def memory_rows(compiled):
    """What the compiler says of memory, as far as this version of JAX reports it."""
    analysis = compiled.memory_analysis()
    names = (
        ("argument_bytes", "argument_size_in_bytes"),
        ("output_bytes", "output_size_in_bytes"),
        ("alias_bytes", "alias_size_in_bytes"),
        ("temp_bytes", "temp_size_in_bytes"),
        ("hbm_bytes", "peak_memory_in_bytes"),
    )
    return [(key, getattr(analysis, name)) for key, name in names if getattr(analysis, name, None) is not None]


def version(package):
    """Of an installed package, "" if it has none."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def write_whole(path, text):
    """A file that appears complete or not at all."""
    folder = os.path.dirname(path) or "."
    try:
        handle, part = tempfile.mkstemp(dir=folder, prefix=".aot-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(part, 0o644)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise Failure(4, f"{path}: {error.strerror}") from None


def load(target):
    """FUNCTION of MODULE:FUNCTION; modules of the current folder are found."""
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise Failure(2, f"what to compile is MODULE:FUNCTION, not '{target}'")
    sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Failure(2, f"{target}: {error}") from None
    return name, function


def compile_for(arguments):
    """Compile and return the two texts and the name of the files."""
    axes = read_mesh(arguments.mesh)
    dcn_axes = read_mesh(arguments.dcn_mesh)
    row = describe_slice(arguments.podsim or find_podsim(), arguments.slice)
    slices = int(row["slices"])
    axes = axes or [("data", int(row["chips"]))]
    if slices > 1 and not dcn_axes:
        dcn_axes = [("data", slices)]
    for what, given, want in (("--mesh", axes, int(row["chips"])), ("--dcn-mesh", dcn_axes, slices)):
        product = 1
        for _, size in given:
            product *= size
        if product != want:
            raise Failure(3, f"{what} has {product} parts, and {arguments.slice} needs {want}")
    name, function = load(arguments.target)
    try:
        import jax
    except ImportError as error:
        raise Failure(4, f"{error}; pip install 'jax[tpu]' brings what is needed") from None

    mesh = build_mesh(topology_devices(row), axes, dcn_axes, arguments.split_axes)
    to_compile, inputs, options = function(mesh)
    compiled = jax.jit(to_compile, **options).lower(*inputs).compile()
    dims = [int(n) for n in row["dims"].split("x")]
    first_slice = [d for d in mesh.devices.flat if getattr(d, "slice_index", 0) == 0]
    rows = [
        ("slice", arguments.slice),
        ("wrap", row["wrap"]),
        ("mesh", ",".join(f"{axis}={size}" for axis, size in axes)),
        ("dcn_mesh", ",".join(f"{axis}={size}" for axis, size in dcn_axes)),
        ("device_order", " ".join(str(chip_number(d, dims)) for d in first_slice)),
        *memory_rows(compiled),
        ("jax", version("jax")),
        ("libtpu", version("libtpu")),
    ]
    sidecar = io.StringIO()
    csv.writer(sidecar, lineterminator="\n").writerows([("key", "value"), *rows])
    return arguments.name or name, compiled.as_text(), sidecar.getvalue()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=NEEDS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", metavar="MODULE:FUNCTION")
    parser.add_argument("--slice", required=True, metavar="SPEC", help="as podsim reads it: v5e:4x4, v5p-128, 2*v6e:16x16")
    parser.add_argument("--mesh", default="", metavar="AXIS=N,…", help="mesh of one slice (default: data over all chips)")
    parser.add_argument("--dcn-mesh", default="", metavar="AXIS=N,…", help="mesh over slices (default: data)")
    parser.add_argument("--split-axes", action="store_true", help="a mesh axis may take part of a physical axis")
    parser.add_argument("--out", default=".", metavar="DIR", help="folder of the two files (default: this one)")
    parser.add_argument("--name", help="their name (default: FUNCTION)")
    parser.add_argument("--podsim", metavar="FILE", help="the program that knows the slices")
    arguments = parser.parse_args()
    try:
        if not os.path.isdir(arguments.out):
            raise Failure(4, f"{arguments.out}: no such folder")
        name, text, sidecar = compile_for(arguments)
        path = os.path.join(arguments.out, name + ".hlo")
        write_whole(path + ".txt", text)
        write_whole(path + ".csv", sidecar)
    except Failure as failure:
        print(f"aot.py: error: {failure}", file=sys.stderr)
        return failure.code
    print(f"{path}.txt and {path}.csv written; next: podsim hlo {path}.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
