// One forward pass as packed by the server (transformer/anatomy/boxes.py): its tables, their colours, and which cells
// are connected.

import { parted } from "../shared/chunks.js";
import { paint } from "../shared/painter.js";

// numbersOf: returns the numbers after the line of JSON
export function unpacked(bytes, numbersOf = (body) => new Float32Array(body)) {
  const [pass, body] = parted(bytes);
  const numbers = numbersOf(body);
  let at = 0;
  pass.boxes.forEach((box, order) => {
    Object.assign(box, { order, of: {} });
    for (const table of box.tables) {
      const size = table.shape.reduce((a, b) => a * b);
      const [high, wide] = table.shape.slice(-2);
      const heads = table.shape.length > 2 ? table.shape[0] : 0;
      Object.assign(table, { high, wide, heads, values: numbers.subarray(at, at + size) });
      box.of[table.key] = table;
      at += size;
    }
  });
  pass.of = Object.fromEntries(pass.boxes.map((box) => [box.name, box]));
  return pass;
}

// The numbers of an exported page, which have few digits (`rounded` in transformer/exports/page.py).
export function rounded(body) {
  const [bytes, exponents, n] = [new Uint8Array(body), new Int8Array(body, (2 * body.byteLength) / 3), body.byteLength / 3];
  return Float32Array.from(exponents, (exponent, i) => ((bytes[i] | (bytes[n + i] << 8)) - 10_000) * 10 ** exponent);
}

export const cellOf = (table, head, row, column) => (
  table.values[((table.heads ? head : 0) * table.high + row) * table.wide + column]);

// The code for why a cell is blocked; 0 if it is open or its table has no mask.
export const codeOf = (box, table, head, row, column) => (table.coded ? cellOf(box.of.mask, head, row, column) : 0);

export const isShare = (table) => table.role === "weights" || table.role === "probabilities";

// The end of a table's colour scale: 1 for shares, else the largest absolute value of this head, or 1 if all are 0.
export function endOf(table, head) {
  if (isShare(table)) return 1;
  const size = table.high * table.wide;
  const from = table.heads ? head * size : 0;
  let end = 0;
  for (let i = from; i < from + size; i += 1) end = Math.max(end, Math.abs(table.values[i]));
  return end || 1;
}

const INNER = 9; // pixels of a cell that may be blocked, with room for its mark

// Draw cells into a canvas, which the page scales. value(row, column): 0 to 1; code(row, column): why it is blocked.
export function paintCells(canvas, [high, wide], scale, value, blocked, code) {
  const inner = code ? INNER : 1;
  paint(canvas, [{ row: 0, column: 0, high, wide, value, code }], [inner, inner], { scale, blocked });
}

export function paintTable(canvas, pass, box, table, head) {
  const end = endOf(table, head);
  const value = isShare(table) ? (row, column) => cellOf(table, head, row, column)
    : (row, column) => 0.5 + cellOf(table, head, row, column) / (2 * end);
  const code = table.coded && ((row, column) => codeOf(box, table, head, row, column));
  paintCells(canvas, [table.high, table.wide], pass.scales[table.role], value, pass.blocked, code);
}

// The number of a cell in words, or why the cell is blocked.
export function said(pass, box, table, head, row, column) {
  const code = codeOf(box, table, head, row, column);
  if (code) return pass.blocked[code][2];
  const value = cellOf(table, head, row, column);
  if (table.role === "mask") return "may be read";
  if (table.role === "ids") return String(value);
  return isShare(table) ? `${(100 * value).toFixed(1)}%` : String(Number(value.toPrecision(4))).replace("-", "−");
}

// The name of the i-th row or column of a table.
export function label(pass, box, axis, i) {
  if (axis === "key") return `“${pass.tokens[box.keySide][i]}”`;
  if (axis === "token") return `“${pass.vocabulary[i]}”`;
  if (pass.tokens[axis]) return `“${pass.rows[axis][i]}”`;
  return axis && `${axis} ${i + 1}`;
}

const READ = ["stream", "input", "memory"]; // tables of an attention whose rows may become keys and values
const SCORED = ["query", "key", "scores", "scale", "mask", "masked"];
const APART = { value: SCORED, key: ["value"] }; // table: tables without a connection to it

// Keys of the tables of a box from which one table is made, directly or indirectly.
function sources(box, key, found = new Set()) {
  for (const one of box.of[key].madeOf) if (!found.has(one)) sources(box, one, found.add(one));
  return found;
}

// The inputs and the uses of a cell: for each box of a pass the rows and columns to highlight, by axis;
// `way(key)`: "" if that table of the box is an input of the cell, "into" if it uses the cell, "beside" if neither;
// `read`: the rows to highlight in the stream that the box of the cell reads; `apart`: tables without a connection to the
// cell.
export function together(pass, { box: name, table: key, head, row, column }) {
  const home = pass.of[name];
  const table = home.of[key];
  const own = {};
  const add = (axes, axis, i) => { if (axis && i !== undefined) (axes[axis] ??= new Set()).add(i); };
  add(own, table.rows, row);
  add(own, table.columns, column);
  const alone = home.keySide === home.side; // self-attention
  if (home.kind === "attention" && READ.includes(key)) add(own, "key", key === "memory" || alone ? row : undefined);
  const values = home.of.value?.wide;
  if (key === "mixed") add(own, "joined feature", head * values + column);
  if (key === "joined") add(own, "value feature", Math.floor(column / values) === head ? column % values : undefined);
  const at = [...own[home.side] ?? []];
  const keys = [...own.key ?? []];
  return Object.fromEntries(pass.boxes.map((box) => {
    if (box === home) {
      const made = sources(home, key);
      return [box.name, {
        ...own, read: alone ? new Set([...at, ...keys]) : new Set(at), apart: APART[key] ?? [],
        way: (one) => (made.has(one) ? "" : sources(home, one).has(key) ? "into" : "beside"),
      }];
    }
    const later = box.order > home.order;
    const axes = { way: () => (later ? "into" : ""), apart: [] };
    if (box.side === home.side) for (const i of [...at, ...(alone && box.order < home.order ? keys : [])]) add(axes, box.side, i);
    else if (home.keySide === box.side) keys.forEach((i) => add(axes, box.side, i));
    else if (box.keySide === home.side) at.forEach((i) => add(axes, "key", i));
    return [box.name, axes];
  }));
}

// Unpack the changes by one step: a line of JSON, followed by the weights of every attention, and the probabilities, after
// the step.
export function unpackedChange(bytes, pass) {
  const [change, body] = parted(bytes);
  const numbers = new Float32Array(body);
  let at = 0;
  Object.assign(change, { maps: {}, most: 1e-6 });
  for (const [site, size] of Object.entries(change.sites)) {
    const [after, before] = [numbers.subarray(at, at + size), pass.of[site]?.of.weights.values ?? []];
    change.maps[site] = after;
    for (let i = 0; i < size; i += 1) change.most = Math.max(change.most, Math.abs(after[i] - (before[i] ?? after[i])));
    at += size;
  }
  return change;
}
