// What a component has to know of the Streamlit page that it stands on, and its address.

const LEAVING = 15000; // ms that a page may take to be left: a server that was just started takes many
const SOON = 100; // ms after which a page that runs is looked at again
let left = -Infinity; // when something was pressed that leads to another page
let search = ""; // of the address from which it led away

// Something was pressed whose answer is another page.
export function leave() {
  [left, search] = [performance.now(), location.search];
}

// It could not be done: the page stays.
export function stay() {
  left = -Infinity;
}

const SENT = 20; // ms within which Streamlit sends a message that it was given
let again = false; // whether this click on a link is the one that is done

// Streamlit sends a message a moment after it was given, but opens a page at once. A message of the page that is being
// left would come second and undo that, or leave the other page empty: the link waits for it.
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
    link.click();
    again = false;
  }, SENT);
}, true);

let shown = location.pathname;
window.addEventListener("popstate", () => {
  if (location.pathname !== shown) left = performance.now();
  shown = location.pathname;
});

// Streamlit runs the page from which it has heard last: a message that came after the click on a link would undo it.
// `since` is when the component was mounted.
export const leaving = (since) => since < left && performance.now() - left < LEAVING;

// A message that comes just as Streamlit ends a run of the page makes it lose that end, and a page that was come to may
// stay empty. A message without a press waits until the page has run.
export function whenRun(does) {
  const { testScriptState: state } = document.querySelector("[data-testid=stApp]")?.dataset ?? {};
  if (state === "running") setTimeout(() => whenRun(does), SOON);
  else does();
}

const CROWD = 500; // ms over which a crowd is spread

// A page is to be drawn anew: not by all viewers at once.
export function spread(viewers, does) {
  setTimeout(() => whenRun(does), viewers > 4 ? Math.random() * CROWD : 0);
}

const AGAIN = 5000; // ms between two questions for a ticket
const PATIENT = 15000; // ms until Python has another ticket, on a busy machine
const MINUTE = 60000; // ms that a page stands at least before it is loaded again

// What to do about tickets that are refused. asks: asks Python for others; status: promises what a ticket is answered.
export class Refusals {
  constructor(asks, status) {
    Object.assign(this, { asks, status, asked: -Infinity });
  }

  async refused() {
    if (performance.now() - this.asked < AGAIN) return;
    this.asked = performance.now();
    this.asks();
    if (await this.status() !== 403) this.since = undefined;
    // A server that has been started again knows nothing of this page, and Streamlit tells it nothing before a click.
    else if (performance.now() - (this.since ??= performance.now()) > PATIENT && performance.now() > MINUTE) location.reload();
  }

  // There is another ticket.
  renewed() {
    this.since = undefined;
  }
}

// What the address named on the page that was left last; told once.
export function searchBefore() {
  const before = search;
  search = "";
  return before;
}

// Streamlit unmounts a component too when a newer message overtakes, and may mount one whose element it has taken away.
export function whenGone(root, done) {
  const looks = setInterval(() => {
    if (root.isConnected) return;
    clearInterval(looks);
    done();
  }, 1000);
}

// Streamlit makes an entry of the browser's history of every parameter that a page writes into its address. Here one is
// a page, or a step or run that was chosen; anything else is written into the entry that is there.
const TOGETHER = 1000; // ms within which what is chosen is one entry
const push = (...entry) => {
  History.prototype.pushState.apply(history, entry);
  shown = location.pathname;
};
let pushed = -Infinity;

history.pushState = (state, unused, address) => {
  const [before, after] = [new URL(location.href), new URL(address, location.href)];
  const [had, has] = [before.searchParams, after.searchParams];
  if (before.pathname === after.pathname) {
    // From the list of stories to one, or back; what a page that is come to writes is not of a story.
    if (had.has("story") !== has.has("story")) {
      if (has.has("story") || !has.size) push(state, unused, address);
      return;
    }
    // A page that names a word always does: this is of one that is being left, or was.
    if (had.has("word") ? !has.has("word") : had.has("run") && !has.has("run")) return;
    const other = had.get("step") !== has.get("step") || (had.has("run") && had.get("run") !== has.get("run"));
    // Without a word the page has yet to come.
    const chosen = other && had.has("word") && performance.now() - pushed > TOGETHER;
    if (!chosen) return history.replaceState(state, unused, address);
    pushed = performance.now();
  }
  push(state, unused, address);
};

// Streamlit gives the zone of its uploader the role of mere decoration, and a label, which contradict each other.
const uploaders = document.getElementsByClassName("stFileUploader");
let looking = 0;
new MutationObserver(() => {
  looking ||= setTimeout(() => {
    looking = 0;
    for (const one of uploaders) one.querySelector("[role=presentation][aria-label]")?.setAttribute("role", "group");
  }, 200);
}).observe(document.documentElement, { childList: true, subtree: true });
