"""Gradients that a step takes of gradients, written as functions of what they are taken by.

`torch.autograd.grad(score, mixed, create_graph=True)` asks what was recorded; MindSpore takes the
gradient of a function, and gradients of that where the whole is compiled (2.10; in PyNative mode
they are wrong).  So what computes `score` from `mixed` becomes a function.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from isograd.convert.text import Text
from isograd.convert.training.names import SPELLED
from isograd.convert.training.paths import BUILTINS, bound_by, path_of, read_by
from isograd.convert.training.rewrite import Rewritten, edited_again
from isograd.convert.tree import Tree, read_tree
from isograd.static_graph.scope import FileScope

API = "torch.autograd.grad"
_PARAMETERS = (
    "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs",
    "allow_unused", "is_grads_batched", "materialize_grads",
)  # fmt: skip
#: Arguments that say nothing of a gradient that is taken of a function.
_PASSED_OVER = frozenset(("retain_graph", "only_inputs"))
#: Layers that change what they hold by each input.
COUNTING = frozenset(
    f"torch.nn.{name}"
    for name in """BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d
    LazyBatchNorm3d functional.batch_norm utils.spectral_norm
    utils.parametrizations.spectral_norm""".split()
)
#: Layers whose gradient has none in MindSpore 2.10.
WITHOUT_SECOND = frozenset(
    f"torch.nn.{name}"
    for name in """InstanceNorm1d InstanceNorm2d InstanceNorm3d functional.instance_norm""".split()
)
_MOST = 50
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definitions = (*_Function, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Again:
    """A function that computes once more what stands beside it, and the paths that it calls."""

    function: str
    called: frozenset[str]

    def statements(self, tree: ast.Module) -> list[ast.stmt]:
        """Those of the function."""
        found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        return [part for node in found if node.name == self.function for part in node.body]


@dataclass
class WithFunctions:
    """A file whose gradients of gradients are functions.

    again: what its functions compute beside the statements that compute the same.
    """

    text: str
    new: Rewritten | None = None
    again: list[Again] = field(default_factory=list)

    def edit(self, edits: list[tuple[int, int, str]]) -> None:
        """Write parts of the text anew."""
        self.new = edited_again(self.new, self.text, edits)
        self.text = self.new.text


def with_functions(text: str) -> WithFunctions | None:
    """A file with each call as the gradient of a function; None where one cannot be so."""
    found = WithFunctions(text)
    for _ in range(_MOST):
        place = _Place.first(found.text)
        if place is None:
            return found
        if not place.is_understood:
            return None
        if not place.moves:
            found.again.append(Again(place.name, place.called))
        found.edit(place.edits())
    return None


def without_marks(found: WithFunctions) -> None:
    """Leave out `requires_grad_()` and its like of names that no optimizer is given."""
    tree = read_tree(ast.parse(found.text), frozenset())
    edits = list(_marks(tree, Text(found.text)))
    if edits:
        found.edit(edits)


@dataclass
class _Place:
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

    @staticmethod
    def first(text: str) -> _Place | None:
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
        return _Place(Text(text), tree, file, call, tree.statement(call), given)

    @property
    def is_understood(self) -> bool:
        """Whether the outputs are computed from the inputs by assignments right before the call."""
        if any(isinstance(part, ast.Starred) for part in self.call.args):
            return False
        if any(part.arg is None for part in self.call.keywords):
            return False
        known = {"outputs", "inputs", "grad_outputs", "create_graph"}
        others = {name: self.given[name] for name in self.given if name not in known}
        if not all(name in _PASSED_OVER or _is(node, False) for name, node in others.items()):
            return False
        if not _is(self.given.get("create_graph"), True) or "inputs" not in self.given:
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
        if node is None or _is(node, None):
            return None
        if isinstance(node, ast.Call) and self.file.qualified(node.func) == "torch.ones_like":
            if len(node.args) == 1 and ast.dump(node.args[0]) == ast.dump(self.output):
                return None
        return node

    def _find(self) -> bool:
        """Find the statements that are needed; whether they can stand in a function."""
        parent = self.tree.parents[self.statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, [])
            if isinstance(block, list) and self.statement in block:
                self.block, self.at = block, block.index(self.statement)
        if isinstance(self.output, (ast.List, ast.Tuple)) or not self.block:
            return False
        before = self.block[: self.at]
        bound = [n for n, one in enumerate(before) if _bound(one) & {*self.inputs}]
        first = bound[-1] + 1 if bound else 0
        needed = read_by(self.output)
        reached = self._reached(before[first:])
        for statement in reversed(before[first:]):
            if statement in reached and _bound(statement) & needed:
                self.needed.insert(0, statement)
                needed |= read_by(statement)
        return bool(needed & {*self.inputs}) and self._can_move(before[first:])

    def _reached(self, statements: Sequence[ast.stmt]) -> set[ast.stmt]:
        """Those that compute something from the inputs."""
        names, found = {*self.inputs}, set()
        for statement in statements:
            if read_by(statement) & names and not isinstance(statement, _Definitions):
                names |= _bound(statement)
                found.add(statement)
            else:
                names -= _bound(statement)
        return found

    def _can_move(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the needed ones bind names alone, and read the same behind the others."""
        if not all(map(_binds_names, self.needed)):
            return False
        own = {name for one in self.needed for name in _bound(one)}
        read = set[str]()
        for statement in statements:
            if statement in self.needed:
                read |= read_by(statement)
            elif (_bound(statement) | _written(statement)) & (read | own | {*self.inputs}):
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
        own = {name for one in self.needed for name in _bound(one)}
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
        tensors = {*self.inputs}.union(*map(_bound, self.needed))
        return frozenset(path for path in paths if path.partition(".")[0] not in tensors)

    @property
    def _is_of_step(self) -> bool:
        """Whether it stands among the statements of a training loop."""
        return any(
            isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "backward"
            for part in self.tree.walked(self.scope)
            if self.tree.scope(part) is self.scope
        )

    # ---- what is written

    @property
    def name(self) -> str:
        """The function's: `score_of_mixed`."""
        return self._name("_".join((*self._words(), "of", *self.inputs)))

    def edits(self) -> list[tuple[int, int, str]]:
        """The function, the call of its gradient, and what is left out for them."""
        given = ", ".join(self.inputs)
        name = self.name
        places = "" if len(self.inputs) == 1 else f", {tuple(range(len(self.inputs)))}"
        taken = f"_isograd_grad{'s' if places else ''}({name}{places})({given})"
        edits = self._left_out()
        if self._is_of_step:
            others = self._others()
            helper = self._name(f"gradient_of_{name}")
            at = self._outermost()
            inner = textwrap.indent(self._function(name), "    ")
            every = ", ".join((*self.inputs, *others))
            typed = ", ".join((self._typed, *others))
            lines = f"def {helper}({typed}):\n{inner}    return {taken}\n\n\n"
            edits.append((at, at, self._ended(lines)))
            taken = f"{helper}({every})"
        else:
            at = self.text.line_start(self.statement.lineno)
            start = self.text.span(self.statement)[0]
            indent = self.text.original[at:start]
            lines = textwrap.indent(self._function(name), indent)
            edits.append((at, at, self._ended(lines)))
        edits.append(self._replaced(taken))
        return edits

    def _replaced(self, taken: str) -> tuple[int, int, str]:
        """The call, with `[0]` behind it, where one gradient is taken."""
        parent = self.tree.parents[self.call]
        if len(self.inputs) > 1:
            return (*self.text.span(self.call), taken)
        if isinstance(parent, ast.Subscript) and _is(parent.slice, 0):
            return (*self.text.span(parent), taken)
        return (*self.text.span(self.call), f"({taken},)")

    @property
    def _typed(self) -> str:
        """The inputs as parameters."""
        torch = next((own for own, full in self.file.imports.items() if full == "torch"), "")
        return ", ".join(f"{one}: {torch}.Tensor" if torch else one for one in self.inputs)

    def _function(self, name: str) -> str:
        """The function whose gradient is taken."""
        lines = [f"def {name}({self._typed}):\n"]
        lines += [textwrap.indent(self._dedented(one), "    ") for one in self.needed]
        output = self._source(self.output)
        if self.weights is not None:
            output = f"({output}) * ({self._source(self.weights)})"
        return "".join((*lines, f"    return _isograd_sum({output})\n"))

    def _dedented(self, statement: ast.stmt) -> str:
        end = self.text.span(statement)[1]
        begin = self.text.line_start(statement.lineno)
        lines = self.text.original[begin:end].replace(self.text.newline, "\n")
        return f"{textwrap.dedent(lines)}\n"

    def _source(self, node: ast.AST) -> str:
        start, end = self.text.span(node)
        return self.text.original[start:end].replace(self.text.newline, "\n")

    def _left_out(self) -> list[tuple[int, int, str]]:
        """The lines of statements that move."""
        if not self.moves:
            return []
        return [
            (self.text.line_start(one.lineno), self.text.line_start((one.end_lineno or 0) + 1), "")
            for one in self.needed
        ]

    def _others(self) -> list[str]:
        """What else the function reads, but what the module defines or imports."""
        nodes = [*self.needed, self.output, *([self.weights] if self.weights is not None else [])]
        read = read_by(*nodes) - {name for one in self.needed for name in _bound(one)}
        defined = {
            name
            for node in self.tree.module.body
            if isinstance(node, _Definitions)
            for name in _defined(node)
        }
        return sorted(read - defined - BUILTINS - {*self.inputs})

    def _outermost(self) -> int:
        """Where the statement of the module begins that holds the call."""
        top: ast.AST = self.statement
        while self.tree.parents[top] is not self.tree.module:
            top = self.tree.parents[top]
        assert isinstance(top, ast.stmt)
        decorators = [part.lineno for part in getattr(top, "decorator_list", [])]
        return self.text.line_start(min([top.lineno, *decorators]))

    def _words(self) -> list[str]:
        name = path_of(self.output).rpartition(".")[2]
        return [name if name.isidentifier() else "value"]

    def _name(self, wanted: str) -> str:
        used = self.tree.used | self.tree.stored
        while wanted in used:
            wanted += "_"
        return wanted

    def _ended(self, lines: str) -> str:
        return lines.replace("\n", self.text.newline)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, but a function's own."""
    return set() if isinstance(statement, _Definitions) else bound_by(statement)


