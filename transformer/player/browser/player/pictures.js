// The maps of one step as pictures for `MapView`: one large head, and all heads side by side.

import { upTo } from "../shared/chunks.js";
import { percent } from "../shared/element.js";
import { counted } from "./control.js";
import { FOOT_OF_PATCHES, patchTable, ratioOf, saysOfPatch, toldOf } from "./patches.js";

export const FUTURE = 1; // code of a cell that the causal mask blocks, as in transformer/shared/attention_info.py
const MAX_WRONG_TOKEN_LETTERS = 7; // maximum letters of a wrong token beside its row
const EVERYWHERE = 0.3; // a map whose highest weight is below this looks everywhere
const STAYS = 0.95; // share of the highest weight above which the cell of the callout stays the same


// The table of one head for `paint`. hidden: a row that was not sent yet; frames: as in `paint`.
function tableOf(maps, site, head, look, { row = 0, column = 0, hidden, frames, corner }) {
  const [, high, wide] = maps.chunk.sites[site];
  return {
    row, column, high, wide, frames, corner, site, head, off: maps.isOff(site, head),
    value: (i, j) => (i === hidden ? undefined : maps.cell(site, head, i, j)),
    code: (i, j) => (i !== hidden && maps.cell(site, head, i, j) === null ? (look.causal && j > i ? FUTURE : look.blocked) : 0),
  };
}

// What a cell shows, in words.
function saysOf({ rows, columns, spans }, colors, { value, code }, row, column) {
  const named = (labels, of, i) => (of[i] ? `${labels[i]} <small>${of[i]}</small>` : labels[i]);
  const [from, to] = [named(rows, spans.rows, row), named(columns, spans.columns, column)];
  const reason = code(row, column), weight = reason ? 0 : value(row, column);
  if (weight === undefined) return "";
  return reason ? `${from} may not look at ${to}<br>${colors.blocked[reason][2]}` : `${from} · looks at ${to}<br><b>${percent(weight)}</b>`;
}

// The [site, head] of one kind of attention that is shown large at a step: the pinned head if it is of this kind, else the
// one that the index names.
export function largeHead(index, kind, pinned, step) {
  const [site, head] = pinned ?? [];
  return index.kinds[kind].sites.includes(site) && head < index.heads[site].length ? pinned : upTo(index.segments, step).large[kind];
}

// shown: data to draw, {index, maps, segment, step, kind, site, head}, and where there are any: hidden, a row still to be
// guessed; patched, query: the picture over which the row of a query is drawn, and this query.
// how: {outline, fileName, before, run, when}: whether gold cells are outlined; the start of the name of a saved picture; the
// cell of the last callout; the name of a run in a race; the moment, if it is not the step beside the headline.
export function largePicture(shown, how) {
  const table = shown.patched ? patchTable({ ...shown, outline: shown.index.colors.outline }) : null;
  return table ? overPicture(shown, table, how) : mapPicture(shown, how);
}

// The row of one query over the picture that its keys are patches of.
function overPicture({ index, maps, segment, step, kind, site, head, patched, query }, table, { fileName }) {
  const look = maps.look.kinds[kind], name = index.heads[site][head], told = toldOf(patched, look, query, table);
  return {
    tables: [table], scale: index.colors.weights, ratio: ratioOf(patched), name,
    about: `<span class="role">${segment.roles[site][head]} · </span>${told}`,
    details: [maps.look.heading, `step ${counted(step)}`, ...(patched.pooled > 1 ? [`${patched.pooled} tokens a cell`] : [])],
    foot: worthOf(segment.worth, site, head, step) + FOOT_OF_PATCHES,
    says: (_, row, column) => saysOfPatch(patched, look, query, table, row, column),
    step, alternative: `${name}, step ${counted(step)}: ${told}`, data: { site, head, query },
    fileName: `${fileName}-${maps.chunk.word}-step${step}-${site}-head${head + 1}-query${query + 1}`,
  };
}

