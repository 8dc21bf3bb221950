"""Functions that mean the same whether what they compute is recorded or not.

Recording shows where something that was computed stays: in what is returned, in an attribute, in a
tensor that is written in place.  These functions keep nothing computed but in a Parameter's data,
which both frameworks write without recording.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods that set the mode of a module and of all that it holds.
MODES = frozenset(("train", "eval"))
#: Layers that take numbers alone.
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in """Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm Identity""".split()
)
#: Methods of tensors that change nothing.
_METHODS = frozenset(
    f"torch.Tensor.{name}"
    for name in """size dim numel view reshape squeeze unsqueeze t transpose permute flatten sum
    mean sqrt rsqrt contiguous""".split()
)
_NUMBERS = frozenset("len int float".split())
_PARTS = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple, ast.keyword, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def computes_in_modes(function: _Function) -> bool:
    """Whether a `train` or `eval` does more than pass the mode on and set plain attributes."""
    return not all(map(_sets_mode, function.body))


def sets_own_modes(function: _Function) -> bool:
    """Whether a `train` or `eval` may leave a part in another mode than it is given."""
    says = any(
        (isinstance(node, ast.Attribute) and node.attr == "training" and _is_stored(node))
        or (isinstance(node, ast.Call) and _is_passed_on(node) and _is_fixed(node))
        for node in ast.walk(function)
    )
    return says or computes_in_modes(function)


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_fixed(call: ast.Call) -> bool:
    """`super().train(False)`, whatever the method is given."""
    given = (*call.args, *(part.value for part in call.keywords))
    return any(isinstance(part, ast.Constant) for part in given)


def _sets_mode(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return _is_asked(node.test) and all(map(_sets_mode, (*node.body, *node.orelse)))
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_passed_on(node.value)
    if isinstance(node, ast.Return):
        return node.value is None or _is_plain(node.value) or _is_passed_on(node.value)
    if not isinstance(node, ast.Assign) or not _is_plain(node.value):
        return isinstance(node, ast.Pass)
    return all(isinstance(target, (ast.Name, ast.Attribute)) for target in node.targets)


def _is_asked(node: ast.expr) -> bool:
    """A condition that computes nothing: `mode and not self.cache`."""
    parts = (ast.Name, ast.Attribute, ast.BoolOp, ast.UnaryOp, ast.Not, ast.Constant)
    return all(isinstance(part, (*parts, ast.boolop, ast.Load)) for part in ast.walk(node))


def _is_plain(node: ast.expr) -> bool:
    """A name, a constant, or an empty display."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return not node.elts
    return isinstance(node, (ast.Name, ast.Constant)) or (
        isinstance(node, ast.Dict) and not node.values
    )


def _is_passed_on(node: ast.expr) -> bool:
    """`super().train(mode)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    is_super = isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "super"
    given = (*node.args, *(part.value for part in node.keywords))
    return node.func.attr in MODES and is_super and all(map(_is_plain, given))


@dataclass(frozen=True)
class Kept:
    """Asks what stays of what a function computes.  api_of: the API of torch of a node's name."""

    api_of: Callable[[ast.AST], str]

    def is_nothing(self, function: ast.FunctionDef) -> bool:
        """Whether a function only writes into data, and gives layers that it makes, or nothing."""
        bound: dict[str, list[ast.expr]] = {}
        returned: list[ast.expr] = []
        given = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
        if not self._takes(function.body, bound, returned):
            return False
        return all(
            isinstance(value, ast.Constant)
            or self._is_layer(value)
            or (
                isinstance(value, ast.Name)
                and value.id not in given
                and all(map(self._is_layer, bound.get(value.id, [value])))
            )
            for value in returned
        )

    def _takes(
        self,
        statements: Sequence[ast.stmt],
        bound: dict[str, list[ast.expr]],
        returned: list[ast.expr],
    ) -> bool:
        for node in statements:
            if isinstance(node, ast.If):
                parts = (*node.body, *node.orelse)
                if not self._is_pure(node.test) or not self._takes(parts, bound, returned):
                    return False
            elif isinstance(node, ast.Assign):
                names = [name for target in node.targets for name in _names(target)]
                if "" in names or not self._is_pure(node.value):
                    return False
                for name in names:
                    bound.setdefault(name, []).append(node.value)
            elif isinstance(node, ast.Return):
                returned += [] if node.value is None else [node.value]
                if node.value is not None and not self._is_pure(node.value):
                    return False
            elif not isinstance(node, ast.Expr) or not self._is_written(node.value):
                return False
        return True

    def _is_written(self, node: ast.expr) -> bool:
        """A text, or `layer.weight.data.copy_(values)`."""
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Constant)
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr != "copy_" or node.keywords:
            return False
        held = called.value
        is_data = isinstance(held, ast.Attribute) and held.attr == "data"
        return is_data and all(map(self._is_pure, (held, *node.args)))

    def _is_pure(self, node: ast.expr) -> bool:
        """Whether an expression changes nothing and keeps nothing."""
        return all(
            self._is_quiet(part) if isinstance(part, ast.Call) else isinstance(part, _PARTS)
            for part in ast.walk(node)
        )

    def _is_quiet(self, call: ast.Call) -> bool:
        if getattr(call.func, "id", "") in _NUMBERS or self._is_layer(call):
            return True
        if isinstance(call.func, ast.Attribute) and call.func.attr == "values":
            return getattr(call.func.value, "attr", "") == "_modules" and not call.args
        return self.api_of(call.func) in _METHODS

    def _is_layer(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.api_of(node.func) in _LAYERS


def _names(target: ast.expr) -> list[str]:
    """The names of a target; "" for anything else."""
    if isinstance(target, ast.Tuple):
        return [name for part in target.elts for name in _names(part)]
    return [target.id if isinstance(target, ast.Name) else ""]
