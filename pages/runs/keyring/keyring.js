// Stores the tokens of this browser's own runs in local storage, so that they outlive a reload; in no link.
// Also stores the name under which the server holds what the visitor uploaded (pairs, a tokenizer).

const PLACE = "headlight-runs";
const OWN_DATA = "headlight-brought";
const DRAFT = "headlight-draft"; // token of the draft: a reload may come before the started run is stored
const MAX_RUNS = 500; // the newest

function kept() {
  try {
    return JSON.parse(localStorage.getItem(PLACE)) ?? {};
  } catch {
    return {}; // private browsing, or something else has written there
  }
}

function keptName() {
  try {
    return localStorage.getItem(OWN_DATA) ?? "";
  } catch {
    return "";
  }
}

// [id, token] of the draft in this tab before its reload.
const before = (() => {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT));
  } catch {
    return null;
  }
})();

// Sending the stored tokens reruns the page: let the first picture appear before.
function afterFirstPicture(tell) {
  if (!document.querySelector(".headlight-player") || document.querySelector(".live-figure[data-step], [data-story=notes]")) return tell();
  const once = () => {
    clearTimeout(late);
    window.removeEventListener("headlight-drawn", once);
    tell();
  };
  const late = setTimeout(once, 3000);
  window.addEventListener("headlight-drawn", once);
}

export default function keyring({ data: [runs, ownData, told, draft], setTriggerValue }) {
  const own = kept();
  const name = keptName();
  const unknown = Object.entries(own).filter(([id]) => !runs.some(([known]) => known === id));
  for (const [id, token] of runs) own[id] ??= { token, at: Date.now() };
  const newest = Object.entries(own).sort(([, a], [, b]) => b.at - a.at).slice(0, MAX_RUNS);
  try {
    localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(newest)));
    if (draft) sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    if (ownData) localStorage.setItem(OWN_DATA, ownData);
  } catch {
    // full or forbidden: the session knows its tokens; after a reload, the visitor can only watch
  }
  const draftBefore = before && !own[before[0]] ? before : null; // a run that is stored is in the list, and not opened again
  // `told` comes from the server: after a restart it is false, and the tokens are sent again.
  if ((unknown.length || draftBefore || (name && !ownData)) && !told) {
    const tell = () => setTriggerValue("found", [unknown.map(([id, { token, at }]) => [id, token, at]), name, draftBefore]);
    afterFirstPicture(tell);
  }
}
