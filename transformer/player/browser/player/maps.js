// Maps of attention weights on a canvas, with their title, legend, labels and marks as HTML beside it.

import { element, escaped } from "../shared/element.js";
import { paint } from "../shared/painter.js";

const RATIO = 1.5; // cells are at most this much wider than high, or higher than wide, unless the picture sets their ratio
const LEAST = 24; // minimum type size in pixels in fullscreen
const TYPE = [11, 20]; // smallest and largest type of the labels on a page, in pixels
const SHARE = 0.55; // type size as a share of a cell
const SLANT = 40; // degrees of column labels that are wider than their cells
const GAP = 8; // pixels between labels and cells
const BESIDE = 0.34; // largest share of the width that row labels take
const MARKS = 4.6; // width of the marks beside rows on a page, in type sizes
const NAME = 13; // type size of the names of the axes, in pixels
const SHORT = 4; // most letters of a special token whose column label is as large as others; a longer one is smaller
const APART = 4; // pixels between two labels of the legend
const STILL = 5; // pixels that the pointer may move during a click

const texts = new Map();

// The plain text of a label that is written as HTML.
export function plain(label) {
  if (!texts.has(label)) texts.set(label, new DOMParser().parseFromString(label, "text/html").body.textContent);
  return texts.get(label);
}

const ruler = document.createElement("canvas").getContext("2d");

// The width in pixels of the widest label.
function widest(labels, size, font) {
  ruler.font = `${size}px ${font}`;
  return Math.ceil(Math.max(0, ...labels.map((label) => ruler.measureText(plain(label)).width)));
}

const within = (value, low, high) => Math.max(low, Math.min(value, high));

export class MapView {
  // clicked: called with (table, row, column) of a cell that was clicked; keyed: called with the event of a key;
  // titled: called when the title is pressed, and `opens` says what that does; pointed: called with [table, row, column] under the pointer, or null
  constructor(host, { clicked, keyed, titled, opens = "Open this head in the picture of the model", pointed } = {}) {
    Object.assign(this, { host, clicked, pointed, opens });
    this.name = titled ? element("button", { type: "button", onclick: titled, className: "map-name" }) : element("b", { className: "map-name" });
    this.about = element("span", { className: "map-about" });
    this.legend = element("div", { className: "map-legend", ariaHidden: "true" });
    this.saves = element("button", { type: "button", className: "map-saves", textContent: "save PNG", title: "Save this picture as PNG", ariaLabel: "Save this picture as PNG", onclick: () => this.save() });
    this.canvas = element("canvas");
    this.labels = element("div", { className: "map-labels", ariaHidden: "true" });
    this.marks = element("div", { className: "map-labels map-marks", ariaHidden: "true" });
    this.foot = element("p");
    this.details = element("details", { className: "map-details", hidden: true }, element("summary", { textContent: "details" }), element("p"));
    this.bubble = element("div", { className: "map-bubble", hidden: true, ariaHidden: "true" });
    this.field = element("div", { className: "map-field" }, this.canvas, this.labels, this.marks);
    host.replaceChildren(element("div", { className: "map-head" }, this.name, this.legend, this.about), this.field, element("div", { className: "map-foot" }, this.foot, this.details, this.saves), this.bubble);
    host.classList.add("map");
    if (keyed) Object.assign(host, { tabIndex: 0, role: "group", onkeydown: (event) => { if (event.target === host) keyed(event); } });
    host.dataset.draws = 0;
    delete host.dataset.step; // left from another run
    this.canvas.onpointerdown = (event) => this.press(event);
    this.canvas.onpointermove = (event) => this.point(event);
    this.canvas.onpointerleave = () => this.point(null);
    this.observer = new ResizeObserver(() => this.picture && this.draw());
    this.observer.observe(this.field);
  }

  // picture: {tables, scale, blocked, legend, name, about, foot, details, rows, columns, rowTitle, columnTitle, marks, layers,
  // heads, says, step, alternative, data, fileName, ratio, content}; tables, scale, blocked, content: as in `paint`; name,
  // about: the title; ratio: of width and height of a cell, if it is fixed; foot: the line below; details: lines of a box, also written below a saved picture; rows, columns, rowTitle, columnTitle: labels of
  // the only table and of its axes; layers, heads: names of the columns and rows of tables; says(table, row, column): a cell
  // in words
  show(picture) {
    const { host } = this;
    this.picture = host.picture = picture;
    this.draw();
    if (picture.alternative) host.ariaLabel = picture.alternative;
    host.dataset.off = picture.tables.filter(({ off }) => off).length;
    host.dataset.draws = Number(host.dataset.draws) + 1;
    Object.assign(host.dataset, picture.data, { step: picture.step });
  }

