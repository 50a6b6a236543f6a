// Draws one Plotly figure and keeps it: the first message makes it, later ones change only what differs.
// A message is complete, or names an earlier one that it builds upon. What is built upon is kept by its name
// and not by its place, so a merged, repeated or late message does no harm; one that is missing is asked for.

const libraries = new Map(); // address -> promise of Plotly
const instances = new WeakMap(); // parent element -> what is known of its figure
const kept = new Map(); // key of a figure -> its last messages that can be built upon, by their names
const KEPT = 4;
const BLOCKED = 65535;

// The app may live under a base path, which the address of Streamlit's own bundle knows.
function loadPlotly(base, name) {
  const address = `${base}/files/${name}`;
  if (!libraries.has(address)) {
    libraries.set(address, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => {
        libraries.delete(address); // the next message tries again
        reject(new Error(`${address} could not be loaded`));
      };
      document.head.appendChild(script);
    }));
  }
  return libraries.get(address);
}

// Differences come as a line of JSON with the numbers behind it.
function read(data) {
  if (!(data instanceof Uint8Array)) return data;
  const end = data.indexOf(10);
  const message = JSON.parse(new TextDecoder().decode(data.subarray(0, end)));
  let at = end + 1;
  for (const { arrays } of message.frames) {
    for (const packed of Object.values(arrays).filter((one) => !one.as)) {
      const size = packed.shape ? 2 * packed.shape[0] * packed.shape[1] : 4 * packed.n;
      packed.bytes = data.slice(at, at + size);
      packed.id = `${message.since} ${packed.from} ${new TextDecoder("latin1").decode(packed.bytes)}`;
      at += size;
    }
  }
  return message;
}

// A message with all that it builds upon; nothing where that is missing.
function complete(message) {
  const earlier = kept.get(message.key) ?? new Map();
  let data = message;
  if (message.since) {
    const base = earlier.get(message.since);
    if (!base) return null;
    const last = base.frames[base.frames.length - 1];
    const frames = message.frames.map(({ step, layout, arrays }) => (
      { step, layout: { ...last.layout, ...layout }, arrays: joined(last.arrays, arrays) }
    ));
    data = { ...base, ...message, frames };
  }
  if (message.name) {
    earlier.set(message.name, { ...data, frames: data.frames.slice(-1) });
    if (earlier.size > KEPT) earlier.delete(earlier.keys().next().value);
    kept.set(message.key, earlier);
  }
  return data;
}

// Arrays with what is new in them: others, further points, or the same as another's.
function joined(last, arrays) {
  const all = { ...last };
  const news = Object.entries(arrays);
  for (const [name, packed] of news) {
    const values = packed.as || unpacked(packed);
    all[name] = { ...packed, values: packed.from ? [...valuesOf(last[name]).slice(0, packed.from), ...values] : values };
  }
  for (const [name, packed] of news) if (packed.as) all[name] = all[packed.as];
  return all;
}

const idOf = (packed) => packed.id ?? packed.b;
const valuesOf = (packed) => packed.values ?? unpacked(packed);

function unpacked({ b, bytes: raw, shape }) {
  const bytes = (raw ?? Uint8Array.from(atob(b), (c) => c.charCodeAt(0))).buffer;
  if (!shape) return Array.from(new Float32Array(bytes), (v) => (Number.isNaN(v) ? null : v));
  const codes = new Uint16Array(bytes);
  const [rows, columns] = shape;
  return Array.from({ length: rows }, (_, i) =>
    Array.from(codes.subarray(i * columns, (i + 1) * columns), (v) => (v === BLOCKED ? null : v / (BLOCKED - 1))));
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

function dressed(layout, theme) {
  const axis = { gridcolor: theme.line, linecolor: theme.line, zerolinecolor: theme.line };
  const axes = {};
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis\d*$/.test(name)) axes[name] = { ...axis, ...layout[name] };
  }
  return {
    ...layout, ...axes, autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: theme.text, family: theme.font, size: 13 },
    hoverlabel: { bgcolor: theme.hover, bordercolor: theme.line, font: { color: theme.text, size: 16 } },
  };
}

