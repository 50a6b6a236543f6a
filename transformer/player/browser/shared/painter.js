// Paints tables of numbers on a canvas, a rectangle of pixels for each cell.

const channels = (color) => (color.startsWith("#")
  ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) : color.match(/\d+/g).map(Number));
const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const SHADES = 1024;
const ramps = new Map();

// The pixels of a scale, given as stops from 0 to 1.
function ramp(scale) {
  const key = JSON.stringify(scale);
  if (!ramps.has(key)) {
    const stops = scale.map(([at, color]) => [at, channels(color)]);
    let next = 1;
    ramps.set(key, Uint32Array.from({ length: SHADES }, (_, i) => {
      const place = i / (SHADES - 1);
      while (next < stops.length - 1 && stops[next][0] < place) next += 1;
      const [[low, from], [high, to]] = [stops[next - 1], stops[next]];
      return pixel(from.map((c, k) => Math.round(c + ((place - low) / (high - low)) * (to[k] - c))));
    }));
  }
  return ramps.get(key);
}

const MARK = pixel([28, 24, 48]);
const CORNER = 14; // side of the mark in a corner of a table on a screen of usual density
const SHARP = 64; // largest width in pixels of a picture that is drawn with sharp edges, as those of toy tasks are
const DARKEST = 0.9; // how dark a picture is where a value is 0
const LARGEST = 14; // largest side of a mark in pixels on a screen of usual density
const SMALLEST = 5; // smallest side in pixels of a cell that has a mark
// Whether a pixel, (x, y) from the centre of a mark from -1 to 1, belongs to it; by code of a blocked cell: a slash, a
// dot, both, a cross.
const slash = (x, y, thin) => Math.abs(x + y) < thin;
const dot = (x, y) => Math.hypot(x, y) < 0.36;
const MARKS = [null, slash, dot, (x, y, thin) => slash(x, y, thin) || dot(x, y), (x, y, thin) => Math.abs(x - y) < thin || slash(x, y, thin)];

function drawMark(pixels, stride, code, left, top, wide, high) {
  const size = Math.min(wide, high, LARGEST * devicePixelRatio);
  if (size < SMALLEST) return;
  const [x, y] = [left + (wide - size) / 2, top + (high - size) / 2].map(Math.floor);
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j < size; j += 1) {
      const at = [j, i].map((place) => (2 * place + 1) / size - 1);
      if (MARKS[code](...at, 2 / size + 0.06)) pixels[(y + i) * stride + x + j] = MARK;
    }
  }
}

// A picture that is darker where the values of its cells are low.
function drawImage(context, image, { down, across, rows, columns, value, xs, ys }) {
  const [left, top] = [xs[across], ys[down]];
  context.imageSmoothingEnabled = image.width > SHARP;
  context.drawImage(image, left, top, xs[across + columns] - left, ys[down + rows] - top);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const [x, y] = [xs[across + column], ys[down + row]];
      context.fillStyle = `rgb(13 8 30 / ${DARKEST * (1 - value(row, column))})`;
      context.fillRect(x, y, xs[across + column + 1] - x, ys[down + row + 1] - y);
    }
  }
}

// Stripes over a table that has no effect.
function drawStripes(context, [x, y, wide, high]) {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, high);
  context.clip();
  context.fillStyle = "rgb(131 139 150 / .82)";
  context.fillRect(x, y, wide, high);
  context.strokeStyle = "rgb(236 238 242 / .9)";
  context.lineWidth = 3 * devicePixelRatio;
  const apart = 10 * devicePixelRatio;
  for (let at = -high; at < wide; at += apart) {
    context.beginPath();
    context.moveTo(x + at, y + high);
    context.lineTo(x + at + high, y);
    context.stroke();
  }
  context.restore();
}

const edges = (n, size) => Int32Array.from({ length: n + 1 }, (_, i) => Math.round(i * size));

