// The maps of a word over some steps, as packed by the server (transformer/player/chunks.py).

export const ONE = 65534;
export const BLOCKED = 65535;

// Split bytes into the value of a line of JSON and a copy of the bytes after the line.
export function parted(bytes) {
  const end = bytes.indexOf(10);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), bytes.slice(end + 1).buffer];
}

// Decode a line of JSON, followed by the packed (H, Q, K, N) codes of each site. Returns the value of the line with
// `codes`, the numbers of each site.
export function decoded(bytes) {
  const [chunk, body] = parted(bytes);
  const [packed, n] = [new Uint8Array(body), chunk.steps.length];
  const numbers = new Uint16Array(packed.length / 2); // sums and differences are modulo 65,536
  for (let i = 0; i < numbers.length; i += 1) {
    const move = packed[i] | (packed[numbers.length + i] << 8);
    numbers[i] = ((move >> 1) ^ -(move & 1)) + (i % n ? numbers[i - 1] : 0);
  }
  let at = 0;
  chunk.codes = {};
  for (const [site, [heads, rows, columns]] of Object.entries(chunk.sites)) {
    const row = columns * n;
    const codes = numbers.subarray(at, (at += heads * rows * row));
    for (let from = 0; from < codes.length; from += row) {
      for (let i = n; i < row; i += 1) codes[from + (i % n)] -= codes[from + i];
    }
    chunk.codes[site] = codes;
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

  // The weight of a cell; null if it is blocked.
  cell(site, head, row, column) {
    const [, rows, columns] = this.chunk.sites[site];
    const code = this.chunk.codes[site][((head * rows + row) * columns + column) * this.chunk.steps.length + this.place];
    return code === BLOCKED ? null : code / ONE;
  }

  // The weights of one head as rows; null where a cell is blocked.
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
