// The maps of one step as pictures for Plotly: one large head, and all heads as tiles.

import { upTo } from "./chunks.js";
import { counted } from "./control.js";

const MAX_WRONG_TOKEN_LETTERS = 7; // maximum letters of a wrong token beside its row

// The role of each head at a step, by site.
export const rolesAt = (segment, step) => (step === segment.from ? segment.roles : segment.later);

// The head of one kind of attention that is shown large at a step: the pinned head, or the one that the index names.
export function largeHead(index, kind, pinned, step) {
  const [site, head] = pinned ?? [];
  return index.kinds[kind].sites.includes(site) && head < index.heads[site].length ? pinned : upTo(index.segments, step).large[kind];
}

// shown: data to draw, {index, maps, segment, step, kind, site, head}; hidden: a row that was not sent yet.
export function largePicture({ index, maps, segment, step, kind, site, head, hidden }, { outline, isFullscreen, fileName, run, when = `step ${counted(step)}` }) {
  const look = maps.look.kinds[kind];
  const { weights, taken } = maps.large(site, head, look.causal);
  if (hidden !== undefined) weights[hidden].fill(null);
  const arrays = { "0.z": weights };
  if (look.taken) arrays[`${look.causal ? 2 : 1}.z`] = taken;
  const name = index.heads[site][head], role = rolesAt(segment, step)[site][head];
  const word = `“${maps.look.short}”`;
  const about = run ? [name, when, role] : isFullscreen ? [when, role, index.own && word] : [when, role, word, !index.own && `seed ${index.seed}`, maps.look.fed];
  const text = about.filter(Boolean).join(" · ");
  const gold = outline ? look.gold : [];
  return {
    spec: look.large,
    arrays,
    layout: {
      "title.text": `<b>${run ?? name}</b>${isFullscreen && !run && !index.own ? ` · ${word}` : ""}<br><span style='font-size:${isFullscreen ? 1 : 0.8}em'>${text}</span>`,
      "yaxis2.ticktext": look.rows.map((_, i) => (i === hidden ? "<b>?</b>" : look.writes && i in maps.wrong ? `<b>✗</b> ${short(maps.wrong[i])}` : "")),
      shapes: gold.map(([row, column]) => ({
        type: "rect", x0: column - 0.5, x1: column + 0.5, y0: row - 0.5, y1: row + 0.5,
        line: { color: index.colors.outline, width: 2 },
      })),
    },
    step,
    hatched: maps.isOff(site, head) ? [maps.box(site)] : [],
    alternative: `${run ? `${run}, ` : ""}${name}, ${when}: ${strongest(weights, look)}`,
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

// Heads with a clear role have a frame; the head that is shown large has a thicker one.
export function stripPicture({ index, maps, segment, step, kind, site, head, hidden }, { fileName }) {
  const look = maps.look.kinds[kind];
  const { sites } = index.kinds[kind];
  const { weights, blocked } = maps.tiles(sites, look.causal);
  if (hidden !== undefined) maps.rowsOf(sites[0], hidden).forEach((row) => weights[row].fill(null));
  const layout = {};
  const hatched = [];
  for (let number = 0; number < maps.heads(sites[0]); number += 1) {
    sites.forEach((one, layer) => {
      const width = one === site && number === head ? 4 : segment.lit[one]?.[number] ? 2 : 0;
      layout[`shapes[${number * sites.length + layer}].line.width`] = width;
      if (maps.isOff(one, number)) hatched.push(maps.box(one, layer, number));
    });
  }
  return {
    alternative: `All heads, a column a layer and a row a head; large: ${index.heads[site][head]}. `
      + "Arrow keys choose one, Enter lets it go.",
    spec: look.strip, arrays: { "0.z": weights, "1.z": blocked }, layout, step, hatched,
    fileName: `${fileName}-${maps.chunk.word}-step${step}-${kind}`,
  };
}
