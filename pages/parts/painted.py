"""Being told by the browser that it has painted the page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

_component = st.components.v2.component(
    "painted",
    js="""const newest = new WeakMap(); // where it stands -> what tells the server, anew with each refresh
export default ({ data: [shows], parentElement, setTriggerValue }) => {
const first = !newest.has(parentElement);
newest.set(parentElement, setTriggerValue);
if (!first) return;
const tell = () => setTimeout(() => newest.get(parentElement)("painted", true), 250);
const idle = window.requestIdleCallback ?? setTimeout; // the rest of the page comes first
const look = () => {
if (document.querySelector(shows)) requestAnimationFrame(() => idle(tell));
else setTimeout(look, 50);
};
look();
};
""",
)


def once_painted(*, key: str, shows: str, then: Callable[[], object]) -> None:
    """Call something once the page shows an element: parts of a page come late and in any order.

    Args:
        shows: what is waited for, as a CSS selector.
    """
    # In a tuple: to tell what a bare string is, Streamlit would load pandas, half a second at the worst time.
    _component(key=key, height="content", data=(shows,), on_painted_change=then)
