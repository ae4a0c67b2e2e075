/* SPDX-License-Identifier: Apache-2.0 */
/* The page: one part a run, and in it the views that its command has figures for. A run is what --format json prints
   ({command, rows, findings}), and a trace where there is one. */
"use strict";

async function block(id) {
  const node = document.getElementById(id);
  if (!node) return null;
  if (node.type === "application/json") return JSON.parse(node.textContent);
  const bytes = Uint8Array.from(atob(node.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const first = (run) => run.rows[0] || {};
/* Findings are sentences, and headings with a table below them. */
const sentences = (run, id) => run.findings.filter((f) => !f.columns && (!id || f.id === id)).map((f) => f.text);
const tables = (run) => run.tables || (run.tables = run.findings.filter((f) => f.columns && f.rows.length > 0)
  .map((f) => ({...tableOf(f.rows, f.columns), id: f.id, title: f.text.replace(/:$/, "") || f.id})));
const found = (run, id) => tables(run).find((t) => t.id === id);

function section(run, id, name, ...children) {
  run.sections.push({id: run.prefix + id, name});
  return el("section", {class: "view", id: run.prefix + id, "aria-labelledby": run.prefix + id + "-h"},
    el("h2", {id: run.prefix + id + "-h"}, name), ...children);
}
const sourced = (text) => el("p", {class: "soft small"}, text || "Source: simulated by podsim.");

/* The figures that a reader asks for first. */
const TILES = [["step_time_s", "step"], ["ms_per_token", "ms a token"], ["tokens_per_s", "tokens/s"], ["tokens_per_s_per_chip", "tokens/s a chip"],
  ["mfu_frac", "MFU"], ["limit", "limit"], ["hbm_frac", "HBM used"], ["time_us", "time"], ["busbw_GBps", "bus bandwidth (GB/s)"], ["bound_frac", "bound / time"]];

function head(run) {
  const row = first(run);
  const lead = sentences(run, "headline")[0];
  const tiles = run.rows.length === 1 ? TILES.filter(([name]) => row[name] !== undefined && row[name] !== null)
    .map(([name, text]) => el("div", {class: "tile"}, el("b", {}, shown({name}, row[name])), el("span", {}, text))) : [];
  return section(run, "overview", "Overview", lead ? el("p", {class: "lead"}, lead) : null,
    run.line ? el("code", {class: "cmd"}, run.line) : null, tiles.length ? el("div", {class: "tiles"}, tiles) : null,
    run.findings.filter((f) => !f.columns && !["headline", "settings", "line"].includes(f.id)).map((f) => el("p", {class: "note"}, f.text)));
}

/* Where the time goes: a bar a phase, parts by kind; a part chosen filters timeline and ops. */
function partsView(run, table, linked) {
  const phase = getter(table, "phase"), kind = getter(table, "kind"), time = getter(table, "time_s");
  if (!kind || !time) return null;
  const bars = new Map();
  for (const r of table.rows) {
    const label = phase ? phase(r) || "step" : "step";
    if (!bars.has(label)) bars.set(label, {label, parts: []});
    bars.get(label).parts.push({name: kind(r), value: time(r)});
  }
  const total = table.rows.reduce((a, r) => a + time(r), 0);
  return section(run, "time", "Where the time goes", el("div", {class: "panel"}, stackedBars([...bars.values()], {total,
    choose: (c) => linked.forEach((f) => f(c))})), tableView(table).node, sourced("Source: simulated; mean over chips. Choose a part to filter the timeline and the ops."));
}

/* The same of a compiled program: a row a kind, a column a phase. What no phase has is the step's. */
function phasesView(run, table, linked) {
  const what = getter(table, "what"), total = getter(table, "total_s");
  const names = ["forward", "recompute", "backward", "update"];
  const of = names.map((n) => getter(table, n + "_s"));
  if (!what || !total || of.includes(null)) return section(run, "time", "Where the time goes", tableView(table).node, sourced());
  const exposed = found(run, "exposed");
  const bars = names.map((label, i) => ({label, parts: table.rows.map((r) => ({name: what(r), value: of[i](r)}))}));
  const rest = table.rows.map((r) => ({name: what(r), value: total(r) - of.reduce((a, f) => a + f(r), 0)})).filter((p) => p.value > 1e-9);
  const waits = exposed ? exposed.rows.map((r) => ({name: getter(exposed, "what")(r), value: getter(exposed, "exposed_s")(r)})) : [];
  if (rest.length || waits.length) bars.push({label: "step", parts: [...rest, ...waits]});
  const filled = bars.filter((b) => b.parts.some((p) => p.value > 0));
  return section(run, "time", "Where the time goes", el("div", {class: "panel"}, stackedBars(filled, {total: first(run).step_time_s || first(run).step_s,
    choose: (c) => linked.forEach((f) => f(c))})), tableView(table).node, sourced("Source: simulated; mean over chips."));
}

function opsView(run, table, linked) {
  let chosen = null;
  const phase = getter(table, "phase"), kind = getter(table, "kind");
  const view = tableView(table, {tools: true, keep: (r) => !chosen || ((!kind || kind(r) === chosen.part) && (!phase || chosen.row === "step" || phase(r) === chosen.row))});
  linked.push((c) => { chosen = c; view.redraw(); });
  const scope = getter(table, "op_name"), time = getter(table, "total_us");
  return section(run, "ops", "Ops", view.node, scope && time && table.rows.some(scope) ? scopeTree(table, scope, time) : null,
    sourced("Source: simulated; times of one step on one chip."));
}

/* A tree by name scope, each branch with its share. */
function scopeTree(table, scope, time) {
  const root = {name: "all", time: 0, below: new Map()};
  for (const r of table.rows) {
    const t = time(r) || 0;
    root.time += t;
    let at = root;
    for (const name of String(scope(r) || "without a scope").split("/").filter(Boolean)) {
      if (!at.below.has(name)) at.below.set(name, {name, time: 0, below: new Map()});
      at = at.below.get(name);
      at.time += t;
    }
  }
  const branch = (n, depth) => {
    const text = [el("span", {class: "soft"}, percent(n.time / (root.time || 1)) + " "), el("bdi", {}, n.name)];
    if (!n.below.size) return el("div", {style: "padding-left:18px"}, ...text);
    return el("details", {open: depth < 1, style: "padding-left:12px"}, el("summary", {}, ...text),
      [...n.below.values()].sort((a, b) => b.time - a.time).map((b) => branch(b, depth + 1)));
  };
  return el("div", {class: "panel", style: "margin-top:10px"}, el("h3", {}, "By name scope"), branch(root, 0));
}

function rooflineView(run, ops, roofs) {
  const flops = getter(ops, "flops"), us = getter(ops, "time_us"), name = getter(ops, "name");
  const read = getter(ops, "hbm_read_bytes"), written = getter(ops, "hbm_write_bytes"), total = getter(ops, "total_us") || us;
  const moved = getter(ops, "hbm_bytes") || (read && ((r) => read(r) + written(r)));
  const roof = getter(roofs, "name"), limit = getter(roofs, "rate"), per = getter(roofs, "unit");
  if (!flops || !moved || !us || !limit) return null;
  const points = ops.rows.filter((r) => flops(r) > 0 && moved(r) > 0 && us(r) > 0);
  if (!points.length) return null;
  const longest = points.reduce((most, r) => Math.max(most, total(r)), 0);
  const xs = points.map((r) => flops(r) / moved(r));
  const x0 = Math.min(...xs, 1) / 2, x1 = Math.max(...xs, 1000) * 2;
  const peaks = roofs.rows.filter((r) => per(r) === "FLOP/s"), feeds = roofs.rows.filter((r) => per(r) === "B/s");
  const best = Math.max(...peaks.map(limit));
  const series = [{name: "ops (size: time)", colour: 0, points: points.map((r, i) => [xs[i], flops(r) / us(r) * 1e6, name(r), 3 + 9 * Math.sqrt(total(r) / longest)])}];
  peaks.forEach((r, i) => series.push({name: roof(r), bound: true, line: true, colour: 1 + i, points: [[x0, limit(r)], [x1, limit(r)]]}));
  feeds.forEach((r, i) => series.push({name: roof(r), bound: true, line: true, dashed: true, colour: 1 + peaks.length + i,
    points: [[x0, x0 * limit(r)], [best / limit(r), best]]}));
  return section(run, "roofline", "Roofline", xyChart({title: "FLOP rate of each op against its intensity", height: 380,
    x: {label: "intensity (FLOP/B)", log: true, text: (v) => String(Number(v.toPrecision(3)))},
    y: {label: "rate", log: true, text: (v) => rate(v, "FLOP/s")}, series}), tableView(roofs).node,
  sourced("Source: rates in force (topologies/chips.csv); ops simulated."));
}

function memoryView(run, table, peak, trace) {
  const kind = table && getter(table, "kind"), size = table && getter(table, "bytes");
  const rows = table ? table.rows.filter((r) => size(r) > 0) : [];
  const all = rows.reduce((a, r) => a + size(r), 0);
  const limit = first(run).hbm_frac > 0 ? first(run).hbm_bytes_per_chip / first(run).hbm_frac : 0;
  const bars = !table ? null : el("div", {class: "panel"}, rows.map((r, i) => el("div", {class: "barrow"}, el("span", {}, kind(r)),
    el("div", {class: "bar", style: "width:" + 100 * size(r) / Math.max(...rows.map(size)) + "%"},
      el("span", {class: "p" + i % COLOURS, style: "flex:1;background-color:var(--c" + i % COLOURS + ")"})), el("span", {}, bytes(size(r))))),
  el("p", {}, bytes(all) + " a chip" + (limit ? " of " + bytes(limit) + " that a program may use" : "")));
  const live = trace && [...trace.counters].filter(([n]) => /HBM bytes/.test(n));
  const chart = live && live.length && live[0][1].length > 1 ? xyChart({title: "HBM bytes that live over the step", x: {label: "time", text: (v) => seconds(v / 1e6)},
    y: {label: "HBM", text: bytes}, series: [...live.map(([n, points]) => ({name: n, line: true, stepped: true, bound: points.length > 4000, points})),
      ...(limit ? [{name: "limit of the chip", line: true, dashed: true, bound: true, points: [[0, limit], [trace.end, limit]]}] : [])]}) : null;
  return section(run, "memory", "Memory", el("div", {class: "two"}, bars, chart), table ? tableView(table).node : null,
    peak ? [el("h3", {}, "What lives at the peak"), tableView(peak, {tools: true}).node] : null, sourced());
}

/* "1,2,3", or in a compiled program the chip's number. */
const point = (text) => String(text).split(",").map(Number).concat(0, 0).slice(0, 3);

function sliceView(run, table, links, rings, trace) {
  const key = getter(table, "key"), value = getter(table, "value");
  const facts = new Map(table.rows.map((r) => [key(r), value(r)]));
  const dims = String(facts.get("dims")).split("x").map(Number).concat(1, 1).slice(0, 3);
  if (dims.some((d) => !(d >= 1)) || dims[0] * dims[1] * dims[2] > 20000) return null;
  const slow = new Map(String(facts.get("slow chips") || "").split(" ").filter(Boolean).map((t) => [t.split(":")[0], Number(t.split(":")[1])]));
  const chips = [];
  for (let z = 0; z < dims[2]; z++) for (let y = 0; y < dims[1]; y++) for (let x = 0; x < dims[0]; x++) {
    chips.push({id: chips.length, at: [x, y, z], slow: slow.get([x, y, z].slice(0, dims[2] > 1 ? 3 : 2).join(",")) || slow.get([x, y, z].join(","))});
  }
  const number = (at) => at[0] + dims[0] * (at[1] + dims[1] * at[2]);
  const l = links && {chip: getter(links, "chip"), direction: getter(links, "direction"), busy: getter(links, "busy_frac"), state: getter(links, "state")};
  const r = rings && {axis: getter(rings, "axis"), chips: getter(rings, "chips")};
  const groups = new Map();
  for (const row of rings ? rings.rows : []) {
    if (!groups.has(r.axis(row))) groups.set(r.axis(row), []);
    groups.get(r.axis(row)).push(String(r.chips(row)).split(" ").map((t) => number(point(t))).filter((id) => id >= 0 && id < chips.length));
  }
  const view = torusView({dims, wrap: facts.get("wrap"), chips,
    links: links && links.rows.map((row) => ({chip: Number.isInteger(l.chip(row)) ? l.chip(row) : /^\d+$/.test(l.chip(row)) ? Number(l.chip(row)) : number(point(l.chip(row))), direction: l.direction(row), busy: l.busy ? l.busy(row) : null, state: l.state ? l.state(row) : ""})),
    rings: [...groups].map(([axis, list]) => ({axis, rings: list}))});
  const collectives = trace ? trace.lanes.flatMap((lane) => lane.slices).filter((s) => s.args.mesh_axis || s.args.physical_axes) : [];
  const now = el("span", {class: "soft small", role: "status"});
  const step = collectives.length ? el("div", {class: "tools"}, el("label", {}, "time ", el("input", {type: "range", min: 0, max: 1000, value: 0,
    "aria-label": "step through the time of the run", oninput: (e) => {
      const t = trace.end * Number(e.target.value) / 1000;
      const on = collectives.filter((s) => s.start <= t && t < s.start + s.dur);
      now.textContent = seconds(t / 1e6) + ": " + (on.length ? on.map((s) => s.name).join(", ") : "no collective under way");
      if (on.length) view.show(on[0].args.mesh_axis);
    }})), now) : null;
  return section(run, "slice", "Slice", view.node, step, el("div", {class: "two"}, tableView(table).node,
    links ? tableView({...links, title: "links"}, {tools: true}).node : null), sourced());
}

/* Time and bandwidth against size. Where each size ran by one algorithm (that auto chose), a curve is a slice and
   operation, and its points name the algorithm; else each algorithm has its curve. */
function sizesView(run) {
  const rows = run.rows.filter((r) => r.bytes > 0 && r.time_us > 0);
  const many = (name) => new Set(rows.map((r) => r[name])).size > 1;
  const own = ["slice", "op", "axes", "group", "pattern", "dtype", "load"].filter(many);
  const question = (r) => own.map((n) => r[n]).join(", ");
  const single = new Set(rows.map((r) => question(r) + " " + r.bytes)).size === rows.length;
  const groups = new Map();
  for (const r of rows) {
    const name = single ? question(r) : [question(r), r.algorithm].filter(Boolean).join(", ");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(r);
  }
  if (!groups.size) return null;
  const list = [...groups].map(([name, of]) => ({name, rows: of.sort((a, b) => a.bytes - b.bytes)}));
  const curve = (value) => list.map((g, k) => ({name: g.name, line: true, colour: k, points: g.rows.filter((r) => value(r) > 0)
    .map((r) => [r.bytes, value(r), r.algorithm || ""])}));
  const bound = list.slice(0, single ? 4 : 1).map((g, k) => ({name: [single ? g.name : "", "bound"].filter(Boolean).join(", "), line: true, dashed: true, bound: true, colour: k,
    points: g.rows.filter((r) => r.bound_us > 0).map((r) => [r.bytes, r.bound_us])}));
  const x = {label: "bytes", log: true, base: 2, text: bytes};
  return section(run, "sizes", "Against size", el("div", {class: "two"},
    xyChart({title: "Time, and what no algorithm can beat (dashed)", x, y: {label: "time", log: true, text: (v) => seconds(v / 1e6)},
      series: [...curve((r) => r.time_us), ...bound]}),
    rows[0].busbw_GBps !== undefined ? xyChart({title: "Bus bandwidth", x, y: {label: "GB/s", text: (v) => String(Number(v.toPrecision(4)))}, series: curve((r) => r.busbw_GBps)}) : null), sourced());
}

function layoutsView(run) {
  const rows = run.rows.filter((r) => r.step_time_s > 0);
  if (rows.length < 2) return null;
  const limits = [...new Set(rows.map((r) => r.limit || "layouts"))];
  const best = rows[0];
  const parts = (r) => [["compute", r.compute_s], ["exposed ICI", r.exposed_ici_s], ["exposed DCN", r.exposed_dcn_s], ["exposed host", r.exposed_host_s], ["idle", r.idle_s]]
    .map(([name, value]) => ({name, value: value || 0}));
  const name = (r) => r.mesh + (r.dcn_mesh ? " over " + r.dcn_mesh : "");
  return section(run, "layouts", "Layouts", el("div", {class: "two"},
    xyChart({title: "Step time against memory, by what limits", x: {label: "HBM used", text: percent, zero: true}, y: {label: "step", text: seconds, zero: false},
      series: limits.map((l) => ({name: "limit " + l, points: rows.filter((r) => (r.limit || "layouts") === l).map((r) => [r.hbm_frac || 0, r.step_time_s, name(r), r === best ? 8 : undefined]),
        labels: rows.length <= 12}))}),
    el("div", {class: "panel"}, stackedBars(rows.slice(0, 24).map((r) => ({label: name(r), parts: parts(r)}))))), sourced());
}

/* Time against cost; prices may be typed in, and costs and order follow. */
function planView(run) {
  const rows = run.rows.filter((r) => r.step_time_s > 0);
  if (!rows.length) return null;
  const host = el("div");
  const prices = new Map();
  const chip = (r) => String(r.slice).replace(/^\d+\*/, "").split(":")[0];
  const chips = [...new Set(rows.map(chip))];
  const cost = (r) => (prices.get(chip(r)) ?? 1) * r.chips * r.step_time_s / 3600;
  const unitOf = () => prices.size ? "of your prices" : "chip-hours";
  function draw() {
    const sorted = [...rows].sort((a, b) => cost(a) - cost(b) || a.step_time_s - b.step_time_s);
    let fastest = Infinity;
    const front = new Set(sorted.filter((r) => r.step_time_s < fastest && ((fastest = r.step_time_s), true)));
    const table = {id: "priced", title: "cost of a step", columns: [{name: "slice"}, {name: "chips"}, {name: "mesh"}, {name: "step_time_s", title: "step"},
      {name: "cost", title: "cost of 1000 steps", unit: unitOf()}, {name: "front", title: "on the front"}],
    rows: sorted.map((r) => [r.slice, r.chips, r.mesh, r.step_time_s, 1000 * cost(r), front.has(r) ? "yes" : "no"])};
    host.replaceChildren(xyChart({title: "Step time against the cost of 1000 steps", x: {label: "cost (" + unitOf() + ")", text: (v) => String(Number(v.toPrecision(4))), zero: true},
      y: {label: "step", text: seconds}, series: [
        ...chips.map((c) => ({name: c, labels: rows.length <= 12, points: rows.filter((r) => chip(r) === c).map((r) => [1000 * cost(r), r.step_time_s, r.slice + " " + r.mesh])})),
        {name: "front: nothing is both cheaper and faster", line: true, dashed: true, bound: true, points: [...front].map((r) => [1000 * cost(r), r.step_time_s])}]}),
    tableView(table).node);
    drawn[drawn.length - 1].draw();
  }
  const inputs = chips.map((c) => el("label", {}, c + " ", el("input", {type: "number", min: 0, step: "any", size: 6, style: "width:6em", placeholder: "price", "aria-label": "price of a chip-hour of " + c,
    oninput: (e) => { const v = Number(e.target.value); if (e.target.value !== "" && v >= 0) prices.set(c, v); else prices.delete(c); draw(); }})));
  const node = section(run, "plan", "Time against cost", el("div", {class: "tools"}, "Price of a chip-hour: ", inputs), host, sourced());
  drawn.push({host, draw: () => {}});
  queueMicrotask(draw);
  return node;
}

function validationView(run) {
  const rows = run.rows.filter((r) => r.published > 0 && r.predicted > 0);
  if (rows.length < 2) return null;
  const classes = [...new Set(rows.map((r) => r.class))];
  return section(run, "validation", "Predicted against published", xyChart({title: "Predicted over published (1 is exact)",
    x: {label: "published", log: true, text: (v) => String(Number(v.toPrecision(3)))}, y: {label: "predicted / published", zero: false, text: (v) => v.toFixed(2)},
    series: [...classes.map((c) => ({name: c, points: rows.filter((r) => r.class === c).map((r) => [r.published, r.predicted / r.published, r.id])})),
      {name: "exact", bound: true, line: true, dashed: true, colour: 7, points: [[Math.min(...rows.map((r) => r.published)), 1], [Math.max(...rows.map((r) => r.published)), 1]]}]}),
  sourced("Source: published measurements (validation/measurements.csv) and the same command lines simulated."));
}

/* Several runs beside one another: where the time goes, and the figures that differ. */
function besideView(runs) {
  const names = [...new Set(runs.flatMap((r) => Object.keys(first(r))))].filter((n) => new Set(runs.map((r) => JSON.stringify(first(r)[n]))).size > 1);
  if (!names.length) return null;
  const table = {id: "beside", title: "what differs", columns: [{name: "figure"}, ...runs.map((r, i) => ({name: "run " + (i + 1)}))],
    rows: names.map((n) => [n, ...runs.map((r) => first(r)[n] === undefined || first(r)[n] === null ? "-" : shown({name: n}, first(r)[n]))])};
  const bars = runs.map((r, i) => ({label: "run " + (i + 1), parts: ["compute_s", "exposed_ici_s", "exposed_dcn_s", "exposed_host_s", "idle_s"]
    .map((n) => ({name: n.replace(/_s$/, "").replace(/_/g, " "), value: first(r)[n] || 0}))}));
  const own = {sections: [], prefix: "beside-"};
  const node = section(own, "all", "Side by side", runs.map((r, i) => el("p", {class: "small"}, "run " + (i + 1) + ": ", el("code", {}, r.line || r.command))),
    bars.some((b) => b.parts.some((p) => p.value > 0)) ? el("div", {class: "panel"}, stackedBars(bars)) : null, tableView(table, {tools: true}).node);
  runs[0].sections.unshift(...own.sections);
  return node;
}

function runViews(run) {
  const linked = [];
  const trace = run.trace ? readTrace(run.trace.traceEvents) : null;
  const shownTables = new Set();
  const take = (id) => { const t = found(run, id); if (t) shownTables.add(t.id); return t; };
  const parts = take("parts"), ops = take("ops"), roofs = take("roofs"), memory = take("memory"), peak = take("peak"),
    links = take("link_loads"), rings = take("rings"), facts = take("slice");
  const rows = tableOf(run.rows, run.columns);
  const phases = take("time"); /* the same as parts without phases; or of a compiled program, with phases as columns */
  const out = [head(run), parts ? partsView(run, parts, linked) : phases ? phasesView(run, phases, linked) : null];
  if (trace && trace.lanes.length) {
    const view = timelineView(trace);
    linked.push((c) => view.filter(c ? (s) => (!s.args.phase || c.row === "step" || s.args.phase === c.row) && kindMatches(s, c.part) : null));
    out.push(section(run, "timeline", "Timeline", view.node, sourced("Source: simulated. The line in a collective is its bound: no algorithm is faster.")));
  }
  if (run.command === "collective" || run.command === "traffic" || run.command === "copy") out.push(sizesView(run));
  if (run.command === "compare") out.push(layoutsView(run));
  if (run.command === "plan") out.push(planView(run));
  if (run.command === "validate") out.push(validationView(run));
  if (ops) out.push(opsView(run, ops, linked));
  if (ops && roofs) out.push(rooflineView(run, ops, roofs));
  if (memory || peak) out.push(memoryView(run, memory, peak, trace));
  if (facts) out.push(sliceView(run, facts, links, rings, trace));
  for (const table of tables(run)) {
    if (!shownTables.has(table.id)) out.push(section(run, "t-" + table.id, table.title, tableView(table).node, sourced()));
  }
  out.push(section(run, "rows", "Results", tableView(rows, {tools: true, best: run.command === "compare" || run.command === "plan" ? 0 : undefined}).node,
    sourced("The columns of --format csv, with the same values.")));
  return out;
}

/* A part of the time names kinds of ops; a slice of the timeline has its category. */
function kindMatches(s, part) {
  const category = s.args.hlo_category;
  if (!category) return false;
  if (/^exposed/.test(part)) return /all-|reduce|permute|send|recv|exchange/.test(category);
  return part.startsWith(category) || category.startsWith(part.replace(/s$/, "")) || (part === "elementwise" && category === "vector");
}

async function main() {
  const page = document.getElementById("main");
  const data = await block("runs");
  const runs = data.runs;
  for (const [i, run] of runs.entries()) {
    run.trace = await block("trace-" + i);
    run.prefix = runs.length > 1 ? "r" + (i + 1) + "-" : "";
    run.sections = [];
    run.rows = run.rows || [];
    run.findings = run.findings || [];
    run.line = sentences(run, "line")[0];
  }
  const name = (run) => sentences(run, "settings")[0] || "podsim " + run.command;
  document.title = plain(runs.length === 1 ? name(runs[0]) : runs.length + " runs of podsim");
  document.getElementById("head").append(el("h1", {}, runs.length === 1 ? name(runs[0]) : runs.length + " runs beside one another"));
  const parts = runs.map((run) => [runs.length > 1 ? el("h1", {}, "Run " + run.prefix.slice(1, -1) + ": " + name(run)) : null, ...runViews(run)]);
  page.replaceChildren(...[runs.length > 1 ? besideView(runs) : null, ...parts.flat()].filter(Boolean));
  document.getElementById("views").append(...runs.flatMap((run) => run.sections.map((s) => el("a", {href: "#" + s.id},
    (runs.length > 1 && run.prefix && s.id.startsWith(run.prefix) ? run.prefix.slice(1, -1) + ": " : "") + s.name))));
  document.getElementById("foot").append("podsim " + (data.version || "") + ". Every figure is simulated unless its line says measured or published. ",
    "Charts: uPlot (MIT licence).");
  drawAll(true);
  document.body.dataset.ready = "yes";
}
main().catch((e) => {
  document.getElementById("main").replaceChildren(el("p", {class: "error"}, "This page's data could not be read: " + e.message));
  document.body.dataset.ready = "failed";
  throw e;
});
