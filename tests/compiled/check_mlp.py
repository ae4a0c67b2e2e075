#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_mlp.py PODSIM SOURCE_FOLDER

Compiled MLP steps (validation/hlo/MLP*) against `podsim step` of the same model, mesh and slice (validation/xla_steps.csv):

- FLOPs are equal.
- Payloads are equal by kind and mesh axis, but for what is named in OTHER_PAYLOADS and sums of one number (the loss).
- Compute is within 15 %, both at the rate of a large matmul (mxu_step_frac, which belongs to transformers' steps in
  `podsim step` and to all of `podsim hlo`, is 1), but for the texts of OTHER_COMPUTE, which do what the model doesn't:
  they must differ by so much. What isn't moving data is within 15 % in those too, or by WOVEN.
- Steps differ by compute and by what the core waits for: mostly what the text leaves synchronous. The table of it,
  printed here, is the one of validation/compiled_programs.md and docs/validation.md.
"""
import csv
import gzip
import io
import os
import re
import subprocess
import sys
import tempfile

PODSIM, SOURCE = sys.argv[1:3]
TOLERANCE = 0.15
# Compute of the text over the model's, and why. A loop over layers can't hand its layers' arrays on: it zeroes a stack
# of them, writes each layer's part, and the update reads the stack.
OTHER_COMPUTE = {
    "MLP-v5p-64-dp": (1.26, "zeroes and fills the stacks of whole gradients"),
    "MLP-v6e-16-dp": (1.41, "zeroes and fills the stacks of whole gradients"),
    "MLP-2xv5e-16-dp": (1.34, "zeroes and fills the stacks of whole gradients"),
    "MLP-v6e-16-dp4-fsdp": (1.23, "zeroes and fills the stacks of gradients, slices and copies the gathered weights"),
    "MLP-v5p-64-tp": (1.24, "stacks the activations that the backward pass needs"),
    "MLP-v5p-64-fsdp-tp4": (1.34, "matmuls in four pieces: sums in HBM are read and written for each"),
}
CLOSE = 0.03
WOVEN = {"MLP-v5p-64-fsdp-tp4": 0.32}
# (text, kind, mesh axis): bytes of the text, and why the model has others. "-": a permute's, "xy", "dcn": no axis of the mesh.
OTHER_PAYLOADS = {
    ("MLP-v5p-64-fsdp-tp4", "gather", "fsdp"): (268435456, "half of them is woven into matmuls as permutes"),
    ("MLP-v5p-64-fsdp-tp4", "reduce", "fsdp"): (0, "woven into matmuls as permutes"),
    ("MLP-v5p-64-fsdp-tp4", "permute", "-"): (570425344, "what is woven into matmuls"),
    ("MLP-v6e-16-dp4-fsdp", "reduce", "fsdp"): (1094713344, "the scattered operand is padded"),
    ("MLP-v6e-16-dp4-fsdp", "permute", "-"): (15728640, "the padding's shift to its place"),
    ("MLP-v6e-16-fsdp-tp4", "reduce", "fsdp"): (270532608, "the scattered operand is padded"),
    ("MLP-v6e-16-fsdp-tp4", "permute", "-"): (1572864, "the padding's shift to its place"),
    ("MLP-2xv5e-16-dp", "reduce", "xy"): (1073741824, "inside a slice, around the exchange over DCN"),
    ("MLP-2xv5e-16-dp", "gather", "xy"): (1073741824, "inside a slice, after the exchange over DCN"),
    ("MLP-2xv5e-16-dp", "reduce", "dcn"): (67108864, "a 16th over DCN"),
    ("MLP-2xv5e-16-dp", "reduce", "data"): (0, "inside and between the slices one by one"),
}
KINDS = {"all-gather": "gather", "all-reduce": "reduce", "reduce-scatter": "reduce", "permute": "permute",
         "collective-permute": "permute"}
SMALL = 4096  # sums of a loss, with their padding
PAGES = ["validation/compiled_programs.md", "docs/validation.md"]
HEAD = ["| text | step | model | difference | compute | synchronous | asynchronous | model waits | idle |",
        "|---|---|---|---|---|---|---|---|---|"]
# What makes most of the difference.
WHY = {
    "MLP-2xv5e-16-dp": "sums inside a slice hold the core around those over DCN",
    "MLP-v5e-256-dp-tp4": "sums of gradients hold the core, round one ring through a strided group",
    "MLP-v5e-256-dp4-fsdp": "gathers and scatters hold the core, round one ring",
    "MLP-v5e-256-fsdp": "gathers round one ring and whole all-reduces of gradients hold the core",
    "MLP-v5e-256-fsdp-tp4": "gathers and scatters hold the core, round one ring through a strided group",
    "MLP-v5p-64-dp": "sums of gradients hold the core; stacks of them are copied",
    "MLP-v5p-64-dp-tp4": "sums of gradients hold the core",
    "MLP-v5p-64-fsdp": "gathers and whole all-reduces of gradients hold the core",
    "MLP-v5p-64-fsdp-async": "whole all-reduces of gradients and a gather hold the core",
    "MLP-v5p-64-fsdp-tp4": "gathers hold the core; matmuls in pieces wait for their permutes",
    "MLP-v5p-64-tp": "copies of activations; both wait for the same sums",
    "MLP-v6e-16-dp": "sums of gradients hold the core; stacks of them are copied",
    "MLP-v6e-16-dp4-fsdp": "gathers, scatters and sums hold the core one after the other",
    "MLP-v6e-16-fsdp-tp4": "gathers, scatters and sums hold the core one after the other",
    "MLP-v6e-16-tp": "the model hides an eighth of the backward sums",
    "MLPF-v5p-64-dp": "nothing moves",
    "MLPF-v5p-64-tp": "both wait for the same sums",
}
failures = []


def run(*args):
    done = subprocess.run([PODSIM, *args, "-q"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"podsim {' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check(holds, text):
    if not holds:
        failures.append(text)


def mesh_axes(table):
    """Name, size and physical axes of the mesh, below the table of podsim step."""
    lines = re.findall(r"^# +(\w+) +(\d+) +on (\S+), .*links a chip$", table, re.MULTILINE)
    return [(name, int(size), set(re.sub(r"\[.*?\]|ring:", "", on)) & set("xyz")) for name, size, on in lines]


def axis_of(row, axes):
    """The mesh axis of a collective of the text: that of its size, of several the one that lies there."""
    if row["group"] == "-" or KINDS[row["op"]] == "permute":
        return "-"
    fits = [axis for axis in axes if axis[1] == int(row["group"])]
    if len(fits) > 1:
        fits = [axis for axis in fits if axis[2] == set(row["axes"])]
    return fits[0][0] if fits else row["axes"]


def payloads(collectives, runs, axis):
    sums = {}
    for row in collectives:
        if int(row["bytes"]) > SMALL:
            key = (KINDS[row["op"]], axis(row))
            sums[key] = sums.get(key, 0) + int(row["bytes"]) * int(row[runs])
    return sums


def check_payloads(name, text, model):
    """@return their words"""
    cells = []
    for key in sorted(set(text) | set(model)):
        other = OTHER_PAYLOADS.get((name, *key))
        expected = model.get(key, 0) if other is None else other[0]
        check(text.get(key, 0) == expected, f"{name}: {key} moves {text.get(key, 0)} bytes, not {expected}")
        cell = f"{key[0]} {key[1]} {text.get(key, 0) / 2**20:.6g}" if key[1] != "-" else f"{key[0]} {text[key] / 2**20:.6g}"
        cells.append(cell + ("" if text.get(key, 0) == model.get(key, 0) else f" (model {model.get(key, 0) / 2**20:.6g})"))
    return ", ".join(cells) or "none"


def ms(seconds):
    return f"{seconds * 1e3:.2f}"


def check_compute(name, compiled, modelled, moved):
    compute = float(compiled["compute_s"]) / float(modelled["compute_s"])
    moved = moved / float(modelled["compute_s"])
    if name in OTHER_COMPUTE:
        expected, cause = OTHER_COMPUTE[name]
        check(abs(compute - expected) <= CLOSE, f"{name}: compute is {compute}, not {expected} of the model's ({cause})")
        check(compute - moved <= 1 + WOVEN.get(name, TOLERANCE), f"{name}: compute but moves is {compute - moved}")
    else:
        check(abs(compute - 1) <= TOLERANCE, f"{name}: compute is {compute} of the model's")


def differences(name, compiled, modelled, text):
    """Cells of the table from the step on."""
    step, other = float(compiled["step_time_s"]), float(modelled["step_time_s"])
    compute = float(compiled["compute_s"]) - float(modelled["compute_s"])
    waits, waits_of_model = (sum(float(side[f"exposed_{what}_s"]) for what in ("ici", "dcn")) for side in (compiled, modelled))
    synchronous = sum(float(row["exposed_us"]) for row in text if row["how"] in ("sync", "scatter")) * 1e-6
    rest = sum(sign * float(side[key]) for sign, side in ((1, compiled), (-1, modelled))
               for key in ("idle_s", "exposed_host_s")) + float(compiled["exposed_hbm_s"])
    check(abs(compute + waits - waits_of_model + rest - (step - other)) < 1e-9, f"{name}: the parts don't add up")
    check(synchronous <= waits * (1 + 1e-6), f"{name}: more is waited for synchronous collectives than for all")
    return [ms(step), ms(other), f"{(step - other) * 1e3:+.2f}", f"{compute * 1e3:+.2f}", ms(synchronous),
            ms(max(waits - synchronous, 0)), ms(waits_of_model), f"{rest * 1e3:+.2f}"]


def check_text(row, model, scratch):
    """@return the text's row of the table, and its line of the list below it"""
    name = row["id"]
    path = os.path.join(scratch, "text.hlo")
    with gzip.open(f"{SOURCE}/validation/hlo/{name}.hlo.gz") as packed, open(path, "wb") as file:
        file.write(packed.read())
    where = ["--slice", row["slice"], "--mesh", row["mesh"], "--split-axes"]
    where += ["--dcn-mesh", row["dcn_mesh"]] if row["dcn_mesh"] else []
    where += ["--set", "mxu_step_frac=1", "--collectives", f"{scratch}/collectives.csv"]
    step = ["step", "--model", model["model"], "--batch", model["batch"], "--mode", model["mode"], "--optimizer", "sgd",
            "--remat", "none", "--data", "none"]
    table = run("hlo", path, "--top", "0", *where)
    compiled = rows(run("hlo", path, "--format", "csv", *where))[0]
    of_text = read(f"{scratch}/collectives.csv")
    axes = mesh_axes(run(*step, *where))
    modelled = rows(run(*step, "--format", "csv", *where))[0]
    of_model = read(f"{scratch}/collectives.csv")
    flops = float(modelled["model_tflops_per_chip"]) * float(modelled["step_time_s"]) * 1e12
    check(abs(float(compiled["mxu_flops_per_chip"]) / flops - 1) < 1e-9, f"{name}: {flops} FLOPs in the model")
    moved = re.search(r"copies, slices, zeros +([0-9.]+)", table)
    check_compute(name, compiled, modelled, float(moved[1]) if moved else 0)
    cell = check_payloads(name, payloads(of_text, "runs", lambda one: axis_of(one, axes)),
                          payloads(of_model, "count", lambda one: one["mesh_axis"]))
    return ("| " + " | ".join([name, *differences(name, compiled, modelled, of_text)]) + " |",
            f"- {name}: {float(compiled['mxu_flops_per_chip']) / 1e12:.3f} TFLOP; {cell}; {WHY[name]}")


def check_pages(*parts):
    for page in PAGES:
        with open(f"{SOURCE}/{page}", encoding="utf-8") as file:
            text = file.read()
        for part in parts:
            check("\n".join(part) in text, f"{page} hasn't this: {part[0]} …")


def main():
    models = {row["id"]: row for row in read(f"{SOURCE}/validation/xla_steps.csv")}
    table, notes = list(HEAD), []
    with tempfile.TemporaryDirectory() as scratch:
        for row in read(f"{SOURCE}/validation/hlo/expected.csv"):
            if row["id"].startswith("MLP"):
                line, note = check_text(row, models[row["id"].removesuffix("-async")], scratch)
                table.append(line)
                notes.append(note)
    check(len(table) == len(HEAD) + 17, f"{len(table) - len(HEAD)} texts")
    print("\n".join([*table, "", *notes]))
    check_pages(table, notes)
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


main()
