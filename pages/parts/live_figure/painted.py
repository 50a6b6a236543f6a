"""Being told by the browser that it has painted the page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

_component = st.components.v2.component(
    "painted",
    js="""const told = new WeakSet();
export default ({ parentElement, setTriggerValue }) => {
if (told.has(parentElement)) return;
told.add(parentElement);
requestAnimationFrame(() => setTimeout(() => setTriggerValue("painted", true)));
};
""",
)


def once_painted(*, key: str, then: Callable[[], object]) -> None:
    """Call this as soon as what stands before it on the page can be seen."""
    _component(key=key, height="content", on_painted_change=then)