function mapPicture({ index, maps, segment, step, kind, site, head, hidden }, { outline, fileName, run, when, before }) {
  const look = maps.look.kinds[kind], { colors } = index;
  const name = index.heads[site][head], role = segment.roles[site][head];
  const mean = maps.look.mean && maps.look.heading;
  const callout = calloutOf(maps.weights(site, head), look, { before, hidden, wrong: maps.wrong });
  const frames = outline ? look.gold.map(([row, column]) => [row, column, 1, 1, colors.outline, 2]) : [];
  if (callout.cell && !run) frames.push(...colors.callout.map((color, i) => [...callout.cell, 1, 1, color, 4 - 2 * i]));
  const table = tableOf(maps, site, head, look, { hidden, frames });
  return {
    tables: [table], scale: colors.weights, blocked: colors.blocked, legend: colors.legend,
    name: run ?? name, about: run ? [name, mean, when, role].filter(Boolean).join(" · ") : `<span class="role">${role} · </span>${[mean, callout.text].filter(Boolean).join(" · ")}`,
    details: [maps.look.heading, `step ${counted(step)}`, ...(index.own ? [] : [`seed ${index.seed}`]), FED[maps.look.fed] ?? maps.look.fed],
    rows: look.rows, columns: look.columns, rowTitle: look.rowTitle, columnTitle: look.columnTitle, callout: callout.cell,
    foot: run ? "" : worthOf(segment.worth, site, head, step) + FOOT + (index.own ? "" : ENDS) + (look.writes && !maps.look.mean ? meaningOfMarks(maps.wrong) : ""),
    marks: look.writes || hidden !== undefined ? look.rows.map((_, i) => (i === hidden ? "<b>?</b>" : i in maps.wrong ? `<b>✗</b> ${short(maps.wrong[i], index.token)}` : "")) : undefined,
    says: (_, row, column) => saysOf(look, colors, table, row, column),
    step,
    alternative: `${run ? `${run}, ` : ""}${name}, ${when ?? `step ${counted(step)}`}: ${callout.text}`,
    data: { site, head },
    fileName: `${fileName}-${maps.chunk.word}-step${step}-${site}-head${head + 1}`,
  };
}

// What ✗ beside a row means; invisible if no row has one, so that the picture keeps its size.
function meaningOfMarks(wrong) {
  return `<span${Object.keys(wrong).length ? "" : ' style="visibility: hidden"'}> ✗: what it would write instead.</span>`;
}

// What a head of an own model is worth, where that is measured.
function worthOf(worth, site, head, step) {
  const change = worth?.changes[site]?.[head];
  const when = worth?.step === step ? "" : ` (at step ${counted(worth?.step ?? 0)})`;
  return change ? `<b>Without this head, ${worth.name} is ${change}${when}.</b> ` : "";
}

// A wrong token: after "writes" if it is a letter, cut short if it is long, for want of room.
const short = (token, noun) => (noun === "letter" && token.length < 3 ? `<i>writes</i> ${token}` : token.length > MAX_WRONG_TOKEN_LETTERS && !token.includes("&") ? `${token.slice(0, MAX_WRONG_TOKEN_LETTERS - 1)}…` : token);

// The [row, column] of the highest weight; [0, 0] if no weight is above 0. rows: returns whether a row counts.
export function strongestCell(weights, rows = () => true) {
  let found = null;
  weights.forEach((cells, i) => rows(i) && cells.forEach((weight, j) => {
    if (weight > (found ? weights[found[0]][found[1]] : 0)) found = [i, j];
  }));
  return found ?? [0, 0];
}

const FOOT = "Brighter: more attention (the scale is finer below 25%); rows add up to 100%.";
const ENDS = " [SOS], [EOS]: start, end.";
const special = (token) => token.length > 1 && token.startsWith("[");
const PLACE = /^(letter|output) \d+$/; // of a mean map
const quoted = (token) => (special(token) || PLACE.test(token) ? token : `“${token}”`);
// Names of what a map is computed from, with the field's term.
const FED = { "teacher-forced": "given the right answer so far (teacher-forced)", "free-running": "over its own output (free-running)" };

