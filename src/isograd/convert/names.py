"""Which names of a file mean torch: by its imports, and by those of the project's files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from isograd.convert.tree import Tree
from isograd.scan.imports import absolute_name
from isograd.scan.names import TorchNames
from isograd.static_graph.scope import statements

#: Libraries whose public API is convertible name by name.
_OWN = ("torch", "torchvision", "torchaudio", "functorch", "einops")
#: Libraries that import torch: a port cannot use them as they are.
THIRD_PARTY = frozenset(
    Path(__file__).with_name("torch_packages.txt").read_text(encoding="utf-8").split()
)
#: Other libraries that say in their names what they need: rotary_embedding_torch, torchtyping.
_SAYS_TORCH = re.compile(r"(py)?torch\w+|\w*_(py)?torch(_\w*)?")
_IS_TORCH = re.compile(r"torch(?![\w.-])")


@dataclass
class ImportedNames:
    """Names that imports of torch bind in one file, with their full names.

    third: imports of other libraries that need torch, by statement.
    """

    torch: dict[str, str] = field(default_factory=dict)
    third: list[tuple[ast.Import | ast.ImportFrom, ast.alias, str, str]] = field(
        default_factory=list
    )
    stars: list[str] = field(default_factory=list)
    #: Imports from the project's own files of what they import from torch, by identity.
    borrowed: set[int] = field(default_factory=set)


def is_torch(name: str) -> bool:
    """Whether a dotted name begins with torch or one of its own libraries."""
    return name.partition(".")[0] in _OWN


@cache
def _requires_torch(root: str) -> bool:
    """Whether a library that is installed here says that it needs torch."""
    if root in sys.stdlib_module_names:
        return False
    try:
        needed = metadata.distribution(root).requires or []
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return False
    return any(_IS_TORCH.match(line) and "extra ==" not in line for line in needed)


def is_third_party(name: str) -> bool:
    """Whether a dotted name belongs to a library that needs torch."""
    root = name.partition(".")[0]
    if root in THIRD_PARTY or _SAYS_TORCH.fullmatch(root) or _requires_torch(root):
        return True
    parts = name.split(".")
    return any(".".join(parts[: i + 1]) in THIRD_PARTY for i in range(1, len(parts)))


class Index:
    """What each module of the project binds to torch by imports.

    The first reading fills it, imported modules first; the second, which has no order, asks.
    """

    def __init__(self, names: TorchNames, own: Mapping[str, object] | None = None) -> None:
        self.names = names
        self.modules: dict[str, dict[str, str]] = {}
        self.roots: set[str] = set(own or ())

    def note(
        self, module: ast.Module, name: str, package: str, canonical: Callable[[str], str]
    ) -> None:
        """Keep what a module binds for those that import it; arguments as of `read`."""
        imports = [
            node for node in statements(module) if isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        imports.sort(key=lambda node: (node.lineno, node.col_offset))
        self.modules[name] = self.read(imports, package, canonical).torch

    def read(
        self,
        imports: Iterable[ast.Import | ast.ImportFrom],
        package: str,
        canonical: Callable[[str], str] = str,
    ) -> ImportedNames:
        """The names that a file's imports bind, in their order.

        canonical: the one name of a module of the project's by what a file calls it.
        """
        found = ImportedNames()
        for node in imports:
            if isinstance(node, ast.Import):
                self._plain(node, found)
            else:
                self._from(node, package, canonical, found)
        return found

    def _plain(self, node: ast.Import, found: ImportedNames) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if root in self.roots:
                continue
            if is_torch(alias.name):
                name, full = (alias.asname, alias.name) if alias.asname else (root, root)
                found.torch[name] = self.names.canonical(full)
            elif is_third_party(alias.name):
                name, full = (alias.asname, alias.name) if alias.asname else (root, root)
                found.third.append((node, alias, name, full))

    def _from(
        self,
        node: ast.ImportFrom,
        package: str,
        canonical: Callable[[str], str],
        found: ImportedNames,
    ) -> None:
        base = absolute_name(package, node)
        if base is None:
            return
        root = base.partition(".")[0]
        is_own = bool(node.level) or root in self.roots
        for alias in node.names:
            name = alias.asname or alias.name
            if is_own:
                held = self.modules.get(canonical(base) or base, {})
                if alias.name == "*":
                    found.torch.update(
                        {key: full for key, full in held.items() if not key.startswith("_")}
                    )
                elif alias.name in held:
                    found.torch[name] = held[alias.name]
                    found.borrowed.add(id(alias))
            elif is_torch(base):
                if alias.name == "*":
                    found.stars.append(base)
                else:
                    found.torch[name] = self.names.canonical(f"{base}.{alias.name}")
            elif is_third_party(base) or is_third_party(f"{base}.{alias.name}"):
                found.third.append((node, alias, name, f"{base}.{alias.name}"))


def star_names(tree: Tree, imported: ImportedNames, names: TorchNames) -> None:
    """Give the names that `from torch import *` binds to those that the file reads."""
    for base in imported.stars:
        for node in tree.of(ast.Name):
            if node.id not in imported.torch:
                full = names.canonical(f"{names.canonical(base)}.{node.id}")
                if names.kind(full) not in ("", "m"):
                    imported.torch[node.id] = full


def resolve(node: ast.expr, tree: Tree, base: str, names: TorchNames) -> tuple[ast.expr, str]:
    """The part of a dotted chain that begins with `node` which names one thing of torch."""
    current = base
    while True:
        parent = tree.parents.get(node)
        if not (isinstance(parent, ast.Attribute) and parent.value is node):
            return node, current
        longer = names.canonical(f"{current}.{parent.attr}")
        kind = names.kind(current)
        if kind not in ("m", "") and not names.kind(longer):
            return node, current
        node, current = parent, longer
