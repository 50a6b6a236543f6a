// The exported page: one slider moves every panel. All numbers are in the page; nothing is ever fetched.

"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const chosen = { ...data.first, index: data.frames.length - 1 };
const EACH_MS = 150;

// ---- The maps ----

const unpacked = new Map(); // "word site" -> promise of all its maps

function mapsOf(word, site) {
  const key = `${word} ${site}`;
  if (!unpacked.has(key)) {
    const bytes = Uint8Array.from(atob(data.words[word].weights[site].b), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked.set(key, new Response(stream).arrayBuffer().then((buffer) => new DataView(buffer)));
  }
  return unpacked.get(key);
}

// One head's rows of codes at the frame shown: a weight in parts, or why the cell is blocked; null everywhere if
// nothing was kept of the word at this step.
function codesOf(view, word, site, head) {
  const { frames, weights } = data.words[word];
  const [, heads, rows, columns] = weights[site].shape;
  const nth = frames.indexOf(chosen.index);
  const number = (row, column) => {
    if (nth < 0) return null;
    return view.getUint16(2 * (((nth * heads + head) * rows + row) * columns + column), true);
  };
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => number(row, column)));
}

function weightsOf(codes) {
  return codes.map((row) => row.map((code) => (code === null || code > data.parts ? null : code / data.parts)));
}

// ---- How figures look ----

// On a large screen the type grows with the picture, for the last row of the room.
function scaleOf(host) {
  return Math.min(2, Math.max(1, host.clientHeight / 420));
}

function dressed(layout, host) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: color("--line"), linecolor: color("--line"), zerolinecolor: color("--line") };
  const scale = scaleOf(host);
  const grown = enlarged(layout, scale);
  for (const name of Object.keys(grown)) {
    if (/^[xy]axis\d*$/.test(name)) grown[name] = { ...axis, ...grown[name] };
  }
  return {
    ...grown, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 * scale },
    hoverlabel: { bgcolor: color("--field"), bordercolor: color("--line"), font: { color: color("--ink"), size: 16 } },
  };
}

function enlarged(part, scale) {
  if (Array.isArray(part)) return part.map((inner) => enlarged(inner, scale));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => {
    if (/font$/.test(name) && value.size) return [name, { ...value, size: value.size * scale }];
    if (name !== "margin" && name !== "pad") return [name, enlarged(value, scale)];
    return [name, Object.fromEntries(Object.entries(value).map(([side, n]) => [side, n * scale]))];
  }));
}

function show(host, figure, fileName) {
  return Plotly.react(host, enlarged(figure.data, scaleOf(host)), dressed(figure.layout, host), {
    displaylogo: false, showSendToCloud: false, showEditInChartStudio: false, responsive: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "png", scale: 2, filename: fileName },
  });
}

const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const counted = (n) => n.toLocaleString("en-US");

// ---- What is drawn at a step ----

function large(frame, view) {
  const { word, kind, site, head } = chosen;
  const { short, fed } = data.words[word];
  const { large: spec } = data.words[word].drawn[kind];
  const { rows, columns } = labelsOf(word, kind);
  const figure = JSON.parse(spec);
  const codes = codesOf(view, word, site, head);
  figure.data[0].z = weightsOf(codes);
  const about = [frame.roles[site][head], `“${short}”`, `seed ${data.seed}`, fed].filter(Boolean).join(" · ");
  figure.layout.title.text = `<b>${data.heads[site][head]}</b> · step ${counted(frame.step)}<br>`
    + `<span style='font-size:${0.75 * Math.min(1, 54 / about.length)}em'>${plain(about)}</span>`;
  const wrong = data.kinds[kind].writes ? frame.probes[word]?.wrong ?? {} : {};
  figure.layout.yaxis.ticktext = rows.map((row, i) => (i in wrong ? `${row} <b>✗</b> ${wrong[i]}` : row));
  if (columns) figure.layout.xaxis.ticktext = columns;
  if (figure.layout.xaxis.tickangle) { // words: their cells need the room
    figure.layout.xaxis.tickfont.size = 14 / scaleOf(at("large"));
    figure.layout.yaxis.tickfont.size = 16 / scaleOf(at("large"));
  }
  figure.data.push(...blockedCells(codes, {}, 0));
  return figure;
}

// What stands at the axes: always the same, unless the model reads its own tokens, which change from step to step.
function labelsOf(word, kind) {
  const { frames, drawn } = data.words[word];
  const { rows, changing } = drawn[kind];
  return changing ? changing[Math.max(0, frames.indexOf(chosen.index))] : { rows };
}

// Cells that are blocked at this step, drawn as blocked: a trace for each reason that there is.
function blockedCells(codes, { x, y }, tile) {
  return data.blocked.flatMap(({ code, color, mark, why }) => {
    const z = codes.map((row) => row.map((cell) => (cell === code ? 1 : null)));
    if (!z.flat().includes(1)) return [];
    return [{
      type: "heatmap", z, x, y, meta: tile, xgap: 1, ygap: 1, showscale: false, hoverongaps: false,
      colorscale: [[0, color], [1, color]],
      text: z.map((row) => row.map((cell) => (cell ? mark : ""))),
      texttemplate: x ? undefined : "%{text}", // there is no room for it in a small map
      textfont: { color: data.mark, size: 11 },
      hovertemplate: `%{y} may not look at %{x}<br>${why}<extra></extra>`,
    }];
  });
}