// On a large screen the type grows with the picture, for the last row of the room.
function scaleOf(host) {
  return Math.round(4 * Math.min(2, Math.max(1, host.clientHeight / 400))) / 4;
}

function enlarged(part, scale) {
  if (Array.isArray(part)) return part.map((inner) => enlarged(inner, scale));
  if (part === null || typeof part !== "object") return part;
  const grown = (name, value) => {
    if (/font$/.test(name) && value.size) return { ...value, size: value.size * scale };
    if (name === "margin" || name === "pad") {
      return Object.fromEntries(Object.entries(value).map(([side, n]) => [side, n * scale]));
    }
    return enlarged(value, scale);
  };
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, grown(name, value)]));
}

function put(layout, path, value) {
  const steps = path.replaceAll("[", ".").replaceAll("]", "").split(".");
  const last = steps.pop();
  let place = layout;
  for (const step of steps) place = place[step] ??= {};
  place[last] = value;
}

// In a picture of lines, the pointer upon a token leaves only that token's lines: of a row or of a column.
function followed(state, shapes) {
  const { rows, columns } = state.host.layout.meta.lines;
  return shapes.map((shape, i) => {
    const ends = [Math.floor(i / columns), i % columns];
    return { ...shape, visible: !state.token || i >= rows * columns || ends[state.token.trace] === state.token.point };
  });
}

function follow(Plotly, state, point) {
  if (!state.host.layout.meta?.lines || (point && point.curveNumber > 1)) return;
  state.token = point && { trace: point.curveNumber, point: point.pointNumber };
  Plotly.relayout(state.host, { shapes: followed(state, state.host.layout.shapes) });
}

// What to draw next: a step not shown yet, the newest numbers where they differ, or nothing. Refreshes of a
// picture that is scrolled out of sight wait until it is seen.
function nextFrame(state) {
  if (state.hidden && state.data.since) return null;
  const { frames, spec } = state.data;
  const newest = frames[frames.length - 1];
  const look = spec + JSON.stringify(themeOf(state.host)) + state.data.height + scaleOf(state.host);
  if (look !== state.look) return { frame: newest, look, anew: true };
  const unseen = frames.find((frame) => frame.step > state.step);
  if (unseen) return { frame: unseen, look };
  const changed = Object.entries(newest.arrays).some(([name, packed]) => state.arrays[name] !== idOf(packed))
    || Object.entries(newest.layout).some(([path, v]) => state.layout[path] !== JSON.stringify(v));
  return changed ? { frame: newest, look } : null;
}

async function drawAnew(Plotly, state, frame) {
  const { data: traces, layout } = JSON.parse(state.data.spec);
  for (const [name, packed] of Object.entries(frame.arrays)) {
    const [trace, attribute] = name.split(".");
    traces[trace][attribute] = valuesOf(packed);
  }
  for (const [path, value] of Object.entries(frame.layout)) put(layout, path, value);
  state.host.style.height = state.data.height;
  const scale = scaleOf(state.host);
  const finished = dressed(enlarged(layout, scale), themeOf(state.host));
  state.token = null;
  await Plotly.react(state.host, enlarged(traces, scale), finished, {
    displaylogo: false, showSendToCloud: false, responsive: false, displayModeBar: "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "png", scale: 2, filename: state.data.fileName },
  });
  if (!state.listening) {
    state.listening = true;
    state.host.on("plotly_click", (event) => {
      const { curveNumber: trace, pointNumber: point } = event.points[0];
      if (state.data.clickable) state.trigger("clicked", { trace, point });
    });
    state.host.on("plotly_hover", (event) => follow(Plotly, state, event.points[0]));
    state.host.on("plotly_unhover", () => follow(Plotly, state, null));
    state.observer = new ResizeObserver(() => {
      if (state.host.isConnected && state.host.clientWidth) Plotly.Plots.resize(state.host);
    });
    state.observer.observe(state.host);
    state.sight = new IntersectionObserver((seen) => {
      state.hidden = !seen[seen.length - 1].isIntersecting;
      pump(state);
    });
    state.sight.observe(state.host);
  }
}

