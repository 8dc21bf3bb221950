"""How a file may write a package of MindSpore's: by what it imports, or by an import to add."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

from isograd.knowledge.rewrite import PACKAGES

#: What `import mindspore` alone makes reachable.
_WITH_MINDSPORE = frozenset(("nn", "ops", "mint", "amp"))
#: What binds its `name`.
_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)


@dataclass(frozen=True)
class Spelling:
    """A package as the file writes it, and the import that this needs, or an empty text."""

    name: str
    statement: str = ""


class Imports:
    """The names of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._taken = _taken(tree)
        self._bound = self._bindings()

    def spelling(self, short: str) -> Spelling | None:
        """How to write the package that templates write as `short`; None where nothing is free."""
        package = PACKAGES[short]
        if package in self._bound:
            return Spelling(self._bound[package])
        parent, _, leaf = package.rpartition(".")
        if parent == "mindspore" and parent in self._bound and leaf in _WITH_MINDSPORE:
            return Spelling(f"{self._bound[parent]}.{leaf}")
        if not self._taken[short]:
            if leaf == short and parent:
                return Spelling(short, f"from {parent} import {leaf}")
            return Spelling(short, f"import {package} as {short}")
        root = package.partition(".")[0]
        if self._taken[root]:
            return None
        return Spelling(package, f"import {package}")

    def resolve(self, name: str) -> str:
        """The full name of a dotted name that begins with an imported package of MindSpore's."""
        for package, bound in self._bound.items():
            if name == bound or name.startswith(f"{bound}."):
                return package + name[len(bound) :]
        return name

    def _bindings(self) -> dict[str, str]:
        """Each imported package with its name, where nothing else binds that name."""
        bound: dict[str, str] = {}
        packages = set(PACKAGES.values())
        for statement in self._tree.body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    root = alias.name.partition(".")[0]
                    if alias.asname is None and root in packages:
                        bound.setdefault(root, root)
                    name = alias.asname or alias.name
                    if alias.name in packages:
                        bound.setdefault(alias.name, name)
            elif isinstance(statement, ast.ImportFrom) and not statement.level:
                for alias in statement.names:
                    full = f"{statement.module}.{alias.name}"
                    if full in packages:
                        bound.setdefault(full, alias.asname or alias.name)
        imported = _taken(self._tree, only_imports=True)
        return {
            package: name
            for package, name in bound.items()
            if self._is_only(name.partition(".")[0], package, imported)
        }

    def _is_only(self, name: str, package: str, imported: Counter[str]) -> bool:
        """Whether only imports bind the name; several may, if all import below the same package."""
        stored = _taken(self._tree, only_stores=True)
        if stored[name]:
            return False
        return imported[name] == 1 or name == package.partition(".")[0]


def _taken(
    tree: ast.Module, *, only_imports: bool = False, only_stores: bool = False
) -> Counter[str]:
    """How often each name is bound or used."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not only_stores:
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] += 1
        elif only_imports:
            continue
        elif isinstance(node, ast.Name):
            if not only_stores or not isinstance(node.ctx, ast.Load):
                found[node.id] += 1
        elif isinstance(node, ast.arg):
            found[node.arg] += 1
        elif isinstance(node, _NAMED) and node.name:
            found[node.name] += 1
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] += 1
    return found


def place_for_import(tree: ast.Module) -> tuple[int, bool]:
    """After which line (from 1; 0 is the beginning) an import goes, and whether one stands there.

    It is the last import of the file's head: its docstring and imports, before anything else.
    """
    line, is_behind_import = 0, False
    for number, statement in enumerate(tree.body):
        assert statement.end_lineno is not None
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            line, is_behind_import = statement.end_lineno, True
        elif number == 0 and isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                line = statement.end_lineno
        elif not isinstance(statement, (ast.If, ast.Try)):
            break
    if not line and tree.body:
        first = tree.body[0]
        decorators = getattr(first, "decorator_list", [])
        line = min(part.lineno for part in (first, *decorators)) - 1
    return line, is_behind_import
