"""An experiment as one short PyTorch script that a student reads in one sitting and runs without the app."""

from __future__ import annotations

from string import Template

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.exports.script_template import TEMPLATE

_WRITTEN: dict[str, tuple[object, ...]] = {
    "topology": ("encoder-decoder",),
    "score_scale": ("sqrt_d_head", "sqrt_d_model"),
    "norm_placement": ("pre", "post", "branch"),
    "norm": ("layer", "scalar"),
    "activation": ("relu", "leaky_relu", "gelu"),
    "embedding_scale": ("none", "encoder", "both"),
    "positions": ("sinusoid", "learned", "none"),
    "embedding_tables": ("two", "one"),
    "causal_mask": (True,),
    "padding_mask": (True,),
    "mask_fill": ("-inf",),
    "initialisation": ("xavier", "pytorch", "normal"),
    "task": ("reverse",),
    "examples": (None,),
    "tokenizer": ("characters",),
    "optimizer": ("adamw", "adam"),
    "schedule": ("linear", "cosine", "constant"),
    "decoding": ("greedy",),
    "tensorboard": (False,),
}
"""Values that the template has lines for. Another one is refused: a script that ignores it would be wrong."""
_AUTO = '"cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"'
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def script(config: RunConfig) -> str:
    """A Python file that trains the model of this configuration with PyTorch alone, and says what it learned.

    Raises:
        InputError: the script has no lines for one of the settings.
    """
    settings = {**vars(config.model), **vars(config.train)}
    for name, written in _WRITTEN.items():
        if settings[name] not in written:
            raise InputError(
                f"{name}={settings[name]!r} cannot be written as a script yet; "
                f"choose {' or '.join(map(str, written))}.",
                name,
            )
    return Template(_kept(TEMPLATE, _conditions(config))).substitute(_values(config))


def _kept(template: str, conditions: dict[str, bool]) -> str:
    """The template without the lines, and what is indented under them, whose conditions do not hold."""
    lines: list[str] = []
    left_out: int | None = None  # indentation of the line that was left out last, while we are under it
    for whole in template.splitlines():
        line, _, condition = whole.partition("  #? ")
        if not line:
            lines.append(line)
            continue
        indentation = len(line) - len(line.lstrip())
        if left_out is not None and indentation > left_out:
            continue
        holds = all(conditions[name.lstrip("!")] != name.startswith("!") for name in condition.split())
        left_out = None if holds else indentation
        if holds:
            most = 1 if indentation else 2
            while lines[-most - 1 :] == [""] * (most + 1):  # empty lines around what was left out
                lines.pop()
            lines.append(line)
    return "\n".join(lines) + "\n"


def _conditions(config: RunConfig) -> dict[str, bool]:
    """What a line of the template may depend on."""
    model, train = config.model, config.train
    dropped = set(model.dropout_on) if model.dropout else set()
    return {
        "by_head": model.score_scale == "sqrt_d_head",
        "scalar": model.norm == "scalar",
        "pre": model.norm_placement == "pre",
        "post": model.norm_placement == "post",
        "branch": model.norm_placement == "branch",
        "final_norm": model.final_norm,
        "positions": model.positions != "none",
        "sinusoid": model.positions == "sinusoid",
        "learned": model.positions == "learned",
        "one_table": model.embedding_tables == "one",
        "padding_row": model.padding_row,
        "pytorch": model.initialisation == "pytorch",
        "xavier": model.initialisation == "xavier",
        "normal": model.initialisation == "normal",
        "embedding_std": model.embedding_std is not None,
        "dropout": bool(dropped),
        "drop_embedding": "embedding" in dropped,
        "drop_weights": "attention_weights" in dropped,
        "drop_feed_forward": "feed_forward" in dropped,
        "drop_residual": "residual" in dropped,
        # A residual branch too: nothing is dropped twice.
        "drop_encoder_attention": "encoder_attention" in dropped and "residual" not in dropped,
        "pad_to": train.pad_to is not None,
        "warmup": train.warmup_steps > 0,
        "linear": train.schedule == "linear",
        "cosine": train.schedule == "cosine",
        "constant": train.schedule == "constant",
        "clip": train.clip is not None,
        "label_smoothing": train.label_smoothing > 0,
        "goal": train.goal is not None,
    }


def _values(config: RunConfig) -> dict[str, object]:
    """What stands for each `$name` of the template."""
    model, train, conditions = config.model, config.train, _conditions(config)
    settings: dict[str, object] = {**vars(config), **vars(model), **vars(train)}
    # Whatever subclass of float a number came as, it is written as Python writes it.
    numbers = {name: repr(float(v)) if isinstance(v, float) else v for name, v in settings.items()}
    hidden = f"F.{model.activation}(self.widen(x))"
    branch = "branch(self.norm(x))" if conditions["pre"] else "branch(x)"
    attention = "self.attention(y, y, mask)"
    scale = " * math.sqrt(D_MODEL)"
    table = {"sinusoid": "positions", "learned": "learned_positions.weight", "none": None}[model.positions]
    return {
        **numbers,
        "drawn": "Words, first weights and dropout" if conditions["dropout"] else "Words and first weights",
        "recipe": ascii(config.recipe),  # free text: it must not leave its comment
        "device": _AUTO if config.device == "auto" else f'"{config.device}"',
        "max_len": max(2 * train.max_letters + 2, train.pad_to or 0),
        "warmup_steps": min(train.warmup_steps, train.steps),
        "beta_1": float(train.betas[0]),
        "beta_2": float(train.betas[1]),
        "qkv_bias": "" if model.qkv_bias else ", bias=False",
        "output_bias": "" if model.output_bias else ", bias=False",
        "norm": "ScalarNorm()" if conditions["scalar"] else "nn.LayerNorm(D_MODEL, eps=NORM_EPS)",
        "hidden": f"self.dropout({hidden})" if conditions["drop_feed_forward"] else hidden,
        "branch_of_x": f"self.dropout({branch})" if conditions["drop_residual"] else branch,
        "attention_of_y": f"self.dropout({attention})" if conditions["drop_encoder_attention"] else attention,
        "even_width": "[:, :D_MODEL]" if model.d_model % 2 else "",
        "src_scale": scale if model.embedding_scale in ("encoder", "both") else "",
        "tgt_scale": scale if model.embedding_scale == "both" else "",
        "src_positions": f" + self.{table}[: src.size(1)]" if table else "",
        "tgt_positions": f" + self.{table}[: tgt.size(1)]" if table else "",
        "optimizer": {"adamw": "torch.optim.AdamW", "adam": "torch.optim.Adam"}[train.optimizer],
        "smoothing": ", label_smoothing=LABEL_SMOOTHING" if conditions["label_smoothing"] else "",
        "length_parameter": ", length=None" if conditions["pad_to"] else "",
        "length_argument": ", PAD_TO" if conditions["pad_to"] else "",
        "word": _word(train.min_letters, train.max_letters),
    }


def _word(shortest: int, longest: int) -> str:
    """A word to show at the end, of a length that is trained on and easy to print."""
    for word in ("banana", "tiger", "cat", "playground", "watermelon"):
        if shortest <= len(word) <= longest:
            return word
    return (2 * _LETTERS)[:shortest]
