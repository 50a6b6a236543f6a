// The maps of a word over some steps, as packed by the server (transformer/player/chunks.py), and the tiles and
// cells made from them.

export const ONE = 65534;
export const BLOCKED = 65535;
export const GAP = 1; // cells between two tiles

// Split bytes into a line of JSON and a copy of the bytes after it.
export function parted(bytes) {
  const end = bytes.indexOf(10);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), bytes.slice(end + 1).buffer];
}

// Decode a line of JSON, followed by (N, H, Q, K) codes of each site: differences from step to step after the first.
export function decoded(bytes) {
  const [chunk, body] = parted(bytes);
  const numbers = new Uint16Array(body);
  const n = chunk.steps.length;
  let at = 0;
  chunk.codes = {};
  for (const [site, shape] of Object.entries(chunk.sites)) {
    const size = shape.reduce((a, b) => a * b);
    const codes = numbers.subarray(at, at + n * size);
    for (let i = size; i < codes.length; i += 1) codes[i] += codes[i - size]; // modulo 65,536
    chunk.codes[site] = codes;
    at += n * size;
  }
  return chunk;
}

// The maps of one word at one step.
export class Maps {
  constructor(chunk, look, step) {
    Object.assign(this, { chunk, look, step, place: chunk.steps.indexOf(step) });
  }

  get wrong() {
    return this.chunk.wrong[this.place] ?? {};
  }

  heads(site) {
    return this.chunk.sites[site][0];
  }

  // The weight of a cell; null if it is blocked.
  cell(site, head, row, column) {
    const [heads, rows, columns] = this.chunk.sites[site];
    const code = this.chunk.codes[site][((this.place * heads + head) * rows + row) * columns + column];
    return code === BLOCKED ? null : code / ONE;
  }

  // The weights of one head as rows, and the cells blocked by hand (1; null elsewhere).
  large(site, head, causal) {
    const [, rows, columns] = this.chunk.sites[site];
    const weights = [];
    const taken = [];
    for (let row = 0; row < rows; row += 1) {
      const found = Array.from({ length: columns }, (_, column) => this.cell(site, head, row, column));
      weights.push(found);
      taken.push(found.map((weight, column) => (weight === null && !(causal && column > row) ? 1 : null)));
    }
    return { weights, taken };
  }

  // All heads of these sites as tiles: a column per site, a row per head; and blocked cells: 0 future, 1 by hand.
  tiles(sites, causal) {
    const [heads, rows, columns] = this.chunk.sites[sites[0]];
    const high = heads * (rows + GAP) - GAP;
    const wide = sites.length * (columns + GAP) - GAP;
    const weights = Array.from({ length: high }, () => new Array(wide).fill(null));
    const blocked = Array.from({ length: high }, () => new Array(wide).fill(null));
    sites.forEach((site, layer) => {
      const codes = this.chunk.codes[site];
      let i = this.place * heads * rows * columns;
      for (let head = 0; head < heads; head += 1) {
        for (let row = 0; row < rows; row += 1) {
          const y = head * (rows + GAP) + row;
          for (let column = 0; column < columns; column += 1, i += 1) {
            const x = layer * (columns + GAP) + column;
            if (codes[i] !== BLOCKED) weights[y][x] = codes[i] / ONE;
            else blocked[y][x] = causal && column > row ? 0 : 1;
          }
        }
      }
    });
    return { weights, blocked };
  }

  // The rows among the tiles that show one row of every head.
  rowsOf(site, row) {
    const [heads, rows] = this.chunk.sites[site];
    return Array.from({ length: heads }, (_, head) => head * (rows + GAP) + row);
  }

  // The rectangle of one map on the axes, alone or as a tile: [x0, x1, y0, y1].
  box(site, layer = 0, head = 0) {
    const [, rows, columns] = this.chunk.sites[site];
    const [x, y] = [layer * (columns + GAP) - 0.5, head * (rows + GAP) - 0.5];
    return [x, x + columns, y, y + rows];
  }

  isOff(site, head) {
    return this.look.off.some(([one, number]) => one === site && number === head);
  }

  // The head and the layer of the tile that contains a cell; null between tiles.
  tileAt(site, [y, x]) {
    const [, rows, columns] = this.chunk.sites[site];
    const inside = y >= 0 && x >= 0 && y % (rows + GAP) < rows && x % (columns + GAP) < columns;
    return inside ? { head: Math.floor(y / (rows + GAP)), layer: Math.floor(x / (columns + GAP)) } : null;
  }
}

// The index of the nearest of ascending steps; the earlier of two equally near ones.
export function nearest(steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - steps[low - 1] <= steps[low] - step ? low - 1 : low;
}

// The last of ascending entries that begins at or before a step; else the first entry.
export function upTo(entries, step, of = (entry) => entry.from) {
  let found = entries[0];
  for (let low = 0, high = entries.length - 1; low <= high;) {
    const middle = (low + high) >> 1;
    if (of(entries[middle]) <= step) {
      found = entries[middle];
      low = middle + 1;
    } else high = middle - 1;
  }
  return found;
}
