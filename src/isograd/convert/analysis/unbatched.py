"""Recurrent layers that a file gives a sequence without a batch, which MindSpore's do not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.analysis.bound_names import bound_names
from isograd.convert.analysis.given_arguments import calls_of
from isograd.convert.analysis.layers import RECURRENT
from isograd.convert.file_facts import FileFacts
from isograd.convert.tree import first_argument, pairs_of

#: A file without these makes none.
ASKED = ("LSTM", "GRU", "RNN")
REASON = "it is given a sequence without a batch, which MindSpore's does not take"
_UNBATCHED = 2
#: Functions whose sizes are their arguments, or a tuple.
_SIZED = frozenset(f"torch.{name}" for name in "zeros ones rand randn empty full randint".split())
_LITERAL = frozenset(("torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.Tensor"))
_RESHAPING = frozenset(("view", "reshape"))
#: Methods that leave the number of axes as it is.
_SAME = frozenset(
    """to float double half cuda cpu clone detach contiguous requires_grad_ relu tanh sigmoid exp
    transpose permute flip abs""".split()
)
#: Layers that do.
_LAYERS = frozenset(f"torch.nn.{name}" for name in "Linear Dropout ReLU Tanh LayerNorm".split())
_EMBEDDING = "torch.nn.Embedding"
_DEEPEST = 8


def unbatched_layers(file: FileFacts) -> frozenset[str]:
    """The classes of recurrent layers that may be given two axes, as far as the file shows it."""
    found: set[str] = set()
    for node in file.tree.of(ast.Call):
        given = first_argument(node, "input")
        held = _held(node.func, file)
        if given is not None and held and held <= RECURRENT:
            if _UNBATCHED in Ranks(file).of(given):
                found |= held
    return frozenset(found)


def _held(called: ast.expr, file: FileFacts) -> frozenset[str]:
    """The layers that an expression may be, also where calls give them to a function."""
    api = file.api_of_call(called)
    held = frozenset((api,)) if api else file.layers_held(called)
    function = file.tree.function(called)
    if held or not isinstance(called, ast.Name) or function is None:
        return held
    given = [given[called.id] for _, given in calls_of(function, file.tree) if called.id in given]
    apis = [file.api_of_call(one) for one in given]
    return frozenset().union(*(frozenset((api,)) for api in apis if api in RECURRENT))


class Ranks:
    """How many axes expressions of a file may have, by how they are written."""

    def __init__(self, file: FileFacts) -> None:
        self._file = file
        self._seen: set[ast.expr] = set()

    def of(self, node: ast.expr) -> frozenset[int]:
        """The numbers of axes that are shown; empty where nothing shows any."""
        if node in self._seen or len(self._seen) > _DEEPEST * _DEEPEST:
            return frozenset()
        self._seen.add(node)
        if isinstance(node, ast.Name):
            values = (*self._bound(node), *self._passed(node))
            return frozenset[int]().union(*map(self.of, values))
        if isinstance(node, ast.Subscript):
            return self._of_element(node)
        if isinstance(node, ast.BinOp):
            return self.of(node.left) or self.of(node.right)
        return self._of_call(node) if isinstance(node, ast.Call) else frozenset()

    def _of_element(self, node: ast.Subscript) -> frozenset[int]:
        """Of `x[0]` and `x[:, 0]` where the axes of x are shown."""
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        taken = 0
        for part in parts:
            if isinstance(part, ast.Constant):
                taken += {int: 1, type(None): -1}.get(type(part.value), 0)
            elif not isinstance(part, ast.Slice):
                return frozenset()
        return frozenset(count - taken for count in self.of(node.value))

    def _of_call(self, node: ast.Call) -> frozenset[int]:
        api = self._file.api_of_call(node)
        if api in _SIZED:
            start = 1 if api == "torch.randint" and len(node.args) > 1 else 0
            return _count(node.args[start:])
        if api in _LITERAL:
            return _depth(node.args)
        if api or not isinstance(node.func, ast.Attribute):
            return frozenset()
        held = self._file.layers_held(node.func)
        if held and node.args:
            added = 1 if held == {_EMBEDDING} else 0
            known = self.of(node.args[0]) if held <= _LAYERS or added else frozenset()
            return frozenset(count + added for count in known)
        return self._of_method(node, node.func)

    def _of_method(self, node: ast.Call, method: ast.Attribute) -> frozenset[int]:
        name = method.attr
        if name in _RESHAPING or (name == "permute" and node.args):
            return _count(node.args)
        if name in _SAME:
            return self.of(method.value)
        axis = getattr(first_argument(node, "dim"), "value", None)
        if name == "unsqueeze":
            return frozenset(count + 1 for count in self.of(method.value))
        if name == "squeeze" and isinstance(axis, int):
            known = self.of(method.value)
            if not known and axis == 0:  # a batch of one
                return frozenset((_UNBATCHED,))
            return frozenset(count - 1 for count in known)
        return frozenset()

    def _bound(self, node: ast.Name) -> list[ast.expr]:
        """What assignments of the function, or else of the module, bind to a name."""
        tree = self._file.tree
        function = tree.function(node)
        if function is None or (
            node.id not in bound_names(function, tree).arguments
            and node.id not in bound_names(function, tree).stores
        ):
            return tree.values_of_module.get(node.id, [])
        return [
            value
            for part in tree.walked(function)
            if isinstance(part, ast.Assign)
            for target in part.targets
            for one, value in pairs_of(target, part.value)
            if isinstance(one, ast.Name) and one.id == node.id
        ]

    def _passed(self, node: ast.Name) -> Iterator[ast.expr]:
        """What calls of the file give a parameter of a function, or of a class's `forward`."""
        tree = self._file.tree
        function = tree.function(node)
        if function is None:
            return
        for _, given in calls_of(function, tree):
            if node.id in given:
                yield given[node.id]
        owner = tree.parents.get(function)
        if not isinstance(owner, ast.ClassDef) or function.name != "forward":
            return
        names = [part.arg for part in function.args.args[1:]]
        if node.id not in names:
            return
        at = names.index(node.id)
        for call in tree.of(ast.Call):
            if len(call.args) > at and self._makes(call.func, owner.name):
                yield call.args[at]

    def _makes(self, node: ast.expr, name: str) -> bool:
        """Whether what is called may be an instance of a class of the file."""
        values = self._bound(node) if isinstance(node, ast.Name) else [node]
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
            around = self._file.tree.owner(node)
            values = (
                [] if around is None else self._file.attribute_values.get((around, node.attr), [])
            )
        return any(
            isinstance(part, ast.Call) and getattr(part.func, "id", "") == name
            for value in values
            for part in ast.walk(value)
        )


def _count(sizes: list[ast.expr]) -> frozenset[int]:
    """As many axes as sizes are written out, one by one or in a tuple."""
    if len(sizes) >= 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    elif len(sizes) == 1 and not isinstance(sizes[0], ast.Constant):
        return frozenset()  # a shape by its name
    if not sizes or any(isinstance(size, ast.Starred) for size in sizes):
        return frozenset()
    return frozenset((len(sizes),))


def _depth(values: list[ast.expr]) -> frozenset[int]:
    """How deep lists that are written out stand in each other."""
    depth, value = 0, values[0] if values else None
    while isinstance(value, (ast.List, ast.Tuple)) and value.elts:
        depth, value = depth + 1, value.elts[0]
    return frozenset((depth,)) if depth else frozenset()
