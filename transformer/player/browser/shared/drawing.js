// Draws Plotly pictures and updates them in place: {spec, arrays, layout, step, hatched}, as in `Picture` of Python.
// A new spec, type size or theme is drawn from scratch; arrays and parts of the layout are updated in place.

import { element } from "./element.js";

let library; // promise of the Plotly library

// source: the address of the library, or a function that returns a promise of the library
export function loadPlotly(source) {
  library ??= typeof source === "function" ? source() : new Promise((resolve, reject) => {
    if (window.Plotly) return resolve(window.Plotly);
    const script = document.createElement("script");
    script.src = source;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      library = null; // the next picture retries
      reject(new Error(`${source} could not be loaded`));
    };
    document.head.appendChild(script);
  });
  return library;
}

function themeOf(element) {
  const style = getComputedStyle(element);
  const get = (name) => style.getPropertyValue(name).trim();
  return {
    text: get("--st-text-color") || style.color,
    line: get("--st-border-color") || "rgba(128,128,128,0.4)",
    hover: get("--st-secondary-background-color") || "#fff",
    font: get("--st-font") || "sans-serif",
  };
}

// Whether two lists of numbers, or of rows of numbers, are equal.
function alike(one, other) {
  if (one === other || !Array.isArray(one) || one.length !== other?.length) return one === other;
  return one.every((value, i) => alike(value, other[i]));
}

// An explicit size: otherwise Plotly asks the browser for it at every change, which forces a reflow.
const sizeOf = ({ clientWidth: width, clientHeight: height }) => ({ width, height });

function dressed(layout, theme, scale, least) {
  const axis = { gridcolor: theme.line, linecolor: theme.line, zerolinecolor: theme.line };
  const axes = {};
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis\d*$/.test(name)) axes[name] = { ...axis, ...layout[name] };
  }
  return {
    ...layout, ...axes, autosize: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: theme.text, family: theme.font, size: Math.max(least, 13 * scale) },
    hoverlabel: { bgcolor: theme.hover, bordercolor: theme.line, font: { color: theme.text, size: Math.max(least, 16) } },
  };
}

function enlarged(part, scale, least) {
  if (Array.isArray(part)) return part.map((inner) => enlarged(inner, scale, least));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => {
    if (/font$/.test(name) && value.size) return [name, { ...value, size: Math.max(least, value.size * scale) }];
    if (name !== "margin" && name !== "pad") return [name, enlarged(value, scale, least)];
    const room = Math.max(scale, least / 13); // grows with the type size
    return [name, Object.fromEntries(Object.entries(value).map(([side, n]) => [side, n * room]))];
  }));
}

function put(layout, path, value) {
  const steps = path.replaceAll("[", ".").replaceAll("]", "").split(".");
  const last = steps.pop();
  let place = layout;
  for (const step of steps) place = place[step] ??= {};
  place[last] = value;
}

// If there is no room for every label of an axis, show only every n-th label, or turn slanted labels vertical. With a
// minimum type size (`least`), no part of a label is smaller.
function thinned(layout, host, least) {
  for (const [name, room] of [["yaxis", host.clientHeight], ["xaxis", host.clientWidth]]) {
    const { ticktext, tickfont } = layout[name] ?? {};
    if (!ticktext || !tickfont?.size) continue;
    if (least) layout[name].ticktext = ticktext.map((text) => text.replace(/<\/?span[^>]*>/g, ""));
    const every = Math.ceil((ticktext.length * tickfont.size * 1.15) / Math.max(1, room * 0.8));
    if (layout[name].tickangle && ticktext.length * tickfont.size * 1.5 > room - (layout.margin?.l ?? 0) - (layout.margin?.r ?? 0)) layout[name].tickangle = -90; // closer, without overlap
    if (every > 1 && !layout[name].tickangle) layout[name].ticktext = layout[name].ticktext.map((text, i) => (i % every ? "" : text));
  }
  return layout;
}

// Stripes for a head that is switched off: its weights exist, but have no effect.
const template = document.createElement("template");
template.innerHTML = `<svg><rect width="100%" height="100%" fill="rgb(131,139,150)" fill-opacity=".82"/>
  <path d="M0 0l4000 4000" stroke="rgb(236,238,242)" stroke-width="9000" stroke-dasharray="3 7"/></svg>`;
