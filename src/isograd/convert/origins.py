"""Which tensor an expression is a view of, and who shares its storage."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from isograd.convert.indexes import parts_of
from isograd.convert.tree import first_argument, is_none, is_true
from isograd.scan.behaviour import VIEWS
from isograd.scan.names_in_place import changes_in_place

#: Methods that return several views.
SEVERAL = frozenset(
    (
        *("chunk", "split", "split_with_sizes", "tensor_split", "unbind", "hsplit", "vsplit"),
        *("dsplit", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"),
    )
)
_RESHAPED_ATTRIBUTES = frozenset(("T", "mT", "H", "mH", "data", "real", "imag"))
#: Methods, and functions of their first argument, whose result shares memory but no writes.
_RESHAPED = (VIEWS - _RESHAPED_ATTRIBUTES) | SEVERAL.union(
    (
        *("flatten", "reshape", "reshape_as", "ravel", "broadcast_to"),
        *("as_tensor", "asarray", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("view_as_real", "view_as_complex"),
        *("conj", "conj_physical"),  # real numbers are returned as they are
    )
)
#: Views whose elements lie in another order, so that `contiguous` copies them.
_REORDERED = frozenset(
    "t T mT H mH transpose permute swapaxes swapdims movedim moveaxis adjoint".split()
)
#: Views of each element once, computed from places alone; `reshape` and `flatten` may copy.
_REARRANGING = _REORDERED.difference(("H", "mH", "adjoint")).union(
    "view view_as unflatten squeeze unsqueeze diagonal narrow select".split()
)
#: Views whose elements need not lie one after the other from the first of their tensor on.
_STRIDED = (
    SEVERAL
    | _REORDERED
    | frozenset("expand expand_as broadcast_to narrow select diagonal unfold as_strided".split())
)
_SIZES = frozenset("shape size dim ndim numel".split())
#: What returns its tensor where there is nothing to do.
_SAME = frozenset(
    """contiguous to float cpu cuda xpu ipu mtia type type_as requires_grad_ resolve_conj
    resolve_neg""".split()
)
#: Casts that may return the tensor of a name itself; of a part of it they mostly do not.
_CASTS = frozenset("long int short char byte bool half double bfloat16".split())
#: Functions that return their argument where there is nothing to do.
_PASSING = frozenset(
    """dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout resolve_conj
    resolve_neg""".split()
)


class Reach(IntEnum):
    """How much of a write in place others have to see, and whether a port's write reaches them."""

    ALONE = 0
    SHARED = 1
    #: Of a binding: a part of the tensor, taken by numbers.  No answer of `Scope.sight`.
    SLICE = 2
    LOST = 3


@dataclass(frozen=True)
class Sight:
    """reach, and the name that sees the tensor; empty for the caller or an object.

    argument: the parameter whose tensor it is, if nobody but the caller is known to see it.
    """

    reach: Reach
    name: str = ""
    argument: str = ""

    @property
    def is_argument(self) -> bool:
        """Whether nobody but the caller is known to see the tensor."""
        return bool(self.argument)


@dataclass(frozen=True)
class Origin:
    """reach: how the tensor is one with the root's; root: a name, or None for outside.

    is_copied: whether the port copies, so that no write reaches it, not even one by an index.
    is_array: whether what is bound is an array of numpy's; what is written to it reaches the root.
    is_of_array: whether the root is one; a tensor of another dtype made of it is a copy, mostly.
    """

    reach: Reach
    root: str | None
    is_copied: bool = False
    is_array: bool = False
    is_of_array: bool = False


@dataclass(frozen=True)
class Binding:
    """value: what is bound, where a part of the statement is: b of `x, y = a, b`."""

    statement: ast.AST
    name: str
    origins: tuple[Origin, ...]
    value: ast.expr | None = None

    @property
    def is_of_name(self) -> bool:
        """Whether the name is bound, rather than something put into what it holds."""
        return not isinstance(self.statement, ast.Call)


def origin_of_write(target: ast.expr, named: Mapping[ast.AST, str]) -> tuple[ast.expr, Reach]:
    """What is behind the expression that is written to, and whether a port's write reaches it.

    named: the torch functions that names, attributes and layers of the file mean.
    """
    reach = Reach.ALONE
    node = target
    while True:
        step = view_of(node, named)
        if step is None:
            return node, reach
        node, here = step
        reach = max(reach, here)


def is_turned(node: ast.expr | None) -> bool:
    """Whether an expression is `x.T`: a view that looks like a member."""
    return isinstance(node, ast.Attribute) and node.attr in _REORDERED and not _is_own(node)


