"""The rooms (packages and modules) of the project, and what each may import from the others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "transformer").rglob("*.py"))
APP = [path for path in [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))] if path.exists()]

# BASE: rooms that most rooms may import. MAY_IMPORT: for each room, the other rooms that it may import.
BASE = {"config", "errors", "shared"}
MAY_IMPORT = {
    "errors": set(),
    "config": {"errors"},
    "shared": {"errors", "insight"},
    "insight": set(),
    "model": BASE,
    "tasks": BASE,
    "figures": {"shared", "insight"},
    "decoding": BASE | {"model", "tasks"},
    "training": BASE | {"model", "tasks", "decoding"},
    "recording": BASE | {"model", "insight", "tasks", "decoding"},
    "storage": BASE | {"recording", "tasks", "insight"},
    "watching": BASE | {"recording", "storage", "insight", "figures", "exports"},
    "stories": BASE | {"tasks"},
    "runs": BASE | {"training", "recording", "storage", "tasks", "insight"},
    "asking": BASE | {"recording", "decoding", "insight", "model", "tasks"},
    "anatomy": BASE | {"asking", "recording", "insight", "model", "tasks", "training"},
    "player": BASE | {"recording", "insight", "figures"},
    "exports": BASE | {"recording", "insight", "figures", "player", "tasks", "anatomy"},
    "commands": BASE | {"runs", "storage", "recording", "training", "asking", "insight", "tasks", "exports"},
    "__main__": {"commands"},
    "__init__": BASE | {"model", "recording", "runs", "training", "watching"},
    "pages": BASE
    | {"runs", "recording", "storage", "asking", "anatomy", "exports", "figures", "insight", "tasks"}
    | {"decoding", "player", "stories"},
    "app": set(),
}
DRAWING = {"numpy", "plotly"}


def imports(path, source=None):
    """Return the dotted names of all modules that a file imports, also in functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8") if source is None else source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "import_module",
            "__import__",
        ):
            found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    return found


def room(path):
    """Return the room of a file: a folder or file of the package, `pages`, or `app`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "transformer" else parts[0]


def rooms_of(names):
    """Return the rooms of the package to which dotted names belong."""
    return {name.split(".")[1] for name in names if name.startswith("transformer.")}


def name(path):
    return str(path.relative_to(ROOT))


def test_imports_are_found_anywhere_in_a_file():
    source = (
        "import torch.nn as nn\nfrom transformer import train\n"
        "def late():\n    from transformer.model import layers\n"
        "if TYPE_CHECKING:\n    import streamlit\nimport_module('pages.train')"
    )
    assert imports(Path("x.py"), source) == {
        "torch.nn",
        "transformer",
        "transformer.train",
        "transformer.model",
        "transformer.model.layers",
        "streamlit",
        "pages.train",
    }
    assert len(PACKAGE) > 20


def offenders(paths, found):
    """Return what `found` finds in each of these files, by the name of the file; others are left out."""
    return {name(path): sorted(bad) for path in paths if (bad := set(found(path)))}


def test_a_room_imports_only_from_the_rooms_that_are_allowed():
    existing = {room(file) for file in PACKAGE} | set(MAY_IMPORT)

    def forbidden(path):
        return (rooms_of(imports(path)) & existing) - {room(path)} - MAY_IMPORT[room(path)]

    assert offenders(PACKAGE + APP, forbidden) == {}


def packages(path):
    """Return the names of the packages that a file imports."""
    return {module.split(".")[0] for module in imports(path)}


def test_the_package_does_not_import_the_app():
    assert offenders(PACKAGE, lambda path: packages(path) & {"streamlit", "app", "pages", "tests"}) == {}


def test_pages_import_neither_torch_nor_the_top_level_package():
    """The lazy names of the top-level package may bring torch; pages import from a room."""
    found = offenders(
        APP, lambda path: (packages(path) & {"torch", "tests"}) | imports(path) & {"transformer"}
    )
    assert found == {}


def test_the_server_imports_only_its_routes():
    found = imports(ROOT / "app.py") - {"streamlit"}
    assert all(module.startswith("pages.stream.") for module in found)


def test_insight_imports_only_numpy_and_figures_only_numpy_and_plotly():
    allowed = {"insight": {"numpy"}, "figures": DRAWING}
    ours = {"transformer", "__future__"} | set(sys.stdlib_module_names)
    paths = [path for path in PACKAGE if room(path) in allowed]
    assert offenders(paths, lambda path: packages(path) - ours - allowed[room(path)]) == {}


def ready_made(source):
    """Return the names of PyTorch's ready-made Transformers and attentions in a source."""
    tree, found = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # for getattr
    parts = r"(Transformer|MultiheadAttention|multi_head_attention_forward)\w*"
    return {n for n in found if re.fullmatch(parts, n)}  # a longer string, such as a title, is not a name


