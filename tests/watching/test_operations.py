"""Attention is found among a model's operations, whoever wrote its modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.watching import written
from tests.watching.written import HEADS, IDS, B, Fused, Stack, T, Written
from transformer import InputError, attention_of
from transformer.watching import operations
from transformer.watching.attention import Observer
from transformer.watching.layout import Layout

BIAS = torch.linspace(-2, 2, HEADS * T * T).reshape(HEADS, T, T)
SOME = BIAS[0] > -1.9  # every row has an allowed key


def seeded(make):
    torch.manual_seed(11)
    return make()


def exp_of_log_softmax(scores, dim):
    return scores.log_softmax(dim).exp()


KEPT = {
    "softmax and product": Written,
    "masked by -1e9": lambda: Written(low=-1e9),
    "log_softmax and exp": lambda: Written(softmax=exp_of_log_softmax),
    "folded into the batch": written.Folded,
    "folded, heads first": lambda: written.Folded(heads_first=True),
    "heads on the last axis": written.HeadsLast,
    "heads of a loop, stacked": lambda: written.Joined("stack"),
    "heads of a loop, concatenated": lambda: written.Joined("cat"),
    "a sink": written.Sink,
    "columns of neighbours": written.Banded,
}


@pytest.mark.parametrize("kind", KEPT)
def test_weights_that_a_model_computes_itself_are_those_that_it_keeps(kind):
    model = seeded(lambda: Stack(KEPT[kind](), KEPT[kind]()))
    found = attention_of(model, IDS)
    assert list(found) == ["blocks.0", "blocks.1"]
    for weights, block in zip(found.values(), model.blocks, strict=True):
        assert weights.shape[:3] == (B, HEADS, T)
        np.testing.assert_allclose(weights, block.kept.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"scale": 0.7},
        {"is_causal": False, "attn_mask": BIAS},  # for this shape PyTorch has a softmax and a product
        {"is_causal": False, "attn_mask": BIAS[None]},
        {"is_causal": False, "attn_mask": SOME},
        {"keys": 1},
        {"heads": 6, "keys": 2, "is_causal": False},
    ],
    ids=str,
)
def test_weights_of_fused_attention_equal_arithmetic_head_by_head(how, monkeypatch):
    model = seeded(lambda: Stack(Fused(**how)))
    for small in (operations._SMALL, 0):  # at once, and one head after the other
        monkeypatch.setattr(operations, "_SMALL", small)
        (weights,) = attention_of(model, IDS).values()
        truth = model.blocks[0].truth(model.embed(IDS)).detach().numpy()
        np.testing.assert_allclose(weights, truth, atol=1e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_gives_its_weights_with_its_changed_scores():
    model = seeded(lambda: Stack(written.Flexible(), width=64))
    seen = Observer(model).look(IDS)["blocks.0"]
    truth = model.blocks[0].truth(model.embed(IDS)).detach().numpy()
    np.testing.assert_allclose(np.nan_to_num(seen.weights), truth, atol=1e-6)
    assert (np.isnan(seen.weights) == np.triu(np.ones((T, T)), 1).astype(bool)).all()


def test_modules_with_one_head_each_are_one_attention_only_if_they_read_the_same():
    model = seeded(lambda: Stack(written.Heads()))
    found = attention_of(model, IDS)
    assert list(found) == ["blocks.0.heads"]
    np.testing.assert_allclose(found["blocks.0.heads"], model.blocks[0].kept.detach().numpy(), atol=1e-6)
    found = attention_of(seeded(written.Layers), IDS)
    assert {name: one.shape for name, one in found.items()} == {
        f"layers.{i}": (B, 1, T, T) for i in range(HEADS)
    }


def test_calls_with_one_query_each_are_the_rows_of_one_map():
    model = seeded(written.Additive)
    (weights,) = attention_of(model, IDS).values()
    np.testing.assert_allclose(weights, model.kept.detach().numpy(), atol=1e-6)
    assert weights.shape == (B, 1, 5, T)


@pytest.mark.parametrize("width", [1, 3])
def test_an_attention_over_a_growing_past_has_a_row_for_each_step(width):
    model = seeded(lambda: written.Growing(sink=width == 3))
    found = attention_of(model, IDS)
    assert list(found) == ["Growing"]
    for step, row in enumerate(model.kept):
        np.testing.assert_allclose(
            found["Growing"][:, :, step, : step + 1], row.detach().numpy()[:, None, 0], atol=1e-6
        )
    seen = Observer(model).look(IDS)["Growing"]
    assert seen.rest == (width == 3)
    np.testing.assert_allclose(np.nansum(seen.weights, -1), 1, atol=1e-6)


def test_two_attentions_with_one_query_in_one_module_are_not_mixed():
    found = attention_of(seeded(written.TwoPools), IDS)
    assert {name: one.shape for name, one in found.items()} == {"pool": (B, 1, 1, T), "pool#2": (B, 1, 1, 6)}


@pytest.mark.parametrize("pool", ["mul", "mv"])
def test_weights_that_are_multiplied_and_added_up_are_an_attention(pool):
    model = seeded(lambda: written.Pooled(pool))
    (weights,) = attention_of(model, IDS if pool == "mul" else IDS[0]).values()
    np.testing.assert_allclose(weights[:, 0, 0], model.kept.detach().numpy(), atol=1e-6)


def test_parts_of_weights_that_are_multiplied_apart_are_one_map():
    model = seeded(lambda: Stack(written.Halves()))
    seen = Observer(model).look(IDS)["blocks.0"]
    assert not seen.rest
    np.testing.assert_allclose(seen.weights, model.blocks[0].kept.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (2, 4), (3, 3)])
@pytest.mark.parametrize("fused", [True, False])
def test_heads_on_the_first_axis_are_told_from_examples(sizes, fused):
    n, length = sizes
    model = seeded(lambda: written.HeadsFirst(fused))
    found = attention_of(model, torch.randn(n, length, 8))
    (weights,) = found.values()
    np.testing.assert_allclose(weights, model.kept.detach().numpy(), atol=1e-6)
    assert weights.shape == (n, 4, length, length)


def test_heads_and_examples_are_told_apart_when_weights_cease_to_be_alike():
    model = seeded(lambda: Stack(written.Folded(heads_first=True)))
    with torch.no_grad():
        for one in model.blocks[0].parameters():
            one *= 1e-5
    observer = Observer(model)
    observer.look(IDS)  # all weights are 1 / T
    with torch.no_grad():
        for one in model.blocks[0].parameters():
            one *= 1e5
    for _ in range(3):
        seen = observer.look(IDS)["blocks.0"]
    np.testing.assert_allclose(seen.weights, model.blocks[0].kept.detach().numpy(), atol=1e-6)


def test_axes_that_may_be_heads_or_windows_are_left_out():
    observer = Observer(seeded(written.Blocks))
    with pytest.raises(InputError, match="Blocks is left out: which of its axes are heads is not known"):
        observer.look(torch.randn(2, 12, 6))


def test_logarithms_of_shares_that_are_multiplied_are_no_attention():
    class Scored(Stack):
        def forward(self, ids):
            x = super().forward(ids)
            return x.log_softmax(-1) @ x.mT

    observer = Observer(seeded(lambda: Scored(Written())))
    assert list(observer.look(IDS)) == ["blocks.0"]
    assert observer.left == {}


def test_attention_in_inference_mode_is_seen():
    model = seeded(lambda: Stack(Written(), Fused()))
    outside = attention_of(model, IDS)
    with torch.inference_mode():
        inside = attention_of(model, IDS)
    assert outside.keys() == inside.keys()
    for name, weights in inside.items():
        np.testing.assert_allclose(weights, outside[name], atol=1e-6)


def test_rows_that_are_no_numbers_are_said():
    model = seeded(lambda: Stack(Written(low=-torch.inf)))
    model.blocks[0].low = -torch.inf
    model.blocks[0].attend = lambda q, k, v: (
        (q @ k.mT).masked_fill(torch.ones(T, T).bool(), -torch.inf).softmax(-1) @ v
    )
    observer = Observer(model)
    assert np.isnan(observer.look(IDS)["blocks.0"].weights).all()
    assert "blocks.0 has rows without an allowed key, whose weights are not numbers (NaN)" in " ".join(
        observer.left.values()
    )


def test_windows_of_an_example_are_attentions_of_their_own():
    model = seeded(lambda: Stack(written.Windows()))
    found = attention_of(model, IDS)
    assert list(found) == [f"blocks.0 window {i}" for i in (1, 2, 3)]
    kept = model.blocks[0].kept.detach().numpy().reshape(B, 3, HEADS, 4, 4)
    for i, weights in enumerate(found.values()):
        np.testing.assert_allclose(weights, kept[:, i], atol=1e-6)


def test_a_share_that_goes_to_no_position_is_the_last_column():
    model = seeded(lambda: Stack(written.Sink()))
    seen = Observer(model).look(IDS)["blocks.0"]
    assert seen.rest
    np.testing.assert_allclose(seen.weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(seen.weights[..., -1], 1 - model.blocks[0].kept.sum(-1).numpy(), atol=1e-6)


def test_columns_of_neighbours_are_relative_to_their_row():
    assert Observer(seeded(lambda: Stack(written.Banded()))).look(IDS)["blocks.0"].relative
    assert not Observer(seeded(lambda: Stack(Written()))).look(IDS)["blocks.0"].relative


@pytest.mark.parametrize("softmax", [F.softmax, exp_of_log_softmax])
@pytest.mark.parametrize("low", [-torch.inf, -1e9, torch.finfo(torch.float32).min])
def test_masked_cells_are_blocked_and_cells_without_weight_are_not(low, softmax):
    block = Written(low=low, softmax=softmax)
    seen = Observer(seeded(lambda: Stack(block))).look(IDS)["blocks.0"]
    assert (np.isnan(seen.weights) == np.triu(np.ones((T, T)), 1).astype(bool)).all()
    with torch.no_grad():
        block.query.weight *= 300.0  # the softmax of some cells is 0, and nothing blocks them
    sharp = Observer(seeded(lambda: Stack(Written()))).look(IDS)["blocks.0"]
    assert not np.isnan(sharp.weights).any()


def test_rows_without_an_allowed_key_are_blocked_and_nothing_else_is_lost():
    model, padding = seeded(written.LeftPadded), torch.zeros(B, T, dtype=torch.bool)
    padding[1, :4] = True
    masked = torch.zeros(B, T).masked_fill(padding, -torch.inf)
    for seen in Observer(model).look((IDS, masked)).values():
        hidden = np.isnan(seen.weights)
        future = np.triu(np.ones((T, T)), 1).astype(bool)
        assert (hidden[0] == future).all()
        assert (hidden[1] == (future | padding[1].numpy())).all()
        rows = ~hidden.all(-1)
        np.testing.assert_allclose(np.nan_to_num(seen.weights).sum(-1)[rows], 1, atol=1e-5)


@pytest.mark.parametrize("other", [written.Router, written.Codebook, written.Gate])
def test_a_softmax_of_a_gate_is_no_attention(other):
    assert list(attention_of(seeded(lambda: Stack(other(), Fused())), IDS)) == ["blocks.1"]


@pytest.mark.parametrize("stack", [written.Direct, written.Checkpointed])
def test_attentions_have_the_name_of_the_innermost_module_however_it_is_called(stack):
    model = seeded(lambda: stack(Written(), Fused(heads=4), written.OwnForward(24, 3, batch_first=True)))
    found = attention_of(model, IDS)
    assert {name: one.shape[1] for name, one in found.items()} == {
        "blocks.0": 3,
        "blocks.1": 4,
        "blocks.2": 3,
    }


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", [Written, Fused, written.Folded, written.Sink])
def test_weights_in_half_precision_are_near_those_in_full(make, dtype):
    model = seeded(lambda: Stack(make(), make()))
    full = attention_of(model, IDS)
    half = attention_of(model.to(dtype), IDS)
    for name, weights in half.items():
        np.testing.assert_allclose(weights, full[name], atol=0.03)


class Counted:
    """A backend of `torch.compile` that counts what it compiles."""

    def __init__(self):
        self.n = 0

    def __call__(self, graph, inputs):
        self.n += 1
        return graph.forward


def trained(model, steps, observed):
    """Return the losses of a training in train mode, with dropout."""
    torch.manual_seed(3)
    optimizer, losses, observer = torch.optim.Adam(model.parameters(), 1e-3), [], Observer(model)
    for i in range(steps):
        loss = model((IDS + i) % 20).square().mean()
        loss.backward()
        if observed:
            assert observer.look(IDS)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    "make", [Written, Fused, written.Folded, written.Heads, written.Windows, written.Router]
)
def test_losses_of_200_steps_are_the_same_bit_for_bit(make):
    both = lambda: Stack(make(), Fused())  # noqa: E731
    assert trained(seeded(both), 200, True) == trained(seeded(both), 200, False)


def test_a_model_that_is_compiled_in_place_is_seen_and_nothing_is_compiled_anew():
    backend = Counted()
    model = seeded(lambda: Stack(Written(), Fused()))
    model.compile(backend=backend)
    losses = trained(model, 3, False)
    compiled = backend.n
    assert compiled > 0
    model.load_state_dict(seeded(lambda: Stack(Written(), Fused())).state_dict())
    assert trained(model, 3, True) == losses
    assert backend.n == compiled
    assert list(attention_of(model, IDS)) == ["blocks.0", "blocks.1"]


# Proof.


def swapped(layout, weights, arranged=Layout.arranged):
    return arranged(layout, weights).flip(2)


def other_group(heads, n):
    return heads if heads.shape[1] == n else heads.repeat(1, n // heads.shape[1], 1, 1)


def without(name):
    """Fused weights that are computed without the mask, or without the scale."""

    def weights(query, key, mask, causal, scale):
        given = {"mask": mask, "causal": causal, "scale": scale} | name
        return operations_weights(query, key, **given)

    return weights


operations_weights = operations.fused_weights


@pytest.mark.parametrize(
    ("make", "place", "name", "wrong"),
    [
        (
            lambda: Fused(is_causal=False, attn_mask=BIAS[None]),
            operations,
            "fused_weights",
            without({"mask": None}),
        ),
        (Fused, operations, "fused_weights", without({"causal": False})),
        (Fused, operations, "fused_weights", without({"scale": 1.0})),
        (Written, Layout, "arranged", swapped),
        (lambda: Fused(heads=6, keys=2), operations, "grouped", other_group),
    ],
    ids=["mask forgotten", "causality forgotten", "scale forgotten", "heads swapped", "groups wrong"],
)
def test_an_attention_that_is_read_wrongly_is_left_out_with_its_reason(make, place, name, wrong, monkeypatch):
    model = seeded(lambda: Stack(make(), Written(heads=4)))
    assert list(attention_of(model, IDS)) == ["blocks.0", "blocks.1"]
    if name == "grouped":  # the values are those of the model
        weights = operations.fused_weights
        wrong_keys = lambda q, k, *rest: weights(q, other_group(k[:, ::3], 6), *rest)  # noqa: E731
        monkeypatch.setattr(operations, "fused_weights", wrong_keys)
    else:
        monkeypatch.setattr(place, name, wrong)
    observer = Observer(model)
    try:
        assert "blocks.0" not in observer.look(IDS)
    except InputError:
        pass  # nothing is left
    assert observer.left["blocks.0"].startswith(
        "blocks.0 is left out: what was read does not give the output of this attention (it is off by "
    )


def test_another_softmax_than_that_of_the_attention_is_left_out(monkeypatch):
    taken = operations.Observing._trace

    def confused(self, tensor, trace):
        if trace.weights is tensor:
            trace.weights = tensor.flip(-1)
        taken(self, tensor, trace)

    monkeypatch.setattr(operations.Observing, "_trace", confused)
    observer = Observer(seeded(lambda: Stack(Written())))
    with pytest.raises(InputError, match=r"blocks\.0 is left out: what was read does not give the output"):
        observer.look(IDS)


def test_a_model_that_gives_another_output_while_it_is_observed_is_not_shown():
    class Peeks(Stack):
        def forward(self, ids):
            watched = torch.overrides._get_current_function_mode() is not None
            return super().forward(ids) + watched

    with pytest.raises(InputError, match="Peeks gives another output while it is observed"):
        attention_of(Peeks(Fused()), IDS)


def test_a_model_that_never_gives_the_same_output_is_not_shown():
    class Counts(Stack):
        n = 0

        def forward(self, ids):
            self.n += 1
            return super().forward(ids) + self.n

    observer = Observer(Counts(Fused()))
    for _ in range(2):  # a second look is no proof either
        with pytest.raises(InputError, match="Counts gives another output at every call"):
            observer.look(IDS)


@torch.library.custom_op("tests::flash_attention", mutates_args=())
def foreign(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return q + v


def test_an_attention_of_another_library_is_named():
    class Foreign(nn.Module):
        def forward(self, x):
            return foreign(x, x)

    observer = Observer(Stack(Fused(), Foreign()))
    assert list(observer.look(IDS)) == ["blocks.0"]
    assert observer.left == {
        "blocks.1": "blocks.1 is left out: the weights of tests::flash_attention cannot be computed."
    }


def test_a_model_whose_numbers_are_nan_is_not_said_to_lack_allowed_keys():
    model = seeded(lambda: Stack(Written()))
    nn.init.constant_(model.blocks[0].query.bias, torch.nan)
    observer = Observer(model)
    assert np.isnan(observer.look(IDS)["blocks.0"].weights).all()
    (why,) = observer.left.values()
    assert why.startswith("blocks.0 has weights that are not numbers (NaN), drawn as blocked, though no mask")


@pytest.mark.parametrize("how", ["linear", "convolution"])
def test_heads_that_are_mixed_after_the_softmax_are_named(how):
    observer = Observer(Stack(Fused(), written.Talking(how)))
    assert list(observer.look(IDS)) == ["blocks.0"]
    assert observer.left == {
        "blocks.1": "blocks.1 is left out: a layer mixes the results of its softmax, as between heads, so "
        "they are no shares of attention."
    }


@pytest.mark.parametrize("how", ["stack", "cat"])
def test_heads_that_are_put_together_keep_the_cells_that_a_mask_blocks(how):
    seen = Observer(seeded(lambda: Stack(written.Joined(how)))).look(IDS)["blocks.0"]
    assert (np.isnan(seen.weights) == np.triu(np.ones((T, T)), 1).astype(bool)).all()


# Long axes.


@pytest.mark.parametrize(
    "make", [Fused, Written, lambda: Fused(is_causal=False, attn_mask=SOME), written.Sink]
)
@pytest.mark.parametrize("small", [0, operations._SMALL])
def test_a_pooled_map_is_the_mean_over_its_rows_and_the_sum_over_its_columns(make, small, monkeypatch):
    monkeypatch.setattr(operations, "_SMALL", small)
    model = seeded(lambda: Stack(make()))
    full, seen = (Observer(model, most=most).look(IDS)["blocks.0"] for most in (None, 4))
    assert seen.pooled == (3, 3)
    truth = np.full((B, HEADS, 4, 4 + seen.rest), np.nan, np.float32)
    for row in range(4):
        of_row = full.weights[:, :, 3 * row : 3 * row + 3]
        for column in range(4):
            cells = of_row[..., 3 * column : min(3 * column + 3, T)]
            if not np.isnan(cells).all():
                truth[:, :, row, column] = np.nansum(cells, -1).mean(-1)
        if seen.rest:
            truth[:, :, row, 4] = of_row[..., T].mean(-1)
    np.testing.assert_allclose(seen.weights, truth, atol=1e-6)
    np.testing.assert_allclose(np.nansum(seen.weights, -1), 1, atol=1e-5)


# Libraries.


def library(name):
    """Return a model of a library with random weights, its inputs, and shapes of some of its attentions."""
    import transformers as hf

    small = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32, "hidden_size": 24}
    grouped = small | {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size": 32,
        "vocab_size": 20,
    }
    ids, image = {"input_ids": IDS + 1}, {"pixel_values": torch.randn(2, 3, 16, 16)}
    if name == "Longformer":
        config = hf.LongformerConfig(vocab_size=30, attention_window=4, max_position_embeddings=64, **small)
        return hf.LongformerModel(config), ids, {"encoder.layer.0.attention.self": (2, 3, 12, 5)}
    if name == "gpt-oss":
        config = hf.GptOssConfig(
            head_dim=8, num_local_experts=4, num_experts_per_tok=2, pad_token_id=0, **grouped
        )
        return hf.GptOssForCausalLM(config), ids, {"model.layers.0.self_attn": (2, 4, T, T)}
    if name == "Swin":
        config = hf.SwinConfig(
            image_size=32, patch_size=2, embed_dim=12, depths=[2, 2], num_heads=[2, 4], window_size=4
        )
        shapes = {f"encoder.layers.{i}.blocks.1.attention window 4": (2, 2 + 2 * i, 16, 16) for i in (0, 1)}
        return hf.SwinModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}, shapes
    if name == "SigLIP":
        config = hf.SiglipVisionConfig(image_size=16, patch_size=4, **small)
        shapes = {"encoder.layers.1.self_attn": (2, 3, 16, 16), "head.attention": (2, 3, 1, 16)}
        return hf.SiglipVisionModel(config), image, shapes
    if name == "T5":
        config = hf.T5Config(
            vocab_size=20, d_model=24, d_kv=8, d_ff=30, num_layers=2, num_heads=3, decoder_start_token_id=0
        )
        shapes = {
            "encoder.block.1.layer.0.SelfAttention": (2, 3, T, T),
            "decoder.block.0.layer.1.EncDecAttention": (2, 3, 5, T),
        }
        return hf.T5ForConditionalGeneration(config), ids | {"decoder_input_ids": IDS[:, :5]}, shapes
    if name == "Perceiver":
        config = hf.PerceiverConfig(
            num_latents=6, d_latents=24, d_model=16, num_blocks=1, num_self_attends_per_block=2,
            num_self_attention_heads=3, num_cross_attention_heads=2,
        )  # fmt: skip
        shapes = {"encoder.cross_attention.attention.self": (2, 2, 6, 10)}
        return hf.PerceiverModel(config), {"inputs": torch.randn(2, 10, 16)}, shapes
    if name == "Mixtral":
        config = hf.MixtralConfig(num_local_experts=4, **grouped)
        return (
            hf.MixtralForCausalLM(config),
            ids,
            {f"model.layers.{i}.self_attn": (2, 4, T, T) for i in (0, 1)},
        )
    if name == "ViT":
        config = hf.ViTConfig(image_size=16, patch_size=4, **small)
        return hf.ViTModel(config), image, {"layers.1.attention": (2, 3, 17, 17)}
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=16, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    inputs = torch.randn(2, 3, 16, 16), torch.tensor([3, 5])
    return model, inputs, {"mid_block.attentions.0": (2, 4, 64, 64)}


LIBRARY = ["Longformer", "gpt-oss", "Swin", "SigLIP", "T5", "Perceiver", "Mixtral", "ViT", "U-Net"]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_model_of_a_library_is_seen_and_stays_as_it_was(name):
    model, inputs, shapes = seeded(lambda: library(name))
    before = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    state = torch.random.get_rng_state()
    observer = Observer(model.train())
    found = observer.look(inputs)
    assert observer.left == {}
    for site, shape in shapes.items():
        weights = found[site].weights[..., : shape[-1]]
        assert weights.shape == shape
    for seen in found.values():
        rows = ~np.isnan(seen.weights).all(-1)
        np.testing.assert_allclose(np.nansum(seen.weights, -1)[rows], 1, atol=1e-4)
    assert [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    ] == before
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_router_of_a_mixture_of_experts_is_no_attention():
    model, inputs, shapes = seeded(lambda: library("Mixtral"))
    assert list(attention_of(model, inputs)) == list(shapes)


class Routed(nn.Module):
    """A block whose gate weighs the outputs of three experts."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        each = torch.stack([expert(x) for expert in self.experts], -2)
        return x + (self.gate(x).softmax(-1).unsqueeze(-1) * each).sum(-2)


