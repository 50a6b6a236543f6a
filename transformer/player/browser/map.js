// A small map of the model: which attention is on the screen, and the way to another one.

import { element } from "./element.js";

const LETTERS = { encoder: "self", decoder: "self", sequence: "self", cross: "cross" };

// The lanes of a model: of each stack the sites of each layer, with their kind.
function lanes(kinds) {
  const found = new Map();
  for (const [kind, { name, sites }] of Object.entries(kinds)) {
    for (const site of sites) {
      const [stack, layer] = site.split(".");
      if (!found.has(stack)) found.set(stack, new Map());
      const layers = found.get(stack);
      layers.set(layer, [...layers.get(layer) ?? [], { kind, name, site, layer }]);
    }
  }
  return [...found].sort(([a], [b]) => (a === "encoder" ? -1 : b === "encoder" ? 1 : 0));
}

// Draw the map into a host. shown: the site of the head that is shown large; pick: called with kind and site.
export function drawMap(host, kinds, shown, pick) {
  const drawn = JSON.stringify([kinds, shown]);
  if (host.drawn === drawn) return;
  const focused = host.contains(document.activeElement) && document.activeElement.dataset.site;
  host.drawn = drawn;
  host.replaceChildren(...lanes(kinds).map(([stack, layers]) => element("div", {}, element("small", { textContent: stack }),
    element("i", { title: "Embedding" }),
    ...[...layers].flatMap(([layer, sites]) => [
      ...sites.sort((a, b) => (a.kind === "cross") - (b.kind === "cross")).map(({ kind, site }) => {
        const button = element("button", {
          type: "button", textContent: LETTERS[kind][0], ariaPressed: String(site === shown), onclick: () => pick(kind, site),
          title: `${stack}, layer ${Number(layer) + 1}: ${LETTERS[kind]}-attention`, ariaLabel: `${stack}, layer ${Number(layer) + 1}: ${LETTERS[kind]}-attention`,
        });
        button.dataset.site = site;
        return button;
      }),
      element("i", { title: "Feed-forward" }),
    ]), element("i", { title: stack === "encoder" && layers.size && Object.keys(kinds).length > 1 ? "Encoder’s output" : "Next token" }))));
  if (focused) host.querySelector(`[data-site="${focused}"]`)?.focus();
}
