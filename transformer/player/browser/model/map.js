// A small overview of the model: it marks the attention with the large head and links to the others.

import { element } from "../shared/element.js";

// The lanes of a model: for each stack, the attentions by layer, self-attention first; null for own models.
function lanes(kinds) {
  const found = { encoder: {}, decoder: {} };
  const all = Object.entries(kinds).flatMap(([kind, { sites }]) => sites.map((site) => ({ kind, site })));
  if (all.some(({ kind }) => !["cross", "encoder", "decoder", "sequence"].includes(kind))) return null;
  for (const one of all.sort((a, b) => (a.kind === "cross") - (b.kind === "cross"))) {
    const [stack, layer] = one.site.split(".");
    (found[stack][layer] ??= []).push(one);
  }
  return Object.entries(found).filter(([, layers]) => Object.keys(layers).length);
}

// Draw the overview into a host. shown: the site of the large head; pick: called with kind and site.
export function drawOverview(host, kinds, shown, pick) {
  const drawn = JSON.stringify([kinds, shown]);
  if (host.drawn === drawn) return;
  const focused = host.contains(document.activeElement) && document.activeElement.dataset.site;
  host.drawn = drawn;
  const stacks = lanes(kinds);
  host.hidden = !stacks;
  if (!stacks) return; // the structure of an own model is unknown
  host.replaceChildren(...stacks.map(([stack, layers], i) => element("div", {}, element("small", { textContent: stack }),
    element("i", { title: "Embedding" }),
    ...Object.entries(layers).flatMap(([layer, sites]) => [
      ...sites.map(({ kind, site }) => {
        const attention = kind === "cross" ? "cross-attention" : "self-attention";
        const title = `${kind === "cross" ? attention : stack} layer ${Number(layer) + 1}`;
        const button = element("button", {
          type: "button", textContent: attention.split("-")[0], title, ariaLabel: title, ariaPressed: String(site === shown), onclick: () => pick(kind, site),
        });
        button.dataset.site = site;
        return button;
      }),
      element("i", { title: "Feed-forward" }),
    ]), element("i", { title: i < stacks.length - 1 ? "Encoder’s output" : "Next token" }))));
  if (focused) host.querySelector(`[data-site="${focused}"]`)?.focus();
}
