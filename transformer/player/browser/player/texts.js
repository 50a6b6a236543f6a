// Numbers, sentences and choices around the pictures, of the same step as the maps.

import { nearest } from "../shared/chunks.js";
import { element, escaped } from "../shared/element.js";
import { counted } from "./control.js";

export const GOES_ON = ["idle", "queued", "training", "paused"]; // states in which more steps may come
const PASSES = {
  "teacher-forced": (token) => `✗ marks a row that would write the wrong ${token}, and which. For the maps, the model is given `
    + `the right answer so far (teacher-forced); the outputs are what it writes on its own (free-running).`,
  "free-running": () => "Nobody here knows the right answer: the maps run over what the model wrote on its own (free-running).",
  "its inputs": () => "Maps are of the inputs that were given to Watch, in eval mode.",
  mean: () => "Each cell is the mean over these words, by the places of their letters.",
  "": (token) => `✗ marks a row that would write the wrong ${token}, and which. Maps and outputs are of the same pass.`,
};

export class Texts {
  // choose: called with {word} or {kind}
  constructor(root, choose) {
    Object.assign(this, { root, choose });
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  set(selector, html) {
    const place = this.find(selector);
    if (place && place.said !== html) place.innerHTML = place.said = html;
  }

  // Write the status line, after a sentence on a bad connection; without a connection the line is left out, as out of date.
  status(html) {
    this.usual = html;
    const lost = this.root.hasAttribute("data-lost");
    this.set(".st-key-run_status p", [this.trouble, !lost && html].filter(Boolean).join(" · "));
  }

  // Note a sentence on the connection, empty if it is good, and whether it is lost.
  connection(trouble, lost) {
    this.trouble = trouble;
    const was = this.root.hasAttribute("data-lost");
    this.root.toggleAttribute("data-lost", lost);
    if (was && !lost) window.dispatchEvent(new Event("headlight-connected"));
    this.status(this.usual ?? "");
  }

  // Texts that need no index yet.
  early(now) {
    this.status(now.status);
    this.set(".st-key-moment p", withLinks(now.headline));
  }

  // Write the header of the player. over: a sentence that replaces the usual one; greets: one that replaces it at LIVE;
  // head: the large head.
  header({ index, now, segment, step, live, over, greets, head }) {
    const measured = segment.measured === step ? "" : `scores measured at step ${counted(segment.measured)}`;
    const marks = index.moments.length ? `<span class='marks'><i class='tick'></i> a milestone (head, loss${index.own ? "" : " or test score"})</span>` : "";
    this.status([now?.status, measured, marks].filter(Boolean).join(" · "));
    // The index may be behind the run: while it trains, the sentence is of the same scores as the titles of the maps.
    const current = () => greets ?? (now.waits || (now.state === "training" ? segment.said : now.headline));
    this.set(".st-key-moment p", withLinks(over ?? (live && now ? current() : lookingBack(index, segment, step)), head));
    this.find(".st-key-moment p").title = this.find(".st-key-moment p").textContent;
    const place = nearest(index.steps, step);
    const loss = index.steps[place] === step ? index.losses[place] : null;
    const known = loss ?? (now?.at === step ? now.loss : null);
    this.set(".loss", `${index.own ? "" : "training "}loss <b>${known === null ? "–" : known.toFixed(3)}</b>${measured && known !== null ? `<span class='detail'> at step ${counted(step)}</span>` : ""}`);
    this.set(".counter b", counted(step));
    this.set(".counter small", now && !index.own && GOES_ON.includes(now.state) ? `training step of ${counted(now.planned)}` : "training step");
    this.set(".st-key-words_right", index.texts[segment.right]);
  }

  // Write the texts around the maps.
  around({ index, at, segment, step, maps, more }) {
    this.choices(index, at, more);
    const notes = [segment.taken && `At this step: ${segment.taken}`];
    if (!maps) notes.unshift(this.root.hasAttribute("data-lost") ? `The map of step ${counted(step)} is not loaded.` : `“${escaped(at.word)}” has no map of step ${counted(step)}.`);
    this.set(".note", notes.filter(Boolean).join(" · "));
    this.outputs(index, at, segment, step);
    const look = maps?.look;
    this.set(".reading", `${index.kinds[at.kind].reading} ${look ? PASSES[look.mean ? "mean" : look.fed](index.token) : ""}`
      + (look?.over != null ? ` Here that is what it wrote at step ${counted(look.over)}.` : ""));
  }

  // Write the free-running outputs of the model, the chosen word on top.
  outputs(index, at, segment, step) {
    if (index.own) return; // outputs of an own model are not known
    const words = Object.keys(segment.outputs).sort((a, b) => (b === at.word) - (a === at.word));
    const rows = words.map((word) => `<tbody class="${word === at.word ? "chosen" : ""}">${index.texts[segment.outputs[word]]}</tbody>`);
    const when = segment.written === step ? "" : ` at ${counted(segment.written)}`;
    const signs = Object.entries({ "class='no'": "dotted: wrong", "·": "·: missing", "…": "…: it did not end" })
      .flatMap(([sign, means]) => (rows.some((row) => row.includes(sign)) ? [means] : [])).join(", ");
    this.set(".st-key-live_outputs", `<small>What the model writes on its own${when}${signs && ` (${signs})`}:</small><table class="hl-outputs">`
      + `${rows.join("")}</table>${index.texts[segment.lengths]}`);
    this.find(".st-key-live_outputs table").dataset.step = step;
    this.set(".st-key-samples", index.texts[segment.samples]);
  }

  // Words and kinds of attention as buttons. more: words of another run, which the page then shows.
  choices(index, at, more = []) {
    const words = [...index.words, ...more];
    const offered = JSON.stringify([words, Object.keys(index.kinds), at.word, at.kind]);
    if (offered === this.offered) return;
    this.offered = offered;
    this.buttons(".st-key-word", words.map((word) => [word, index.means[word] ?? word]), at.word, (word) => this.choose({ word }));
    const list = this.find(".st-key-word"), chosen = list.querySelector("[aria-pressed=true]");
    if (chosen) list.scrollLeft = chosen.offsetLeft - list.offsetLeft - 40; // scroll only this list
    const kinds = Object.entries(index.kinds).map(([kind, { name }]) => [kind, name]);
    this.buttons(".st-key-kind", kinds, at.kind, (kind) => this.choose({ kind }));
    this.find(".st-key-kind").hidden = kinds.length < 2;
    this.set(".looks", index.kinds[at.kind].looks);
    const gold = Object.values(index.looks).some(({ kinds: all }) => Object.values(all).some((one) => one.gold.length));
    this.find(".st-key-outline").hidden = !gold;
  }

  buttons(selector, entries, chosen, choose) {
    const host = this.find(selector), focused = host.contains(document.activeElement);
    host.replaceChildren(...entries.map(([value, textContent]) => {
      const button = element("button", { type: "button", textContent, ariaPressed: value === chosen, onclick: () => choose(value) });
      button.dataset.value = value;
      return button;
    }));
    if (focused) host.querySelector("[aria-pressed=true]")?.focus();
  }
}

// The text of a past step: what it shows, and its moments.
function lookingBack(index, segment, step) {
  return [segment.said, ...index.moments.filter((moment) => moment.step === step).map((moment) => `★ ${moment.said}.`)].join(" ");
}

// A sentence in which the name of the large head, `head`, is plain text instead of a link to it; without `head`, the names
// of all heads are.
export function withLinks(said, head) {
  return said.replace(/<button type="button" data-head="([^"]*)\.(\d+)">(.*?)<\/button>/g, (link, site, number, name) => {
    return !head || (site === head[0] && Number(number) === head[1] + 1) ? name : link;
  });
}
