#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_top.py K ALL.csv TOP.csv: what `compare --top all` and `--top K` printed fits together.

Bounds are never above times; the K fastest are the same; a layout has figures exactly when its bound doesn't exceed the
K-th time, and is called slower otherwise. Seconds are whole picoseconds as the nearest doubles, which keep their order and
below 9,007 s (2^53 ps) all differ, so that nothing is allowed for."""

import csv
import sys


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


top, everything, best = int(sys.argv[1]), rows(sys.argv[2]), rows(sys.argv[3])
faults = []
timed = [row for row in everything if row["step_time_s"] != "-"]
for row in timed:
    if float(row["bound_s"]) > float(row["step_time_s"]):
        faults.append(f"{row['mesh']}: bound {row['bound_s']} above {row['step_time_s']}")
if best[:min(top, len(timed))] != everything[:min(top, len(timed))]:
    faults.append(f"the first {top} differ")
last = float(timed[min(top, len(timed)) - 1]["step_time_s"])
for row in best:
    if row["bound_s"] == "-":
        continue
    within = float(row["bound_s"]) <= last
    if within != (row["step_time_s"] != "-") or within != (row["status"] == "ok"):
        faults.append(f"{row['mesh']}: bound {row['bound_s']}, {top}th time {last}, status {row['status']}")
print("\n".join(faults[:10]), end="\n" if faults else "")
sys.exit(1 if faults else 0)
