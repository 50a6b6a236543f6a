// Where a score comes from: the products of the parts of a query and of a key, as a table that adds up to the score.

import { parted } from "../shared/chunks.js";
import { element } from "../shared/element.js";
import { cellOf, label } from "./picture.js";

const UNIT = 100; // a printed number has two decimals
const NAMED = 2; // most products that the sentence names
const OF_SCORES = ["scores", "scale", "masked", "weights"]; // tables whose cells the parts of a score explain

// Parts as packed by the server (transformer/anatomy/parts.py), by box and side (query or key): [name, numbers] of each.
export function unpackedParts(bytes, pass) {
  const [boxes, body] = parted(bytes);
  const numbers = new Float32Array(body);
  let at = 0;
  for (const [box, sides] of Object.entries(boxes)) for (const [side, names] of Object.entries(sides)) {
    const { length } = pass.of[box].of[side].values;
    sides[side] = names.map((name) => [name, numbers.subarray(at, (at += length))]);
  }
  return boxes;
}

// The box whose score explains a cell; undefined if the table of the cell is none of OF_SCORES.
export function scoreBox(pass, cell) {
  const box = pass.of[cell?.box];
  return box?.of.scale && OF_SCORES.includes(cell.table) ? box : undefined;
}

// Values in units of the last printed digit, rounded so that they add up to `score`, rounded.
export function printed(values, score) {
  const whole = values.map((value) => Math.floor(value * UNIT));
  const missing = Math.round(score * UNIT) - total(whole);
  const order = [...values.keys()].sort((a, b) => (values[b] * UNIT - whole[b]) - (values[a] * UNIT - whole[a]));
  for (let i = 0; i < Math.abs(missing); i += 1) whole[order.at(missing > 0 ? i % order.length : -1 - (i % order.length))] += Math.sign(missing);
  return whole;
}

const total = (units) => units.reduce((sum, one) => sum + one, 0);
const text = (units) => `${units < 0 ? "−" : "+"}${(Math.abs(units) / UNIT).toFixed(2)}`;

// Draw the sentence and the table of the score of a cell into a summary and its details, or nothing. box: from
// `scoreBox`; its `parts`, once they are loaded, may be refused.
export function drawParts(host, pass, box, cell) {
  host.hidden = !box?.parts;
  if (host.hidden) return;
  const [summary, details] = host.children;
  const { scale, query, key } = box.of;
  const score = cellOf(scale, cell.head, cell.row, cell.column);
  const head = scale.heads > 1 ? `, head ${cell.head + 1}` : "";
  const said = `${box.title}${head}: the score of query ${label(pass, box, scale.rows, cell.row)} and key ${label(pass, box, "key", cell.column)} before the softmax is ${text(Math.round(score * UNIT))}`;
  if (box.parts.refused) {
    summary.textContent = `${said}.`;
    details.replaceChildren(box.parts.refused);
    return;
  }
  const vector = (table, row, [, numbers]) => numbers.subarray((cell.head * table.high + row) * table.wide).subarray(0, table.wide);
  const { query: rows, key: columns } = box.parts;
  const keys = columns.map((part) => vector(key, cell.column, part));
  const values = rows.flatMap((part) => {
    const one = vector(query, cell.row, part);
    return keys.map((other) => other.reduce((sum, value, i) => sum + value * one[i], 0));
  });
  const units = printed(values, score);
  const [sign, wide] = [Math.sign(score) || 1, columns.length];
  const most = [...values.keys()].sort((a, b) => sign * (values[b] - values[a])).slice(0, NAMED).filter((i) => sign * values[i] > 0)
    .map((i) => `${rows[Math.floor(i / wide)][0]} × ${columns[i % wide][0]} ${text(units[i])}`);
  const [largest, ends] = [Math.max(...values.map(Math.abs)) || 1, pass.scales.scores];
  const sums = { rows: rows.map((_, i) => total(units.slice(i * wide, (i + 1) * wide))), columns: columns.map((_, j) => total(units.filter((_one, i) => i % wide === j))) };
  const sum = (one) => element("td", { className: "sum", textContent: text(one) });
  const cells = (from) => units.slice(from, from + wide).map((one, i) => {
    const found = element("td", { textContent: text(one) });
    const share = values[from + i] / largest;
    found.style.cssText = `--sign: ${ends.at(share > 0 ? -1 : 0)[1]}; --share: ${Math.round(60 * Math.abs(share))}%`;
    return found;
  });
  summary.textContent = `${said}${most.length ? `; most comes from ${most.join(" and ")}` : ""}.`;
  details.replaceChildren("Rows: parts of the query’s stream; columns: parts of the key’s. All cells add up to the score.",
    element("div", { className: "hl-wide", tabIndex: 0, role: "group", ariaLabel: "Parts of the score" }, element("table", {},
      element("tr", {}, element("td"), ...columns.map(([name]) => element("th", { scope: "col", textContent: name })), element("th", { scope: "col", textContent: "sum" })),
      ...rows.map(([name], i) => element("tr", {}, element("th", { scope: "row", textContent: name }), ...cells(i * wide), sum(sums.rows[i]))),
      element("tr", {}, element("th", { scope: "row", textContent: "sum" }), ...sums.columns.map(sum), sum(total(units))))));
}
