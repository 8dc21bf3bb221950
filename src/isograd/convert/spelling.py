"""How a converted file writes MindSpore's packages: by what it imports, or by an import to add."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.knowledge.marks import MARKED, mark
from isograd.knowledge.rewrite import PACKAGES

#: The package of the generated module with compositions.
COMPOSITES = "composites"
#: What `import mindspore` alone makes reachable.
_WITH_MINDSPORE = frozenset(("nn", "ops", "mint", "amp"))


@dataclass
class Spelling:
    """The names of one file, and what it needs beyond its own imports.

    taken: names that the file binds otherwise than by imports that go away.  bound: packages that
    its remaining imports bind.  module: name of the generated module beside it, and how many
    packages up it lies (0: a plain import).
    """

    taken: Collection[str]
    bound: dict[str, str] = field(default_factory=dict)
    module: str = "torch_semantics"
    level: int = 0
    statements: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    #: Compositions that work by being there, which no text names.
    present: set[str] = field(default_factory=set)
    #: Names of templates that something else means in this project.
    instead: Mapping[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def spelled(self, code: str) -> str:
        """Code with marked packages as this file writes them; notes the imports that it needs."""

        def write(found: re.Match[str]) -> str:
            name = self.instead.get(f"{found[1]}.{found[2]}", "")
            package, name = name.split(".") if name else (found[1], found[2])
            if package == COMPOSITES:
                self.used.add(name)
            return f"{self.package(package)}.{name}"

        return MARKED.sub(write, code)

    def name(self, dotted: str) -> str:
        """A name such as `nn.Cell` as this file writes it."""
        return self.spelled(mark(dotted))

    def need(self, composition: str) -> None:
        """Have the generated module imported with a runtime function that works by being there."""
        self.name(f"{COMPOSITES}.{composition}")
        self.present.add(composition)

    def package(self, short: str) -> str:
        """The package that templates write as `short`."""
        if short not in self._names:
            self._names[short] = self._choose(short)
        return self._names[short]

    def _choose(self, short: str) -> str:
        if short == COMPOSITES:
            return self._generated()
        package = PACKAGES[short]
        if package in self.bound:
            return self.bound[package]
        parent, _, leaf = package.rpartition(".")
        if parent == "mindspore" and leaf in _WITH_MINDSPORE and short in self.taken:
            return f"{self.package('ms')}.{leaf}"
        name = self._free(short, package.replace(".", "_"))
        if parent and leaf == name:
            self.statements[short] = f"from {parent} import {leaf}"
        elif parent:
            self.statements[short] = f"from {parent} import {leaf} as {name}"
        else:
            renamed = "" if name == package else f" as {name}"
            self.statements[short] = f"import {package}{renamed}"
        return name

    def _generated(self) -> str:
        name = self._free("compat", "torch_compat")
        if self.level:
            self.statements[COMPOSITES] = f"from {'.' * self.level} import {self.module} as {name}"
        else:
            self.statements[COMPOSITES] = f"import {self.module} as {name}"
        return name

    def unused(self, name: str) -> str:
        """A name that nothing else in the file has."""
        return self._free(name, f"{name}_")

    def _free(self, first: str, second: str) -> str:
        for name in (first, second):
            if name not in self.taken:
                return name
        while second in self.taken:
            second += "_"
        return second

    def settle(self, text: str) -> None:
        """Keep the imports and runtime functions that the text does use."""
        for short in list(self.statements):
            stays = short == COMPOSITES and self.present
            if not stays and next(members_read(self._names[short], text), None) is None:
                del self.statements[short], self._names[short]
        alias = self._names.get(COMPOSITES)
        read = set() if alias is None else set(members_read(alias, text))
        self.used &= read | self.present

    def imports(self) -> list[str]:
        """The import statements to add: MindSpore's first, the generated module last."""
        own = self.statements.get(COMPOSITES)
        plain = [text for text in self.statements.values() if text != own]
        several: dict[str, list[str]] = {}
        lines = [text for text in plain if text.startswith("import")]
        for text in plain:
            if text.startswith("from"):
                home, _, name = text.partition(" import ")
                several.setdefault(home, []).append(name)
        lines = sorted(lines)
        lines += [f"{home} import {', '.join(sorted(names))}" for home, names in several.items()]
        return [*lines, own] if own else lines


def members_read(package: str, text: str) -> Iterator[str]:
    """What a text reads of a package; the pattern begins with a text, which is found quickly."""
    pattern = rf"{package}(?<!\w{package})\.(\w*)"
    return (found[1] for found in re.finditer(pattern, text))


def bound_packages(module: ast.Module, dropped: Collection[str]) -> dict[str, str]:
    """The packages of templates that a file's top level imports, by the name that it gives them."""
    found: dict[str, str] = {}
    packages = set(PACKAGES.values())
    for statement in module.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name in packages and (alias.asname or "." not in alias.name):
                    found.setdefault(alias.name, alias.asname or alias.name)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                full = f"{statement.module}.{alias.name}"
                if full in packages:
                    found.setdefault(full, alias.asname or alias.name)
    return {package: name for package, name in found.items() if name not in dropped}
