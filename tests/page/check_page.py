#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_page.py PODSIM MPIRUN [SCREENSHOTS]

Pages of --html in a headless Chromium without network: no console message at 360, 1280 and 3840 px, light and dark; what a
page shows equals the CSV, cell by cell; tables sort and filter, a part of the time filters ops; hostile names stay text;
100,000 ops open. With a folder, a screenshot of each page goes there."""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time

import webdriver

PODSIM = sys.argv[1]
MPIRUN = sys.argv[2]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHOTS = sys.argv[3] if len(sys.argv) > 3 else None
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("failed:", what)


def podsim(*arguments, code=0):
    run = subprocess.run([PODSIM, *arguments], capture_output=True, text=True)
    check(run.returncode == code, f"podsim {' '.join(arguments)}: exit {run.returncode}, not {code}: {run.stderr}")
    return run.stdout


def cells(page, table):
    """The exact values of a table of the page, by row."""
    return page.run("""
        const table = [...document.querySelectorAll('[data-table]')].find((t) => t.dataset.table === arguments[0]);
        return table ? [...table.querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.dataset.v)) : null""", table)


def same(shown, text):
    """A value of the page and one of a CSV: the same number, or the same text."""
    try:
        return float(shown) == float(text)
    except ValueError:
        return shown == text


def check_cells(page, table, text, what):
    rows = list(csv.reader(io.StringIO(text)))[1:]
    found = cells(page, table)
    check(found is not None and len(found) == len(rows), f"{what}: {table} has {len(found or [])} rows, the CSV {len(rows)}")
    for row, want in zip(found or [], rows):
        check(len(row) == len(want) and all(same(a, b) for a, b in zip(row, want)), f"{what}: {table}: {row} is not {want}")


WIDTHS = (360, 1280, 3840)


def check_sizes(page, path, what, widths=WIDTHS):
    """No message, no part wider than the page, at some widths."""
    for width in widths:
        page.size(width, 900)
        check(page.open(path) == "yes", f"{what} does not become ready at {width} px")
        check(page.console() == [], f"{what} at {width} px has messages")
        wide = page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 0, f"{what} at {width} px is {wide} px too wide")
        requests = page.run("return performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith('data:'))")
        check(requests == [], f"{what} asks for {requests}")
        unnamed = page.run("return [...document.querySelectorAll('input, select, button, canvas')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label'))).length")
        check(unnamed == 0, f"{what} has {unnamed} controls without a name")


def check_table_works(page, table, what):
    """Sorting by a column and filtering by a text do what they say."""
    before = cells(page, table)
    page.run("[...document.querySelectorAll('[data-table]')].find((t) => t.dataset.table === arguments[0]).querySelectorAll('thead button')[0].click()", table)
    after = [row[0] for row in cells(page, table)]
    numbers = all(v == "-" or v.replace(".", "").isdigit() for v in after)
    kept = [v for v in after if v != "-"]
    order = [float(v) for v in kept] if numbers else [v.lower() for v in kept]
    check(order == sorted(order, reverse=numbers), f"{what}: {table} is not sorted: {after[:8]}")
    word = before[0][0]
    page.run("""const t = [...document.querySelectorAll('[data-table]')].find((t) => t.dataset.table === arguments[0]);
        const i = t.querySelector('input[type=search]'); i.value = arguments[1]; i.dispatchEvent(new Event('input'))""", table, word)
    left = cells(page, table)
    check(0 < len(left) <= len(before) and all(any(word.lower() in v.lower() for v in row) for row in left), f"{what}: {table} filtered by {word}: {left[:3]}")


def page_of(folder, name, arguments):
    path = os.path.join(folder, name + ".html")
    podsim(*arguments, "--html", path, "--output", os.path.join(folder, "x"))
    return path


LLAMA = ["--model", "llama3.1-8b", "--seq", "8192", "--data", "none"]
PAGES = {
    "step": ["step", "--slice", "v5p:4x4x4", "--mesh", "fsdp=16,tensor=4", "--batch", "64", *LLAMA],
    "compare": ["compare", "--slice", "v5p:4x4x4", "--batch", "64", *LLAMA],
    "plan": ["plan", "--slices", "v5p:4x4x4,v6e:8x8,v5e:8x8", "--batch", "64", "--model", "llama2-7b", "--seq", "2048"],
    "collective": ["collective", "--slice", "v5e:4x4", "--op", "all-reduce", "--bytes", "1KiB:16MiB:4", "--data", "none"],
    "hlo": ["hlo", os.path.join(SOURCE, "topologies/examples/hlo/mlp_v5p_64.hlo.txt")],
    "traffic": ["traffic", "--slice", "v5e:4x4", "--pattern", "transpose", "--bytes", "1MiB"],
}


def check_commands(folder, page):
    for number, (name, arguments) in enumerate(PAGES.items()):
        path = page_of(folder, name, arguments)
        check(os.path.getsize(path) < 3_000_000, f"{name}: {os.path.getsize(path)} bytes are more than 3 MB")
        check_sizes(page, path, name, WIDTHS if name == "step" else [WIDTHS[number % 3]])
        page.size(1280, 900)
        page.open(path)
        check_cells(page, "rows", podsim(*arguments, "--format", "csv"), name)
        check_table_works(page, "rows", name)
        if SHOTS:
            page.open(path)
            page.screenshot(os.path.join(SHOTS, name + ".png"))


HOSTILE = ["</script><script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "<!--", "]]>", "\u202egnp.exe", "&lt;b&gt;",
           "'\"><svg onload=window.pwned=1>", "javascript:window.pwned=1", "@@SCRIPT@@", "${window.pwned=1}"]


def check_hostile(folder, page):
    """Names with markup in every place that has names: they stay text."""
    rows = [{"slice": name, "model": name, "mesh": name, "step_time_s": 1.0, "limit": name} for name in HOSTILE]
    ops = [{"name": name, "kind": name, "phase": name, "time_us": 1.0, "scope": f"{name}/{name}"} for name in HOSTILE]
    columns = [{"name": name, "title": HOSTILE[0], "unit": HOSTILE[1]} for name in ops[0]]
    run = {"schema": 1, "command": "compare", "rows": rows, "findings": [
        *({"id": i, "text": name} for i, name in enumerate(["headline", *HOSTILE])), {"id": "settings", "text": HOSTILE[0]},
        {"id": "headline", "text": HOSTILE[1]}, {"id": "line", "text": HOSTILE[6]},
        {"id": "ops", "text": HOSTILE[2], "columns": columns, "rows": ops}, {"id": HOSTILE[3], "text": HOSTILE[4], "columns": columns, "rows": ops}]}
    path, out = os.path.join(folder, "hostile.json"), os.path.join(folder, "hostile.html")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(run, file)
    podsim("report", path, "--html", out)
    check_sizes(page, out, "hostile names")
    check(page.run("return window.pwned") is None, "a name ran")
    check(page.run("return document.querySelectorAll('main img, main svg, main iframe').length") == 0, "a name became markup")
    shown = [row[0].replace("\\u202e", "\u202e") for row in cells(page, "rows")]
    check(shown == HOSTILE, f"names are shown as {shown}")


def check_many(folder, page):
    """100,000 ops open; the page is below 10 MB."""
    ops = [{"name": f"fusion.{i}", "kind": "fusion", "phase": "forward", "runs": 1, "time_us": i % 977 + 0.5} for i in range(100000)]
    run = {"schema": 1, "command": "hlo", "rows": [{"step_time_s": 1.0}], "findings": [
        {"id": "ops", "text": "Ops", "columns": [{"name": name} for name in ops[0]], "rows": ops}]}
    path, out = os.path.join(folder, "many.json"), os.path.join(folder, "many.html")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(run, file)
    podsim("report", path, "--html", out)
    check(os.path.getsize(out) < 10_000_000, f"100,000 ops take {os.path.getsize(out)} bytes")
    check(page.open(out) == "yes" and page.console() == [], "100,000 ops do not open")
    check_table_works(page, "ops", "100,000 ops")


def check_program(folder, page):
    """The tables of a compiled program are those that its options write."""
    files = {table: os.path.join(folder, option + ".csv") for table, option in
             (("ops", "ops"), ("collectives", "collectives"), ("peak", "memory"), ("link_loads", "links"))}
    podsim(*PAGES["hlo"], "--html", os.path.join(folder, "hlo.html"), "--output", os.path.join(folder, "x"),
           *(text for table, option in (("ops", "--ops"), ("collectives", "--collectives"), ("peak", "--memory"), ("link_loads", "--links"))
             for text in (option, files[table])))
    page.open(os.path.join(folder, "hlo.html"))
    page.run("for (let more; (more = [...document.querySelectorAll('.more')].find((b) => !b.hidden));) more.click()")
    for table, path in files.items():
        with open(path, encoding="utf-8") as file:
            check_cells(page, table, file.read(), "hlo")


def check_report(folder, page):
    """Several runs beside one another, and what is no run."""
    paths = []
    for mesh in ("fsdp=64", "fsdp=16,tensor=4"):
        paths.append(os.path.join(folder, mesh + ".json"))
        podsim("step", "--slice", "v5p:4x4x4", "--mesh", mesh, "--batch", "64", *LLAMA, "--format", "json", "--output", paths[-1])
    out = os.path.join(folder, "two.html")
    podsim("report", *paths, "--html", out)
    check_sizes(page, out, "two runs")
    figures = [row[0] for row in cells(page, "beside")]
    check("step_time_s" in figures and "mesh" in figures and "slice" not in figures, f"two runs differ in {figures}")
    podsim("report", out, "--html", os.path.join(folder, "none.html"), code=3)
    check(not os.path.exists(os.path.join(folder, "none.html")), "a page of nothing")


def check_ranks(folder):
    """The same bytes on any number of ranks."""
    pages = []
    for ranks in (1, 2, 5):
        path = os.path.join(folder, "ranks.html")
        subprocess.run([MPIRUN, "-n", str(ranks), PODSIM, "step", "--slice", "v5p:4x4x4", "--model", "mlp:layers=2,d_model=256,d_ff=512", "--mesh",
                        "fsdp=16,tensor=4", "--batch", "64", "--data", "none", "--html", path], check=True, capture_output=True)
        with open(path, "rb") as file:
            pages.append(file.read())
    check(pages[0] == pages[1] == pages[2], "other ranks write another page")


def check_parts(folder, page):
    """A part of the time that is chosen filters the ops, and adds up to the step."""
    page.size(1280, 900)
    page.open(os.path.join(folder, "step.html"))
    step = float(cells(page, "rows")[0][10])
    parts = cells(page, "parts")
    check(abs(sum(float(row[2]) for row in parts) - step) < 1e-9, "parts do not add up to the step")
    before = len(cells(page, "ops"))
    page.run("document.querySelector('.bar button').click()")
    after = cells(page, "ops")
    check(0 < len(after) < before and all(row[1:3] == [after[0][1], after[0][2]] for row in after), f"a part leaves {after[:3]} of {before} ops")


def main():
    with tempfile.TemporaryDirectory() as folder, webdriver.browser() as page:
        check_commands(folder, page)
        check_parts(folder, page)
        check_program(folder, page)
        check_report(folder, page)
        check_hostile(folder, page)
        check_many(folder, page)
        check_ranks(folder)
    return 1 if failures else 0


sys.exit(main())
