// Several runs as one recording: which steps are shown together, by steps, by seconds of training, or by the steps
// before and after each run's own turn, at which its first head became clear.

import { upTo } from "../shared/chunks.js";
import { GOES_ON } from "../player/texts.js";

export const SIDES = ["left", "right"];
export const AROUND = 20; // steps that are shown before and after the turn

// The recorded steps of a run, with those of a word that are later than the index; and the seconds of training until each,
// estimated for the later ones.
function timeline({ source, now }, word) {
  const { steps, seconds } = source.index, later = source.later(word);
  if (!later.length) return { steps, seconds };
  const [from, since] = [steps.at(-1), seconds.at(-1)];
  const pace = now.at > from ? (now.seconds - since) / (now.at - from) : 0;
  return { steps: [...steps, ...later], seconds: [...seconds, ...later.map((step) => since + pace * (step - from))] };
}

// The last index of an ascending list whose value is at most a limit; 0 if there is none.
const lastUpTo = (values, limit) => Math.max(0, values.findLastIndex((value) => value <= limit));

export class Runs {
  // sources and names: of the runs; of two, the left and the right one
  constructor(sources, names) {
    Object.assign(this, { sources, names, clock: "steps", word: null, kept: {} });
    this.sides = sources.map((source) => ({ source, now: null }));
    this.sends = sources.some(({ sends }) => sends);
    this.many = sources.length > 2;
    for (const source of sources) source.say({ whole: true });
  }

  async begin(changed) {
    await Promise.all(this.sides.map((side) => side.source.begin(({ now, trouble }) => {
      if (trouble !== undefined) return changed({ trouble });
      if (now) side.now = now;
      const nows = this.sides.map((one) => one.now);
      const all = nows.every(Boolean);
      return changed({ now: all && { ...nows[0], seen: nows.map(({ seen }) => seen).join("|"), viewers: Math.max(...nows.map(({ viewers }) => viewers)) } });
    })));
  }

  say(what) {
    if (what.word !== undefined) this.word = what.word;
    for (const source of this.sources) source.say(what);
  }

  close() {
    for (const source of this.sources) source.close();
  }

  get lost() {
    return this.sources.some(({ lost }) => lost);
  }

  loaded(word, position) {
    return this.sources.every((source, side) => source.loaded(word, this.at(position).steps[side]));
  }

  // Whether a run on a server can take more steps.
  goesOn({ now }) {
    return now !== null && GOES_ON.includes(now.state);
  }

  // How messages name a run.
  called(side) {
    return this.many ? this.names[side] : SIDES[side];
  }

  // The common index of the runs; null until all are loaded. Its steps are positions: the steps of the first run and, after
  // its last step, one position for each later step of the others (by steps, that step; by seconds, counted on); by the turn,
  // the places of the line.
  get index() {
    const indices = this.sides.map(({ source, now }) => (source.sends && !now ? null : source.index));
    if (!indices.every(Boolean)) return null;
    const known = JSON.stringify([
      this.clock, this.word, ...this.sides.map(({ source, now }) => [source.index.version, source.later(this.word).length, now?.at, now?.state]),
    ]);
    if (this.kept.known === known) return this.kept.index;
    const [first] = indices, line = this.clock === "moment" ? this.around() : this.line();
    const common = first.words.filter((word) => indices.every(({ words }) => words.includes(word)));
    const moments = this.clock === "moment" ? [{ step: AROUND, text: "the turn of each run" }] : indices.flatMap((index, side) => {
      const of = this.many ? index.moments.filter(({ step }) => step === index.turned[0]).slice(0, 1) : index.moments;
      return of.flatMap(({ step, text, said }) => {
        const at = line.find(({ steps }) => steps[side] >= step)?.at;
        return at === undefined ? [] : [{ step: at, text: `${this.called(side)}: ${text}`, said }];
      });
    });
    const index = {
      ...first, words: common.length ? common : first.words, steps: line.map(({ at }) => at), moments: moments.sort((a, b) => a.step - b.step),
    };
    this.kept = { known, index, line };
    return index;
  }

  line() {
    const lines = this.sides.map((side) => timeline(side, this.word)), { clock } = this;
    const times = lines.map((one) => one[clock]), ended = this.sides.map((side) => !this.goesOn(side));
    const end = Math.min(...this.sides.map(({ now }, i) => (ended[i] ? Infinity : times[i][lastUpTo(lines[i].steps, Math.max(0, now.at))])));
    // By steps, skip steps that one run has not recorded. Own models are recorded at arbitrary steps: skip none.
    const together = clock === "steps" && this.sides.every(({ source }) => !source.index.own);
    const line = [], places = lines.map(() => 0);
    const rest = lines.map((_, i) => i).slice(1).sort((a, b) => times[a].at(-1) - times[b].at(-1));
    let since = -Infinity;
    for (const lead of [0, ...rest]) {
      lines[lead].steps.forEach((step, i) => {
        const time = times[lead][i];
        if (time <= since || time > end) return;
        times.forEach((one, j) => { while (one[places[j] + 1] <= time) places[j] += 1; });
        const over = times.map((one, j) => one.at(-1) < time && ended[j]), steps = lines.map((one, j) => one.steps[places[j]]);
        if (together && steps.some((one, j) => !over[j] && one !== step)) return;
        line.push({ at: lead && clock !== "steps" ? line.at(-1).at + 1 : step, time, steps, seconds: lines[lead].seconds[i], over });
      });
      if (!ended[lead]) break;
      since = Math.max(since, times[lead].at(-1));
    }
    // Own models may have no moment in common yet.
    if (!line.length) line.push({ at: 0, time: 0, steps: lines.map((one) => one.steps[0]), seconds: 0, over: lines.map(() => false) });
    return this.held(line);
  }

  // Each run at its own turn and the steps before and after it; a run that has not turned stands at its newest step. If none
  // has turned, a single place.
  around() {
    const lines = this.sides.map((side) => timeline(side, this.word)), turns = this.sides.map(({ source }) => source.index.turned[0]);
    const offsets = turns.some((turn) => turn !== undefined) ? Array.from({ length: 2 * AROUND + 1 }, (_, i) => i - AROUND) : [0];
    return offsets.map((time) => ({
      at: AROUND + time, time, seconds: 0,
      steps: lines.map(({ steps }, i) => (turns[i] === undefined ? steps.at(-1) : steps[lastUpTo(steps, turns[i] + time)])),
      over: lines.map(({ steps }, i) => !this.goesOn(this.sides[i]) && turns[i] + time > steps.at(-1)),
    }));
  }

  // The positions up to the newest whose maps can all be shown: a slow browser does not receive every map. If none can, all.
  held(line) {
    const here = ({ steps }) => this.sources.every((source, i) => source.holds(this.word, steps[i]));
    const last = line.findLastIndex(here);
    return last < 0 ? line : line.slice(0, last + 1);
  }

  // The state at a position, {at, time, steps, seconds, over}: the step of each run, and whether it ended earlier.
  at(position) {
    return upTo(this.kept.line, position, ({ at }) => at);
  }

  // The position nearest to a time on the clock.
  near(time) {
    const far = (one) => Math.abs(one.time - time);
    return this.kept.line.reduce((best, one) => (far(one) < far(best) ? one : best)).at;
  }

  // The last planned step, as a position.
  get planned() {
    const ends = this.clock === "moment" ? [] : this.sides.flatMap((side) => (this.goesOn(side) ? [side.now.planned] : []));
    return Math.max(...ends, this.kept.line.at(-1).at);
  }
}
