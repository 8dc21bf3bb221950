"""Where a program takes a gradient that is differentiated again, and what it is computed from."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from isograd.convert.text import Text
from isograd.convert.training.names import SPELLED
from isograd.convert.training.paths import BUILTINS, bound_by, path_of, read_by
from isograd.convert.tree import Tree, read_tree
from isograd.scan.names_in_place import changes_in_place
from isograd.static_graph.scope import FileScope, blocks

API = "torch.autograd.grad"
_PARAMETERS = (
    "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs",
    "allow_unused", "is_grads_batched", "materialize_grads",
)  # fmt: skip
#: Arguments that say nothing of a gradient that is taken of a function.
_PASSED_OVER = frozenset(("retain_graph", "only_inputs"))
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*_Function, ast.ClassDef, ast.Import, ast.ImportFrom)


_Place = TypeVar("_Place", bound="Place")


@dataclass
class Place:
    """The first call in a text.

    block, at: the statements around it, and which of them holds it.  needed: those before it that
    compute the outputs from the inputs, in their order.
    """

    text: Text
    tree: Tree
    file: FileScope
    call: ast.Call
    statement: ast.stmt
    given: Mapping[str, ast.expr]
    block: Sequence[ast.stmt] = ()
    at: int = 0
    inputs: tuple[str, ...] = ()
    needed: list[ast.stmt] = field(default_factory=list)

    @classmethod
    def first(cls: type[_Place], text: str) -> _Place | None:
        """The first call in the order of the text; None where there is none."""
        module = ast.parse(text)
        file = FileScope(module)
        calls = [
            node
            for node in ast.walk(module)
            if isinstance(node, ast.Call) and file.qualified(node.func) == API
        ]
        if not calls:
            return None
        call = min(calls, key=lambda node: (node.lineno, node.col_offset))
        tree = read_tree(module, frozenset())
        given = dict(zip(_PARAMETERS, call.args, strict=False))
        given |= {part.arg: part.value for part in call.keywords if part.arg}
        return cls(Text(text), tree, file, call, tree.statement(call), given)

    @property
    def is_understood(self) -> bool:
        """Whether the outputs are computed from the inputs by assignments right before the call."""
        if any(isinstance(part, ast.Starred) for part in self.call.args):
            return False
        if any(part.arg is None for part in self.call.keywords):
            return False
        known = {"outputs", "inputs", "grad_outputs", "create_graph"}
        others = {name: self.given[name] for name in self.given if name not in known}
        if not all(
            name in _PASSED_OVER or is_constant(node, False) for name, node in others.items()
        ):
            return False
        if not is_constant(self.given.get("create_graph"), True) or "inputs" not in self.given:
            return False
        inputs = self.given["inputs"]
        parts = inputs.elts if isinstance(inputs, (ast.Tuple, ast.List)) else [inputs]
        self.inputs = tuple(part.id for part in parts if isinstance(part, ast.Name))
        is_named = len(self.inputs) == len(parts) == len({*self.inputs})
        return is_named and "outputs" in self.given and self._find()

    @property
    def output(self) -> ast.expr:
        """What is differentiated."""
        node = self.given["outputs"]
        is_one = isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1
        return node.elts[0] if is_one else node  # type: ignore[attr-defined]  # a display

    @property
    def weights(self) -> ast.expr | None:
        """What the outputs are weighted by; None for ones."""
        node = self.given.get("grad_outputs")
        is_one = isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1
        node = node.elts[0] if is_one else node  # type: ignore[union-attr]  # a display
        if node is None or is_constant(node, None):
            return None
        if isinstance(node, ast.Call) and self.file.qualified(node.func) == "torch.ones_like":
            if len(node.args) == 1 and ast.dump(node.args[0]) == ast.dump(self.output):
                return None
        return node

    def _find(self) -> bool:
        """Find the statements that are needed; whether they can stand in a function."""
        parent = self.tree.parents[self.statement]
        for block in blocks(parent):
            if self.statement in block:
                self.block, self.at = block, block.index(self.statement)
        if isinstance(self.output, (ast.List, ast.Tuple)) or not self.block:
            return False
        before = self.block[: self.at]
        bound = [n for n, one in enumerate(before) if bound_in(one) & {*self.inputs}]
        first = bound[-1] + 1 if bound else 0
        needed = read_by(self.output)
        reached = self._reached(before[first:])
        for statement in reversed(before[first:]):
            if statement in reached and bound_in(statement) & needed:
                self.needed.insert(0, statement)
                needed |= read_by(statement)
        return bool(needed & {*self.inputs}) and self._can_move(before[first:])

    def _reached(self, statements: Sequence[ast.stmt]) -> set[ast.stmt]:
        """Those that compute something from the inputs."""
        names, found = {*self.inputs}, set()
        for statement in statements:
            if read_by(statement) & names and not isinstance(statement, DEFINITIONS):
                names |= bound_in(statement)
                found.add(statement)
            else:
                names -= bound_in(statement)
        return found

    def _can_move(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the needed ones bind names alone, and read the same behind the others."""
        if not all(map(_binds_names, self.needed)):
            return False
        own = {name for one in self.needed for name in bound_in(one)}
        read = set[str]()
        for statement in statements:
            if statement in self.needed:
                read |= read_by(statement)
            elif (bound_in(statement) | _written(statement)) & (read | own | {*self.inputs}):
                return False
        return True

    # ---- where it stands

    @property
    def scope(self) -> ast.AST:
        """The function or module around the call."""
        return self.tree.scope(self.call)

    @property
    def moves(self) -> bool:
        """Whether nothing else reads what the needed statements bind."""
        own = {name for one in self.needed for name in bound_in(one)}
        inside = {part for one in (*self.needed, self.call) for part in ast.walk(one)}
        return bool(self.needed) and not any(
            isinstance(part, ast.Name) and part.id in own and part not in inside
            for part in ast.walk(self.scope)
        )

    @property
    def called(self) -> frozenset[str]:
        """The paths of what the needed statements call."""
        nodes = (*self.needed, self.output)
        calls = (part for one in nodes for part in ast.walk(one) if isinstance(part, ast.Call))
        paths = {
            path_of(call.func)
            for call in calls
            if not self.file.qualified(call.func).startswith("torch.")
        }
        paths -= {*self.tree.defined, *BUILTINS, *SPELLED, ""}
        tensors = {*self.inputs}.union(*map(bound_in, self.needed))
        paths = {path for path in paths if path.partition(".")[0] not in tensors}
        return frozenset().union(*map(self._given, paths))

    def _given(self, path: str) -> frozenset[str]:
        """What the file's calls give a function for a parameter by this name; else the name."""
        function = self.scope
        if not isinstance(function, ast.FunctionDef):
            return frozenset((path,))
        places = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        if path not in places:
            return frozenset((path,))
        is_method = isinstance(self.tree.parents[function], ast.ClassDef)
        found = set[str]()
        for call in self.tree.walked(self.tree.module):
            if not isinstance(call, ast.Call):
                continue
            if getattr(call.func, "attr", getattr(call.func, "id", "")) != function.name:
                continue
            given = dict(zip(places[is_method:], call.args, strict=False))
            given |= {part.arg: part.value for part in call.keywords if part.arg}
            found.add(path_of(given[path]) if path in given else "")
        return frozenset((path,)) if "" in found or not found else frozenset(found)

    @property
    def is_of_step(self) -> bool:
        """Whether it stands among the statements of a training loop."""
        return any(
            isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "backward"
            for part in self.tree.walked(self.scope)
            if self.tree.scope(part) is self.scope
        )


def bound_in(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, but a function's own."""
    return set() if isinstance(statement, DEFINITIONS) else bound_by(statement)


def is_constant(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _binds_names(statement: ast.stmt) -> bool:
    """Whether it is an assignment to names, of one statement to a line, without long texts."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return all(_are_names(target) for target in targets) and not any(
        isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield))
        or (isinstance(part, ast.Constant) and "\n" in str(part.value))
        for part in ast.walk(statement)
    )


def _are_names(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_are_names, target.elts))
    return isinstance(target, ast.Name)


def _written(statement: ast.stmt) -> set[str]:
    """The names of which a statement may change the tensors in place."""
    found = set[str]()
    for part in ast.walk(statement):
        is_stored = isinstance(getattr(part, "ctx", None), ast.Store)
        if isinstance(part, (ast.Subscript, ast.Attribute)) and is_stored:
            is_mark = getattr(part, "attr", "") == "requires_grad"
            found |= set() if is_mark else read_by(part.value)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = part.func.attr
            if changes_in_place(name) and name != "requires_grad_":
                found |= read_by(part.func.value)
    return found
