#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_rewritten.py PODSIM SOURCE_FOLDER

What a text says otherwise changes no figure of its step:

- Renamed instructions and computations, dropped metadata, comments, tables in front, CRLF: the same row of
  `podsim hlo`, and the same figures of --collectives and --links.
- The same groups in every form that a text may write them in, and a permuted order of devices with permuted groups:
  the same bytes of all outputs.
"""
import csv
import gzip
import os
import re
import subprocess
import sys
import tempfile

PODSIM, SOURCE = sys.argv[1:3]
# Attention kernels, DCN, SparseCores, permutes, fused and asynchronous collectives, convolutions, int8.
TEXTS = ["TRv6e-001", "MLP-2xv5e-16-dp", "moe-v5p-4x4x4", "pipeline-v5p-2x2x4", "TF8B-v5p-64-fsdp-async", "every-v5e-16x16",
         "resnet50-v5e-4x4", "int8-v5e-4x4", "decode8b-v5e-2x4"]
NAMED = {"name", "op_name"}  # columns that say names
STRING = re.compile(r'("(?:\\.|[^"\\])*")', re.DOTALL)
faults = []


def outside_strings(text, change):
    return "".join(part if i % 2 else change(part) for i, part in enumerate(STRING.split(text)))


def renamed(text):
    names = {}
    return outside_strings(text, lambda part: re.sub(
        r"%([A-Za-z0-9_.-]+)", lambda found: f"%q{names.setdefault(found[1], len(names))}", part))


def without_metadata(text):
    return re.sub(r', metadata=\{(?:"(?:\\.|[^"\\])*"|[^"{}])*\}', "", text)


def with_comments(text):
    return outside_strings(text, lambda part: part.replace(" = ", " /* a } comment */ = /*index=1*/ ").replace(", %", ",/*,*/ %"))


def with_tables(text):
    head, rest = text.split("\n", 1)
    return f'{head}\n\nFileNames\n1 "a {{ }} b.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n1 {{file_name_id=1}}\n{rest}'


def with_crlf(text):
    return text.replace("\n", "\r\n")


def outputs(args, scratch):
    """All bytes that a run leaves."""
    files = {what: os.path.join(scratch, what) for what in ("collectives", "links")}
    args = [PODSIM, "hlo", *args, "--format", "csv", "-q"]
    for what, path in files.items():
        args += [f"--{what}", path]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{args}: exit {done.returncode}: {done.stderr}")
    out = {"row": done.stdout}
    for what, path in files.items():
        with open(path, encoding="utf-8") as file:
            out[what] = file.read()
    return out


def figures(out):
    return {what: [{key: cell for key, cell in row.items() if key not in NAMED} for row in csv.DictReader(text.splitlines())]
            for what, text in out.items()}


def check_text(row, scratch):
    path = os.path.join(scratch, "text.hlo")
    where = [path, "--slice", row["slice"], "--mesh", row["mesh"], "--split-axes"]
    where += ["--dcn-mesh", row["dcn_mesh"]] if row["dcn_mesh"] else []
    with gzip.open(f"{SOURCE}/validation/hlo/{row['id']}.hlo.gz", "rt", encoding="utf-8") as packed:
        text = packed.read()
    plain = None
    for change in (str, renamed, without_metadata, with_comments, with_tables, with_crlf):
        changed = change(text)
        if change is not str and changed == text:
            faults.append(f"{row['id']}: {change.__name__} changes nothing")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(changed)
        made = figures(outputs(where, scratch))
        plain = made if plain is None else plain
        faults.extend(f"{row['id']}, {change.__name__}: {what} differs" for what in plain if made[what] != plain[what])


# Rows of 4x4: partitions 0 to 3 and so on. The last is for an order of devices that counts y first.
ROWS = ["{{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}}", "{{8,9,10,11},{3,2,1,0},{12,13,14,15},{4,5,6,7}}", "[4,4]<=[16]",
        "[4,4]<=[2,8]", "mesh['y'=4,'x'=4] {'x'}", "mesh['x'=4,'y'=4], device_ids=([4,4]T(1,0)) {'x'}",
        "mesh['y'=4,'x'=4], device_ids=(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15) {'x'}", "mesh['a'=16] {'a':(4)4}"]
IN_ORDER = " ".join(str(chip) for chip in range(16))
Y_FIRST = " ".join(str(4 * (i % 4) + i // 4) for i in range(16))
COLUMNS = ["{{0,4,8,12},{1,5,9,13},{2,6,10,14},{3,7,11,15}}", "[4,4]<=[4,4]T(1,0)", "mesh['x'=4,'y'=4] {'x'}"]
SHORT, WHOLE = "bf16[1048576]{0:T(1024)(128)(2,1)}", "bf16[4194304]{0:T(1024)(128)(2,1)}"


def grouped(groups):
    return f"""HloModule jit_grouped, is_scheduled=true, num_partitions=16

%sum (a: bf16[], b: bf16[]) -> bf16[] {{
  %a = bf16[]{{:T(256)}} parameter(0)
  %b = bf16[]{{:T(256)}} parameter(1)
  ROOT %s = bf16[]{{:T(256)}} add(%a, %b)
}}

ENTRY %main (p: bf16[1048576]) -> bf16[1048576] {{
  %p = {SHORT} parameter(0)
  %gather = {WHOLE} all-gather(%p), replica_groups={groups}, dimensions={{0}}
  %reduce = {WHOLE} all-reduce(%gather), replica_groups={groups}, to_apply=%sum
  %exchange = {WHOLE} all-to-all(%reduce), replica_groups={groups}, dimensions={{0}}
  ROOT %scatter = {SHORT} reduce-scatter(%exchange), replica_groups={groups}, dimensions={{0}}, to_apply=%sum
}}
"""


def check_groups(scratch):
    plain = None
    path = os.path.join(scratch, "text.hlo")
    for order, forms in ((IN_ORDER, ROWS), (Y_FIRST, COLUMNS)):
        for groups in forms:
            with open(path, "w", encoding="utf-8") as file:
                file.write(grouped(groups))
            made = outputs([path, "--slice", "v5e:4x4", "--device-order", order], scratch)
            plain = made if plain is None else plain
            faults.extend(f"{groups} on {order}: {what} differs" for what in plain if made[what] != plain[what])
    sizes = {(row["group"], row["groups"], row["axes"]) for row in csv.DictReader(plain["collectives"].splitlines())}
    if sizes != {("4", "4", "x")}:
        faults.append(f"groups are {sizes}")


def main():
    with open(f"{SOURCE}/validation/hlo/expected.csv", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as scratch:
        check_groups(scratch)
        for name in TEXTS:
            check_text(rows[name], scratch)
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


main()
