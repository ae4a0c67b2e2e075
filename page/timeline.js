/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of a run on a canvas, from the events that --trace writes (docs/see.md). */
"use strict";

const ROW = 17;

/* Lanes in order, each with its slices by start; arrows and counters apart. Times in microseconds. */
function readTrace(events) {
  const processes = new Map();
  const process = (pid) => {
    if (!processes.has(pid)) processes.set(pid, {pid, name: "process " + pid, sort: pid, threads: new Map(), counters: new Map()});
    return processes.get(pid);
  };
  const thread = (e) => {
    const threads = process(e.pid).threads;
    if (!threads.has(e.tid)) threads.set(e.tid, {tid: e.tid, name: "thread " + e.tid, sort: e.tid, slices: []});
    return threads.get(e.tid);
  };
  const arrows = new Map();
  let end = 0;
  for (const e of events) {
    if (e.ph === "X") {
      thread(e).slices.push({name: e.name, start: e.ts, dur: e.dur, args: e.args || {}});
      end = Math.max(end, e.ts + e.dur);
    } else if (e.ph === "M") {
      if (e.name === "process_name") process(e.pid).name = e.args.name;
      else if (e.name === "process_sort_index") process(e.pid).sort = e.args.sort_index;
      else if (e.name === "thread_name") thread(e).name = e.args.name;
      else if (e.name === "thread_sort_index") thread(e).sort = e.args.sort_index;
    } else if (e.ph === "C") {
      const counters = process(e.pid).counters;
      if (!counters.has(e.name)) counters.set(e.name, []);
      counters.get(e.name).push([e.ts, Object.values(e.args)[0]]);
    } else if (e.ph === "s" || e.ph === "f") {
      if (!arrows.has(e.id)) arrows.set(e.id, {});
      arrows.get(e.id)[e.ph] = e;
    }
  }
  const lanes = [];
  for (const p of [...processes.values()].sort((a, b) => a.sort - b.sort)) {
    let first = true;
    for (const t of [...p.threads.values()].sort((a, b) => a.sort - b.sort)) {
      if (!t.slices.length) continue;
      t.slices.sort((a, b) => a.start - b.start || b.dur - a.dur);
      const open = [];
      let depth = 0;
      for (const s of t.slices) {
        while (open.length && open[open.length - 1] <= s.start + 1e-9) open.pop();
        s.depth = open.length;
        open.push(s.start + s.dur);
        depth = Math.max(depth, s.depth + 1);
      }
      lanes.push({process: first ? p.name : null, pid: p.pid, tid: t.tid, name: t.name, slices: t.slices, depth});
      first = false;
    }
  }
  return {lanes, end, arrows: [...arrows.values()].filter((a) => a.s && a.f),
    counters: [...processes.values()].sort((a, b) => a.sort - b.sort)[0]?.counters || new Map()};
}

/* What a slice is coloured and told by. */
const kindOf = (s) => s.args.hlo_category || s.args.phase || s.name;

