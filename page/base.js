/* SPDX-License-Identifier: Apache-2.0 */
/* What all views use: elements, numbers with units, colours, tables. Names come from models, settings and compiled
   texts, so they only ever become text nodes, never markup. */
"use strict";

const BIDI = /[\u0000-\u0008\u000b-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/* Control characters and marks of direction are shown, not obeyed. */
const plain = (text) => String(text).replace(BIDI, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

/* el("td", {class: "num"}, child, …): children are nodes or texts. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child instanceof Node ? child : plain(child));
  }
  return node;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = 8;
const colour = (i) => css("--c" + (((i % COLOURS) + COLOURS) % COLOURS));

function scaled(value, base, names, digits) {
  let i = 0;
  let v = Math.abs(value);
  while (i + 1 < names.length && v >= base) { v /= base; i++; }
  return (value < 0 ? "-" : "") + Number(v.toPrecision(digits)) + " " + names[i];
}
/* Seconds in the unit that fits. */
function seconds(s) {
  const a = Math.abs(s);
  if (a === 0) return "0 s";
  const unit = a >= 1 ? [1, "s"] : a >= 1e-3 ? [1e3, "ms"] : a >= 1e-6 ? [1e6, "us"] : [1e9, "ns"];
  return Number((s * unit[0]).toPrecision(4)) + " " + unit[1];
}
const bytes = (b) => scaled(b, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 4);
const rate = (r, unit) => scaled(r, 1000, ["", "k", "M", "G", "T", "P", "E"].map((p) => p + unit), 4);
const percent = (f) => (100 * f).toFixed(1) + " %";

/* How a cell of a column reads; its exact value stays in data-v. */
function shown(column, value) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  const name = column.name;
  if (/_frac$/.test(name) || column.percent) return (100 * value).toFixed(column.decimals > 0 ? column.decimals : 1) + " %";
  if (/(^|_)bytes(_|$)/.test(name) && !/per_s/.test(name)) return bytes(value);
  if (/_us$/.test(name)) return seconds(value / 1e6);
  if (/_s$/.test(name) && !/per_s/.test(name)) return seconds(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US").replace(/,/g, "\u202f");
  if (column.decimals > 0 && Math.abs(value) >= 10 ** -column.decimals) return value.toFixed(column.decimals);
  return String(Number(value.toPrecision(5)));
}
/* Cells carry their unit, so that a name without a title loses the unit at its end. */
function title(column) {
  return column.title || column.name.replace(/_(us|s|frac|bytes)$/, (m) => (m === "_bytes" ? m : "")).replace(/_/g, " ");
}
/* The unit line of a heading: none where cells carry their own. */
function unit(column) {
  if (/_frac$|_us$|(^|_)bytes(_|$)/.test(column.name) || column.percent) return "";
  if (/_s$/.test(column.name) && !/per_s/.test(column.name)) return "";
  return column.unit || "";
}

const csvCell = (v) => {
  if (v === null || v === undefined) return "-";
  const text = String(v);
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
};
function csvOf(table, rows) {
  return [table.columns.map((c) => c.name), ...rows].map((r) => r.map(csvCell).join(",")).join("\n") + "\n";
}

const TABLE_STEP = 200;

/* A table that sorts, filters and copies itself. `options.filter` shared: {text, set} of a view's filter;
   `options.best`: index of a row to stress; `options.hide`: names of columns left out of sight. */
function tableView(table, options) {
  const o = options || {};
  const columns = table.columns.map((c, i) => ({...c, i})).filter((c) => !(o.hide || []).includes(c.name));
  const numeric = (c) => table.rows.some((r) => typeof r[c.i] === "number");
  let order = null;
  let query = "";
  let limit = TABLE_STEP;
  let rows = table.rows;
  const body = el("tbody");
  const count = el("span", {class: "soft small", role: "status"});
  const more = el("button", {class: "more", type: "button", onclick: () => { limit *= 4; draw(); }});
  const heads = columns.map((c) => {
    const th = el("th", {scope: "col", class: numeric(c) ? "num" : null, "aria-sort": "none"});
    th.append(el("button", {type: "button", title: "sort by " + c.name, onclick: () => {
      order = {i: c.i, down: order && order.i === c.i ? !order.down : numeric(c)};
      draw();
    }}, title(c), el("small", {}, unit(c))));
    return th;
  });
  function select() {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    rows = table.rows.filter((r) => {
      if (o.keep && !o.keep(r)) return false;
      const text = words.length ? r.join(" ").toLowerCase() : "";
      return words.every((w) => text.includes(w));
    });
    if (order) {
      const sign = order.down ? -1 : 1;
      const i = order.i;
      const low = (v) => v === null || v === undefined;
      rows = [...rows].sort((a, b) => low(a[i]) || low(b[i]) ? low(a[i]) - low(b[i])
        : typeof a[i] === "number" && typeof b[i] === "number" ? sign * (a[i] - b[i])
        : sign * String(a[i]).localeCompare(String(b[i]), "en"));
    }
  }
  function draw() {
    select();
    heads.forEach((th, k) => th.setAttribute("aria-sort",
      order && order.i === columns[k].i ? (order.down ? "descending" : "ascending") : "none"));
    body.replaceChildren(...rows.slice(0, limit).map((r) => el("tr",
      {class: o.best !== undefined && r === table.rows[o.best] ? "best" : null},
      columns.map((c) => el("td", {class: typeof r[c.i] === "number" ? "num" : String(r[c.i]).length > 26 ? "name long" : "name",
        "data-v": r[c.i] === null ? "-" : plain(r[c.i])}, shown(c, r[c.i]))))));
    count.textContent = rows.length === table.rows.length ? rows.length + (rows.length === 1 ? " row" : " rows")
      : rows.length + " of " + table.rows.length + " rows";
    more.hidden = rows.length <= limit;
    more.textContent = "show more (" + (rows.length - limit) + " left)";
  }
  const search = el("input", {type: "search", placeholder: "filter rows", "aria-label": "filter the rows of " + (table.title || "the table"),
    oninput: (e) => { query = e.target.value; limit = TABLE_STEP; draw(); }});
  const copy = el("button", {type: "button", onclick: async () => {
    try { await navigator.clipboard.writeText(csvOf(table, rows)); count.textContent = "copied " + rows.length + " rows"; }
    catch { save(csvOf(table, rows), (table.id || "table") + ".csv"); }
  }}, "copy as CSV");
  const tools = table.rows.length > 6 || o.tools ? el("div", {class: "tools"}, search, copy, count) : null;
  const node = el("div", {class: "tableview", "data-table": table.id || ""}, tools,
    el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": table.title || "table"},
      el("table", {}, el("thead", {}, el("tr", {}, heads)), body)), more);
  draw();
  return {node, redraw: draw, find: (text) => { search.value = text; query = text; draw(); }};
}

/* Hands a text over as a file. */
function save(text, name) {
  const link = el("a", {href: "data:text/csv;charset=utf-8," + encodeURIComponent(text), download: name});
  link.click();
}

/* Rows of objects, as --format json has them, as a table. */
function tableOf(rows, meta) {
  const names = rows.length ? Object.keys(rows[0]) : (meta || []).map((c) => c.name);
  const known = new Map((meta || []).map((c) => [c.name, c]));
  return {id: "rows", title: "Results", columns: names.map((name) => known.get(name) || {name}),
    rows: rows.map((r) => names.map((n) => r[n]))};
}
/* Reads a column by its name. */
function getter(table, name) {
  const i = table.columns.findIndex((c) => c.name === name);
  return i < 0 ? null : (row) => row[i];
}
