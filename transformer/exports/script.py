"""An experiment as one short PyTorch script that a student reads in one sitting and runs without the app."""

from __future__ import annotations

from string import Template

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.exports.script_template import TEMPLATE
from transformer.tasks import completed

_WRITTEN: dict[str, tuple[object, ...]] = {
    "topology": ("encoder-decoder", "encoder-only", "decoder-only"),
    "precision": ("float32",),
    "score_scale": ("sqrt_d_head", "sqrt_d_model"),
    "norm_placement": ("pre", "post", "branch"),
    "norm": ("layer", "scalar"),
    "activation": ("relu", "leaky_relu", "gelu"),
    "embedding_scale": ("none", "encoder", "both"),
    "positions": ("sinusoid", "learned", "none"),
    "embedding_tables": ("two", "one"),
    "causal_mask": (None, True, False),
    "padding_mask": (True, False),
    "mask_fill": ("-inf", "-1e9"),
    "initialisation": ("xavier", "pytorch", "normal"),
    "tokenizer": ("auto", "characters", "words"),
    "optimizer": ("adamw", "adam"),
    "schedule": ("linear", "cosine", "constant"),
    "decoding": ("greedy",),
    "tensorboard": (False,),
}
"""Values that the template has lines for. Another one is refused: a script that ignores it would be wrong."""
_BY_TOPOLOGY: dict[str, dict[str, object]] = {
    "encoder-decoder": {
        "of_abc": "src [SOS] a b c [EOS], tgt [SOS] c b a, labels c b a [EOS]; tgt[i] is to answer "
        "labels[i].",
        "sep": "",
        "layer": "EncoderLayer",
        "what_it_does": "Reads a source and, given the target so far, predicts each next token.",
        "n_encoder": "N_ENCODER_LAYERS",
        "n_decoder": "N_DECODER_LAYERS",
        "n_looking": "N_DECODER_LAYERS",
        "stack": "decoder",
        "written": "tgt_embedding",
        "looking": "cross_attention",
        "told": "  # all places at once, each told the right letters before it",
        "row_writes": "row i writes the letter of column n - i; 0 is [SOS]",
        "mirrored_row": "i",
        "columns": "src[0]",
        "spelled": "written[1:]",
    },
    "encoder-only": {
        "of_abc": "ids [SOS] a b c [EOS], labels [PAD] c b a [EOS]; ids[i] becomes labels[i], [PAD] is "
        "nothing.",
        "sep": "",
        "layer": "EncoderLayer",
        "what_it_does": "Reads a word and predicts, in the place of each letter, that of the answer.",
        "n_encoder": "N_LAYERS",
        "n_looking": "N_LAYERS",
        "stack": "encoder",
        "written": "src_embedding",
        "looking": "attention",
        "told": "  # all places at once",
        "row_writes": "row i + 1 becomes that of column n - i; 0 is [SOS]",
        "mirrored_row": "i + 1",
        "columns": "columns",
        "spelled": "written",
    },
    "decoder-only": {
        "of_abc": "ids [SOS] a b c [SEP] c b a, labels c b a [EOS] from [SEP] on and before it [PAD], "
        "nothing.",
        "sep": ', "[SEP]"',
        "layer": "DecoderLayer",
        "what_it_does": "Reads a word, [SEP] and the answer so far in one, and predicts each next token.",
        "n_decoder": "N_LAYERS",
        "n_looking": "N_LAYERS",
        "stack": "decoder",
        "written": "tgt_embedding",
        "looking": "attention",
        "told": "  # all places at once, each told the right letters before it",
        "row_writes": "row n + 1 + i writes that of column n - i; 0 is [SOS]",
        "mirrored_row": "n + 1 + i",
        "columns": "columns[:-1]",
        "spelled": "columns[-len(rows) :]",
    },
}
"""What differs from one topology to another in the middle of a line."""
_PADDED = {
    "at_least": ", at_least",
    "pad_parameter": ", pad_to=0",
    "pad_src": ", pad_to",
    "pad_tgt": ", pad_to - 1",
    "pad_both": ", 2 * pad_to - 2",
    "pad_argument": ", PAD_TO",
}
"""What the script has where the length of batches is fixed."""
_ENDLESS = (
    "batches = ([draw_word(rng, MIN_LETTERS, held_out=False) for _ in range(BATCH_SIZE)] "
    "for _ in range(STEPS))"
)
_ONE_PASS = (
    "# One pass tells: writing alone goes wrong first where a token is wrong after the right ones before it."
)
_AUTO = '"cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"'
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def script(config: RunConfig) -> str:
    """A Python file that trains the model of this configuration with PyTorch alone, and says what it learned.

    Raises:
        InputError: the script has no lines for one of the settings.
    """
    _check(config)
    return Template(_kept(TEMPLATE, _conditions(config))).substitute(_values(config))


def script_problem(config: RunConfig) -> str | None:
    """Why there is no script of a configuration; None where there is one."""
    try:
        _check(config)
    except InputError as error:
        return str(error)
    return None


