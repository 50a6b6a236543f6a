"""The few CSS rules for which Streamlit's theme has no setting."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.stream.files import styles
from transformer.figures import colors


def _of_theme(name: str) -> str:
    """A colour of both themes as a value of CSS."""
    return f"light-dark({st.get_option(f'theme.light.{name}')}, {st.get_option(f'theme.dark.{name}')})"


_CSS = f"""<style>
:root {{
  --hl-paper: {_of_theme("backgroundColor")}; --hl-accent: {_of_theme("primaryColor")};
  --hl-highlight: {colors.HIGHLIGHT}; --hl-padding: {colors.PADDING};
}}
{styles("shared/look")}
{Path(__file__).with_name("style.css").read_text(encoding="utf-8")}
</style>"""


def style() -> None:
    """Add the CSS rules to the page."""
    st.html(_CSS)