function strip(frame, views) {
  const { word, kind, site, head } = chosen;
  const { sites } = data.kinds[kind];
  const { strip: spec, names } = data.words[word].drawn[kind];
  const figure = JSON.parse(spec);
  const { rows, columns } = labelsOf(word, kind);
  if (columns) {
    for (const [axis, labels] of [[figure.layout.xaxis, columns], [figure.layout.yaxis, rows]]) {
      axis.ticktext = axis.tickvals.map((_, i) => labels[i % labels.length]);
    }
  }
  sites.forEach((one, layer) => names[layer].forEach((name, number) => {
    const tile = number * sites.length + layer;
    const lit = frame.lit[one]?.[number];
    const codes = codesOf(views[layer], word, one, number);
    figure.data[tile].z = weightsOf(codes);
    figure.data.push(...blockedCells(codes, figure.data[tile], tile));
    figure.layout.annotations[tile].text = lit ? `<b>★ ${name}</b>` : name;
    figure.layout.shapes[tile].line.width = one === site && number === head ? 4 : lit ? 2 : 0;
  }));
  return figure;
}

function outputs(frame) {
  const words = Object.keys(data.words).sort((a, b) => (b === chosen.word) - (a === chosen.word));
  return words.filter((word) => frame.probes[word]).flatMap((word) => {
    const { letters, right } = frame.probes[word];
    const row = document.createElement("tr");
    row.className = word === chosen.word ? "chosen" : "";
    const add = (tag, text, parent, className = "") => {
      const element = document.createElement(tag);
      element.textContent = text;
      element.className = className;
      return parent.appendChild(element);
    };
    const rows = [row];
    if (word.includes(" ") || word.length > 24) { // a sentence stands above its translation
      const above = document.createElement("tr");
      above.className = row.className = `${row.className} long`;
      add("small", word, add("td", "", above)).parentElement.colSpan = 3;
      rows.unshift(above);
    } else add("td", word, row);
    const written = add("td", "→ ", row);
    written.colSpan = rows.length;
    if (letters === null) add("small", "not asked yet", written);
    for (const [letter, ok] of letters ?? []) add("span", letter, written, right === null ? "" : ok ? "ok" : "no");
    const mark = add("td", "", row);
    if (letters !== null && right === null) mark.title = "nobody here knows the right answer";
    if (right !== null) add("b", right ? "✓" : "✗", mark, right ? "yes" : "not").title = right ? "right" : "wrong";
    add("small", ` ${data.words[word].remark}`, mark);
    return rows;
  });
}

const WRONG = `✗ marks a row that would write the wrong ${data.token}, and which. `;
const PASSES = { // what the maps run over, to what has to be said of it
  "teacher-forced": `${WRONG}Maps are measured with the right answer as input; the outputs are what the model writes `
    + "by itself.",
  "free-running": "Nobody here knows the right answer: the maps run over what the model wrote by itself.",
  "": `${WRONG}Maps and outputs are of the same pass over the ${data.token === "letter" ? "word" : "question"}.`,
};

function writeNumbers(frame, codes) {
  const last = data.frames[data.frames.length - 1].step;
  at("loss").textContent = frame.loss === null ? "–" : frame.loss.toFixed(3);
  at("right").textContent = frame.right ? `${counted(frame.right[0])} / ${counted(frame.right[1])}` : "–";
  at("right-step").textContent = frame.right ? `held-out ${data.examples}, at step ${counted(frame.rightStep)}` : "";
  at("step-shown").textContent = counted(frame.step);
  at("step-last").textContent = `of ${counted(last)}`;
  at("step").value = chosen.index;
  at("step").setAttribute("aria-valuetext", `step ${counted(frame.step)}`);
  const notes = [frame.taken && `At this step: ${frame.taken}`];
  if (!frame.probes[chosen.word]) {
    const since = counted(data.words[chosen.word].since);
    notes.unshift(`“${chosen.word}” has no map of this step; its first is of step ${since}.`);
  }
  at("note").textContent = notes.filter(Boolean).join(" · ");
  at("written").textContent = frame.written === frame.step ? "" : ` at step ${counted(frame.written)}`;
  at("outputs").replaceChildren(...outputs(frame));
  const past = data.moments.filter((moment) => moment.step <= frame.step).length - 1;
  [...at("moments").children].forEach((button, i) => button.setAttribute("aria-current", i === past));
  at("moments").scrollLeft = (at("moments").children[past]?.offsetLeft ?? 0) - at("moments").offsetLeft;
  const over = frame.probes[chosen.word]?.over ?? null; // the step of the output under the maps
  const met = data.blocked.filter(({ code }) => codes.flat().includes(code)).map(({ cells }) => ` ${cells}.`);
  at("reading").textContent = `${data.kinds[chosen.kind].reading} The brighter a cell, the more of its attention the `
    + `row puts there; every row adds up to 100 %.${met.join("")} `
    + PASSES[data.words[chosen.word].fed]
    + (over === null ? "" : ` Here that is what it wrote at step ${counted(over)}.`);
}

