#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_terminal.py PODSIM PROJECT MPIRUN: on a terminal of 100 and of 72 columns no line of any command is wider, --wide
and CSV are whole there, and what goes into a pipe or a file isn't cut. Rows of compare and of sweeps come as they are final, on any
number of columns and ranks the same, and an interrupt leaves whole lines; CSV comes into a pipe, too."""

import csv
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios

podsim, project, mpirun = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
faults = []
END = b"\x03end of output\x03"


def on_terminal(columns, arguments, quiet=False, ranks=1, interrupt=None):
    """Standard output and error of a command on a terminal: the lines that stay, and all that was written. `interrupt`: what it has
    written when it gets SIGINT."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    launcher = [mpirun, "-n", str(ranks)] if ranks > 1 else []
    child = subprocess.Popen(launcher + [podsim] + arguments + (["-q"] if quiet else []), stdin=slave, stdout=slave, stderr=slave,
                             start_new_session=True)
    # The terminal stays open here, and ends with a mark: what is on its way when the last end closes may be lost.
    raw, marked, stopped = b"", False, False
    while not raw.endswith(END):
        if select.select([master], [], [], 0.02)[0]:
            raw += os.read(master, 65536)
            if interrupt and interrupt in raw:
                child.send_signal(signal.SIGINT)
                interrupt = None
                stopped = True
        elif not marked and child.poll() is not None:
            marked = os.write(slave, END) > 0
    raw = raw[:-len(END)]
    os.close(master)
    os.close(slave)
    code = child.wait()
    if code != (-signal.SIGINT if stopped else 0):
        faults.append(f"{' '.join(arguments)}: exit {code}")
    text = raw.decode()
    for shown in re.findall(r"\r([^\r\n]*)\x1b\[K", text):
        if len(shown) >= columns:
            faults.append(f"progress as wide as the terminal: {shown}")
    lines = [line.split("\r")[-1].replace("\x1b[K", "") for line in text.replace("\r\n", "\n").split("\n")]
    return lines, text


def check(condition, what, lines=()):
    if not condition:
        faults.append(what + "".join("\n    " + line for line in lines))


compare = ["compare", "--slice", "v5p:4x4x4", "--model", "llama3.1-70b", "--batch", "512", "--seq", "8192", "--data", "none"]
commands = [
    compare,
    ["compare", "--slice", "2*v5e:4x4", "--model", "mlp:layers=2,d_model=1024,d_ff=4096", "--batch", "2048", "--data", "none",
     "--split-axes"],
    ["plan", "--model", "mlp:layers=2,d_model=1024,d_ff=4096", "--batch", "4096", "--slices", "2*v5e:2x4,v5e:4x4,v6e:2x4",
     "--tokens", "1G"],
    ["step", "--slice", "v5e:4x4", "--model", "llama3.1-70b", "--mesh", "tensor=16", "--batch", "32", "--seq", "8192",
     "--mode", "decode", "--dtype", "int8"],
    ["hlo", project + "/topologies/examples/hlo/mlp_v5p_64.hlo.txt", "--top", "3"],
    ["hlo", project + "/topologies/examples/hlo/mlp_v5p_64.hlo.txt", "--facts"],
    ["attention", "--chip", "v5p", "--queries", "8192", "--heads", "16", "--qk-dim", "128", "--batch", "2", "--causal"],
    ["matmul", "--chip", "v5e", "--m", "350", "--k", "16384", "--n", "4096", "--dtype", "int8"],
    ["collective", "--slice", "v5p:4x4x8_untwisted", "--slice", "v5p:4x4x8", "--op", "all-to-all", "--bytes", "1MiB",
     "--data", "none"],
    ["slice", "--slice", "v4:4x4x8", "--slice", "v5e:8x16", "--rates", "book"],
    ["traffic", "--slice", "v5e:4x4", "--pattern", "pair", "--from", "0,0", "--to", "3,3", "--bytes", "1MiB"],
    ["mesh", "--slice", "v5p:4x4x4", "--mesh", "data=4,fsdp=16"],
    ["copy", "--chip", "v5e", "--bytes", "1GiB"],
    ["list", "chips"],
    ["list", "slices"],
    ["list", "models"],
    ["list", "algorithms"],
    ["list", "recipes"],
    ["host"],
]
for columns in (100, 72):
    for arguments in commands if columns == 100 else commands[1:8]:
        lines, _ = on_terminal(columns, arguments)
        wide = [line for line in lines if len(line) > columns and " " in line.strip()]
        check(not wide, f"wider than {columns} columns: {' '.join(arguments)}", wide)
        check(len(lines) > 2, f"no output: {' '.join(arguments)}", lines)

