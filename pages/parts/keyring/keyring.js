// Keeps the tokens of this browser's own runs where they outlive a reload: in its local storage, and in no link.

const PLACE = "headlight-runs";
const MOST = 50; // the newest
const asked = new WeakSet(); // where the server has been told already

function kept() {
  try {
    return JSON.parse(localStorage.getItem(PLACE)) ?? {};
  } catch {
    return {}; // private browsing, or something else has written there
  }
}

export default function keyring({ data, parentElement, setTriggerValue }) {
  const own = kept();
  const unknown = Object.entries(own).filter(([id]) => !data.some(([known]) => known === id));
  for (const [id, token] of data) own[id] ??= { token, at: Date.now() };
  const newest = Object.entries(own).sort(([, a], [, b]) => b.at - a.at).slice(0, MOST);
  try {
    localStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(newest)));
  } catch {
    // full or forbidden: the session knows its tokens, and a reload only watches
  }
  if (unknown.length && !asked.has(parentElement)) {
    asked.add(parentElement);
    setTriggerValue("found", unknown.map(([id, { token, at }]) => [id, token, at]));
  }
}
