// The player as a component of a page: the selection is sent to Python once it has stopped changing.

import { Refusals, leave, leaving, spread, stay, whenGone, whenRun } from "../shared/component.js";
import { Player } from "./player.js";
import { raceOf } from "../race/seeds.js";
import { Live } from "./sources.js";
import { mountedStory } from "../story/story.js";

const mounted = new WeakMap(); // root element -> state of its player
const PLAYED = "headlight-played";
const GREETS = 6000; // ms for which the first screen shows what has been learned, before the film plays
const ASKED = ["word", "kind", "pinned", "step", "outline", "follow"];

// Messages are numbered, and Python returns the number of the newest message that it has received. If the
// selection from Python differs from that message and from the selection before, Python has changed it.
function tell(state, at) {
  state.number += 1;
  state.told.set(state.number, at);
  if (state.told.size > 50) state.told.delete(state.told.keys().next().value);
  state.send("chosen", { ...at, number: state.number });
}

// Whether to play the film of a first visit: once per visit, and not if reduced motion is preferred.
function playsNow(data) {
  if (!data.plays || matchMedia("(prefers-reduced-motion: reduce)").matches) return false;
  try {
    if (sessionStorage.getItem(PLAYED)) return false;
    sessionStorage.setItem(PLAYED, "1");
  } catch {
    return false; // storage is forbidden: the film would be played again and again
  }
  return true;
}

function made(root, data, base) {
  const state = { data, changedTo: data.seen, number: data.heard, boxes: data.boxHeard, told: new Map(), since: performance.now() };
  state.refusals = new Refusals(() => state.trigger("refused", true), () => source.status());
  const refused = () => state.refusals.refused();
  const source = new Live(`${base}/stream/${data.run}`, data.ticket, refused);
  const { fileName, picture, race } = data;
  const plays = playsNow(data);
  const options = { plotly: `${base}/files/${data.plotly}`, first: data.first, fileName, picture, tell: (at) => tell(state, at) };
  if (race) {
    const others = race.runs.map(({ run, ticket }) => new Live(`${base}/stream/${run}`, ticket, refused));
    const opensRun = (side) => {
      state.trigger("cell", { run: [data.run, ...race.runs.map(({ run }) => run)][side] });
      leave();
    };
    state.player = raceOf(root, [source, ...others], race, { ...options, opensRun });
  } else state.player = new Player(root, source, options);
  const { player } = state;
  player.wanted = data.first.word;
  player.inside = (box, head) => {
    if (player.source.lost) return;
    state.trigger("cell", { box, head, how: {} });
    leave();
  };
  if (data.opens) player.cell = (point) => state.trigger("cell", { at: player.at, head: player.head(), point });
  // Buttons belong to the page: if the state of the run has changed since they were drawn, the page is rerun,
  // but not between the first recorded step and the first picture.
  player.noticed = (now) => {
    if ((player.begun || now.newest === null) && now.seen !== state.data.seen && now.seen !== state.changedTo) {
      state.changedTo = now.seen;
      spread(now.viewers, () => state.trigger("changed", now.seen));
    }
    follow(state, now);
  };
  player.first = () => {
    window.dispatchEvent(new Event("headlight-drawn"));
    if (player.now) player.noticed(player.now);
    if (plays) playToEnd(player);
  };
  if (data.picture) player.kept = (cell) => {
    state.opened = cell && JSON.stringify({ box: cell.box, head: cell.head, table: cell.table ?? null, row: cell.row ?? 0, column: cell.column ?? 0 });
    state.boxes += 1;
    state.trigger("cell", { ...cell, how: player.model.how, number: state.boxes });
  };
  else if (data.parts && !race) player.film = (step) => new Promise((done) => {
    player.draw();
    state.answered = { step, done };
    tell(state, { ...player.at, at: step, playing: true });
    setTimeout(done, 3000);
  });
  return state;
}