// Paint tables side by side. Each table has
// row, column, high, wide: its place and size, in cells;
// value(row, column): 0 to 1, undefined for no cell; code(row, column): why a cell is blocked, 0 if it is not;
// off: whether it has stripes, as a head without effect; frames: [row, column, high, wide, color, width], in cells and pixels;
// corner: the colours of a mark in the upper right corner and of the edge of the mark;
// image: a canvas to draw instead of colours, darkened where values are low.
// cell: the pixels across and down of a cell; gap: the pixels between two cells; scale: the stops of the colours;
// blocked: by code, a list that begins with the colour; content: while its entries and the size are the same, only what lies
// over the cells is redrawn.
export function paint(canvas, tables, cell, { scale, blocked = {}, gap = 0, content }) {
  const [wide, high] = [Math.max(...tables.map((one) => one.column + one.wide)), Math.max(...tables.map((one) => one.row + one.high))];
  const [xs, ys] = [edges(wide, cell[0]), edges(high, cell[1])];
  const [width, height] = [xs.at(-1), ys.at(-1)];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height, image: null });
  const painted = canvas.image && content && [...content, gap].every((one, i) => one === canvas.content?.[i]);
  canvas.content = content && [...content, gap];
  const context = canvas.getContext("2d");
  canvas.image ??= context.createImageData(width, height);
  const pixels = new Uint32Array(canvas.image.data.buffer);
  if (tables.length > 1 && !painted) pixels.fill(0);
  const colors = ramp(scale);
  const why = Object.fromEntries(Object.entries(blocked).map(([code, [color]]) => [code, pixel(channels(color))]));
  for (const { row: down, column: across, high: rows, wide: columns, value, code, image } of painted ? [] : tables) {
    if (image) continue;
    for (let row = 0; row < rows; row += 1) {
      const [top, bottom] = [ys[down + row], ys[down + row + 1] - gap];
      const marks = [];
      const [line, end] = [top * width + xs[across], top * width + xs[across + columns]];
      for (let column = 0; column < columns; column += 1) {
        const [left, right] = [xs[across + column], xs[across + column + 1] - gap];
        const reason = code ? code(row, column) : 0;
        const number = reason ? 0 : value(row, column);
        const color = reason ? why[reason] : number === undefined ? 0 : colors[Math.round((SHADES - 1) * Math.min(1, Math.max(0, number)))];
        pixels.fill(color, top * width + left, top * width + Math.max(left + 1, right));
        if (gap) pixels.fill(0, top * width + right, top * width + right + gap);
        if (reason) marks.push([reason, left, top, right - left, bottom - top]);
      }
      for (let y = top + 1; y < bottom; y += 1) pixels.copyWithin(y * width + xs[across], line, end);
      for (let y = bottom; y < bottom + gap; y += 1) pixels.fill(0, y * width + xs[across], y * width + xs[across + columns]);
      for (const mark of marks) drawMark(pixels, width, ...mark);
    }
  }
  context.putImageData(canvas.image, 0, 0);
  for (const { row: down, column: across, high: rows, wide: columns, off, frames = [], corner, value, image } of tables) {
    if (image) drawImage(context, image, { down, across, rows, columns, value, xs, ys });
    if (off) drawStripes(context, [xs[across], ys[down], xs[across + columns] - xs[across] - gap, ys[down + rows] - ys[down] - gap]);
    for (const [row, column, n, m, color, thick] of frames) {
      context.strokeStyle = color;
      context.lineWidth = thick * devicePixelRatio;
      const inset = context.lineWidth / 2;
      const [left, top] = [xs[across + column], ys[down + row]];
      context.strokeRect(left + inset, top + inset, xs[across + column + m] - left - gap - context.lineWidth, ys[down + row + n] - top - gap - context.lineWidth);
    }
    if (corner) {
      const [right, top, side] = [xs[across + columns] - gap, ys[down], CORNER * devicePixelRatio];
      [context.fillStyle, context.strokeStyle] = corner;
      context.lineWidth = 2 * devicePixelRatio;
      context.beginPath();
      context.moveTo(right - side, top);
      context.lineTo(right, top);
      context.lineTo(right, top + side);
      context.closePath();
      context.stroke();
      context.fill();
    }
  }
}