# compare: what people need is there; what does not fit is one line; progress; why the first is first
lines, raw = on_terminal(100, compare)
text = "\n".join(lines)
heading = next(line for line in lines if "rank" in line)
check(re.findall(r"rank|mesh|step|MFU|exposed ICI|HBM used|limit", heading)
      == ["rank", "mesh", "step", "MFU", "exposed ICI", "HBM used", "limit"], "columns of compare", [heading])
check(re.search(r"^# 6 layouts do not fit: nearest fsdp=4,tensor=16 needs 1\d\d\.\d GiB of 95\.7; --wide", text, re.M),
      "no line of the layouts that do not fit", lines)
check(not any("does not fit" in line for line in lines), "rows of layouts that do not fit", lines)
check(re.search(r"^podsim: fsdp=64 beats data=4,fsdp=16 by [0-9.]+ m?s \([0-9.]+ %\): HBM-bound ops [0-9.]+ m?s less", text, re.M),
      "no line says why", lines)
check(re.search(r"podsim: [1-9]\d* of 10 layouts, best so far \S+ [0-9.]+ s", raw), "no progress", [raw])
check("layouts, best" not in on_terminal(100, compare, quiet=True)[1], "progress in spite of -q")

# who asks for real numbers sees how many are wrong
numbers = ["step", "--slice", "v5e:2x2", "--model", "mlp:layers=2,d_model=64,d_ff=128", "--mesh", "data=4", "--batch", "16", "--data"]
check(any("wrong" in line and "limit" in line for line in on_terminal(100, numbers + ["real"])[0]), "no column wrong with --data real")
check(not any("wrong  limit" in line for line in on_terminal(100, numbers + ["none"])[0]), "a column wrong with --data none")

# --wide and CSV on a terminal are whole; a pipe and a file get what they got before
piped = subprocess.run([podsim] + compare, capture_output=True, text=True, check=True).stdout
check(sum("does not fit" in line for line in piped.splitlines()) == 6, "rows are missing in a pipe", [piped])
check(" limit" in piped and "placement" in piped and "--wide" not in piped, "a pipe gets what a terminal gets", [piped])
wide, _ = on_terminal(100, compare + ["--wide"])
check(sum("does not fit" in line for line in wide) == 6 and any(" limit" in line and "placement" in line for line in wide),
      "--wide is not whole", wide)
rows = subprocess.run([podsim] + compare + ["--format", "csv"], capture_output=True, text=True, check=True).stdout
here, _ = on_terminal(100, compare + ["--format", "csv"], quiet=True)
check([line for line in here if line] == rows.splitlines(), "CSV differs on a terminal", here)
limits = [row["limit"] for row in csv.DictReader(io.StringIO(rows)) if row["status"] == "ok"]
check(len(limits) == 4 and set(limits) == {"mxu"}, f"limits {limits}")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "table")
    on_terminal(100, compare + ["--output", path])
    with open(path, encoding="utf-8") as file:
        check(file.read() == piped, "--output is not what a pipe gets")

# rows of compare come before it is done, below each other, as wide as the terminal, on two ranks, too
search = ["compare", "--slice", "2*v5e:4x4", "--model", "mlp:layers=2,d_model=1024,d_ff=4096", "--batch", "2048", "--data", "none",
          "--split-axes"]


def rows_of(lines):
    return [line.split() for line in lines if re.match(r" +[1-9]\d*  [a-z]+=\d", line)]


whole = rows_of(subprocess.run([podsim, *search, "--top", "all"], capture_output=True, text=True, check=True).stdout.splitlines())
for columns in (60, 80, 100, 200):
    for top in ("3", "all"):
        one, raw = on_terminal(columns, search + ["--top", top])
        two, _ = on_terminal(columns, search + ["--top", top], ranks=2)
        told = f"{columns} columns, --top {top}"
        check(rows_of(one) == rows_of(two) and len(rows_of(one)) >= 3, f"rows of two ranks differ: {told}", one + two)
        check([row[0] for row in rows_of(one)] == [str(i + 1) for i in range(len(rows_of(one)))], f"ranks: {told}", one)
        check(not any(len(line) > columns for line in one + two), f"wider than the terminal: {told}", one + two)
        check(top == "3" or [row[1:3] for row in rows_of(one)] == [row[1:3] for row in whole] or columns < 200,
              f"not the rows of a pipe: {told}", one)
        check(raw.index("rank  mesh") < raw.rindex("layouts, best so far"), f"rows come at the end: {told}", [raw])
