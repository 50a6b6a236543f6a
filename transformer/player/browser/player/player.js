// The player: holds the selection in a recording and draws it at once, from the chunks of a source.

import { nearest, upTo } from "../shared/chunks.js";
import { Control, counted } from "./control.js";
import { Drawing, failed, loadPlotly } from "../shared/drawing.js";
import { pressed } from "../shared/element.js";
import { drawOverview } from "../model/map.js";
import { MapView } from "./maps.js";
import { Model } from "../model/model.js";
import { patchedOf, queryAt, queryOf } from "./patches.js";
import { largeHead, largePicture, neighbour, stripPicture, strongestCell } from "./pictures.js";
import { StepBox } from "./stepbox.js";
import { GOES_ON, Texts } from "./texts.js";

const CALM = 500; // ms until the next forward pass is fetched at LIVE (in mode `step` twice that): it costs training time
const LONGEST_REST = 300; // longest pause in ms after a drawing at LIVE
const RESTED = 250; // ms without a change after which the selection is sent

export class Player {
  // first: {word, kind, pinned, step, outline, follow}; tell: called with these, the step shown
  // (`at`) and `picked` once they have stopped changing
  constructor(root, source, { plotly, first, tell = () => {}, fileName = "headlight", ...options }) {
    Object.assign(this, { root, source, tell, fileName, now: null, newest: null, playing: false });
    this.at = { word: null, kind: null, pinned: null, step: null, outline: false, follow: false, ...first };
    this.find = (selector) => root.querySelector(selector);
    this.map = this.find(".st-key-model_map");
    Object.assign(this, { query: null, pointed: null, asTable: false }); // of maps over a picture: the chosen query, that under the pointer, whether tables are shown
    this.whole = !root.dataset.parts; // whether it shows all panels, among them maps and curves
    this.drawings = [];
    this.plotly = plotly;
    this.texts = new Texts(root, (change) => this.choose(change));
    this.control = new Control(root, {
      go: (step) => this.go(step), live: () => this.go(null), play: () => this.play(), rested: () => this.rest(),
      named: (step) => this.named(step), called: (step) => this.called(step),
    });
    this.listens = new AbortController();
    this.box = new StepBox(root, { goes: (number) => this.goTo(number), range: () => this.range() }, this.listens);
    this.build(options);
    const follow = this.find(".st-key-follow");
    follow.firstChild.checked = this.at.follow;
    follow.firstChild.onchange = () => {
      this.playing = false;
      this.choose({ follow: follow.firstChild.checked });
    };
    this.find(".st-key-fullscreen button").onclick = () => this.fill();
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", () => this.dress(), this.listens);
    document.addEventListener("click", ({ target }) => {
      const link = target.closest?.("button[data-head]");
      if (link) this.showNamed(link);
      if (target.closest?.(".st-key-run_start button")) this.end();
    }, this.listens);
    // Fullscreen changes type sizes and hides panels.
    document.addEventListener("fullscreenchange", () => this.draw(true), this.listens);
    source.begin((news) => this.hear(news));
  }

  // Make the picture of the model, if asked for, and the maps and curves, if all panels are shown.
  build({ picture, titled = true }) {
    if (picture) {
      this.model = new Model(this.find(".st-key-model_picture"), {
        kept: (cell) => this.kept?.(cell), asks: () => this.draw(true), parts: (...of) => this.source.parts(...of),
      }, picture);
      this.model.modes.hidden = !this.source.change;
    }
    if (this.whole) {
      this.large = this.viewOf("live_map", { titled: titled && (() => this.openHead()), clicked: (_, ...cell) => this.clickCell(cell), keyed: (event) => this.enter(event), pointed: (at) => this.pointAt(at) });
      this.strip = this.viewOf("live_maps", { clicked: (table) => this.pin(table), keyed: (event) => this.walk(event), pointed: (at) => this.pointAt(at) });
      const drawing = (...what) => this.drawingOf(...what);
      this.curves = drawing("live_curves", { clicked: (_trace, _point, { x }) => this.go(this.recorded(x)), usual: 260 });
      this.scores = drawing("alignment_mass", { usual: 300 });
      this.hearKeys();
    }
  }

  // Create a view of maps in the figure of this name.
  viewOf(name, hooks) {
    this.drawings.push(new MapView(this.find(`.st-key-${name} .live-figure`), hooks));
    return this.drawings.at(-1);
  }

