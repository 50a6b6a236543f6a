// The box in which a step is typed. Either number of the step (in the header, above the slider) opens it, or the key G.

import { pressed } from "../shared/element.js";

// The number that a text such as "1,200" is; NaN if it is none.
export const numberIn = (text) => (/^[-−+]?\d[\d,_ ]*(\.\d+)?$/.test(text.trim()) ? Number(text.replaceAll(/[,_ ]/g, "").replace("−", "-")) : NaN);

export class StepBox {
  // goes: called with a number, or with null for the newest step; returns why there is no such step, or ""; range: returns
  // the first and the last number, and what they count, as texts
  constructor(root, { goes, range }, listens) {
    Object.assign(this, { goes, range, host: root.querySelector(".st-key-time_number"), before: null });
    [this.input, this.said] = this.host.querySelectorAll("input, [role=status]");
    for (const opens of root.querySelectorAll(".counter, .bubble")) opens.onclick = () => this.open();
    this.input.onkeydown = (event) => {
      event.stopPropagation(); // the page has shortcuts of its own
      if (event.key === "Escape") this.close();
      if (event.key !== "Enter") return;
      event.preventDefault(); // else the key would press the number, which has the focus once the box is closed
      this.go();
    };
    this.host.onfocusout = ({ relatedTarget }) => { if (!this.host.contains(relatedTarget)) this.host.hidden = true; };
    document.addEventListener("keydown", (event) => {
      if (pressed(event, "g") && root.isConnected) {
        event.preventDefault();
        this.open();
      }
    }, listens);
  }

  open() {
    const [first, last, unit] = this.range();
    this.before = document.activeElement;
    this.host.hidden = false;
    this.input.value = "";
    this.input.ariaLabel = `Go to ${unit}`;
    this.said.textContent = `${first} to ${last}, or “live”`;
    this.said.className = "";
    this.input.focus();
  }

  close() {
    this.host.hidden = true;
    this.before?.focus({ preventScroll: true });
  }

  go() {
    const text = this.input.value.trim(), [first, last, unit] = this.range();
    const newest = /^(live|newest|end)$/i.test(text), number = numberIn(text);
    const why = newest || !Number.isNaN(number) ? this.goes(newest ? null : number) : `“${text}” is no ${unit}. Type a number from ${first} to ${last}.`;
    if (!why) return this.close();
    this.said.textContent = why;
    this.said.className = "refused";
    return this.input.select();
  }
}
