// The lines of the picture of the model.

// Draw lines between the tables of open boxes, and from the encoder's output to every cross-attention.
export function drawLines(svg, lanes, parts) {
  const within = (host, frame) => {
    const [{ x, y, width, height }, origin] = [host.getBoundingClientRect(), frame.getBoundingClientRect()];
    return { x: x - origin.x, y: y - origin.y, width, height };
  };
  const paths = [];
  const memory = parts.get("encoder.output");
  for (const { box, host, tables, lines } of parts.values()) {
    if (box.keySide && box.keySide !== box.side && memory) {
      const [from, to] = [within(memory.host, lanes), within(host, lanes)];
      const [x1, y1, x2, y2] = [from.x + from.width / 2, from.y + from.height, to.x + to.width / 2, to.y];
      const high = Math.max(24, (y2 - y1) / 2);
      paths.push(`<path class="memory" d="M${x1} ${y1}C${x1} ${y1 + high} ${x2} ${y2 - high} ${x2} ${y2}"/>`);
    }
    if (!lines) continue;
    const [at, inner] = [Object.fromEntries(tables.map(({ table, canvas }) => [table.key, within(canvas, lines)])), []];
    for (const { table } of tables) {
      for (const source of table.madeOf.filter((key) => at[key])) {
        const [from, to] = [at[source], at[table.key]];
        if (Math.abs(from.x - to.x) < from.width / 2) {
          const down = from.y < to.y;
          const [x, y1, y2] = [from.x + Math.min(from.width, to.width) / 2, down ? from.y + from.height : from.y, down ? to.y : to.y + to.height];
          inner.push(`<path d="M${x} ${y1}L${x} ${y2}"/>`);
        } else {
          const right = from.x < to.x;
          const [x1, x2] = right ? [from.x + from.width, to.x] : [from.x, to.x + to.width];
          const [y1, y2, bend] = [from.y + from.height / 2, to.y + to.height / 2, (x2 - x1) / 2];
          inner.push(`<path d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}"/>`);
        }
      }
    }
    lines.innerHTML = inner.join("");
  }
  svg.innerHTML = paths.join("");
}
