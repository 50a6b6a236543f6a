// The picture of the model: its boxes on the residual stream, which open in place.

import { element } from "../shared/element.js";
import { drawLines } from "./lines.js";
import { drawBatch, drawChanges, drawLegend, drawLens, drawLikely, drawRole } from "./numbers.js";
import { drawParts, scoreBox } from "./parts.js";
import { cellOf, endOf, isShare, label, paintCells, paintTable, said, together } from "./picture.js";

const [NARROW, OPENED] = [610, 760]; // widths in px up to which a lane runs downwards: closed, and with an open box
const OPENS = 200; // ms that a box takes to open
const LABELLED = 16; // maximum rows of a table with tokens beside them
const CLOSED = { embedding: "positions", feed_forward: "narrowed", output: "stack" }; // table of a closed box, by kind
const [BOX, TITLE, FOLDED] = [80, 100, 34]; // minimum widths in px: a closed box, its title in one line, a folded layer
const ARRANGED = { norm_placement: "place of the norm", score_scale: "scores divided by" };
const SAID = { sqrt_d_head: "√ head width", sqrt_d_model: "√ width", none: "1" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

function vectorImage() {
  return element("div", { innerHTML: "<svg aria-hidden='true'></svg>" }).firstChild; // no URL in an exported page
}

const layerOf = (box) => box.name.split(".")[1];

export class Model {
  // root: element to draw into; kept: called with {box, table, head, row, column} of a clicked cell, with {box, head} of
  // an opened box, or with null;
  // asks: called when a new pass is needed, for another mode or arrangement; parts: returns a promise of the parts of
  // the scores of a box; only: keys of the tables that an open attention shows; how: further parameters of every
  // request for a pass; unfolded: whether the table of the parts of a score is open at first
  constructor(root, hooks, { only = null, how = {}, unfolded = false } = {}) {
    Object.assign(this, { root, hooks, only, how, open: new Set(), heads: {}, folds: {}, pointed: null, kept: null });
    Object.assign(this, { mode: "forward", compare: "difference", row: null, parts: new Map() });
    this.lanes = element("div", { className: "lanes" });
    this.lines = vectorImage();
    this.readout = element("p", { className: "st-key-model_readout" });
    this.batch = element("div", { className: "st-key-model_batch" });
    this.legend = element("small", { className: "st-key-model_legend" });
    this.score = element("details", { className: "st-key-score_parts", hidden: true, open: unfolded }, element("summary"), element("div"));
    const modes = [["forward", "Forward pass"], ["step", "This step"]].map(([value, textContent]) => element("button", {
      type: "button", textContent, value, onclick: () => this.setMode(value),
      title: value === "step" ? "What the training step after the one that is shown changes" : "",
    }));
    this.modes = element("div", { className: "choices st-key-model_mode", role: "group", ariaLabel: "What is shown" }, ...modes);
    this.lanes.append(this.lines);
    root.replaceChildren(element("div", { className: "bar" }, this.modes, this.readout), this.lanes, this.legend, this.score, this.batch);
    root.addEventListener("keydown", (event) => this.key(event));
    this.lanes.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    this.lanes.addEventListener("pointerleave", () => this.point(null));
    this.lanes.addEventListener("click", (event) => this.click(event));
    // Arranging changes the height too: that alone is no reason to arrange once more.
    this.observer = new ResizeObserver(() => this.pass && this.size !== this.sizeNow() && this.arrange());
    this.observer.observe(root);
  }

  close() {
    this.observer.disconnect();
  }

  // ---- What is shown ----

  // pass: from `unpacked`; maps: the newest recorded maps, for the maps of weights in mode `forward`; change: the changes by
  // one training step, if requested; roles: for each site, the roles of its heads
  show(pass, { maps = null, change = null, roles = {} } = {}) {
    const same = this.pass && shapeOf(this.pass) === shapeOf(pass);
    this.readout.classList.remove("refused");
    // Recorded maps belong to the model as it was trained.
    const renewed = pass !== this.pass || change !== this.change;
    const altered = JSON.stringify(pass.arranged) !== JSON.stringify(pass.own);
    Object.assign(this, { pass, maps: altered ? null : maps, change, roles: altered ? {} : roles });
    this.settle();
    this.root.dataset.step = this.maps?.step ?? pass.step;
    if (!same || this.built !== this.wanted()) this.arrange();
    else if (renewed) this.paint();
    else this.paintMaps();
  }

  // Adapt the selection to this pass: another model or word may lack the box or table, or have a smaller table.
  settle() {
    const { pass: { of } } = this;
    this.open = new Set([...this.open].filter((name) => of[name]));
    for (const name of ["kept", "pointed"]) {
      const at = this[name];
      const table = of[at?.box]?.of[at.table];
      this[name] = table ? { ...at, row: inside(at.row, table.high), column: inside(at.column, table.wide) } : null;
    }
  }

  // Open one box, or a cell of one of its tables, from outside the picture.
  opened({ box, head = 0, table = null, row = null, column = null }) {
    this.open = new Set([box]);
    this.heads[box] = head;
    this.kept = table === null ? null : { box, table, head, row, column };
    if (!this.pass) return;
    this.settle();
    this.arrange();
  }

  setMode(mode) {
    this.mode = mode;
    if (this.pass) this.arrange();
    this.hooks.asks();
  }

  // Show why there are no numbers.
  refuse(why) {
    this.readout.textContent = why;
    this.readout.classList.add("refused");
  }

  toggle(name, head) {
    this.pointed = null;
    const other = head !== undefined && this.open.has(name) && this.heads[name] !== head;
    if (head !== undefined) this.heads[name] = head;
    if (other) {
      if (this.kept?.box === name) this.kept = { ...this.kept, head };
      this.hooks.kept(this.kept ?? { box: name, head });
      return this.arrange();
    }
    if (!this.open.delete(name)) this.open = new Set([...this.open].filter((one) => this.pass.of[one]?.lane !== this.pass.of[name].lane)).add(name);
    if (this.kept && (this.kept.box !== name || !this.open.has(name))) this.kept = null;
    this.hooks.kept(this.open.has(name) ? { box: name, head: this.headOf(name) } : null);
    this.arrange();
    this.find(name)?.querySelector("button").focus({ preventScroll: true });
  }

  find(name) {
    return this.lanes.querySelector(`[data-box="${name}"]`);
  }

  headOf(name) {
    return Math.min(this.heads[name] ?? 0, (this.pass.of[name].of.weights?.heads || 1) - 1);
  }

  // The current row of the output lane: the row that was chosen, alone or with a cell, else the first that writes a token.
  get writing() {
    const { writing, expected, rows } = this.pass;
    const first = Math.max(0, expected.findIndex(Boolean));
    return Math.min(this.row ?? first, rows[writing].length - 1);
  }

  // ---- The boxes ----

  // A string of everything that the elements depend on, for comparison.
  wanted() {
    return JSON.stringify([[...this.open], this.heads, this.folds, this.mode, shapeOf(this.pass), this.root.clientWidth]);
  }

  sizeNow() {
    return `${this.root.clientWidth} × ${this.lanes.offsetHeight}`;
  }

  arrange() {
    const before = new Map([...this.parts].map(([name, { host }]) => [name, host.getBoundingClientRect()]));
    const focused = document.activeElement?.closest?.(".model [data-box]")?.dataset.box;
    this.built = this.wanted();
    this.parts = new Map();
    this.root.dataset.mode = this.mode;
    for (const button of this.modes.children) button.ariaPressed = button.value === this.mode;
    const lanes = Map.groupBy(this.pass.boxes, (box) => box.lane);
    this.lanes.classList.toggle("opened", this.open.size > 0);
    this.lanes.replaceChildren(this.lines, ...[...lanes].map(([lane, boxes]) => this.lane(lane, boxes)));
    this.paint();
    drawLines(this.lines, this.lanes, this.parts);
    this.size = this.sizeNow();
    if (focused) this.find(focused)?.querySelector("button").focus({ preventScroll: true });
    if (still.matches || !before.size) return;
    for (const [name, { host }] of this.parts) {
      const [was, is] = [before.get(name), host.getBoundingClientRect()];
      if (!was || (was.x === is.x && was.width === is.width && was.y === is.y)) continue;
      const from = `translate(${was.x - is.x}px, ${was.y - is.y}px) scale(${was.width / is.width}, ${was.height / is.height})`;
      host.animate([{ transform: from, transformOrigin: "0 0" }, { transform: "none", transformOrigin: "0 0" }], { duration: OPENS, easing: "ease-out" });
    }
    this.lines.animate([{ opacity: 0 }, { opacity: 0, offset: 0.8 }, { opacity: 1 }], OPENS);
  }

  lane(name, boxes) {
    const { side } = boxes[0];
    const opened = boxes.some((box) => this.open.has(box.name));
    const tokens = element("ol", { className: "tokens", ariaLabel: name === "encoder" ? "Tokens that are read" : "Tokens written so far" },
      ...this.pass.rows[side].map((text, i) => element("li", {}, element("button", {
        type: "button", textContent: text, tabIndex: -1, onclick: () => this.choose(side === this.pass.writing ? i : null),
      }))));
    tokens.title = side === this.pass.writing ? "reads → should write" : "";
    tokens.dataset.side = side;
    const folded = this.folded(name, boxes, opened);
    const shown = [];
    for (const box of boxes) {
      const layer = `${name} layer ${Number(layerOf(box)) + 1}`;
      if (!folded.has(layerOf(box))) shown.push(this.box(box));
      else if (shown.at(-1)?.dataset.layer !== layer) shown.push(this.foldedLayer(name, layerOf(box), layer));
    }
    const row = element("div", { className: "boxes" }, ...shown);
    row.style.gridTemplateColumns = shown.map(({ classList }) => (classList.contains("thin") ? "auto" : `minmax(0, ${classList.contains("open") ? "1fr" : "var(--widest)"})`)).join(" ");
    const lane = element("div", { className: `lane${opened ? " open" : ""}${this.runsDown(opened) ? " down" : ""}`, role: "group", ariaLabel: name },
      element("b", { textContent: name === "encoder" ? "Encoder" : "Decoder" }), tokens, row);
    if (side === this.pass.writing) lane.append(element("small", { className: "guesses", textContent: "guess so far", title: "Logit lens: what the model would write if it stopped after this box" }));
    return lane;
  }

  // Whether a lane has too little room to run from left to right; an open box needs the whole width.
  runsDown(opened) {
    return this.root.clientWidth <= (opened ? OPENED : NARROW);
  }

  // The layers to fold for lack of room: from the middle outwards, except layers with an open box and the layer that was
  // unfolded last.
  folded(name, boxes, opened) {
    const layers = [...new Set(boxes.map(layerOf).filter((layer) => Number(layer) >= 0))];
    const needed = (layer) => boxes.filter((box) => layerOf(box) === layer).length * ((opened ? FOLDED : this.open.size ? TITLE : BOX) + 12);
    const chosen = this.folds[name] ?? {};
    const folded = new Set();
    const room = this.root.clientWidth - (opened ? 640 : 250);
    const middle = [...layers].sort((a, b) => Math.abs(a - (layers.length - 1) / 2) - Math.abs(b - (layers.length - 1) / 2) || a - b);
    const wide = () => layers.reduce((sum, layer) => sum + (folded.has(layer) ? FOLDED + 12 : needed(layer)), 0);
    if (this.runsDown(false)) return folded;
    for (const layer of middle) {
      const holds = boxes.some((box) => layerOf(box) === layer && this.open.has(box.name));
      if (wide() > room && chosen[layer] !== false && !holds && layers.length > 1) folded.add(layer);
    }
    return folded;
  }

  foldedLayer(lane, layer, name) {
    const button = element("button", {
      type: "button", className: "title", textContent: name.split(" ").slice(1).join(" "), ariaExpanded: "false", title: `Unfold ${name}`,
      onclick: () => {
        this.folds[lane] = { [layer]: false };
        this.arrange();
        this.lanes.querySelector(`[data-box^="${lane}.${layer}"] button`)?.focus();
      },
    });
    const host = element("section", { className: "box thin" }, button);
    host.dataset.layer = name;
    return host;
  }

  box(box) {
    const isOpen = this.open.has(box.name);
    const thin = this.open.size > 0 && !isOpen;
    const part = { box, tables: [], heads: [] };
    const shape = `${this.pass.tokens[box.side].length} positions`;
    const named = isOpen ? `${box.lane === "encoder" ? "Encoder" : "Decoder"} · ${box.title}` : box.title;
    const title = element("button", {
      type: "button", className: "title", textContent: named, ariaExpanded: String(isOpen),
      title: box.sentence, ariaLabel: `${named}, ${shape}. ${box.sentence}`, onclick: () => this.toggle(box.name),
    });
    const host = element("section", { className: `box ${box.kind}${isOpen ? " open" : ""}${thin ? " thin" : ""}` }, title);
    host.dataset.box = box.name;
    part.host = host;
    if (isOpen) {
      host.append(this.headChoice(box), this.arrangement(box), element("button", {
        type: "button", className: "closes", textContent: "×", ariaLabel: `Close ${box.title}`, onclick: () => this.toggle(box.name),
      }), this.stages(box, part));
    } else if (!thin) host.append(this.small(box, part));
    if (!thin || isOpen) {
      part.role = element("small", { className: "role" });
      part.bars = element("div", { className: "bars" });
      part.lens = element("small", { className: "lens" });
      host.append(part.role, part.bars, part.lens);
    }
    this.parts.set(box.name, part);
    return host;
  }

  headChoice(box) {
    const n = box.of.weights?.heads ?? 0;
    const choice = element("div", { className: "choices heads", role: "group", ariaLabel: "Head" });
    for (let head = 0; head < n && n > 1; head += 1) choice.append(element("button", {
      type: "button", textContent: n > 4 && head ? head + 1 : `head ${head + 1}`, ariaLabel: `head ${head + 1}`, ariaPressed: String(head === this.headOf(box.name)), onclick: () => this.toggle(box.name, head),
    }));
    return choice;
  }

  // Selectors for other arrangements of the same weights, in the box that computes them.
  arrangement(box) {
    const names = { attention: ["norm_placement", "score_scale"], feed_forward: ["norm_placement"] }[box.kind] ?? [];
    const { options, own, arranged } = this.pass;
    return element("div", { className: "arrangement" }, ...(options && !this.only ? names : []).map((name) => {
      const choice = element("select", { ariaLabel: ARRANGED[name], onchange: ({ target }) => {
        this.how = { ...this.how, [name]: target.value };
        this.hooks.kept(this.kept ?? { box: box.name, head: this.headOf(box.name) }); // its formula changes too
        this.hooks.asks();
      } }, ...options[name].map((value) => element("option", { value, textContent: SAID[value] ?? value, selected: value === arranged[name] })));
      const trained = arranged[name] === own[name];
      return element("label", { className: trained ? "" : "changed", title: "The same weights, arranged in another way than they were trained" },
        `${trained ? "What if: " : "Not as trained: "}${ARRANGED[name]} `, choice);
    }));
  }

  // The content of a closed box: all heads, the bars of the next token, or its vectors.
  small(box, part) {
    if (box.of.weights) {
      const heads = element("div", { className: "maps" });
      for (let head = 0; head < box.of.weights.heads; head += 1) {
        const canvas = element("canvas");
        const off = box.off.includes(head) ? " off" : "";
        heads.append(element("button", {
          type: "button", className: `map${off}`, ariaLabel: `Open head ${head + 1} of ${box.title}${off && ", switched off"}`,
          title: `Head ${head + 1}`, onclick: (event) => { event.stopPropagation(); this.toggle(box.name, head); },
        }, canvas));
        part.heads.push(canvas);
      }
      return heads;
    }
    if (box.of.probabilities) return (part.likely = element("table", { className: "likely" }));
    const table = box.of[CLOSED[box.kind]] ?? box.of.stream;
    const canvas = element("canvas", { className: "vectors" });
    part.vectors = [canvas, table.key];
    return canvas;
  }

  // The content of an open box: every table (of an attention, those of `only`, if given), with lines from the tables that it
  // is made from.
  stages(box, part) {
    part.lines = vectorImage();
    const grid = element("div", { className: `stages ${this.only ? "few" : box.kind}` }, part.lines);
    for (const table of box.tables.filter(({ key }) => !this.only || !box.of.weights || this.only.includes(key))) {
      const canvas = element("canvas");
      const overlays = [0, 1, 2, 3].map(() => element("i"));
      const off = box.off.includes(this.headOf(box.name)) && ["weights", "mixed"].includes(table.key);
      const named = element("figcaption", {}, element("b", { textContent: table.name, title: table.name }), " ", element("small"));
      const labelled = ["weights", "probabilities"].includes(table.key) && table.high <= LABELLED;
      const short = labelled && table.columns === "key" && this.pass.tokens[box.keySide].every((token) => token.length < 2 || token.startsWith("["));
      const columns = element("span", { className: "columns", ariaHidden: "true" }, ...(short ? this.pass.tokens[box.keySide].map((token) => element("span", { className: token.length < 2 ? "" : "special", textContent: token.length < 2 || this.only ? token : "", title: token })) : []));
      const rows = element("span", { className: "rows", ariaHidden: "true" }, ...(labelled ? this.pass.rows[box.side].map((textContent) => element("span", { textContent })) : []));
      const figure = element("figure", { tabIndex: 0, role: "group", className: `table ${table.role}` }, named,
        element("div", { className: "cells" }, rows, element("div", { className: off ? "off" : "" }, canvas, ...overlays, columns)));
      Object.assign(figure.dataset, { table: table.key, box: box.name });
      figure.ariaLabel = `${table.name}, ${table.high} × ${table.wide}`;
      figure.ariaDescription = "Arrow keys choose a cell, Enter explains it.";
      grid.append(figure);
      part.tables.push({ table, canvas, overlays, figure, end: named.lastChild });
    }
    return grid;
  }

  // ---- The numbers ----

  paint() {
    const { pass, writing } = this;
    for (const part of this.parts.values()) {
      const box = (part.box = pass.of[part.box.name]); // elements are kept when the pass changes
      const { tables, vectors, likely, lens, bars } = part;
      const head = box.of.weights ? this.headOf(box.name) : 0;
      for (const entry of tables) {
        const { canvas, end } = entry;
        const table = (entry.table = box.of[entry.table.key]);
        if (table.key !== "weights") paintTable(canvas, pass, box, table, head);
        end.textContent = `${table.high}×${table.wide}`;
        end.title = isShare(table) || table.role === "mask" || table.role === "ids" ? "" : `The colours end at ±${Number(endOf(table, head).toPrecision(2))}.`;
      }
      if (vectors) paintTable(vectors[0], pass, box, box.of[vectors[1]], head);
      if (likely) drawLikely(likely, pass, box, writing, this.mode === "step" ? this.change?.maps?.probabilities : null);
      if (lens) drawLens(lens, pass, box, writing);
      if (bars) drawChanges(bars, this.mode === "step" && this.change?.boxes?.[box.name]);
    }
    this.paintMaps();
    this.light();
    this.drawScore();
    drawLegend(this.legend, pass, this.parts);
    this.batch.hidden = this.mode !== "step";
    if (this.mode === "step") drawBatch(this.batch, this.change, this.compare, (value) => { this.compare = value; this.paint(); });
  }

  // Load the parts of the kept score, once for each pass and box.
  async loadParts(pass) {
    const box = this.only ? null : scoreBox(pass, this.kept);
    if (box) box.parts = await (box.asked ??= this.hooks.parts(pass, box.name).catch(({ message }) => ({ refused: message })));
  }

  // Draw where the kept score comes from, as soon as its parts are there.
  drawScore() {
    const { pass, kept } = this;
    const box = this.only ? null : scoreBox(pass, kept);
    drawParts(this.score, pass, box, kept);
    if (box && !box.parts) this.loadParts(pass).then(() => pass === this.pass && this.drawScore());
  }

  // Draw what changes with every recorded step: the maps of weights, the roles of their heads, and the sentence above.
  paintMaps() {
    for (const { box, tables, heads, role } of this.parts.values()) {
      heads.forEach((canvas, number) => this.paintHead(canvas, box, number));
      const open = tables.find(({ table }) => table.key === "weights");
      if (open) this.paintHead(open.canvas, box, this.headOf(box.name));
      if (role) drawRole(role, this.roles[box.name]);
    }
    this.tell();
  }

  // Draw a map of weights: of the recorded step if any, else of the pass; in mode `step` before, after or the
  // difference.
  paintHead(canvas, box, head) {
    const { pass, maps, change } = this;
    const table = box.of.weights;
    const after = this.mode === "step" && change?.maps?.[box.name];
    const at = (row, column) => (head * table.high + row) * table.wide + column;
    if (after && this.compare === "after") {
      paintCells(canvas, [table.high, table.wide], pass.scales.weights, (row, column) => after[at(row, column)], pass.blocked, (row, column) => cellOf(box.of.mask, head, row, column));
    } else if (after && this.compare === "difference") {
      paintCells(canvas, [table.high, table.wide], pass.scales.scores, (row, column) => 0.5 + (after[at(row, column)] - cellOf(table, head, row, column)) / (2 * change.most));
    } else if (this.mode === "forward" && maps?.chunk.sites[box.name]?.[1] === table.high && maps.chunk.sites[box.name][2] === table.wide) {
      const weight = (row, column) => maps.cell(box.name, head, row, column);
      paintCells(canvas, [table.high, table.wide], pass.scales.weights, (row, column) => weight(row, column) ?? 0, pass.blocked,
        (row, column) => (weight(row, column) === null ? cellOf(box.of.mask, head, row, column) || 4 : 0));
    } else paintTable(canvas, pass, box, table, head);
  }

  // Mark the tokens of each lane whose rows are connected with the marked cell, and the row of the output.
  // lit: rows and columns by box, from `together`.
  rows(lit) {
    for (const list of this.lanes.querySelectorAll(".tokens")) {
      const { side } = list.dataset;
      const rows = Object.entries(lit).filter(([name, axes]) => this.pass.of[name].side === side && axes[side]).flatMap(([, axes]) => [...axes[side]]);
      [...list.children].forEach((one, i) => {
        one.classList.toggle("lit", rows.includes(i));
        one.classList.toggle("chosen", side === this.pass.writing && i === this.writing);
      });
    }
  }

  // ---- One number ----

  cellAt({ target, clientX, clientY }) {
    const figure = target.closest?.(".table");
    const canvas = figure?.querySelector("canvas");
    if (!canvas) return null;
    const { x, y, width, height } = canvas.getBoundingClientRect();
    const { table } = this.tableOf(figure);
    const [row, column] = [Math.floor(((clientY - y) / height) * table.high), Math.floor(((clientX - x) / width) * table.wide)];
    if (!(row >= 0 && row < table.high && column >= 0 && column < table.wide)) return null;
    return { box: figure.dataset.box, table: table.key, head: this.headOf(figure.dataset.box), row, column };
  }

  tableOf({ dataset }) {
    return this.parts.get(dataset.box).tables.find(({ table }) => table.key === dataset.table);
  }

  point(cell) {
    if (JSON.stringify(cell) === JSON.stringify(this.pointed)) return;
    this.pointed = cell;
    this.light();
    this.tell();
  }

  click(event) {
    const cell = this.cellAt(event);
    if (cell) this.keep(JSON.stringify(cell) === JSON.stringify(this.kept) ? null : cell);
  }

  keep(cell) {
    this.kept = cell;
    if (cell && this.pass.of[cell.box].of[cell.table].rows === this.pass.writing) this.row = cell.row;
    this.hooks.kept(cell);
    this.paint();
  }

  choose(row) {
    if (row === null) return;
    this.row = row;
    this.paint();
  }

  // Frame the rows and columns that are connected with the cell.
  light() {
    const at = this.pointed ?? this.kept;
    const lit = at ? together(this.pass, at) : {};
    this.rows(lit);
    for (const { box, tables } of this.parts.values()) {
      for (const { table, overlays } of tables) {
        const axes = lit[box.name] ?? {};
        const upstream = ["stream", "input"].includes(table.key) && axes.read;
        const itself = at && box.name === at.box && table.key === at.table;
        const apart = axes.apart?.includes(table.key);
        const rows = apart ? [] : itself ? [at.row] : [...(upstream || axes[table.rows]) ?? []];
        const columns = apart ? [] : itself ? [at.column] : [...axes[table.columns] ?? []];
        const frames = rows.length && columns.length
          ? rows.flatMap((row) => columns.map((column) => [row, column, 1, 1]))
          : [...rows.map((row) => [row, 0, 1, table.wide]), ...columns.map((column) => [0, column, table.high, 1])];
        overlays.forEach((overlay, i) => {
          const frame = frames[i];
          overlay.hidden = !frame;
          if (!frame) return;
          const [row, column, high, wide] = frame;
          overlay.className = itself ? "itself" : axes.way(table.key);
          overlay.style.cssText = `top:${(100 * row) / table.high}%;left:${(100 * column) / table.wide}%;height:${(100 * high) / table.high}%;width:${(100 * wide) / table.wide}%`;
        });
      }
    }
  }

  tell() {
    const { pass, maps } = this;
    const at = this.pointed ?? this.kept;
    const box = at && pass.of[at.box];
    const table = box?.of[at.table];
    const shown = pass.step.toLocaleString("en");
    let text = this.mode === "step" ? `What step ${(pass.step + 1).toLocaleString("en")} changes in the model of step ${shown}.`
      : maps && maps.step !== pass.step ? `Small maps of step ${maps.step.toLocaleString("en")}, other numbers of step ${shown}.`
      : `The model of step ${shown}. Guess so far: the token that the model would write if it stopped after that box.`;
    if (table) {
      const places = [label(pass, box, table.rows, at.row), label(pass, box, table.columns, at.column)].filter(Boolean).join(" · ");
      const head = table.heads > 1 ? `, head ${at.head + 1}` : "";
      text = `${box.title}${head} · ${table.name} · ${places}: ${said(pass, box, table, at.head, at.row, at.column)}`;
    }
    if (this.readout.textContent !== text) this.readout.textContent = text;
  }

  // ---- Keys ----

  key(event) {
    const { key, target } = event;
    const figure = target.closest(".table");
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
    if (key === "Escape" && this.open.size) {
      const name = target.closest("[data-box]")?.dataset.box;
      this.toggle(this.open.has(name) ? name : [...this.open].at(-1));
    } else if (figure && (moves || key === "Enter")) {
      const { table } = this.tableOf(figure);
      const here = this.pointed?.box === figure.dataset.box && this.pointed.table === table.key ? this.pointed
        : { box: figure.dataset.box, table: table.key, head: this.headOf(figure.dataset.box), row: 0, column: 0 };
      if (key === "Enter") this.keep(here);
      else if (this.pointed?.table !== table.key) this.point(here);
      else this.point({ ...here, row: inside(here.row + moves[0], table.high), column: inside(here.column + moves[1], table.wide) });
      figure.querySelector("figcaption").title = this.readout.textContent;
      figure.ariaLabel = this.readout.textContent;
    } else if (moves && target.className === "title") {
      const titles = [...target.closest(".lane").querySelectorAll(".title")];
      const lanes = [...this.lanes.querySelectorAll(".lane")];
      const other = lanes[lanes.indexOf(target.closest(".lane")) + moves[0]];
      const to = moves[0] ? other?.querySelectorAll(".title")[titles.indexOf(target)] ?? other?.querySelector(".title:last-of-type") : titles[titles.indexOf(target) + moves[1]];
      to?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

}

const inside = (i, n) => Math.max(0, Math.min(n - 1, i));

// A string of everything in a pass that the elements depend on, for comparison.
const shapeOf = (pass) => (pass.shaped ??= JSON.stringify([pass.rows, pass.arranged, pass.boxes.map(({ name, off, tables }) => [name, off, tables.map(({ key, shape }) => [key, shape])])]));