// The strongest cell of a map in words: {text, cell}; no cell if every weight is below EVERYWHERE. Rows of letters that may
// look at more than one token go first. before: the cell of the last callout, perhaps of a longer word, which stays while it
// is nearly the strongest; hidden: a row that is to be guessed, and not told.
function calloutOf(weights, { rows, to, columns }, { before, hidden, wrong }) {
  const told = (i) => i < weights.length && i !== hidden;
  const many = (i) => told(i) && weights[i].filter((weight) => weight !== null).length > 1;
  const letter = (i) => many(i) && !special(to.length ? to[i] || "[]" : rows[i]);
  const share = ([row, column]) => weights[row]?.[column] ?? 0;
  let cell;
  for (const counts of [letter, many, told]) {
    cell = strongestCell(weights, counts);
    if (share(cell) >= EVERYWHERE) break;
  }
  if (share(cell) < EVERYWHERE) return { text: `It looks in many places: at most ${percent(share(cell))} in one cell.` };
  const [row, column] = before && letter(before[0]) && share(before) > STAYS * share(cell) ? before : cell;
  const what = quoted(to[row] || rows[row]);
  const who = !to[row] ? `For ${what}` : row in wrong ? `Where ${what} is due` : `To write ${what}`;
  return { text: `${who}, it looks at ${quoted(columns[column])}: ${percent(weights[row][column])}.`, cell: [row, column] };
}

// The (layer, head) that an arrow key leads to among all heads; null for any other key.
export function neighbour([layer, head], key, layers, heads) {
  const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [];
  if (across === undefined) return null;
  const within = (place, n) => Math.min(n - 1, Math.max(0, place));
  return [within(layer + across, layers), within(head + down, heads)];
}

const MANY_LAYERS = 4, MANY_HEADS = 6; // more are named by their numbers alone

// The maps of all heads of a kind. Heads whose target score reaches the threshold have a frame, the head that is shown large
// has a thicker one; a corner marks the heads of an own model that are needed most.
export function stripPicture({ index, maps, segment, step, kind, site, head, hidden, patched, query }, { fileName }) {
  const look = maps.look.kinds[kind], { colors } = index, { sites } = index.kinds[kind];
  const [high, wide] = patched?.grid ?? maps.chunk.sites[sites[0]].slice(1);
  const heads = Math.max(...sites.map((one) => maps.chunk.sites[one][0]));
  const numbers = Array.from({ length: heads }, (_, number) => number);
  const needed = new Set(segment.worth?.needed.map(([one, number]) => `${one}.${number}`));
  const has = (one, number) => number < maps.chunk.sites[one][0];
  const tables = numbers.flatMap((number) => sites.flatMap((one, layer) => {
    if (!has(one, number)) return [];
    const width = one === site && number === head ? 4 : segment.lit[one]?.[number] ? 2 : 0;
    const place = {
      row: number * (high + 1), column: layer * (wide + 1), corner: needed.has(`${one}.${number}`) ? colors.needed : null,
      frames: width ? [[0, 0, high, wide, colors.outline, width]] : [],
    };
    return patched ? patchTable({ patched, maps, site: one, head: number, query, ...place }) : tableOf(maps, one, number, look, { ...place, hidden });
  }));
  return {
    tables, scale: colors.weights, blocked: colors.blocked, ratio: patched && ratioOf(patched), content: [maps.chunk, step, kind, hidden, patched, query],
    layers: look.layers.map((name) => (sites.length > MANY_LAYERS ? name : `layer ${name}`)),
    heads: numbers.map((number) => (heads > MANY_HEADS ? `${number + 1}` : `head ${number + 1}`)),
    says: (at, row, column) => {
      const { site: one, head: number } = tables[at];
      const said = patched ? saysOfPatch(patched, look, query, tables[at], row, column) : saysOf(look, colors, tables[at], row, column);
      return [`<b>${index.heads[one][number]}</b>`, said, worthOf(segment.worth, one, number, step)].filter(Boolean).join("<br>");
    },
    alternative: `All heads, a column a layer and a row a head; large: ${index.heads[site][head]}. `
      + "Arrow keys choose one, Enter lets it go.",
    foot: `Thin frame: clear. Thick: shown large.${needed.size ? ` Corner: without it, ${segment.worth.name} changes most.` : ""}`,
    step, fileName: `${fileName}-${maps.chunk.word}-step${step}-${kind}`,
  };
}
