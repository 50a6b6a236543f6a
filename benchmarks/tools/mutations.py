"""Mutation testing: random single changes of the code, each checked by the tests that mirror its file.

python -m benchmarks.tools.mutations [--count 60] [--seed 0] [--first 0] [--minutes 10]

Prints one line per change: killed or SURVIVED, and the change. Works in a copy of the tree and takes about a
minute per change.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.server import ROOT

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


BESIDES = {
    "config": ["tests/model", "tests/training"],
    "pages/inside": ["tests/pages/explanations"],
    "pages/data": ["tests/pages/own_data"],
    "pages/ask": ["tests/pages/questions"],
    "pages/masks": ["tests/pages/explanations"],
    "pages/stream": ["tests/stream"],
    "pages/player": ["tests/player"],
    "pages/presentation": ["tests/pages/test_stories.py"],
    "pages/controls": ["tests/pages/test_race.py", "tests/pages/test_own_model.py"],
}
"""Tests of a folder or file that are not named after it."""
WIRING = ["tests/pages/shared", "tests/pages/controls"]


@dataclass(frozen=True)
class Mutation:
    """One expression of one file, and the text that replaces it."""

    path: Path
    node: ast.expr
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.node.lineno}: {ast.unparse(self.node)}  ->  {self.text}"

    def applied(self, source: str) -> str:
        """Return the file's text with this change."""
        lines = source.encode().splitlines(keepends=True)  # columns are counted in bytes
        first, last = self.node.lineno - 1, (self.node.end_lineno or 0) - 1
        head = lines[first][: self.node.col_offset]
        tail = lines[last][self.node.end_col_offset :]
        lines[first : last + 1] = [head + f"({self.text})".encode() + tail]
        return b"".join(lines).decode()


def code(node: ast.AST) -> Iterator[ast.expr]:
    """Yield every expression that runs, except f-strings (whose positions Python 3.11 does not give)."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                if isinstance(child, ast.expr):
                    yield child
                yield from code(child)


def changes(node: ast.expr) -> Iterator[str]:
    """Yield the source texts that replace one operator, constant or condition."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        fields = {**dict(ast.iter_fields(node)), "op": SWAPS[type(node.op)]()}
        yield ast.unparse(type(node)(**fields))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        ops = [SWAPS[type(node.ops[0])](), *node.ops[1:]]
        yield ast.unparse(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.unparse(ast.IfExp(node.test, node.orelse, node.body))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield repr(not node.value if isinstance(node.value, bool) else node.value + 1)


def mutations(path: Path) -> list[Mutation]:
    """Return all changes of a file, in reading order."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return [Mutation(path, node, text) for node in code(tree) for text in changes(node)]


def tests_of(path: Path) -> list[str]:
    """Return the tests named after a file and its folders, those in `BESIDES`, and `WIRING`."""
    parts = path.with_suffix("").parts
    inside = parts[1:] if parts[0] == "transformer" else parts
    paths = [*BESIDES.get(inside[0], ()), *BESIDES.get("/".join(inside[:2]), ())]
    for depth in range(2 if inside[0] == "pages" else 1, len(inside) + 1):
        at, name = ROOT / "tests" / Path(*inside[: depth - 1]), inside[depth - 1]
        paths = [str(one.relative_to(ROOT)) for one in [*at.glob(f"test_{name}*.py"), at / name]] + paths
    return [path for path in dict.fromkeys([*paths, *WIRING]) if (ROOT / path).exists()]


def survives(mutation: Mutation, tree: Path, minutes: float) -> bool:
    """Return whether every test passes with this change."""
    changed = tree / mutation.path
    before = changed.read_text(encoding="utf-8")
    changed.write_text(mutation.applied(before), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", "-n", "0"]
    command += tests_of(mutation.path)
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, timeout=60 * minutes, check=False)
    except subprocess.TimeoutExpired:
        return False  # a test that does not end detects the change
    finally:
        changed.write_text(before, encoding="utf-8")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="go on with this one")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the tests of one change")
    arguments = parser.parse_args()
    files = sorted(
        p.relative_to(ROOT) for room in ("transformer", "pages") for p in (ROOT / room).rglob("*.py")
    )
    every = [mutation for path in files for mutation in mutations(path)]
    chosen = random.Random(arguments.seed).sample(every, arguments.count)
    n_survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        for i, mutation in enumerate(chosen[arguments.first :], arguments.first):
            survived = survives(mutation, tree, arguments.minutes)
            n_survived += survived
            sys.stdout.write(f"{i:3d} {'SURVIVED' if survived else 'killed  '} {mutation}\n")
            sys.stdout.flush()
    return 1 if n_survived else 0


if __name__ == "__main__":
    sys.exit(main())
