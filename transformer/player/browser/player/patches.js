// The maps of a model that looks at a picture: the weights of one query over the patches of the picture.

import { element, percent } from "../shared/element.js";

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const canvases = new WeakMap();

// The picture of a patched axis as a canvas.
function canvasOf(patched) {
  if (!canvases.has(patched)) {
    const { width, height, pixels } = patched, image = new ImageData(width, height);
    const bytes = bytesOf(pixels);
    for (let i = 0; i < width * height; i += 1) image.data.set([bytes[3 * i], bytes[3 * i + 1], bytes[3 * i + 2], 255], 4 * i);
    const canvas = element("canvas", { width, height });
    canvas.getContext("2d").putImageData(image, 0, 0);
    canvases.set(patched, canvas);
  }
  return canvases.get(patched);
}

// The picture whose patches the keys of a kind of attention are, if there is one.
export const patchedOf = (index, word, kind) => index.pictures?.[word]?.[kind];

// The cell of a map that a patch belongs to.
const cellOf = ({ before, grid, pooled }, row, column) => Math.floor((before + row * grid[1] + column) / pooled);

// The query whose weights are drawn: the chosen one, else the usual one.
export const queryOf = (patched, maps, site, query) => (query !== null && query < maps.chunk.sites[site][1] ? query : patched.query);

// The query of a patch under the pointer; null where queries are no patches.
export const queryAt = (patched, row, column) => (patched.asks ? cellOf(patched, row, column) : null);

// The weights of a query on each patch: the weight of a cell is shared by its tokens. shares: by patch; most: the highest;
// inside: their sum.
function overPatches(patched, maps, site, head, query) {
  const { grid: [rows, columns], pooled, tokens } = patched, shares = [];
  for (let i = 0; i < rows; i += 1) {
    for (let j = 0; j < columns; j += 1) {
      const cell = cellOf(patched, i, j);
      shares.push((maps.cell(site, head, query, cell) ?? 0) / Math.min(pooled, tokens - cell * pooled));
    }
  }
  return { shares, most: Math.max(...shares), inside: shares.reduce((sum, one) => sum + one, 0) };
}

// The table of one head for `paint`: a picture whose patches are as bright as their weight, as a share of the highest.
export function patchTable({ patched, maps, site, head, query, outline, row = 0, column = 0, frames = [], corner }) {
  const [high, wide] = patched.grid, { shares, most, inside } = overPatches(patched, maps, site, head, query);
  const own = frames.slice();
  if (patched.asks && outline) {
    for (let i = 0; i < high; i += 1) for (let j = 0; j < wide; j += 1) if (cellOf(patched, i, j) === query) own.push([i, j, 1, 1, outline, 3]);
  }
  return {
    row, column, high, wide, frames: own, corner, site, head, off: maps.isOff(site, head), image: canvasOf(patched), most, inside,
    value: (i, j) => shares[i * wide + j] / Math.max(most, 1e-9), share: (i, j) => shares[i * wide + j],
  };
}

// A query in words.
const named = ({ asks, before, grid, pooled }, look, query) => (asks && pooled === 1 && query >= before && query < before + grid[0] * grid[1] ? `Patch ${look.rows[query]}` : look.rows[query]);

// How much a query looks at a patch, in words.
export function saysOfPatch(patched, look, query, table, row, column) {
  return `${named(patched, look, query)} looks at patch ${row + 1},${column + 1}<br><b>${percent(table.share(row, column), true)}</b>`;
}

// At which patch a query looks most, and how much of its weight is not on the picture, in words.
export function toldOf(patched, look, query, { most, inside, wide, high, value }) {
  if (!most) return `${named(patched, look, query)} does not look at the picture.`;
  let place = "";
  for (let i = 0; i < high && !place; i += 1) for (let j = 0; j < wide; j += 1) if (value(i, j) === 1) { place = `${i + 1},${j + 1}`; break; }
  const rest = 1 - inside > 0.005 ? `; ${percent(1 - inside, true)} is not on the picture` : "";
  return `${named(patched, look, query)} looks most at patch ${place}: ${percent(most, true)}${rest}.`;
}

export const FOOT_OF_PATCHES = "Brighter: more attention; each head up to its brightest patch. Point at a patch to see where it looks.";

// Width of a patch per height.
export const ratioOf = ({ width, height, grid: [rows, columns] }) => (width / columns) / (height / rows);
