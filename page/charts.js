/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: stacked bars of our own, and curves and points by uPlot. Each has its figures in a table beside it. */
"use strict";

const MARKS = ["circle", "square", "diamond", "triangle"];

function mark(ctx, kind, x, y, r) {
  ctx.beginPath();
  if (kind === "square") ctx.rect(x - r, y - r, 2 * r, 2 * r);
  else if (kind === "diamond") { ctx.moveTo(x, y - 1.3 * r); ctx.lineTo(x + 1.3 * r, y); ctx.lineTo(x, y + 1.3 * r); ctx.lineTo(x - 1.3 * r, y); ctx.closePath(); }
  else if (kind === "triangle") { ctx.moveTo(x, y - 1.2 * r); ctx.lineTo(x + 1.2 * r, y + r); ctx.lineTo(x - 1.2 * r, y + r); ctx.closePath(); }
  else ctx.arc(x, y, r, 0, 2 * Math.PI);
}

/* {title, x: {label, log, text}, y: {label, log, text}, series: [{name, points: [[x, y, label, size]], line, dashed, colour}]}
   The nearest point is told below the chart, also by the arrow keys. */
function xyChart(spec) {
  const host = el("div", {class: "fig"});
  const tip = el("p", {class: "tip soft", role: "status"}, "Move over the chart, or focus it and use the arrow keys.");
  const series = spec.series.filter((s) => s.points.length > 0);
  const all = series.flatMap((s, k) => s.points.map((p) => ({x: p[0], y: p[1], label: p[2], size: p[3], k})))
    .filter((p) => !series[p.k].bound);
  const xs = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const at = new Map(xs.map((x, i) => [x, i]));
  const data = [xs];
  for (const s of series) {
    const ys = new Array(xs.length).fill(null);
    for (const p of s.points) if (ys[at.get(p[0])] === null) ys[at.get(p[0])] = p[1];
    data.push(ys);
  }
  let plot = null;
  let chosen = -1;
  const tell = (i) => {
    chosen = i;
    const p = all[i];
    const s = series[p.k];
    tip.textContent = plain((s.name ? s.name + ": " : "") + (p.label ? p.label + ", " : "")
      + spec.x.label + " " + spec.x.text(p.x) + ", " + spec.y.label + " " + spec.y.text(p.y));
    if (plot) plot.redraw(false);
  };
  const span = (values, log, zero) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (log) return [low / 1.3, high * 1.3];
    const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [zero && low >= 0 ? 0 : low - pad, high + pad];
  };
  const points = (u) => {
    const ctx = u.ctx;
    const px = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    all.forEach((p, i) => {
      const x = u.valToPos(p.x, "x", true), y = u.valToPos(p.y, "y", true);
      const c = colour(series[p.k].colour ?? p.k);
      mark(ctx, MARKS[p.k % MARKS.length], x, y, (p.size || (series[p.k].line ? 3 : 4.5)) * px);
      ctx.fillStyle = c; ctx.globalAlpha = 0.85; ctx.fill(); ctx.globalAlpha = 1;
      if (i === chosen) { ctx.lineWidth = 2 * px; ctx.strokeStyle = css("--text"); ctx.stroke(); }
    });
    ctx.restore();
    ctx.fillStyle = css("--text");
    ctx.font = 11 * px + "px system-ui, sans-serif";
    /* Names beside the points, as far as they don't cover one another; the line below the chart tells the others. */
    const taken = [];
    for (const s of series) for (const p of s.points) if (s.labels && p[2]) {
      const right = u.valToPos(p[0], "x") > u.over.clientWidth * 0.6;
      const width = ctx.measureText(plain(p[2])).width;
      const x = u.valToPos(p[0], "x", true) + (right ? -8 * px - width : 8 * px), y = u.valToPos(p[1], "y", true) - 4 * px;
      if (taken.some((b) => x < b.x + b.width && b.x < x + width && Math.abs(y - b.y) < 12 * px)) continue;
      taken.push({x, y, width});
      ctx.textAlign = "left";
      ctx.fillText(plain(p[2]), x, y);
    }
  };
  /* Logarithmic axes have tics at powers (of two for sizes), few enough to be read; within a decade at 1, 2 and 5 of it. */
  const powers = (base) => (u, i, low, high) => {
    const log = (v) => Math.log(v) / Math.log(base);
    const first = Math.ceil(log(low) - 1e-9), last = Math.floor(log(high) + 1e-9);
    if (base === 10 && last - first < 2) {
      return [-1, 0, 1, 2].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** (first + k))).filter((v) => low <= v && v <= high);
    }
    const room = i === 0 ? u.width / 90 : u.height / 40;
    const step = Math.max(1, Math.ceil((last - first) / Math.max(2, room)));
    return Array.from({length: Math.max(1, Math.floor((last - first) / step) + 1)}, (_, k) => base ** (first + k * step));
  };
  const axis = (a, size) => ({...(a.log ? {splits: powers(a.base || 10), filter: (u, v) => v} : {}), label: a.label, labelSize: 22, size, font: "12px system-ui", labelFont: "12px system-ui",
    stroke: () => css("--text"), grid: {stroke: () => css("--line"), width: 1}, ticks: {stroke: () => css("--line")},
    space: a.log ? 40 : 50, values: (u, vs) => vs.map((v) => v === null ? "" : a.text(v))});
  const width = () => Math.max(260, host.clientWidth || 600);
  const make = () => {
    if (plot) plot.destroy();
    const px = span(series.flatMap((s) => s.points.map((p) => p[0])), spec.x.log, spec.x.zero);
    const py = span(series.flatMap((s) => s.points.map((p) => p[1])), spec.y.log, spec.y.zero !== false);
    plot = new uPlot({
      title: spec.title, width: width(), height: spec.height || 320, legend: {show: false}, cursor: {show: true, drag: {x: true, y: true}},
      scales: {x: {time: false, distr: spec.x.log ? 3 : 1, log: spec.x.base || 10, range: () => px},
        y: {distr: spec.y.log ? 3 : 1, range: () => py}},
      axes: [axis(spec.x, 34), axis(spec.y, 84)],
      series: [{}, ...series.map((s, k) => ({label: s.name, stroke: () => colour(s.colour ?? k), width: s.line ? 2 : 0,
        dash: s.dashed ? [6, 5] : undefined, points: {show: false}, spanGaps: true,
        paths: s.line ? (s.stepped ? uPlot.paths.stepped({align: 1}) : uPlot.paths.linear()) : () => null}))],
      hooks: {draw: [points], setCursor: [(u) => {
        if (u.cursor.left < 0) return;
        let best = -1, far = 900;
        all.forEach((p, i) => {
          const d = (u.valToPos(p.x, "x") - u.cursor.left) ** 2 + (u.valToPos(p.y, "y") - u.cursor.top) ** 2;
          if (d < far) { far = d; best = i; }
        });
        if (best >= 0 && best !== chosen) tell(best);
      }]},
    }, data, host);
    const canvas = host.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("tabindex", "0");
    canvas.setAttribute("aria-label", spec.title + ": " + spec.y.label + " against " + spec.x.label + ", " + all.length + " points; the table has the figures");
    canvas.addEventListener("keydown", (e) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
      if (step && all.length) { e.preventDefault(); tell((chosen + step + all.length) % all.length); }
    });
  };
  const legend = el("ul", {class: "legend"}, series.map((s, k) => s.name ? el("li", {},
    el("i", {style: "--c:var(--c" + ((s.colour ?? k) % COLOURS) + ")", class: s.dashed ? "p4" : "p0"}),
    s.name + (s.dashed ? " (dashed)" : "")) : null));
  drawn.push({host, draw: make});
  return el("div", {class: "panel"}, host, series.length > 1 ? legend : null, tip);
}

