#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_mlp.py PODSIM SOURCE_FOLDER

Compiled MLP steps (tests/data/hlo/MLP*) against `podsim step` of the same model, mesh and slice (validation/xla_steps.csv):

- FLOPs are equal.
- Payloads are equal by kind and group size, but for what is named in OTHER_PAYLOADS and sums of one number (the loss).
- Compute is within 15 %, both at the rate of a large matmul (mxu_step_frac, which belongs to transformers' steps in
  `podsim step` and to all of `podsim hlo`, is 1), but for the texts of OTHER_COMPUTE, which do what the model doesn't:
  they must differ by so much. What isn't moving data is within 15 % in those too, or by WOVEN.
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
    "MLP-v5p-64-dp": (1.29, "zeroes and fills the stacks of whole gradients"),
    "MLP-v6e-16-dp": (1.41, "zeroes and fills the stacks of whole gradients"),
    "MLP-2xv5e-16-dp": (1.34, "zeroes and fills the stacks of whole gradients"),
    "MLP-v6e-16-dp4-fsdp": (1.23, "zeroes and fills the stacks of gradients, slices and copies the gathered weights"),
    "MLP-v5p-64-tp": (1.22, "stacks the activations that the backward pass needs"),
    "MLP-v5p-64-fsdp-tp4": (1.45, "matmuls in four pieces: sums in HBM are read and written for each"),
}
CLOSE = 0.03
WOVEN = {"MLP-v5p-64-fsdp-tp4": 0.40}
# (text, kind, group): bytes of the text, and why the model has others.
OTHER_PAYLOADS = {
    ("MLP-v5p-64-fsdp-tp4", "gather", 16): (268435456, "half of them is woven into matmuls as permutes"),
    ("MLP-v5p-64-fsdp-tp4", "reduce", 16): (0, "woven into matmuls as permutes"),
    ("MLP-v5p-64-fsdp-tp4", "permute", 0): (570425344, "what is woven into matmuls"),
    ("MLP-v6e-16-dp4-fsdp", "reduce", 4): (1363148800, "the scattered operand is padded"),
    ("MLP-v6e-16-dp4-fsdp", "permute", 0): (15728640, "the padding's shift to its place"),
    ("MLP-v6e-16-fsdp-tp4", "reduce", 4): (404750336, "the scattered operand is padded"),
    ("MLP-v6e-16-fsdp-tp4", "permute", 0): (1572864, "the padding's shift to its place"),
    ("MLP-2xv5e-16-dp", "reduce", 16): (1073741824, "inside a slice, around the exchange over DCN"),
    ("MLP-2xv5e-16-dp", "gather", 16): (1073741824, "inside a slice, after the exchange over DCN"),
    ("MLP-2xv5e-16-dp", "reduce", 2): (67108864, "a 16th over DCN"),
    ("MLP-2xv5e-16-dp", "reduce", 32): (0, "inside and between the slices one by one"),
}
KINDS = {"all-gather": "gather", "all-reduce": "reduce", "reduce-scatter": "reduce", "permute": "permute",
         "collective-permute": "permute"}
SMALL = 4096  # sums of a loss, with their padding
failures = []


def run(*args):
    done = subprocess.run([PODSIM, *args, "-q"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"podsim {' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def payloads(path, runs):
    sums = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            group = 0 if row["group"] == "-" or KINDS[row["op"]] == "permute" else int(row["group"])
            if int(row["bytes"]) > SMALL:
                key = (KINDS[row["op"]], group)
                sums[key] = sums.get(key, 0) + int(row["bytes"]) * int(row[runs])
    return sums


def check(holds, text):
    if not holds:
        failures.append(text)


def check_payloads(name, text, model):
    for key in sorted(set(text) | set(model)):
        other = OTHER_PAYLOADS.get((name, *key))
        expected = model.get(key, 0) if other is None else other[0]
        check(text.get(key, 0) == expected, f"{name}: {key} moves {text.get(key, 0)} bytes, not {expected}")


def check_text(row, model, scratch):
    name = row["id"]
    path = os.path.join(scratch, "text.hlo")
    with gzip.open(f"{SOURCE}/tests/data/hlo/{name}.hlo.gz") as packed, open(path, "wb") as file:
        file.write(packed.read())
    where = ["--slice", row["slice"], "--mesh", row["mesh"], "--split-axes"]
    where += ["--dcn-mesh", row["dcn_mesh"]] if row["dcn_mesh"] else []
    where += ["--set", "mxu_step_frac=1", "--collectives"]
    step = ["step", "--model", model["model"], "--batch", model["batch"], "--mode", model["mode"], "--optimizer", "sgd",
            "--remat", "none", "--data", "none", "--format", "csv"]
    of_text = f"{scratch}/compiled.csv"
    of_model = f"{scratch}/model.csv"
    table = run("hlo", path, "--top", "0", *where, of_text)
    compiled = rows(run("hlo", path, "--format", "csv", *where, of_text))[0]
    modelled = rows(run(*step, *where, of_model))[0]
    flops = float(modelled["model_tflops_per_chip"]) * float(modelled["step_time_s"]) * 1e12
    check(abs(float(compiled["mxu_flops_per_chip"]) / flops - 1) < 1e-9, f"{name}: {flops} FLOPs in the model")
    check_payloads(name, payloads(of_text, "runs"), payloads(of_model, "count"))
    moved = re.search(r"copies, slices, zeros +([0-9.]+)", table)
    compute = float(compiled["compute_s"]) / float(modelled["compute_s"])
    moved = float(moved[1]) / float(modelled["compute_s"]) if moved else 0
    print(f"{name:24} compute {compute:.3f} of the model's, {moved:.3f} of which moves data")
    if name in OTHER_COMPUTE:
        expected, cause = OTHER_COMPUTE[name]
        check(abs(compute - expected) <= CLOSE, f"{name}: compute is {compute}, not {expected} of the model's ({cause})")
        check(compute - moved <= 1 + WOVEN.get(name, TOLERANCE), f"{name}: compute but moves is {compute - moved}")
    else:
        check(abs(compute - 1) <= TOLERANCE, f"{name}: compute is {compute} of the model's")


def main():
    with open(f"{SOURCE}/validation/xla_steps.csv", encoding="utf-8") as file:
        models = {row["id"]: row for row in csv.DictReader(file)}
    texts = 0
    with open(f"{SOURCE}/tests/data/hlo/expected.csv", encoding="utf-8") as file, tempfile.TemporaryDirectory() as scratch:
        for row in csv.DictReader(file):
            if row["id"].startswith("MLP"):
                check_text(row, models[row["id"].removesuffix("-async")], scratch)
                texts += 1
    check(texts == 17, f"{texts} texts")
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


main()