  draw() {
    const { picture, host } = this;
    const { legend } = picture;
    host.classList.toggle("map-small", Boolean(picture.layers));
    const details = picture.details ?? [];
    this.details.hidden = !details.length;
    if (this.name.matches("button")) Object.assign(this.name, { disabled: picture.opens === false, title: picture.opens === false ? "" : this.opens });
    const written = { name: [this.name, picture.name], about: [this.about, picture.about], foot: [this.foot, picture.foot], details: [this.details.lastChild, details.join("<br>")] };
    for (const [place, html = ""] of Object.values(written)) {
      if (place.written !== html) place.innerHTML = place.written = html;
    }
    this.about.title = this.about.textContent;
    if (this.drawnLegend !== legend) this.drawLegend(legend);
    this.measure();
    if (!this.size) return; // the picture has no room
    const { cell, gap } = this.size;
    paint(this.canvas, picture.tables, cell.map((side) => side * devicePixelRatio), { scale: picture.scale, blocked: picture.blocked, content: picture.content, gap });
    this.writeMarks();
    if (this.pointer) this.point(this.pointer);
  }

  drawLegend(legend) {
    this.drawnLegend = legend;
    this.legend.hidden = !legend;
    if (!legend) return;
    const bar = element("i"), ticks = legend.ticks.map(([at, textContent]) => {
      const tick = element("span", { textContent });
      tick.style.left = `${100 * at}%`;
      return tick;
    });
    bar.style.background = `linear-gradient(90deg, ${legend.stops.map(([at, color]) => `${color} ${100 * at}%`).join(", ")})`;
    this.legend.replaceChildren(bar, ...ticks);
    // Both ends, and what has room between them.
    const boxes = ticks.map((tick) => tick.getBoundingClientRect()), end = boxes.at(-1);
    let last = boxes[0].right;
    ticks.slice(1, -1).forEach((tick, i) => {
      const { left, right } = boxes[i + 1];
      tick.hidden = left < last + APART || right > end.left - APART;
      if (!tick.hidden) last = right;
    });
  }

  // Sizes in CSS pixels. They depend on room, labels and number of cells alone: a map never moves while its numbers change.
  measure() {
    const { picture, field, host } = this;
    const [width, height, least] = [field.clientWidth, field.clientHeight, document.fullscreenElement?.contains(host) ? LEAST : 0];
    const { rows = [], columns = [], layers, heads, tables, marks } = picture;
    const { rowTitle, columnTitle } = least ? {} : picture; // in fullscreen, the map has the room of the names of its axes
    const [wide, high] = [Math.max(...tables.map((one) => one.column + one.wide)), Math.max(...tables.map((one) => one.row + one.high))];
    const known = [width, height, least, devicePixelRatio, picture.rows, picture.columns, JSON.stringify([layers, heads, rowTitle, columnTitle, picture.ratio]), wide, high, Boolean(marks)];
    if (this.known?.every((one, i) => one === known[i])) return;
    this.known = known;
    this.drawLegend(this.drawnLegend);
    this.size = null;
    if (!width || !height) return;
    const font = getComputedStyle(host).fontFamily;
    const rough = Math.min(width / (wide + 4), height / (high + 4));
    const type = Math.max(least, within(layers ? 13 : SHARE * rough, ...TYPE));
    const room = { left: 4, right: 4, top: 2, bottom: 2 };
    let slanted = false, level = 0;
    if (layers) Object.assign(room, { left: type + GAP, top: type + GAP });
    else {
      const title = NAME + 4;
      room.left = Math.min(BESIDE * width, widest(rows, type, font) + 2 * GAP) + (rowTitle ? title : 0);
      room.right = marks ? (least ? 3.4 : MARKS) * type : 4;
      level = widest(columns.filter((label) => !(plain(label).startsWith("[") && plain(label).length > SHORT)), type, font);
      const estimate = (width - room.left - room.right) / wide;
      const special = columns.map((label) => plain(label).length > SHORT && plain(label).startsWith("["));
      slanted = level > estimate || special.some((one, i) => one && special[i + 1]);
      const longest = Math.min(150, widest(columns, type, font));
      room.bottom = GAP + (slanted ? Math.ceil(longest * Math.sin((SLANT * Math.PI) / 180) + type) : type + 4) + (columnTitle ? title : 0);
    }
    const most = [(width - room.left - room.right) / wide, (height - room.top - room.bottom) / high];
    if (Math.min(...most) <= 0) return;
    const [low, ratio] = picture.ratio ? [picture.ratio, picture.ratio] : [1 / RATIO, RATIO]; // width of a cell per height
    const cell = [Math.min(most[0], ratio * most[1]), Math.min(most[1], most[0] / low)];
    const left = room.left + (width - room.left - room.right - cell[0] * wide) / 2;
    const gap = Math.min(...cell) * devicePixelRatio >= 7 ? Math.round(devicePixelRatio) : 0;
    this.size = { cell, gap, left, top: room.top, wide, high, type, slanted, least, font, below: room.bottom, rowTitle, columnTitle };
    Object.assign(this.canvas.style, { left: `${left}px`, top: `${room.top}px`, width: `${cell[0] * wide}px`, height: `${cell[1] * high}px` });
    this.writeLabels();
    this.marked = null;
  }