def test_ready_made_parts_are_found_in_a_source():
    assert ready_made("torch.nn.TransformerEncoder(nn.MultiheadAttention)") == {
        "TransformerEncoder",
        "MultiheadAttention",
    }
    assert ready_made("from torch.nn import Transformer as T") == {"Transformer"}
    assert ready_made("getattr(nn, 'TransformerDecoderLayer')") == {"TransformerDecoderLayer"}
    assert ready_made("class Transformer(nn.Module): pass") == set()


def test_no_ready_made_transformer_or_attention_is_used():
    def used(path):
        ours = {"Transformer"} if path.name == "__init__.py" else set()  # loaded lazily
        return ready_made(path.read_text(encoding="utf-8")) - ours

    assert offenders([path for path in PACKAGE if room(path) != "watching"], used) == {}


@pytest.mark.parametrize(
    "modules",
    [
        ["transformer"],
        ["transformer.config", "transformer.errors"],
        ["transformer.tasks", "transformer.insight.scores"],
        ["transformer.runs.registry", "transformer.runs.run"],
        ["transformer.__main__"],
    ],
    ids=lambda modules: modules[0],
)
def test_torch_is_not_loaded_before_it_is_needed(modules):
    code = f"import sys, {', '.join(modules)}; print(sorted({{'torch', 'streamlit'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_the_server_starts_without_modules_that_load_slowly_or_read_the_secrets():
    known = "{'torch', 'pandas', 'transformer', 'transformer.runs'} & set(sys.modules)"
    options = ["-W", "ignore", "-c", f"import sys, app; print(sorted({known}))"]
    done = subprocess.run(
        [sys.executable, *options], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


IMPORTS = """
import importlib, sys
from pathlib import Path

def hear(event, named):
    if event == "os.mkdir" or event == "open" and {*str(named[1])} & {*"wax+"}:
        written.append(str(named[0]))

written = []
sys.dont_write_bytecode = True
sys.addaudithook(hear)
for name in sys.argv[1:]:
    importlib.import_module(name)
print([name for name in written if Path(name).absolute().is_relative_to(Path.cwd())])
"""


def test_importing_a_module_writes_no_file_into_the_repository():
    paths = [*(ROOT / "transformer").rglob("*.py"), *(ROOT / "pages").glob("*/**/*.py")]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    programs = ("transformer.__main__", "transformer.exports.experiment")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORTS, *(name for name in modules if name not in programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_of_the_package_loads_and_an_unknown_name_raises():
    import transformer

    assert list(transformer.RECIPES) == ["default", "etienne", "bloem", "sengupta", "lin", "torres"]
    named = set(transformer.__all__) - {"RECIPES"}  # neither a class nor a function
    assert {made: getattr(transformer, made).__name__ for made in named} == {made: made for made in named}
    with pytest.raises(AttributeError, match="^module 'transformer' has no attribute 'Trasnformer'$"):
        _ = transformer.Trasnformer


HELP = """
import runpy, sys

for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    print(f"{name}: ", end="")
    try:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, name
"""


def test_every_benchmark_shows_its_help():
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
    done = subprocess.run(
        [sys.executable, "-c", HELP, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for name in names:
        shown = done.stdout.split(f"{name}: usage: ")[1].split(": usage: ")[0]
        assert "--seeds" in shown
