// Many runs that differ in their seeds: a small map of each on one step control, their curves, and what became of them.

import { counted } from "../player/control.js";
import { element } from "../shared/element.js";
import { largePicture } from "../player/pictures.js";
import { Race } from "./race.js";
import { AROUND, Runs } from "./runs.js";

const BESIDE = 50; // steps before and after the turn on the axis of the curves
const MARKS = ["50% right", "90%", "99%"];

export class Seeds extends Race {
  buildMaps({ opensRun }) {
    const { names } = this.source, host = this.find(".race");
    this.root.dataset.many = names.length > 8 ? "narrow" : "wide"; // maps
    this.root.style.setProperty("--across", names.length > 8 ? 6 : Math.min(4, names.length));
    host.querySelector(".tiles")?.remove();
    const tiles = names.map((_, i) => element("figure", { className: `st-key-seeds_${i}` }, element("p", { className: "none" }), element("div", { className: "live-figure" })));
    host.prepend(element("div", { className: "tiles" }, ...tiles));
    this.maps = names.map((_, i) => this.viewOf(`seeds_${i}`, opensRun && { titled: () => opensRun(i), opens: "Open this run on Watch" }));
    this.table = element("div", { className: "st-key-seeds_table" });
    host.querySelector(".st-key-seeds_table")?.remove();
    host.append(this.table);
  }

  drawMaps(shown) {
    shown.forEach((one, i) => {
      this.absent(`seeds_${i}`, one.maps ? "" : `“${this.at.word}” has no map of step ${counted(one.step)}.`);
      if (!one.maps) return;
      const { index: { turned, heads }, site, head } = one, name = this.source.names[i];
      const picture = largePicture(one, { run: name, when: one.when, fileName: `${this.fileName}-run${i + 1}` });
      const said = one.when ? one.when.replace("ended at step", "end:") : turned[0] <= one.step ? "" : "not turned yet";
      this.maps[i].show({ ...picture, legend: undefined, about: [heads[site][head], said].filter(Boolean).join(" · "), rows: [], columns: [], rowTitle: "", columnTitle: "", marks: undefined, details: [], foot: "" });
    });
  }

  learned() {
    const { steps } = this.source.at(this.step());
    const turned = this.source.sides.filter(({ source }, i) => source.index.turned[0] <= steps[i]).length;
    return `<b>${turned}</b> of ${this.source.names.length} have turned`;
  }

  // Draw the best score of a head and the share of right words of each run, and write the table beside these curves.
  async drawLines(indices) {
    const arrays = {}, { race, planned } = this.source;
    indices.forEach(({ best, curves, turned }, i) => {
      const from = this.byMoment ? turned[0] : 0;
      const lines = [best, curves.arrays["3.x"].map((step, at) => [step, curves.arrays["3.y"][at]])];
      lines.forEach((points, line) => {
        const kept = from === undefined ? [] : points;
        arrays[`${2 * i + line}.x`] = kept.map(([step]) => (step === null ? null : step - from));
        arrays[`${2 * i + line}.y`] = kept.map(([, y]) => y);
      });
    });
    this.says();
    this.tabulate(indices);
    const range = this.byMoment ? [-BESIDE, BESIDE] : [0, planned], title = this.byMoment ? "steps from the turn" : "step";
    await this.curves.show({
      spec: race.curves, arrays, hatched: [], fileName: `${this.fileName}-curves`,
      layout: Object.fromEntries(["xaxis", "xaxis2"].flatMap((axis) => [[`${axis}.range`, range], [`${axis}.title.text`, title]])),
    });
  }

  tabulate(indices) {
    const cell = (step) => `<td>${step === null || step === undefined ? "–" : counted(step)}</td>`;
    const rows = indices.map(({ turned: [step, site, head], reached, heads }, i) => `<tr><th>${this.source.names[i]}</th>${cell(step)}<td>${site ? heads[site][head] : "none"}</td>${reached.map(cell).join("")}</tr>`);
    this.table.innerHTML = `<table><thead><tr><th></th><th>turned</th><th>head</th>${MARKS.map((mark) => `<th>${mark}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
  }
}

// The player of several runs.
export function raceOf(root, sources, race, options) {
  const Kind = sources.length > 2 ? Seeds : Race;
  return new Kind(root, new Runs(sources, race.names), { ...options, race });
}
