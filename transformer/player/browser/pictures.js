// The maps of one step as pictures for `MapView`: one large head, and all heads side by side.

import { upTo } from "./chunks.js";
import { counted } from "./control.js";

export const [FUTURE, BY_HAND] = [1, 4]; // codes of blocked cells, as in transformer/axes.py
const MAX_WRONG_TOKEN_LETTERS = 7; // maximum letters of a wrong token beside its row

// The role of each head at a step, by site.
export const rolesAt = (segment, step) => (step === segment.from ? segment.roles : segment.later);

const percent = (weight) => `${Math.round(100 * weight)}%`;

// The table of one head for `paint`. hidden: a row that was not sent yet; frames: as in `paint`.
function tableOf(maps, site, head, look, { row = 0, column = 0, hidden, frames }) {
  const [, high, wide] = maps.chunk.sites[site];
  return {
    row, column, high, wide, frames, site, head, off: maps.isOff(site, head),
    value: (i, j) => (i === hidden ? undefined : maps.cell(site, head, i, j)),
    code: (i, j) => (i !== hidden && maps.cell(site, head, i, j) === null ? (look.causal && j > i ? FUTURE : BY_HAND) : 0),
  };
}

// What a cell shows, in words.
function saysOf({ rows, columns }, colors, { value, code }, row, column) {
  const reason = code(row, column), weight = reason ? 0 : value(row, column);
  if (weight === undefined) return "";
  return reason ? `${rows[row]} may not look at ${columns[column]}<br>${colors.blocked[reason][2]}` : `${rows[row]} · looks at ${columns[column]}<br><b>${percent(weight)}</b>`;
}

// The head of one kind of attention that is shown large at a step: the pinned head, or the one that the index names.
export function largeHead(index, kind, pinned, step) {
  const [site, head] = pinned ?? [];
  return index.kinds[kind].sites.includes(site) && head < index.heads[site].length ? pinned : upTo(index.segments, step).large[kind];
}

// shown: data to draw, {index, maps, segment, step, kind, site, head}; hidden: a row that was not sent yet.
export function largePicture({ index, maps, segment, step, kind, site, head, hidden }, { outline, isFullscreen, fileName, run, when = `step ${counted(step)}` }) {
  const look = maps.look.kinds[kind], { colors } = index;
  const name = index.heads[site][head], role = rolesAt(segment, step)[site][head];
  const word = `“${maps.look.short}”`;
  const about = run ? [name, when, role] : [when, role, (index.own || !isFullscreen) && word, !index.own && !isFullscreen && `seed ${index.seed}`, !isFullscreen && maps.look.fed];
  const frames = outline ? look.gold.map(([row, column]) => [row, column, 1, 1, colors.outline, 2]) : [];
  const table = tableOf(maps, site, head, look, { hidden, frames });
  return {
    tables: [table], scale: colors.weights, blocked: colors.blocked, legend: colors.legend,
    name: run ?? name, about: about.filter(Boolean).join(" · "), axes: `rows: ${look.rowTitle}<br>columns: ${look.columnTitle}`,
    rows: look.rows, columns: look.columns,
    marks: look.writes || hidden !== undefined ? look.rows.map((_, i) => (i === hidden ? "<b>?</b>" : i in maps.wrong ? `<b>✗</b> ${short(maps.wrong[i])}` : "")) : undefined,
    says: (_, row, column) => saysOf(look, colors, table, row, column),
    step,
    alternative: `${run ? `${run}, ` : ""}${name}, ${when}: ${strongest(maps.weights(site, head), look)}`,
    data: { site, head },
    fileName: `${fileName}-${maps.chunk.word}-step${step}-${site}-head${head + 1}`,
  };
}

const short = (token) => (token.length > MAX_WRONG_TOKEN_LETTERS && !token.includes("&") ? `${token.slice(0, MAX_WRONG_TOKEN_LETTERS - 1)}…` : token);

// The [row, column] of the highest weight.
export function strongestCell(weights) {
  let [row, column] = [0, 0];
  weights.forEach((cells, i) => cells.forEach((weight, j) => {
    if (weight > (weights[row][column] ?? 0)) [row, column] = [i, j];
  }));
  return [row, column];
}

// The cell of the highest weight in words, for screen readers.
function strongest(weights, { rows, columns }) {
  const [row, column] = strongestCell(weights);
  const share = Math.round(100 * (weights[row][column] ?? 0));
  return `strongest cell, row ${row + 1} (${rows[row]}), column ${column + 1} (${columns[column]}), ${share}%`;
}

// The (layer, head) that an arrow key leads to among all heads; null for any other key.
export function neighbour([layer, head], key, layers, heads) {
  const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [];
  if (across === undefined) return null;
  const within = (place, n) => Math.min(n - 1, Math.max(0, place));
  return [within(layer + across, layers), within(head + down, heads)];
}

const MANY_LAYERS = 4, MANY_HEADS = 6; // more are named by their numbers alone

// Heads with a clear role have a frame; the head that is shown large has a thicker one.
export function stripPicture({ index, maps, segment, step, kind, site, head, hidden }, { fileName }) {
  const look = maps.look.kinds[kind], { colors } = index, { sites } = index.kinds[kind];
  const [heads, high, wide] = maps.chunk.sites[sites[0]];
  const numbers = Array.from({ length: heads }, (_, number) => number);
  const tables = numbers.flatMap((number) => sites.map((one, layer) => {
    const width = one === site && number === head ? 4 : segment.lit[one]?.[number] ? 2 : 0;
    return tableOf(maps, one, number, look, {
      row: number * (high + 1), column: layer * (wide + 1), hidden, frames: width ? [[0, 0, high, wide, colors.outline, width]] : [],
    });
  }));
  return {
    tables, scale: colors.weights, blocked: colors.blocked,
    layers: look.layers.map((name) => (sites.length > MANY_LAYERS ? name : `layer ${name}`)),
    heads: numbers.map((number) => (heads > MANY_HEADS ? `${number + 1}` : `head ${number + 1}`)),
    says: (at, row, column) => {
      const { site: one, head: number } = tables[at];
      return `<b>${index.heads[one][number]}</b><br>${saysOf(look, colors, tables[at], row, column)}`;
    },
    alternative: `All heads, a column a layer and a row a head; large: ${index.heads[site][head]}. `
      + "Arrow keys choose one, Enter lets it go.",
    step, fileName: `${fileName}-${maps.chunk.word}-step${step}-${kind}`,
  };
}