let drawing = false;
let stale = false;

async function draw() {
  stale = true;
  if (drawing) return; // the loop below draws the newest choice when it comes round
  drawing = true;
  try {
    while (stale) await drawNewest();
  } catch (error) {
    at("note").textContent = `This browser cannot draw the page (${error.message}). Open it in a newer one.`;
  } finally {
    drawing = false;
  }
}

async function drawNewest() {
  stale = false;
  const { sites } = data.kinds[chosen.kind];
  const { word, site, head } = chosen;
  const views = await Promise.all(sites.map((one) => mapsOf(word, one)));
  if (stale) return; // something else has been chosen meanwhile
  const frame = data.frames[chosen.index];
  writeNumbers(frame, codesOf(views[sites.indexOf(site)], word, site, head));
  const plainName = word.replace(/[^\p{L}\p{N}]+/gu, "-");
  const name = `headlight-${plainName}-seed${data.seed}-step${frame.step}`;
  await show(at("large"), large(frame, views[sites.indexOf(site)]), `${name}-${site}-head${head + 1}`);
  await show(at("strip"), strip(frame, views), `${name}-${chosen.kind}`);
  await Plotly.relayout(at("curves"), {
    "shapes[0].visible": true, "shapes[0].x0": frame.step, "shapes[0].x1": frame.step,
  });
  document.body.dataset.step = frame.step; // all panels show this step
  await new Promise((resolve) => setTimeout(resolve, 0)); // let the browser paint and answer
}

// ---- Choosing ----

function options(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => new Option(text, key, false, key === value)));
}

function offerHeads() {
  const { sites } = data.kinds[chosen.kind];
  const entries = sites.flatMap((site) => data.heads[site].map((name, head) => [`${site} ${head}`, name]));
  options(at("head"), entries, `${chosen.site} ${chosen.head}`);
}

function go(index) {
  chosen.index = Math.max(0, Math.min(data.frames.length - 1, index));
  return draw();
}

function nearest(step) {
  const far = (frame) => Math.abs(frame.step - step);
  return data.frames.reduce((best, frame, i) => (far(frame) < far(data.frames[best]) ? i : best), 0);
}

let playing = false;

function setPlaying(on) {
  playing = on;
  at("play").textContent = on ? "❚❚ Pause" : "▶ Play";
}

async function play() {
  if (playing) return setPlaying(false);
  setPlaying(true);
  if (chosen.index === data.frames.length - 1) await go(0);
  while (playing && chosen.index < data.frames.length - 1) {
    await new Promise((resolve) => setTimeout(resolve, EACH_MS));
    if (playing) await go(chosen.index + 1);
  }
  setPlaying(false);
}

async function begin() {
  at("step").max = data.frames.length - 1;
  options(at("word"), Object.keys(data.words).map((word) => [word, word]), chosen.word);
  options(at("kind"), Object.entries(data.kinds).map(([kind, { name }]) => [kind, name]), chosen.kind);
  offerHeads();
  at("moments").replaceChildren(...data.moments.map(({ step, text }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `step ${counted(step)}: ${text}`;
    button.onclick = () => { setPlaying(false); go(nearest(step)); };
    return button;
  }));
  at("step").oninput = () => { setPlaying(false); go(Number(at("step").value)); };
  at("play").onclick = play;
  at("word").onchange = () => { chosen.word = at("word").value; draw(); };
  at("kind").onchange = () => {
    chosen.kind = at("kind").value;
    chosen.site = data.kinds[chosen.kind].sites.at(-1);
    chosen.head = 0;
    offerHeads();
    draw();
  };
  at("head").onchange = () => {
    const [site, head] = at("head").value.split(" ");
    Object.assign(chosen, { site, head: Number(head) });
    draw();
  };
  await show(at("curves"), data.curves, `headlight-seed${data.seed}-curves`);
  await draw();
  at("strip").on("plotly_click", ({ points }) => {
    const { sites } = data.kinds[chosen.kind];
    const { curveNumber: trace, data: { meta } } = points[0];
    const tile = meta ?? trace % (sites.length * data.heads[sites[0]].length);
    Object.assign(chosen, { site: sites[tile % sites.length], head: Math.floor(tile / sites.length) });
    offerHeads();
    draw();
  });
  at("curves").on("plotly_click", ({ points }) => {
    setPlaying(false);
    go(nearest((points.find((point) => point.data.name === "moments") ?? points[0]).x));
  });
  const redress = async () => {
    await show(at("curves"), data.curves, `headlight-seed${data.seed}-curves`);
    await draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redress, 150); });
}

begin();
