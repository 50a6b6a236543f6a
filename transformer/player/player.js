// The player: what is looked at of a recording is decided here, and drawn at once. It takes chunks from a source.

import { Control, counted } from "./control.js";
import { Drawing, failed, loadPlotly } from "./drawing.js";
import { nearest, upTo } from "./chunks.js";

const RESTED = 250; // ms after which others are told where it stands
const PASSES = {
  "teacher-forced": (token) => `✗ marks a row that would write the wrong ${token}, and which. Maps are measured with `
    + "the right answer as input; the outputs are what the model writes by itself.",
  "free-running": () => "Nobody here knows the right answer: the maps run over what the model wrote by itself.",
  "": (token) => `✗ marks a row that would write the wrong ${token}, and which. Maps and outputs are of the same pass.`,
};

export class Player {
  // first: {word, kind, pinned, step, outline, follow}; tell: called with the same once it has rested
  constructor(root, source, { plotly, first, tell = () => {}, fileName = "headlight", mayFollow = false, mass = "" }) {
    Object.assign(this, { root, source, tell, fileName, mass, now: null, newest: null, sentence: null, playing: false });
    this.at = { word: null, kind: null, pinned: null, step: null, outline: false, follow: mayFollow, ...first };
    this.find = (selector) => root.querySelector(selector);
    this.whole = !root.dataset.parts; // otherwise the step control alone
    const drawing = (name, hooks) => new Drawing(this.find(`.st-key-${name} .live-figure`), { plotly, ...hooks });
    this.control = new Control(root, {
      go: (step) => this.go(step), live: () => this.go(null), play: () => this.play(), rested: () => this.rest(),
    });
    if (this.whole) {
      loadPlotly(plotly);
      this.large = drawing("live_map", { pressed: (cell) => this.cell?.(cell) });
      this.strip = drawing("live_maps", { pressed: (cell) => this.pin(cell) });
      this.curves = drawing("live_curves", { clicked: (_trace, _point, point) => this.goTo(point), usual: 260 });
      this.scores = drawing("alignment_mass", { usual: 300 });
      this.find(".st-key-alignment_mass p").innerHTML = mass;
      const outline = this.find(".st-key-outline input");
      outline.checked = this.at.outline;
      outline.onchange = () => this.choose({ outline: outline.checked });
    }
    const follow = this.find(".st-key-follow");
    follow.hidden = !mayFollow;
    follow.firstChild.checked = this.at.follow;
    follow.firstChild.onchange = () => this.choose({ follow: follow.firstChild.checked });
    this.find(".st-key-fullscreen button").onclick = () => this.fill();
    this.onKey = (event) => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "range";
      const alone = !event.ctrlKey && !event.altKey && !event.metaKey;
      if (event.key.toLowerCase() === "f" && alone && !typing && !event.target.isContentEditable) this.fill();
    };
    if (this.whole) document.addEventListener("keydown", this.onKey);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.dressed = () => this.dress();
    this.scheme.addEventListener("change", this.dressed);
    this.filled = () => this.draw(true); // with other type, and in other words
    document.addEventListener("fullscreenchange", this.filled);
    source.begin((news) => this.hear(news));
  }

  get index() {
    return this.source.index;
  }

  // ---- What comes ----

  hear({ now, maps, sentence }) {
    if (now) {
      if (this.at.follow && now.owner !== this.at.step && !this.control.busy) this.at.step = now.owner;
      this.now = now;
      this.noticed?.(now);
    }
    if (maps) this.newest = maps;
    if (sentence) this.sentence = sentence;
    if (this.index) {
      this.settle();
      this.draw(this.shown?.maps.chunk.word !== this.at.word); // a word that was chosen does not wait
    } else this.says();
  }

  // Stand at what this run has.
  settle() {
    const { at, index } = this;
    const kinds = Object.keys(index.kinds);
    if (!kinds.includes(at.kind)) at.kind = kinds[0];
    if (!index.words.includes(at.word)) at.word = this.wanted && index.words.includes(this.wanted) ? this.wanted : at.word ?? index.words[0];
    this.say();
  }

  // Tell the source what is looked at, where that is another.
  say() {
    const look = [this.at.word, ...this.head()];
    const live = this.at.step === null;
    const said = JSON.stringify([look, live]);
    if (said === this.said) return;
    this.said = said;
    this.source.say({ look, live });
  }

  // ---- What is looked at ----

  get sites() {
    return this.index.kinds[this.at.kind].sites;
  }

  // The head that is shown large: the one that was clicked, or the one with the clearest pattern.
  head() {
    const [site, head] = this.at.pinned ?? [];
    const { sites } = this;
    if (sites.includes(site) && head < this.index.heads[site].length) return [site, head];
    const { clearest } = this.segment(this.step());
    return sites.includes(clearest[0]) ? clearest : [sites.at(-1), 0];
  }

  segment(step) {
    return upTo(this.index.segments, step);
  }

  // The recorded step that is wanted.
  step() {
    const { steps } = this.index;
    if (this.at.step === null) return this.newest && this.now ? this.newest.step : steps.at(-1);
    return steps[nearest(steps, this.at.step)];
  }

  choose(change) {
    Object.assign(this.at, change);
    this.chosen = true;
    if (this.index) this.say();
    this.draw(true);
    this.rest();
  }

  go(step) {
    this.playing = false;
    const own = this.at.follow ? { follow: false } : {};
    this.find(".st-key-follow").firstChild.checked = false;
    this.choose({ step, ...own });
  }

  pin(cell) {
    const found = this.shown?.maps.tileAt(this.sites[0], cell);
    if (!this.sites[found?.layer] || !(found.head < this.index.heads[this.sites[0]].length)) return;
    const picked = [this.sites[found.layer], found.head];
    const same = JSON.stringify(picked) === JSON.stringify(this.at.pinned);
    this.choose({ pinned: same ? null : picked });
  }

  goTo(point) {
    const { steps } = this.index;
    this.go(steps[nearest(steps, point.x)]);
  }

  rest() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      if (this.control.busy || this.playing) return;
      if (this.at.step !== null && this.whole) this.source.say({ asks: this.step() });
      const said = JSON.stringify(this.at);
      if (said === this.told) return;
      this.told = said;
      this.tell({ ...this.at, at: this.index ? this.step() : null });
    }, RESTED);
  }

  async play() {
    if (this.playing) {
      this.playing = false;
      this.draw();
      this.rest();
      return;
    }
    const { steps } = this.index;
    let place = nearest(steps, this.step());
    if (this.at.step === null || place === steps.length - 1) place = -1;
    this.go(steps[place + 1]);
    this.playing = true;
    while (this.playing) {
      const began = performance.now();
      const { steps: known } = this.index;
      place = nearest(known, this.at.step);
      if (this.film) await this.film(known[place]); // a page whose pictures come from elsewhere
      else await this.draw(true);
      const left = 1000 / this.control.speed - (performance.now() - began);
      if (left > 0) await new Promise((done) => setTimeout(done, left));
      if (!this.playing) return;
      if (place >= this.index.steps.length - 1) break;
      this.at.step = this.index.steps[place + 1];
    }
    this.playing = false;
    this.draw();
    this.rest();
  }

  // From here to the newest step, where it stays.
  async playToEnd() {
    await this.play();
    if (this.at.step === this.index.steps.at(-1)) this.choose({ step: null });
  }

  get fills() {
    return document.fullscreenElement === this.root;
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.().catch(() => {});
  }

  // ---- Drawing: always the newest, and half of the time is left to the browser ----

  draw(atOnce = false) {
    this.stale = true;
    if (atOnce) this.wake?.();
    this.drawing ??= this.drawAll().finally(() => { this.drawing = null; });
    return this.drawing;
  }

  async drawAll() {
    while (this.stale) {
      this.stale = false;
      const began = performance.now();
      try {
        await this.drawNewest();
        this.begin();
      } catch (error) {
        if (!this.closed) failed(this.large?.host ?? this.root, error);
      }
      const took = performance.now() - began;
      if (this.stale || this.playing) await new Promise((done) => setTimeout(done, 0)); // the browser paints
      if (this.stale && !this.playing && this.at.step === null) {
        await new Promise((done) => {
          this.wake = done;
          setTimeout(done, took);
        });
      }
    }
  }

  // Say once that the first picture is there.
  begin() {
    if (this.begun || !(this.whole ? this.shown : this.index)) return;
    this.begun = true;
    this.first?.();
  }

  async drawNewest() {
    this.chosen = false;
    if (!this.index) return;
    const step = this.step();
    if (!this.whole) return this.numbers(step);
    const { word } = this.at;
    const live = this.at.step === null && this.source.sends; // then the map itself is on its way
    if (live && this.newest?.chunk.word !== word) return;
    const maps = live ? this.newest : await this.source.maps(word, step);
    if (this.chosen || (this.stale && !maps)) return; // it came late: the step control stands elsewhere by now
    this.numbers(step, maps);
    if (!maps) {
      this.shown = null;
      return;
    }
    this.shown = { step, maps };
    // Most news bring another state or sentence and no other map: what is drawn already is not drawn again.
    const looks = [maps, this.segment(step), this.at.kind, this.at.outline, this.fills, ...this.head()];
    if (looks.some((one, i) => one !== this.looks?.[i])) {
      this.looks = null;
      await this.large.show(this.largePicture(step, maps));
      if (this.chosen) return; // something else since, which is drawn first
      await this.strip.show(this.stripPicture(step, maps));
      if (this.chosen) return;
      this.looks = looks;
    }
    if (this.index.curves !== this.drawnCurves) {
      this.drawnCurves = this.index.curves;
      await this.curves.show(this.withGhost(this.index.curves));
      await this.scores.show({ ...this.index.mass, fileName: `${this.fileName}-alignment` }, true);
    }
    for (const drawing of [this.curves, this.scores]) drawing.mark(this.at.step === null ? null : step);
  }

  withGhost(curves) {
    return { ...curves, arrays: { ...curves.arrays, ...this.ghost }, fileName: `${this.fileName}-curves` };
  }

  largePicture(step, maps) {
    const [site, head] = this.head();
    const { kind, outline, word } = this.at;
    const look = maps.look.kinds[kind];
    const { weights, taken } = maps.large(site, head, look.causal);
    const segment = this.segment(step);
    const roles = step === segment.from ? segment.roles : segment.later;
    const about = [roles[site][head], `“${maps.look.short}”`, `seed ${this.index.seed}`, maps.look.fed];
    const text = about.slice(0, this.fills ? 2 : 4).filter(Boolean).join(" · ");
    const size = this.fills ? 1 : 0.75 * Math.min(1, 54 / text.length);
    const rows = look.rows.map((row, i) => (look.writes && i in maps.wrong ? `${row} <b>✗</b> ${maps.wrong[i]}` : row));
    const gold = outline ? look.gold : [];
    const arrays = { "0.z": weights };
    if (look.taken) arrays[`${look.causal ? 2 : 1}.z`] = taken;
    return {
      spec: look.large,
      arrays,
      layout: {
        "title.text": `<b>${this.index.heads[site][head]}</b> · step ${counted(step)}<br>`
          + `<span style='font-size:${size}em'>${text}</span>`,
        "yaxis.ticktext": rows,
        shapes: gold.map(([row, column]) => ({
          type: "rect", x0: column - 0.5, x1: column + 0.5, y0: row - 0.5, y1: row + 0.5,
          line: { color: this.index.colors.outline, width: 2 },
        })),
      },
      step,
      hatched: maps.isOff(site, head) ? [maps.box(site)] : [],
      data: { site, head },
      fileName: `${this.fileName}-${word}-step${step}-${site}-head${head + 1}`,
    };
  }

  stripPicture(step, maps) {
    const look = maps.look.kinds[this.at.kind];
    const { sites } = this;
    const [site, head] = this.head();
    const { weights, blocked } = maps.tiles(sites, look.causal);
    const { lit } = this.segment(step);
    const layout = {};
    const hatched = [];
    for (let number = 0; number < maps.heads(sites[0]); number += 1) {
      sites.forEach((one, layer) => {
        const width = one === site && number === head ? 4 : lit[one]?.[number] ? 2 : 0;
        layout[`shapes[${number * sites.length + layer}].line.width`] = width;
        if (maps.isOff(one, number)) hatched.push(maps.box(one, layer, number));
      });
    }
    return {
      spec: look.strip, arrays: { "0.z": weights, "1.z": blocked }, layout, step, hatched,
      fileName: `${this.fileName}-${this.at.word}-step${step}-${this.at.kind}`,
    };
  }

  // ---- Numbers and sentences, of the same step as the maps ----

  says() {
    if (!this.now) return;
    this.find(".st-key-run_status p").innerHTML = this.now.status.replace("{step}", counted(this.now.step));
    this.find(".st-key-moment p").innerHTML = this.now.headline[0];
  }

  numbers(step, maps) {
    const { index, now, at } = this;
    const live = at.step === null;
    const segment = this.segment(step);
    const runs = live && now?.state === "training" ? step : now?.step ?? index.steps.at(-1);
    const set = (selector, html) => {
      const element = this.find(selector);
      if (element && element.said !== html) element.innerHTML = element.said = html;
    };
    if (now) set(".st-key-run_status p", now.status.replace("{step}", counted(runs)));
    let said = live && now && !now.waits ? now.headline[step === segment.from ? 0 : 1] : now?.waits || "";
    if (!live || !now) {
      const here = index.moments.filter((moment) => moment.step === step).map((moment) => `★ ${moment.said}.`);
      const next = index.moments.find((moment) => moment.step > step);
      said = [
        segment.said[step === segment.from ? 0 : 1].replace("{step}", counted(step)), ...here,
        next ? `Next moment, step ${counted(next.step)}: ${next.said}.` : "",
      ].join(" ");
    }
    set(".st-key-moment p", this.over ?? said);
    const place = nearest(index.steps, step);
    const loss = index.steps[place] === step ? index.losses[place] : null;
    const known = loss ?? (now?.at === step ? now.loss : null);
    set(".loss b", known === null ? "–" : known.toFixed(3));
    set(".counter b", counted(step));
    set(".st-key-words_right", index.texts[segment.right]);
    this.root.dataset.step = step;
    this.control.show({
      steps: index.steps, step, live, playing: this.playing, moments: index.moments, state: now?.state ?? "recorded",
      planned: now?.planned ?? index.steps.at(-1), last: now ? (now.state === "training" ? now.planned : now.step) : index.steps.at(-1),
    });
    if (!this.whole) return;
    this.choices();
    const notes = [segment.taken && `At this step: ${segment.taken}`];
    if (!maps) notes.unshift(`“${escaped(at.word)}” has no map of step ${counted(step)}.`);
    set(".note", notes.filter(Boolean).join(" · "));
    this.outputs(set, segment, step);
    const sentence = this.sentence?.text ? this.sentence : null;
    const of = sentence && sentence.step !== step ? `step ${counted(sentence.step)}: ` : "";
    set(".st-key-narrator p", sentence && (live || sentence.step === step) ? of + sentence.text : "");
    const look = maps?.look;
    set(".reading", `${index.kinds[at.kind].reading} ${look ? PASSES[look.fed](index.token) : ""}`
      + (look?.over != null ? ` Here that is what it wrote at step ${counted(look.over)}.` : ""));
  }

  outputs(set, segment, step) {
    const { index, at } = this;
    const words = Object.keys(segment.outputs).sort((a, b) => (b === at.word) - (a === at.word));
    const rows = words.map((word) => `<tbody class="${word === at.word ? "chosen" : ""}">${index.texts[segment.outputs[word]]}</tbody>`);
    const when = segment.written === step ? "" : ` at step ${counted(segment.written)}`;
    set(".st-key-live_outputs", `<small>Written by the model alone${when}:</small><table class="hl-outputs">`
      + `${rows.join("")}</table>${index.texts[segment.lengths]}`);
    this.find(".st-key-live_outputs table").dataset.step = step;
    set(".st-key-samples", index.texts[segment.samples]);
  }

  // Words and kinds of attention as buttons.
  choices() {
    const { index, at } = this;
    const offered = JSON.stringify([index.words, Object.keys(index.kinds), at.word, at.kind]);
    if (offered === this.offered) return;
    this.offered = offered;
    this.buttons(".st-key-word", index.words.map((word) => [word, word]), at.word, (word) => this.choose({ word }));
    const words = this.find(".st-key-word"), chosen = words.querySelector("[aria-pressed=true]");
    if (chosen) words.scrollLeft = chosen.offsetLeft - words.offsetLeft - 40; // many words scroll, and move nothing
    const kinds = Object.entries(index.kinds).map(([kind, { name }]) => [kind, name]);
    this.buttons(".st-key-kind", kinds, at.kind, (kind) => this.choose({ kind }));
    this.find(".st-key-kind").hidden = kinds.length < 2;
    const gold = Object.values(index.looks).some(({ kinds: all }) => Object.values(all).some((one) => one.gold.length));
    this.find(".st-key-outline").hidden = !gold;
  }

  buttons(selector, entries, chosen, choose) {
    this.find(selector).replaceChildren(...entries.map(([value, text]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      button.ariaPressed = value === chosen;
      button.dataset.value = value;
      button.onclick = () => choose(value);
      return button;
    }));
  }

  dress() {
    for (const drawing of [this.large, this.strip, this.curves, this.scores]) drawing?.dress();
  }

  close() {
    this.closed = true;
    this.playing = false;
    this.scheme.removeEventListener("change", this.dressed);
    clearTimeout(this.resting);
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("fullscreenchange", this.filled);
    this.source.close();
    for (const drawing of [this.large, this.strip, this.curves, this.scores]) drawing?.close();
  }
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
