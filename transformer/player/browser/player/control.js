// The step control: play, speed, a slider with marks for the moments, LIVE. The run never moves the slider while it is pressed.

import { nearest } from "../shared/chunks.js";
import { element } from "../shared/element.js";

const HELD = 600; // ms that the slider counts as held after a key
const JUMPS = {
  ArrowLeft: -1, ArrowDown: -1, PageDown: -10, Home: -Infinity,
  ArrowRight: 1, ArrowUp: 1, PageUp: 10, End: Infinity,
};
const SPEEDS = { "2/s": 2, "5/s": 5, "10/s": 10, "20/s": 20, "60/s": 60 };
const WHOLE = new Intl.NumberFormat("en-US");
export const counted = (n) => WHOLE.format(n);

export class Control {
  // hooks: go(step), live(), play(), rested(), named(step), called(step): as in a sentence
  constructor(root, hooks) {
    this.hooks = hooks;
    this.root = root.querySelector(".time-slider");
    this.input = this.root.querySelector("input");
    this.bubble = this.root.querySelector(".bubble");
    this.badge = root.querySelector(".st-key-time_badge");
    this.button = root.querySelector(".st-key-time_play button");
    this.liveButton = root.querySelector(".st-key-time_live button");
    this.marks = root.querySelector(".st-key-moments");
    this.jumps = [["last", -1], ["next", 1]].map(([name, way]) => {
      const button = root.querySelector(`.st-key-time_${name} button`);
      button.onclick = () => this.jump(way);
      return button;
    });
    this.speedBox = root.querySelector(".st-key-time_speed select");
    this.speedBox.replaceChildren(...Object.keys(SPEEDS).map((name) => new Option(name, name)));
    this.speedBox.value = "10/s";
    Object.assign(this, { steps: [], planned: 1, shown: 0, pressed: false, held: 0, moments: [], pointed: null });
    this.button.disabled = true; // until two steps are recorded
    this.button.onclick = () => hooks.play();
    this.liveButton.onclick = () => hooks.live();
    this.input.onpointerdown = (event) => this.press(event);
    this.input.oninput = () => this.moved();
    this.input.onkeydown = (event) => this.key(event);
  }

  get speed() {
    return SPEEDS[this.speedBox.value] ?? 5;
  }

  get busy() {
    return this.pressed || Boolean(this.held);
  }

  press({ button }) {
    if (button) return;
    this.pressed = true;
    const hand = new AbortController();
    const release = ({ type, buttons }) => {
      if (type === "pointermove" && buttons) return; // no button: the release was missed
      hand.abort();
      this.pressed = false;
      setTimeout(() => this.hooks.rested()); // after the last input event
    };
    for (const name of ["pointerup", "pointercancel", "pointermove", "blur"]) {
      window.addEventListener(name, release, hand);
    }
  }

  moved() {
    if (!this.steps.length) return;
    const way = Math.sign(this.input.value - this.shown);
    const step = this.steps[nearest(this.steps, Number(this.input.value))];
    if (!this.pressed) this.hold();
    if (step !== this.shown) this.go(step);
    else if (this.pressed) this.input.value = step; // the handle stays on a frame
    else this.go(this.neighbour(way)); // an increment by a screen reader may be less than the distance to the next frame
  }