  // Create a drawing in the figure of this name.
  drawingOf(name, hooks) {
    this.drawings.push(new Drawing(this.find(`.st-key-${name} .live-figure`), { plotly: this.plotly, ...hooks }));
    return this.drawings.at(-1);
  }

  // Handle the check boxes and the query below the large map, and F for fullscreen.
  hearKeys() {
    const outline = this.find(".st-key-outline input");
    outline.checked = this.at.outline;
    outline.onchange = () => this.choose({ outline: outline.checked });
    document.addEventListener("keydown", (event) => this.key(event), this.listens);
    const table = this.find(".st-key-as_table input"), query = this.find(".st-key-query select");
    table.onchange = () => { this.asTable = table.checked; this.draw(true); };
    query.onchange = () => { this.query = Number(query.value); this.draw(true); };
  }

  // The picture over which maps are drawn, unless they are shown as tables.
  get patched() {
    return this.asTable ? undefined : patchedOf(this.index, this.at.word, this.at.kind);
  }

  // Draw the row of the patch under the pointer: at, [table, row, column], or null.
  pointAt(at) {
    const { patched } = this;
    if (!patched) return;
    const query = at ? queryAt(patched, at[1], at[2]) : null;
    if (query === this.pointed) return;
    this.pointed = query;
    this.draw(true);
  }

  // Over a picture, keep the row of the patch that is clicked, or let it go; in a map without one, report the cell.
  clickCell(cell) {
    const { patched } = this;
    if (this.shown?.look.mean) return; // its cells are no single numbers of a pass
    if (!patched) return this.cell?.(cell);
    const query = queryAt(patched, ...cell);
    if (query === null) return; // the queries are no patches: the list below chooses one
    this.query = query === this.query ? null : query;
    this.draw(true);
  }

  // Offer the queries of maps over a picture. Returns the query whose row is drawn; null without a picture.
  offerQueries(maps, site) {
    const { patched, index, at } = this, query = this.find(".st-key-query"), select = query.firstElementChild;
    this.find(".st-key-as_table").hidden = !patchedOf(index, at.word, at.kind);
    query.hidden = !patched;
    if (!patched) return null;
    const { rows } = maps.look.kinds[at.kind], shown = queryOf(patched, maps, site, this.pointed ?? this.query);
    const written = rows.join("\n");
    if (select.written !== written) {
      select.written = written;
      select.innerHTML = rows.map((row, i) => `<option value="${i}">${row}</option>`).join("");
    }
    select.value = shown;
    return shown;
  }

  // The name of a step on the step control.
  named(step) {
    return counted(step);
  }

  // A step in a sentence.
  called(step) {
    return `step ${counted(step)}`;
  }

  get index() {
    return this.source.index;
  }

  // ---- Messages ----

  // Handle a message of the source. Returns a promise of the drawing, if the index is known.
  hear({ now, maps, trouble }) {
    if (this.closed) return undefined; // a late answer: this place of the page shows another run
    if (trouble !== undefined) {
      this.texts.connection(trouble, this.source.lost);
      return this.troubled?.();
    }
    if (now) {
      if (this.at.follow && now.owner !== this.at.step && !this.control.busy) this.at.step = now.owner;
      this.now = now;
      this.noticed?.(now);
    }
    if (maps) this.newest = maps;
    if (this.index) {
      this.settle();
      return this.draw(this.shown?.chunk.word !== this.at.word); // a newly chosen word is drawn at once
    }
    if (!this.now) return;
    this.texts.early(this.now);
    // While the model is built: later it would delay the first map. A chart reports a failure.
    if (this.whole && this.now.newest === null) loadPlotly(this.plotly).catch(() => {});
  }

  // Adapt the selection to this run, and send it.
  settle() {
    const { at, index } = this;
    const kinds = Object.keys(index.kinds);
    if (!kinds.includes(at.kind)) at.kind = kinds[0];
    if (![...index.words, ...this.more ?? []].includes(at.word)) at.word = index.words.includes(this.wanted) ? this.wanted : at.word ?? index.words[0];
    this.say();
  }

  // Tell the source the word, and whether the screen is at LIVE, if either has changed.
  say() {
    const what = { word: this.at.word, live: this.at.step === null };
    const said = JSON.stringify(what);
    if (said === this.said) return;
    this.said = said;
    this.source.say(what);
  }

