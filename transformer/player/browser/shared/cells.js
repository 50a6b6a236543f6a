// Keyboard access to the cells of a clickable picture: arrow keys move from cell to cell, Enter clicks the cell.

import { areasOf } from "./drawing.js";
import { element } from "./element.js";

const WAYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const HELP = "Picture: arrow keys go from cell to cell, Enter chooses one";

// The heatmaps of a picture; of overlapping heatmaps, only the lowest.
function tablesOf(host) {
  const areas = areasOf(host), found = new Map();
  for (const [index, { type, z, xaxis = "x", yaxis = "y" }] of (host.data ?? []).entries()) {
    const area = areas.find(({ names }) => names[0] === xaxis && names[1] === yaxis);
    if (type === "heatmap" && area && !found.has(area)) found.set(area, { index, z, ...area, ends: [z.length - 1, z[0].length - 1] });
  }
  return [...found.values()];
}

// The start and the length of the i-th row or column, in pixels from the start of its axis.
function along([low, high], length, i) {
  const [from, to] = [i - 0.5, i + 0.5].map((at) => ((at - low) / (high - low)) * length);
  return [Math.min(from, to), Math.abs(to - from)];
}

const middle = ({ left, top, width, height }) => [top + height / 2, left + width / 2];
const within = (i, end) => Math.max(0, Math.min(end, i));

function nameOf({ tickvals = [], ticktext = [] }, i) {
  const text = ticktext[tickvals.indexOf(i)]?.replace(/<[^>]*>/g, "").trim();
  return text ? `${i + 1} (${text})` : `${i + 1}`;
}

export class Cells {
  // drawing: the Drawing of the picture; Enter calls its `clicked` with the index of the trace and [row, column]
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
    const { x, y, z, ends, left: from, top: under, width: wide, height: high } = this.tables[table];
    const [row, column] = (this.at?.cell ?? [0, 0]).map((i, axis) => within(i, ends[axis]));
    this.at = { table, cell: [row, column] };
    this.frame ??= element("div", { className: "cell-frame" });
    if (!this.frame.isConnected) host.append(this.frame);
    const [left, width] = along(x.range, wide, column);
    const [top, height] = along([...y.range].reverse(), high, row); // its range begins at the bottom
    for (const [name, value] of Object.entries({ left: from + left, width, top: under + top, height })) this.frame.style[name] = `${value}px`;
    const value = z[row][column];
    const said = value === null || value === undefined || Number.isNaN(value) ? "blocked" : `${+Number(value).toPrecision(3)}`;
    host.ariaLabel = `Row ${nameOf(y, row)}, column ${nameOf(x, column)}: ${said}`;
  }
}
