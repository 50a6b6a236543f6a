"""Tokens that are patches of a picture: the picture is recorded, and a row of a map is drawn over it."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.watching.conftest import kept, training
from transformer import InputError, Patches
from transformer.exports.film import film_gif, filmstrip_png
from transformer.exports.frames import map_of, over_picture
from transformer.player.index import Index
from transformer.recording.patched import Covered, Patched, Pictures
from transformer.storage.saved import read_run

PICTURE = torch.linspace(0, 1, 3 * 8 * 12).reshape(3, 8, 12)
GRID = 2, 3


class Seeing(nn.Module):
    """Patches of 4 × 4 pixels after a first token, as in a ViT."""

    def __init__(self):
        super().__init__()
        self.embed, self.first = nn.Conv2d(3, 12, 4, 4), nn.Parameter(torch.randn(1, 1, 12))
        self.body = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        return self.body(torch.cat([self.first.expand(len(x), -1, -1), x], 1))


@pytest.fixture
def seen(watched):
    """The view of a run on two pictures, the second in reverse order."""
    torch.manual_seed(2)
    images = torch.stack([PICTURE, PICTURE.flip(2)])
    tokens = [Patches(image, GRID, before=["[CLS]"]) for image in images]
    watch = watched(Seeing(), {"image": images}, tokens={"image": tokens})
    for step in range(1, 4):
        watch.step(step, loss=1 / step)
    watch.close()
    return kept(watch)


def test_patches_are_tokens_named_by_row_and_column_after_those_before():
    tokens = Patches(PICTURE, GRID, before=["[CLS]", "[REG]"], after=["[END]"])
    assert list(tokens) == ["[CLS]", "[REG]", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3", "[END]"]
    assert (len(tokens), tokens[3]) == (9, "1,2")
    assert list(Patches(PICTURE, (1, 1), before="[CLS]", after=None)) == ["[CLS]", "1,1"]


@pytest.mark.parametrize(
    "image",
    [
        PICTURE,
        PICTURE.movedim(0, -1).numpy(),
        (255 * PICTURE).round().to(torch.uint8),
        Image.fromarray((255 * PICTURE.movedim(0, -1)).round().to(torch.uint8).numpy()),
        4 * PICTURE - 1,  # normalised
    ],
    ids=["tensor", "array", "bytes", "Pillow", "normalised"],
)
def test_a_picture_may_come_in_every_usual_form(image):
    found = Patches(image, GRID).picture
    assert (found.width, found.height) == (12, 8)
    truth = (255 * PICTURE.movedim(0, -1)).round().numpy()
    np.testing.assert_allclose(found.array(), truth, atol=1)


def test_pictures_of_pillow_in_other_modes_have_their_colours():
    plain = Image.fromarray((255 * PICTURE.movedim(0, -1)).round().to(torch.uint8).numpy())
    for mode in ("P", "CMYK", "RGBA", "L"):
        changed = plain.convert(mode)
        np.testing.assert_array_equal(Patches(changed, GRID).picture.array(), changed.convert("RGB"))


def test_grey_pictures_have_three_equal_colours_and_large_ones_are_made_smaller():
    grey = torch.zeros(400, 640)
    grey[:, 320:] = 1
    found = Patches(grey, (5, 8)).picture
    assert (found.width, found.height) == (160, 100)
    assert (found.array()[:, :80] == 0).all()
    assert (found.array()[:, 80:] == 255).all()


def test_a_picture_of_one_value_outside_of_0_to_1_is_black():
    assert (Patches(torch.full((8, 8), 2.0), (2, 2)).picture.array() == 0).all()


@pytest.mark.parametrize(
    ("image", "grid", "said"),
    [
        ("picture.png", (2, 2), "'picture.png' is no image"),
        (PICTURE, 6, "grid=6 is no grid"),
        (PICTURE, (2.5, 3), "is no grid"),
        (torch.zeros(5, 4, 6), (2, 2), r"not \(5, 4, 6\)"),
        (torch.zeros(7), (2, 2), r"not \(7,\)"),
        (torch.full((3, 4, 4), torch.nan), (2, 2), "no numbers"),
        (PICTURE, (0, 4), r"grid=\(0, 4\)"),
        (PICTURE, (100, 100), "4,096 patches"),
    ],
)
def test_what_is_no_picture_is_refused(image, grid, said):
    with pytest.raises(InputError, match=said):
        Patches(image, grid)


def test_the_pictures_of_all_examples_are_kept_in_the_file_once(seen):
    assert list(seen.pictures) == ["image 1", "image 2"]
    one, other = (next(iter(seen.pictures[word].values())) for word in seen.pictures)
    np.testing.assert_array_equal(one.array(), other.array()[:, ::-1])
    axes = seen.frame.axes["body.self_attn"]
    assert seen.pictures["image 1"] == {axes.query: one, axes.key: one}
    assert seen.frame.words[0].tokens(axes.key)[:3] == ("[CLS]", "1,1", "1,2")


def test_the_index_gives_a_player_the_picture_the_grid_and_whether_queries_are_patches(seen):
    index = Index(seen.config).whole(seen)
    (kind,) = index["kinds"]
    known = index["pictures"]["image 1"][kind]
    size = known["width"], known["height"], known["grid"], known["before"], known["tokens"], known["pooled"]
    assert size == (12, 8, GRID, 1, 7, 1)
    assert known["asks"]
    assert known["query"] == 0
    forged = {side: replace(one, after=2) for side, one in seen.pictures["image 1"].items()}
    assert replace(seen, pictures={"image 1": forged}).covered("image 1", "body.self_attn") is None
    other = Index(seen.config).whole(replace(seen, pictures={"image 1": {}}))
    assert other["pictures"]["image 1"] == {}


def test_tokens_of_a_cell_share_its_weight_and_blocked_cells_have_none():
    known = Patched(width=1, height=1, pixels=bytes(3), grid=(2, 2), before=1)
    np.testing.assert_allclose(known.shares(np.array([0.6, np.nan, 0.4]), 2), [[0.3, 0], [0, 0.4]])
    np.testing.assert_allclose(known.shares(np.array([0.1, 0.2, 0.3, 0.4, 0]), 1), [[0.2, 0.3], [0.4, 0]])
    for before, asks, query in ((1, True, 0), (0, True, 3), (0, False, 0)):
        covered = Covered(picture=replace(known, before=before), pooled=1, asks=asks)
        assert covered.usual_query == query


def test_films_draw_the_row_of_the_first_token_over_the_picture(seen):
    site, frame = "body.self_attn", seen.frame
    shown = map_of(frame, "image 2", site, 1, frame)
    over = over_picture(seen, shown, "image 2", site).over
    assert over.query == "[CLS]"
    np.testing.assert_allclose(over.shares, frame.map(1, site)[1, 0, 1:].reshape(GRID), atol=1e-6)
    image = Image.open(io.BytesIO(film_gif(seen, word="image 2", site=site, head=1)))
    image.seek(image.n_frames - 1)
    pixels = np.asarray(image.convert("RGB")).astype(int)
    row, column = np.unravel_index(over.shares.argmax(), GRID)
    strongest = over.pixels[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].reshape(-1, 3).astype(int)
    # The brightest patch has its own colours; every one of them is in the film.
    for color in strongest[:: len(strongest) // 3]:
        assert np.abs(pixels - color).sum(-1).min() < 24
    strip = Image.open(io.BytesIO(filmstrip_png(seen, word="image 2", site=site, head=1)))
    assert strip.width > 2 * strip.height


@pytest.mark.parametrize(
    "change", [{"width": 4000}, {"pixels": b"abc"}, {"grid": (0, 3)}, {"grid": (9999, 9999)}, {"before": -1}]
)
def test_a_forged_picture_is_refused(seen, change):
    known = next(iter(seen.pictures["image 1"].values()))
    forged = msgspec.to_builtins(known) | {k: msgspec.to_builtins(v) for k, v in change.items()}
    with pytest.raises(ValueError, match="it is no picture of patches"):
        msgspec.json.decode(msgspec.json.encode({"a": {"b": forged}}), type=Pictures)


def test_a_run_that_goes_on_keeps_its_pictures(seen, watched, tmp_path):
    torch.manual_seed(2)
    images = torch.stack([PICTURE, PICTURE.flip(2)])
    tokens = [Patches(image, GRID, before=["[CLS]"]) for image in images]
    watch = watched(Seeing(), {"image": images}, tokens={"image": tokens}, resume=True)
    watch.step(9, loss=0.1)
    watch.close()
    again = read_run(tmp_path / "mine.headlight").view
    assert again.frames.steps[-1] == 9
    assert again.pictures == seen.pictures


def test_a_picture_of_another_number_of_patches_is_said_and_positions_are_shown(toy, watched):
    watch = watched(toy, {"x": torch.randn(1, 7, 5)}, tokens={"x": Patches(PICTURE, GRID)})
    training(toy, 2, watch)
    watch.close()
    assert "6 were given for 'x', and no attention has so many positions: there are 7." in " ".join(
        str(one.message) for one in watched.said
    )
    assert kept(watch).pictures == {}
