// What a component has to know of the Streamlit page that it stands on.

const LEAVING = 5000; // ms that a page may take to be left
let left = -Infinity; // when a link to another page was pressed

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || link.target === "_blank" || link.origin !== location.origin || link.pathname === location.pathname) return;
  if (!(event.button || event.ctrlKey || event.metaKey || event.shiftKey)) left = performance.now();
}, true);

// Streamlit runs the page from which it has heard last: a message that came after the click on a link would undo it.
// `since` is when the component was mounted.
export const leaving = (since) => since < left && performance.now() - left < LEAVING;

// Streamlit unmounts a component too when a newer message overtakes, and may mount one whose element it has taken away.
export function whenGone(root, done) {
  const looks = setInterval(() => {
    if (root.isConnected) return;
    clearInterval(looks);
    done();
  }, 1000);
}
