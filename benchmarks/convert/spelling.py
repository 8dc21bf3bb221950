"""Does a port change with what does not matter: a comment, a local name, a function's, a file's?

    python benchmarks/convert/spelling.py FOLDER… [--files 100] [--seed 0]

Of the Python files below the folders that use torch, each gets five mutations, one at a time: a
comment full of words of the trade, a docstring, a local name, a function's name, the file's name.
The file is converted alone, before and after.  Both ports have to be the same once the mutation is
undone in the second.  Names that Python or torch know (`self`, `forward`, keyword arguments, what
the file's texts hold) are not renamed.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isograd.convert import convert_path
from isograd.scan.names import torch_names

COMMENT = "# see .weight and .bias in the paper: loss.backward(), Dropout, train, inplace=True, fft"
#: Names that mean something to Python, torch or the project, wherever they stand.
_KEPT = frozenset(("self", "cls", "forward", "ctx", "r", "b", "f", "u", *dir(builtins)))
_NEW = "renamed_thing"


@dataclass(frozen=True)
class Mutation:
    """A text that differs from a file's in one respect, and how to undo it in a port."""

    kind: str
    text: str
    old: str = ""
    file: str = "net.py"


def mutations(text: str, chance: random.Random) -> Iterator[Mutation]:
    """One of each kind that a file allows."""
    lines = text.split("\n")
    starts = [node.lineno for node in ast.parse(text).body]
    at = chance.choice(starts) - 1
    yield Mutation("comment", "\n".join([*lines[:at], COMMENT, *lines[at:]]))
    tree = ast.parse(text)
    local, functions = _local_names(tree, text), _function_names(tree, text)
    for kind, names in (("local name", local), ("function", functions)):
        if names:
            old = chance.choice(sorted(names))
            yield Mutation(kind, _renamed(text, old, _NEW), old)
    yield Mutation("file", text, file="train_weights.py")
    behind = chance.choice(lines[:at] or [""])
    place = lines.index(behind)
    if behind.strip() and not behind.rstrip().endswith(("\\", '"""', "'''")):
        changed = [*lines[:place], f"{behind}  {COMMENT}", *lines[place + 1 :]]
        yield Mutation("comment behind", "\n".join(changed))


def _local_names(tree: ast.Module, text: str) -> set[str]:
    """Names that functions bind, and that are nothing else anywhere in the file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found |= {
                part.id
                for part in ast.walk(node)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
    return found - _other_uses(tree, text, of_names=False)


def _function_names(tree: ast.Module, text: str) -> set[str]:
    """Names of functions of the file that are nothing else; methods are others' interface."""
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found - _other_uses(tree, text, of_names=True)


def _other_uses(tree: ast.Module, text: str, *, of_names: bool) -> set[str]:
    """What a name may be beside a name: an attribute, an argument, a part of a text, an import."""
    kept = set(_KEPT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            kept.add(node.attr)
        elif (isinstance(node, ast.keyword) and node.arg) or isinstance(node, ast.arg):
            kept.add(node.arg)
        elif isinstance(node, ast.alias):
            kept |= {node.name, node.asname or node.name}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            kept |= set(re.findall(r"\w+", node.value))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            kept |= set(node.names)
        elif isinstance(node, ast.ClassDef):
            kept.add(node.name)
            kept |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not of_names:
            kept.add(node.name)
        elif of_names and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            kept.add(node.id)
    for statement in tree.body if not of_names else ():
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            kept |= {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
    return kept | set(torch_names().members_of("torch")) & _words(text)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![\w.]){old}(?!\w)", new, text)


def port_of(text: str, file: str = "net.py") -> tuple[str, list[str]]:
    """The port of one file, with what was found."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / file
        path.write_text(text, encoding="utf-8")
        report = convert_path(path, Path(name) / "out")
        port = (Path(name) / "out" / file).read_text(encoding="utf-8")
    return port, [f"{f.line} {f.code} {f.message}" for f in report.findings]


def undone(port: str, mutation: Mutation) -> str:
    """A mutated file's port as it would be without the mutation."""
    port = re.sub(rf"(?m)^[ \t]*{re.escape(COMMENT)}\n", "", port)
    port = re.sub(rf" *{re.escape(COMMENT)}", "", port)
    return _renamed(port, _NEW, mutation.old) if mutation.old else port


def differing(text: str, chance: random.Random) -> Iterator[tuple[Mutation, str]]:
    """The mutations of a file, each with the first line that changed beside it; empty if none."""
    before = _settled(port_of(text)[0])
    for mutation in mutations(text, chance):
        after = _settled(undone(port_of(mutation.text, mutation.file)[0], mutation))
        pairs = zip(before.split("\n"), after.split("\n"), strict=False)
        first = next(
            (f"{one.strip()} / {other.strip()}" for one, other in pairs if one != other), ""
        )
        yield mutation, first if before != after else ""


def _settled(port: str) -> str:
    return re.sub(r"[ \t]+\n", "\n", port)


def main() -> int:
    """Print what changed more than it should, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    paths = sorted(path for folder in options.folders for path in folder.rglob("*.py"))
    chance.shuffle(paths)
    counts: Counter[str] = Counter()
    done = 0
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="ignore")
        if done == options.files or "torch" not in text or not 500 < len(text) < 60_000:
            continue
        done += 1
        for mutation, changed in differing(text, chance):
            counts["changed" if changed else "same"] += 1
            if changed:
                print(f"{path} {mutation.kind} {mutation.old}: {changed}", flush=True)
    print(f"{done} files: {dict(counts)}")
    return 1 if counts["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
