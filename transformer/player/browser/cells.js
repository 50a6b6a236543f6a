// Keyboard access to the cells of a clickable picture: arrow keys move from cell to cell, Enter clicks the cell.

const WAYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const HELP = "Picture: arrow keys go from cell to cell, Enter chooses one";

// The heatmaps of a picture; of overlapping heatmaps, only the lowest.
function tablesOf({ _fullData: traces = [], _fullLayout: layout }) {
  const found = new Map();
  for (const { type, index, xaxis, yaxis, z } of traces) {
    if (type !== "heatmap" || found.has(xaxis + yaxis)) continue;
    const [x, y] = [xaxis, yaxis].map((name) => layout[`${name[0]}axis${name.slice(1)}`]);
    found.set(xaxis + yaxis, { index, z, x, y, ends: [z.length - 1, z[0].length - 1] });
  }
  return [...found.values()];
}

// The start and the length of the i-th row or column, in pixels.
function along(axis, i) {
  const [from, to] = [axis.l2p(i - 0.5), axis.l2p(i + 0.5)];
  return [axis._offset + Math.min(from, to), Math.abs(to - from)];
}

const middle = ({ x, y }) => [y._offset + y._length / 2, x._offset + x._length / 2];
const within = (i, end) => Math.max(0, Math.min(end, i));

function nameOf({ tickvals = [], ticktext = [] }, i) {
  const text = ticktext[tickvals.indexOf(i)]?.replace(/<[^>]*>/g, "").trim();
  return text ? `${i + 1} (${text})` : `${i + 1}`;
}

export class Cells {
  // drawing: the Drawing of the picture; Enter calls its `clicked`
  constructor(drawing) {
    Object.assign(this, { drawing, host: drawing.host, at: null });
    const { host } = this;
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("focus", () => this.place());
    host.addEventListener("blur", () => this.place());
  }

  // Called after the picture has been drawn.
  drawn() {
    const { host } = this;
    this.tables = this.drawing.clicked ? tablesOf(host) : [];
    if (this.tables.length) Object.assign(host, { tabIndex: 0, role: "group", ariaLabel: host.ariaLabel ?? HELP });
    else host.removeAttribute("tabindex");
    this.place();
  }

  key(event) {
    if (!this.tables?.length || event.ctrlKey || event.altKey || event.metaKey) return;
    const way = WAYS[event.key];
    if (!way && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation(); // the page has shortcuts of its own
    if (way) this.move(way);
    else if (this.at) this.drawing.clicked(this.tables[this.at.table].index, [...this.at.cell]);
    this.place();
  }

  // Move by one cell; beyond the edge of a table, to the next table in that direction.
  move(way) {
    if (!this.at) return;
    const { table, cell } = this.at;
    const next = cell.map((i, axis) => i + way[axis]);
    if (next.every((i, axis) => i === within(i, this.tables[table].ends[axis]))) {
      this.at.cell = next;
      return;
    }
    const far = ([down, across]) => way[0] * down + way[1] * across;
    const here = middle(this.tables[table]);
    const others = this.tables
      .map((one, i) => ({ i, one, far: far(middle(one).map((place, axis) => place - here[axis])) }))
      .filter((other) => other.far > 1)
      .sort((a, b) => a.far - b.far);
    if (!others.length) return;
    const { i, one } = others[0];
    this.at = { table: i, cell: cell.map((at, axis) => (way[axis] ? (way[axis] > 0 ? 0 : one.ends[axis]) : within(at, one.ends[axis]))) };
  }

  // Frame the cell while the picture has the focus, and describe its value in the label.
  place() {
    const { host } = this;
    const on = document.activeElement === host && this.tables?.length;
    if (this.frame) this.frame.hidden = !on;
    if (!on) return;
    const table = within(this.at?.table ?? 0, this.tables.length - 1);
    const { x, y, z, ends } = this.tables[table];
    const [row, column] = (this.at?.cell ?? [0, 0]).map((i, axis) => within(i, ends[axis]));
    this.at = { table, cell: [row, column] };
    this.frame ??= Object.assign(document.createElement("div"), { className: "cell-frame" });
    if (!this.frame.isConnected) host.append(this.frame);
    const [[left, width], [top, height]] = [along(x, column), along(y, row)];
    for (const [name, value] of Object.entries({ left, width, top, height })) this.frame.style[name] = `${value}px`;
    const value = z[row][column];
    const said = value === null || value === undefined || Number.isNaN(value) ? "blocked" : `${+Number(value).toPrecision(3)}`;
    host.ariaLabel = `Row ${nameOf(y, row)}, column ${nameOf(x, column)}: ${said}`;
  }
}