async function drawChanges(Plotly, state, frame) {
  const restyled = {};
  const touched = [];
  for (const [name, packed] of Object.entries(frame.arrays)) {
    if (state.arrays[name] === idOf(packed)) continue;
    const [trace, attribute] = name.split(".");
    if (!touched.includes(+trace)) touched.push(+trace);
    (restyled[attribute] ??= {})[trace] = valuesOf(packed);
  }
  // Plotly wants one value a trace; a trace whose attribute stays is given the one it has.
  const update = {};
  for (const [attribute, values] of Object.entries(restyled)) {
    update[attribute] = touched.map((trace) => values[trace] ?? state.host.data[trace][attribute]);
  }
  const relaid = {};
  for (const [path, value] of Object.entries(frame.layout)) {
    if (state.layout[path] !== JSON.stringify(value)) relaid[path] = value;
  }
  // Longer row labels push the axis title aside only where the whole plot is laid out again.
  if (Object.keys(relaid).some((path) => path.startsWith("yaxis.tick"))) relaid["margin.l"] = state.host.layout.margin.l;
  if (relaid.shapes && state.token) relaid.shapes = followed(state, relaid.shapes);
  state.host._context.toImageButtonOptions.filename = state.data.fileName;
  await Plotly.update(state.host, update, relaid, touched.length ? touched : [0]);
}

// One picture after another, first come first served: the browser paints each, and answers clicks in between.
let turn = Promise.resolve();
function inTurn(draw) {
  const drawn = turn.then(draw);
  turn = drawn.catch(() => {}).then(() => new Promise((resolve) => setTimeout(resolve, 0)));
  return drawn;
}

async function drawNext(Plotly, state) {
  const job = state.host.isConnected && nextFrame(state);
  if (!job) return false;
  const { frame, look, anew } = job;
  if (anew) await drawAnew(Plotly, state, frame);
  else await drawChanges(Plotly, state, frame);
  state.look = look;
  state.step = frame.step;
  state.arrays = Object.fromEntries(Object.entries(frame.arrays).map(([name, packed]) => [name, idOf(packed)]));
  state.layout = Object.fromEntries(Object.entries(frame.layout).map(([p, v]) => [p, JSON.stringify(v)]));
  state.host.dataset.step = frame.step;
  state.host.dataset.draws = (state.draws += 1);
  delete state.host.dataset.failed;
  state.host.querySelector(".failed")?.remove();
  return true;
}

async function pump(state) {
  if (state.busy) return; // the loop below takes the newest message when it comes round
  state.busy = true;
  try {
    const Plotly = await loadPlotly(state.base, state.data.library);
    while (await inTurn(() => drawNext(Plotly, state)));
  } catch (error) {
    if (!state.host.isConnected) return; // taken off the page in the middle of drawing
    console.error(error);
    state.look = undefined; // the next message draws everything again
    state.host.dataset.failed = String(error);
    if (!state.draws) state.host.innerHTML = `<p class="failed" role="alert" style="padding: 1rem"></p>`;
    const note = state.host.querySelector(".failed");
    if (note) note.textContent = `The picture could not be drawn (${error.message}). Reload the page.`;
  } finally {
    state.busy = false;
    // While a run stands still no other message comes: what has not been drawn at all is tried again by itself.
    if (!state.draws && !state.gone && (state.tries += 1) < 20) setTimeout(() => pump(state), 500);
  }
}

export default function liveFigure({ data: sent, parentElement, setTriggerValue }, base) {
  let state = instances.get(parentElement);
  const host = parentElement.querySelector(".live-figure");
  const message = read(sent);
  const data = complete(message);
  if (!data) {
    setTriggerValue("lost", message.since);
    return () => {};
  }
  if (!state || state.host !== host) {
    state = { host, base, draws: 0, tries: 0, step: -1, arrays: {}, layout: {} };
    host.style.height = data.height;
    instances.set(parentElement, state);
  }
  state.data = data;
  state.trigger = setTriggerValue;
  pump(state);
  return () => {
    if (host.isConnected) return; // called too when a newer message overtakes this one
    state.gone = true;
    state.observer?.disconnect();
    state.sight?.disconnect();
    window.Plotly?.purge(host);
    instances.delete(parentElement);
  };
}
