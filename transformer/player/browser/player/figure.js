// One picture of a page, drawn from the data that Python sends.

import { Cells } from "../shared/cells.js";
import { whenGone } from "../shared/component.js";
import { Drawing, failed } from "../shared/drawing.js";

const figures = new WeakMap(); // host -> its drawing

function unpacked({ b, shape }) {
  const bytes = Uint8Array.from(atob(b), (c) => c.charCodeAt(0)).buffer;
  const values = Array.from(new Float32Array(bytes), (v) => (Number.isNaN(v) ? null : v));
  if (!shape) return values;
  return Array.from({ length: shape[0] }, (_, i) => values.slice(i * shape[1], (i + 1) * shape[1]));
}

export default function figure({ data, parentElement, setTriggerValue }, base) {
  const host = parentElement.querySelector(".live-figure");
  host.style.height = data.height;
  let drawing = figures.get(host);
  if (drawing) drawing.measured = null; // also called again when the theme changes
  else {
    figures.set(host, (drawing = new Drawing(host, { plotly: `${base}/files/${data.plotly}` })));
    drawing.cells = new Cells(drawing);
    whenGone(host, () => {
      drawing.close();
      figures.delete(host);
    });
  }
  drawing.clicked = data.clickable ? (trace, point) => setTriggerValue("clicked", { trace, point }) : null;
  const arrays = Object.fromEntries(Object.entries(data.arrays).map(([name, packed]) => [name, unpacked(packed)]));
  const { spec, layout, step, hatched, fileName } = data;
  drawing.next = { spec, arrays, layout, step, hatched, fileName };
  drawing.busy ??= (async () => {
    try {
      for (let picture; (picture = drawing.next);) {
        drawing.next = null;
        await drawing.show(picture);
        drawing.cells.drawn();
      }
    } catch (error) {
      if (host.isConnected) failed(host, error);
    } finally {
      drawing.busy = null;
    }
  })();
}