const STRIPES = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(template.content))}`;

// Stripes over rectangles of the axes [x0, x1, y0, y1]; the first row of a map is at the top.
const striped = (rectangles) => rectangles.map(([x0, x1, y0, y1]) => ({
  source: STRIPES, xref: "x", yref: "y", x: x0, y: y0, sizex: x1 - x0, sizey: y1 - y0, sizing: "stretch",
}));

const LEAST = 24; // minimum type size in pixels in fullscreen
const NARROW = 240; // the width in pixels up to which type has its usual size: labels need room

// The menu of a picture stands in the margin above it, and is absent on touch screens, where it would stay.
const CONFIG = {
  displaylogo: false, showSendToCloud: false, showEditInChartStudio: false, responsive: false,
  displayModeBar: matchMedia("(hover: hover)").matches && "hover",
  modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
};

// The panels of a picture that is drawn: their axes, and where they stand in the picture, in pixels.
export function areasOf(host) {
  const origin = host.getBoundingClientRect();
  return [...host.querySelectorAll(".nsewdrag")].map((panel) => {
    const { x, y, width, height } = panel.getBoundingClientRect();
    const [, across, down] = /^(x\d*)(y\d*)$/.exec(panel.dataset.subplot);
    const axis = (name) => host.layout[`${name[0]}axis${name.slice(1)}`];
    return { names: [across, down], x: axis(across), y: axis(down), left: x - origin.x, top: y - origin.y, width, height };
  });
}

export class Drawing {
  // usual: the height in pixels up to which type has its usual size; clicked: called with the indices of the trace and of
  // the point, and with Plotly's point
  constructor(host, { plotly, clicked, usual = 400 }) {
    Object.assign(this, { host, plotly, clicked, usual, drawn: null, token: null, lines: [] });
    host.dataset.draws = 0;
    delete host.dataset.step; // left from another run
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(host);
    this.sight = new IntersectionObserver((seen) => {
      this.hidden = !seen.at(-1).isIntersecting;
      if (!this.hidden && this.waiting) this.show(this.waiting);
    });
    this.sight.observe(host);
  }

  // Measure size and theme, which forces a reflow: only once, and again after either changes.
  measure() {
    const { host } = this;
    const room = Math.min(host.clientHeight / this.usual, host.clientWidth / NARROW);
    const scale = Math.round(4 * Math.min(2.5, Math.max(1, room))) / 4;
    const least = document.fullscreenElement?.contains(host) ? LEAST : 0;
    const theme = themeOf(host);
    this.measured = { scale, least, theme, key: `${scale} ${least} ${JSON.stringify(theme)}` };
  }

  // patient: a picture out of sight is drawn when it comes into sight
  async show(asked, patient = false) {
    this.asked = asked; // set now, so that a redraw for another reason draws this picture too
    const picture = { ...asked, layout: { ...asked.layout, images: striped(asked.hatched ?? []) } };
    const Plotly = await loadPlotly(this.plotly);
    const { host } = this;
    this.waiting = patient && this.hidden ? picture : null;
    if (this.closed || !host.isConnected || this.waiting) return;
    if (!this.measured) this.measure();
    const { scale, least, theme, key } = this.measured;
    const before = this.drawn;
    this.drawn = { key, picture }; // set now, so that a second call meanwhile starts from this picture
    const same = before?.key === key && before.picture.spec === picture.spec;
    try {
      if (same) await this.change(Plotly, before.picture, picture, scale);
      else await this.anew(Plotly, picture, theme, scale, least);
    } catch (error) {
      this.drawn = null;
      throw error;
    }
    if (picture.alternative) host.ariaLabel = picture.alternative;
    host.dataset.off = picture.layout.images.length;
    host.dataset.draws = Number(host.dataset.draws) + 1;
    Object.assign(host.dataset, picture.data, picture.step === undefined ? {} : { step: picture.step });
  }

  async anew(Plotly, picture, theme, scale, least) {
    const { data, layout } = JSON.parse(picture.spec);
    for (const [name, values] of Object.entries(picture.arrays)) {
      const [trace, attribute] = name.split(".");
      data[trace][attribute] = values;
    }
    for (const [path, value] of Object.entries(picture.layout)) put(layout, path, value);
    const finished = dressed(thinned(enlarged(layout, scale, least), this.host, least), theme, scale, least);
    Object.assign(finished, sizeOf(this.host));
    this.token = this.areas = null;
    const saves = { name: "png", title: "Save as PNG", icon: Plotly.Icons.camera, click: (host) => Plotly.downloadImage(host, { format: "png", scale: 2, filename: this.asked.fileName }) };
    await Plotly.react(this.host, enlarged(data, scale, least), finished, (this.config ??= { ...CONFIG, modeBarButtonsToAdd: [saves] }));
    if (this.closed || this.listening) return;
    this.listening = true;
    this.host.on("plotly_click", ({ points: [point] }) => this.clicked?.(point.curveNumber, point.pointNumber, point));
    this.host.on("plotly_hover", ({ points: [point] }) => this.follow(Plotly, point));
    this.host.on("plotly_unhover", () => this.follow(Plotly, null));
  }

  async change(Plotly, before, picture, scale) {
    const touched = [];
    const update = {};
    for (const [name, values] of Object.entries(picture.arrays)) {
      if (alike(before.arrays[name], values)) continue;
      const [trace, attribute] = name.split(".");
      if (!touched.includes(+trace)) touched.push(+trace);
      (update[attribute] ??= {})[trace] = values;
    }
    // Plotly needs one value per trace; a trace whose attribute does not change keeps its value.
    for (const [attribute, values] of Object.entries(update)) {
      update[attribute] = touched.map((trace) => values[trace] ?? this.host.data[trace][attribute]);
    }
    const relaid = {};
    for (const [path, value] of Object.entries(picture.layout)) {
      if (before.layout[path] !== value && JSON.stringify(before.layout[path]) !== JSON.stringify(value)) {
        relaid[path] = /\.size$/.test(path) ? value * scale : value;
      }
    }
    if (relaid.shapes && this.token) relaid.shapes = this.followed(relaid.shapes);
    if (touched.length) await Plotly.update(this.host, update, relaid, touched);
    else if (Object.keys(relaid).length) await Plotly.relayout(this.host, relaid);
  }

  // In a picture of lines, pointing at a token of a row or column shows only the lines of this token.
  followed(shapes) {
    const { rows, columns } = this.host.layout.meta.lines;
    return shapes.map((shape, i) => {
      const ends = [Math.floor(i / columns), i % columns];
      return { ...shape, visible: !this.token || i >= rows * columns || ends[this.token.trace] === this.token.point };
    });
  }

  follow(Plotly, point) {
    if (!this.host.layout.meta?.lines || (point && point.curveNumber > 1)) return;
    this.token = point && { trace: point.curveNumber, point: point.pointNumber };
    Plotly.relayout(this.host, { shapes: this.followed(this.host.layout.shapes) });
  }

  // Draw a dotted line at a step in every panel, or none for null; outside of Plotly, so that it is cheap to move.
  mark(step) {
    const { host } = this;
    for (const [i, { x: { range: [low, high] }, left, top, width, height }] of (this.areas ??= areasOf(host)).entries()) {
      this.lines[i] ??= host.appendChild(element("div", { className: "marker" }));
      const share = (step - low) / (high - low);
      this.lines[i].hidden = step === null || share < 0 || share > 1;
      Object.assign(this.lines[i].style, { left: `${left + share * width}px`, top: `${top}px`, height: `${height}px` });
    }
    host.dataset.step = step ?? host.dataset.step;
  }

  resized() {
    clearTimeout(this.later);
    this.later = setTimeout(async () => {
      if (!this.drawn || !this.host.isConnected || !this.host.clientWidth) return;
      await (await loadPlotly(this.plotly)).relayout(this.host, sizeOf(this.host));
      this.areas = null;
      this.measure();
      if (this.drawn) await this.show(this.asked); // the type size may have changed
    }, 60);
  }

  // Redraw after a possible change of the page's colours.
  dress() {
    this.measured = null;
    if (this.drawn) this.show(this.asked);
  }

  close() {
    this.closed = true;
    for (const line of this.lines) line?.remove();
    clearTimeout(this.later);
    this.observer.disconnect();
    this.sight.disconnect();
    window.Plotly?.purge(this.host);
  }
}

// Log an error and, if nothing was drawn before, show in the picture's place that it could not be drawn.
export function failed(host, error) {
  console.error(error);
  if (Number(host.dataset.draws)) return;
  host.replaceChildren(element("p", { className: "failed", role: "alert", textContent: `The picture could not be drawn (${error.message}). Reload the page.` }));
}
