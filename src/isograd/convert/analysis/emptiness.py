"""Which expressions of a file may be tensors without any element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping

from isograd.convert.places import Place, place
from isograd.convert.tree import Tree, pairs_of
from isograd.scan.behaviour import PLAIN_RESULTS, RAGGED_RESULTS, SHAPE_RESULTS

#: Give one element of everything, unless they get an axis or `reduction="none"`.
REDUCTIONS = frozenset(
    """sum nansum mean nanmean norm vector_norm matrix_norm count_nonzero any all prod std var max
    min amax amin argmax argmin median nanmedian logsumexp dot vdot inner dist item tolist numel
    equal allclose trace det""".split()
)
_AXES = frozenset(("dim", "axis"))
_SIZED = frozenset("empty zeros ones full rand randn randint arange new_empty new_zeros".split())
_ASKED = PLAIN_RESULTS | SHAPE_RESULTS
_NATIVE = frozenset(
    "len range enumerate zip int float bool str print isinstance sum max min".split()
)
#: Methods that are called as functions of Python are.
_CASTS = frozenset("float int bool".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_OF_PYTHON = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Name = tuple[ast.AST, str]


def is_loss(name: str) -> bool:
    """Whether a function of `torch.nn.functional` compares two tensors and reduces."""
    known = ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")
    return name in known or (name.endswith("_loss") and name != "ctc_loss")


class Emptiness:
    """What may be empty, followed through names, arithmetic and the file's own functions.

    api_of: the API of torch that a function names, or nothing.  selections: where a tensor takes
    elements, and whether it is a mask or positions of unknown number.  made: calls that make a
    tensor without elements.
    """

    def __init__(
        self,
        tree: Tree,
        api_of: Callable[[ast.AST], str],
        selections: Mapping[Place, bool],
        made: Collection[ast.expr],
    ) -> None:
        self._tree, self._api_of = tree, api_of
        self._selections, self._made = selections, made
        self._names = set[_Name]()
        self._results = set[ast.AST]()
        self._bound, self._stores = self._read()
        self._values: dict[_Name, list[ast.AST]] = {}
        for scope, name, value in self._bound:
            self._values.setdefault((scope, name), []).append(value)
        self._functions = self._defined()
        self._is_settled = False
        self._has_sources = self._finds_sources()
        if self._has_sources:
            self._settle()
        self._is_settled = True

    # ---- what is asked

    def may(self, node: ast.AST) -> bool:
        """Whether an expression may be without elements; of a list, whether one of it may."""
        if not self._has_sources:
            return False
        if node in self._made or self._is_taken(node):
            return True
        if isinstance(node, ast.Name):
            return bool(self._names) and self._may_name(node)
        if isinstance(node, ast.Call):
            return self._may_call(node)
        if isinstance(node, ast.Subscript):
            return self._may_subscript(node)
        if isinstance(node, ast.Attribute):
            return node.attr not in _ASKED and self.may(node.value)
        if isinstance(node, (ast.UnaryOp, ast.Starred, ast.NamedExpr)):
            return self.may(node.operand if isinstance(node, ast.UnaryOp) else node.value)
        return any(self.may(part) for part in _parts(node))

    def _is_taken(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Subscript) and self._selections.get(place(node), False)

    def _may_name(self, node: ast.Name) -> bool:
        scope = self._home(node)
        return scope is not None and (scope, node.id) in self._names

    def _home(self, node: ast.Name) -> ast.AST | None:
        """The function that binds a name, or the module."""
        for part in (*self._tree.above(node), self._tree.module):
            if isinstance(part, (*_FUNCTIONS, ast.Module)):
                if (part, node.id) in self._stores:
                    return part
        return None

    def _may_subscript(self, node: ast.Subscript) -> bool:
        if self._is_mask(node.slice):
            return True
        # Most tensors of positions that a function gets take something (a table's rows): what such
        # an index takes counts where it is reduced at once, and is not followed through names.
        is_taken = self._is_settled and place(node) in self._selections
        if is_taken and self._is_given(node.slice):
            return True
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self.may(node.value) or any(
            self.may(part) for part in parts if not isinstance(part, (ast.Slice, ast.Constant))
        )

    def _is_mask(self, index: ast.AST, *, by_name: bool = True, seen: tuple[str, ...] = ()) -> bool:
        """Whether an index is a condition, or a name of one, as nothing but a tensor's is.

        seen: names on the way here, of which one may be bound to itself (`keep = keep & near`).
        """
        if isinstance(index, ast.Compare):
            return not isinstance(index.ops[0], _OF_PYTHON)
        if isinstance(index, ast.UnaryOp):
            return isinstance(index.op, ast.Invert) and self._is_mask(index.operand, seen=seen)
        if isinstance(index, ast.BinOp):
            is_of_bits = isinstance(index.op, (ast.BitAnd, ast.BitOr))
            sides = (index.left, index.right)
            return is_of_bits and any(self._is_mask(side, seen=seen) for side in sides)
        if not isinstance(index, ast.Name) or not by_name or index.id in seen:
            return False
        seen = (*seen, index.id)
        return any(
            self._is_mask(value, by_name=False, seen=seen) for value in self._bound_to(index)
        )

    def _bound_to(self, node: ast.Name) -> list[ast.AST]:
        home = self._home(node)
        return [] if home is None else self._values.get((home, node.id), [])

    def _is_given(self, index: ast.expr) -> bool:
        """Whether an index is a parameter, which may be a mask."""
        if not isinstance(index, ast.Name):
            return False
        bound = self._bound_to(index)
        return bool(bound) and all(isinstance(value, ast.arg) for value in bound)

    def _may_call(self, node: ast.Call) -> bool:
        if self._is_source(node):
            return True
        if any(function in self._results for function in self._targets(node)):
            return True
        api = self._api_of(node.func)
        name, is_method = _last(node.func, api), isinstance(node.func, ast.Attribute)
        is_of_python = name in _NATIVE and not (is_method and name in _CASTS)
        if name in _ASKED or is_of_python:
            return False
        given = [*node.args, *(part.value for part in node.keywords)]
        if isinstance(node.func, ast.Attribute) and not api.startswith("torch.nn.functional"):
            given.append(node.func.value)
        if name in _SIZED:
            return any(self._is_size(part) for one in given for part in ast.walk(one))
        if self._reduces(node, api, name) or self._targets(node):
            return False
        if name in ("cat", "concat", "concatenate") and isinstance(given[0], (ast.List, ast.Tuple)):
            return all(self.may(part) for part in given[0].elts)
        return any(self.may(part) for part in given)

    def _reduces(self, node: ast.Call, api: str, name: str) -> bool:
        if is_loss(name):
            given = [part.value for part in node.keywords if part.arg == "reduction"]
            return not any(getattr(part, "value", "") == "none" for part in given)
        if name not in REDUCTIONS:
            return False
        is_method = isinstance(node.func, ast.Attribute) and (not api or ".Tensor." in api)
        has_axis = any(part.arg in _AXES for part in node.keywords)
        return not has_axis and len(node.args) <= (0 if is_method else 1)

    def _is_source(self, node: ast.Call) -> bool:
        api = self._api_of(node.func)
        name = api.rpartition(".")[2]
        if name == "where":
            return api.startswith("torch.") and len(node.args) == 1 and not node.keywords
        if name in _SIZED and name not in ("arange", "full", "randint"):
            sizes = [size for part in node.args for size in getattr(part, "elts", [part])]
            return any(
                getattr(size, "value", None) is not False and _is_zero(size) for size in sizes
            )
        return name in RAGGED_RESULTS - {"unique", "unique_consecutive"}

    def _is_size(self, node: ast.AST) -> bool:
        """`m.shape`, `m.size` and `len(m)` of what may be empty."""
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "numel"):
            return self.may(node.value)
        is_length = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"
        return is_length and any(self.may(part) for part in node.args)  # type: ignore[attr-defined]

    # ---- names and functions

    def _finds_sources(self) -> bool:
        """Whether anything in the file makes what may be empty; most files need no more."""
        return (
            bool(self._made or self._selections)
            or any(self._is_mask(node.slice) for node in self._tree.of(ast.Subscript))
            or any(map(self._is_source, self._tree.of(ast.Call)))
        )

    def _settle(self) -> None:
        """Follow what may be empty until nothing is added."""
        calls, returns = self._tree.of(ast.Call), self._tree.of(ast.Return)
        before = -1
        while before != len(self._names) + len(self._results):
            before = len(self._names) + len(self._results)
            for scope, name, value in self._bound:
                if (scope, name) not in self._names and self.may(value):
                    self._names.add((scope, name))
            for call in calls:
                for function in self._targets(call):
                    self._names |= {(function, name) for name in self._given(call, function)}
            for node in returns:
                around = self._tree.function(node)
                if node.value is not None and self.may(node.value) and around is not None:
                    self._results.add(around)

    def _given(self, call: ast.Call, function: _Function) -> Iterator[str]:
        """The parameters that get what may be empty."""
        places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
        if places[:1] in (["self"], ["cls"]):
            places = places[1:]
        for name, value in zip(places, call.args, strict=False):
            if self.may(value):
                yield name
        for keyword in call.keywords:
            if keyword.arg is not None and self.may(keyword.value):
                yield keyword.arg

    def _targets(self, call: ast.Call) -> list[_Function]:
        """The functions of the file that a call runs, by their names or those of their objects."""
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if self._api_of(call.func):
            return []
        return self._functions.get(name, [])

    def _defined(self) -> dict[str, list[_Function]]:
        found: dict[str, list[_Function]] = {}
        called: dict[str, list[_Function]] = {}
        for node in self._tree.of(*_FUNCTIONS):
            assert isinstance(node, _Function)
            owner = self._tree.parents.get(node)
            if isinstance(owner, ast.ClassDef) and node.name in ("forward", "__call__"):
                called.setdefault(owner.name, []).append(node)
            found.setdefault(node.name, []).append(node)
        for assign in self._tree.of(ast.Assign):
            made = getattr(getattr(assign.value, "func", None), "id", "")
            for target in assign.targets if made in called else ():
                name = getattr(target, "attr", getattr(target, "id", ""))
                found.setdefault(name, []).extend(called[made])
        return found

    def _read(self) -> tuple[list[tuple[ast.AST, str, ast.AST]], set[_Name]]:
        """What names are bound to, by the function that binds them, and all that are bound."""
        found: list[tuple[ast.AST, str, ast.AST]] = []
        scope = self._tree.scope
        for node in self._tree.of(ast.Assign):
            for target, value in (p for one in node.targets for p in pairs_of(one, node.value)):
                found += [(scope(node), name, value) for name in _stored(target)]
        for other in self._tree.of(ast.AnnAssign, ast.AugAssign, ast.NamedExpr):
            value = other.value  # type: ignore[attr-defined]
            if value is not None:
                names = _stored(other.target)  # type: ignore[attr-defined]
                found += [(scope(other), name, value) for name in names]
        for loop in self._tree.of(ast.For):
            if isinstance(loop.iter, (ast.List, ast.Tuple)):
                found += [(scope(loop), name, loop.iter) for name in _stored(loop.target)]
        for call in self._tree.of(ast.Call):
            if getattr(call.func, "attr", "") in ("append", "extend") and len(call.args) == 1:
                holder = getattr(call.func, "value", None)
                found += [(scope(call), name, call.args[0]) for name in _stored(holder)]
        for function in self._tree.of(*_FUNCTIONS):
            assert isinstance(function, _Function)
            given = function.args
            several = (*given.posonlyargs, *given.args, *given.kwonlyargs)
            found += [(function, part.arg, part) for part in several]
        stores = {(owner, name) for owner, name, _ in found}
        stores |= {(scope(n), n.id) for n in self._tree.binding if isinstance(n, ast.Name)}
        return found, stores


def _stored(target: ast.AST | None) -> list[str]:
    if isinstance(target, ast.Starred):
        return _stored(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for one in target.elts for name in _stored(one)]
    return [target.id] if isinstance(target, ast.Name) else []


def _parts(node: ast.AST) -> list[ast.expr]:
    """The parts of an expression of which the whole may be empty where one of them may."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, (ast.Tuple, ast.List)):
        return node.elts
    return [node.elt] if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else []


def _last(function: ast.expr, api: str) -> str:
    return api.rpartition(".")[2] or getattr(function, "attr", getattr(function, "id", ""))


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0
