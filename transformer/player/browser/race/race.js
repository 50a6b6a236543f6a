// Runs side by side on one step control; of two, their large maps, the difference of the maps, and both curves.

import { nearest, upTo } from "../shared/chunks.js";
import { counted } from "../player/control.js";
import { element } from "../shared/element.js";
import { FUTURE, largeHead, largePicture } from "../player/pictures.js";
import { Player } from "../player/player.js";
import { AROUND, SIDES } from "./runs.js";

const APART = 0.1, IN_A_ROW = 5; // losses are apart if they differ by more than this share for this many steps
const CLEAREST = "clearest head of each";
const CLOCKS = { steps: "steps", seconds: "seconds", moment: "the turn" };
const FROM = new Intl.NumberFormat("en-US", { signDisplay: "exceptZero" });
const SECONDS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export class Race extends Player {
  // race: {asks, says, clock, look, curves}, from `pages/controls`; says: a sentence, in whose place `asks` asks a question
  // until all runs have ended
  constructor(root, runs, { race, ...options }) {
    root.dataset.parts = "race";
    runs.clock = race.clock;
    runs.race = race;
    super(root, runs, { ...options, first: { ...options.first, clock: race.clock } });
    this.race = race;
  }

  build(options) {
    const { race, many } = this.source;
    this.buildMaps(options);
    this.curves = this.drawingOf("race_curves", { clicked: (_trace, _point, { x }) => this.go(this.source.near(x)), usual: 200 });
    this.find(".race .choices").append(...["word", "kind", "race_head", "outline", "race_clock"].map((name) => this.find(`.st-key-${name}`)));
    this.heads = this.find(".st-key-race_head select");
    this.heads.onchange = () => this.choose({ pinned: this.heads.value ? JSON.parse(this.heads.value) : null });
    const clock = this.find(".st-key-race_clock select");
    clock.replaceChildren(...["steps", many ? "moment" : "seconds"].map((name) => new Option(CLOCKS[name], name)));
    clock.value = race.clock;
    clock.onchange = () => {
      this.source.clock = clock.value;
      this.choose({ clock: clock.value, ...(many && { step: this.byMoment ? AROUND : null }) });
    };
    this.hearKeys();
  }

  // Create the views of the maps.
  buildMaps() {
    delete this.root.dataset.many; // of the runs that this place of the page showed before
    this.maps = SIDES.map((side) => this.viewOf(`race_${side}`, {}));
    this.difference = this.viewOf("race_difference", {});
  }

  get byMoment() {
    return this.source.clock === "moment";
  }

  // Until all runs are loaded, say how many are.
  hear(message) {
    const { sides } = this.source, loaded = sides.filter(({ source, now }) => source.index && (now || !source.sends)).length;
    if (loaded < sides.length && !this.closed) this.texts.status(`Loading: ${loaded} of ${sides.length} runs. One that waits has nothing to show yet.`);
    return super.hear(message);
  }

  get bySeconds() {
    return this.source.clock === "seconds";
  }

  called(position) {
    return this.source.clock === "steps" ? super.called(position) : this.named(position);
  }

  named(position) {
    if (this.byMoment) return FROM.format(position - AROUND).replace("-", "−");
    if (!this.bySeconds) return counted(position);
    return `${SECONDS.format(this.source.at(position)?.seconds ?? 0)} s`;
  }

  range() {
    if (this.source.clock === "steps" || !this.index) return super.range();
    const { steps } = this.index;
    return [this.named(steps[0]), this.named(steps.at(-1)), this.bySeconds ? "second" : "step"];
  }

  // On the clock of seconds, the number is a time; by the turn, the steps after it (negative before it).
  goTo(number) {
    if (this.source.clock === "steps" || !this.index || number === null) return super.goTo(number);
    const [first, last] = this.range(), { steps } = this.index, what = this.bySeconds ? `${SECONDS.format(number)} s` : `Step ${FROM.format(number)}`;
    if (number < this.source.at(steps[0]).time || number > this.source.at(steps.at(-1)).time + 0.05) return `${what} is not recorded: the ${this.bySeconds ? "times" : "steps"} from ${first} to ${last} are.`;
    this.go(this.source.near(number));
    return "";
  }

  // The head of a run to show: {kind, site, head} of the chosen head, or of the one that its index names.
  headOf(index, step) {
    const kind = this.at.kind in index.kinds ? this.at.kind : Object.keys(index.kinds)[0];
    const [site, head] = largeHead(index, kind, this.at.pinned, step);
    return { kind, site, head };
  }

  // The head of the left run, as [site, head].
  head() {
    const { index } = this.source.sides[0].source;
    const { site, head } = this.headOf(index, this.source.at(this.step()).steps[0]);
    return [site, head];
  }

  async drawNewest() {
    this.chosen = false;
    if (!this.index) return;
    const { word, outline, clock } = this.at, position = this.step();
    const { steps, seconds, over, time } = this.source.at(position);
    const maps = await Promise.all(this.source.sides.map(({ source }, i) => source.maps(word, steps[i])));
    if (this.closed || this.chosen) return; // a newer choice is drawn first
    const shown = this.source.sides.map(({ source: { index } }, i) => {
      const own = `step ${counted(steps[i])}`;
      const when = over[i] ? `ended at ${own}` : this.byMoment ? own : this.bySeconds ? `${SECONDS.format(seconds)} s, ${own}` : steps[i] === position ? undefined : own; // else the step beside the headline
      return { index, maps: maps[i], segment: upTo(index.segments, steps[i]), step: steps[i], ...this.headOf(index, steps[i]), when };
    });
    this.numbers(position, shown);
    this.shown = { chunk: { word } };
    const looks = [...maps, ...shown.flatMap(({ segment, site, head, when }) => [segment, site, head, when]), outline, clock];
    if (looks.some((one, i) => one !== this.looks?.[i])) {
      this.looks = looks;
      this.drawMaps(shown, outline, this.bySeconds ? `${SECONDS.format(seconds)} s` : undefined);
    }
    if (this.chosen) return;
    await this.drawCurves();
    this.curves.mark(this.at.step === null ? null : time);
  }

  // Draw the maps of the runs. when: the moment, where it is not the step beside the headline.
  drawMaps(shown, outline, when) {
    shown.forEach((one, i) => this.show(one, i, { outline, when: one.when, run: this.source.names[i], fileName: `${this.fileName}-${SIDES[i]}` }));
    this.subtract(shown, when);
  }

  // Draw the large map of one run.
  show(one, i, how) {
    this.absent(`race_${SIDES[i]}`, one.maps ? "" : `“${this.at.word}” has no map of step ${counted(one.step)}.`);
    if (one.maps) this.maps[i].show(largePicture(one, how));
  }

  // Show in place of a picture why it is missing. why: empty if the picture is there.
  absent(name, why) {
    const figure = this.find(`.st-key-${name}`), note = figure.querySelector(".none");
    figure.dataset.none = Boolean(why);
    if (note.textContent !== why) note.textContent = why;
  }

  // Draw right minus left, if both runs have the word, and the kind of attention and the axes are the same.
  subtract(shown, when) {
    const [left, right] = shown.map(({ maps, kind }) => maps && { maps, ...maps.look.kinds[kind] });
    const same = (name) => JSON.stringify(left[name]) === JSON.stringify(right[name]);
    const why = !left || !right ? "“" + this.at.word + "” is not recorded in both runs." : shown[0].kind !== shown[1].kind
      ? "The models have no attention of the same kind." : !same("rows") || !same("columns")
        ? `The axes differ (left: ${left?.rows.length} × ${left?.columns.length} cells, right: ${right?.rows.length} × ${right?.columns.length}), so cells cannot be compared.` : "";
    this.absent("race_difference", why);
    if (why) return;
    const base = left.causal ? right : left; // a cell is blocked if both runs block it
    const [one, other] = shown.map(({ maps, site, head }) => maps.weights(site, head));
    const numbers = one.map((cells, row) => cells.map((weight, column) => {
      const there = other[row][column];
      return weight === null && there === null ? null : (there ?? 0) - (weight ?? 0);
    }));
    const { colors } = shown[0].index, { scale, legend } = this.source.race.look;
    const percent = (n) => `${n > 0 ? "+" : n < 0 ? "−" : ""}${Math.round(100 * Math.abs(n))}%`;
    const [most, row, column] = numbers.flatMap((cells, i) => cells.map((n, j) => [n ?? 0, i, j])).reduce((a, b) => (Math.abs(b[0]) > Math.abs(a[0]) ? b : a));
    const heads = shown.map(({ index, site, head }) => index.heads[site][head]);
    const said = most === 0 ? "no difference in any cell" : `most: ${base.rows[row]} · ${base.columns[column]}: ${most > 0 ? "+" : "−"}${Math.round(100 * Math.abs(most))}%`;
    const code = (i, j) => (numbers[i][j] === null ? (base.causal && j > i ? FUTURE : base.blocked) : 0);
    this.difference.show({
      tables: [{ row: 0, column: 0, high: numbers.length, wide: numbers[0].length, code, value: (i, j) => (1 + numbers[i][j]) / 2 }],
      numbers, scale, blocked: colors.blocked, legend, columns: base.columns, step: Math.max(...shown.map(({ step }) => step)), data: { most },
      name: "right − left", about: [when, said].filter(Boolean).join(" · "), columnTitle: base.columnTitle,
      says: (_, i, j) => (code(i, j) ? `${base.rows[i]} may not look at ${base.columns[j]}` : `${base.rows[i]} · looks at ${base.columns[j]}<br><b>${percent(numbers[i][j])}</b>`),
      alternative: `Right minus left, ${heads[1]} minus ${heads[0]}: ${said}`,
      fileName: `${this.fileName}-difference`,
    });
  }

  async drawCurves() {
    const indices = this.source.sides.map(({ source }) => source.index);
    const known = JSON.stringify([this.source.clock, ...indices.map(({ version }) => version)]);
    if (known === this.drawnCurves) return;
    this.drawnCurves = known;
    await this.drawLines(indices);
  }

  async drawLines(indices) {
    const arrays = {};
    // While runs go on, curves end at the one that is behind, whose curves may be a second older.
    const behind = Math.min(...this.source.sides.map((side, i) => (this.source.goesOn(side) ? indices[i][this.source.clock].at(-1) : Infinity)));
    indices.forEach(({ curves, steps, seconds, losses, own }, side) => {
      const timed = (step) => (this.bySeconds ? seconds[nearest(steps, step)] : step);
      const lossless = own && losses.every((loss) => loss === null); // then its first trace is another number
      (own ? ["0"] : ["2", "3"]).forEach((trace, i) => {
        const points = lossless ? [] : curves.arrays[`${trace}.x`].map((step, at) => [step && timed(step), curves.arrays[`${trace}.y`][at]]).filter(([x]) => x <= behind);
        arrays[`${2 * side + i}.x`] = points.map(([x]) => x);
        arrays[`${2 * side + i}.y`] = points.map(([, y]) => y);
      });
    });
    const losses = indices.flatMap((index) => index.losses.filter((loss) => loss !== null));
    const bottom = Math.min(0, ...losses), top = Math.max(bottom < 0 ? 0 : 1e-9, ...losses);
    const end = this.bySeconds ? Math.max(1, ...indices.map(({ seconds }) => seconds.at(-1))) : this.source.planned;
    this.parted = parted(indices);
    this.says();
    await this.curves.show({
      spec: this.source.race.curves, arrays, hatched: [], fileName: `${this.fileName}-curves`,
      layout: {
        ...Object.fromEntries(["xaxis", "xaxis2"].flatMap((axis) => [[`${axis}.range`, [0, end]], [`${axis}.title.text`, this.bySeconds ? "seconds of training" : "step"]])),
        "yaxis.range": [1.05 * bottom, 1.05 * top],
      },
    });
  }

  numbers(position, shown) {
    const { index, source, at, texts } = this;
    const live = at.step === null;
    this.root.dataset.step = position;
    const { asks, says } = source.race, ended = !source.sides.some((side) => source.goesOn(side));
    texts.set(".st-key-moment p", ended ? says : asks ?? says); // the question is asked before it is answered
    this.root.toggleAttribute("data-untrained", index.steps.length < 2); // without curves
    texts.set(".counter b", this.bySeconds ? SECONDS.format(source.at(position).seconds) : this.named(position));
    texts.set(".counter small", this.bySeconds ? "seconds of training" : this.byMoment ? "from the turn" : "step");
    texts.set(".st-key-words_right", this.learned(shown));
    this.says();
    texts.choices(index, at);
    this.offerHeads();
    const trains = source.sides.some(({ now }) => now?.state === "training");
    this.control.show({
      steps: index.steps, step: position, live, playing: this.playing, moments: index.moments,
      state: trains ? "training" : source.sides[0].now?.state ?? "recorded", planned: source.planned, last: index.steps.at(-1),
    });
  }

  // What the runs have learned so far, as HTML.
  learned(shown) {
    return shown.map((one, i) => (one.index.own ? "" : bar(this.source.names[i], SIDES[i], one.segment.counted))).join("");
  }

  // Show from which step the losses differ, and the states of the runs if these differ or need attention.
  says() {
    const nows = this.source.sides.map(({ now }) => now).filter(Boolean);
    const of = (now) => (now.state === "failed" ? now.headline : now.waits || `${now.state} at ${counted(now.step)}`);
    const quiet = nows.every(({ state, waits }) => state === nows[0].state && state !== "failed" && !waits);
    const states = quiet ? [] : nows.map((now, i) => `${this.source.called(i)}: ${of(now)}`);
    this.texts.status([this.parted, ...states].filter(Boolean).join(" · "));
  }

  // Offer the heads of the models of all runs, for the chosen kind of attention.
  offerHeads() {
    const found = this.source.sides.flatMap(({ source: { index } }) => (index.kinds[this.at.kind]?.sites ?? []).flatMap((site) => index.heads[site].map((name, head) => [JSON.stringify([site, head]), name])));
    const offered = [["", CLEAREST], ...new Map(found)];
    const chosen = this.at.pinned ? JSON.stringify(this.at.pinned) : "";
    const known = JSON.stringify([offered, chosen]);
    if (known === this.offered) return;
    this.offered = known;
    this.heads.replaceChildren(...offered.map(([value, name]) => element("option", { value, textContent: name, selected: value === chosen })));
  }

  rest() {
    this.picked = undefined;
    super.rest();
  }
}

