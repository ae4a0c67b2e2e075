#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_ranks.py PODSIM MPIEXEC SOURCE_FOLDER

Steps of compiled programs (validation/hlo) print and write the same bytes without mpirun and on 1, 2 and 4 ranks: table,
operations, collectives, memory, links and timeline; and with and without a timeline.
"""
import csv
import gzip
import os
import subprocess
import sys
import tempfile

PODSIM, MPIEXEC, SOURCE = sys.argv[1:4]
# One of each: DCN, all-to-alls and SparseCores, permutes in a pipeline, every collective, chips that can't stand for another.
TEXTS = ["MLP-2xv5e-16-dp", "moe-v5p-4x4x4", "pipeline-v5p-2x2x4", "every-v5e-16x16", "TF8B-v5p-64-fsdp-async",
         "decode8b-v5e-2x4"]
FILES = ["ops", "collectives", "memory", "links", "trace"]
TRACED = {"moe-v5p-4x4x4", "every-v5e-16x16"}  # short programs


def run(row, path, scratch, launcher, traced=True):
    name = row["id"]
    files = [file for file in FILES if file != "trace" or (traced and name in TRACED)]
    args = [*launcher, PODSIM, "hlo", path, "--slice", row["slice"], "--mesh", row["mesh"], "--split-axes"]
    args += ["--dcn-mesh", row["dcn_mesh"]] if row["dcn_mesh"] else []
    for file in files:
        args += [f"--{file}", f"{scratch}/{file}"]
    done = subprocess.run(args, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}, {launcher}: exit {done.returncode}: {done.stderr.decode()}")
    out = {"the table": done.stdout}
    for file in files:
        with open(f"{scratch}/{file}", "rb") as read:
            out[file] = read.read()
        os.remove(f"{scratch}/{file}")
        if len(out[file]) < 10:
            sys.exit(f"{name}: {file} is empty")
    return out


def main():
    with open(f"{SOURCE}/validation/hlo/expected.csv", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    faults = []
    for name in TEXTS:
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "text.hlo")
            with gzip.open(f"{SOURCE}/validation/hlo/{name}.hlo.gz") as packed, open(path, "wb") as file:
                file.write(packed.read())
            alone = run(rows[name], path, scratch, [])
            if name in TRACED:
                unseen = run(rows[name], path, scratch, [], traced=False)
                faults += [f"{name}: {what} without --trace differs" for what in unseen if unseen[what] != alone[what]]
            for ranks in ("1", "2", "4"):
                several = run(rows[name], path, scratch, [MPIEXEC, "-n", ranks])
                faults += [f"{name}: {what} on {ranks} ranks differs" for what in alone if several[what] != alone[what]]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


main()
