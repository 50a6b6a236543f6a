// Create an element with its properties and children.
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Whether an event is the press of this letter alone, and not in a box in which one types.
export function pressed({ key, target, ctrlKey, altKey, metaKey }, letter) {
  const types = target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== "range");
  return key.toLowerCase() === letter && !ctrlKey && !altKey && !metaKey && !types;
}

// A share in percent: whole, or, if `finely`, with a decimal below 10%.
export const percent = (share, finely = false) => `${(100 * share).toFixed(finely && share < 0.1 ? 1 : 0)}%`;

// A text as HTML, for the content of an element or an attribute in double quotes.
export function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
