#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_limits.py PODSIM CASES: `limit` of a step is the largest part of "Where the time goes".

A line of CASES is a limit and the arguments of a step. Each case is run as a table, from whose notes the parts are read: mxu is what of matmuls and
elementwise ops HBM does not bound. Where parts lie within 1 % of the step, the one with the greatest elasticity of `--what-if all`
is expected. The CSV of the step names the same limit."""

import csv
import io
import re
import subprocess
import sys

ELASTIC = ("mxu", "hbm", "ici", "dcn")


def run(podsim, args):
    return subprocess.run([podsim, "step", *args], check=True, capture_output=True, text=True).stdout


def parts_of(table, slices):
    """Shares of the step, in %."""
    notes = table.split("# Where the time goes")[1].split("# Collectives")[0]
    share = {name.strip(): float(part) for name, part in re.findall(r"^#   (.*?) +[\d.]+ \w+ +([\d.]+) %$", notes, re.M)}
    hbm = share["(of these bound by HBM)"]
    exposed = sum(part for name, part in share.items() if name.startswith("exposed over"))
    parts = {"mxu": share["matmuls"] + share["elementwise"] - hbm, "hbm": hbm, "dcn" if slices else "ici": exposed}
    parts.update(host=share.get("exposed to the host", 0), idle=share["idle"])
    return parts


def expected_of(podsim, args):
    parts = parts_of(run(podsim, args), slices=any("*" in arg for arg in args))
    most = max(parts.values())
    tied = [name for name, part in parts.items() if part > most - 1]
    if len(tied) > 1:
        probes = csv.DictReader(io.StringIO(run(podsim, [*args, "--what-if", "all", "--format", "csv"])))
        elasticity = {probe["key"]: float(probe["elasticity"]) for probe in probes}
        tied.sort(key=lambda name: (-(elasticity[name] if name in ELASTIC else 0), -parts[name]))
        return tied[0], parts
    return max(parts, key=parts.get), parts


def main(podsim, path):
    faults = []
    with open(path, encoding="utf-8") as file:
        cases = [line.split() for line in file]
    for limit, *args in cases:
        expected, parts = expected_of(podsim, args)
        printed = next(csv.DictReader(io.StringIO(run(podsim, [*args, "--format", "csv"]))))["limit"]
        if not printed == expected == limit:
            faults.append(f"{' '.join(args)}: {printed} is printed, {expected} expected of {parts}, {limit} in {path}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults or len(cases) < 10 else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