def test_the_routers_of_later_blocks_are_no_attention_either():
    with pytest.raises(InputError):
        attention_of(nn.Sequential(Routed(), Routed(), Routed()), torch.randn(2, 10, 8))


class Difference(nn.Module):
    """A difference of two softmaxes, some of whose weights are negative."""

    def forward(self, x):
        return ((x @ x.mT).softmax(-1) - 0.8 * (x @ x.roll(1, -1).mT).softmax(-1)) @ x


def test_weights_below_zero_are_left_out_with_a_sentence():
    torch.manual_seed(0)
    with pytest.raises(InputError, match=r"is left out: some of its weights are negative \(-0\.\d\d\)"):
        attention_of(Difference(), torch.randn(2, 6, 4))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Longformer", lambda weights: weights[:, :, :T, :5]),
        ("T5", lambda weights: weights),
        ("ViT", lambda weights: weights),
    ],
)
def test_weights_equal_those_that_the_library_returns(name, shown):
    model, inputs, _ = seeded(lambda: library(name))
    found = attention_of(model, inputs)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model.eval()(**inputs, output_attentions=True)
    given = output.encoder_attentions if name == "T5" else output.attentions
    for weights, truth in zip(found.values(), given, strict=False):  # the encoder comes first
        np.testing.assert_allclose(shown(weights), truth.numpy(), atol=1e-6)


class Decoded(nn.Module):
    """A Llama that reads four tokens at once and the others one by one, from its cache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        past = self.model(ids[:, :4], attention_mask=mask[:, :4], use_cache=True).past_key_values
        for i in range(4, ids.shape[1]):
            one = ids[:, i : i + 1]
            last = self.model(one, attention_mask=mask[:, : i + 1], past_key_values=past, use_cache=True)
        return last.last_hidden_state


@pytest.mark.filterwarnings("ignore")
def test_heads_that_share_keys_stay_heads_while_a_padded_batch_is_decoded():
    import transformers as hf

    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 20}
    model = seeded(
        lambda: hf.LlamaModel(hf.LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **sizes))
    )
    mask = torch.ones_like(IDS)
    mask[0, :2] = 0
    found = {}
    for how in ("eager", "sdpa"):
        model.set_attn_implementation(how)
        found[how] = attention_of(Decoded(model), (IDS, mask))["model.layers.0.self_attn#2"]
    assert found["sdpa"].shape == (B, 4, T - 4, T)
    np.testing.assert_allclose(found["sdpa"], found["eager"], atol=1e-6)
