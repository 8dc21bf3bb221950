"""Whether a module that is being built takes one that exists, and may be in inference.

torch's modules keep the mode of what they are handed.  `set_train()` of the whole would change it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from isograd.convert.tree import Tree, pairs_of
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Items, Plain, Tensor, Value

_PLAIN_TYPES = frozenset("int float str bool bytes".split())
#: What takes and gives numbers and texts.
_PLAIN_FUNCTIONS = frozenset("range int float str bool len isinstance print round abs".split())
#: The names without which no text sets a mode.
MODES = ("eval", "train")
#: Torch's modules that keep modules which they are given.
_KEEPING = ("Sequential", "ModuleList", "ModuleDict", "Module", "Transformer", "DataParallel")
_COMPUTING = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue, ast.Slice)
_TESTING = (ast.If, ast.IfExp, ast.While, ast.Assert)


@dataclass(frozen=True)
class Constructor:
    """The parameters of a class's constructor behind the first; plain: those that are no module."""

    names: tuple[str, ...] = ()
    plain: frozenset[str] = frozenset()


def leaves_training(tree: Tree) -> bool:
    """Whether a file names something that may set a module to inference."""
    if any(node.attr == "eval" for node in tree.of(ast.Attribute)):
        return True
    return any(
        getattr(part, "value", None) is not True
        for node in tree.of(ast.Call)
        if getattr(node.func, "attr", "") == "train"
        for part in (*node.args, *(keyword.value for keyword in node.keywords))
    )


def is_no_module(value: Value) -> bool:
    """Whether a value neither is a module nor holds one."""
    if isinstance(value, Items):
        return value.item is not None and is_no_module(value.item)
    return isinstance(value, (Tensor, Plain, Api, Foreign, ClassInfo, FunctionInfo))


def constructors_of(
    tree: Tree, names: frozenset[str], api_of: Callable[[ast.AST], str]
) -> Mapping[str, Constructor]:
    """The constructors of the file's classes of these names."""
    reading = _Reading(tree, api_of)
    found = {}
    for node in tree.of(ast.ClassDef):
        if node.name in names:
            made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
            if len(made) == 1 and isinstance(made[0], ast.FunctionDef):
                found[node.name] = reading.constructor(made[0])
    return found


class _Reading:
    """A file's parents, and where attributes of each name are read."""

    def __init__(self, tree: Tree, api_of: Callable[[ast.AST], str]) -> None:
        self.api_of = api_of
        self.tree, self.parents = tree, tree.parents
        self.reads: dict[str, list[ast.expr]] = {}
        for node in tree.of(ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                self.reads.setdefault(node.attr, []).append(node)

    def constructor(self, function: ast.FunctionDef) -> Constructor:
        """What a constructor does with its parameters."""
        given = [*function.args.posonlyargs, *function.args.args]
        own = function.args.defaults
        pairs = dict(zip([part.arg for part in given[::-1]], own[::-1], strict=False))
        named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        pairs |= {part.arg: value for part, value in named if value is not None}
        uses: dict[str, list[ast.Name]] = {}
        for node in self.tree.walked(function):
            if isinstance(node, ast.Name):
                uses.setdefault(node.id, []).append(node)
        plain = {
            part.arg
            for part in (*given[1:], *function.args.kwonlyargs)
            if _is_said(part, pairs.get(part.arg))
            or all(map(self._is_read_plainly, uses.get(part.arg, ())))
        }
        return Constructor(tuple(part.arg for part in given[1:]), frozenset(plain))

    def _is_read_plainly(self, node: ast.Name) -> bool:
        return isinstance(node.ctx, ast.Load) and self._is_plain(node, set())

    def _is_plain(self, node: ast.expr, known: set[str]) -> bool:
        """Whether a value stands where no module does."""
        parent = self.parents[node]
        if isinstance(parent, (*_COMPUTING, ast.Subscript)):
            return not isinstance(parent, ast.Subscript) or parent.slice is node
        if isinstance(parent, _TESTING) and parent.test is node:
            return True
        if isinstance(parent, (ast.IfExp, ast.BoolOp)):
            return self._is_plain(parent, known)
        if isinstance(parent, ast.Attribute):
            return self._is_plain(parent, known)
        if isinstance(parent, ast.keyword):
            around = self.parents[parent]
            return isinstance(around, ast.Call) and self._takes_plain(around)
        if isinstance(parent, ast.Call):
            return parent.func is not node and self._takes_plain(parent)
        if isinstance(parent, ast.Tuple):
            parent = self.parents[parent]
        return isinstance(parent, ast.Assign) and self._is_bound_plainly(parent, node, known)

    def _takes_plain(self, call: ast.Call) -> bool:
        api = self.api_of(call.func) or self.api_of(call)
        if api.startswith("torch."):
            last = api.rpartition(".")[2]
            return not last.startswith(_KEEPING) and not api.startswith("torch.nn.utils")
        return getattr(call.func, "id", "") in _PLAIN_FUNCTIONS

    def _is_bound_plainly(self, node: ast.Assign, value: ast.expr, known: set[str]) -> bool:
        """Whether a value is bound to attributes alone that are read, and stand for no module."""
        pairs = [pair for target in node.targets for pair in pairs_of(target, node.value)]
        for target, bound in pairs:
            if bound is not value:
                continue
            if not isinstance(target, ast.Attribute):
                return False
            if target.attr in known:
                continue
            reads = self.reads.get(target.attr, [])
            known.add(target.attr)
            if not reads or not all(self._is_plain(read, known) for read in reads):
                return False
        return any(bound is value for _, bound in pairs)


def _is_said(parameter: ast.arg, default: ast.expr | None) -> bool:
    """Whether the annotation or the default of a parameter says that it is no module."""
    if getattr(parameter.annotation, "id", "") in _PLAIN_TYPES:
        return True
    if default is None:
        return False
    constants = list(_constants(default))
    return bool(constants) and all(value is not None for value in constants)


def _constants(node: ast.expr) -> Iterator[object]:
    """The constants of which a default is made; None for anything else."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _constants(part)
    elif isinstance(node, ast.UnaryOp):
        yield from _constants(node.operand)
    else:
        yield getattr(node, "value", None) if isinstance(node, ast.Constant) else None
