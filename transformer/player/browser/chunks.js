// The maps of a word over some steps, as packed by the server (transformer/player/chunks.py).

export const ONE = 65534;
export const BLOCKED = 65535;

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

  // The weights of one head as rows.
  weights(site, head) {
    const [, rows, columns] = this.chunk.sites[site];
    return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (__, column) => this.cell(site, head, row, column)));
  }

  isOff(site, head) {
    return this.look.off.some(([one, number]) => one === site && number === head);
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
