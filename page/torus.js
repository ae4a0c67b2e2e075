/* SPDX-License-Identifier: Apache-2.0 */
/* The slice as a torus: chips, cables by load, groups of a mesh axis as rings in order, what is dead or slow. */
"use strict";

/* slice: {dims: [x, y, z], wrap: "xyz", chips: [{id, at: [x, y, z], slow}], links: table or null, rings: [{axis, rings: [[chip…]…]}]} */
function torusView(slice) {
  const [nx, ny, nz] = slice.dims;
  const flat = nz === 1;
  const canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": "Slice of " + slice.dims.join(" by ") + " chips. Arrow keys turn it; the tables have each link's load."});
  const tip = el("p", {class: "tip soft", role: "status"}, "Move over a chip.");
  let turn = flat ? 0 : -0.62, tilt = flat ? 0 : 0.5, axis = null, highlight = null, ring = 0;
  const cell = (c) => c.at;
  const load = new Map();
  let top = 0;
  for (const l of slice.links || []) {
    load.set(l.chip + " " + l.direction, l);
    top = Math.max(top, l.busy || 0);
  }
  function project(p, w, h) {
    const x = p[0] - (nx - 1) / 2, y = p[1] - (ny - 1) / 2, z = p[2] - (nz - 1) / 2;
    const size = Math.max(nx, ny, nz);
    const xr = x * Math.cos(turn) + z * Math.sin(turn);
    const zr = -x * Math.sin(turn) + z * Math.cos(turn);
    const yr = y * Math.cos(tilt) - zr * Math.sin(tilt);
    const s = flat ? Math.min((w - 60) / nx, (h - 60) / ny) : Math.min(w, h) * 0.62 / size;
    return [w / 2 + xr * s, h / 2 + yr * s, y * Math.sin(tilt) + zr * Math.cos(tilt)];
  }
  const height = () => Math.min(520, Math.max(220, flat ? Math.min(canvas.clientWidth * ny / nx, 60 + 56 * ny) : 420));
  let spots = [];
  function draw() {
    const px = devicePixelRatio || 1, w = canvas.clientWidth, h = height();
    if (!w) return;
    canvas.style.height = h + "px";
    canvas.width = Math.round(w * px);
    canvas.height = Math.round(h * px);
    const c = canvas.getContext("2d");
    c.scale(px, px);
    c.fillStyle = css("--bg");
    c.fillRect(0, 0, w, h);
    const mix = (f) => f > 0.66 ? css("--load2") : f > 0.2 ? css("--load1") : css("--load0");
    const by = new Map(slice.chips.map((chip) => [chip.at.join(","), chip]));
    const dirs = [[1, 0, 0, "+x", "-x"], [0, 1, 0, "+y", "-y"], [0, 0, 1, "+z", "-z"]];
    for (const chip of slice.chips) {
      for (const [dx, dy, dz, plus, minus] of dirs) {
        const n = [chip.at[0] + dx, chip.at[1] + dy, chip.at[2] + dz];
        const l = load.get(chip.id + " " + plus);
        const outside = n[0] >= nx || n[1] >= ny || n[2] >= nz;
        if ((outside && !l) || (slice.links && !l)) continue;
        const back = outside ? null : load.get((by.get(n.join(",")) || {}).id + " " + minus);
        const f = Math.max(l ? l.busy || 0 : 0, back ? back.busy || 0 : 0);
        const state = l && l.state ? l.state : "";
        const a = project(chip.at, w, h);
        const b = project(outside ? [chip.at[0] + dx * 0.45, chip.at[1] + dy * 0.45, chip.at[2] + dz * 0.45] : n, w, h);
        c.strokeStyle = state === "dead" ? css("--warn") : mix(top > 0 ? f / top : 0);
        c.lineWidth = state === "dead" ? 1.5 : 1 + 3 * (top > 0 ? f / top : 0);
        c.setLineDash(state === "dead" ? [2, 4] : state === "slow" ? [7, 3] : outside ? [3, 2] : []);
        c.beginPath(); c.moveTo(a[0], a[1]); c.lineTo(b[0], b[1]); c.stroke();
        if (state) {
          c.setLineDash([]);
          c.fillStyle = css("--warn");
          c.font = "bold 12px system-ui";
          c.fillText(state === "dead" ? "×" : "slow", (a[0] + b[0]) / 2 - 4, (a[1] + b[1]) / 2 + 4);
        }
      }
    }
    c.setLineDash([]);
    if (axis !== null) {
      const rings = slice.rings[axis].rings;
      rings.forEach((ids, k) => {
        if (highlight !== null && !ids.includes(highlight)) return;
        if (highlight === null && rings.length > 16 && k !== ring) return;
        c.strokeStyle = colour(k % 7);
        c.lineWidth = 2.5;
        c.beginPath();
        ids.forEach((id, i) => {
          const p = project(slice.chips[id].at, w, h);
          if (i === 0) c.moveTo(p[0] + 4, p[1] + 4); else c.lineTo(p[0] + 4, p[1] + 4);
        });
        c.stroke();
        c.fillStyle = css("--text");
        c.font = "10px system-ui";
        ids.forEach((id, i) => {
          const p = project(slice.chips[id].at, w, h);
          if (ids.length <= 64) c.fillText(String(i), p[0] + 6, p[1] - 6);
        });
      });
    }
    spots = slice.chips.map((chip) => ({chip, p: project(chip.at, w, h)})).sort((a, b) => a.p[2] - b.p[2]);
    const r = Math.max(1.5, Math.min(7, 120 / Math.max(nx, ny, nz) / 2));
    for (const {chip, p} of spots) {
      c.fillStyle = chip.slow ? css("--warn") : css("--text");
      c.beginPath();
      if (chip.slow) c.rect(p[0] - r, p[1] - r, 2 * r, 2 * r); else c.arc(p[0], p[1], r, 0, 7);
      c.fill();
    }
  }
  const tell = (chip) => {
    const own = (slice.links || []).filter((l) => l.chip === chip.id);
    tip.textContent = "chip " + chip.at.join(",") + (chip.slow ? ", " + chip.slow + " times slower" : "")
      + (own.length ? ": " + own.map((l) => l.direction + " " + (l.state ? l.state + " " : "") + (l.busy === null ? "" : percent(l.busy))).join(", ") : "");
  };
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    const x = e.clientX - box.left, y = e.clientY - box.top;
    if (e.buttons && !flat) {
      turn += e.movementX * 0.008; tilt = Math.max(-1.5, Math.min(1.5, tilt + e.movementY * 0.008));
      draw();
      return;
    }
    let best = null, far = 400;
    for (const s of spots) { const d = (s.p[0] - x) ** 2 + (s.p[1] - y) ** 2; if (d < far) { far = d; best = s.chip; } }
    if (best && best.id !== highlight) { highlight = best.id; tell(best); draw(); }
  });
  canvas.addEventListener("pointerleave", () => { highlight = null; draw(); });
  canvas.addEventListener("keydown", (e) => {
    const d = {ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15]}[e.key];
    if (d && !flat) { e.preventDefault(); turn += d[0]; tilt += d[1]; draw(); }
  });
  const pick = slice.rings.length ? el("select", {"aria-label": "groups of a mesh axis", onchange: (e) => {
    axis = e.target.value === "" ? null : Number(e.target.value); ring = 0; draw();
  }}, el("option", {value: ""}, "no groups"), slice.rings.map((r, i) => el("option", {value: i}, "groups of " + r.axis))) : null;
  const node = el("div", {class: "panel"}, el("div", {class: "tools"}, pick,
    flat ? null : el("label", {}, "turn ", el("input", {type: "range", min: -3.1, max: 3.1, step: 0.05, value: turn, "aria-label": "turn the slice",
      oninput: (e) => { turn = Number(e.target.value); draw(); }})),
    el("span", {class: "soft small"}, top > 0 ? "colour and width: busy part of a link, at most " + percent(top) : "")), canvas,
    el("ul", {class: "legend"}, el("li", {}, "dashed to the rim: wraps round"), el("li", {}, "× dead link"), el("li", {}, "long dashes: slow link"), el("li", {}, "square: slow chip")), tip);
  drawn.push({host: canvas, draw});
  return {node, draw, show: (name) => {
    const i = slice.rings.findIndex((r) => r.axis === name);
    if (i >= 0 && pick) { axis = i; pick.value = String(i); draw(); }
  }};
}