  key(event) {
    const { key, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    // Streamlit ignores shortcuts from an input: dispatch keys of one character again from the root element.
    if (key.length === 1) this.root.dispatchEvent(new KeyboardEvent("keydown", event));
    const jump = JUMPS[key];
    if (!jump || !this.steps.length) return;
    event.preventDefault();
    this.hold();
    this.go(this.neighbour(jump));
  }

  neighbour(jump) {
    const { steps, shown } = this;
    const below = steps.filter((step) => step < shown).length;
    const from = steps[below] === shown || jump < 0 ? below : below - 1;
    return steps[Math.min(steps.length - 1, Math.max(0, from + jump))];
  }

  hold() {
    clearTimeout(this.held);
    this.held = setTimeout(() => {
      this.held = 0;
      this.hooks.rested();
    }, HELD);
  }

  // Go to a step. The newest step is LIVE: the screen then follows the run.
  go(step) {
    this.place(step);
    if (step === this.steps.at(-1)) this.hooks.live();
    else this.hooks.go(step);
  }

  place(step) {
    const { input, root, steps } = this;
    const newest = steps.at(-1) ?? 0;
    const max = Math.max(this.planned, newest, 1);
    this.shown = step;
    Object.assign(input, {
      disabled: !steps.length, max, value: step, ariaValueMax: max, ariaValueNow: step,
      ariaValueText: `${this.hooks.called(step)} of ${this.hooks.named(this.planned)}${this.isLive ? ", live" : ""}`,
    });
    this.max = max;
    this.name();
    root.style.setProperty("--at", step / max);
    root.style.setProperty("--newest", newest / max);
    Object.assign(root.dataset, { step, newest, frames: steps.length });
  }

  show({ steps, planned, step, live, playing, state, moments, last }) {
    Object.assign(this, { steps, planned, isLive: live });
    if (!this.pressed) this.place(step);
    else this.place(this.shown);
    const replay = playing ? "■ Replay" : "▶ Replay"; // a sign of pause would seem to be of the training
    if (this.button.textContent !== replay) this.button.textContent = replay;
    this.button.ariaLabel = playing ? "Stop the film" : "Play the film";
    this.button.disabled = steps.length < 2;
    const follows = live || (state !== "training" && step === steps.at(-1)); // no step is later
    this.liveButton.ariaPressed = live;
    this.badge.className = `st-key-time_badge ${follows ? (state === "training" ? "live" : "newest") : "review"}`;
    const newest = { training: "LIVE", idle: "untrained", paused: "newest step", queued: "newest step" }[state] ?? "last step";
    const badge = follows ? `${state === "training" ? "● " : ""}${newest}` : `looking back <small>go to ${newest}</small>`;
    if (this.badge.written !== badge) this.badge.innerHTML = this.badge.written = badge;
    this.liveButton.title = live ? "The screen follows the run." : `Follow the run again: it is ${state} at ${this.hooks.called(last)}.`;
    this.setMoments(moments);
  }

  setMoments(moments) {
    const marked = JSON.stringify([this.max, moments]);
    if (this.marked !== marked) {
      const focused = this.marks.contains(document.activeElement) && document.activeElement.ariaLabel;
      Object.assign(this, { moments, marked });
      this.marks.replaceChildren(...moments.map((moment) => {
        const mark = element("button", { type: "button", ariaLabel: `${this.hooks.called(moment.step)}: ${moment.text}` });
        mark.dataset.step = moment.step;
        mark.style.setProperty("--share", moment.step / this.max);
        mark.onclick = () => this.hooks.go(this.steps[nearest(this.steps, moment.step)]);
        mark.onpointerenter = mark.onfocus = () => this.name(moment);
        mark.onpointerleave = mark.onblur = () => this.name(null);
        return mark;
      }));
      [...this.marks.children].find(({ ariaLabel }) => ariaLabel === focused)?.focus({ preventScroll: true }); // was lost with the old mark
    }
    this.name();
    const past = moments.findLastIndex((moment) => moment.step <= this.shown);
    [...this.marks.children].forEach((mark, i) => { mark.ariaCurrent = i === past; });
    this.jumps[0].disabled = !moments.some(({ step }) => step < this.shown);
    const next = moments.find(({ step }) => step > this.shown);
    this.jumps[1].disabled = !next;
    this.jumps[1].title = next ? `Next moment, ${this.hooks.called(next.step)}: ${next.text}` : "Next moment";
  }

  // Go to the moment before (-1) or after (1) the step that is shown.
  jump(way) {
    const { moments, shown, steps } = this;
    const moment = way < 0 ? moments.findLast(({ step }) => step < shown) : moments.find(({ step }) => step > shown);
    if (moment) this.hooks.go(steps[nearest(steps, moment.step)]);
  }

  // Write above the slider the step that is shown, or the moment under the pointer with its step.
  name(pointed = this.pointed) {
    this.pointed = pointed;
    const { shown, max, moments, bubble } = this;
    const step = pointed?.step ?? shown;
    const said = [this.hooks.named(step), pointed?.text].filter(Boolean).join(" · ");
    if (bubble.textContent !== said) Object.assign(bubble, { textContent: said, title: `${said}. Type another step (G).` });
    bubble.style.setProperty("--share", step / max);
  }
}
