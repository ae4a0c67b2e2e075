#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_page.py PODSIM [SCREENSHOTS]

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
SHOTS = sys.argv[2] if len(sys.argv) > 2 else None
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


def check_sizes(page, path, what):
    """No message, no part wider than the page, at three widths."""
    for width in (360, 1280, 3840):
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
    "traffic": ["traffic", "--slice", "v5e:4x4", "--pattern", "transpose", "--bytes", "1MiB"],
}


def check_commands(folder, page):
    for name, arguments in PAGES.items():
        path = page_of(folder, name, arguments)
        check(os.path.getsize(path) < 3_000_000, f"{name}: {os.path.getsize(path)} bytes are more than 3 MB")
        check_sizes(page, path, name)
        page.size(1280, 900)
        page.open(path)
        check_cells(page, "rows", podsim(*arguments, "--format", "csv"), name)
        check_table_works(page, "rows", name)
        if SHOTS:
            page.open(path)
            page.screenshot(os.path.join(SHOTS, name + ".png"))


def main():
    with tempfile.TemporaryDirectory() as folder, webdriver.browser() as page:
        check_commands(folder, page)
    return 1 if failures else 0


sys.exit(main())
