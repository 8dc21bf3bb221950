"""What one file's scan gathers while it walks, shared by everything that reads its code."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Protocol

from isograd.scan import behaviour
from isograd.scan.names import TorchNames
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Namespace, Scope, Value
from isograd.static_graph.scope import FileScope

#: How a name of torch is used.
CALL = "call"
REFERENCE = "reference"
ATTRIBUTE = "attribute"
#: The receiver is not known: the name alone says too little.
UNSURE = "unsure"

#: line, column (0-based, in bytes), api, how.
RawUse = tuple[int, int, str, str]


@dataclass(slots=True)
class ModuleSummary:
    """What other files of the project may import from one file.

    methods: of its own classes, the fewest and most arguments that each takes.
    imported: the modules of the project from which the file imports.
    """

    name: str
    exports: dict[str, Value] = field(default_factory=dict)
    public: tuple[str, ...] | None = None
    methods: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    is_package: bool = False
    imported: dict[str, ModuleSummary] = field(default_factory=dict)


class Project(Protocol):
    """Where names that are imported come from."""

    def module(self, name: str) -> ModuleSummary | None:
        """The summary of a module of the project, as far as it has been read; None if foreign."""

    def has(self, name: str) -> bool:
        """Whether the project has such a module or package."""

    def read_below(self, name: str) -> dict[str, ModuleSummary]:
        """The modules of a package that have been read."""

    def scope(self, name: str) -> FileScope | None:
        """The definitions of a module of the project, for the static graph; None if foreign."""


class HazardListener(Protocol):
    """What looks for hazards hears of the code in the order in which it is read."""

    dropped: ast.expr | None

    def call(
        self,
        node: ast.Call,
        api: str,
        receiver: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> None:
        """A call of an API of torch."""

    def condition(self, node: ast.AST, value: Value) -> None:
        """A branch on a value."""

    def subscript(self, node: ast.Subscript, value: Value, bounds: list[Value]) -> None:
        """Indexing into a tensor, with the values of the index or of the bounds of its slices."""

    def class_made(self, node: ast.ClassDef, info: ClassInfo) -> None:
        """A class whose bases are known."""

    def attribute_set(self, node: ast.AST, owner: ClassInfo, name: str, value: Value) -> None:
        """`self.name = value`."""

    def in_place(self, node: ast.AugAssign, value: Value) -> None:
        """`name += …` on a value that is known."""


@dataclass(slots=True)
class State:
    """The walk of one file."""

    names: TorchNames
    project: Project
    summary: ModuleSummary
    package: str
    listener: HazardListener
    text: str
    uses: list[RawUse] = field(default_factory=list)
    #: What the file imports, by the first part of the name.
    roots: set[str] = field(default_factory=set)
    env: Scope = field(default_factory=lambda: Scope(None))
    functions: list[FunctionInfo] = field(default_factory=list)
    owner: ClassInfo | None = None
    origin: tuple[int, int] | None = None
    depth: int = 0
    #: Classes of the file, where others that import them are known to mix them into modules.
    mixed: dict[str, ClassInfo] = field(default_factory=dict)

    @property
    def has_arrays(self) -> bool:
        """Whether the file imports a library whose arrays have methods of torch's names."""
        return not self.roots.isdisjoint(behaviour.ARRAY_LIBRARIES)

    @property
    def is_for_mindspore(self) -> bool:
        """Whether the file imports MindSpore and nothing of torch: its tensors are not torch's."""
        return "mindspore" in self.roots and self.roots.isdisjoint(behaviour.TORCH_LIBRARIES)

    def may_be_own(self, method: str, given: int) -> bool:
        """Whether a class of the file, or of one that it imports, can be asked like this."""
        return any(
            fewest <= given <= most
            for module in (self.summary, *self.summary.imported.values())
            for fewest, most in module.methods.get(method, ())
        )


def qualified(state: State, name: str) -> Value:
    """What an absolute dotted name means: torch, the project, or another library."""
    root = name.partition(".")[0]
    if state.project.has(name):
        return Namespace(name)
    if state.project.has(root):
        return project_member(state, name)
    if root in ("torch", "torchvision", "einops"):
        return Api(state.names.canonical(name))
    return Foreign(name)


def project_member(state: State, name: str) -> Value:
    """A name within a module of the project; None where it is not known."""
    module_name, _, attribute = name.rpartition(".")
    summary = state.project.module(module_name)
    if summary is None:
        return None
    if attribute in summary.exports:
        return summary.exports[attribute]
    return Namespace(name) if state.project.has(name) else None