  // ---- The selection ----

  get sites() {
    return this.index.kinds[this.at.kind].sites;
  }

  // The head that is shown large, as [site, head].
  head() {
    return largeHead(this.index, this.at.kind, this.at.pinned, this.step());
  }

  segment(step) {
    return upTo(this.index.segments, step);
  }

  // The recorded step nearest to a step.
  recorded(step) {
    const { steps } = this.index;
    return steps[nearest(steps, step)];
  }

  // The recorded step to show; at LIVE that of the newest map, if any.
  step() {
    if (this.at.step !== null) return this.recorded(this.at.step);
    return this.newest && this.now ? this.newest.step : this.index.steps.at(-1);
  }

  choose(change) {
    Object.assign(this.at, change);
    if ("outline" in change && this.whole) this.find(".st-key-outline input").checked = change.outline;
    this.chosen = true;
    if (this.index) this.say();
    this.draw(true);
    this.rest();
  }

  go(step) {
    this.playing = false;
    this.find(".st-key-follow").firstChild.checked = false;
    this.choose({ step, ...(this.at.follow && { follow: false }) });
  }

  // The first and the last recorded step, as texts, and the noun for one.
  range() {
    const { steps = [0] } = this.index ?? {};
    return [counted(steps[0]), counted(steps.at(-1)), "step"];
  }

  // Go to the recorded step nearest to a number, or to the newest for null. Returns why there is none, or "".
  goTo(number) {
    if (!this.index) return "Nothing is recorded yet. Wait until the map is drawn.";
    const { steps } = this.index, [first, last] = this.range();
    if (number !== null && (number < steps[0] || number > steps.at(-1))) return `Step ${counted(number)} is not recorded: the steps from ${first} to ${last} are.`;
    this.go(number === null ? null : this.recorded(number));
    return "";
  }

  // Select an attention in the overview: pin its first head, or none if it has the head that is shown without a pin.
  pick(kind, site) {
    this.picked = true;
    const [usual] = largeHead(this.index, kind, null, this.step());
    this.choose({ kind, pinned: usual === site ? null : [site, 0] });
  }

  // Show the head that a sentence names, such as decoder.1.cross.2: large, or open in the picture of the model.
  showNamed(link) {
    const [, site, number] = /(.*)\.(\d+)$/.exec(link.dataset.head), head = number - 1;
    const kind = this.index && Object.keys(this.index.kinds).find((one) => this.index.kinds[one].sites.includes(site));
    if (!kind) return;
    if (link.matches(":focus-visible")) this.find(".st-key-live_maps [tabindex='0']")?.focus(); // the link disappears
    this.picked = true;
    this.choose({ kind, pinned: [site, head] });
    if (this.whole || !this.model) return;
    this.model.opened({ box: site, head });
    this.kept?.({ box: site, head });
  }

  // Show the large head in the picture of the model: on the page Look inside, or below.
  openHead() {
    const [box, head] = this.head();
    if (this.inside) return this.inside(box, head);
    this.model?.opened({ box, head });
    this.model?.root.scrollIntoView({ behavior: "smooth" });
  }

  // table: index of a small map
  pin(table) {
    const { site, head } = this.strip.picture.tables[table];
    const picked = [site, head];
    const same = JSON.stringify(picked) === JSON.stringify(this.at.pinned);
    this.choose({ pinned: same ? null : picked });
  }

  // Enter on the large map reports the cell that the sentence above names, else the strongest cell; not of a mean map.
  enter({ key }) {
    if (key === "Enter" && this.shown && !this.shown.look.mean) this.cell?.(this.large.picture.callout ?? strongestCell(this.shown.weights(...this.head())));
  }

  // Arrow keys on the small maps pin a head, Enter lets it go.
  walk(event) {
    if (!this.shown) return;
    const { sites } = this, [site, head] = this.head();
    const to = neighbour([sites.indexOf(site), head], event.key, sites.length, this.index.heads[site].length);
    if (!to && event.key !== "Enter") return;
    event.preventDefault();
    this.choose({ pinned: to && [sites[to[0]], Math.min(to[1], this.index.heads[sites[to[0]]].length - 1)] });
  }

