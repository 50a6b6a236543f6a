"""The few CSS rules for which Streamlit's theme has no setting."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.stream.files import styles
from transformer.figures import colors

_LIGHT, _DARK = (st.get_option(f"theme.{kind}.backgroundColor") for kind in ("light", "dark"))
_CSS = f"""<style>
:root {{
  --hl-paper: light-dark({_LIGHT}, {_DARK});
  --hl-highlight: {colors.HIGHLIGHT}; --hl-padding: {colors.PADDING};
}}
{styles("look")}
{Path(__file__).with_name("style.css").read_text(encoding="utf-8")}
</style>"""


def style() -> None:
    """Add the CSS rules to the page."""
    st.html(_CSS)
