#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: random_bounds.py PODSIM LAYOUTS SEARCHES [SEED]

Random steps (models, slices, batches, modes, types, recomputation, context parallelism, pipelines), and of each a few of its layouts, until LAYOUTS have run:
bound_s is never above step_time_s. On SEARCHES of them with more than K layouts that run, and no more than a search of a
minute has, `compare --top K` gives the K rows of `--top all` (check_top.py). With few layouts models and slices are small. A
failure names its command line; SEED gives the same again. How far it is goes to stderr, and is 0.3 to 3 layouts a second."""

import csv
import io
import os
import random
import subprocess
import sys
import tempfile

podsim, layouts, searches = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
dice = random.Random(seed)
choice = dice.choice
small = layouts <= 200
check_top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_top.py")
TOP = 2 if small else 10
LAYOUTS_OF_A_STEP = 8
SEARCH_CHIPS = 64  # a search over more, or with more layouts, takes minutes
SEARCH_LAYOUTS = 40


def compare(arguments):
    run = subprocess.run([podsim, "compare", *arguments, "--data", "none", "--format", "csv", "-q"], capture_output=True, text=True,
                         check=False)
    return run.stdout


def models():
    table = subprocess.run([podsim, "list", "models", "--format", "csv"], capture_output=True, text=True, check=True).stdout
    return [row["model"] for row in csv.DictReader(io.StringIO(table))]


NAMES = ["llama3.1-8b", "mixtral-8x7b"] if small else models()
SLICES = ["v5e:4x4", "v5p:2x2x4", "v6e:2x4", "2*v5e:2x4"] if small else [
    "v5e:8x8", "v5e:16x16", "v5p:4x4x4", "v5p:4x4x8", "v6e:8x16", "v4:4x4x4", "tpu7x:2x2x4", "tpu7x:4x4x4", "2*v5e:4x8",
    "4*v6e:4x4", "2*v5p:4x4x4", "2*tpu7x:2x2x4"]


def random_transformer():
    """A small one, of which a step of few layers may hide more than one of many."""
    heads = choice([4, 16, 32])
    model = (f"transformer:layers={choice([6, 13, 24, 32, 48])},d_model={choice([256, 512, 2048])},d_ff={choice([512, 2048, 8192])},"
             f"heads={heads},kv_heads={choice([1, heads // 4, heads])},head_dim={choice([64, 128])},"
             f"vocab={choice([512, 4096, 32768])},mlp_matrices={choice([2, 3])}")
    return model + (f",experts={choice([4, 8])},top_k=2,moe_d_ff={choice([512, 2048])}" if choice([True, False, False]) else "")


def context_meshes(chips, model):
    """Layouts that cut sequences, and how tokens on other chips are seen."""
    step = ["--context-parallel", choice(["all-gather", "ring", "ulysses"])] if "ssm" not in model else []
    for sequence in (2, 4, chips // 2, chips):
        step += ["--mesh", f"sequence={sequence},{choice(['data', 'fsdp'])}={chips // sequence}"]
    return step


def random_step():
    if choice([True, False, False]):
        model = f"mlp:layers={choice([2, 3, 4, 8])},d_model={choice([512, 1024, 4096])},d_ff={choice([2048, 4096, 16384])}"
        step = ["--batch", str(choice([1024, 4096, 8192])), "--mode", choice(["train", "forward"])]
    else:
        model = random_transformer() if choice([True, False, False]) else choice(NAMES)
        mode = choice(["train", "train", "train", "forward", "prefill", "decode"])
        step = ["--batch", str(choice([16, 64, 256])), "--seq", str(choice([512, 2048] if small else [1024, 4096, 8192])),
                "--mode", mode]
        step += ["--dtype", "int8"] if mode == "decode" and choice([True, False]) else []
    if "train" in step:
        step += ["--microbatches", str(choice([1, 1, 2, 4])), "--gather-ahead", str(choice([0, 1, 2]))]
        step += ["--dtype", choice(["fp8", "int8"])] if choice([True, False, False, False]) else []
        step += ["--remat", choice(["full", "none", "minimal"])] if choice([True, False, False]) else []
    spec = choice(SLICES)
    step += ["--split-axes"] if choice([True, False]) and not small else []
    if "train" in step and choice([True, False]):
        count = spec.split(":")[0]
        chips = chips_of(spec) // int(count.split("*")[0] if "*" in count else 1)
        for stages in (2, 4):
            step += ["--mesh", f"pipeline={stages},fsdp={chips // stages}", "--mesh", f"pipeline={stages},data={chips // stages}"]
        step += ["--dcn-mesh", f"data={count.split('*')[0]}"] if "*" in count else []
    elif model[:4] != "mlp:" and "decode" not in step and choice([True, False, False]):
        slices = int(spec.split("*")[0]) if "*" in spec else 1
        step += context_meshes(chips_of(spec) // slices, model) + (["--dcn-mesh", f"data={slices}"] if slices > 1 else [])
    return ["--slice", spec, "--model", model, *step]


def chips_of(spec):
    count, dims = spec.split(":")
    chips = int(count.split("*")[0]) if "*" in count else 1
    for size in dims.split("x"):
        chips *= int(size)
    return chips


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def few_layouts(step):
    """The layouts of a step that run, and arguments for some of them over the same slices; those it names itself stay."""
    runnable = [row for row in rows_of(compare([*step, "--top", "1"])) if row["bound_s"] != "-"]
    if "--mesh" in step or len(runnable) <= LAYOUTS_OF_A_STEP:
        return runnable, step
    over = choice(sorted({row["dcn_mesh"] for row in runnable}))
    named = [row["mesh"] for row in runnable if row["dcn_mesh"] == over]
    few = list(step)
    for mesh in dice.sample(named, min(len(named), LAYOUTS_OF_A_STEP)):
        few += ["--mesh", mesh]
    return runnable, few + (["--dcn-mesh", over] if over != "-" else [])


def check_bounds(step):
    """How many of its layouts ran, and the outcome as text."""
    whole = compare([*step, "--top", "all"])
    timed = [row for row in rows_of(whole) if row["step_time_s"] != "-"]
    for row in timed:
        if float(row["bound_s"]) > float(row["step_time_s"]):
            faults.append(f"seed {seed}: compare {' '.join(step)}: {row['mesh']} {row['dcn_mesh']}: "
                          f"bound {row['bound_s']} above {row['step_time_s']}")
    return len(timed), whole


def check_search(step, whole, folder):
    paths = [os.path.join(folder, name) for name in ("all.csv", "top.csv")]
    for path, text in zip(paths, (whole, compare([*step, "--top", str(TOP)]))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    check = subprocess.run([sys.executable, check_top, str(TOP), *paths], capture_output=True, text=True, check=False)
    if check.returncode != 0:
        faults.append(f"seed {seed}: compare {' '.join(step)} --top {TOP}: {check.stdout}{check.stderr}")


def is_search(step, runnable):
    return TOP < len(runnable) <= SEARCH_LAYOUTS and chips_of(step[1]) <= SEARCH_CHIPS


faults = []
found = done = tries = 0
with tempfile.TemporaryDirectory() as folder:
    while (found < layouts or done < searches) and tries < 40 * (layouts + searches):
        tries += 1
        step = random_step()
        runnable, few = few_layouts(step)
        if not runnable:
            continue
        searched = done < searches and is_search(step, runnable)
        if found < layouts or searched:
            ran, whole = check_bounds(step if searched else few)
            found += ran
        if searched:
            check_search(step, whole, folder)
            done += 1
        print(f"{found} layouts, {done} searches, {tries} command lines, {len(faults)} faults; last: {' '.join(step)}",
              file=sys.stderr, flush=True)
print(f"{found} layouts, {done} searches, {tries} command lines")
print("\n".join(faults[:10]))
sys.exit(1 if faults or found < layouts or done < searches else 0)
