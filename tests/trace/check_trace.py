#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_trace.py FILE.json [--step-s SECONDS] [--rows NAME,…] [--busy ROW=US]

Checks a timeline as viewers read it: JSON, at most 400,000 events, named processes and threads, slices that nest on each
thread, counters and slices that do not run backwards, arrows with two ends that touch slices. With --step-s the
slice on Steps must take that long (to the ns), and the slices of XLA Ops with the gaps between them, too. With
--rows these threads must be there on each process, and with --busy slices of a row must add up to that time
(to 1 ns a slice). Prints one line a fault; exit 1 if there is one."""

import argparse
import json
import sys
from collections import defaultdict

faults = []


def fault(text):
    faults.append(text)


def ns(us):
    return round(us * 1000)


def read(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    if data.get("displayTimeUnit") != "ns":
        fault("displayTimeUnit is not ns")
    events = data["traceEvents"]
    if len(events) > 400000:
        fault(f"{len(events)} events")
    return events


def check_names(events):
    """{(pid, tid): thread name}, and faults for what has no name."""
    threads, processes = {}, {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"]
        if event["ph"] == "M" and event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
    for event in events:
        if event["pid"] not in processes:
            fault(f"process {event['pid']} has no name")
        if event["ph"] == "X" and (event["pid"], event["tid"]) not in threads:
            fault(f"thread {event['tid']} has no name")
    return threads, processes


def check_nesting(slices):
    """Slices of each thread, sorted as viewers do, lie beside or inside each other."""
    for thread, events in slices.items():
        open_ends = []
        for event in sorted(events, key=lambda e: (ns(e["ts"]), -ns(e["dur"]))):
            start, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
            if end < start or start < 0:
                fault(f"{event['name']} runs backwards")
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                fault(f"{event['name']} at {event['ts']} us crosses the slice around it on thread {thread}")
            open_ends.append(end)


def check_arrows(events, slices):
    ends = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]].append(event)
    starts = {thread: sorted(ns(e["ts"]) for e in events) for thread, events in slices.items()}
    for number, pair in ends.items():
        if [e["ph"] for e in pair] != ["s", "f"] or ns(pair[1]["ts"]) < ns(pair[0]["ts"]):
            fault(f"arrow {number} has not one start and one end in order")
        if any((e["pid"], e["tid"]) not in starts for e in pair):
            fault(f"arrow {number} touches an empty thread")


def check_counters(events):
    last = {}
    for event in events:
        if event["ph"] == "C":
            key = event["pid"], event["name"]
            if ns(event["ts"]) < last.get(key, 0):
                fault(f"counter {key[1]} runs backwards")
            last[key] = ns(event["ts"])


def check_step(step_s, slices, threads, pid):
    by_name = defaultdict(list)
    for thread, events in slices.items():
        if thread[0] == pid:
            by_name[threads[thread]] += events
    step = by_name["Steps"][0]
    if abs(ns(step["dur"]) - step_s * 1e9) > 1:
        fault(f"the step takes {step['dur']} us, not {step_s * 1e6}")
    parts, at = 0, ns(step["ts"])
    for event in sorted(by_name["XLA Ops"], key=lambda e: ns(e["ts"])):
        parts += ns(event["ts"]) - at + ns(event["dur"])
        at = ns(event["ts"]) + ns(event["dur"])
    parts += ns(step["ts"]) + ns(step["dur"]) - at
    if parts != ns(step["dur"]) or at > ns(step["ts"]) + ns(step["dur"]):
        fault(f"ops and gaps are {parts} ns, the step {ns(step['dur'])}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--step-s", type=float)
    parser.add_argument("--rows", default="")
    parser.add_argument("--busy", action="append", default=[])
    parser.add_argument("--trace-process", default="", help="only processes whose name holds this")
    asked = parser.parse_args()
    events = read(asked.file)
    threads, processes = check_names(events)
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append(event)
    check_nesting(slices)
    check_arrows(events, slices)
    check_counters(events)
    for pid in (p for p in processes if asked.trace_process in processes[p]):
        rows = {threads[t] for t in slices if t[0] == pid}
        for row in filter(None, asked.rows.split(",")):
            if row not in rows:
                fault(f"{processes[pid]} has no row {row}")
        if asked.step_s is not None:
            check_step(asked.step_s, slices, threads, pid)
        for row, _, wanted in (busy.partition("=") for busy in asked.busy):
            own = [e for t in slices if t[0] == pid and threads[t] == row for e in slices[t]]
            total = sum(ns(e["dur"]) for e in own)
            if abs(total - float(wanted) * 1000) > len(own):
                fault(f"{row} is busy for {total / 1000} us, not {wanted}")
    for text in faults[:20]:
        print(f"{asked.file}: {text}")
    return 1 if faults else 0


sys.exit(main())