def _check(config: RunConfig) -> None:
    settings = {**vars(config.model), **vars(config.train)}
    if config.train.task != "reverse":
        raise InputError("The script is written for the reversal only, so far; choose that task.", "task")
    for name, written in _WRITTEN.items():
        if settings[name] not in written:
            raise InputError(
                f"{name}={settings[name]!r} cannot be written as a script yet; "
                f"choose {' or '.join(map(str, written))}.",
                name,
            )


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
    two, causal = model.topology == "encoder-decoder", model.masks["causal"]
    dropped = set(model.dropout_on) if model.dropout else set()
    alone = "encoder_attention" in dropped and "residual" not in dropped  # else it would be dropped twice
    return {
        "two": two,
        "encoder_only": model.topology == "encoder-only",
        "decoder_only": model.topology == "decoder-only",
        "reads": model.topology != "decoder-only",
        "writes": model.topology != "encoder-only",
        "causal": causal,
        "padding": model.padding_mask,
        "masked": causal or model.padding_mask,
        "optional": two and causal and not model.padding_mask,  # then only the decoder's own letters
        "one_pass": causal or model.topology == "encoder-only",
        "finite": train.examples is not None,
        "by_head": model.score_scale == "sqrt_d_head",
        "scalar": model.norm == "scalar",
        "pre": model.norm_placement == "pre",
        "post": model.norm_placement == "post",
        "branch": model.norm_placement == "branch",
        "final_norm": model.final_norm,
        "positions": model.positions != "none",
        "sinusoid": model.positions == "sinusoid",
        "learned": model.positions == "learned",
        "one_table": two and model.embedding_tables == "one",
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
        "drop_encoder_attention": alone and model.norm_placement != "branch",
        "drop_normed": alone and model.norm_placement == "branch",
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
    normed = "self.norm(branch(x))"
    normed_drops = conditions["drop_residual"] or conditions["drop_normed"]
    two, padding = conditions["two"], conditions["padding"]
    mask = ", mask" if (padding if two else conditions["masked"]) else ""
    attention = f"self.attention(y, y{mask})"
    scale = " * math.sqrt(D_MODEL)"
    alone = model.topology == "decoder-only"
    scaled = {
        "encoder": model.embedding_scale in ("encoder", "both"),
        "decoder": model.embedding_scale == "both" or (alone and model.embedding_scale == "encoder"),
    }
    table = {"sinusoid": "positions", "learned": "learned_positions.weight", "none": None}[model.positions]
    layout = _BY_TOPOLOGY[model.topology]
    fill = 'float("-inf")' if model.mask_fill == "-inf" else model.mask_fill
    nothing = f"e^{model.mask_fill} = 0: no weight at all"
    return {
        **numbers,
        "drawn": "Words, first weights and dropout" if conditions["dropout"] else "Words and first weights",
        "recipe": ascii(config.recipe),  # free text: it must not leave its comment
        "device": _AUTO if config.device == "auto" else f'"{config.device}"',
        "threads": config.threads or 1,
        "max_len": completed(config).model.max_len,
        "n_layers": model.n_layers(model.kinds[0]),
        **layout,
        "mask_parameter": (", mask=None" if conditions["optional"] else ", mask")
        if conditions["masked"]
        else "",
        "mask": mask,
        "self_mask": ", self_mask" if conditions["masked"] else "",
        "cross_mask": ", cross_mask" if padding else "",
        "fill_line": f"scores = scores.masked_fill(~mask, {fill})  # {nothing} where masked",
        "not_ahead": "  # nobody reads ahead"
        + (", where its own answer stands" if conditions["writes"] else ""),
        "endless": _ENDLESS,
        "one_pass": _ONE_PASS,
        "warmup_steps": min(train.warmup_steps, train.steps),
        "beta_1": float(train.betas[0]),
        "beta_2": float(train.betas[1]),
        "qkv_bias": "" if model.qkv_bias else ", bias=False",
        "output_bias": "" if model.output_bias else ", bias=False",
        "norm": "ScalarNorm()" if conditions["scalar"] else "nn.LayerNorm(D_MODEL, eps=NORM_EPS)",
        "hidden": f"self.dropout({hidden})" if conditions["drop_feed_forward"] else hidden,
        "branch_of_x": f"self.dropout({branch})" if conditions["drop_residual"] else branch,
        "normed_branch": f"self.dropout({normed})" if normed_drops else normed,
        "attention_of_y": f"self.dropout({attention})" if conditions["drop_encoder_attention"] else attention,
        "even_width": "[:, :D_MODEL]" if model.d_model % 2 else "",
        "src_scale": scale if scaled["encoder"] else "",
        "tgt_scale": scale if scaled["decoder"] else "",
        "ids_scale": scale if scaled[str(layout["stack"])] else "",
        "src_positions": f" + self.{table}[: src.size(1)]" if table else "",
        "tgt_positions": f" + self.{table}[: tgt.size(1)]" if table else "",
        "ids_positions": f" + self.{table}[: ids.size(1)]" if table else "",
        "optimizer": {"adamw": "torch.optim.AdamW", "adam": "torch.optim.Adam"}[train.optimizer],
        "smoothing": ", label_smoothing=LABEL_SMOOTHING" if conditions["label_smoothing"] else "",
        **{name: text if conditions["pad_to"] else "" for name, text in _PADDED.items()},
        "word": _word(train.min_letters, train.max_letters),
        "asked": _asked(config),
    }


def _asked(config: RunConfig) -> str:
    """The batch in which the word is asked: a model that sees its padding knows no other length than this."""
    word = _word(config.train.min_letters, config.train.max_letters)
    return f'["{word}"]' if config.model.padding_mask else f'["{word}", "a" * MAX_LETTERS]'


def _word(shortest: int, longest: int) -> str:
    """A word to show at the end, of a length that is trained on and easy to print."""
    for word in ("banana", "tiger", "cat", "playground", "watermelon"):
        if shortest <= len(word) <= longest:
            return word
    return (2 * _LETTERS)[:shortest]