lines, _ = on_terminal(100, compare, interrupt=b"     1  fsdp=64 ")
check(len(rows_of(lines)) >= 1 and all(len(row) == 8 for row in rows_of(lines)), "an interrupt leaves half a row", lines)
lines, _ = on_terminal(100, ["compare", "--slice", "v5p:8x8x16", "--model", "llama3.1-405b", "--batch", "1024", "--seq", "8192", "--data",
                             "none"], interrupt=b"best so far")
check(not any("best so far" in line for line in lines), "an interrupt leaves a progress line", lines)
lines, _ = on_terminal(120, compare + ["--wide", "--top", "1"])
check(sum(" slower " in line for line in lines) >= 1 and len(rows_of(lines)) >= 1, "--wide has other rows", lines)

# rows of sweeps come, below each other, those that a pipe gets; an interrupt leaves those that have come
scratch = tempfile.TemporaryDirectory()
own = os.path.join(scratch.name, "own.csv")
with open(project + "/validation/measurements.csv", encoding="utf-8") as file:
    kept = [line for i, line in enumerate(file) if i == 0 or ",collective-small," in line or ",hbm," in line]
with open(own, "w", encoding="utf-8") as file:
    file.writelines(kept)
sweeps = [
    (["collective", "--slice", "v5e:4x4", "--slice", "v5p:2x2x4", "--op", "all-reduce", "--bytes", "8:64M:64", "--data", "none"],
     r" +v5[ep]:"),
    (["collective", "--slice", "v5e:4x4", "--op", "all-gather", "--bytes", "1MiB", "--algorithm", "all", "--data", "none"], r"  [a-z]"),
    (["traffic", "--slice", "v5e:4x4", "--pattern", "transpose,uniform", "--bytes", "1KiB,1MiB"], r"  [a-z]"),
    (["validate", "--measurements", own], r"[A-Z]"),
    (["step", "--slice", "v5e:2x4", "--model", "llama3.1-8b", "--mesh", "tensor=8", "--dtype", "int8", "--mode", "decode", "--seq",
      "2048", "--batch", "8,16,4096"], r"  tensor"),
]
for arguments, begins in sweeps:
    told = " ".join(arguments)
    whole = subprocess.run([podsim, *arguments], capture_output=True, text=True, check=True).stdout
    expected = [line.split() for line in whole.splitlines() if re.match(begins, line)]
    for columns, ranks in ((200, 1), (200, 2), (100, 1)):
        lines, _ = on_terminal(columns, arguments, ranks=ranks)
        rows = [line.split() for line in lines if re.match(begins, line)]
        check(rows == expected if columns == 200 else len(rows) == len(expected),
              f"rows on {ranks} ranks, {columns} columns: {told}", lines)
        check(not any(len(line) > columns for line in lines), f"wider than {columns}: {told}", lines)
        check(lines.count(lines[0]) == 1, f"headings twice: {told}", lines)
long = ["collective", "--slice", "v5e:8x8", "--op", "all-reduce", "--bytes", ",".join(["64MiB"] * 300), "--data", "none"]
lines, _ = on_terminal(100, long, interrupt=b"67108864")
rows = [line.split() for line in lines if line.startswith("  tree")]
check(1 <= len(rows) < 300 and len({len(row) for row in rows}) == 1, "an interrupt of collective leaves other than whole rows", lines)
with subprocess.Popen([podsim, *long, "--format", "csv", "-q"], stdout=subprocess.PIPE, text=True) as child:
    first = [child.stdout.readline() for _ in range(2)]
    running = child.poll() is None
    child.send_signal(signal.SIGINT)
    rest = child.stdout.read()
check(running and first[0].startswith("slice,op,") and len(rest.splitlines()) < 298 and (rest == "" or rest.endswith("\n")),
      "CSV doesn't come into a pipe", first + [rest])
pages = []
for number in range(2):
    page = os.path.join(scratch.name, "page.html")
    if number == 0:
        on_terminal(200, sweeps[0][0] + ["--html", page])
    else:
        subprocess.run([podsim, *sweeps[0][0], "--html", page], capture_output=True, check=True)
    with open(page, encoding="utf-8") as file:
        pages.append(file.read())
check(pages[0] == pages[1], "the page of rows that came differs")
scratch.cleanup()

print("\n".join(faults))
sys.exit(1 if faults else 0)
