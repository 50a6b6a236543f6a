// A film scrubber. The handle follows the run, except while a hand is on it or its wish is on the way.
// Every message is complete; nodes are made once and only changed, so that focus and a drag survive.

const sliders = new WeakMap(); // root element -> what takes its messages
const HELD = 600; // ms after a key
const ANSWER = 1500; // ms to wait for the step that was asked for while others come,
const SILENCE = 5000; // and while nothing comes
const EVERY = 100; // ms between two messages
const PIN = 16; // pixels between two pins
const JUMPS = {
  ArrowLeft: -1, ArrowDown: -1, PageDown: -10, Home: -Infinity,
  ArrowRight: 1, ArrowUp: 1, PageUp: 10, End: Infinity,
};

// Ascending places, PIN apart where there is room, each as near as can be to its own.
function fanned(places, width) {
  const gap = Math.min(PIN, width / Math.max(1, places.length - 1));
  const room = width - gap * (places.length - 1);
  const groups = []; // of pins that touch: where the first would stand, for each
  places.forEach((x, i) => {
    let group = [x - i * gap];
    const mean = (xs) => xs.reduce((a, b) => a + b) / xs.length;
    while (groups.length && mean(groups.at(-1)) > mean(group)) group = [...groups.pop(), ...group];
    groups.push(group.fill(mean(group)));
  });
  return groups.flat().map((x, i) => Math.min(room, Math.max(0, x)) + i * gap);
}

function made(root, data) {
  const [input, bubble, pins] = ["input", ".bubble", ".pins"].map((name) => root.querySelector(name));
  const nodes = new Map(); // step -> pin
  let shown = 0;
  let pressed = false;
  let asked = []; // steps sent and not answered
  let trigger, wish, unsent, toEnd, sentAt, heard;
  let held, sending, waiting; // timers, or 0

  const newest = () => data.steps.at(-1) ?? 0;
  const end = () => Math.max(data.planned, newest(), 1);
  const nearest = (step) =>
    data.steps.reduce((a, b) => (Math.abs(b - step) < Math.abs(a - step) ? b : a));

  function neighbour(jump) {
    const { steps } = data;
    const below = steps.filter((step) => step < shown).length;
    const from = steps[below] === shown || jump < 0 ? below : below - 1;
    return steps[Math.min(steps.length - 1, Math.max(0, from + jump))];
  }

  function show(step) {
    shown = step;
    const { at, live, steps, planned } = data;
    const max = end();
    Object.assign(input, {
      disabled: !steps.length, max, value: step, ariaValueMax: max, ariaValueNow: step,
      ariaValueText: `step ${step} of ${planned}${live ? ", live" : ""}`,
    });
    bubble.textContent = step;
    root.style.setProperty("--at", step / max);
    root.style.setProperty("--newest", newest() / max);
    for (const [place, pin] of nodes) pin.ariaCurrent = place === step;
    Object.assign(root.dataset, { step, at, live, newest: newest(), held: pressed || !!held });
  }

  function follow() {
    if (pressed || held) show(shown);
    else show(asked.length || sending ? wish : data.at);
  }

  function letGo() {
    held = 0;
    follow();
  }

  function giveUp() {
    asked = [];
    follow();
  }

  function send() {
    if (!unsent || !root.isConnected) return;
    unsent = false;
    asked.push(wish);
    trigger("moved", toEnd ? end() : wish); // the server may know a newer one
    sending = setTimeout(() => {
      sending = 0;
      send(); // the last one always
    }, EVERY);
    clearTimeout(waiting);
    waiting = setTimeout(giveUp, SILENCE);
    sentAt = performance.now();
    heard = 0;
  }

  function move(step, exactly) {
    wish = step;
    toEnd = !exactly && step === newest();
    unsent = true;
    if (!sending) send();
    show(step);
  }

  function hold() {
    clearTimeout(held);
    held = setTimeout(letGo, HELD);
  }

  input.onpointerdown = ({ button }) => {
    if (button) return;
    pressed = true;
    show(shown);
    const hand = new AbortController();
    const release = ({ type, buttons }) => {
      if (type === "pointermove" && buttons) return; // else it was let go unseen
      hand.abort();
      pressed = false;
      setTimeout(follow); // after the last input event
    };
    for (const name of ["pointerup", "pointercancel", "pointermove", "blur"]) {
      window.addEventListener(name, release, hand);
    }
  };
  input.oninput = () => {
    const way = Math.sign(input.value - shown);
    const step = nearest(+input.value);
    if (!pressed) hold();
    if (step !== shown) move(step);
    else if (pressed) show(step); // the handle stays on a frame
    else move(neighbour(way)); // a screen reader's "one more" may be less than a frame
  };
  input.onkeydown = (event) => {
    const { key, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    // Streamlit hears no shortcut from an input: a letter is passed on from beside it.
    if (key.length === 1) root.dispatchEvent(new KeyboardEvent("keydown", event));
    const jump = JUMPS[key];
    if (!jump) return;
    event.preventDefault();
    hold();
    move(neighbour(jump));
  };

  function setPins() {
    const { moments } = data;
    const width = pins.clientWidth;
    const places = fanned(moments.map(([step]) => (step / end()) * width), width);
    for (const [step, pin] of nodes) {
      if (!moments.some(([kept]) => kept === step)) nodes.delete(step, pin.remove());
    }
    moments.forEach(([step, text], i) => {
      let pin = nodes.get(step);
      if (!pin) {
        nodes.set(step, (pin = document.createElement("button")));
        pin.textContent = "★";
        pin.dataset.step = step;
        pin.onclick = () => {
          hold();
          move(nearest(step), true);
        };
      }
      pin.ariaLabel = pin.title = `step ${step}: ${text}`;
      pin.style.left = `${places[i]}px`;
      if (pins.children[i] !== pin) pins.insertBefore(pin, pins.children[i]);
    });
  }

  new ResizeObserver(setPins).observe(pins);
  return (message, setTriggerValue) => {
    data = message;
    trigger = setTriggerValue;
    const { at } = data;
    heard += 1; // the first message may have been on its way
    if (heard > 1 && performance.now() > sentAt + ANSWER) asked = [];
    if (toEnd && at >= wish) asked = []; // the newest was asked for, which is another by now
    asked.splice(0, asked.indexOf(at) + 1); // answered, and what was asked before it
    setPins();
    follow();
  };
}

export default function timeSlider({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".time-slider");
  if (!sliders.has(root)) sliders.set(root, made(root, data));
  sliders.get(root)(data, setTriggerValue);
}
