"""The few rules of style that Streamlit's theme has no setting for."""

from __future__ import annotations

import streamlit as st

from transformer.figures import colors

_LIGHT, _DARK = (st.get_option(f"theme.{kind}.backgroundColor") for kind in ("light", "dark"))
_PAPER = f"background: light-dark({_LIGHT}, {_DARK});"
"""The page's own, for what lies over it."""
_CSS = f"""<style>
.stMainBlockContainer {{ padding: 3.9rem 1.25rem 1rem; }}
.stMainBlockContainer [data-testid="stVerticalBlock"] {{ gap: .45rem; }}
[data-testid="stLayoutWrapper"]:has(> .st-key-why) {{ position: fixed; z-index: 999991; top: .55rem;
  right: 9.5rem; width: 30rem; pointer-events: none; }}
.st-key-why p {{ font-size: .8rem; line-height: 1.3; text-align: right; }}
.stSidebar [data-testid="stVerticalBlock"] {{ gap: .3rem; }}
[data-testid="stSidebarHeader"] {{ height: 1.6rem; margin-bottom: 0; }}
.st-key-run_start button {{ padding-left: 1.4rem; padding-right: 1.4rem; }}
.st-key-run_start button p {{ font-size: 1.15rem; font-weight: 700; }}
button[kind^="primary"] :is(p, [data-testid="stIconMaterial"]) {{ color: light-dark({_LIGHT}, {_DARK}); }}
.st-key-controls kbd {{ display: none; }}
[data-testid="stLayoutWrapper"]:has(> :is(.st-key-expected, .st-key-run_changes)):not(:has(p)) {{
  display: none; }}
/* What comes and goes lies over the page, and moves nothing of it. */
[data-testid="stLayoutWrapper"]:has(> .st-key-run_changes) {{ position: fixed; z-index: 999992; top: .3rem;
  right: 9.5rem; width: 30rem; min-height: 3rem; {_PAPER} }}
.st-key-controls {{ position: relative; }}
[data-testid="stLayoutWrapper"]:has(> .st-key-word_problem) {{ position: fixed; z-index: 999993; top: .2rem;
  right: 4rem; width: 36rem; min-height: 3rem; {_PAPER} }}
.st-key-word_problem [data-testid="stAlertContainer"] {{ padding: .3rem .6rem; }}
.st-key-word_problem p {{ font-size: .8rem; line-height: 1.25; }}
.st-key-controls [data-testid="stLayoutWrapper"]:has(> .st-key-expected) {{ position: absolute; z-index: 4;
  top: calc(100% + .45rem); left: 14rem; pointer-events: none; }}
.live-figure:focus-visible {{ outline: 2px solid var(--st-primary-color); outline-offset: 1px; }}
.cell-frame {{ position: absolute; z-index: 3; pointer-events: none; border-radius: 2px;
  box-shadow: 0 0 0 2px light-dark({_LIGHT}, {_DARK}), 0 0 0 4px var(--st-primary-color); }}
.hl-batch {{ width: auto; border-collapse: collapse; font-family: var(--st-code-font, monospace);
  font-size: .72rem; }}
.hl-batch td {{ border: 0; padding: .05rem .22rem; text-align: center; }}
.hl-batch td.pad {{ color: color-mix(in srgb, {colors.PADDING} 70%, currentColor); }}
.hl-batch tr.chosen {{ font-weight: 700; }}
.hl-both {{ border-collapse: collapse; width: 100%; }}
.hl-both th, .hl-both td {{ border: 0; padding: .05rem .7rem .05rem 0; text-align: left; font-weight: 400;
  font-size: .9rem; white-space: nowrap; }}
.hl-both td b {{ font-size: 1.25rem; font-weight: 700; }}
.hl-losses {{ display: flex; gap: 1.6rem; justify-content: flex-end; align-items: baseline; }}
.hl-losses span {{ white-space: nowrap; }}
.hl-losses small {{ opacity: .75; font-size: .8rem; }}
.hl-losses b {{ font-size: 1.5rem; }}
.st-key-anatomy_formula .katex {{ font-size: 1.05em; }}
.st-key-anatomy_formula .katex-display {{ margin: .4rem 0; overflow-x: auto; overflow-y: hidden; }}
.st-key-anatomy_formula {{ min-height: 6.2rem; justify-content: center; }}
.st-key-anatomy_title p {{ font-size: 1.05rem; line-height: 1.4; min-height: 2.8em; }}
.hl-wide {{ overflow-x: auto; padding-bottom: .3rem; }}
.hl-spelled {{ display: flex; gap: 1.5rem; align-items: center; }}
.hl-spelled p {{ font-size: 1.3rem; margin: 0; line-height: 1.3; min-width: 9rem; flex: 0 1 auto; }}
.hl-spelled table {{ border-collapse: collapse; font-size: 1rem; }}
.hl-spelled th {{ font-weight: 400; text-align: left; font-size: .8rem; opacity: .8; padding-right: .6rem;
  border: 0; white-space: nowrap; }}
.hl-spelled td {{ font-family: var(--st-code-font, monospace); font-size: 1.1rem;
  padding: 0 .2rem; line-height: 1.5; text-align: center; border: 0; }}
.hl-spelled td.ok {{ color: {colors.RIGHT_TEXT}; }}
.hl-spelled td.no {{ color: {colors.WRONG_TEXT}; font-style: italic; text-decoration: underline dotted; }}
.hl-spelled td.later {{ color: inherit; opacity: .75; }}
.hl-spelled td.lit {{ outline: 3px solid {colors.LIT}; border-radius: 4px; font-weight: 700; }}
.hl-spelled .yes, .hl-verdict .yes, .hl-changed .yes {{ color: {colors.RIGHT_TEXT}; }}
.hl-spelled .not, .hl-verdict .not, .hl-changed .not {{ color: {colors.WRONG_TEXT}; }}
.hl-verdict {{ font-size: 1.3rem; line-height: 1.3; }}
.hl-verdict em {{ font-style: normal; font-weight: 600; font-size: 1.15rem; }}
.hl-code {{ display: block; width: min(100%, 19rem); margin: 0 auto .3rem; image-rendering: pixelated; }}
[data-testid="stPopoverBody"]:has(.st-key-run_open) {{ min-height: 17rem; }}
@media (max-width: 1200px) {{
  [data-testid="stLayoutWrapper"]:has(> .st-key-why) {{ position: static; width: 100%; }}
  .st-key-why p {{ text-align: left; }}
  .st-key-controls [data-testid="stLayoutWrapper"]:has(> .st-key-expected) {{ position: static; }}
}}
@media (max-width: 1000px) {{
  .stMainBlockContainer .stHorizontalBlock:has(> .stColumn) {{ flex-wrap: wrap; }}
  .stMainBlockContainer .stHorizontalBlock > .stColumn {{ min-width: 100%; }}
}}
</style>"""


def style() -> None:
    """Add them to the page."""
    st.html(_CSS)