def _is_own(node: ast.Attribute) -> bool:
    """Whether a member is that of a method's own object or class."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_strided(value: ast.expr, named: Mapping[ast.AST, str]) -> bool:
    """Whether a value is a view with gaps or from a later element on: `x.t()`, `x[1:]`.

    MindSpore 2.10 on CPU writes nothing by `view.copy_(values)` there.
    """
    node = value
    while (step := view_of(node, named)) is not None:
        if isinstance(node, ast.Subscript):
            bounds = [p for p in parts_of(node.slice) if isinstance(p, ast.Slice)]
            if any(b.lower or b.upper or b.step for b in bounds):
                return True
        elif (
            called(node, named)[0] if isinstance(node, ast.Call) else _attribute(node)
        ) in _STRIDED:
            return True
        node = step[0]
    return False


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def rearranged(target: ast.expr, named: Mapping[ast.AST, str]) -> ast.Name | None:
    """x of `x.view(-1)` and `x[0].t()`: a view of elements of x by their places alone."""
    node = target
    while not isinstance(node, ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else "view"
        if isinstance(node, ast.Call):
            name = called(node, named)[0]
            if any(part in named for part in node.args if name == "view"):
                return None  # of another dtype
        step = view_of(node, named)
        if step is None or name not in _REARRANGING:
            return None
        node = step[0]
    inside = [part for part in ast.walk(target) if isinstance(part, ast.Attribute)]
    asked = sum(_is_name(part.value, node.id) for part in inside if part.attr in _SIZES)
    used = sum(_is_name(part, node.id) for part in ast.walk(target))
    return node if used == asked + 1 else None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def is_taken_by_copy(node: ast.expr) -> bool:
    """Whether a subscript takes by a list or a condition, so that torch copies."""
    if not isinstance(node, ast.Subscript):
        return False
    kinds = (ast.List, ast.Compare, ast.ListComp)
    return any(isinstance(part, kinds) for part in parts_of(node.slice))


#: What begins the name of a function of the file among those of torch's functions.
_OWN = "isograd."


def own_name(position: int, parameter: str, reach: Reach) -> str:
    """The name of a function of the file whose result is one with the argument of a parameter."""
    return f"{_OWN}{position}.{parameter}.{reach.name.lower()}"


def argument_of_own(call: ast.Call, name: str) -> tuple[ast.expr, Reach] | None:
    """The argument that a function of the file returns as it is or a view of, by its `own_name`."""
    if not name.startswith(_OWN):
        return None
    parts = name.split(".")
    position = int(parts[1])
    before = call.args[: position + 1]
    if len(before) > position and not any(isinstance(one, ast.Starred) for one in before):
        return before[position], Reach[parts[3].upper()]
    given = next((part.value for part in call.keywords if part.arg == parts[2]), None)
    return None if given is None else (given, Reach[parts[3].upper()])


def view_of(node: ast.expr, named: Mapping[ast.AST, str]) -> tuple[ast.expr, Reach] | None:
    """The tensor that an expression is a view of; None where it is a tensor of its own."""
    if isinstance(node, ast.Subscript) and not is_taken_by_copy(node):
        return node.value, Reach.SLICE
    if isinstance(node, ast.Attribute) and node.attr in _RESHAPED_ATTRIBUTES:
        return None if _is_own(node) else (node.value, Reach.LOST)
    if not isinstance(node, ast.Call):
        return None
    is_function = node.func in named
    if is_function and (own := argument_of_own(node, named[node.func])):
        return own
    name, base = called(node, named)
    if base is None:
        return None
    if name in _RESHAPED:
        return base, Reach.LOST
    if name == "contiguous" and _is_reordered(base, named):
        return None
    if name == "to" and asks_for_a_copy(node):
        return None
    if name in (_PASSING if is_function else _SAME):
        return base, Reach.SHARED
    if name in _CASTS and not is_function and isinstance(base, (ast.Name, ast.Attribute)):
        return base, Reach.SHARED
    if changes_in_place(name):
        return base, Reach.SHARED
    return None


def asks_for_a_copy(node: ast.Call) -> bool:
    """Whether `x.to` is given `copy=True`, or True behind non_blocking."""
    switches = [part for part in node.args if isinstance(getattr(part, "value", None), bool)]
    asked = [part.value for part in node.keywords if part.arg == "copy"] + switches[1:2]
    return any(is_true(part) for part in asked)


def _is_reordered(node: ast.expr, named: Mapping[ast.AST, str]) -> bool:
    """Whether a view's elements lie in another order than its tensor's."""
    if isinstance(node, ast.Attribute):
        return node.attr in _REORDERED
    return isinstance(node, ast.Call) and called(node, named)[0] in _REORDERED


def adds_axis(index: ast.expr) -> bool:
    """Whether an index holds a None, which reshapes: a name of it is no way to x."""
    return any(is_none(part) for part in parts_of(index))


def unrepeated(value: ast.expr) -> ast.expr:
    """The list of `[x] * 3`, whose elements are one tensor."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for side in (value.left, value.right):
            if isinstance(side, (ast.List, ast.Tuple)):
                return side
    return value


def called(node: ast.Call, named: Mapping[ast.AST, str]) -> tuple[str, ast.expr | None]:
    """The last name of a call's function, and its tensor: its receiver or its first argument."""
    if node.func in named:
        return named[node.func].rpartition(".")[2], first_argument(node, "input")
    if isinstance(node.func, ast.Attribute):
        return node.func.attr, node.func.value
    return "", None
