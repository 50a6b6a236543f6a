// How a component deals with its Streamlit page and the page's address.

const LEAVING = 15000; // ms that leaving a page may take: long on a server that was just started
const SOON = 100; // ms between two checks of a state of Streamlit
const streamlit = () => document.querySelector("[data-testid=stApp]")?.dataset ?? {}; // its states, as it writes them
let left = -Infinity; // time of the press, or step in the history, that leads to another page
let search = ""; // query of the address that was left

// Note that a press leads to another page.
export function leave() {
  [left, search] = [performance.now(), location.search];
}

// Note that the press failed and the page stays.
export function stay() {
  left = -Infinity;
}

const SENT = 20; // ms within which Streamlit sends a queued message
let again = false; // whether this click on a link is the repeated one

// Streamlit sends messages with a delay, but opens a page at once. A late message of the page that is being left would
// undo the change of page, or leave the new page empty. So a click on a link waits until messages are sent.
document.addEventListener("click", (event) => {
  if (event.target.closest?.(".st-key-race_start button")) leave();
  const link = event.target.closest?.("a[href]");
  if (again || !link || link.target === "_blank" || link.origin !== location.origin || link.pathname === location.pathname) return;
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  leave();
  setTimeout(() => {
    again = true;
    const drawn = link.isConnected ? link : [...document.links].find((one) => one.href === link.href); // React may have replaced it
    (drawn ?? link).click();
    again = false;
  }, SENT);
}, true);

// Without a connection Streamlit loses a press. So the last click waits, as the status line of the player says, and is
// repeated once the connection is back; a shortcut has no effect.
const SENDING = ".stButton, .stDownloadButton, .stButtonGroup, .stCheckbox, .stRadio, .stFileUploader, .stPageLink, .st-key-story_leave, a[href]:not([target=_blank])";
const SHORTCUTS = ["s", "p"]; // of Start and Pause
const SETTLED = 500; // ms after which a connection that the server has closed meanwhile is known to be closed
let waiting = null;
for (const kind of ["click", "keydown"]) {
  window.addEventListener(kind, (event) => {
    const { target, key } = event;
    const typing = target.matches?.("input, textarea") && target.type !== "range";
    const sends = kind === "click" ? target.closest?.(SENDING) : SHORTCUTS.includes(key?.toLowerCase()) && !typing;
    if (!sends || !document.querySelector(".headlight-player[data-lost]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (kind === "click") waiting = target.closest("button, a, label");
  }, true);
}
window.addEventListener("headlight-connected", () => setTimeout(repeat, SETTLED));

// Repeat the press that waits, once Streamlit, whose connection is another one, can send it.
function repeat() {
  if (!waiting || document.querySelector(".headlight-player[data-lost]")) return;
  if (streamlit().testConnectionState !== "CONNECTED") setTimeout(repeat, SOON);
  else whenRun(() => {
    const [press, same] = [waiting, [...document.links].find(({ href }) => href === waiting?.href)];
    waiting = null;
    (press?.isConnected ? press : same)?.click();
  });
}

let shown = location.pathname;
window.addEventListener("popstate", () => {
  if (location.pathname !== shown) left = performance.now();
  shown = location.pathname;
});

// Whether the page of a component is being left. since: when the component was mounted. Streamlit runs
// the page that sent the last message: a message after the click on a link would undo the click.
export const leaving = (since) => since < left && performance.now() - left < LEAVING;

// A message that arrives just as Streamlit ends a script run makes Streamlit miss the end, and a newly opened page may
// stay empty. So messages that are not caused by a press wait until the script run has ended.
export function whenRun(does) {
  if (streamlit().testScriptState === "running") setTimeout(() => whenRun(does), SOON);
  else does();
}

const CROWD = 500; // ms over which the requests of many viewers are spread

// Call `does`, which requests a rerun of the page; with more than a few viewers, not for all at once.
export function spread(viewers, does) {
  setTimeout(() => whenRun(does), viewers > 4 ? Math.random() * CROWD : 0);
}

const AGAIN = 5000; // least ms between two requests for a ticket
const PATIENT = 15000; // ms that a new ticket from Python may take on a busy machine
const MINUTE = 60000; // minimum age in ms of a page that is reloaded

// Handles refused tickets. asks: requests new tickets from Python; status: returns a promise of the HTTP
// status for a ticket.
export class Refusals {
  constructor(asks, status) {
    Object.assign(this, { asks, status, asked: -Infinity });
  }

  async refused() {
    if (performance.now() - this.asked < AGAIN) return;
    this.asked = performance.now();
    this.asks();
    if (await this.status() !== 403) this.since = undefined;
    // A restarted server does not know this page, and Streamlit sends it nothing before a click.
    else if (performance.now() - (this.since ??= performance.now()) > PATIENT && performance.now() > MINUTE) location.reload();
  }

  // Note that a new ticket has arrived.
  renewed() {
    this.since = undefined;
  }
}

// The query of the page that was left last; returned only once.
export function searchBefore() {
  const before = search;
  search = "";
  return before;
}

// Call `done` once the element is removed. Streamlit's unmounting does not show this: Streamlit may unmount a
// component when a newer message overtakes, and may mount one whose element is already removed.
export function whenGone(root, done) {
  const looks = setInterval(() => {
    if (root.isConnected) return;
    clearInterval(looks);
    done();
  }, 1000);
}

// Streamlit adds an entry to the browser's history for every parameter that a page writes into its address. Here only
// a change of page, opening or leaving a story, and a chosen step or run add an entry. Other changes replace the current
// entry, or are dropped if they come from a page that is being left or opened.
const TOGETHER = 1000; // ms within which several choices are one entry
const push = (...entry) => {
  History.prototype.pushState.apply(history, entry);
  shown = location.pathname;
};
let pushed = -Infinity;

history.pushState = (state, unused, address) => {
  const [before, after] = [new URL(location.href), new URL(address, location.href)];
  const [had, has] = [before.searchParams, after.searchParams];
  if (before.pathname === after.pathname) {
    // From the list of stories to a story, or back. Other changes come from a page that is being opened.
    if (had.has("story") !== has.has("story")) {
      if (has.has("story") || !has.size) push(state, unused, address);
      return;
    }
    // Pages never drop the word, or else the run, from their address: such a change comes from a page that is being
    // left or was left.
    if (had.has("word") ? !has.has("word") : had.has("run") && !has.has("run")) return;
    const other = had.get("step") !== has.get("step") || (had.has("run") && had.get("run") !== has.get("run"));
    // Without a word the page has not been drawn yet.
    const chosen = other && had.has("word") && performance.now() - pushed > TOGETHER;
    if (!chosen) return history.replaceState(state, unused, address);
    pushed = performance.now();
  }
  push(state, unused, address);
};

// Streamlit gives the drop zone of its uploader the role `presentation` and a label, which contradict each other.
const uploaders = document.getElementsByClassName("stFileUploader");
let looking = 0;
new MutationObserver(() => {
  looking ||= setTimeout(() => {
    looking = 0;
    for (const one of uploaders) one.querySelector("[role=presentation][aria-label]")?.setAttribute("role", "group");
  }, 200);
}).observe(document.documentElement, { childList: true, subtree: true });