  rest() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      if (this.control.busy || this.playing) return;
      const said = JSON.stringify(this.at);
      if (said === this.told) return;
      this.told = said;
      this.tell({ ...this.at, at: this.index ? this.step() : null, picked: this.picked });
      this.picked = undefined;
    }, RESTED);
  }

  // The steps that Replay shows: without a connection, those that this browser has.
  get filmed() {
    const { index: { steps }, source, at: { word } } = this;
    return source.lost ? steps.filter((step) => source.loaded(word, step)) : steps;
  }

  async play() {
    if (this.playing) return this.stop();
    const steps = this.filmed;
    if (!steps.length) return;
    let place = nearest(steps, this.step());
    if (this.at.step === null || place === steps.length - 1) place = -1;
    this.go(steps[place + 1]);
    const film = (this.playing = Symbol("film")); // another press ends this film, and may start a new one
    let due = performance.now();
    while (this.playing === film) {
      place = nearest(this.filmed, this.at.step);
      if (this.film) await this.film(this.filmed[place]); // a page whose pictures Python makes
      else await this.draw(true);
      due = Math.max(due + 1000 / this.control.speed, performance.now()); // lost time is not made up
      await new Promise((done) => setTimeout(done, due - performance.now()));
      if (this.playing !== film) return;
      if (place >= this.filmed.length - 1) break;
      this.at.step = this.filmed[place + 1];
    }
    this.stop();
  }

  stop() {
    this.playing = false;
    this.draw();
    this.rest();
  }

  // The page is about to show another run, for which a step of this one means nothing: send no step, and stop the film.
  end() {
    clearTimeout(this.resting);
    if (!this.playing) return;
    this.playing = false;
    this.draw();
  }

  key(event) {
    if (pressed(event, "f")) this.fill();
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.().catch(() => {});
  }

  // ---- Drawing: always the newest selection; at LIVE with a pause after each drawing ----

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
        if (this.begun) console.error(error); // what was drawn before stays
        else if (!this.closed) failed((this.large ?? this.maps?.[0])?.host ?? this.root, error);
      }
      const took = performance.now() - began;
      if (this.stale || this.playing) await new Promise((done) => setTimeout(done, 0)); // the browser paints
      if (this.stale && !this.playing && this.at.step === null) {
        await new Promise((done) => {
          this.wake = done;
          setTimeout(done, Math.min(took, LONGEST_REST)); // the first charts take seconds, once
        });
      }
    }
  }

  // Report once that the first map is drawn; without maps, that the index is there.
  begin() {
    if (this.begun || !(this.whole ? this.shown : this.index)) return;
    this.begun = true;
    this.first?.();
  }

  async drawNewest() {
    this.chosen = false;
    if (!this.index) return;
    const step = this.step();
    if (!this.whole) return this.model ? this.drawModel(step) : this.numbers(step);
    const { word } = this.at;
    const live = this.at.step === null && this.source.sends; // then the map arrives over the socket
    if (live && this.newest?.chunk.word !== word) return;
    const maps = live ? this.newest : await this.source.maps(word, step);
    if (this.closed || this.chosen || (this.stale && !maps)) return; // too late: the step control has moved on
    this.numbers(step, maps);
    this.shown = maps;
    if (!maps) return;
    // Most news change only the state or a sentence: a map that is already drawn is not drawn again.
    const { kind, outline } = this.at;
    const { fileName } = this;
    const [site, head] = this.head();
    const segment = this.segment(step);
    const { patched } = this, query = this.offerQueries(maps, site);
    const looks = [maps, segment, kind, outline, site, head, patched, query];
    if (looks.some((one, i) => one !== this.looks?.[i])) {
      this.looks = null;
      const { hidden } = this;
      const shown = { index: this.index, maps, segment, step, kind, site, head, patched, query, hidden: hidden?.kind === kind && hidden.word === word ? hidden.row : undefined };
      const opens = !this.index.own && Boolean(this.inside || this.model); // whether there is a picture of the model to open
      this.large.show({ ...largePicture(shown, { outline, fileName, before: this.large.picture?.callout }), opens });
      if (!this.begun) await new Promise(requestAnimationFrame); // paint the first map before the others are drawn
      if (this.chosen) return; // a newer choice is drawn first
      this.strip.show(stripPicture(shown, { fileName }));
      if (this.chosen) return;
      this.looks = looks;
    }
    if (this.index.curves !== this.drawnCurves) {
      const { curves } = this.index;
      this.drawnCurves = curves;
      this.find(".ghost").hidden = !this.ghost;
      await this.curves.show({ ...curves, arrays: { ...curves.arrays, ...this.ghost }, fileName: `${fileName}-curves` });
      this.find(".st-key-alignment_mass p").innerHTML = this.index.mass.said;
      await this.scores.show({ ...this.index.mass, fileName: `${fileName}-alignment` }, true);
    }
    for (const drawing of [this.curves, this.scores]) drawing.mark(this.at.step === null ? null : step);
    if (this.model) await this.passed(step);
  }

  // At LIVE, in mode `forward`, the maps of weights follow every message, all other numbers less often; otherwise all
  // are of one step.
  async drawModel(step) {
    const { model, source, at: { word } } = this;
    const live = this.at.step === null && source.sends;
    const newest = live && this.newest?.chunk.word === word ? this.newest : null;
    const known = model.pass?.word === word && model.asked === this.passKey(model.how, step);
    if (newest && known) {
      const forward = model.mode === "forward";
      this.numbers(step, newest);
      if (forward) model.show(model.pass, { maps: newest, roles: this.segment(step).roles });
      if (model.pass.step !== (forward ? newest.step : this.before(step))) {
        this.later ??= setTimeout(() => this.passed(), forward ? CALM : 2 * CALM);
      }
      return;
    }
    await this.passed(step);
    if (!this.chosen) this.numbers(step);
  }

  // A step, at most the one before the last recorded step: mode `step` shows the training step after it.
  before(step) {
    return Math.min(step, Math.max(0, this.index.steps.at(-1) - 1));
  }

  // What a pass depends on besides its word and step: arrangement, mode and interventions.
  passKey(how, step) {
    return JSON.stringify([how, this.model.mode, this.segment(step).taken]);
  }

  // Fetch the pass of a step and, in mode `step`, the changes by the step after it; show them.
  async passed(step = this.step()) {
    const { model, source } = this;
    const asks = model.mode === "step", turn = (this.turn = Symbol("pass")), outdated = () => this.closed || turn !== this.turn;
    this.later = undefined;
    try {
      const how = { ...model.how };
      const pass = await source.picture(this.at.word, asks ? this.before(step) : step, how);
      await model.loadParts(pass);
      if (outdated() || pass.word !== this.at.word || (this.chosen && !this.playing)) return;
      model.asked = this.passKey(how, step);
      const newest = this.at.step === null && this.newest?.chunk.word === pass.word ? this.newest : null;
      const roles = this.segment(pass.step).roles, of = JSON.stringify([pass.step, pass.word, how]);
      model.show(pass, { maps: newest, roles, change: model.change?.of === of ? model.change : null });
      if (!asks || model.change) return;
      const change = await source.change(pass, how).catch((error) => ({ refused: error.message }));
      if (!outdated()) model.show(pass, { roles, change: Object.assign(change, { of }) });
    } catch (error) {
      if (!outdated()) model.refuse(error.message);
    }
  }

  numbers(step, maps) {
    const { index, now, at } = this;
    const live = at.step === null;
    const shown = { index, now, at, step, live, maps, segment: this.segment(step) };
    this.texts.header({ ...shown, over: this.over, greets: this.greets, head: this.head() });
    this.root.toggleAttribute("data-own", Boolean(index.own));
    this.root.dataset.step = step;
    if (!this.whole && !this.model) drawOverview(this.map, index.kinds, this.head()[0], (kind, site) => this.pick(kind, site));
    const last = index.steps.at(-1), newest = Math.max(last, now?.at ?? 0);
    // While a run trains, its newest step is known before the index has it: the last step of the index is not LIVE.
    const steps = newest > last ? [...index.steps, newest] : index.steps;
    this.control.show({
      steps, step, live, playing: this.playing, moments: index.moments, state: now?.state ?? "recorded",
      planned: now && GOES_ON.includes(now.state) ? now.planned : newest, last: now ? now.step : newest,
    });
    if (this.whole) this.texts.around({ ...shown, more: this.more });
  }

  dress() {
    for (const drawing of this.drawings) drawing.dress?.();
  }

  close() {
    this.closed = true;
    this.playing = false;
    clearTimeout(this.resting);
    this.listens.abort();
    this.source.close();
    this.model?.close();
    clearTimeout(this.later);
    for (const drawing of this.drawings) drawing.close();
  }
}
