"""Films of a head: pixels are the recorded weights in the app's colours; each frame has its duration."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from PIL import Image, ImageColor
from plotly.colors import sample_colorscale, unlabel_rgb

from tests.conftest import HELD_OUT, LIVE
from tests.exports.conftest import FakeRecording, with_word
from transformer.errors import InputError
from transformer.exports.film import film_gif, filmstrip_png
from transformer.exports.frames import film_frames
from transformer.figures import colors
from transformer.insight.moments import Moment

CROSS = "decoder.1.cross"


def decoded(gif):
    """Return a GIF as an image, and its frames as (pixels, milliseconds)."""
    film = Image.open(io.BytesIO(gif))
    frames = []
    for i in range(film.n_frames):
        film.seek(i)
        frames.append((np.asarray(film.convert("RGB")).astype(int), film.info["duration"]))
    return film, frames


def maps_in(pixels):
    """Find every map in a picture by its colours; return (left, top, right, bottom) of each."""
    red, green, blue = pixels[100:, :, 0], pixels[100:, :, 1], pixels[100:, :, 2]
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    wrong = (red > np.maximum(green, blue)) & (abs(green - blue) < 40)  # red text; no weight has this colour
    colored = (high - low > 25) & ~wrong
    colored[600:] = False  # ignores the progress of the run
    columns = np.flatnonzero(colored.sum(axis=0) >= 30)
    groups = np.split(columns, np.flatnonzero(np.diff(columns) > 20) + 1)
    found = []
    for group in groups:
        if len(group) > 30:  # the legend is narrower
            rows = np.flatnonzero(colored[:, group[0] : group[-1] + 1].sum(axis=1) >= 20)
            found.append((int(group[0]), 100 + int(rows[0]), int(group[-1]) + 1, 100 + int(rows[-1]) + 1))
    return found


def color_at(pixels, box, shape, row, column):
    """Return the colour in the middle of one cell of a map."""
    left, top, right, bottom = box
    y = top + (row + 0.5) * (bottom - top) / shape[0]
    x = left + (column + 0.5) * (right - left) / shape[1]
    return pixels[round(y), round(x)]


def viridis(weight):
    return np.array(unlabel_rgb(sample_colorscale("Viridis", [float(weight) ** 0.5])[0]))


def test_every_recorded_step_is_a_frame_of_slide_size_and_the_film_loops(view):
    film, frames = decoded(film_gif(view, word="banana", site=CROSS, head=1))
    assert film.format == "GIF"
    assert film.size == (960, 720)
    assert film.info["loop"] == 0
    assert len(frames) == len(view.frames) == 9
    assert [time for _, time in frames] == [1500, *7 * [150], 3000]


def test_each_cell_has_the_colour_of_its_weight_at_its_step(view):
    _, frames = decoded(film_gif(view, word="banana", site=CROSS, head=1))
    for (pixels, _), frame in zip(frames, view.frames, strict=True):
        weights = frame.map(0, CROSS)[1]
        assert weights.shape == (7, 8)
        (box,) = maps_in(pixels)
        brightest = np.unravel_index(weights.argmax(), weights.shape)
        for row, column in [brightest, (0, 0), (6, 7), (0, 7), (3, 2)]:
            found = color_at(pixels, box, weights.shape, row, column)
            np.testing.assert_allclose(found, viridis(weights[row, column]), atol=5)
        assert weights[brightest] > 0.5


def test_the_map_stays_in_place_while_the_film_runs(view):
    _, frames = decoded(film_gif(view, word="cat", site="encoder.0", head=2))
    assert len({maps_in(pixels)[0] for pixels, _ in frames}) == 1
    assert len({pixels.tobytes() for pixels, _ in frames}) == len(frames)  # yet no two pictures are equal


def is_marked(pixels, box, shape, row, column, color):
    """Whether a cell has this colour, with dark marks on it."""
    left, top, right, bottom = box
    high, wide = (bottom - top) / shape[0], (right - left) / shape[1]
    cell = pixels[
        round(top + row * high) + 3 : round(top + (row + 1) * high) - 3,
        round(left + column * wide) + 3 : round(left + (column + 1) * wide) - 3,
    ]
    (commonest, _), *others = Counter(map(tuple, cell.reshape(-1, 3).tolist())).most_common()
    return commonest == ImageColor.getrgb(color) and any(sum(other) < 200 for other, _ in others)


def test_cells_blocked_by_a_mask_and_cells_blocked_by_hand_are_drawn_differently(view):
    site = "decoder.0.self"
    _, frames = decoded(film_gif(view, word="banana", site=site, head=1))
    shape = (7, 7)
    for (pixels, _), frame in zip(frames, view.frames, strict=True):
        # Row and column 0 hold weights, so the map is found by its colours although half of it is grey.
        left, top, right, bottom = maps_in(pixels)[0]
        box = (left, top, right, bottom)
        for row in range(7):
            for column in range(row + 1, 7):
                assert is_marked(pixels, box, shape, row, column, colors.CAUSAL)
        taken = is_marked(pixels, box, shape, 4, 2, colors.BLOCKED_BY_HAND)
        assert taken == (frame.step >= 4)
        assert not is_marked(pixels, box, shape, 5, 3, colors.BLOCKED_BY_HAND)
    _, others = decoded(film_gif(view, word="banana", site=site, head=0))
    last, box = others[-1][0], maps_in(others[-1][0])[0]
    assert not is_marked(last, box, shape, 4, 2, colors.BLOCKED_BY_HAND)


def test_a_head_is_striped_from_the_step_at_which_it_was_switched_off(view):
    """Head 3 of this layer, index 2 here, was switched off at step 4; head 2 was not."""
    grey = np.array(ImageColor.getrgb(colors.OFF))

    def share(pixels):
        left, top, right, bottom = boxes[0]
        return (np.abs(pixels[top:bottom, left:right] - grey).max(axis=-1) < 4).mean()

    for head in (1, 2):
        _, frames = decoded(film_gif(view, word="banana", site=CROSS, head=head))
        boxes = maps_in(frames[0][0])
        shares = [share(pixels) for pixels, _ in frames]
        assert max(shares[:4]) < 0.01
        assert all((0.3 < one < 0.8) if head == 2 else one < 0.01 for one in shares[4:]), shares


def test_a_film_begins_at_the_first_step_that_is_kept_of_its_word(view, thinned):
    assert len(decoded(film_gif(view, word="ox", site=CROSS, head=0))[1]) == 9
    _, frames = decoded(film_gif(thinned, word="ox", site=CROSS, head=0))
    kept = [frame for frame in view.frames if frame.step in (4, 5, 8)]
    assert len(frames) == 3
    weights = kept[0].map(2, CROSS)[0]
    assert weights.shape == (3, 4)
    (box,) = maps_in(frames[0][0])
    found = color_at(frames[0][0], box, weights.shape, 1, 2)
    np.testing.assert_allclose(found, viridis(weights[1, 2]), atol=5)


def test_one_recorded_step_is_a_film_of_one_frame(view):
    only = replace(view, frames=FakeRecording(view.frames[:1]))
    film, frames = decoded(film_gif(only, word="cat", site=CROSS, head=0))
    assert len(frames) == 1
    assert film.size == (960, 720)


def test_the_strip_shows_the_same_head_at_seven_steps_side_by_side(thinned):
    view = thinned
    picture = Image.open(io.BytesIO(filmstrip_png(view, word="banana", site=CROSS, head=1)))
    assert picture.format == "PNG"
    assert picture.width > 4 * picture.height
    pixels = np.asarray(picture.convert("RGB")).astype(int)
    boxes = maps_in(pixels)
    assert len(boxes) == 7
    assert np.ptp([(top, bottom, right - left) for left, top, right, bottom in boxes], axis=0).max() <= 1
    for box, frame in zip(boxes, view.frames, strict=True):
        weights = frame.map(0, CROSS)[1]
        brightest = np.unravel_index(weights.argmax(), weights.shape)
        for row, column in [brightest, (0, 0), (6, 7), (6, 0)]:
            found = color_at(pixels, box, weights.shape, row, column)
            np.testing.assert_allclose(found, viridis(weights[row, column]), atol=5)


def many(view, n):
    """Return the view with n frames at steps 0, 10, 20, ..."""
    return replace(view, frames=FakeRecording(replace(view.frames[0], step=10 * i) for i in range(n)))


def test_a_long_run_is_a_film_of_sixty_frames_and_a_strip_of_seven_and_both_show_the_numbers(
    view, drawn_texts
):
    long = many(view, 1_200)
    film = Image.open(io.BytesIO(film_gif(long, word="cat", site="encoder.0", head=0)))
    assert film.n_frames == 60
    assert any("60 of 1,200 frames" in text for text, _ in drawn_texts)
    strip = Image.open(io.BytesIO(filmstrip_png(long, word="cat", site="encoder.0", head=0)))
    assert len(maps_in(np.asarray(strip.convert("RGB")).astype(int))) == 7
    assert any("7 of 1,200 frames" in text for text, _ in drawn_texts)


def test_the_accuracy_of_an_earlier_evaluation_is_shown_with_its_step(view, drawn_texts):
    film_gif(view, word="cat", site=CROSS, head=0)
    said = [part for text, _ in drawn_texts for part in text.split(" · ") if part.startswith("words right: ")]
    assert (said[4], said[8]) == (f"words right: 0 of {LIVE}", f"words right: 0 of {HELD_OUT}")
    assert said[5:8] == 3 * [f"words right: 0 of {LIVE} at step 4"]


@pytest.mark.parametrize(("n", "most"), [(100, 10), (101, 60), (57, 8), (3, 2), (40, 40), (5, 100), (1, 2)])
def test_the_first_the_last_and_moments_are_among_evenly_chosen_frames(view, n, most):
    moments = tuple(Moment(step, "turned", "a head turned") for step in (130, 570, 575) if step < 10 * n)
    steps = [frame.step for frame in film_frames(replace(many(view, n), moments=moments), most, "cat")]
    assert steps == sorted(set(steps))
    assert steps[0] == 0
    assert steps[-1] == 10 * (n - 1)
    assert len(steps) <= most
    assert len(steps) >= min(n, most) - 3  # each of the 3 moments can displace an evenly spaced frame
    if most > 4:
        assert {130, 570} & {10 * i for i in range(n)} <= set(steps)
        assert max(np.diff(steps), default=0) <= 2 * 10 * max(1, n / (most - 2))


def test_moments_are_thinned_to_the_limit_or_ignored(view):
    crowd = tuple(Moment(10 * i, "turned", "") for i in range(100))
    steps = [frame.step for frame in film_frames(replace(many(view, 100), moments=crowd), 9, "cat")]
    assert len(steps) == 9
    assert (steps[0], steps[-1]) == (0, 990)
    assert max(np.diff(steps)) <= 200
    without = film_frames(replace(many(view, 100), moments=crowd[3:4]), 3, "cat", moments=False)
    assert [frame.step for frame in without] == [0, 500, 990]


def test_words_runs_and_heads_that_cannot_be_filmed_are_refused(view):
    with pytest.raises(
        InputError, match="^No frame of this run shows “dog” yet; choose one of its tracked words: banan"
    ):
        film_gif(view, word="dog", site=CROSS, head=0)
    with pytest.raises(
        InputError, match="^No frame of this run shows “cat” yet; wait until the untrained model is "
    ):
        film_frames(replace(view, frames=FakeRecording([])), 5, "cat")
    for site, head in (("decoder.9.cross", 0), (CROSS, 3), (CROSS, -1)):
        with pytest.raises(
            ValueError, match=f"^There is no head {head} at '{site}', counted from 0; the sites are encoder.0"
        ):
            filmstrip_png(view, word="cat", site=site, head=head)


@pytest.mark.parametrize("predicted", ["x", "x" * 25])
@pytest.mark.parametrize("make", [film_gif, filmstrip_png])
def test_no_two_texts_overlap_and_those_of_a_film_lie_within_it(view, drawn_texts, make, predicted):
    frames = FakeRecording([with_word(view.frames[5], predicted=(predicted,) * 7)])
    picture = Image.open(io.BytesIO(make(replace(view, frames=frames), word="banana", site=CROSS, head=0)))
    assert sum("✗" in text for text, _ in drawn_texts) == (7 if make is film_gif else 0)
    for (one, box), (other, beside) in combinations(drawn_texts, 2):
        assert not box.padded(-1).overlaps(beside.padded(-1)), (one, other)
    if make is film_gif:
        assert all(box.x0 >= 0 and box.x1 <= picture.width and box.y0 >= 0 for _, box in drawn_texts)


def test_a_dollar_sign_does_not_start_a_formula(view, drawn_texts):
    frames = FakeRecording([with_word(view.frames[1], predicted=("$x_2$",) * 7)])
    film_gif(replace(view, frames=frames), word="banana", site=CROSS, head=0)
    assert any(text.endswith("✗ $x_2$") for text, _ in drawn_texts)