function timelineView(trace, onTime) {
  const canvas = el("canvas", {tabindex: "0", role: "img", "aria-label":
    "Timeline of " + seconds(trace.end / 1e6) + ". Plus and minus zoom, arrows move, Home shows all, Enter goes to the next slice that matches the search."});
  const tip = el("div", {class: "tip", role: "status"}, "Wheel with Ctrl or + and - zoom, drag or arrows move, a click chooses a slice.");
  const kinds = new Map();
  for (const lane of trace.lanes) for (const s of lane.slices) if (!kinds.has(kindOf(s)) && s.args.hlo_category) kinds.set(kindOf(s), kinds.size);
  let from = 0, to = trace.end || 1, chosen = null, query = "", filter = null, last = -1;
  let y = 22;
  for (const lane of trace.lanes) {
    if (lane.process) { lane.head = y; y += 18; }
    lane.y = y;
    y += lane.depth * ROW + 4;
  }
  const height = Math.min(y + 6, 900);
  let scroll = 0;
  canvas.style.height = height + "px";
  const label = () => Math.min(150, canvas.clientWidth * 0.3);
  const matches = (s) => (!query || s.name.toLowerCase().includes(query) || kindOf(s).toLowerCase().includes(query))
    && (!filter || filter(s));
  function xOf(t) { return label() + (t - from) / (to - from) * (canvas.clientWidth - label()); }
  function tOf(x) { return from + (x - label()) / (canvas.clientWidth - label()) * (to - from); }
  function draw() {
    const px = devicePixelRatio || 1;
    const w = canvas.clientWidth;
    if (!w) return;
    canvas.width = Math.round(w * px);
    canvas.height = Math.round(height * px);
    const c = canvas.getContext("2d");
    c.scale(px, px);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const text = css("--text"), soft = css("--soft"), line = css("--line"), panel = css("--panel");
    const palette = Array.from({length: COLOURS}, (_, i) => colour(i));
    c.fillStyle = css("--bg");
    c.fillRect(0, 0, w, height);
    c.save();
    c.translate(0, -scroll);
    for (const lane of trace.lanes) {
      if (lane.head !== undefined) {
        c.fillStyle = text;
        c.fillText(plain(lane.process), 4, lane.head + 9);
      }
      if (lane.y + lane.depth * ROW < scroll || lane.y > scroll + height) continue;
      c.fillStyle = panel;
      c.fillRect(label(), lane.y, w - label(), lane.depth * ROW);
      let a = 0, b = lane.slices.length;
      if (lane.depth === 1) {
        while (a < b) { const m = (a + b) >> 1; if (lane.slices[m].start + lane.slices[m].dur < from) a = m + 1; else b = m; }
      } else a = 0;
      const lastX = new Array(lane.depth).fill(-1);
      for (; a < lane.slices.length && lane.slices[a].start <= to; a++) {
        const s = lane.slices[a];
        if (s.start + s.dur < from) continue;
        const x0 = Math.max(label(), xOf(s.start)), x1 = Math.min(w, xOf(s.start + s.dur));
        if (x1 - x0 < 1 && Math.floor(x1) === lastX[s.depth]) continue;
        lastX[s.depth] = Math.floor(x1);
        const top = lane.y + s.depth * ROW + 1;
        const on = matches(s);
        const k = kinds.has(kindOf(s)) ? kinds.get(kindOf(s)) : 7;
        c.globalAlpha = on ? 1 : 0.18;
        c.fillStyle = palette[k % COLOURS];
        c.fillRect(x0, top, Math.max(0.8, x1 - x0), ROW - 2);
        if (s.args.bound_us > 0 && x1 - x0 > 3) {
          c.fillStyle = text;
          c.fillRect(xOf(s.start), top + ROW - 5, Math.max(1, xOf(s.start + Math.min(s.args.bound_us, s.dur)) - xOf(s.start)), 2);
        }
        if (s === chosen) { c.strokeStyle = text; c.lineWidth = 2; c.strokeRect(x0, top, Math.max(2, x1 - x0), ROW - 2); }
        if (x1 - x0 > 34 && on) {
          c.save();
          c.beginPath(); c.rect(x0, top, x1 - x0 - 2, ROW); c.clip();
          c.fillStyle = "#000";
          c.fillText(plain(s.name), x0 + 3, top + 8);
          c.restore();
        }
        c.globalAlpha = 1;
      }
      c.fillStyle = css("--bg");
      c.fillRect(0, lane.y, label(), lane.depth * ROW + 4);
      c.fillStyle = soft;
      c.save();
      c.beginPath(); c.rect(0, lane.y, label() - 4, lane.depth * ROW + 4); c.clip();
      c.fillText(plain(lane.name), 10, lane.y + ROW / 2);
      c.restore();
    }
    if (chosen) {
      c.strokeStyle = text;
      c.lineWidth = 1;
      const near = (e) => Math.abs(e.ts - chosen.start) < 0.01 || Math.abs(e.ts - chosen.start - chosen.dur) < 0.01;
      const laneOf = (e) => trace.lanes.find((l) => l.pid === e.pid && l.tid === e.tid);
      for (const arrow of trace.arrows) {
        if (!(near(arrow.s) || near(arrow.f))) continue;
        const l0 = laneOf(arrow.s), l1 = laneOf(arrow.f);
        if (!l0 || !l1 || (l0 !== chosen.lane && l1 !== chosen.lane)) continue;
        const x0 = xOf(arrow.s.ts), y0 = l0.y + ROW / 2, x1 = xOf(arrow.f.ts), y1 = l1.y + ROW / 2;
        c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1);
        c.moveTo(x1 - 4, y1 + (y1 > y0 ? -6 : 6)); c.lineTo(x1, y1); c.lineTo(x1 + 4, y1 + (y1 > y0 ? -6 : 6));
        c.stroke();
      }
    }
    c.restore();
    c.fillStyle = css("--bg");
    c.fillRect(0, 0, w, 20);
    c.strokeStyle = line;
    c.fillStyle = soft;
    const step = 10 ** Math.floor(Math.log10((to - from) / 4));
    const tick = [1, 2, 5, 10].map((m) => m * step).find((s) => (to - from) / s <= 8) || step * 10;
    for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) {
      const x = xOf(t);
      if (x > w - 30) break;
      c.beginPath(); c.moveTo(x, 16); c.lineTo(x, height); c.globalAlpha = 0.4; c.stroke(); c.globalAlpha = 1;
      c.fillText(seconds(t / 1e6), x + 3, 10);
    }
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top + scroll};
  }
  function hit(p) {
    const t = tOf(p.x);
    const slack = (to - from) / canvas.clientWidth;
    for (const lane of trace.lanes) {
      if (p.y < lane.y || p.y >= lane.y + lane.depth * ROW) continue;
      const depth = Math.floor((p.y - lane.y) / ROW);
      let best = null;
      for (const s of lane.slices) {
        if (s.depth === depth && s.start - slack <= t && t <= s.start + s.dur + slack && (!best || s.dur < best.dur)) best = s;
      }
      if (best) best.lane = lane;
      return best;
    }
    return null;
  }
  function tell(s) {
    if (!s) return;
    const parts = Object.entries(s.args).map(([k, v]) => k + " " + (/_us$/.test(k) ? seconds(v / 1e6) : /bytes/.test(k) ? bytes(v) : v));
    tip.replaceChildren(el("b", {}, s.name), " " + seconds(s.dur / 1e6) + " from " + seconds(s.start / 1e6)
      + (s.args.bound_us ? "; its bound is " + seconds(s.args.bound_us / 1e6) + " (" + percent(Math.min(1, s.args.bound_us / s.dur)) + " of the time)" : ""),
      el("br"), el("span", {class: "soft"}, plain(parts.join(" · "))));
    if (onTime) onTime(s);
  }
  function move(a, b) {
    const width = Math.min(Math.max(b - a, trace.end / 1e6, 1e-3), trace.end || 1);
    from = Math.min(Math.max(0, a), Math.max(0, trace.end - width));
    to = from + width;
    requestAnimationFrame(draw);
  }
  function zoom(factor, x) {
    const t = tOf(x === undefined ? (canvas.clientWidth + label()) / 2 : Math.max(x, label()));
    move(t - (t - from) * factor, t + (to - t) * factor);
  }
  let drag = null;
  canvas.addEventListener("wheel", (e) => {
    if (!(e.ctrlKey || e.shiftKey || document.activeElement === canvas)) return;
    e.preventDefault();
    if (e.shiftKey) move(from + e.deltaY / 800 * (to - from), to + e.deltaY / 800 * (to - from));
    else zoom(e.deltaY > 0 ? 1.25 : 0.8, at(e).x);
  }, {passive: false});
  canvas.addEventListener("pointerdown", (e) => { drag = {x: e.clientX, y: e.clientY, from, to, scroll, moved: false}; canvas.focus(); });
  addEventListener("pointermove", (e) => {
    if (!drag) return;
    if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 3) drag.moved = true;
    const d = (drag.x - e.clientX) / (canvas.clientWidth - label()) * (drag.to - drag.from);
    scroll = Math.min(Math.max(0, drag.scroll + drag.y - e.clientY), Math.max(0, y + 6 - height));
    if (drag.moved) move(drag.from + d, drag.to + d);
  });
  addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("click", (e) => { const s = hit(at(e)); if (s) { chosen = s; tell(s); draw(); } });
  canvas.addEventListener("keydown", (e) => {
    const pan = (to - from) * 0.15;
    const act = {"+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), "w": () => zoom(0.7), "s": () => zoom(1.4),
      "ArrowLeft": () => move(from - pan, to - pan), "a": () => move(from - pan, to - pan),
      "ArrowRight": () => move(from + pan, to + pan), "d": () => move(from + pan, to + pan),
      "ArrowDown": () => { scroll = Math.min(scroll + 60, Math.max(0, y + 6 - height)); draw(); },
      "ArrowUp": () => { scroll = Math.max(0, scroll - 60); draw(); },
      "Home": () => move(0, trace.end), "Enter": () => next()}[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  const flat = trace.lanes.flatMap((lane) => lane.slices.map((s) => ({lane, s})));
  function next() {
    for (let i = 1; i <= flat.length; i++) {
      const k = (last + i) % flat.length;
      if (!matches(flat[k].s)) continue;
      last = k;
      chosen = flat[k].s;
      chosen.lane = flat[k].lane;
      if (chosen.start < from || chosen.start + chosen.dur > to) move(chosen.start - chosen.dur * 4, chosen.start + chosen.dur * 5);
      tell(chosen);
      draw();
      return;
    }
    tip.textContent = "no slice matches";
  }
  const search = el("input", {type: "search", placeholder: "search slices", "aria-label": "search slices of the timeline",
    oninput: (e) => { query = e.target.value.toLowerCase(); last = -1; draw(); },
    onkeydown: (e) => { if (e.key === "Enter") next(); }});
  const button = (name, text, act) => el("button", {type: "button", "aria-label": name, onclick: act}, text);
  const node = el("div", {class: "panel"}, el("div", {class: "tools"}, search, button("next match", "next", next),
    button("zoom in", "+", () => zoom(0.6)), button("zoom out", "−", () => zoom(1.7)), button("show all", "all", () => move(0, trace.end))),
    canvas, el("ul", {class: "legend"}, [...kinds].map(([name, k]) => el("li", {}, el("i", {style: "--c:var(--c" + (k % COLOURS) + ")"}), name))),
    tip);
  drawn.push({host: canvas, draw});
  return {node, draw, filter: (f) => { filter = f; draw(); }, find: (text) => { search.value = text; query = text.toLowerCase(); last = -1; next(); }};
}