// The held-out examples that a run gets right, as a bar.
function bar(name, side, [right, asked, step]) {
  const share = asked ? (100 * right) / asked : 0;
  return `<div class="bar ${side}" title="${name}: test words right, asked at step ${counted(step)}"><small>${side} map</small><span><b>${counted(right)}</b> of ${counted(asked)} right</span>`
    + `<i><i style="width:${share}%"></i></i></div>`;
}

// A sentence: from which step the losses of two runs differ; empty if they have no step in common.
export function parted([left, right]) {
  const other = new Map(right.steps.map((step, i) => [step, right.losses[i]]));
  const both = left.steps.map((step, i) => [step, left.losses[i], other.get(step)]).filter(([, a, b]) => typeof a === "number" && typeof b === "number");
  if (!both.length) return "";
  const differ = both.find(([, a, b]) => a !== b);
  if (!differ) return `All ${counted(both.length)} losses are the same so far.`;
  const far = both.map(([, a, b]) => Math.abs(a - b) > APART * Math.max(Math.abs(a), Math.abs(b)));
  const from = far.findIndex((_, i) => i + IN_A_ROW <= far.length && far.slice(i, i + IN_A_ROW).every(Boolean));
  const apart = from < 0 ? "so far by less than 10%" : `by more than 10% from step ${counted(both[from][0])} on`;
  return `The losses differ from step ${counted(differ[0])} on, ${apart}.`;
}