  writeLabels() {
    const { picture: { rows = [], columns = [], layers, heads, tables }, size: { cell: [across, down], left, top, wide, high, type, slanted, least, font, below, rowTitle, columnTitle }, labels } = this;
    labels.style.fontSize = `${type}px`;
    const label = (html, side, x, y) => `<span class="${side}" style="left:${x}px;top:${y}px" title="${escaped(plain(html))}">${html}</span>`;
    const every = (n, room) => Math.ceil((1.1 * type) / room) || 1;
    if (layers) {
      const [m, n] = [tables[0].wide, tables[0].high];
      const place = (i, size) => i * (size + 1) + size / 2;
      labels.innerHTML = layers.map((name, i) => label(name, "above", left + across * place(i, m), top - GAP)).join("")
        + heads.map((name, i) => label(name, "upright", left - GAP, top + down * place(i, n))).join("");
      return;
    }
    const [nth, mth] = [every(high, down), every(wide, across)];
    const axis = (text, side, x, y) => (text ? `<span class="axis ${side}" style="left:${x}px;top:${y}px;font-size:${NAME}px">${text}</span>` : "");
    const beside = Math.max(NAME, left - 2 * GAP - widest(rows, type, font));
    labels.innerHTML = axis(rowTitle, "upright", beside, top + (down * high) / 2) + axis(columnTitle, "above", left + (across * wide) / 2, top + down * high + below)
      + rows.map((text, i) => (i % nth ? "" : label(text, "row", left - GAP, top + down * (i + 0.5)))).join("")
      + columns.map((text, i) => {
        const special = !slanted && !least && plain(text).startsWith("[") && plain(text).length > SHORT;
        // A wide label at the edge grows outwards, away from its neighbour.
        const outwards = !slanted && widest([text], special ? 0.7 * type : type, font) > across && { 0: " ends", [wide - 1]: " starts" }[i];
        const x = left + across * (i + ({ " ends": 1, " starts": 0 }[outwards] ?? 0.5));
        return slanted && i % mth ? "" : label(special ? `<small>${text}</small>` : text, slanted ? "slanted" : `column${outwards || ""}`, x, top + down * high + (slanted ? 2 : GAP));
      }).join("");
    labels.style.setProperty("--rows", `${left - GAP - (rowTitle ? NAME + 4 : 0)}px`);
  }

  // Marks beside the rows, such as the wrong tokens.
  writeMarks() {
    const { picture: { marks = [] }, size: { cell: [across, down], left, top, wide, type, least } } = this;
    const written = JSON.stringify(marks);
    if (written === this.marked) return;
    this.marked = written;
    const usual = Math.max(least || TYPE[0], type - 2), tight = down < usual; // then only the signs have room
    this.marks.style.fontSize = `${tight ? Math.max(6, down) : usual}px`;
    const shown = tight ? marks.map((text) => text.replace(/<\/b>.*/, "</b>")) : marks;
    this.marks.innerHTML = shown.map((text, i) => text && `<span class="mark" style="left:${left + across * wide + 4}px;top:${top + down * (i + 0.5)}px">${text}</span>`).join("");
  }

  // ---- The pointer ----

