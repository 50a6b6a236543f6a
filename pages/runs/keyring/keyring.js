// Keeps the tokens of this browser's own runs where they outlive a reload: in its local storage, and in no link.
// Beside them stands the name under which the server holds what the visitor brought (pairs, a tokenizer).

const PLACE = "headlight-runs";
const BROUGHT = "headlight-brought";
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
    return localStorage.getItem(BROUGHT) ?? "";
  } catch {
    return "";
  }
}

// What is found runs the page again: the first picture comes before that.
function afterFirstPicture(tell) {
  if (!document.querySelector(".headlight-player") || document.querySelector(".live-figure[data-step]")) return tell();
  const once = () => {
    clearTimeout(late);
    window.removeEventListener("headlight-drawn", once);
    tell();
  };
  const late = setTimeout(once, 3000);
  window.addEventListener("headlight-drawn", once);
}

export default function keyring({ data: [runs, brought, told], setTriggerValue }) {
  const own = kept();
  const name = keptName();
  const unknown = Object.entries(own).filter(([id]) => !runs.some(([known]) => known === id));
  for (const [id, token] of runs) own[id] ??= { token, at: Date.now() };
  const newest = Object.entries(own).sort(([, a], [, b]) => b.at - a.at).slice(0, MOST);
  try {
    localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(newest)));
    if (brought) localStorage.setItem(BROUGHT, brought);
  } catch {
    // full or forbidden: the session knows its tokens, and a reload only watches
  }
  // A server that has been started again has not been told, whatever this page has told the one before.
  if ((unknown.length || (name && !brought)) && !told) {
    const tell = () => setTriggerValue("found", [unknown.map(([id, { token, at }]) => [id, token, at]), name]);
    afterFirstPicture(tell);
  }
}