// Show what has been learned, then play from the first step to the newest and return to LIVE, unless the visitor has
// chosen something.
async function playToEnd(player) {
  const before = JSON.stringify(player.at);
  await new Promise((done) => setTimeout(done, GREETS));
  if (player.closed || player.playing || JSON.stringify(player.at) !== before) return;
  await player.play();
  if (player.at.step === player.index.steps.at(-1)) player.choose({ step: null });
}

// At LIVE on a page whose pictures Python makes, report newer steps to Python from time to time.
function follow(state, now) {
  const { player, data } = state;
  if (!data.parts || data.race || player.at.step !== null || now.newest === null || now.newest === state.data.answers) return;
  if (state.waiting) return;
  state.waiting = setTimeout(() => {
    state.waiting = 0;
    whenRun(() => {
      if (player.at.step === null && !player.playing && !player.closed) tell(state, { ...player.at, at: player.now.newest });
    });
  }, 1000 * now.every);
}

export default function mountedPlayer(view, base) {
  const { data, parentElement, setStateValue, setTriggerValue } = view;
  if (data.story) return mountedStory(view, base);
  const root = parentElement.querySelector(".headlight-player");
  if (data.parts) root.dataset.parts = data.parts;
  let state = mounted.get(root);
  const runsOf = ({ run, race }) => [run, ...(race?.runs.map((one) => one.run) ?? [])].join();
  if (state && runsOf(state.data) !== runsOf(data)) {
    state.player.close();
    state = null;
  }
  if (!mounted.has(root)) whenGone(root, () => {
    const { player: last, waiting } = mounted.get(root);
    last.close();
    clearTimeout(waiting);
    mounted.delete(root);
  });
  if (!state) mounted.set(root, (state = made(root, data, base)));
  // Without a connection no trigger is sent to Python but the request for a new ticket, which a restarted server needs.
  state.trigger = (...what) => leaving(state.since) || (what[0] !== "refused" && state.player.source.lost) || setTriggerValue(...what);
  state.send = (...what) => leaving(state.since) || setStateValue(...what);
  const { player } = state;
  if (data.stays) stay();
  const before = state.data;
  state.data = data;
  state.changedTo = data.seen;
  const [source, ...others] = player.source.sources ?? [player.source];
  if (source.ticket !== data.ticket) state.refusals.renewed();
  source.ticket = data.ticket;
  others.forEach((other, i) => { other.ticket = data.race.runs[i].ticket; });
  if (data.race) player.source.race = data.race;
  player.find(".st-key-follow").hidden = !data.mayFollow; // the owner's token may come after the first pass of the page
  Object.assign(player, { over: data.over, greets: data.greets, more: data.more });
  if (JSON.stringify(player.ghost) !== JSON.stringify(data.ghost)) {
    player.ghost = data.ghost ?? undefined;
    player.drawnCurves = null;
  }
  // Changes of the selection by Python, such as a word that was typed.
  const change = {};
  const heard = state.told.get(data.heard) ?? before.first;
  for (const name of ASKED) {
    const [asked, had, told] = [data.first, before.first, heard].map((one) => JSON.stringify(one[name] ?? null));
    if (asked !== had && asked !== told) change[name] = data.first[name];
  }
  if (Object.keys(change).length) {
    if (change.word) player.wanted = change.word;
    player.told = JSON.stringify({ ...player.at, ...change });
    player.choose(change);
  }
  const answersNewest = data.boxHeard >= state.boxes; // else Python does not know yet which box is open
  if (player.model && data.opened && answersNewest && JSON.stringify(data.opened) !== state.opened) {
    state.opened = JSON.stringify(data.opened);
    player.model.opened(data.opened);
  }
  if (state.answered && data.answers !== undefined && data.answers === state.answered.step) state.answered.done();
  const dark = getComputedStyle(root).getPropertyValue("--st-background-color");
  if (state.dark !== undefined && state.dark !== dark) player.dress();
  state.dark = dark;
  player.draw();
}