/* What is drawn to a width: again when it changes, or when light and dark do. */
const drawn = [];
let widthBefore = 0;
function drawAll(force) {
  const width = document.documentElement.clientWidth;
  if (!force && width === widthBefore) return;
  widthBefore = width;
  for (const d of drawn) d.draw();
}
addEventListener("resize", () => drawAll(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));

/* Stacked bars: rows [{label, parts: [{name, value}], note}] on one scale. Choosing a part filters the rest of the page. */
function stackedBars(rows, options) {
  const o = options || {};
  const names = [...new Set(rows.flatMap((r) => r.parts.map((p) => p.name)))];
  const top = Math.max(...rows.map((r) => r.parts.reduce((a, p) => a + p.value, 0)), Number.MIN_VALUE);
  const node = el("div", {class: "bars"});
  const buttons = [];
  const key = (r, p) => r.label + "\u0000" + p.name;
  let pressed = null;
  for (const r of rows) {
    const sum = r.parts.reduce((a, p) => a + p.value, 0);
    const bar = el("div", {class: "bar", role: "group", "aria-label": r.label, style: "width:" + 100 * sum / top + "%"});
    for (const p of r.parts) {
      if (!(p.value > 0)) continue;
      const k = names.indexOf(p.name);
      const text = p.name + ": " + seconds(p.value) + ", " + percent(p.value / (o.total || sum));
      const b = el("button", {type: "button", class: "p" + (k % COLOURS), "aria-pressed": "false", title: text, "aria-label": r.label + ", " + text,
        style: "--c:var(--c" + (k % COLOURS) + ");flex:" + p.value + " 1 0",
        onclick: () => {
          pressed = pressed === key(r, p) ? null : key(r, p);
          buttons.forEach((x) => x.b.setAttribute("aria-pressed", String(x.key === pressed)));
          if (o.choose) o.choose(pressed ? {row: r.label, part: p.name} : null);
        }}, p.value > 0.08 * top ? percent(p.value / (o.total || sum)) : null);
      buttons.push({b, key: key(r, p)});
      bar.append(b);
    }
    node.append(el("div", {class: "barrow"}, el("span", {}, r.label), el("div", {}, bar), el("span", {}, seconds(sum))));
  }
  node.append(el("ul", {class: "legend"}, names.map((n, k) => el("li", {},
    el("i", {class: "p" + (k % COLOURS), style: "--c:var(--c" + (k % COLOURS) + ")"}), n))));
  return node;
}
