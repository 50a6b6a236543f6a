// Keeps the tokens of this browser's own runs where they outlive a reload: in its local storage, and in no link.
// Beside them stands the name under which the server holds what the visitor uploaded (pairs, a tokenizer).

const PLACE = "headlight-runs";
const OWN_DATA = "headlight-brought";
const DRAFT = "headlight-draft"; // of the model that Start would train: a reload may overtake what comes after Start
const MOST = 50; // the newest

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

// [id, token], of this tab before it was loaded anew.
const before = (() => {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT));
  } catch {
    return null;
  }
})();

// What is found runs the page again: the first picture comes before that.
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
  const newest = Object.entries(own).sort(([, a], [, b]) => b.at - a.at).slice(0, MOST);
  try {
    localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(newest)));
    if (draft) sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    if (ownData) localStorage.setItem(OWN_DATA, ownData);
  } catch {
    // full or forbidden: the session knows its tokens, and a reload only watches
  }
  // A server that has been started again has not been told, whatever this page has told the one before.
  if ((unknown.length || (before && !own[before[0]]) || (name && !ownData)) && !told) {
    const tell = () => setTriggerValue("found", [unknown.map(([id, { token, at }]) => [id, token, at]), name, before]);
    afterFirstPicture(tell);
  }
}