  // The table and the cell at a point: [index of the table, row, column]; null beside the tables.
  cellAt({ clientX, clientY }) {
    const { x, y, width, height } = this.canvas.getBoundingClientRect();
    const { wide, high } = this.size ?? {};
    const [column, row] = [Math.floor(((clientX - x) / width) * wide), Math.floor(((clientY - y) / height) * high)];
    const at = this.picture?.tables.findIndex((one) => row >= one.row && row < one.row + one.high && column >= one.column && column < one.column + one.wide) ?? -1;
    if (at < 0) return null;
    const table = this.picture.tables[at];
    return [at, row - table.row, column - table.column];
  }

  // A press and its release nearby count as a click, though the picture may be drawn anew between them.
  press(down) {
    const at = this.clicked && down.button === 0 && this.cellAt(down);
    if (!at) return;
    const up = ({ clientX, clientY }) => {
      if (Math.hypot(clientX - down.clientX, clientY - down.clientY) < STILL) this.clicked(...at);
    };
    window.addEventListener("pointerup", up, { once: true, capture: true });
  }

  point(event) {
    this.pointer = event && { clientX: event.clientX, clientY: event.clientY };
    const at = event && this.cellAt(event);
    if (event?.type) this.pointed?.(at);
    else if (!event) this.pointed?.(null);
    const html = at ? this.picture.says(...at) : "";
    this.bubble.hidden = !html;
    if (!html) return;
    if (this.bubble.innerHTML !== html) this.bubble.innerHTML = html;
    // Beside the pointer, inside of the picture.
    const box = this.host.getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = this.bubble;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const left = x + 14 + width <= box.width ? x + 14 : x - 14 - width;
    const top = y + 14 + height <= box.height ? y + 14 : y - 14 - height;
    Object.assign(this.bubble.style, { left: `${within(left, 0, Math.max(0, box.width - width))}px`, top: `${within(top, 0, Math.max(0, box.height - height))}px` });
  }

  // ---- The picture as a file ----

  // A new canvas with the cells, the legend and the texts, each where it stands, on the page's ground; the details below.
  image() {
    const { host } = this, box = host.getBoundingClientRect(), SCALE = 2;
    const { details } = this.picture, high = box.height + (details?.length ? 2 * NAME : 0);
    const image = element("canvas", { width: SCALE * box.width, height: SCALE * high });
    const context = image.getContext("2d");
    const style = getComputedStyle(host);
    context.scale(SCALE, SCALE);
    context.fillStyle = style.getPropertyValue("--st-background-color").trim() || "#fff";
    context.fillRect(0, 0, box.width, high);
    context.imageSmoothingEnabled = false;
    const place = (node) => {
      const { left, top, width, height } = node.getBoundingClientRect();
      return [left - box.left, top - box.top, width, height];
    };
    context.drawImage(this.canvas, ...place(this.canvas));
    if (this.drawnLegend) {
      const [x, y, width, height] = place(this.legend.firstChild);
      const gradient = context.createLinearGradient(x, 0, x + width, 0);
      for (const [at, color] of this.drawnLegend.stops) gradient.addColorStop(at, color);
      context.fillStyle = gradient;
      context.fillRect(x, y, width, height);
    }
    context.textBaseline = "middle";
    context.textAlign = "center";
    const walker = document.createTreeWalker(host, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement;
      if (parent.closest(".map-saves, .map-bubble, .map-details")) continue;
      const { color, fontWeight, fontSize, fontFamily, visibility } = getComputedStyle(parent);
      if (visibility === "hidden") continue;
      Object.assign(context, { fillStyle: color, font: `${fontWeight} ${fontSize} ${fontFamily}` });
      const turned = parent.closest(".slanted, .upright");
      const angle = turned ? (turned.className === "slanted" ? -SLANT : -90) : 0;
      const range = document.createRange();
      // A slanted label is one text; others may be wrapped, so each word has its own place.
      for (const { index, 0: word } of node.data.matchAll(turned ? /.+/g : /\S+/g)) {
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const [x, y, width, height] = place(range);
        context.save();
        context.translate(x + width / 2, y + height / 2);
        context.rotate((angle * Math.PI) / 180);
        context.fillText(word, 0, 0);
        context.restore();
      }
    }
    if (details?.length) {
      Object.assign(context, { textAlign: "left", fillStyle: style.color, font: `${NAME}px ${style.fontFamily}` });
      context.fillText(details.map(plain).join(" · "), 4, high - NAME);
    }
    return image;
  }

  save() {
    this.image().toBlob((blob) => {
      const link = element("a", { download: `${this.picture.fileName}.png`, href: URL.createObjectURL(blob) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  close() {
    this.observer.disconnect();
  }
}