def _is(node: ast.AST | None, value: object) -> bool:
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
            if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
                found |= read_by(part.func.value)
    return found


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((part.asname or part.name).partition(".")[0] for part in node.names)
    else:
        yield node.name  # type: ignore[attr-defined]  # a function or a class


def _marks(tree: Tree, text: Text) -> Iterator[tuple[int, int, str]]:
    """What says that a named tensor learns, with what is written in its place."""
    file = FileScope(tree.module)
    nodes = tree.walked(tree.module)
    optimized = {
        part.id
        for node in nodes
        if isinstance(node, ast.Call) and file.qualified(node.func).startswith("torch.optim.")
        for given in (*node.args, *(word.value for word in node.keywords))
        for part in ast.walk(given)
        if isinstance(part, ast.Name)
    }
    for node in nodes:
        mark = _mark(node, tree, file)
        if mark is None:
            continue
        name, start, end = mark
        if name in optimized:
            continue
        yield from _without(start, end, tree, text)


def _mark(node: ast.AST, tree: Tree, file: FileScope) -> tuple[str, ast.AST, ast.AST] | None:
    """The tensor's name, what is left out, and up to where it goes on; None for other nodes."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "requires_grad_":
        given = [*node.args, *(part.value for part in node.keywords)]
        if given and not (len(given) == 1 and _is(given[0], True)):
            return None
        receiver = node.func.value  # type: ignore[attr-defined]  # an attribute
        parent = tree.parents[node]
        if isinstance(parent, ast.Expr) and isinstance(receiver, ast.Name):
            return receiver.id, parent, parent
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
            return (target.id, node, receiver) if isinstance(target, ast.Name) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is(node.value, True):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if isinstance(target.value, ast.Name):
                return target.value.id, node, node
    if isinstance(node, ast.keyword) and node.arg == "requires_grad" and _is(node.value, True):
        call, statement = tree.parents[node], tree.statement(node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and isinstance(call, ast.Call):
            if file.qualified(call.func).startswith("torch."):
                return targets[0].id, node, call
    return None


def _without(
    node: ast.AST, kept: ast.AST, tree: Tree, text: Text
) -> Iterator[tuple[int, int, str]]:
    """A statement without its mark: all of it, a method's call, or an argument."""
    if isinstance(node, ast.stmt):
        parent = tree.parents[node]
        is_alone = any(getattr(parent, name, None) == [node] for name in ("body", "orelse"))
        start, end = text.span(node)
        if is_alone:
            yield start, end, "pass"
        else:
            yield text.line_start(node.lineno), text.line_start((node.end_lineno or 0) + 1), ""
    elif isinstance(node, ast.Call):
        end = text.span(kept)[1]
        while text.original[end] in " \t\r\n)":  # `(a * b).requires_grad_()`
            end += 1
        yield end, text.span(node)[1], ""
    elif isinstance(kept, ast.Call):
        start, end = text.span(node)
        comma = text.original.rfind(",", 0, start)
        is_first = not kept.args and kept.keywords[0] is node
        if is_first:
            rest = text.original[end:]
            end += len(rest) - len(rest.lstrip(" \t\r\n,"))
        yield (start if is_first else comma), end, ""
