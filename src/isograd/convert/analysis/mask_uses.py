"""How often a mask's values are computed with, where MindSpore gives the mask a gradient.

MindSpore 2.10 sends gradients of booleans through casts, products and reductions as they run, and
cannot add two of them, nor put one in the place of a selected element.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from isograd.convert.indexes import parts_of
from isograd.convert.tree import Tree

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (ast.Tuple, ast.List, ast.Starred)
#: What asks a mask for conditions, numbers of Python's or other masks: no gradient comes back.
_ASKS = frozenset(
    """any all bool eq ne lt le gt ge logical_and logical_or logical_not logical_xor nonzero
    argwhere size shape dim ndim ndimension numel nelement dtype device item tolist numpy detach
    data type_as is_floating_point argmax argmin where masked_fill masked_fill_ print len int float
    isinstance type str repr is_tensor equal zeros_like ones_like assert isnan isfinite argsort
    count_nonzero requires_grad_ new_zeros new_ones""".split()
)
#: Builtins and methods of tensors by the same names, of which only the former read a number.
_CASTS = frozenset(("float", "int"))
#: Methods and functions whose result is a mask that a gradient passes through.
_SAME = frozenset(
    """view reshape flatten unsqueeze squeeze expand expand_as repeat permute transpose t T mT
    clone contiguous to cpu cuda flip roll repeat_interleave stack cat concat""".split()
)
_DEPTH = 5
SEVERAL = 2


@dataclass(frozen=True)
class MaskUses:
    """api_of: the API of torch that a name or an attribute names; empty where it is none."""

    tree: Tree
    api_of: Callable[[ast.AST], str]

    def count(self, mask: ast.expr, depth: int = _DEPTH) -> int:
        """How many gradients an expression that is a mask may be given; no more than SEVERAL."""
        parent = self.tree.parents.get(mask)
        if depth == 0 or parent is None:
            return 1
        if isinstance(parent, (ast.BinOp, ast.AugAssign)):
            return int(not isinstance(parent.op, (ast.BitAnd, ast.BitOr, ast.BitXor)))
        if isinstance(parent, ast.Attribute):
            return self._of_member(parent, depth)
        if isinstance(parent, ast.Subscript):
            return self._of_part(mask, parent, depth)
        if isinstance(parent, (ast.keyword, ast.Call)):
            return self._of_argument(mask, parent, depth)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return self._of_targets(parent, depth)
        if isinstance(parent, ast.IfExp):
            return self.count(parent, depth) if mask is not parent.test else 0
        if isinstance(parent, (*_DISPLAYS, *_COMPREHENSIONS)):
            return self.count(parent, depth)
        if isinstance(parent, (ast.Return, ast.Dict, ast.Yield, ast.Lambda)):
            return 1
        if isinstance(parent, (ast.For, ast.comprehension)):
            return SEVERAL
        return 0

    def _of_member(self, member: ast.Attribute, depth: int) -> int:
        call = self.tree.parents.get(member)
        if not isinstance(call, ast.Call) or call.func is not member:
            return self.count(member, depth) if member.attr in _SAME else 0
        if member.attr in _SAME and not _gives_dtype(call, self.api_of):
            return self.count(call, depth)
        return int(member.attr in _CASTS or member.attr not in _ASKS)

    def _of_part(self, mask: ast.expr, part: ast.Subscript, depth: int) -> int:
        if part.value is not mask or not isinstance(part.ctx, ast.Load):
            return 0
        found = self.count(part, depth)
        return SEVERAL if found and any(map(_may_select, parts_of(part.slice))) else found

    def _of_argument(self, mask: ast.expr, parent: ast.keyword | ast.Call, depth: int) -> int:
        call = self.tree.parents[parent] if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or call.func is mask:
            return 0
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name in _SAME and self.api_of(call.func):
            return self.count(call, depth)
        if name in _ASKS and (self.api_of(call.func) or isinstance(call.func, ast.Name)):
            return 0
        function = self.function_of(call)
        if function is None:
            return 1
        taken = _parameter(function, call, mask, parent)
        return self._of_name(taken, function, function, depth) if taken else 1

    def _of_targets(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, depth: int) -> int:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found = self.count(node, depth) if isinstance(node, ast.NamedExpr) else 0
        for target in targets:
            if isinstance(target, ast.Name):
                found += self._of_name(target.id, self.tree.scope(node), node, depth)
            elif isinstance(target, (ast.Attribute, ast.Subscript)):
                found += 1  # whoever reads it
        return min(found, SEVERAL)

    def _of_name(self, name: str, scope: ast.AST, bound: ast.AST, depth: int) -> int:
        """The gradients of all that reads a name in a function; a loop around some reads again."""
        loops, found = self._repeating(bound), 0
        for part in self.tree.walked(scope):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                given = self.count(part, depth - 1)
                if given and not self._repeating(part) <= loops:
                    return SEVERAL
                found += given
                if found >= SEVERAL:
                    return SEVERAL
        return found

    def _repeating(self, node: ast.AST) -> set[ast.AST]:
        """The loops and comprehensions around a node, in its function."""
        found, inner = set[ast.AST](), node
        for part in self.tree.above(node):
            if isinstance(part, _FUNCTIONS):
                break
            first = getattr(part, "iter", next(iter(getattr(part, "generators", ())), None))
            if isinstance(part, (*_COMPREHENSIONS, *_LOOPS)) and inner is not first:
                found.add(part)
            inner = part
        return found

    def function_of(self, call: ast.Call) -> _Function | None:
        """The function of the file that a call calls, by its name or as a method of `self`."""
        if self.api_of(call.func):
            return None
        is_own = isinstance(call.func, ast.Name) or getattr(
            getattr(call.func, "value", None), "id", ""
        ) in ("self", "cls")
        if not is_own:
            return None
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        defined = self.tree.defined.get(name, [])
        if len(defined) != 1 or not isinstance(defined[0], _FUNCTIONS):
            return None
        return defined[0]

    def returned(self, function: _Function) -> Iterator[ast.expr]:
        """What a function returns."""
        for part in self.tree.walked(function):
            if isinstance(part, ast.Return) and part.value is not None:
                yield part.value


def _gives_dtype(call: ast.Call, api_of: Callable[[ast.AST], str]) -> bool:
    """Whether `mask.to(…)` may make numbers of a mask."""
    if getattr(call.func, "attr", "") != "to":
        return False
    given = [*call.args, *(part.value for part in call.keywords if part.arg == "dtype")]
    named = [part for part in given if getattr(part, "attr", "") == "device"]
    return len(named) < len(given) or any(map(api_of, named))


def _may_select(index: ast.expr) -> bool:
    """Whether an index may take elements by their positions, and not a slice or a new axis."""
    if isinstance(index, ast.Constant):
        return index.value is not None and index.value is not ...
    return not isinstance(index, (ast.Slice, ast.Compare))


def _parameter(
    function: _Function, call: ast.Call, mask: ast.expr, parent: ast.keyword | ast.Call
) -> str:
    """The parameter by which a function takes an argument; empty where it is not known."""
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    is_bound = isinstance(call.func, ast.Attribute) and places[:1] in (["self"], ["cls"])
    before = call.args[: call.args.index(mask)]
    at = len(before) + is_bound
    if any(isinstance(part, ast.Starred) for part in before) or at >= len(places):
        return ""
    return places[at]
