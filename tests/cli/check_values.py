#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_values.py OUTPUT.csv VALUE…: every VALUE, `COLUMN = EXPRESSION [to N digits] [where CONDITION]`, holds.

Both are Python over the columns of the row, mathematics, KiB, MiB and GiB; the condition picks rows, at least one. A plain number
is compared in its own digits. Any other expression must give what is printed: times to the picosecond, the rest to nine digits, or
what `to N digits` says. README.md has examples."""

import csv
import math
import re
import sys
from decimal import Decimal

VALUE = re.compile(r"(\w+) = (.+?)(?: to (\d+) digits)?(?: where (.+))?")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
PICOSECOND = {"_ms": 1e-9, "_us": 1e-6, "_s": 1e-12}
KNOWN = {name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "log", "log2", "inf")}
KNOWN.update(KiB=2**10, MiB=2**20, GiB=2**30, abs=abs, min=min, max=max, sum=sum, range=range, round=round)


def number(text):
    """What a field or a literal says, as a number where it is one."""
    if not NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def room(column, expression, digits, expected):
    """How far the printed figure may be from the expected one."""
    if digits is None and NUMBER.fullmatch(expression):
        return 0.5000001 * 10.0 ** Decimal(expression).as_tuple().exponent
    if digits is not None:
        size = math.floor(math.log10(abs(expected))) if expected else 0
        return 0.5000001 * 10.0 ** (size - int(digits) + 1)
    unit = next((unit for end, unit in PICOSECOND.items() if column.endswith(end)), 0)
    return max(abs(expected) * 1e-9, unit * 1.001)


def faults_of(value, rows):
    parts = VALUE.fullmatch(value)
    if not parts:
        return [f"value: {value}: not COLUMN = EXPRESSION [to N digits] [where CONDITION]"]
    column, expression, digits, condition = parts.groups()
    faults, seen = [], 0
    for row in rows:
        names = {**KNOWN, **{name: number(text) for name, text in row.items() if name is not None}}
        if condition and not eval(condition, {"__builtins__": {}}, names):  # pylint: disable=eval-used
            continue
        seen += 1
        printed, expected = names[column], eval(expression, {"__builtins__": {}}, names)  # pylint: disable=eval-used
        if isinstance(expected, str) or isinstance(printed, str):
            good = printed == expected
        else:
            good = abs(printed - expected) <= room(column, expression, digits, expected)
        if not good:
            faults.append(f"value: {value}: {printed!r} is printed, {expected!r} expected")
    return faults if seen else [f"value: {value}: no row"]


def main(path, values):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    faults = []
    for value in values:
        try:
            faults += faults_of(value, rows)
        except (ArithmeticError, KeyError, NameError, SyntaxError, TypeError, ValueError) as error:
            faults.append(f"value: {value}: {type(error).__name__}: {error}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
