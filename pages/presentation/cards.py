"""The cards of the stories: a picture, for whom it is, how long it takes, what it needs, and a link to it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import streamlit as st
from PIL import ImageColor

from pages.shared.plain import plain
from transformer.figures import colors
from transformer.figures.picture import Array
from transformer.insight.names import head_name, short_head_name
from transformer.runs.demo import OF_STORIES, recording
from transformer.shared.attention_info import sites_of
from transformer.stories.story import Beat, Story

SIZE = 400, 640
"""Height and width of a picture in pixels."""


def card(name: str, story: Story) -> None:
    """Draw the card of a story."""
    long = f"{story.minutes} minute{'s' * (story.minutes != 1)}" if story.minutes else ""
    cover = next((beat for beat in story.beats if beat.cover), None)
    with st.container(key=f"story_{name}", border=True):
        if cover is not None and (picture := _picture(cover, story.runs[cover.run].recording)):
            image, caption, alt = picture
            st.image(image, caption, width="stretch", output_format="PNG", alt=alt)
        st.subheader(plain(story.title), anchor=False)
        if line := " · ".join(filter(None, (story.audience and f"For {story.audience}", long))):
            st.markdown(f"**{plain(line)}**")
        st.markdown(plain(story.about))
        if story.needs:
            st.caption(plain(f"Needs {story.needs}"))
        st.page_link("stories.py", label="Begin", query_params={"story": name}, width="stretch")


@lru_cache(maxsize=64)
def _picture(beat: Beat, recorded: str | None) -> tuple[Array, str, str] | None:
    """The map of a beat at the last step of a recording, with its caption and its text for screen readers.

    None if there is no such map.
    """
    demo = recording(OF_STORIES[recorded]) if recorded else None
    frame = demo and demo.view.frame
    if not frame or not (sites := sites_of(frame.axes, beat.kind or "cross")):
        return None
    row = frame.row_of(beat.word)
    site, head = frame.large_head(sites, beat.pinned)
    word = frame.words[row].text
    caption = f"Recorded map: “{plain(word)}”, {short_head_name(site, head)}, step {frame.step:,}"
    return pixels(frame.map(row, site)[head]), caption, f"Map of {head_name(site, head)}, for {word}"


def pixels(weights: Array) -> Array:
    """(rows, columns) weights, NaN where blocked, as a (*SIZE, 3) uint8 image in the colours of the maps."""
    places, names = zip(*colors.WEIGHTS, strict=True)
    scale = np.array([ImageColor.getrgb(name) for name in names])
    image = np.stack([np.interp(weights, places, channel) for channel in scale.T], axis=-1)
    image[np.isnan(weights)] = ImageColor.getrgb(colors.CAUSAL)
    rows, columns = (np.arange(size) * n // size for size, n in zip(SIZE, weights.shape, strict=True))
    return image.round().astype(np.uint8)[rows][:, columns]
