#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_trace.py FILE.json [--step-s SECONDS] [--rows NAME,…] [--busy ROW=US]

Checks a timeline as viewers read it: JSON, at most 400,000 events, named processes and threads, slices that nest on each
thread, counters and slices that do not run backwards, arrows with two ends that touch slices. With --step-s the
slice on Steps must take that long (to the ns), and the slices of XLA Ops, which must not overlap, with the gaps between
them, too; with --compute-s these slices must add up to that time (to 1 ns a slice) on each chip. With --rows these
threads must be there on each process, with --busy slices of a row must add up to that time (to 1 ns a slice), and with
--parts slices of these names must be on Framework Ops. With --bounds each collective must say its group, mesh axis,
bytes, algorithm and bound, and take no less than that. With
--links-us ALL,BUSIEST all links together and the busiest one must be busy for these times. Prints one line a fault; exit 1
if there is one."""

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


def check_step(asked, rows):
    """Steps takes the step; the core's slices lie in it one after another, and with the gaps they are the step."""
    step = rows["Steps"][0]
    if abs(ns(step["dur"]) - asked.step_s * 1e9) > 1:
        fault(f"the step takes {step['dur']} us, not {asked.step_s * 1e6}")
    gaps, at = 0, ns(step["ts"])
    ops = sorted(rows["XLA Ops"], key=lambda e: ns(e["ts"]))
    for event in ops:
        if ns(event["ts"]) < at:
            fault(f"{event['name']} at {event['ts']} us begins before the op before it ends")
        gaps += max(0, ns(event["ts"]) - at)
        at = max(at, ns(event["ts"]) + ns(event["dur"]))
    work = sum(ns(event["dur"]) for event in ops)
    gaps += ns(step["ts"]) + ns(step["dur"]) - at
    if work + gaps != ns(step["dur"]) or at > ns(step["ts"]) + ns(step["dur"]):
        fault(f"ops of {work} ns and gaps of {gaps} ns are not the step of {ns(step['dur'])} ns")
    if asked.compute_s is not None and abs(work - asked.compute_s * 1e9) > len(ops):
        fault(f"ops take {work / 1e9} s, not {asked.compute_s}")


def check_links(all_us, busiest_us, slices, threads):
    """Busy times of all links together (to 0.1 %), and of the one that is busy the longest (to 10 ns)."""
    busy = []
    for thread, events in slices.items():
        if threads[thread].startswith("ICI "):
            spans = sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in events)
            total, at = 0, 0
            for start, end in spans:
                total += max(0, end - max(start, at))
                at = max(at, end)
            busy.append(total / 1000)
    if abs(sum(busy) - all_us) > 0.001 * all_us:
        fault(f"all links are busy for {sum(busy)} us, not {all_us}")
    if abs(max(busy) - busiest_us) > 0.01:
        fault(f"the busiest link is busy for {max(busy)} us, not {busiest_us}")


def check_bounds(rows):
    # A chip may be done with its part of an all-to-all before the last one is.
    wanted = ("group", "mesh_axis", "bytes", "algorithm", "bound_us")
    collectives = [e for e in rows["Async XLA Ops"] + rows["DCN"] if "group" in e.get("args", {})]
    if not collectives:
        fault("there is no collective")
    for event in collectives:
        args = event["args"]
        missing = [key for key in wanted if key not in args]
        slow_enough = args["hlo_category"] == "all-to-all" or args.get("bound_us", 0) <= event["dur"] + 0.001
        if missing or not slow_enough:
            fault(f"{event['name']} at {event['ts']} us lacks {missing} or is faster than its bound: {args}")
    if not any("layer" in e["args"] and "phase" in e["args"] for e in collectives):
        fault("no collective has a layer and a phase")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--step-s", type=float)
    parser.add_argument("--compute-s", type=float)
    parser.add_argument("--parts", default="")
    parser.add_argument("--links-us", default="")
    parser.add_argument("--bounds", action="store_true")
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
    if asked.links_us:
        check_links(*map(float, asked.links_us.split(",")), slices, threads)
    for pid in (p for p in processes if asked.trace_process in processes[p]):
        rows = defaultdict(list)
        for thread in (t for t in slices if t[0] == pid):
            rows[threads[thread]] += slices[thread]
        for row in filter(None, asked.rows.split(",")):
            if row not in rows:
                fault(f"{processes[pid]} has no row {row}")
        for part in filter(None, asked.parts.split(",")):
            if part not in {e["name"] for e in rows["Framework Ops"]}:
                fault(f"{processes[pid]} has no {part} on Framework Ops")
        if asked.step_s is not None:
            check_step(asked, rows)
        if asked.bounds:
            check_bounds(rows)
        for row, _, wanted in (busy.partition("=") for busy in asked.busy):
            total = sum(ns(e["dur"]) for e in rows[row])
            if abs(total - float(wanted) * 1000) > len(rows[row]):
                fault(f"{row} is busy for {total / 1000} us, not {wanted}")
    for text in faults[:20]:
        print(f"{asked.file}: {text}")
    return 1 if faults else 0


sys.exit(main())
