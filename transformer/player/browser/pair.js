// Two runs as one recording: which steps of both are shown together, by steps or by seconds of training.

import { upTo } from "./chunks.js";
import { GOES_ON } from "./texts.js";

export const SIDES = ["left", "right"];

// The steps of a run at which a word has maps, and the seconds of training until each.
function timeline({ source, now }, word) {
  const { steps, seconds } = source.index, later = source.later(word);
  if (!later.length) return { steps, seconds };
  const [from, since] = [steps.at(-1), seconds.at(-1)];
  const pace = now.at > from ? (now.seconds - since) / (now.at - from) : 0;
  return { steps: [...steps, ...later], seconds: [...seconds, ...later.map((step) => since + pace * (step - from))] };
}

// The last index of an ascending list whose value is at most a limit; 0 if there is none.
const lastUpTo = (values, limit) => Math.max(0, values.findLastIndex((value) => value <= limit));

export class Pair {
  // sources and names: of the left and the right run
  constructor(sources, names) {
    Object.assign(this, { sources, names, clock: "steps", word: null, kept: {} });
    this.sides = sources.map((source) => ({ source, now: null }));
    this.sends = sources.some(({ sends }) => sends);
    for (const source of sources) source.say({ whole: true });
  }

  async begin(changed) {
    await Promise.all(this.sides.map((side) => side.source.begin(({ now }) => {
      if (now) side.now = now;
      const [left, right] = this.sides.map((one) => one.now);
      return changed({ now: left && right && { ...left, seen: `${left.seen}|${right.seen}`, viewers: Math.max(left.viewers, right.viewers) } });
    })));
  }

  say(what) {
    if (what.word !== undefined) this.word = what.word;
    for (const source of this.sources) source.say(what);
  }

  close() {
    for (const source of this.sources) source.close();
  }

  // Whether a run can take more steps.
  goesOn({ now }) {
    return now !== null && GOES_ON.includes(now.state);
  }

  // The common index of both runs; null until both are loaded. Its steps are positions: the steps of the left
  // run, and after its last step the later steps of the right run.
  get index() {
    const [left, right] = this.sides.map(({ source, now }) => (source.sends && !now ? null : source.index));
    if (!left || !right) return null;
    const known = JSON.stringify([
      this.clock, this.word, ...this.sides.map(({ source, now }) => [source.index.version, source.later(this.word).length, now?.at, now?.state]),
    ]);
    if (this.kept.known === known) return this.kept.index;
    const line = this.line();
    const common = left.words.filter((word) => right.words.includes(word));
    const moments = this.sides.flatMap(({ source }, side) => source.index.moments.flatMap(({ step, text, said }) => {
      const at = line.find(({ steps }) => steps[side] >= step)?.at;
      return at === undefined ? [] : [{ step: at, text: `${SIDES[side]}: ${text}`, said }];
    }));
    const index = {
      words: common.length ? common : left.words, kinds: left.kinds, heads: left.heads, looks: left.looks, token: left.token,
      steps: line.map(({ at }) => at), moments: moments.sort((a, b) => a.step - b.step),
    };
    this.kept = { known, index, line };
    return index;
  }

  line() {
    const [left, right] = this.sides.map((side) => timeline(side, this.word));
    const { clock } = this;
    const ends = this.sides.map((side, i) => {
      const { [clock]: times, steps } = [left, right][i];
      return this.goesOn(side) ? times[lastUpTo(steps, Math.max(0, side.now.at))] : Infinity;
    });
    const end = Math.min(...ends);
    const line = [];
    // Skip steps that one run has not recorded. Own models are recorded at arbitrary steps: skip none.
    const together = clock === "steps" && this.sides.every(({ source }) => !source.index.own);
    let place = 0;
    left.steps.forEach((step, i) => {
      const time = left[clock][i];
      if (time > end) return;
      while (right[clock][place + 1] <= time) place += 1;
      const over = right[clock].at(-1) < time && !this.goesOn(this.sides[1]);
      if (together && right.steps[place] !== step && !over) return;
      line.push({ at: step, steps: [step, right.steps[place]], seconds: left.seconds[i], over: [false, over] });
    });
    if (this.goesOn(this.sides[0])) return this.held(line);
    const last = left.steps.at(-1), from = place;
    for (place += 1; right[clock][place] <= end; place += 1) {
      const at = clock === "steps" ? right.steps[place] : last + place - from;
      line.push({ at, steps: [last, right.steps[place]], seconds: right.seconds[place], over: [true, false] });
    }
    return this.held(line);
  }

  // The positions up to the newest with both maps in the browser: a slow browser does not receive every map.
  held(line) {
    const here = ({ steps }) => this.sources.every((source, i) => source.holds(this.word, steps[i]));
    const last = line.findLastIndex(here);
    return last < 0 ? line : line.slice(0, last + 1);
  }

  // The state at a position, {at, steps, seconds, over}: the step of each run, and whether it ended earlier.
  at(position) {
    return upTo(this.kept.line, position, ({ at }) => at);
  }

  // The position nearest to a time on the clock (steps or seconds).
  near(time) {
    const { clock, kept: { line } } = this;
    const far = ({ at, seconds }) => Math.abs((clock === "steps" ? at : seconds) - time);
    return line.reduce((best, one) => (far(one) < far(best) ? one : best)).at;
  }

  // The last planned step, as a position.
  get planned() {
    const ends = this.sides.flatMap((side) => (this.goesOn(side) ? [side.now.planned] : []));
    return Math.max(...ends, this.kept.line.at(-1).at);
  }
}
