// A story: beats, each on one run, a race or the picture of a model. Keys go from beat to beat; viewers guess
// hidden weights.

import { nearest, upTo } from "../shared/chunks.js";
import { Refusals, leaving, spread, whenGone } from "../shared/component.js";
import { counted } from "../player/control.js";
import { element, escaped, percent } from "../shared/element.js";
import { plain } from "../player/maps.js";
import { strongestCell } from "../player/pictures.js";
import { Player } from "../player/player.js";
import { raceOf } from "../race/seeds.js";
import { Live } from "../player/sources.js";
import { withLinks } from "../player/texts.js";

const ENDED = ["finished", "stopped", "failed", "recorded"];
const PARTS = { Race: "race", "Look inside": "model" };
const DOES = {
  started: "Press Start.", cell: "Press a cell of the large map, or Enter upon it.", head: "Choose another head.",
  word: "Choose another word.", past: "Move the step control to an earlier step.", box: "Open a box of the picture.",
};
const AHEAD = ["ArrowRight", "PageDown", " "], BACK = ["ArrowLeft", "PageUp"];
const FILM = "20/s"; // speed of a recording that replaces a run
const TARGETS = {
  map: ".st-key-live_map .live-figure, .st-key-race_left .live-figure", heads: ".st-key-live_maps .live-figure",
  "step control": ".time-slider", start: ".st-key-run_start button", "words right": ".st-key-words_right",
  kind: ".st-key-kind", word: ".st-key-word", curves: ".st-key-live_curves", model: ".st-key-model_picture",
};
const BLANK = /\{([\w ]+)\}/g; // a number of the run in a sentence
const blanked = (says) => says.replace(BLANK, "…");
const clock = (ms) => `${Math.floor(ms / 60000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

const COUNTS = [undefined, "One head reads backwards", ...["Two", "Three", "Four", "Five", "Six", "Seven", "Eight"].map((n) => `${n} heads read backwards`)];
const heads = new Map(); // story's run, page and run to the head that the visitor chose there
const guesses = new Map(); // run and beat to the guessed column; kept when Streamlit mounts the page again

export class Story {
  // data: from pages/presentation/, with `tells` (whether this page leads) and `notes` (whether it shows notes);
  // anchor: id of the story's first run; hooks: {base, plotly, fileName, tell, changed, leave, asks}
  constructor(root, data, anchor, hooks) {
    Object.assign(this, { root, data, anchor, hooks, template: root.innerHTML, me: Math.random().toString(36).slice(2, 12) });
    Object.assign(this, { did: new Set(), follows: true, listens: new AbortController(), nows: [] });
    this.refusals = new Refusals(() => this.hooks.asks(), () => this.sources[0].status());
    this.take(data.presentation);
    this.panel = element("div", { className: "st-key-story" });
    this.said = element("p", { className: "said" });
    this.hint = element("p", { className: "hint", role: "status" });
    this.choices = element("div", { className: "guess", role: "group", ariaLabel: "Your guess" });
    const button = (name, text, does) => {
      const made = element("button", { type: "button", textContent: text, onclick: does });
      return element("span", { className: `st-key-story_${name}` }, made);
    };
    this.buttons = element("div", { className: "row" }, button("back", "Back", () => this.show(this.at - 1)), button("next", "Go on", () => this.next()),
      button("recording", "Play the recording", () => this.playRecording()), button("skip", "Skip", () => this.skip()), button("follow", "Follow the speaker", () => this.rejoin()),
      button("notes", "Notes", () => window.open(`${location.href.replace(/&notes=1/, "")}&notes=1`, "headlight-notes", "width=700,height=600")),
      button("leave", "Leave", () => this.leave()));
    this.panel.append(this.said, this.choices, this.hint, this.buttons);
    this.arrow = element("i", { className: "arrow", hidden: true, ariaHidden: "true", textContent: "➜" });
    this.began = Date.now();
    const options = { signal: this.listens.signal };
    document.addEventListener("keydown", (event) => this.key(event), { ...options, capture: true });
    document.addEventListener("fullscreenchange", () => !document.fullscreenElement && this.filled && this.leave(), options);
    this.ticks = setInterval(() => this.tick(), 250);
    root.dataset.story = data.notes ? "notes" : data.kind;
    this.heard = where(data.presentation);
    this.show(this.at, !data.tells || Boolean(data.presentation.by));
    const first = data.kind === "talk" ? root : this.panel.querySelector(".st-key-story_next button");
    first.focus({ preventScroll: true });
  }

  get beat() {
    return this.data.beats[this.at];
  }

  take({ at, shown, recorded }) {
    Object.assign(this, { at: Math.min(at, this.data.beats.length - 1), shown: new Set(shown), recorded: new Set(recorded) });
  }

  // ---- What is shown ----

  // The run of this name, or the recording that replaces it.
  source(name) {
    const { recording, ...run } = this.data.runs[name];
    return recording && (this.recorded.has(name) || !run.run) ? recording : run;
  }

  live({ run, ticket }) {
    return new Live(`${this.hooks.base}/stream/${run}`, ticket, () => this.refusals.refused());
  }

  // All sources: the runs of the player, and the run of the speaker if it is another run.
  get sources() {
    const source = this.player?.source;
    return [...(source?.sources ?? [source]), this.speakerSource].filter(Boolean);
  }

  // Create a player for the beat, unless the current player shows the same; none in the window of notes.
  open() {
    const { page, roles } = this.beat;
    const sides = this.data.notes ? [] : roles.map((name) => this.source(name));
    const key = JSON.stringify([page, sides.map((side) => [side.run, side.hidden])]);
    if (key === this.opened) return;
    this.keepHead();
    this.opened = key;
    this.listen(!sides.some((side) => side.run === this.anchor));
    const focused = this.panel.contains(document.activeElement) ? document.activeElement : null;
    this.close();
    this.root.innerHTML = this.template;
    this.root.append(this.arrow);
    this.root.querySelector(".says").append(this.panel);
    focused?.focus();
    this.nows = [];
    if (this.data.notes) return;
    const parts = PARTS[page];
    if (parts) this.root.dataset.parts = parts;
    else delete this.root.dataset.parts;
    const { plotly, fileName } = this.hooks;
    const options = { plotly, fileName, titled: false, first: this.look(), tell: (at) => this.chosen(at) };
    if (page === "Race") {
      this.player = raceOf(this.root, sides.map((side) => this.live(side)), this.data.races[roles.join("|")], options);
    } else this.player = new Player(this.root, this.live(sides[0]), { ...options, ...(parts && { picture: { how: {} } }) });
    const { player } = this;
    player.wanted = this.look().word;
    player.noticed = (now) => this.noticed(now);
    player.troubled = () => this.write();
    player.cell = (point) => this.pressed(point);
    player.kept = (cell) => cell && this.does("box");
    player.first = () => this.drawn();
    this.stood = { ...player.at, of: this.place };
    this.openBox();
  }

  // Open the box that the beat names in the picture of the model.
  openBox() {
    const { box, pinned } = this.beat;
    if (box) this.player.model?.opened({ box, head: pinned?.[1] ?? 0 });
  }

  // If the speaker's run is not on the screen, receive the speaker's position separately.
  listen(wanted) {
    if (wanted === Boolean(this.speakerSource)) return;
    this.speakerSource?.close();
    this.speakerSource = wanted ? this.live({ run: this.anchor, ticket: Object.values(this.data.runs)[0].ticket }) : null;
    this.speakerSource?.say({ live: false });
    this.speakerSource?.begin(({ now }) => now && this.hear(now));
  }

  // The place of the beat: what is chosen here is kept for later beats of the same place.
  get place() {
    return JSON.stringify([this.anchor, this.beat.page, this.beat.run]);
  }

  // Keep the head that the visitor has chosen or let go since the beat began.
  keepHead() {
    const { player, stood } = this;
    if (player && stood && String(player.at.pinned) !== String(stood.pinned)) heads.set(stood.of, player.at.pinned);
  }

  // Whether the beat shows the step at which a head has just turned.
  get showsTurning() {
    const { step, hides, page } = this.beat;
    return page !== "Race" && (step === "turned" || (hides === "later" && !this.asks));
  }

  // The selection of the beat, as a player expects it. Its head is the one that the beat names; else the head that has
  // turned, if the beat shows that; else the head that the visitor chose.
  look() {
    const { word, kind, run } = this.beat, turned = this.nows[0]?.turned;
    const pinned = this.beat.pinned ?? (this.showsTurning && turned ? turned.slice(2) : heads.get(this.place) ?? null);
    const asked = word || this.data.beats.find((one) => one.run === run && one.word)?.word;
    return { word: asked ?? null, kind: kind ?? null, pinned, step: this.stepOf(), follow: false, outline: false };
  }

  // The step of the beat; null for LIVE and for the end, and until the run has reached it.
  stepOf() {
    const { step, hides } = this.beat, [now] = this.nows;
    if (!now || now.newest === null || step === "live" || step === "end") return null;
    if (step === "turned" || (hides === "later" && !this.asks)) return now.turned?.[0] ?? null;
    if (step === "before turned") return now.turned ? Math.floor(this.data.before * now.turned[0]) : null;
    return Number(step) <= now.newest ? Number(step) : null;
  }

  show(at, quiet = false) {
    if (!quiet && !this.data.tells) this.follows = false;
    this.keepHead();
    this.at = Math.max(0, Math.min(this.data.beats.length - 1, at));
    this.answer = undefined;
    this.open();
    const { player } = this;
    if (player) {
      player.playing = false;
      const { word, ...look } = this.look();
      player.wanted = word;
      player.choose(player.index?.words.includes(word) ? { word, ...look } : look);
      this.openBox();
    }
    this.stood = player && { ...player.at, of: this.place };
    this.write();
    if (!quiet) this.tell();
  }

  // ---- Conditions ----

  // Whether the runs have reached the step that the beat shows and the one that it waits for.
  there() {
    const { step, until, hides } = this.beat, { nows } = this;
    if (!nows.length) return false;
    const reached = (what) => nows.every((now, side) => {
      const ended = ENDED.includes(now.state);
      if (now.newest === null) return false;
      if (what.endsWith("turned")) return Boolean(now.turned) || ended || hides === "later" || side > 0;
      if (what === "ended" || what === "end") return ended;
      const number = /\d+/.exec(what);
      return number ? now.newest >= Number(number[0]) || ended : true;
    });
    return reached(step) && reached(until);
  }

  // Whether the visitor has done what the beat asks for.
  done() {
    const { until } = this.beat;
    if (!(until in DOES)) return true;
    if (until === "started") return this.nows.some(({ state }) => state !== "idle");
    return this.did.has(`${this.at} ${until}`);
  }

  does(what) {
    if (this.did.has(`${this.at} ${what}`)) return;
    this.did.add(`${this.at} ${what}`);
    this.write();
  }

  // Whether the map of the beat's question is on the screen.
  get questioned() {
    const { player, beat } = this;
    return player?.shown?.chunk?.word === beat.word && player.at.kind === beat.kind;
  }

  // Whether something of the beat is still to be guessed.
  get asks() {
    return Boolean(this.beat.hides) && !this.shown.has(this.at);
  }

  noticed(now) {
    this.nows = this.player.source.sides?.map((side) => side.now).filter(Boolean) ?? [now];
    this.hear(now);
    if (this.data.kind === "tour" && now.state !== this.state) {
      if (this.state) this.hooks.changed(now); // the button Start appears or disappears
      this.state = now.state;
    }
    const step = this.stepOf(), { player } = this;
    if (player.index && step !== null && player.at.step === null && this.stood?.step === null && !player.playing) {
      this.keepHead();
      player.choose({ step, pinned: this.look().pinned });
      this.stood = { ...player.at, of: this.place };
    }
    this.write();
  }

  // Take the speaker's position from the news, unless this page is the speaker's.
  hear(now) {
    const { presentation } = now;
    if (!presentation || presentation.by === this.me || where(presentation) === this.heard) return;
    const parts = ({ shown, runs }) => JSON.stringify([shown, runs]);
    if (parts(presentation) !== parts(this.data.presentation)) this.hooks.changed(now);
    this.heard = where(presentation);
    this.spoke = presentation;
    if (this.follows) this.rejoin();
  }

  rejoin() {
    this.follows = true;
    if (this.spoke) this.take(this.spoke);
    this.show(this.at, true);
  }

  // ---- What is pressed ----

  next() {
    const { beat, player, data } = this;
    if (this.asks) return this.reveal();
    if (!player) return this.show(this.at + 1);
    if (!this.nows.length) return undefined;
    if (player.playing) return this.stopFilm();
    if (!this.there()) {
      if (data.kind === "tour") return undefined; // a single visitor can wait
      return this.replaceableRuns.length ? this.playRecording() : this.show(this.at + 1);
    }
    return data.kind === "talk" || this.done() ? this.skip() : this.lead();
  }

  skip() {
    if (this.at < this.data.beats.length - 1) this.show(this.at + 1);
    else if (this.data.kind === "tour") this.leave();
  }

  // The runs of the beat that a recording can replace, and has not replaced yet.
  get replaceableRuns() {
    return this.beat.roles.filter((name) => this.data.runs[name].recording && this.source(name) !== this.data.runs[name].recording);
  }

  // Play the recording from the current step of the run.
  playRecording() {
    const from = this.nows[0]?.newest ?? 0;
    for (const name of this.replaceableRuns) this.recorded.add(name);
    this.open();
    this.player.first = () => {
      const { player } = this;
      player.control.speedBox.value = FILM;
      player.at.step = player.recorded(from);
      player.play();
      this.drawn();
    };
    this.write();
    this.tell();
  }

  // Show the step of the beat; a beat that follows a run stays at the step that is shown.
  stopFilm() {
    this.player.playing = false;
    if (this.beat.step !== "live") this.player.choose({ step: this.stepOf() });
    this.write();
  }

  key(event) {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey || /^(TEXTAREA|SELECT)$/.test(target.tagName) || (target.tagName === "INPUT" && target.type !== "range")) return;
    const begins = this.data.kind === "talk" && !this.data.notes && !this.filled;
    const does = { Escape: () => this.leave(), b: () => this.root.classList.toggle("black"), t: () => this.root.classList.toggle("timed") }[key.length === 1 ? key.toLowerCase() : key]
      ?? (AHEAD.includes(key) ? () => (begins ? this.fill() : this.next()) : BACK.includes(key) ? () => this.show(this.at - 1) : null);
    const own = target.closest?.("button, a, input, [tabindex='0']"); // the focused control uses these keys itself
    if (!does || (own && !own.contains(this.root) && !document.fullscreenElement && [...AHEAD, ...BACK].includes(key))) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  }

  fill() {
    this.filled = true;
    this.began = Date.now();
    this.root.focus();
    this.root.requestFullscreen?.().catch(() => {});
    this.write();
  }

  leave() {
    this.filled = false;
    if (document.fullscreenElement) document.exitFullscreen();
    this.hooks.leave();
  }

  // Handle a cell of the large map: the guess, or the action of the beat.
  pressed([row, column]) {
    if (this.asks) return this.questioned ? this.reveal(column) : undefined;
    const { player } = this, maps = player.shown;
    if (maps) {
      const { rows, columns } = maps.look.kinds[player.at.kind], weight = maps.weights(...player.head())[row]?.[column];
      this.answer = `Row ${plain(rows[row])}, column ${plain(columns[column])}: ${percent(weight ?? 0)}.`;
    }
    this.does("cell");
    return this.write();
  }

  // Whether the beat waits for a run that the visitor has not started.
  get needsStart() {
    return this.data.kind === "tour" && this.nows.length > 0 && !this.there() && Boolean(document.querySelector(TARGETS.start));
  }

  // The selector of the part of the screen that the beat points at, or of Start if its run has to be started first.
  get target() {
    const { points, box } = this.beat;
    if (this.needsStart) return TARGETS.start;
    return points === "box" ? `.st-key-model_picture [data-box="${box}"]` : TARGETS[points];
  }

  // Move the keyboard focus to the control that the beat asks for.
  lead() {
    const [there] = document.querySelectorAll(this.target ?? ".none");
    const takes = "input, button, [tabindex='0']";
    (there?.matches(takes) ? there : there?.querySelector("[data-box] button") ?? there?.querySelector(takes))?.focus();
  }

  chosen(at) {
    const differs = (name) => JSON.stringify(at[name] ?? null) !== JSON.stringify(this.stood?.[name] ?? null);
    if (differs("pinned") && at.pinned) this.does("head");
    if (differs("word")) this.does("word");
    if (at.step !== null && differs("step")) this.does("past");
  }

  // Note a guess. On the page that leads, also show the hidden weights; the server sends them with a new ticket.
  reveal(column) {
    if (column !== undefined) guesses.set(`${this.anchor} ${this.at}`, column);
    if (!this.data.tells) return this.write(); // only the speaker reveals the answer
    this.shown.add(this.at);
    this.tell();
    return this.write();
  }

  // The guessed column, or undefined.
  get guess() {
    return guesses.get(`${this.anchor} ${this.at}`);
  }

  // ---- Texts ----

  drawn() {
    window.dispatchEvent(new Event("headlight-drawn"));
    this.write();
  }

  // The large head, once it is known.
  get largeHead() {
    const { player } = this;
    return player?.index && player.at.kind in player.index.kinds ? player.head() : undefined;
  }

  // The column names of the row to be guessed.
  get columns() {
    const { player, beat } = this;
    return (beat.hides && this.questioned && player.shown.look?.kinds[beat.kind]?.columns || []).map(plain);
  }

  // The result of a guess, once the weights have arrived.
  judged() {
    const { beat, player, columns } = this;
    if (!beat.hides || !this.questioned || this.asks || !this.data.presentation.shown.includes(this.at) || !columns.length) return "";
    const cells = player.shown.weights(...player.head())[beat.row - 1] ?? [];
    const [, best] = strongestCell([cells]);
    const truth = `${percent(cells[best] ?? 0)} of the weight of row ${beat.row} is on ${escaped(columns[best])}`;
    if (this.guess === undefined) return `${truth}.`;
    if (this.guess === best) return `Right: ${truth}.`;
    return `You pointed at ${escaped(columns[this.guess])}, which has ${percent(cells[this.guess] ?? 0)}; ${truth}.`;
  }

  // The sentence, as HTML, with this run's numbers; `otherwise` if the run has ended without showing it.
  sentence() {
    const { says: asked, otherwise, answer, until, step, hides } = this.beat;
    const says = escaped(hides && !this.asks && answer ? answer : asked);
    const ended = this.nows.length > 0 && this.nows.every(({ state }) => ENDED.includes(state));
    const { player } = this, at = player?.index ? player.step() : null;
    const sides = at === null ? [] : player.source.sides?.map(({ source }, i) => [source.index, player.source.at(at).steps[i]]) ?? [[player.index, at]];
    const [right, other] = sides.map(([index, place]) => upTo(index.segments, place).counted).map(([found, of]) => `${counted(found)} of ${counted(of)}`);
    const [loss, otherLoss] = sides.map(([index, place]) => index.losses[nearest(index.steps, place)]?.toFixed(3));
    const [turned, name, site, number] = this.nows[0]?.turned ?? [];
    const head = turned && `<button type="button" data-head="${site}.${number + 1}">${name}</button>`;
    const [turnedHeads] = sides.map(([index, place]) => Object.values(upTo(index.segments, place).lit).flat().filter(Boolean).length);
    const values = { heads: turnedHeads > 8 ? `${turnedHeads} heads have turned` : COUNTS[turnedHeads], right, other, loss, "other loss": otherLoss, turned: turned && counted(turned), head };
    const lacks = `${until} ${step}`.includes("turned") && !turned && hides !== "later";
    const asks = says.match(BLANK) ?? [];
    const early = !ended && (step === "end" || until === "ended"); // the numbers are not yet those of the sentence
    const unknown = lacks || early || asks.some((one) => !values[one.slice(1, -1)]);
    if (otherwise && ended && unknown) return escaped(otherwise);
    const [now] = this.nows;
    const follows = !ended || (turned && !turnedHeads); // the news come before the index
    if (unknown && asks.length && now?.newest !== null && follows) return `The run is at step ${counted(now?.newest ?? 0)}.`;
    return says.replace(BLANK, (whole, name) => (name in values ? values[name] ?? "…" : whole));
  }

  write() {
    const { beat, data, panel } = this;
    const talks = data.kind === "talk", { asks } = this;
    const there = data.notes || this.there(), done = talks || this.done();
    const stands = this.player && beat.roles.some((name) => this.source(name) === data.runs[name].recording);
    const said = data.notes ? escaped(blanked(beat.says)) : withLinks([this.sentence(), this.judged()].filter(Boolean).join(" "), this.largeHead);
    const lacks = !there && this.replaceableRuns.length > 0;
    const waits = there ? "" : talks && lacks ? "Waiting for the run; Space plays the recording." : this.needsStart ? `No run trains yet: press Start${lacks ? ", or play the recording" : ""}.` : "Waiting for the run.";
    const begins = talks && !data.notes && !this.filled ? "Space fills the screen and goes on; Escape ends." : "";
    const guess = !asks ? "" : data.tells ? `Your guess? Choose a column${talks ? "; Space shows the answer" : ""}.` : this.guess === undefined ? "Your guess? Choose a column." : "The speaker shows the answer.";
    const hint = [this.player?.texts.trouble, `${this.at + 1} / ${data.beats.length}`, stands && "recorded", this.follows ? "" : "You go your own way.", data.problem, guess || waits || (done ? this.answer ?? begins : DOES[beat.until])];
    if (this.said.said !== said) this.said.innerHTML = this.said.said = said;
    set(this.hint, hint.filter(Boolean).join(" · "));
    this.root.dataset.beat = this.at;
    this.root.dataset.recorded = Boolean(stands);
    this.hide(asks);
    const row = { back: this.at > 0, next: !asks || Boolean(data.tells), recording: !talks && lacks, skip: !(there && done && !asks), follow: !this.follows, notes: talks && data.tells && !data.notes, leave: true };
    for (const [name, offered] of Object.entries(row)) panel.querySelector(`.st-key-story_${name}`).hidden = !offered;
    const next = panel.querySelector(".st-key-story_next button");
    next.ariaDisabled = String(!asks && (there ? !done : !(talks && lacks)));
    set(next, asks ? "Show the answer" : talks && lacks ? "Play the recording" : this.at === data.beats.length - 1 ? "End" : "Go on");
    if (data.notes) this.writeNotes();
  }

  // Write the window of notes: notes for this beat, and the next sentence.
  writeNotes() {
    const next = this.data.beats[this.at + 1];
    this.notes ??= element("div", { className: "notes" });
    this.notes.replaceChildren(element("p", { textContent: this.beat.notes }), element("p", { className: "after", textContent: next ? `Next: ${blanked(next.says)}` : "This is the last slide." }));
    this.panel.append(this.notes);
  }

  // Cover the row to be guessed until its weights arrive (with a new ticket), and offer its columns.
  hide(asks) {
    const { player, beat, columns } = this;
    const covered = beat.hides === "row" && !this.data.presentation.shown.includes(this.at);
    const key = JSON.stringify([asks, covered, columns]);
    if (key === this.offered) return;
    this.offered = key;
    this.choices.replaceChildren(...(asks ? columns.map((name, column) => element("button", { type: "button", textContent: name, onclick: () => this.reveal(column) })) : []));
    if (player) player.hidden = covered ? { word: beat.word, kind: beat.kind, row: beat.row - 1 } : null;
    if (player?.looks) player.looks = null;
    player?.draw(true);
  }

  // Update the time, the arrow and the texts; called at intervals.
  tick() {
    const { beat, arrow } = this;
    this.root.dataset.time = clock(Date.now() - this.began);
    const { target } = this;
    const box = target && this.data.kind === "tour" && [...document.querySelectorAll(target)].map((one) => one.getBoundingClientRect()).find(({ width }) => width > 0);
    arrow.hidden = !box;
    // The focused element may have disappeared, such as the button Start.
    if (this.data.kind === "tour" && document.activeElement === document.body) this.panel.querySelector(".st-key-story_next button").focus({ preventScroll: true });
    const edge = this.root.getBoundingClientRect().left + 30; // further left is another part of the page
    if (box) {
      const above = beat.points === "map" && box.width > 500; // beside the map it seems to mean one row; a narrow one has no room
      arrow.classList.toggle("down", above);
      const [left, top] = above ? [box.left + 0.45 * box.width, box.top + 24] : [Math.max(edge, box.left), box.top + 0.5 * box.height];
      Object.assign(arrow.style, { left: `${left}px`, top: `${top}px` });
    }
    this.write();
  }

  tell() {
    if (!this.data.tells) return;
    this.hooks.tell({ at: this.at, shown: [...this.shown], recorded: [...this.recorded], by: this.me });
  }

  // Apply new data from Python: new tickets, and possibly other runs.
  renew(data) {
    const mayTell = data.tells && !this.data.tells;
    this.data = data;
    this.open();
    if (mayTell && !this.follows) { // a key was pressed before the ownership was known
      this.follows = true;
      this.tell();
    }
    const names = this.player ? this.beat.roles : [];
    const tickets = [...names.map((name) => this.source(name).ticket), Object.values(data.runs)[0].ticket];
    this.sources.forEach((source, i) => { source.ticket = tickets[i]; });
    this.refusals.renewed();
    this.write();
  }

  close() {
    this.player?.close();
    this.player = null;
  }

  end() {
    clearInterval(this.ticks);
    this.listens.abort();
    this.speakerSource?.close();
    this.close();
  }
}

// The speaker's position as a string, for comparison.
const where = ({ at, shown, recorded }) => JSON.stringify([at, shown, recorded]);

function set(host, text) {
  if (host.textContent !== text) host.textContent = text;
}

const mounted = new WeakMap(); // root element -> {story, hooks, key}

// The component of a page that tells a story.
export function mountedStory({ data, parentElement, setStateValue, setTriggerValue }, base) {
  const root = parentElement.querySelector(".headlight-player");
  const known = mounted.get(root);
  const key = JSON.stringify([data.run, data.story.notes, data.story.beats]);
  if (known && known.key !== key) {
    known.story.end();
    mounted.delete(root);
    root.innerHTML = known.story.template;
  }
  const hooks = mounted.get(root)?.hooks ?? { base, plotly: `${base}/files/${data.plotly}`, fileName: data.fileName, since: performance.now() };
  const trigger = (...what) => leaving(hooks.since) || setTriggerValue(...what);
  Object.assign(hooks, {
    tell: (at) => leaving(hooks.since) || setStateValue("chosen", at),
    leave: () => trigger("cell", true),
    changed: ({ viewers }) => spread(viewers, () => trigger("changed", true)),
    asks: () => trigger("refused", true),
  });
  if (mounted.has(root)) {
    mounted.get(root).story.renew(data.story);
    return;
  }
  const story = new Story(root, data.story, data.run, hooks);
  mounted.set(root, { story, hooks, key });
  whenGone(root, () => mounted.get(root)?.story.end());
}
