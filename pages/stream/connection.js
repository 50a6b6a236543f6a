// A script in the first page, before any WebSocket: says where none opens and, on pages without a player, that it was lost.
{
  const TICK = 250, OPENS = 3500, LOST = 2500, STARTS = 20000, PAUSE = 1000; // ms; the last one between two questions to the server
  const BLOCKED = `<b>This page cannot reach its server.</b> The page itself was loaded, but no WebSocket opens between the two.
    Some proxies refuse WebSockets.<ul><li>If you run the server, let the proxy pass them: docs/serving.md has a configuration of nginx.</li>
    <li>Without WebSockets, a run can be a page of its own that plays in any browser: <i>Take it away</i> › <i>A page with its own slider</i>,
    or <code>watch.html("run.html")</code> in your own training loop.</li>
    <li>In a notebook, <code>watch</code> as the last line of a cell shows what is recorded, without a server.</li></ul>`;
  const GONE = "No connection to the server. Training goes on there; buttons and uploads work once it is back.";
  const STYLE = `#headlight-connection { position: fixed; z-index: 999993; inset: 4.5rem 1rem auto; max-width: 44rem; margin: auto; padding: 1rem;
    border: 1px solid; border-radius: .4rem; font: 1rem/1.5 sans-serif; color-scheme: light dark; color: light-dark(#1c1830, #f2effa); background: light-dark(#fff, #12101c); }
    #headlight-connection ul { margin: .5rem 0 0; padding-left: 1.4rem; }
    #headlight-connection.gone { inset: 2px 3.5rem auto var(--hl-notices, 1rem); margin: 0; padding: 4px 8px; font-size: .8rem; color: light-dark(#b8324a, #f08a98); }
    @media (max-width: 1150px) { #headlight-connection.gone { inset: auto 8px 8px; } }`;
  const says = Object.assign(document.createElement("div"), { id: "headlight-connection", role: "status", hidden: true });
  let known = false, drawn = false, since = 0; // whether there was a connection, and a whole page; ms since its last sign
  // A lost network closes no connection: without a player, which asks for itself, only an answer is a sign.
  const ask = () => fetch("_stcore/health", { cache: "no-store", signal: AbortSignal.timeout(LOST) }).then(() => { since = 0; }, () => {});
  setInterval(() => {
    const { testConnectionState: state, testScriptState: script } = document.querySelector("[data-testid=stApp]")?.dataset ?? {};
    if (!state) return; // Streamlit is still loading
    document.documentElement.toggleAttribute("data-lost", Boolean(document.querySelector(".headlight-player[data-lost]"))); // for the style of buttons
    const connected = state === "CONNECTED" && navigator.onLine, alone = !document.querySelector(".headlight-player");
    known ||= connected;
    drawn ||= connected && script === "notRunning"; // before that, a server that has just started may be loading torch
    since = connected && (!alone || document.hidden) ? 0 : since + TICK;
    if (connected && since && since % PAUSE === 0) ask();
    says.hidden = since < (drawn ? LOST : known ? STARTS : OPENS) || (known && !alone);
    says.classList.toggle("gone", known);
    const said = known ? GONE : BLOCKED;
    if (!says.hidden && says.said !== said) says.innerHTML = says.said = said;
  }, TICK);
  addEventListener("DOMContentLoaded", () => {
    document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
    document.body.append(says);
    // Streamlit's dialog would cover the page, on which what was recorded can still be replayed.
    new MutationObserver(() => {
      const dialog = [...document.querySelectorAll("[role=dialog]")].find((one) => one.querySelector("h2")?.textContent === "Connection error");
      dialog?.querySelector("button[aria-label=Close]").click();
    }).observe(document.body, { childList: true });
  });
}
