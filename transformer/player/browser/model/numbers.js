// What the picture of the model shows besides tables: likely tokens, the logit lens, roles, the changes by one training
// step, and the legend.

import { element, percent } from "../shared/element.js";
import { cellOf } from "./picture.js";

const LOG = [1e-7, 10]; // ends of the bars of gradients, updates and ratios
const LIKELY = 5; // tokens of the last box that are drawn as bars

// The most probable tokens at a position. after: (T, V) probabilities after the step, if shown.
export function drawLikely(host, pass, box, writing, after) {
  const row = Array.from({ length: pass.vocabulary.length }, (_, token) => [cellOf(box.of.probabilities, 0, writing, token), token]);
  row.sort(([a], [b]) => b - a);
  const right = pass.hasAnswer ? pass.expected[writing] : null;
  host.innerHTML = "";
  host.append(...row.slice(0, LIKELY).map(([share, token]) => {
    const bar = element("i");
    bar.style.width = `${100 * share}%`;
    const name = pass.vocabulary[token];
    const before = percent(share, true), number = after ? `${before.slice(0, -1)} → ${percent(after[writing * row.length + token], true)}` : before;
    return element("tr", { className: name === right ? "right" : "" }, element("th", { textContent: name, title: name }),
      element("td", {}, bar), element("td", { textContent: number }));
  }));
}

// The logit lens: what the model would write if it ended after a box.
export function drawLens(host, pass, box, writing) {
  const found = box.lens[writing];
  host.hidden = !found;
  if (!found) return;
  const [[token, share]] = found;
  const name = pass.vocabulary[token];
  host.textContent = `${name} ${percent(share, true)}`;
  host.classList.toggle("right", pass.hasAnswer && name === pass.expected[writing]);
  host.title = `Logit lens: if the model stopped after this box, it would write ${found.map(([id, p]) => `“${pass.vocabulary[id]}” ${percent(p, true)}`).join(", ")}.`;
}

// How many heads of an attention share its most frequent role. roles: the role of each head, with its score if it has one.
export function drawRole(host, roles) {
  host.hidden = !roles;
  if (!roles) return;
  const names = roles.map((role) => role.replace(/ \d+%$/, ""));
  const count = (name) => names.filter((one) => one === name).length;
  const [most] = [...new Set(names)].filter((name) => !name.startsWith("no ")).sort((a, b) => count(b) - count(a));
  host.textContent = !most ? "no clear pattern" : names.length > 1 ? `${count(most)} of ${names.length} heads: ${most}` : most;
  host.title = roles.map((role, head) => `head ${head + 1}: ${role}`).join(", ");
}

// How much one step moves the weights of a box.
export function drawChanges(host, found) {
  host.hidden = !found;
  if (!found) return;
  const [low, high] = LOG.map(Math.log10);
  host.replaceChildren(...["gradient", "update", "ratio"].map((what) => {
    const bar = element("i");
    const share = (Math.log10(Math.max(found[what], 10 ** low)) - low) / (high - low);
    bar.style.width = `${100 * Math.min(1, share)}%`;
    const value = what === "ratio" ? `${(100 * found.ratio).toPrecision(2)}%` : found[what].toPrecision(2);
    return element("div", { className: what, title: `${what === "ratio" ? "update ÷ weights" : `norm of the ${what}`}: ${value}` },
      element("span", {}, bar), element("small", { textContent: value }));
  }));
}

// The batch of the step, and a key to the bars in the boxes.
export function drawBatch(host, change, compare, choose) {
  if (!change?.boxes) {
    host.replaceChildren(element("p", { textContent: change?.refused ?? "Computing what the step changes…" }));
    return;
  }
  const compares = ["before", "after", "difference"].map((value) => element("button", {
    type: "button", textContent: value, ariaPressed: String(value === compare), onclick: () => choose(value),
  }));
  const most = Math.max(1, ...change.rows.flatMap(({ losses }) => losses));
  const rows = change.rows.map(({ reads, writes, losses }) => element("tr", {}, element("th", { textContent: reads.join(" ") }),
    element("td", {}, ...writes.map((textContent, i) => {
      const token = element("span", { textContent, title: `loss of “${textContent}”: ${losses[i].toFixed(3)}` });
      token.append(element("small", { textContent: losses[i].toFixed(2) }));
      token.style.setProperty("--loss", losses[i] / most);
      return token;
    }))));
  const left = change.without.length ? ` Computed without ${change.without.join(" and ")}.` : "";
  host.replaceChildren(
    element("p", { className: "bars key" }, "Bars in each box, on one log scale: ", ...["gradient", "update", "ratio"].map((what) => (
      element("span", { className: what }, element("i"), ` ${what === "ratio" ? "update ÷ weights" : `norm of the ${what}`} `)))),
    element("div", { className: "choices", role: "group", ariaLabel: "Maps of weights" }, element("small", { textContent: "Maps of weights: " }), ...compares),
    element("p", { textContent: `Step ${change.step.toLocaleString("en")}: loss ${change.loss.toFixed(3)}.${left} `
      + `${change.rows.length} of the ${change.n_rows} rows of its batch, with the loss of each token:` }),
    element("table", {}, ...rows));
}

// The colours of numbers, and why cells of open boxes are blocked, by colour and mark.
export function drawLegend(host, pass, parts) {
  const codes = new Set([...parts.values()].filter(({ box, tables }) => box.of.mask && tables.length).flatMap(({ box }) => [...box.of.mask.values]));
  const scale = (role, ...texts) => {
    const bar = element("i");
    bar.style.background = `linear-gradient(90deg, ${pass.scales[role].map(([at, color]) => `${color} ${100 * at}%`).join(", ")})`;
    return element("span", {}, texts[0], bar, texts[1]);
  };
  host.replaceChildren(scale("weights", "weights 0", "100%"), scale("plain", "other numbers −", "+"),
    ...Object.entries(pass.blocked).filter(([code]) => codes.has(Number(code))).map(([, [color, mark, name]]) => {
      const sign = element("b", { textContent: mark });
      sign.style.background = color;
      return element("span", {}, sign, ` ${name}`);
    }));
}
