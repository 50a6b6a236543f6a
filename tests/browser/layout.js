// Finds texts and controls of a page that cover each other, are cut, or lie outside of the window.
(() => {
  const SLACK = 2; // pixels by which boxes may touch: type has room around its letters
  const wide = document.documentElement.clientWidth, high = window.innerHeight;
  const SEEN = { contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true };
  const found = [], shown = document.fullscreenElement ?? document.body;

  // The part of a box that its ancestors and the window leave visible.
  function visible(element, box, own) {
    let { left, top, right, bottom } = box;
    for (let one = own ? element : element.parentElement; one && one !== document.documentElement; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.opacity === "0" || style.visibility === "hidden" || /inset\(50%/.test(style.clipPath) || style.clip === "rect(0px, 0px, 0px, 0px)") return null;
      if (style.overflowX !== "visible" || style.overflowY !== "visible") {
        const clip = one.getBoundingClientRect();
        if (style.overflowX !== "visible") [left, right] = [Math.max(left, clip.left), Math.min(right, clip.right)];
        if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, clip.top), Math.min(bottom, clip.bottom)];
      }
      if (style.position === "fixed") break;
    }
    if (right - left < 1 || bottom - top < 1) return null;
    return { left, top, right, bottom };
  }

  const name = (element, text) => {
    const key = element.closest("[class*=st-key-]")?.className.match(/st-key-[\w-]+/)?.[0] ?? element.closest("[data-testid]")?.dataset.testid ?? element.tagName;
    return `${key} “${text.trim().slice(0, 50)}”`;
  };
  // Whether a bubble, or the title of an element, has the whole text.
  const readable = (element, text) => {
    if (element.closest("[data-testid=stTooltipHoverTarget], option, select")) return true;
    for (let one = element; one && one !== shown; one = one.parentElement) if (one.title?.includes(text.trim())) return true;
    return false;
  };
  // Whether a person can scroll sideways to the part that is cut.
  const scrolls = (element) => {
    for (let one = element; one; one = one.parentElement) if (/auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth) return true;
    return false;
  };

  const related = (a, b) => a.contains(b) || b.contains(a) || (a.closest("button, a, label, select, [data-baseweb]") && a.closest("button, a, label, select, [data-baseweb]") === b.closest("button, a, label, select, [data-baseweb]"));
  // The element over which the page scrolls, such as the bar of buttons on a phone; the header counts as the page.
  function fixed(element) {
    for (let one = element; one; one = one.parentElement) if (getComputedStyle(one).position === "fixed" && one.getBoundingClientRect().top > 60) return one;
    return null;
  }
  // Whether one stands in a layer above the page, such as a menu, the sidebar of a phone, or a bubble under the pointer.
  const layer = (element) => fixed(element) ?? element.closest("[data-testid=stPopoverBody], [data-testid=stSidebar], [data-baseweb=popover], [data-baseweb=tooltip], [role=dialog], .map-bubble, .hoverlayer, [data-testid=stToast], .st-key-time_number");
  // What stands over the centre of the visible part of a control; what lies under a layer of its own is not looked at.
  function cover(element, box) {
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    if (y < 0 || y >= high || x < 0 || x >= wide) return null;
    const top = document.elementFromPoint(x, y);
    if (!top || related(element, top) || layer(top) !== layer(element)) return null;
    return top;
  }

  const items = [];
  const walker = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, noscript, template, option, [hidden], .katex-mathml, [data-testid=stStatusWidget]")) continue;
    if (!parent.checkVisibility(SEEN)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width < 2 || rect.height < 2) continue;
      const box = visible(parent, rect, true);
      if (!box) continue;
      // Lines are higher than their letters.
      const inset = Math.min(0.22 * rect.height, 6);
      items.push({ element: parent, text: node.data, box: { ...box, top: Math.max(box.top, rect.top + inset), bottom: Math.min(box.bottom, rect.bottom - inset) }, turned: parent.closest(".slanted, [transform], .tick") !== null });
      const cut = box.left > rect.left + SLACK || box.right < rect.right - SLACK || rect.right > wide + SLACK || rect.left < -SLACK;
      if (cut && !readable(parent, node.data) && !scrolls(parent)) found.push(`cut: ${name(parent, node.data)}`);
      if (parent.scrollWidth > parent.clientWidth + SLACK && getComputedStyle(parent).textOverflow === "ellipsis" && parent.clientWidth && !readable(parent, node.data)) found.push(`ellipsis: ${name(parent, node.data)}`);
    }
  }
  for (const element of shown.querySelectorAll("button, input, select, textarea, a[href], canvas, [role=slider]")) {
    const rect = element.getBoundingClientRect(), box = rect.width > 3 && rect.height > 3 ? visible(element, rect, true) : null;
    if (!box || element.ariaLabel?.startsWith("Scroll tabs") || !element.checkVisibility(SEEN) || element.closest("[hidden]") || element.type === "range" || element.closest(".time-slider, .modebar, .model") || element.disabled === undefined && element.tagName !== "CANVAS" && element.tagName !== "A") continue;
    if (element.matches("input[type=checkbox], input[type=radio], input[type=file]")) continue;
    items.push({ element, text: element.ariaLabel ?? element.textContent ?? element.tagName, box, control: true });
    const covering = element.matches("canvas") ? null : cover(element, box);
    if (covering) found.push(`covered: ${name(element, element.ariaLabel ?? element.textContent)} by ${name(covering, covering.textContent)}`);
    if (rect.right > wide + SLACK && !scrolls(element)) found.push(`outside: ${name(element, element.ariaLabel ?? element.textContent)}`);
  }

  const seen = new Set();
  items.forEach((one, i) => {
    for (const other of items.slice(i + 1)) {
      const [a, b] = [one.box, other.box];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across <= SLACK || down <= SLACK || one.turned && other.turned) continue;
      if (related(one.element, other.element) || layer(one.element) !== layer(other.element)) continue;
      if (one.control && other.control && (one.element.matches("canvas") && other.element.matches("canvas"))) continue;
      const said = `overlap: ${name(one.element, one.text)} and ${name(other.element, other.text)}`;
      if (!seen.has(said)) found.push(said);
      seen.add(said);
    }
  });
  return [...new Set(found)];
})()
