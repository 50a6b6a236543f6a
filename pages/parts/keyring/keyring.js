// Keeps the tokens of this browser's own runs where they outlive a reload: in its local storage, and in no link.

const PLACE = "headlight-runs";
const MOST = 50; // the newest

function kept() {
  try {
    return JSON.parse(localStorage.getItem(PLACE)) ?? {};
  } catch {
    return {}; // private browsing, or something else has written there
  }
}

export default function keyring({ data: [runs, told], setTriggerValue }) {
  const own = kept();
  const unknown = Object.entries(own).filter(([id]) => !runs.some(([known]) => known === id));
  for (const [id, token] of runs) own[id] ??= { token, at: Date.now() };
  const newest = Object.entries(own).sort(([, a], [, b]) => b.at - a.at).slice(0, MOST);
  try {
    localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(newest)));
  } catch {
    // full or forbidden: the session knows its tokens, and a reload only watches
  }
  // A server that has been started again has not been told, whatever this page has told the one before.
  if (unknown.length && !told) {
    setTriggerValue("found", unknown.map(([id, { token, at }]) => [id, token, at]));
  }
}
